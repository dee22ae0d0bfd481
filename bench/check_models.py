"""Compares every exported model, at every level with 1 and 2 threads, with ONNX Runtime without optimisation.

    check_models.py [CASE ...]

Passes where max|a-b| <= 1e-4 max|b| for each output, and where all thread counts give the same bits.
Exit status 1 when something failed; the last line says pass or fail.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import machine

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
BOUND = 1e-4


def run(options, case, level, threads, outputs):
    """None, or why it failed."""
    command = [options.heddle, "run", os.path.join(options.models, case["model"]), "--inputs",
               os.path.join(options.models, case["inputs"]), "--outputs", outputs, "--level", level,
               "--threads", str(threads), "--cache", options.cache, *options.run_option]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.limit)
    except subprocess.TimeoutExpired:
        return f"not done after {options.limit} s"
    if done.returncode != 0:
        return f"status {done.returncode}: {done.stderr.strip()[-500:]}"
    return None


def compare(outputs, expected_path):
    """(largest relative error, its output, complaints)."""
    worst, where, complaints = 0.0, "", []
    with np.load(outputs) as ours, np.load(expected_path) as expected:
        if set(ours.files) != set(expected.files):
            complaints.append(f"outputs {sorted(ours.files)}, wanted {sorted(expected.files)}")
        for name in expected.files:
            if name not in ours.files:
                continue
            a, b = ours[name], expected[name]
            if a.shape != b.shape or a.dtype != b.dtype:
                complaints.append(f"{name}: {a.dtype}{a.shape}, wanted {b.dtype}{b.shape}")
                continue
            error = np.abs(a.astype(np.float64) - b).max() / max(np.abs(b).max(), 1e-30)
            if not error <= worst:
                worst, where = float(error), name
            if not error <= BOUND:
                complaints.append(f"{name}: {error:.2e} of max|b|")
    return worst, where, complaints


def differing(first, second):
    """Names of the outputs that two runs give with different bits."""
    with np.load(first) as a, np.load(second) as b:
        return [n for n in a.files if n not in b.files or a[n].tobytes() != b[n].tobytes()]


def check_case(options, case, folder):
    rows = []
    for level in options.levels:
        paths = {}
        for threads in options.threads:
            path = os.path.join(folder, f"{level}-{threads}.npz")
            begin = time.monotonic()
            failure = run(options, case, level, threads, path)
            row = {"case": case["case"], "level": level, "threads": threads,
                   "s": time.monotonic() - begin, "complaints": []}
            if failure:
                row["complaints"].append(failure)
            else:
                expected = os.path.join(options.models, case["expected"])
                row["error"], row["output"], row["complaints"] = compare(path, expected)
                for other, other_path in paths.items():
                    names = differing(other_path, path)
                    if names:
                        row["complaints"].append(f"bits differ from {other} threads: {names[:4]}")
                paths[threads] = path
            rows.append(row)
            print(describe(row), flush=True)
        for path in paths.values():
            os.remove(path)
    return rows


def describe(row):
    start = f"{row['case']} {row['level']} {row['threads']} thread(s) {row['s']:.1f} s:"
    error = f" {row['error']:.1e} at {row['output']}" if "error" in row else ""
    return start + error + ("".join(f"\n  FAILED {c}" for c in row["complaints"]) or " ok")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--heddle", default=os.path.join(ROOT, "build", "release", "heddle"))
    parser.add_argument("--models", default=os.path.join(ROOT, "build", "bench-models"))
    parser.add_argument("--levels", default="O0,O1,O2", type=lambda s: s.split(","))
    parser.add_argument("--threads", default="1,2", type=lambda s: [int(n) for n in s.split(",")])
    parser.add_argument("--cache", default="off")
    parser.add_argument("--limit", type=float, default=300, help="seconds of one run")
    parser.add_argument("--run-option", action="append", default=[], help="for heddle run")
    parser.add_argument("--json", help="writes all figures here")
    options = parser.parse_args()
    with open(os.path.join(options.models, "cases.json")) as file:
        cases = json.load(file)
    unknown = set(options.cases) - {case["case"] for case in cases}
    if unknown:
        sys.exit(f"check_models: no case named {', '.join(sorted(unknown))}")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            if not options.cases or case["case"] in options.cases:
                rows += check_case(options, case, folder)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({**machine.about(ROOT), "bound": BOUND, "results": rows}, file, indent=1)
            file.write("\n")
    failed = sum(bool(row["complaints"]) for row in rows)
    print(f"{'fail' if failed else 'pass'}: {len(rows) - failed} of {len(rows)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
