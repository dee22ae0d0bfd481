"""Models of transformers with random weights: DeBERTa, encoders and decoders of T5 and Whisper;
decoders take the keys and values of earlier tokens and return those of all."""
import numpy as np
import torch
import transformers
from torch import nn
from transformers.cache_utils import DynamicCache, EncoderDecoderCache

from own_models import Case, of

TEXTS = {True: [(1, 6), (2, 5), (1, 9), (1, 3), (3, 4)],
         False: [(1, 32), (2, 48), (1, 100), (1, 7), (4, 24)]}
# Batch, new tokens, earlier tokens, tokens of the encoder.
STEPS = {True: [(1, 1, 3, 6), (1, 1, 7, 5), (2, 1, 4, 4), (1, 1, 1, 8), (1, 3, 5, 7)],
         False: [(1, 1, 10, 30), (1, 1, 37, 50), (2, 1, 64, 41), (1, 1, 100, 100), (1, 4, 20, 64)]}


def mask(batch, length):
    ones = np.ones((batch, length), np.int64)
    if batch > 1:
        ones[-1, length * 2 // 3:] = 0
    return ones


class FirstOutput(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask, return_dict=False)[0]


def texts(model, words, tiny):
    inputs = [{"input_ids": of(k).randint(0, words, size), "attention_mask": mask(*size)}
              for k, size in enumerate(TEXTS[tiny])]
    dims = {name: {0: "batch", 1: "tokens"} for name in inputs[0]}
    return Case(FirstOutput(model), inputs, dims, ["hidden"])


def deberta(tiny):
    width, words = (16, 30) if tiny else (256, 600)
    return texts(transformers.DebertaV2Model(transformers.DebertaV2Config(
        vocab_size=words, hidden_size=width, num_hidden_layers=1 if tiny else 4,
        num_attention_heads=2 if tiny else 4, intermediate_size=2 * width if tiny else 4 * width,
        relative_attention=True, position_buckets=4 if tiny else 32, max_relative_positions=-1,
        norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type=["p2c", "c2p"],
        max_position_embeddings=16 if tiny else 256, type_vocab_size=0,
        position_biased_input=False)), words, tiny)


def t5(tiny):
    width, layers, heads = (16, 1, 2) if tiny else (256, 4, 4)
    return transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=30 if tiny else 500, d_model=width, d_kv=width // heads,
        d_ff=2 * width if tiny else 4 * width, num_layers=layers, num_decoder_layers=layers,
        num_heads=heads, feed_forward_proj="gated-gelu", decoder_start_token_id=0))


def whisper(tiny):
    width, layers, heads = (16, 1, 2) if tiny else (256, 4, 4)
    inner = 2 * width if tiny else 4 * width
    config = transformers.WhisperConfig(
        vocab_size=30 if tiny else 500, num_mel_bins=8 if tiny else 80, encoder_layers=layers,
        decoder_layers=layers, d_model=width, encoder_attention_heads=heads,
        decoder_attention_heads=heads, encoder_ffn_dim=inner, decoder_ffn_dim=inner,
        max_source_positions=8 if tiny else 200, max_target_positions=16 if tiny else 160,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        suppress_tokens=None, begin_suppress_tokens=None)
    config._attn_implementation = "eager"
    return transformers.WhisperForConditionalGeneration(config)


def t5_encoder(tiny):
    model = t5(tiny)
    return texts(model.encoder, model.config.vocab_size, tiny)


class Sound(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, features):
        return self.encoder(features, return_dict=False)[0]


def whisper_encoder(tiny):
    model = whisper(tiny)
    extents = (model.config.num_mel_bins, 2 * model.config.max_source_positions)
    inputs = [{"features": of(k).randn(k + 1, *extents).astype(np.float32)} for k in range(5)]
    return Case(Sound(model.model.encoder), inputs, {"features": {0: "batch"}}, ["hidden"])


class Step(nn.Module):
    """New tokens, the encoder's mask (T5), then of each layer the keys and values of earlier tokens
    and of the encoder."""

    def __init__(self, model, layers, masked):
        super().__init__()
        self.model, self.layers, self.masked = model, layers, masked
        self.decoder = model.decoder if masked else model.model.decoder
        self.head = model.lm_head if masked else model.proj_out

    def forward(self, ids, *rest):
        past = rest[1:] if self.masked else rest
        mine, others = DynamicCache(), DynamicCache()
        for i in range(self.layers):
            mine.update(past[4 * i], past[4 * i + 1], i)
            others.update(past[4 * i + 2], past[4 * i + 3], i)
        cache = EncoderDecoderCache(mine, others)
        cache.is_updated = {i: True for i in range(self.layers)}
        encoded = torch.zeros(ids.shape[0], past[2].shape[2], self.model.config.d_model)
        also = {"encoder_attention_mask": rest[0]} if self.masked else {}
        hidden = self.decoder(input_ids=ids, encoder_hidden_states=encoded, past_key_values=cache,
                              use_cache=True, **also).last_hidden_state
        layers = cache.self_attention_cache.layers
        return self.head(hidden), *(x for layer in layers for x in (layer.keys, layer.values))


def decoder(model, layers, heads, masked, tiny):
    width = model.config.d_model // heads
    names = [f"past_{i}_{of_what}_{what}" for i in range(layers) for of_what in ("self", "cross")
             for what in ("key", "value")]
    inputs = []
    for k, (batch, new, earlier, encoded) in enumerate(STEPS[tiny]):
        values = {"ids": of(k).randint(0, model.config.vocab_size, (batch, new))}
        if masked:
            values["mask"] = mask(batch, encoded)
        for name in names:
            length = earlier if "self" in name else encoded
            values[name] = of(k).randn(batch, heads, length, width).astype(np.float32)
        inputs.append(values)
    dims = {"ids": {0: "batch", 1: "tokens"}}
    if masked:
        dims["mask"] = {0: "batch", 1: "encoded"}
    for name in names:
        dims[name] = {0: "batch", 2: "earlier" if "self" in name else "encoded"}
    outputs = ["logits"] + [name.replace("past", "all") for name in names if "self" in name]
    return Case(Step(model, layers, masked), inputs, dims, outputs)


def t5_decoder(tiny):
    model = t5(tiny)
    return decoder(model, model.config.num_decoder_layers, model.config.num_heads, True, tiny)


def whisper_decoder(tiny):
    model = whisper(tiny)
    config = model.config
    return decoder(model, config.decoder_layers, config.decoder_attention_heads, False, tiny)
