"""Memory fusion and mixed precision, each alone and both: amp_x_fusion.py MODEL ... [--threads N] [--rounds N]

Four programs of each model take turns: --fuse off|stitch by --amp off|auto. Gains are over neither; `product` is
what the two would give if they did not help each other.
"""
import argparse
import os
import re
import statistics
import subprocess

HEDDLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "release", "heddle")
CELLS = [("off", "off"), ("off", "auto"), ("stitch", "off"), ("stitch", "auto")]


def milliseconds(model, fuse, amp, threads):
    done = subprocess.run([HEDDLE, "bench", model, "--random-constants", "--fuse", fuse, "--amp", amp, "--threads", str(threads),
                           "--duration", "1"], capture_output=True, text=True)
    found = re.search(r"median ([\d.]+) (ms|us|s)\b", done.stdout)
    if not found:
        raise SystemExit(f"{model}: {done.stderr}")
    return float(found[1]) * {"us": 1e-3, "ms": 1, "s": 1e3}[found[2]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("| model | neither, ms | mixed precision | fusion | product | both |\n|---|---|---|---|---|---|")
    for model in options.models:
        times = {cell: [] for cell in CELLS}
        for _ in range(options.rounds):
            for cell in CELLS:
                times[cell].append(milliseconds(model, *cell, options.threads))
        median = {cell: statistics.median(values) for cell, values in times.items()}
        neither, amp, fusion, both = (median[CELLS[0]] / median[cell] for cell in CELLS)
        name = os.path.basename(os.path.dirname(os.path.abspath(model))) if model.endswith("model.onnx") else os.path.basename(model)
        print(f"| {name} | {median[CELLS[0]]:.1f} | {amp:.2f} | {fusion:.2f} | {amp * fusion:.2f} | {both:.2f} |", flush=True)


if __name__ == "__main__":
    main()
