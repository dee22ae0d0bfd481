#!/usr/bin/env python3
"""Times the ways of fusing beside each other in interleaved rounds, and checks that `stitch` wins.

    fuse_modes.py [--models build/bench-models] [--threads 1,2] CASE|FILE.hlo|FILE.onnx ...

A CASE is one of the models' cases; a file's inputs are random. Every mode is a separate process that
runs the model through the C interface and is idle while another runs. A ratio is taken within a round:
the other mode's time over stitch's. Required: no ratio below 0.97, and more than 1 against greedy in
geometric mean; otherwise the status is 1.

The mode xla follows XLA's published rules of fusion, so that launches can be counted against them. It is
not a baseline for speed: XLA:CPU itself is faster (rows beside it: compare.py rows; training steps:
training/speed.py).
"""
import argparse
import json
import math
import os
import sys

import numpy as np

import contestants
import machine

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
MODES = ["off", "greedy", "xla", "stitch"]
LEAST = 0.97
ABOUT_XLA = ("\nThe mode xla is heddle with XLA's published rules, for counting launches. XLA:CPU itself is faster: "
             "its times are in compare.py rows and training/speed.py.")


def cases_of(options):
    """[(name, model, inputs or None)]"""
    path = os.path.join(options.models, "cases.json")
    listed = {}
    if os.path.exists(path):
        with open(path) as file:
            listed = {case["case"]: case for case in json.load(file)}
    found = []
    for name in options.cases:
        if os.path.exists(name):
            found.append((os.path.basename(name).rsplit(".", 1)[0], name, None))
        elif name in listed:
            found.append((name, *(os.path.join(options.models, listed[name][key])
                                  for key in ["model", "inputs"])))
        else:
            sys.exit(f"fuse_modes: {name} is neither a file nor a case of {path}")
    return found


def measure(options, model, inputs, threads):
    """{mode: milliseconds, a median of each round}"""
    clock = "cpu_ns" if options.clock == "cpu" and threads == 1 else "wall_ns"
    probe = os.path.join(options.probes, "heddle_probe")
    ways = {mode: (probe, model, threads, f"{options.level},{mode}", inputs) for mode in options.modes}
    return contestants.side_by_side(ways, options.rounds, options.round_seconds, clock)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--probes", default=os.path.join(ROOT, "build", "release"),
                        help="folder of heddle_probe (-DHEDDLE_BENCH=ON)")
    parser.add_argument("--models", default=os.path.join(ROOT, "build", "bench-models"))
    parser.add_argument("--modes", default=MODES, type=lambda s: s.split(","))
    parser.add_argument("--threads", default="1,2", type=lambda s: [int(n) for n in s.split(",")])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--round-seconds", type=float, default=0.1, help="of one mode")
    parser.add_argument("--level", default="O2")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall",
                        help="cpu: the thread's own clock where one thread runs, for a busy machine")
    parser.add_argument("--out", help="writes OUT.md and OUT.json")
    options = parser.parse_args()
    if "stitch" not in options.modes:
        parser.error("--modes must have stitch")
    others = [mode for mode in options.modes if mode != "stitch"]
    header, results, rows = machine.about(ROOT), [], []
    for name, model, inputs in cases_of(options):
        for threads in options.threads:
            try:
                ms = measure(options, model, inputs, threads)
            except contestants.Failed as failure:
                print(f"{name}: {failure}", file=sys.stderr)
                results.append({"case": name, "threads": threads, "failed": str(failure)})
                continue
            ratios = {mode: machine.spread(ms[mode] / ms["stitch"]) for mode in others}
            results.append({"case": name, "threads": threads, "ratio": ratios,
                            "ms": {mode: machine.spread(ms[mode]) for mode in options.modes}})
            rows.append([name, str(threads), f"{np.median(ms['stitch']):.3f}",
                         *(f"{ratios[mode]['median']:.2f} ({ratios[mode]['min']:.2f} to "
                           f"{ratios[mode]['max']:.2f})" for mode in others)])
            print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    measured = [result for result in results if "ratio" in result]
    text = machine.as_markdown(header) + "\n" + machine.table(
        ["case", "threads", "stitch ms", *(f"by {mode}" for mode in others)], rows)
    good = len(measured) == len(results) > 0
    for mode in others:
        found = [result["ratio"][mode]["median"] for result in measured]
        if not found:
            continue
        mean = math.exp(sum(map(math.log, found)) / len(found))
        good &= min(found) >= LEAST and (mode != "greedy" or mean > 1)
        text += f"\n{mode} over stitch: {mean:.3f} in geometric mean, {min(found):.2f} at least"
    text += (ABOUT_XLA if "xla" in others else "") + "\n"
    print(text)
    machine.write(options.out, header, options.rounds, results, text)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
