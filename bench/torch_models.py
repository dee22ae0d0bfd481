#!/usr/bin/env python3
"""Models of torchvision and transformers, small ones, through torch.compile(backend="heddle").

    PYTHONPATH=build/release/python python bench/torch_models.py [--train] [--threads 1] [NAME…]

For each: the largest difference from eager, of the results' (or gradients') size; graphs; what ran
in PyTorch; the first call, and the median of ten against eager's.
"""
import argparse
import copy
import time
import warnings

import torch

import heddle.torch  # noqa: F401 registers the backend
from heddle.torch import explanation

SIZES = {"vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 128}


def vision(name, size, batch=1, **options):
    import torchvision
    model = getattr(torchvision.models, name)(weights=None, **options)
    return model, {}, (torch.randn(batch, 3, size, size),)


def language(kind, config, inputs=None, **sizes):
    import transformers
    ids = torch.randint(3, 90, (2, 12))
    made = getattr(transformers, config)(**sizes)
    return getattr(transformers, kind)(made), inputs(ids) if inputs else {"input_ids": ids}, ()


def plain(ids):
    return {"input_ids": ids, "use_cache": False}


def pairs(ids):
    return {"input_ids": ids, "decoder_input_ids": ids, "use_cache": False}


def speech(ids):
    return {"input_features": torch.randn(2, 20, 100), "decoder_input_ids": ids,
            "use_cache": False}


MODELS = {
    "resnet18": lambda: vision("resnet18", 64),
    "mobilenet_v3_small": lambda: vision("mobilenet_v3_small", 64, 2),
    "efficientnet_b0": lambda: vision("efficientnet_b0", 64, 2),
    "convnext_tiny": lambda: vision("convnext_tiny", 64),
    "swin_t": lambda: vision("swin_t", 64),
    "vit_b_16": lambda: vision("vit_b_16", 64, image_size=64),
    "bert": lambda: language("BertModel", "BertConfig", **SIZES),
    "deberta": lambda: language("DebertaV2Model", "DebertaV2Config", relative_attention=True,
                                pos_att_type=["p2c", "c2p"], **SIZES),
    "gpt2": lambda: language("GPT2LMHeadModel", "GPT2Config", plain, vocab_size=100, n_embd=64,
                             n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2),
    "llama": lambda: language("LlamaForCausalLM", "LlamaConfig", plain, num_key_value_heads=2,
                              **SIZES),
    "t5": lambda: language("T5Model", "T5Config", pairs, vocab_size=100, d_model=64, d_kv=16,
                           d_ff=128, num_layers=2, num_heads=4),
    "whisper": lambda: language(
        "WhisperModel", "WhisperConfig", speech, vocab_size=100, d_model=64, encoder_layers=2,
        decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=128, decoder_ffn_dim=128, max_source_positions=50, num_mel_bins=20,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1),
}


def results(output):
    output = output.to_tuple() if hasattr(output, "to_tuple") else output
    return [one for one in torch.utils._pytree.tree_leaves(output)
            if isinstance(one, torch.Tensor) and one.is_floating_point()]


def difference(got, wanted):
    """The largest, of the size of what it is in."""
    return max(((a - b).abs().max() / b.abs().max().clamp(min=1e-30)).item()
               for a, b in zip(got, wanted, strict=True))


def median(function, count=10):
    times = []
    for _ in range(count):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return sorted(times)[count // 2] * 1e3


def gradients(model, call):
    model.zero_grad()
    sum(one.square().mean() for one in results(call(model))).backward()
    return [None if p.grad is None else p.grad.clone() for p in model.parameters()]


def run(name, train, threads):
    torch.manual_seed(0)
    model, named, args = MODELS[name]()
    model.eval()  # no dropout
    for parameter in model.parameters():  # such as a head that begins as nothing
        if not parameter.any():
            torch.nn.init.normal_(parameter, std=0.02)

    def call(of):
        return of(*args, **named)
    torch._dynamo.reset()
    explanation._collecting.records = []
    other = copy.deepcopy(model)
    compiled = torch.compile(other, backend="heddle", options={"threads": threads})

    def eager_step():
        return gradients(model, call) if train else results(call(model))

    def step():
        if not train:
            return results(call(compiled))
        other.zero_grad()
        sum(one.square().mean() for one in results(call(compiled))).backward()
        return [None if p.grad is None else p.grad.clone() for p in other.parameters()]
    with torch.set_grad_enabled(train):
        wanted = eager_step()
        start = time.perf_counter()
        got = step()
        first = time.perf_counter() - start
        if train:  # what is nothing but rounding has no digits to compare
            size = max(one.abs().max() for one in wanted if one is not None)
            both = [(a, b) for a, b in zip(got, wanted)
                    if b is not None and b.abs().max() > 1e-6 * size]
            got, wanted = zip(*both)
        records = explanation._collecting.records
        eager = sorted({name for record in records for name in record.eager})
        print(f"{name}: {difference(got, wanted):.1e}, {len(records)} graphs, first {first:.1f} s, "
              f"{median(step):.2f} ms, eager {median(eager_step):.2f} ms"
              + (f"; in PyTorch: {', '.join(eager)}" if eager else ""), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(MODELS), metavar="NAME")
    parser.add_argument("--train", action="store_true", help="gradients of all parameters")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(args.threads)
    for name in args.names or MODELS:
        run(name, args.train, args.threads)


if __name__ == "__main__":
    main()
