"""Exports of PyTorch with dynamic dimensions, at five sizes each, beside ONNX Runtime: the results
must agree, then both are timed in turn. Makes the models where they are not there yet.

python bench/exports.py FOLDER [--threads 1 2] [--iterations 20] [MODEL ...]"""
import argparse
import json
import math
import pathlib
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEDDLE = ROOT / "build" / "release" / "heddle"
MAKE = ROOT / "tests" / "testdata" / "exports" / "make_exports.py"


def heddle(*arguments):
    done = subprocess.run([HEDDLE, *map(str, arguments)], capture_output=True, text=True)
    return None if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def difference(model, size, scratch):
    """The largest of any output, relative to its largest element; or what went wrong."""
    error = heddle("run", model / "model.onnx", "--inputs", model / f"inputs_{size}.npz",
                   "--outputs", scratch)
    if error:
        return error
    got, expected = np.load(scratch), np.load(model / f"expected_{size}.npz")
    worst = 0
    for name in expected.files:
        a, b = expected[name].astype(float), got[name].astype(float)
        if a.shape != b.shape:
            return f"{name} is {b.shape}, wanted {a.shape}"
        if a.size:
            worst = max(worst, np.abs(a - b).max() / (np.abs(a).max() + 1e-9))
    return worst


def ratio(model, size, threads, iterations, scratch):
    error = heddle("bench", model / "model.onnx", "--inputs", model / f"inputs_{size}.npz", "--vs",
                   "onnxruntime", "--peer-python", sys.executable, "--threads", threads,
                   "--iterations", iterations, "--json", scratch)
    if error:
        return error
    result = json.loads(scratch.read_text())
    peer = result["versus"][0]
    return (result["latency_ms"]["median"], peer["latency_ms"]["median"], peer["ratio"]["median"])


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("models", nargs="*")
    arguments.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    arguments.add_argument("--iterations", type=int, default=20)
    chosen = arguments.parse_args()
    if not any(chosen.folder.glob("*/model.onnx")):
        subprocess.run([sys.executable, MAKE, "--large", "--to", chosen.folder], check=True)
    ratios, wrong = [], 0
    for model in sorted(path.parent for path in chosen.folder.glob("*/model.onnx")):
        if chosen.models and not any(name in model.name for name in chosen.models):
            continue
        for size in range(5):
            far = difference(model, size, chosen.folder / "outputs.npz")
            if isinstance(far, str) or far > 1e-3:
                wrong += 1
                print(f"{model.name} {size}: {far}")
        for threads in chosen.threads:
            row = [ratio(model, size, threads, chosen.iterations, chosen.folder / "bench.json")
                   for size in range(5)]
            ratios += [cell[2] for cell in row if not isinstance(cell, str)]
            cells = [cell if isinstance(cell, str) else "{:.2f}/{:.2f}={:.2f}".format(*cell)
                     for cell in row]
            print(f"{model.name} threads {threads} (heddle/onnxruntime ms):", *cells, flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / max(1, len(ratios)))
    print(f"{len(ratios)} comparisons, ratio {mean:.2f} in geometric mean, "
          f"{min(ratios, default=0):.2f} at worst; {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
