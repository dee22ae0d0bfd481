"""Damaged inputs of every kind: the command ends with status 0, 1, 2 or 3, says one line where it
fails, and takes neither more than ten seconds nor more memory than it is given.

A few of each kind here. Thousands: script/soak inputs, or
python3 tests/cli/damaged_inputs_test.py --soak 2000 [--seed 1] [--kind hlo] [--keep FOLDER]
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import damage
from cli import HEDDLE

SECONDS = 10          # of processor time; the clock may run longer on a busy machine
MEMORY = 6 << 30      # address space
FEW = {"hlo": 25, "mlir": 40, "npy": 25, "npz": 25, "options": 25, "onnx": 25}


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 2))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def ways(rng):
    """The command and the options that come after the model."""
    return rng.choice([["run", "--level", "O0"], ["run", "--level", "O2"],
                       ["run", "--device", "interp"], ["run", "--level", "O1"],
                       ["inspect"], ["opt", "--passes", "O2"]])


def one(kind, seed, make, folder):
    """None, or what is wrong with the answer to a case."""
    rng = random.Random(f"{kind} {seed}")
    files, arguments = make(rng)
    command = ["run", "--level", rng.choice(["O0", "O2"])] if kind not in ("hlo", "mlir", "onnx") \
        else ways(rng)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    threads = [] if "--threads" in arguments or command[0] != "run" else ["--threads", "1"]
    begin = time.monotonic()
    try:
        done = subprocess.run([HEDDLE, command[0], *arguments, *command[1:], *threads], cwd=folder,
                              stdin=subprocess.DEVNULL, capture_output=True, preexec_fn=limits,
                              env={**os.environ, "HEDDLE_CACHE": "off"}, timeout=12 * SECONDS)
    except subprocess.TimeoutExpired:
        return f"{command} {arguments}: no end after {12 * SECONDS} s"
    seconds = time.monotonic() - begin
    errors = done.stderr.decode(errors="replace")
    what = f"{command} {str(arguments)[:300]} ({seconds:.1f} s): "
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        if name == "SIGXCPU":
            name = f"more than {SECONDS} s of processor time"
        return what + name + ": " + errors[-400:]
    if done.returncode not in (0, 1, 2, 3):
        return what + f"status {done.returncode}: {errors[-400:]}"
    lines = [line for line in errors.splitlines() if line.startswith("error: ")]
    if done.returncode in (2, 3) and len(lines) != 1:
        return what + f"status {done.returncode} and {len(lines)} error lines: {errors[-400:]}"
    return None


def many(kind, seeds, keep=None):
    """Runs cases on all cores; prints and returns what went wrong."""
    make = damage.sources()[kind]
    wrong = []

    def case(seed):
        with tempfile.TemporaryDirectory(prefix="heddle-damage-") as name:
            folder = pathlib.Path(name)
            problem = one(kind, seed, make, folder)
            if problem and keep:
                for path in folder.iterdir():
                    target = pathlib.Path(keep) / f"{kind}-{seed}-{path.name}"
                    target.write_bytes(path.read_bytes())
            return seed, problem

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for seed, problem in pool.map(case, seeds):
            if problem:
                wrong.append(f"{kind} {seed}: {problem}")
                print(wrong[-1], flush=True)
    return wrong


class DamagedInputsTest(unittest.TestCase):
    def test_a_few_of_each_kind(self):
        for kind in damage.sources():
            with self.subTest(kind=kind):
                self.assertEqual([], many(kind, range(FEW[kind])))


def soak():
    parser = argparse.ArgumentParser()
    parser.add_argument("--soak", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--kind", choices=sorted(FEW))
    parser.add_argument("--keep", help="where the inputs of failures go")
    options = parser.parse_args()
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    failures = 0
    for kind in damage.sources():
        if options.kind in (None, kind):
            seeds = range(options.seed, options.seed + options.soak)
            wrong = many(kind, seeds, options.keep)
            print(f"{kind}: {len(seeds)} inputs, {len(wrong)} answered wrongly", flush=True)
            failures += len(wrong)
    return 1 if failures else 0


if __name__ == "__main__":
    if "--soak" in sys.argv:
        sys.exit(soak())
    unittest.main(verbosity=2)
