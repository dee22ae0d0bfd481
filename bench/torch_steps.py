#!/usr/bin/env python3
"""Steps of training through torch.compile: heddle beside eager PyTorch and Inductor, a process each.

    PYTHONPATH=build/release/python python bench/torch_steps.py [MODEL ...] [--threads 1]
        [--backends eager heddle inductor]

A step is zero_grad, forward pass, mean of squares, backward pass. Prints the first call and the median
and least of up to 15 steps. Needs torch, torchvision, transformers; Inductor a C++ compiler."""
import argparse
import subprocess
import sys
import time
import warnings

SIZES = {"vocab_size": 100, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 512, "max_position_embeddings": 128}


def vision(name, **options):
    import torch
    import torchvision
    model = getattr(torchvision.models, name)(num_classes=10, **options).train()
    images = torch.randn(8, 3, 64, 64)
    return model, lambda f: f(images).square().mean()


def language(kind, config, result, **options):
    import torch
    import transformers
    model = getattr(transformers, kind)(getattr(transformers, config)(**options)).eval()
    words = torch.randint(3, 100, (4, 64))
    return model, lambda f: getattr(f(input_ids=words), result).square().mean()


MODELS = {
    "resnet18": lambda: vision("resnet18"),
    "mobilenet_v3_small": lambda: vision("mobilenet_v3_small"),
    "efficientnet_b0": lambda: vision("efficientnet_b0"),
    "vgg11": lambda: vision("vgg11"),
    "convnext_tiny": lambda: vision("convnext_tiny"),
    "vit_b_16": lambda: vision("vit_b_16", image_size=64),
    "bert": lambda: language("BertModel", "BertConfig", "last_hidden_state", **SIZES),
    "gpt2": lambda: language("GPT2LMHeadModel", "GPT2Config", "logits", vocab_size=100, n_embd=128,
                             n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2),
    "llama": lambda: language("LlamaForCausalLM", "LlamaConfig", "logits", num_key_value_heads=2,
                              **SIZES)}


def measure(name, backend, threads):
    import torch
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    model, loss = MODELS[name]()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    function = model
    if backend != "eager":
        options = {}
        if backend == "heddle":
            import heddle.torch  # noqa: F401  pylint: disable=unused-import
            options = {"options": {"threads": threads}}
        function = torch.compile(model, backend=backend, dynamic=False, **options)

    def step():
        begin = time.perf_counter()
        model.zero_grad()
        loss(function).backward()
        return time.perf_counter() - begin
    first = step()
    step(), step()
    times = []
    while len(times) < 15 and (sum(times) < 6 or len(times) < 5):
        times.append(step())
    times.sort()
    print(f"{name}, {backend}: {1000 * times[len(times) // 2]:.2f} ms, least {1000 * times[0]:.2f}, "
          f"first call {first:.1f} s", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("models", nargs="*", default=list(MODELS))
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--backends", nargs="+", default=["eager", "heddle", "inductor"])
    arguments.add_argument("--here", action="store_true", help="one model and backend, in this process")
    chosen = arguments.parse_args()
    for name in chosen.models:
        for backend in chosen.backends:
            if chosen.here:
                measure(name, backend, chosen.threads)
            else:
                subprocess.run([sys.executable, __file__, name, "--backends", backend, "--threads",
                                str(chosen.threads), "--here"], check=False)


if __name__ == "__main__":
    main()
