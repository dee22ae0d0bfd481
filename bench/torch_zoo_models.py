"""The 80 models of torch_zoo.py: 40 families of timm, 10 networks of torchvision, 30 of transformers.

make("timm:vgg11") gives (model, arguments, named arguments), with random weights from seed 0. Images
are 128 pixels wide, or as wide as the model demands; networks of transformers have 2 layers of 256
and read 2 texts of 64 words. Images have batch 1.
"""
import inspect

import torch

TIMM = """bat_resnext26ts botnet26t_256 caformer_s18 cait_xxs24_224 coat_lite_tiny coatnet_pico_rw_224
convit_tiny convnextv2_atto crossvit_tiny_240 cspresnet50 davit_tiny densenet121 dla34 dpn48b edgenext_xx_small
efficientformer_l1 efficientnet_b0 efficientvit_b0 fastvit_t8 focalnet_tiny_srf gernet_s ghostnet_050
hgnetv2_b0 hrnet_w18_small levit_128s mixer_s32_224 mobilenetv3_small_100 mobilevit_xxs nfnet_l0 pit_ti_224
poolformer_s12 pvt_v2_b0 regnety_002 repvgg_a0 res2net50_14w_8s resnext50_32x4d swin_tiny_patch4_window7_224
tresnet_m vit_tiny_patch16_224 xcit_nano_12_p16_224""".split()

TORCHVISION = """alexnet googlenet inception_v3 mnasnet0_5 mobilenet_v2 regnet_x_400mf resnet18
shufflenet_v2_x0_5 squeezenet1_0 vgg11""".split()

TRANSFORMERS = """BertModel RobertaModel DistilBertModel AlbertModel ElectraModel DebertaV2Model MobileBertModel
MPNetModel FNetModel SqueezeBertModel ConvBertModel GPT2LMHeadModel LlamaForCausalLM Qwen2ForCausalLM
Qwen3ForCausalLM Gemma2ForCausalLM PhiForCausalLM OPTForCausalLM GPTNeoXForCausalLM BloomForCausalLM
MambaModel T5Model BartModel MarianModel WhisperModel ViTModel DeiTModel CLIPVisionModel Dinov2Model
Wav2Vec2Model""".split()

NAMES = [f"timm:{name}" for name in TIMM] + [f"torchvision:{name}" for name in TORCHVISION] + \
        [f"transformers:{name}" for name in TRANSFORMERS]

FIXED = {"bat_resnext26ts"}  # though its entry does not say so

PIXELS, WORDS, TEXTS, VOCABULARY = 128, 64, 2, 1000

# What configurations of transformers call their sizes; each gets those that it knows.
SIZES = {
    "vocab_size": VOCABULARY, "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 1024, "max_position_embeddings": 128, "d_model": 256,
    "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 1024, "decoder_ffn_dim": 1024, "n_embd": 256, "n_layer": 2, "n_head": 4,
    "n_positions": 128, "num_layers": 2, "num_heads": 4, "d_kv": 64, "d_ff": 1024, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "head_dim": 64,
    "embedding_size": 256, "dim": 256, "n_layers": 2, "n_heads": 4, "hidden_dim": 1024, "ffn_dim": 1024,
    "word_embed_proj_dim": 256, "image_size": PIXELS, "patch_size": 16, "max_source_positions": 100}


def of_timm(name):
    import timm
    model = timm.create_model(name, pretrained=False)
    size = model.default_cfg["input_size"]
    fixed = model.default_cfg.get("fixed_input_size", False) or name in FIXED
    return model, (torch.randn(1, *(size if fixed else (3, PIXELS, PIXELS))),), {}


def of_torchvision(name):
    import torchvision
    more = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    model = getattr(torchvision.models, name)(weights=None, **more)
    return model, (torch.randn(1, 3, PIXELS, PIXELS),), {}


def of_transformers(name):
    import transformers
    kind = getattr(transformers, name)
    known = kind.config_class()
    config = kind.config_class(**{key: value for key, value in SIZES.items() if hasattr(known, key)})
    config.use_cache = False
    model = kind(config)
    takes = inspect.signature(model.forward).parameters
    words = torch.randint(3, VOCABULARY, (TEXTS, WORDS))
    named = {}
    if model.main_input_name == "pixel_values":
        named["pixel_values"] = torch.randn(1, 3, PIXELS, PIXELS)
    elif model.main_input_name == "input_values":
        named["input_values"] = torch.randn(1, 8000)  # half a second
    elif model.main_input_name == "input_features":
        named["input_features"] = torch.randn(1, config.num_mel_bins, 2 * config.max_source_positions)
    else:
        named["input_ids"] = words
    if getattr(config, "is_encoder_decoder", False):
        named["decoder_input_ids"] = words[:, :32].contiguous()
    if "use_cache" in takes:
        named["use_cache"] = False
    return model, (), named


FAMILIES = {"timm": of_timm, "torchvision": of_torchvision, "transformers": of_transformers}


def make(name):
    torch.manual_seed(0)
    family, _, kind = name.partition(":")
    model, args, named = FAMILIES[family](kind)
    return model.eval(), args, named
