#!/usr/bin/env python3
"""Counts the memory-bound launches of one run: for each way of fusing the same networks, and for
XLA:CPU on the same HLO (through JAX, where that is installed).

    bench/launches.py [--heddle build/release/heddle] [--models build/bench-models] [--json F] [CASE...]
    bench/launches.py --modes xla,stitch build/bench-training/*.hlo

A CASE is one of the models' cases, or an HLO file, whose inputs are random. A launch is memory-bound if its kernel holds no product and no convolution. Every phase counts as one;
commands in a loop count as often as they run. Copies count; views and tuples do not, nor does an update
that the launch before it stores in place.

The mode xla is heddle with XLA's published rules of fusion: a baseline of launches, not of speed.
"""
import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile

CASES = ["bert_base_1x128", "transformer", "dien", "conformer", "crnn"]
MODES = ["off", "xla", "greedy", "stitch"]
PRODUCTS = ("dot", "convolution")
# Of XLA's optimised HLO: no thunk of their own.
FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id",
        "replica-id", "opt-barrier"}


def run_json(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def is_product(operators):
    return any(word in PRODUCTS for word in re.split(r"[^a-z-]+", operators))


def count_heddle(options, model, inputs, mode):
    """(memory-bound launches, all launches) of one run."""
    base = [model, "--fuse", mode, "--threads", "1", "--json", "-"]
    explained = run_json([options.heddle, "explain", *base])
    phases = {kernel["name"]: kernel["phases"] for kernel in explained["kernels"]}
    given = ["--inputs", inputs] if inputs else []
    rows = run_json([options.heddle, "profile", *base, "--commands", "--iterations", "1", *given])
    bound = total = 0
    for row in rows["commands"]:
        launches = row["commands"] * phases.get(row["kernel"], 1)
        total += launches
        if not is_product(row["operators"]):
            bound += launches
    return bound, total


def computations(text):
    """{name: [line]} of HLO text; the entry's name."""
    text = re.sub(r"/\*.*?\*/", "", text)  # numbers in long tuples
    found, entry, name = {}, None, None
    for line in text.splitlines():
        head = re.match(r"(ENTRY )?%?([\w.\-]+) .*\{$", line)
        if head and not line.startswith(" "):
            name = head.group(2)
            found[name] = []
            if head.group(1):
                entry = name
        elif line.startswith("}"):
            name = None
        elif name:
            found[name].append(line)
    return found, entry


def opcode_of(line):
    match = re.search(r"= (?:\([^=]*?\)|\S+) ([a-z][\w\-]*)\(", line)
    return match.group(1) if match else ""


def count_thunks(text):
    """The same of XLA's optimised module: a thunk for each instruction that does something."""
    found, entry = computations(text)

    def holds_product(name):
        return any(opcode_of(line) in PRODUCTS for line in found.get(name, []))

    def count(name):
        bound = total = 0
        for line in found[name]:
            opcode = opcode_of(line)
            if not opcode or opcode in FREE:
                continue
            called = re.findall(r"(?:calls|to_apply|body)=%?([\w.\-]+)", line)
            if opcode in ("call", "while") and called:
                trips = re.search(r'"known_trip_count":\{"n":"(\d+)"', line)
                inner = count(called[-1])
                times = int(trips.group(1)) if trips and opcode == "while" else 1
                bound, total = bound + times * inner[0], total + times * inner[1]
                continue
            product = opcode in PRODUCTS or (opcode == "fusion" and any(map(holds_product, called)))
            product |= opcode == "custom-call" and ("matmul" in line or "conv" in line)
            total += 1
            bound += not product
        return bound, total

    return count(entry)


def with_parameters(text):
    """Weights, which the text leaves out, as parameters of the entry."""
    lines, number, inside = [], 0, False
    for match in re.finditer(r"parameter\((\d+)\)", text[text.index("\nENTRY"):]):
        number = max(number, int(match.group(1)) + 1)
    for line in text.splitlines():
        inside = line.startswith("ENTRY") or (inside and not line.startswith("}"))
        if inside and "constant({...})" in line:
            line = line.replace("constant({...})", f"parameter({number})")
            number += 1
        if line.startswith("ENTRY"):  # its type would no longer be right
            line = re.sub(r"^(ENTRY %?[\w.\-]+) .*\{$", r"\1 {", line)
        if line.startswith("HloModule"):
            line = line.split(",")[0]
        lines.append(line)
    return "\n".join(lines) + "\n"


THUNKS = r"""
import sys
import jax
from jax._src.lib import xla_client as xc
text = open(sys.argv[1]).read()
try:
    from jaxlib import _hlo
    from jax._src.lib import _jax
    module = _hlo.hlo_module_from_text(text)
    computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
    mlir, devices = _jax.mlir.xla_computation_to_mlir_module(computation), _jax.DeviceList
except ImportError:  # older ones
    module = xc._xla.hlo_module_from_text(text)
    computation = xc.XlaComputation(module.as_serialized_hlo_module_proto())
    mlir, devices = xc._xla.mlir.xla_computation_to_mlir_module(computation), xc._xla.DeviceList
device = jax.devices("cpu")[0]
client = device.client
try:
    program = client.compile_and_load(mlir, devices((device,)), xc.CompileOptions())
except (AttributeError, TypeError):
    program = client.compile(mlir, xc.CompileOptions())
sys.stdout.write(program.hlo_modules()[0].to_string())
"""


def count_xla(options, model):
    """XLA:CPU's thunks of the module as it was imported; None where JAX is missing or refuses it."""
    text = subprocess.run([options.heddle, "compile", model, "--stop-after", "import"],
                          capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "module.hlo")
        with open(path, "w", encoding="utf-8") as file:
            file.write(with_parameters(text))
        done = subprocess.run([options.python, "-c", THUNKS, path], capture_output=True, text=True,
                              check=False, env={**os.environ, "JAX_PLATFORMS": "cpu"})
    if done.returncode != 0:
        print(f"  xla: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return count_thunks(done.stdout)


def geomean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def model_of(options, name, known):
    """(the model's file, its inputs or nothing)"""
    if name.endswith(".hlo"):
        return name, None
    return tuple(os.path.join(options.models, known[name][what]) for what in ("model", "inputs"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--heddle", default="build/release/heddle")
    parser.add_argument("--models", default="build/bench-models")
    parser.add_argument("--python", default=sys.executable, help="one that has JAX")
    parser.add_argument("--no-xla", action="store_true", help="leaves XLA:CPU out")
    parser.add_argument("--modes", default=",".join(MODES), help="xla and stitch at least")
    parser.add_argument("--json")
    options = parser.parse_args()
    modes = options.modes.split(",")
    known = {}
    if not all(name.endswith(".hlo") for name in options.cases):
        with open(os.path.join(options.models, "cases.json"), encoding="utf-8") as file:
            known = {case["case"]: case for case in json.load(file)}
    results = {}
    print(f"{'model':<20}" + "".join(f"{mode:>10}" for mode in [*modes, "XLA:CPU"]) +
          f"{'stitch/xla':>12}{'stitch/CPU':>12}")
    for name in options.cases:
        model, inputs = model_of(options, name, known)
        name = os.path.basename(name).removesuffix(".hlo")
        counts = {mode: count_heddle(options, model, inputs, mode)[0] for mode in modes}
        thunks = None if options.no_xla else count_xla(options, model)
        if thunks:
            counts["XLA:CPU"] = thunks[0]
        results[name] = counts
        print(f"{name:<20}" + "".join(f"{counts.get(mode, '-'):>10}" for mode in [*modes, "XLA:CPU"]) +
              f"{counts['stitch'] / counts['xla']:>12.2f}" +
              (f"{counts['stitch'] / counts['XLA:CPU']:>12.2f}" if thunks else ""), flush=True)
    for base in ("xla", "greedy", "XLA:CPU"):
        both = [c for c in results.values() if c.get(base)]
        if both:
            print(f"stitch, of {base}: geometric mean {geomean(c['stitch'] / c[base] for c in both):.3f}, "
                  f"sum {sum(c['stitch'] for c in both) / sum(c[base] for c in both):.3f}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"schema": 1, "memory_bound_launches": results}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
