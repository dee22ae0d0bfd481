"""Times extents that do not fill vectors beside twins padded to whole vectors, in turn; prints Markdown.

    padding.py --products FOLDER [--rounds 15] [--clock cpu] [--isa avx2] [--out OUT]

The twins have inputs and weights that are already padded (`padding` of make_products.py): the cost of
padding is not in their time, so a gain above 1 is an upper bound.
"""
import argparse
import json
import os

import numpy as np

import contestants
import machine

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
TWINS = [("512x1000x512", "512x1008x512"), ("1024x100x256", "1024x112x256"),
         ("512x512x501", "512x512x512"), ("512x512x500", "512x512x512"),
         ("3136x70x65", "3136x80x80"), ("20_46_32_3", "20_48_32_3"),
         ("20_174_64_5", "20_176_64_5"), ("56_30_60_3", "56_32_64_3")]


def contestant(options, name):
    folder = os.path.join(options.products, name)
    result = contestants.Heddle(options.probe, os.path.join(folder, "model.onnx"), 1,
                                inputs=os.path.join(folder, "inputs.npz"))
    result.name = name
    return result


def measured(options, names, flops):
    pair = [contestant(options, name) for name in names]
    try:
        counts = contestants.run_counts(pair, options.round_seconds)
        rounds = contestants.interleave(pair, options.rounds, counts)
    finally:
        for one in pair:
            one.close()
    times = [[float(np.median(r[f"{options.clock}_ns"])) for r in rounds[name]] for name in names]
    gains = [plain / padded for plain, padded in zip(*times)]
    return {"plain": names[0], "padded": names[1],
            "plain_us": float(np.median(times[0])) / 1e3,
            "padded_us": float(np.median(times[1])) / 1e3,
            "work": flops[names[1]] / flops[names[0]],
            "gain": machine.spread(gains)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--products", default=os.path.join(ROOT, "build", "bench-products"))
    parser.add_argument("--probe", default=os.path.join(ROOT, "build", "release", "heddle_probe"))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--round-seconds", type=float, default=0.05)
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--isa", choices=["avx2"])
    parser.add_argument("--out")
    options = parser.parse_args()
    if options.isa:
        os.environ["HEDDLE_ISA"] = options.isa
    with open(os.path.join(options.products, "cases.json")) as opened:
        flops = {case["case"]: case["flops"] for case in json.load(opened)}
    header = machine.about(ROOT)
    results = []
    for twins in TWINS:
        names = [f"padding_{name}" for name in twins]
        if all(name in flops for name in names):
            results.append(measured(options, names, flops))
    rows = [[r["plain"], r["padded"], f"{r['plain_us']:.0f}", f"{r['padded_us']:.0f}",
             f"{r['work']:.3f}", f"{r['gain']['median']:.3f}",
             f"{r['gain']['min']:.2f}-{r['gain']['max']:.2f}"] for r in results]
    text = machine.as_markdown(header) + "\n" + machine.table(
        ["shape", "padded", "us", "padded us", "work", "gain of padding", "of rounds"], rows)
    print(text)
    machine.write(options.out, header, options.rounds, results, text)


if __name__ == "__main__":
    main()
