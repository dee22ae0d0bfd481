"""Times this checkout and another commit in turn on the same models: is anything slower?

    against.py COMMIT [--set networks,rows,products,steps] [--threads 1,2] [--rounds N] [GLOB ...]

Builds both (COMMIT in a git worktree under build/against; ccache makes it quick). Each runs a model in a
separate process through the C interface, one round at a time in turn, idle while the other runs. A ratio
is taken within a round: the other's time over ours, so less than 1 means slower now; a model's ratio is the
median of its rounds. A model below --floor, or as far above 1, is measured again with twice the rounds,
and the second result counts.
Exit status: 0, 1 the geometric mean is below --floor-geomean or a model below --floor, 2 wrong use or
nothing could be measured.

Models: those of script/replay (GLOB matches its names: 'network/bert*'); also networks from build/bench-models
and steps from build/bench-training, where they exist.
"""
import argparse
import dataclasses
import fnmatch
import glob
import json
import math
import os
import sys

import numpy as np

import contestants
import machine
import other_build
import replay_models

ROOT = replay_models.ROOT
SETS = {"networks": "network", "rows": "row", "products": "product", "steps": "training"}
PROGRAMS = ["heddle", "heddle-llvm", "heddle_probe", "write_models"]


@dataclasses.dataclass
class Case:
    name: str
    path: str
    inputs: str | None = None  # none: random


def exported(options):
    """What bench/models and bench/training made, where they did."""
    cases = []
    listing = os.path.join(ROOT, "build", "bench-models", "cases.json")
    if "networks" in options.sets and os.path.exists(listing):
        with open(listing) as file:
            for one in json.load(file):
                paths = [os.path.join(os.path.dirname(listing), one[key]) for key in ["model", "inputs"]]
                cases.append(Case(f"network/exported_{one['case']}", *paths))
    if "steps" in options.sets:
        for path in glob.glob(os.path.join(ROOT, "build", "bench-training", "*_step.hlo")):
            cases.append(Case(f"training/full_{os.path.basename(path).removesuffix('.hlo')}", path))
    return cases


def find_cases(options, write_models):
    """Of options.sets and options.globs."""
    groups = {SETS[name] for name in options.sets}
    models = {**replay_models.kept(),
              **replay_models.made(os.path.join(other_build.FOLDER, "models"), write_models,
                                   lambda group: group in groups)}
    cases = [Case(name, model.path) for name, model in sorted(models.items())
             if name.split("/")[0] in groups]
    cases += sorted(exported(options), key=lambda case: case.name)
    return [case for case in cases
            if not options.globs or any(fnmatch.fnmatch(case.name, glob) for glob in options.globs)]


def ratio_of(theirs, ours):
    """The other's time over ours, inside each round."""
    return machine.spread(np.asarray(theirs) / np.asarray(ours))


def measure(options, case, threads, probes, rounds):
    """{"ratio", "before_ms", "after_ms"}."""
    clock = "cpu_ns" if options.clock == "cpu" and threads == 1 else "wall_ns"
    ways = {name: (os.path.join(folder, "heddle_probe"), case.path, threads, options.level, case.inputs)
            for name, folder in probes.items()}
    # As many runs on both sides: a round of one is as long as one of the other.
    ms = contestants.side_by_side(ways, rounds, options.round_seconds, clock, as_often=True)
    return {"ratio": ratio_of(ms["before"], ms["after"]), "before_ms": machine.spread(ms["before"]),
            "after_ms": machine.spread(ms["after"])}


def measure_all(options, cases, probes):
    results = []
    for case in cases:
        for threads in options.threads:
            result = {"case": case.name, "threads": threads}
            try:
                found = measure(options, case, threads, probes, options.rounds)
                if not options.floor <= found["ratio"]["median"] <= 1 / options.floor:
                    result["first"] = found["ratio"]
                    found = measure(options, case, threads, probes, 2 * options.rounds)
                result |= found
            except contestants.Failed as failure:
                result["failed"] = str(failure)
            results.append(result)
            print(" ".join(line_of(result)), file=sys.stderr, flush=True)
    return results


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def verdict(results, floor_geomean, floor):
    """(ok, [line]): ratios first, by threads; then what is below its floor."""
    lines, ok = [], True
    measured = [result for result in results if "ratio" in result]
    for threads in sorted({result["threads"] for result in measured}):
        mine = [result for result in measured if result["threads"] == threads]
        ratios = [result["ratio"]["median"] for result in mine]
        worst = min(mine, key=lambda result: result["ratio"]["median"])
        mean = geomean(ratios)
        ok &= mean >= floor_geomean
        lines.append(f"{threads} thread(s): {mean:.3f} in geometric mean over {len(mine)} models (floor "
                     f"{floor_geomean:.2f}), worst {worst['ratio']['median']:.3f} {worst['case']} (floor {floor:.2f})")
    for result in measured:
        if result["ratio"]["median"] < floor:
            ok = False
            lines.append(f"below the floor: {result['case']}, {result['threads']} thread(s): "
                         f"{result['ratio']['median']:.3f}")
    for result in results:
        if "failed" in result:
            ok = False
            lines.append(f"failed: {result['case']}: {result['failed'].splitlines()[-1]}")
    return ok and bool(measured), lines


def line_of(result):
    line = [result["case"], str(result["threads"])]
    if "failed" in result:
        return [*line, "-", "-", "-", "failed"]
    ratio = result["ratio"]
    return [*line, f"{result['before_ms']['median']:.3f}", f"{result['after_ms']['median']:.3f}",
            f"**{ratio['median']:.3f}**", f"{ratio['min']:.2f}-{ratio['max']:.2f}"]


def as_markdown(results, lines):
    head = ["model", "threads", "before ms", "after ms", "before / after", "of rounds"]
    return "\n".join(lines) + "\n\n" + machine.table(head, [line_of(result) for result in results])


def read_options():
    def sets(text):
        unknown = set(text.split(",")) - set(SETS)
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: take of {', '.join(SETS)}")
        return text.split(",")

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit")
    parser.add_argument("globs", nargs="*", metavar="GLOB")
    parser.add_argument("--set", dest="sets", type=sets, default=list(SETS))
    parser.add_argument("--threads", default=[1, 2], type=lambda s: [int(n) for n in s.split(",")])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--round-seconds", type=float, default=0.1, help="of one side")
    parser.add_argument("--level", default="O2", help="as of heddle_probe: LEVEL[,FUSE]")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall",
                        help="cpu: the thread's own clock where one thread runs, for a busy machine")
    parser.add_argument("--floor-geomean", type=float, default=0.98)
    parser.add_argument("--floor", type=float, default=0.95)
    parser.add_argument("--ours", help="folder of our programs, built already")
    parser.add_argument("--out", help="writes OUT.md and OUT.json")
    return parser.parse_intermixed_args()


def main():
    options = read_options()
    try:
        probes = {"before": other_build.build_commit(options.commit, PROGRAMS),
                  "after": options.ours or other_build.build(ROOT, os.path.join(ROOT, "build", "bench"), PROGRAMS)}
        cases = find_cases(options, os.path.join(probes["after"], "write_models"))
    except (other_build.Failed, replay_models.Failed) as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 2
    if not cases:
        print("error: no such model; script/replay list names those of a recording", file=sys.stderr)
        return 2
    # Tuning records of this machine are no part of either commit.
    os.environ["HEDDLE_CACHE"] = os.path.join(other_build.FOLDER, "cache")
    header = machine.about(ROOT)
    results = measure_all(options, cases, probes)
    ok, lines = verdict(results, options.floor_geomean, options.floor)
    text = f"{options.commit} over this checkout\n\n" + as_markdown(results, lines)
    print(text)
    machine.write(options.out, header, options.rounds, results, machine.as_markdown(header) + "\n" + text)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
