"""CPU time of one run of HLO files, heddle beside XLA:CPU on the same text, one thread each:
speed.py [--heddle H] [--runs N] [--json F] FILE.hlo ...

Uses the process's own clock, so that other work on the machine matters little: for heddle the difference of
two calls of `heddle bench`, for XLA:CPU (the JAX of this Python) around the runs. Inputs: small floats,
zeros for integers; donated inputs are recreated for each run, outside the timed part.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import time

XLA = r"""
import sys, time
import numpy as np
import jax
from jax._src.lib import _jax
from jaxlib import _hlo
text, runs = open(sys.argv[1]).read(), int(sys.argv[2])
module = _hlo.hlo_module_from_text(text)
computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
device = jax.devices("cpu")[0]
program = device.client.compile_and_load(_jax.mlir.xla_computation_to_mlir_module(computation),
                                         _jax.DeviceList((device,)), jax._src.lib.xla_client.CompileOptions())
shapes = computation.program_shape().parameter_shapes()
def arguments():
    made = []
    for shape in shapes:
        dtype = np.dtype(shape.numpy_dtype())
        value = np.full(shape.dimensions(), 0.01, dtype) if dtype.kind == "f" else np.zeros(shape.dimensions(), dtype)
        made.append(jax.device_put(value, device))
    jax.block_until_ready(made)
    return made
took = []
for run in range(runs + 1):
    given = arguments()
    begin = time.process_time()
    results = program.execute_sharded(given)
    jax.block_until_ready(results.disassemble_into_single_device_arrays())
    took.append(time.process_time() - begin)
print(sorted(took[1:])[len(took[1:]) // 2])
"""


def heddle_s(options, path):
    def spent(iterations):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([options.heddle, "bench", path, "--threads", "1", "--warmup", "1", "--iterations",
                        str(iterations)], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    spent(1)  # compiles, into the cache
    few = spent(1)
    return (spent(1 + options.runs) - few) / options.runs


def xla_s(options, path):
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "NPROC": "1",
                   "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}
    done = subprocess.run([sys.executable, "-c", XLA, path, str(options.runs)], capture_output=True,
                          text=True, check=False, env=environment)
    if done.returncode != 0:
        print(done.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return None
    return float(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--heddle", default="build/release/heddle")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json")
    options = parser.parse_args()
    results = {}
    print(f"{'':<22}{'heddle ms':>12}{'XLA:CPU ms':>12}{'ratio':>8}")
    for path in options.files:
        name = os.path.basename(path).removesuffix(".hlo")
        begin = time.time()
        ours, theirs = heddle_s(options, path), xla_s(options, path)
        results[name] = {"heddle_s": ours, "xla_s": theirs, "took_s": time.time() - begin}
        print(f"{name:<22}{1e3 * ours:>12.1f}" +
              (f"{1e3 * theirs:>12.1f}{theirs / ours:>8.2f}" if theirs else f"{'-':>12}"), flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"schema": 1, "cpu_time": results}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
