"""Networks that read text: encoders, decoders with a cache, an encoder-decoder."""
import torch

from common import livelier, spec

# torch's fused encoder layer has no ONNX form.
torch.backends.mha.set_fastpath_enabled(False)

ENCODER_NAMES = ["last_hidden_state", "pooler_output"]
BERT = (768, 12, 12)  # width, layers, heads
MINILM = (384, 6, 12)


class Encoder(torch.nn.Module):
    """Token ids, mask and types in; hidden states and pooled vector out."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, token_type_ids):
        out = self.model(input_ids=input_ids, attention_mask=attention_mask,
                         token_type_ids=token_type_ids)
        return out.last_hidden_state, out.pooler_output


class Decoder(torch.nn.Module):
    """A causal model: tokens (or hidden states where `embeds`) and mask in, then key and value of
    every layer so far; logits (or hidden states), then the grown keys and values out."""

    def __init__(self, model, layers, embeds=False):
        super().__init__()
        self.model, self.layers = model, layers
        self.input = "inputs_embeds" if embeds else "input_ids"
        self.output = "last_hidden_state" if embeds else "logits"

    def forward(self, tokens, attention_mask, *past):
        import transformers
        cache = None
        if past:
            pairs = [(past[2 * i], past[2 * i + 1]) for i in range(self.layers)]
            cache = transformers.DynamicCache(pairs)
        out = self.model(**{self.input: tokens}, attention_mask=attention_mask,
                         past_key_values=cache, use_cache=True)
        present = []
        for layer in out.past_key_values.layers:
            present += [layer.keys, layer.values]
        return (getattr(out, self.output), *present)


class Translator(torch.nn.Module):
    """torch's own encoder-decoder, with embeddings and a causal mask."""

    def __init__(self, width, heads, layers, feed_forward, vocabulary):
        super().__init__()
        self.embed = torch.nn.Embedding(vocabulary, width)
        self.body = torch.nn.Transformer(width, heads, layers, layers, feed_forward,
                                         batch_first=True)
        self.head = torch.nn.Linear(width, vocabulary)

    def forward(self, source, target):
        length = target.shape[1]
        mask = torch.triu(torch.full((length, length), float("-inf")), diagonal=1)
        hidden = self.body(self.embed(source), self.embed(target), tgt_mask=mask,
                           tgt_is_causal=True)
        return torch.log_softmax(self.head(hidden), -1)


def text(batch, length, padded):
    """Inputs of an encoder; `padded`: sentences of different lengths, as a real batch has."""
    ids = torch.randint(0, 30522, (batch, length))
    mask = torch.ones_like(ids)
    types = torch.zeros_like(ids)
    types[:, length // 2:] = 1
    if padded:
        for row in range(batch):
            mask[row, length - row * length // (2 * batch):] = 0
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def encoder(size, cases, dynamic=False, attention="sdpa", opset=17):
    """`cases`: suffix -> batch, length, padded."""
    def make():
        import transformers
        hidden, layers, heads = size
        config = transformers.BertConfig(hidden_size=hidden, num_hidden_layers=layers,
                                         num_attention_heads=heads, intermediate_size=4 * hidden,
                                         attn_implementation=attention)
        network = Encoder(livelier(transformers.BertModel(config)))
        inputs = {case: text(*shape) for case, shape in cases.items()}
        names = next(iter(inputs.values()))
        axes = {name: {0: "batch", 1: "sequence"} for name in names} if dynamic else None
        return spec(network, inputs, ENCODER_NAMES, opset, axes)
    return make


def decoder_spec(model, tokens, past, layers, heads, head_width, embeds=False, opset=17,
                 grows=False):
    """`past`: positions that are in the cache already; `grows`: that is a dynamic dimension."""
    batch, length = tokens.shape[:2]
    inputs = {"hidden_states" if embeds else "input_ids": tokens,
              "attention_mask": torch.ones(batch, past + length, dtype=torch.int64)}
    outputs = ["hidden" if embeds else "logits"]
    for layer in range(layers):
        for what in ["key", "value"]:
            outputs.append(f"present.{layer}.{what}")
            if past:
                inputs[f"past.{layer}.{what}"] = torch.randn(batch, heads, past, head_width)
    axes = None
    if grows:
        axes = {name: {2: "past"} for name in inputs if name.startswith("past.")}
        axes["attention_mask"] = {1: f"past + {length}"}
    return spec(Decoder(livelier(model), layers, embeds), inputs, outputs, opset, axes)


def gpt2(length, past, grows=False):
    def make():
        import transformers
        config = transformers.GPT2Config(attn_implementation="eager")
        tokens = torch.randint(0, config.vocab_size, (1, length))
        return decoder_spec(transformers.GPT2LMHeadModel(config), tokens, past, config.n_layer,
                            config.n_head, config.n_embd // config.n_head, grows=grows)
    return make


LLAMA = {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 2,
         "num_attention_heads": 32, "num_key_value_heads": 4}


def llama(length, past):
    """Two blocks of TinyLlama's size, from hidden states to hidden states."""
    def make():
        import transformers
        config = transformers.LlamaConfig(vocab_size=8, attn_implementation="eager", **LLAMA)
        return decoder_spec(transformers.LlamaModel(config),
                            torch.randn(1, length, config.hidden_size), past,
                            config.num_hidden_layers, config.num_key_value_heads,
                            config.hidden_size // config.num_attention_heads, embeds=True)
    return make


def transformer():
    """The base size of the paper, 8,000 words."""
    network = livelier(Translator(512, 8, 6, 2048, 8000))
    inputs = {"source": torch.randint(0, 8000, (1, 64)), "target": torch.randint(0, 8000, (1, 64))}
    return spec(network, inputs, ["log_probabilities"])


MODELS = {
    "minilm_1x128": encoder(MINILM, {"": (1, 128, False)}),
    "minilm_dynamic": encoder(MINILM, {"1x128": (1, 128, False), "4x32": (4, 32, True)}, True),
    "bert_base_1x128": encoder(BERT, {"": (1, 128, False)}, attention="eager"),
    "bert_base_8x200": encoder(BERT, {"": (8, 200, True)}),
    "bert_base_dynamic": encoder(BERT, {"1x128": (1, 128, False), "8x200": (8, 200, True)}, True,
                                 "eager", 14),
    "gpt2_1x128": gpt2(128, 0),
    "gpt2_decode": gpt2(1, 128),
    "gpt2_decode_dynamic": gpt2(1, 128, True),
    "llama_1x128": llama(128, 0),
    "llama_decode": llama(1, 128),
    "transformer": transformer,
}
