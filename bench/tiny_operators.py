"""Measures the host time of a command: a chain of tiny operators that do not fuse, beside ONNX Runtime.

    bench/tiny_operators.py [--heddle build/release/heddle] [--operators 2000] [--rounds 5]

Needs onnx here and onnxruntime in --peer-python. Each operator works on eight numbers, so its time is
almost entirely dispatch. heddle runs level O0, one kernel per operator; ONNX Runtime uses
all its optimisations. One thread, buffers bound, rounds in turn. Exit status 1: less than
ten times as fast."""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

KINDS = ["Add", "Mul", "Sub", "Max", "Abs", "Neg"]


def chain(operators):
    nodes, constants = [], []
    rng = numpy.random.default_rng(1)
    before = "x"
    for i in range(operators):
        kind = KINDS[i % len(KINDS)]
        name = f"v{i}" if i + 1 < operators else "y"
        inputs = [before]
        if kind not in ("Abs", "Neg"):
            constants.append(numpy_helper.from_array(
                rng.uniform(0.5, 1.5, 8).astype(numpy.float32), f"c{i}"))
            inputs.append(f"c{i}")
        nodes.append(helper.make_node(kind, inputs, [name]))
        before = name
    port = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [8]) for n in ("x", "y")]
    graph = helper.make_graph(nodes, "tiny", port[:1], port[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heddle", default="build/release/heddle")
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--operators", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "tiny.onnx"
        onnx.save(chain(options.operators), model)
        rows = []
        for _ in range(options.rounds):
            done = subprocess.run(
                [options.heddle, "bench", model, "--level", "O0", "--threads", "1", "--vs",
                 "onnxruntime", "--peer-python", options.peer_python, "--duration", "1", "--json",
                 "-"], check=True, capture_output=True, text=True)
            result = json.loads(done.stdout)
            peer = result["versus"][0]
            rows.append((result["launches"], result["latency_ms"]["min"],
                         peer["latency_ms"]["min"], peer["ratio"]["median"], peer["name"]))
    launches, name = rows[0][0], rows[0][4]
    ours = min(row[1] for row in rows) * 1e6 / launches
    theirs = min(row[2] for row in rows) * 1e6 / options.operators
    ratio = statistics.median(row[3] for row in rows)
    print(f"{options.operators} operators of 8 numbers, one thread, {options.rounds} rounds")
    print(f"heddle O0, {launches} commands: {ours:.1f} ns each (least of all runs)")
    print(f"{name}: {theirs:.1f} ns each")
    print(f"ratio {ratio:.1f} (median of rounds; {min(row[3] for row in rows):.1f} to "
          f"{max(row[3] for row in rows):.1f})")
    return 0 if ratio >= 10 else 1


if __name__ == "__main__":
    sys.exit(main())
