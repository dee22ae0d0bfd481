#!/usr/bin/env python3
"""80 models through torch.compile: heddle beside TorchInductor, a model in a process of its own.

    PYTHONPATH=build/release/python python bench/torch_zoo.py [NAME…] [--vs inductor] [--rounds 9]
        [--threads 1] [--realtime] [--first] [--caches DIR] [--out FILE]

For each: graphs of both, the largest difference from eager (of the result's size), milliseconds of a
call of both, taken in turn, as medians over rounds, and their ratio. --first also times the first call
of each, without compiled code from before; the caches of both are then in DIR, which later calls read. --realtime keeps other programs off the core while it is timed (needs root).
--freeze has Inductor pack weights, which it does not do by itself. FILE.json keeps
what it has of models that are not named, and FILE.md has all. Inductor needs a C++ compiler."""
import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import time

import machine
from torch_zoo_models import NAMES

ENOUGH = 0.06  # seconds of calls in one turn


def flat(output):
    import torch
    if isinstance(output, torch.Tensor):
        return [output]
    if hasattr(output, "items"):
        return [one for value in output.values() for one in flat(value)]
    if isinstance(output, (list, tuple)):
        return [one for value in output for one in flat(value)]
    return []


def distance(got, wanted):
    """The largest difference, of the size of the result it is in; infinite where others are unequal."""
    if len(got) != len(wanted):
        return math.inf
    worst = 0.0
    for a, b in zip(got, wanted):
        if a.shape != b.shape or a.dtype != b.dtype:
            return math.inf
        if b.is_floating_point():
            size = max(b.abs().max().item(), 1e-30) if b.numel() else 1
            worst = max(worst, (a - b).abs().max().item() / size if b.numel() else 0)
        elif not a.equal(b):
            return math.inf
    return worst


class Contestant:
    def __init__(self, backend, name, args):
        import torch
        import torch_zoo_models
        self.model, self.args, self.named = torch_zoo_models.make(name)
        options = {"options": {"threads": args.threads}}
        if backend == "heddle":
            import heddle.torch  # noqa: F401  pylint: disable=unused-import
        else:
            options = {"options": {"freezing": True}} if args.freeze else {}
        with torch.no_grad():
            self.wanted = flat(self.model(*self.args, **self.named))
        self.function = torch.compile(self.model, backend=backend, dynamic=False, **options)

    def __call__(self):
        return self.function(*self.args, **self.named)

    def begin(self):
        """What the first call tells."""
        import torch
        from torch._dynamo.utils import counters
        before, broken = counters["stats"]["unique_graphs"], sum(counters["graph_break"].values())
        start = time.perf_counter()
        got = flat(self())
        first = time.perf_counter() - start
        torch.compiler.set_stance("fail_on_recompile")
        self()
        torch.compiler.set_stance("default")
        return {"first_s": first, "graphs": counters["stats"]["unique_graphs"] - before,
                "breaks": sum(counters["graph_break"].values()) - broken,
                "distance": distance(got, self.wanted)}


def turn(call, count):
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def prepare(args):
    import warnings
    import torch
    warnings.simplefilter("ignore")
    torch.set_num_threads(args.threads)
    torch.set_grad_enabled(False)


def in_turn(name, args):
    """In this process: both, interleaved. heddle begins first: its first call has the process to warm up."""
    prepare(args)
    from heddle.torch import explanation
    explanation._collecting.records = []
    result, sides = {}, {}
    for backend in ("heddle", args.vs):
        sides[backend] = Contestant(backend, name, args)
        result[backend] = sides[backend].begin()
    records = explanation._collecting.records
    result["heddle"]["in_pytorch"] = sorted({one for record in records for one in record.eager})
    if args.realtime:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    counts, times = {}, {backend: [] for backend in sides}
    for backend, side in sides.items():
        turn(side, 3)
        counts[backend] = max(1, math.ceil(ENOUGH / turn(side, 2)))
    for number in range(args.rounds):
        for backend in list(sides)[::1 if number % 2 else -1]:
            sides[backend]()  # brings its own memory back into the caches
            times[backend].append(turn(sides[backend], counts[backend]) * 1e3)
    for backend, values in times.items():
        result[backend]["ms"] = statistics.median(values)
        result[backend]["least_ms"] = min(values)
    result["ratio"] = statistics.median(b / a for a, b in zip(times["heddle"], times[args.vs]))
    return result


# ---- all of them ----

def child(args, *words, caches):
    settings = {**os.environ, "OMP_NUM_THREADS": str(args.threads), "HEDDLE_CACHE": f"{caches}/heddle",
                "TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor"}
    command = [sys.executable, os.path.abspath(__file__), *words, "--vs", args.vs, "--rounds",
               str(args.rounds), "--threads", str(args.threads), *["--realtime"] * args.realtime,
               *["--freeze"] * args.freeze]
    done = subprocess.run(command, env=settings, text=True, capture_output=True, check=False)
    try:
        return json.loads(done.stdout.strip().split("\n")[-1])
    except (json.JSONDecodeError, IndexError):
        lines = done.stderr.strip().split("\n")
        return {"error": f"status {done.returncode}: {lines[-1] if lines else ''}"[:300]}


def measure(name, args, before):
    """One model; a first call of before stays where none is taken."""
    caches = os.path.join(os.path.abspath(args.caches), name.replace(":", "_"))
    if args.first:
        shutil.rmtree(caches, ignore_errors=True)
    result = child(args, name, "--here", caches=caches)
    firsts = before.get("first", {})
    if args.first and "error" not in result:
        firsts = {side: result[side]["first_s"] for side in ("heddle", args.vs)}
    return {"name": name, **result, "first": firsts}


def line(one, vs):
    if "error" in one:
        return [one["name"], one["error"], *[""] * 7]
    ours, theirs = one["heddle"], one[vs]
    first = [one["first"].get(side) for side in ("heddle", vs)]
    return [one["name"], f"{ours['graphs']}, {theirs['graphs']}",
            f"{ours['distance']:.1e}", f"{theirs['distance']:.1e}", f"{ours['ms']:.3g}",
            f"{theirs['ms']:.3g}", f"{one['ratio']:.2f}",
            ", ".join("" if x is None else f"{x:.1f}" for x in first),
            ", ".join(ours["in_pytorch"])]


def summary(results, vs):
    good = [one for one in results if "error" not in one]
    ratios = sorted((one["ratio"], one["name"]) for one in good)
    right = sum(one["heddle"]["distance"] <= 1e-4 and one["heddle"]["graphs"] <= one[vs]["graphs"]
                for one in good)
    text = [f"{len(results)} models; {right} in no more graphs than {vs} and within 1e-4 of eager."]
    if good:
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio, _ in ratios))
        text.append(f"Speed of heddle, {vs} = 1: geometric mean {mean:.3f}, least {ratios[0][0]:.2f}; "
                    f"{sum(ratio < 1 for ratio, _ in ratios)} below 1, "
                    f"{sum(ratio < 0.9 for ratio, _ in ratios)} below 0.9.")
    firsts = sorted(one["first"]["heddle"] / one["first"][vs] for one in good if one["first"])
    if firsts:
        text.append(f"First calls, {vs} = 1: geometric mean "
                    f"{math.exp(statistics.fmean(map(math.log, firsts))):.3f}, largest {firsts[-1]:.2f}, "
                    f"{sum(x > 0.25 for x in firsts)} above 0.25.")
    return " ".join(text)


def write(args, header, results):
    head = ["model", "graphs", "distance", f"of {args.vs}", "ms", f"ms of {args.vs}", "ratio",
            "first calls, s", "in PyTorch"]
    order = sorted(results, key=lambda one: one.get("ratio", 0))
    text = (f"# torch.compile: heddle beside {args.vs}\n\n{machine.as_markdown(header)}\n"
            f"{summary(results, args.vs)}\n\nPairs: heddle, {args.vs}. Distances are from eager, of the "
            "largest value; times of a call are medians, the ratio is that of rounds.\n\n"
            + machine.table(head, [line(one, args.vs) for one in order]))
    machine.write(args.out, header, args.rounds, results, text)


def all_of(args):
    header, kept = machine.about("."), {}
    if args.out and os.path.exists(args.out + ".json"):
        with open(args.out + ".json", encoding="utf-8") as file:
            kept = {one["name"]: one for one in json.load(file)["results"]}
    for name in args.names or NAMES:
        kept[name] = measure(name, args, kept.get(name, {}))
        print(" | ".join(line(kept[name], args.vs)), flush=True)
        write(args, header, [kept[one] for one in sorted(kept, key=[*NAMES, *kept].index)])
    print(summary(list(kept.values()), args.vs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--vs", default="inductor", help="another backend of torch.compile")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--realtime", action="store_true")
    parser.add_argument("--first", action="store_true", help="time first calls, with empty caches")
    parser.add_argument("--freeze", action="store_true", help="Inductor with packed weights")
    parser.add_argument("--caches", default="build/torch_zoo", metavar="DIR")
    parser.add_argument("--out", metavar="FILE")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.here:
        print(json.dumps(in_turn(args.names[0], args)))
    else:
        all_of(args)


if __name__ == "__main__":
    main()
