"""Sizes of inputs that share programs: exports of PyTorch (bench/exports.py makes them) at many random
sizes in one process, their results and times beside ONNX Runtime's, and the compilations.

python bench/many_sizes.py FOLDER MODEL... [--sizes 50] [--threads 1] [--rounds 25] [--all]"""
import argparse
import json
import math
import pathlib
import subprocess
import tempfile
import time

import numpy as np
import onnx
import onnxruntime

MANY_SIZES = pathlib.Path(__file__).resolve().parent.parent / "build" / "release" / "many_sizes"
# Inclusive; dimensions by the names that the exporters were given.
RANGES = {"batch": (1, 4), "earlier": (1, 100), "encoded": (4, 100), "samples": (400, 4000),
          "height": (64, 320), "width": (64, 320)}


def dimension(name, model, random):
    if name.strip("_") in ("h", "w"):  # of images; as the new exporter writes them, multiples
        return (32 if name in ("h", "w") else 1) * int(random.integers(2, 15))
    low, high = RANGES.get(name, (1, 128))
    if name == "tokens" and "decoder" in model:  # one new token, mostly
        return 1 if random.random() < 0.7 else int(random.integers(2, 9))
    return int(random.integers(low, high + 1))


def runs(model, dims, count):
    """dims: by input and axis. Values as those of the recorded inputs."""
    sample = np.load(model / "inputs_0.npz")
    random = np.random.default_rng(1)
    for _ in range(count):
        sizes, values = {}, {}
        for name in sample.files:
            shape = list(sample[name].shape)
            for axis, symbol in dims.get(name, {}).items():
                factor, _, of = symbol.rpartition("*")
                if of not in sizes:
                    sizes[of] = dimension(of, model.name, random)
                shape[axis] = int(factor or 1) * sizes[of]
            one = sample[name]
            if "mask" in name:
                values[name] = np.ones(shape, one.dtype)
            elif one.dtype.kind == "f":
                values[name] = random.standard_normal(shape).astype(one.dtype)
            else:
                values[name] = random.integers(0, max(int(one.max()), 1) + 1, shape, one.dtype)
        yield sizes, values


def dimensions(path):
    result = {}
    for port in onnx.load(path, load_external_data=False).graph.input:
        axes = {k: d.dim_param for k, d in enumerate(port.type.tensor_type.shape.dim) if d.dim_param}
        result[port.name] = axes
    return result


def peer(path, threads, values, rounds):
    """Milliseconds of each (first quartile), and the results."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_outputs()]
    for one in values:
        results = session.run(None, one)
        times = []
        for _ in range(rounds):
            begin = time.perf_counter()
            session.run(None, one)
            times.append(time.perf_counter() - begin)
        yield 1000 * float(np.quantile(times, 0.25)), dict(zip(names, results))


def far(got, wanted):
    worst = 0
    for name, value in wanted.items():
        if got[name].shape != value.shape:
            return math.inf
        if value.size:
            scale = np.abs(value.astype(float)).max() + 1e-9
            worst = max(worst, np.abs(got[name].astype(float) - value).max() / scale)
    return worst


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("models", nargs="+")
    arguments.add_argument("--sizes", type=int, default=50)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--rounds", type=int, default=25)
    arguments.add_argument("--all", action="store_true", help="each size")
    chosen = arguments.parse_args()
    for name in chosen.models:
        model = chosen.folder / name
        path = str(model / "model.onnx")
        with tempfile.TemporaryDirectory() as scratch:
            scratch = pathlib.Path(scratch)
            made = list(runs(model, dimensions(path), chosen.sizes))
            files = []
            for k, (_, values) in enumerate(made):
                files.append(scratch / f"run_{k:02}.npz")
                np.savez(files[-1], **values)
            peers = list(peer(path, chosen.threads, [values for _, values in made], chosen.rounds))
            (scratch / "outputs").mkdir()
            lines = subprocess.run(
                [MANY_SIZES, path, *files, "--threads", str(chosen.threads), "--rounds",
                 str(chosen.rounds), "--outputs", scratch / "outputs"],
                capture_output=True, text=True, check=True).stdout.splitlines()
            ratios, worst, compilations = [], 0, 0
            for k, line in enumerate(lines[:chosen.sizes]):
                words = line.replace(",", " ").split()
                numbers = [float(word) for word in words if word.replace(".", "", 1).isdigit()]
                mine, compilations = numbers[-2], int(numbers[-1])
                difference = far(np.load(scratch / "outputs" / files[k].name), peers[k][1])
                worst = max(worst, difference)
                if k > 0:  # the first has its own program
                    ratios.append(peers[k][0] / mine)
                if chosen.all:
                    print(f"  {json.dumps(made[k][0])} {mine:.3f} ms, ONNX Runtime "
                          f"{peers[k][0]:.3f}, ratio {peers[k][0] / mine:.2f}, far {difference:.1e}, "
                          f"{compilations} compilations")
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"{name}: {compilations} compilations, ONNX Runtime over heddle {mean:.2f} in "
                  f"geometric mean, least {min(ratios):.2f}; far {worst:.1e}", flush=True)


if __name__ == "__main__":
    main()
