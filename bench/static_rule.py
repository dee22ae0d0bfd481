"""Measures what the static rule loses against the best record that the tuner finds, shape by shape.

    static_rule.py [NAME ...] --out FILE    of build/bench-products; writes FILE.json and FILE.md

`heddle tune` measures the rule's choice and the most promising others of each shape in interleaved
rounds, on one thread by the clock of the thread. Nothing is kept: every model has a separate cache
folder, which is removed.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

import machine

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
WORSE = 1.04  # what the rule may lose


def tuned(options, case):
    with tempfile.TemporaryDirectory() as cache:
        command = [options.heddle, "tune", os.path.join(options.products, case["model"]),
                   "--threads", str(options.threads), "--candidates", str(options.candidates),
                   "--budget", "600", "--fuse", "greedy", "--cache", cache, "--json", "-"]
        environment = {**os.environ, "HEDDLE_ISA": options.isa} if options.isa else os.environ
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=environment)
    if done.returncode != 0:
        sys.exit(f"static_rule: {case['case']}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)


def rows_of(case, result):
    for task in result["tasks"]:
        tried = []
        for part in task["measured"].split("; "):
            record, ns = part.rsplit(": ", 1)
            tried.append((float(ns), record))
        rule_ns, rule = tried[0]
        # The best of many measurements flatters itself: what won twice counts (api/tune.h).
        loss = task["untuned_ns"] / task["ns"]
        yield {"case": case["case"], "key": task["key"], "candidates": task["candidates"],
               "tried": len(tried), "rule": rule, "rule_ns": rule_ns, "best": task["record"],
               "best_ns": task["ns"], "loss": loss,
               "measured": {record: ns for ns, record in tried}}


def geomean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values))


def as_markdown(rows):
    table = [[row["key"], f"{row['rule_ns'] / 1e3:.1f}", f"{row['loss']:.3f}",
              row["rule"], "" if row["loss"] == 1 else row["best"]] for row in rows]
    worse = [row for row in rows if row["loss"] > WORSE]
    losses = [row["loss"] for row in rows]
    return (machine.table(["shape", "rule us", "loss", "rule", "best"], table) +
            f"\n{len(rows)} shapes: geomean {geomean(losses):.3f}, worst {max(losses):.3f}, "
            f"{len(worse)} lose more than {100 * (WORSE - 1):.0f}%\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--heddle", default=os.path.join(ROOT, "build", "release", "heddle"))
    parser.add_argument("--products", default=os.path.join(ROOT, "build", "bench-products"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--candidates", type=int, default=16)
    parser.add_argument("--isa", help="as HEDDLE_ISA: avx2")
    parser.add_argument("--out")
    options = parser.parse_args()
    with open(os.path.join(options.products, "cases.json")) as opened:
        cases = json.load(opened)
    header = machine.about(ROOT)
    rows = []
    for case in cases:
        if options.names and case["case"] not in options.names:
            continue
        for row in rows_of(case, tuned(options, case)):
            rows.append(row)
            print(f"{row['key']}: {row['loss']:.3f}", file=sys.stderr, flush=True)
    markdown = machine.as_markdown(header) + "\n" + as_markdown(rows)
    print(markdown)
    machine.write(options.out, header, 15, rows, markdown)


if __name__ == "__main__":
    main()
