"""Small transformers with random weights, exported by torch: python make_transformers.py"""
import sys

import numpy as np
import torch
import transformers

from recording import model_path, record

WIDTH, HEADS, LAYERS, VOCABULARY = 32, 2, 2, 40


# The fused encoder layer of torch's own Transformer has no ONNX form.
torch.backends.mha.set_fastpath_enabled(False)


def export(name, module, arguments, input_names, output_names, dynamic_axes=None, opset=17):
    module.eval()
    with torch.no_grad():
        torch.onnx.export(module, arguments, model_path(name), input_names=input_names,
                          output_names=output_names, dynamic_axes=dynamic_axes,
                          opset_version=opset, dynamo=False)


def tokens(*shape):
    return torch.randint(0, VOCABULARY, shape)


def bert_config(width):
    return transformers.BertConfig(vocab_size=VOCABULARY, hidden_size=width,
                                   num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                                   intermediate_size=width * 3 // 2, max_position_embeddings=16,
                                   attn_implementation="eager")


class Encoder(torch.nn.Module):
    """Token ids, mask and types in; hidden states and pooled vector out."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, token_type_ids):
        out = self.model(input_ids=input_ids, attention_mask=attention_mask,
                         token_type_ids=token_type_ids)
        return out.last_hidden_state, out.pooler_output


def bert(name, width, dynamic, opset):
    model = transformers.BertModel(bert_config(width))
    names = ["input_ids", "attention_mask", "token_type_ids"]
    ids = tokens(2, 7)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    types = torch.zeros_like(ids)
    types[:, 4:] = 1
    axes = {n: {0: "batch", 1: "sequence"} for n in names} if dynamic else None
    export(name, Encoder(model), (ids, mask, types), names, ["hidden", "pooled"], axes, opset)
    if dynamic:  # other sizes than those of the export
        ids = tokens(3, 11)
        mask = torch.ones_like(ids)
        mask[0, 9:] = 0
        types = torch.zeros_like(ids)
    record(name, model_path(name),
           {"input_ids": ids.numpy(), "attention_mask": mask.numpy(), "token_type_ids": types.numpy()})


def bert_dynamo():
    """By torch's newer exporter, with its fused attention operator."""
    config = bert_config(WIDTH)
    config._attn_implementation = "sdpa"
    module = Encoder(transformers.BertModel(config)).eval()
    names = ["input_ids", "attention_mask", "token_type_ids"]
    ids = tokens(2, 7)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    arguments = (ids, mask, torch.zeros_like(ids))
    with torch.no_grad():
        torch.onnx.export(module, arguments, model_path("bert_dynamo"), input_names=names,
                          output_names=["hidden", "pooled"], opset_version=23, dynamo=True,
                          external_data=False)
    record("bert_dynamo", model_path("bert_dynamo"),
           {n: a.numpy() for n, a in zip(names, arguments)})


class MeanPooled(torch.nn.Module):
    """What sentence embedding models do: masked mean, then unit length."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        hidden = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask.unsqueeze(-1).expand(hidden.size()).float()
        mean = (hidden * mask).sum(1) / torch.clamp(mask.sum(1), min=1e-9)
        return torch.nn.functional.normalize(mean, p=2, dim=1)


def minilm():
    model = MeanPooled(transformers.BertModel(bert_config(WIDTH), add_pooling_layer=False))
    names = ["input_ids", "attention_mask"]
    axes = {n: {0: "batch", 1: "sequence"} for n in names}
    ids = tokens(2, 9)
    mask = torch.ones_like(ids)
    mask[0, 6:] = 0
    export("minilm", model, (ids, mask), names, ["embedding"], axes, 14)
    record("minilm", model_path("minilm"), {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})


class Classifier(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixel_values):
        return self.model(pixel_values=pixel_values).logits


def vit():
    config = transformers.ViTConfig(hidden_size=WIDTH, num_hidden_layers=LAYERS,
                                    num_attention_heads=HEADS, intermediate_size=2 * WIDTH,
                                    image_size=16, patch_size=4, num_labels=10,
                                    attn_implementation="eager")
    model = Classifier(transformers.ViTForImageClassification(config))
    image = torch.randn(2, 3, 16, 16)
    export("vit", model, (image,), ["pixel_values"], ["logits"], {"pixel_values": {0: "batch"}})
    record("vit", model_path("vit"), {"pixel_values": image.numpy()})


def swin():
    config = transformers.SwinConfig(image_size=16, patch_size=2, embed_dim=8, depths=[2, 2],
                                     num_heads=[2, 2], window_size=4, mlp_ratio=2.0, num_labels=10,
                                     attn_implementation="eager")
    model = Classifier(transformers.SwinForImageClassification(config))
    image = torch.randn(2, 3, 16, 16)
    export("swin", model, (image,), ["pixel_values"], ["logits"], {"pixel_values": {0: "batch"}})
    record("swin", model_path("swin"), {"pixel_values": image.numpy()})


class Decoder(torch.nn.Module):
    """A causal language model with its cache as plain tensors: key and value of every layer."""

    def __init__(self, model, layers):
        super().__init__()
        self.model, self.layers = model, layers

    def forward(self, input_ids, attention_mask, position_ids, *past):
        cache = None
        if past:
            pairs = [(past[2 * i], past[2 * i + 1]) for i in range(self.layers)]
            cache = transformers.DynamicCache(pairs)
        out = self.model(input_ids=input_ids, attention_mask=attention_mask,
                         position_ids=position_ids, past_key_values=cache, use_cache=True)
        present = []
        for layer in out.past_key_values.layers:
            present += [layer.keys, layer.values]
        return (out.logits, *present)


def decoder(name, model, heads, head_width, opset, prefill):
    """prefill: a first call without a cache; else one token after `past` others."""
    module = Decoder(model, LAYERS)
    batch, length, past = (2, 6, 0) if prefill else (2, 1, 5)

    def example(batch, length, past):
        ids = tokens(batch, length)
        mask = torch.ones(batch, past + length, dtype=torch.int64)
        mask[0, 0] = 0
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, past:]
        cache = [torch.randn(batch, heads, past, head_width) for _ in range(2 * LAYERS)]
        return (ids, mask, positions, *(cache if past else ()))

    arguments = example(batch, length, past)
    names = ["input_ids", "attention_mask", "position_ids"]
    axes = {"input_ids": {0: "batch", 1: "sequence"}, "position_ids": {0: "batch", 1: "sequence"},
            "attention_mask": {0: "batch", 1: "past + sequence" if past else "sequence"}}
    outputs = ["logits"]
    for i in range(LAYERS):
        for what in ["key", "value"]:
            outputs.append(f"present.{i}.{what}")
            if past:
                names.append(f"past.{i}.{what}")
                axes[names[-1]] = {0: "batch", 2: "past"}
    export(name, module, arguments, names, outputs, axes, opset)
    arguments = example(1, 4, 0) if prefill else example(2, 1, 7)
    record(name, model_path(name), {n: a.numpy() for n, a in zip(names, arguments)})


def gpt2(prefill):
    config = transformers.GPT2Config(vocab_size=VOCABULARY, n_positions=32, n_embd=WIDTH,
                                     n_layer=LAYERS, n_head=HEADS, n_inner=2 * WIDTH,
                                     attn_implementation="eager")
    name = "gpt2_prefill" if prefill else "gpt2_decode"
    decoder(name, transformers.GPT2LMHeadModel(config), HEADS, WIDTH // HEADS, 14, prefill)


def llama(prefill):
    config = transformers.LlamaConfig(vocab_size=VOCABULARY, hidden_size=WIDTH,
                                      intermediate_size=48, num_hidden_layers=LAYERS,
                                      num_attention_heads=4, num_key_value_heads=2,
                                      max_position_embeddings=32, attn_implementation="eager")
    name = "llama_prefill" if prefill else "llama_decode"
    decoder(name, transformers.LlamaForCausalLM(config), 2, WIDTH // 4, 17, prefill)


class Translator(torch.nn.Module):
    """torch's own encoder-decoder, with embeddings and a causal mask."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(VOCABULARY, 24)
        self.body = torch.nn.Transformer(24, 2, 2, 2, 32, batch_first=True, activation="gelu",
                                         norm_first=True)
        self.head = torch.nn.Linear(24, VOCABULARY)

    def forward(self, source, target):
        length = target.shape[1]
        mask = torch.triu(torch.full((length, length), float("-inf")), diagonal=1)
        hidden = self.body(self.embed(source), self.embed(target), tgt_mask=mask)
        return torch.log_softmax(self.head(hidden), -1)


def encoder_decoder():
    source, target = tokens(2, 7), tokens(2, 5)
    axes = {"source": {0: "batch", 1: "source_length"}, "target": {0: "batch", 1: "target_length"}}
    export("encoder_decoder", Translator(), (source, target), ["source", "target"],
           ["log_probabilities"], axes, 17)
    record("encoder_decoder", model_path("encoder_decoder"),
           {"source": source.numpy(), "target": target.numpy()})


MAKERS = {
    "bert": lambda: bert("bert", 64, False, 17),
    "bert_dynamic": lambda: bert("bert_dynamic", WIDTH, True, 13),
    "bert_dynamo": bert_dynamo,
    "minilm": minilm,
    "vit": vit,
    "swin": swin,
    "gpt2_prefill": lambda: gpt2(True),
    "gpt2_decode": lambda: gpt2(False),
    "llama_prefill": lambda: llama(True),
    "llama_decode": lambda: llama(False),
    "encoder_decoder": encoder_decoder,
}

if __name__ == "__main__":
    for maker in sys.argv[1:] or MAKERS:
        torch.manual_seed(0)
        np.random.seed(0)
        MAKERS[maker]()
