"""Compares the levels: compile time and run time of O0, O1 and O2.

    levels.py [--threads 1,2] [--rounds 15] [--compiles 3] [--heddle PATH] [--out OUT] [GLOB ...]

Run times are from interleaved rounds, one process per level (heddle_probe, next to heddle: -DHEDDLE_BENCH=ON); a
ratio is taken within a round. Compile times are medians of processes with nothing cached, without import.
Networks are named as in against.py (default: all of models/, and those in build/bench-models where they
exist). Exit status 1: on some network a higher level runs slower than the one below it by more than
--slower, or compiles faster than it.
"""
import argparse
import json
import os
import subprocess
import sys

import numpy as np

import against
import contestants
import machine
import replay_models

ROOT = replay_models.ROOT
LEVELS = ["O0", "O1", "O2"]


def compile_ms(options, case, level, threads):
    shapes = replay_models.with_shapes(case.path).arguments
    invented = ["--random-constants"] if case.path.endswith(".hlo") else []
    command = [options.heddle, "compile", case.path, *shapes, *invented, "--level", level, "--threads", str(threads),
               "--cache", "off", "--json", "-", "-o", os.path.join(options.scratch, "level.heddle")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise contestants.Failed(f"{case.name} {level}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)["compile_ms"]


def run_ms(options, case, threads):
    """{level: milliseconds, a median of each round}"""
    probe = os.path.join(os.path.dirname(options.heddle), "heddle_probe")
    ways = {level: (probe, case.path, threads, level, case.inputs) for level in LEVELS}
    return contestants.side_by_side(ways, options.rounds, options.round_seconds)


def measure(options, case, threads):
    ran = run_ms(options, case, threads)
    compiled = {level: float(np.median([compile_ms(options, case, level, threads)
                                        for _ in range(options.compiles)])) for level in LEVELS}
    return {"case": case.name, "threads": threads, "compile_ms": compiled,
            "run_ms": {level: machine.spread(ran[level]) for level in LEVELS},
            "faster": {f"{low}/{high}": machine.spread(ran[low] / ran[high])
                       for low, high in zip(LEVELS, LEVELS[1:])}}


def faults_of(result, slower):
    """What should not be so, a line each."""
    where, faults = f"{result['case']}, {result['threads']} thread(s)", []
    for low, high in zip(LEVELS, LEVELS[1:]):
        gain = result["faster"][f"{low}/{high}"]["median"]
        if gain < 1 - slower:
            faults.append(f"{where}: {high} runs at {gain:.2f} of the speed of {low}")
        if result["compile_ms"][high] < result["compile_ms"][low]:
            faults.append(f"{where}: {high} compiles in {result['compile_ms'][high]:.0f} ms, {low} in "
                          f"{result['compile_ms'][low]:.0f} ms")
    return faults


def line_of(result):
    return [result["case"], str(result["threads"]),
            *(f"{result['run_ms'][level]['median']:.3f}" for level in LEVELS),
            *(f"{spread['median']:.2f}" for spread in result["faster"].values()),
            *(f"{result['compile_ms'][level]:.0f}" for level in LEVELS)]


def as_markdown(results, slower):
    head = ["network", "threads", *(f"{level} ms" for level in LEVELS), "O0 / O1", "O1 / O2",
            *(f"{level} compiles ms" for level in LEVELS)]
    lines = [f"- {fault}" for result in results for fault in faults_of(result, slower)]
    means = [f"{pair}: {against.geomean([r['faster'][pair]['median'] for r in results]):.3f} in geometric mean"
             for pair in results[0]["faster"]]
    return "\n".join([*means, "", machine.table(head, [line_of(result) for result in results]), *lines, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("globs", nargs="*", metavar="GLOB")
    parser.add_argument("--heddle", default=os.path.join(ROOT, "build", "bench", "heddle"))
    parser.add_argument("--threads", default=[1, 2], type=lambda s: [int(n) for n in s.split(",")])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--round-seconds", type=float, default=0.1, help="of one level")
    parser.add_argument("--compiles", type=int, default=3)
    parser.add_argument("--slower", type=float, default=0.04)
    parser.add_argument("--out", help="writes OUT.md and OUT.json")
    options = parser.parse_args()
    options.heddle = os.path.abspath(options.heddle)
    options.sets = ["networks"]
    options.scratch = os.path.join(ROOT, "build", "levels")
    os.makedirs(options.scratch, exist_ok=True)
    os.environ["HEDDLE_CACHE"] = os.path.join(options.scratch, "cache")
    cases = against.find_cases(options, os.path.join(os.path.dirname(options.heddle), "write_models"))
    header, results, failed = machine.about(ROOT), [], []
    for case in cases:
        for threads in options.threads:
            try:
                results.append(measure(options, case, threads))
                print(" ".join(line_of(results[-1])), file=sys.stderr, flush=True)
            except contestants.Failed as failure:
                failed.append(f"{case.name}: {failure}")
                print(failed[-1], file=sys.stderr, flush=True)
    if not results:
        print("error: nothing was measured", file=sys.stderr)
        return 2
    text = machine.as_markdown(header) + "\n" + as_markdown(results, options.slower)
    text += "".join(f"- failed: {line}\n" for line in failed)
    print(text)
    machine.write(options.out, header, options.rounds, results, text)
    return 1 if failed or any(faults_of(result, options.slower) for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
