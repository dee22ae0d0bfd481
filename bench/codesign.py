"""What `heddle advise` predicts, beside measurements, on variants of RepVGG; prints Markdown.

    codesign.py [--size a0] [--rounds 15] [--threads 1] [--clock cpu] [--out OUT]

The variants are BOLT's: other activations, and a 1x1 convolution of the same
width after every block. All are in deploy form, one 3x3 convolution per block. `predicted` is advise's
time for the variant divided by that for the plain network; `told` is what the advice on the plain network
said the variant would cost. Needs torch and onnx; variants are kept in build/bench-codesign.
"""
import argparse
import json
import os
import subprocess
import sys

import numpy as np

import contestants
import machine

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.join(ROOT, "bench", "models"))
VARIANTS = ["relu", "gelu", "hardswish", "softplus", "deepened"]


def network(size, variant):
    import torch
    import vision
    from torch import nn
    activations = {"gelu": nn.GELU, "hardswish": nn.Hardswish, "softplus": nn.Softplus}
    torch.manual_seed(0)
    image = vision.picture()
    plain = vision.RepVgg(*vision.REPVGG[size], activation=activations.get(variant, nn.ReLU))
    deployed = vision.calibrated(plain, image).deployed()
    if variant == "deepened":
        blocks = []
        for block in deployed.body:
            width = block[0].out_channels
            blocks += [block, nn.Sequential(nn.Conv2d(width, width, 1), nn.ReLU())]
        deployed.body = nn.Sequential(*blocks)
    return deployed.eval(), image


def exported(folder, size, variant):
    """(model, inputs), made where they are missing."""
    model = os.path.join(folder, f"repvgg_{size}_{variant}.onnx")
    inputs = os.path.join(folder, "inputs.npz")
    if not os.path.exists(model) or not os.path.exists(inputs):
        import torch
        os.makedirs(folder, exist_ok=True)
        module, image = network(size, variant)
        with torch.no_grad():
            torch.onnx.export(module, (image,), model, input_names=["image"],
                              output_names=["logits"], opset_version=17, dynamo=False)
        np.savez(inputs, image=image.numpy())
    return model, inputs


def advice(heddle, model):
    said = subprocess.run([heddle, "advise", model, "--all", "--json", "-"], check=True, capture_output=True)
    return json.loads(said.stdout)


def told(plain, variant, predicted_ms):
    """Share of a run that the advice on the plain network names for the variant; None: it is silent."""
    if variant != "deepened":
        return None
    paid = -sum(a["gain_ms"] * a["uses"] for a in plain["advice"] if a["kind"] == "deepening")
    return paid / predicted_ms


def measured(options, models):
    taking_part = []
    for variant, (model, inputs) in models.items():
        probe = contestants.Heddle(os.path.join(options.probes, "heddle_probe"), model,
                                   options.threads, inputs=inputs)
        probe.name = variant
        taking_part.append(probe)
    counts = contestants.run_counts(taking_part, 0.2)
    rounds = contestants.interleave(taking_part, options.rounds, counts)
    for probe in taking_part:
        probe.close()
    clock = "cpu_ns" if options.clock == "cpu" and options.threads == 1 else "wall_ns"
    return {name: np.array([np.median(r[clock]) / 1e6 for r in results])
            for name, results in rounds.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="a0", choices=["a0", "b0"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--heddle", default=os.path.join(ROOT, "build", "release", "heddle"))
    parser.add_argument("--probes", default=os.path.join(ROOT, "build", "release"))
    parser.add_argument("--folder", default=os.path.join(ROOT, "build", "bench-codesign"))
    parser.add_argument("--out")
    options = parser.parse_args()
    models = {variant: exported(options.folder, options.size, variant) for variant in VARIANTS}
    advised = {variant: advice(options.heddle, model) for variant, (model, _) in models.items()}
    times = measured(options, models)
    base_ms = advised["relu"]["predicted_ms"]
    rows, results = [], []
    for variant in VARIANTS:
        ratio = machine.spread(times[variant] / times["relu"])
        predicted = advised[variant]["predicted_ms"] / base_ms
        share = told(advised["relu"], variant, base_ms)
        results.append({"variant": variant, "ms": machine.spread(times[variant]), "measured": ratio,
                        "predicted_ms": advised[variant]["predicted_ms"], "predicted": predicted,
                        "told": share})
        rows.append([f"repvgg_{options.size} {variant}", f"{np.median(times[variant]):.2f}",
                     f"{advised[variant]['predicted_ms']:.2f}", f"{100 * (ratio['median'] - 1):+.1f}%",
                     f"{100 * (predicted - 1):+.1f}%", f"{100 * share:+.1f}%" if share else ""])
    header = machine.about(ROOT)
    text = machine.as_markdown(header) + "\n" + machine.table(
        ["variant", "measured ms", "predicted ms", "measured", "predicted", "told"], rows)
    print(text)
    machine.write(options.out, header, options.rounds, results, text)


if __name__ == "__main__":
    main()
