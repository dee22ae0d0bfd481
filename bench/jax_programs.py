#!/usr/bin/env python3
"""Programs of JAX under JAX_PLATFORMS=heddle beside JAX's own CPU platform: results, compilation, calls.

    PYTHONPATH=build/release/python python bench/jax_programs.py [PROGRAM ...] [--rounds 9] [--compiles 2]
        [--core 1] [--clock wall|cpu] [--write FILE]

Each side runs in a process of its own on one core; the two measure in turn, a round after a round, and
a ratio is XLA's time divided by heddle's, the median over rounds. `compile` is the first call minus a
call, with empty caches, after another program has run; the least of several processes. Needs jax, flax,
optax. `--clock cpu`: the time that the process had the core, for busy machines. As root both sides get the scheduler's real-time class, so that other work disturbs them less."""
import argparse
import json
import math
import os
import pathlib
import pickle
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "jax")]
SIDES = ("cpu", "heddle")
XLA_FLAGS = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def programs():
    import inference  # noqa: F401  pylint: disable=unused-import
    import science  # noqa: F401  pylint: disable=unused-import
    import training  # noqa: F401  pylint: disable=unused-import
    from registry import PROGRAMS
    return PROGRAMS


def numbers_of(result):
    import jax
    import jax.numpy as jnp
    import numpy as np
    leaves = [jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x
              for x in jax.tree.leaves(result)]
    return [np.asarray(x, np.float64 if x.dtype == jnp.bfloat16 else None) for x in leaves]


class Timed:
    """A program in this process: its first call, and rounds of calls."""

    def __init__(self, name, clock):
        self.now = time.process_time if clock == "cpu" else time.perf_counter
        import jax
        with jax.default_device(jax.devices("cpu")[0]):  # both sides start from the same bits
            function, arguments = programs()[name][1]()
        self.arguments = jax.block_until_ready(jax.device_put(arguments, jax.devices()[0]))
        jax.block_until_ready(jax.jit(lambda x: x * 2 + 1)(jax.numpy.ones(3)))
        self.wait, self.call = jax.block_until_ready, jax.jit(function)
        begin = self.now()
        result = self.wait(self.call(*self.arguments))
        self.first = self.now() - begin
        self.result = numbers_of(result)
        self.calls = max(1, math.ceil(0.03 / self.round(3)))

    def round(self, calls=None):
        calls = calls or self.calls
        begin = self.now()
        for _ in range(calls):
            self.wait(self.call(*self.arguments))
        return (self.now() - begin) / calls


def answer(name, clock):
    """The side's process: a line is an order, an answer is a pickle."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def send(value):
        pickle.dump(value, out)
        out.flush()
    timed = Timed(name, clock)
    send((timed.first, timed.result))
    for _ in sys.stdin:
        send(timed.round())


class Side:
    """A process that runs one program on one platform."""

    def __init__(self, platform, name, arguments):
        self.cache = tempfile.mkdtemp()
        environment = {**os.environ, "JAX_PLATFORMS": platform, "HEDDLE_CACHE": self.cache,
                       "XLA_FLAGS": XLA_FLAGS}
        priority = ["chrt", "-f", "10"] if os.geteuid() == 0 and shutil.which("chrt") else []
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            ["taskset", "-c", str(arguments.core), *priority, sys.executable, __file__, name,
             "--side", "--clock", arguments.clock],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log)

    def read(self):
        try:
            return pickle.load(self.process.stdout)
        except EOFError:
            self.process.wait()
            self.log.seek(0)
            lines = self.log.read().decode(errors="replace").strip().splitlines() or ["no message"]
            raise RuntimeError(f"exit status {self.process.returncode}: {lines[-1][:300]}") from None

    def round(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        return self.read()

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        shutil.rmtree(self.cache, ignore_errors=True)


def difference(got, wanted):
    """The largest difference of any result, relative to that result's largest value."""
    import numpy as np
    worst = 0.0
    for a, b in zip(got, wanted, strict=True):
        if a.shape != b.shape:
            return math.inf
        if a.size == 0:
            continue
        wide = np.complex128 if np.iscomplexobj(b) else np.float64
        a, b = a.astype(wide), b.astype(wide)
        if not np.array_equal(np.isfinite(a), np.isfinite(b)):
            return math.inf
        a, b = (np.where(np.isfinite(x), x, 0) for x in (a, b))
        worst = max(worst, np.abs(a - b).max() / max(np.abs(b).max(), 1e-3))
    return float(worst)


def first_calls(name, arguments):
    sides = {}
    for platform in SIDES:
        sides[platform] = Side(platform, name, arguments)
        sides[platform].first, sides[platform].result = sides[platform].read()
    return sides


def measure(name, arguments):
    sides = first_calls(name, arguments)
    times = {platform: [] for platform in SIDES}
    for _ in range(arguments.rounds):
        for platform in SIDES:
            times[platform].append(sides[platform].round())
    firsts = {platform: [sides[platform].first] for platform in SIDES}
    differ = difference(sides["heddle"].result, sides["cpu"].result)
    for side in sides.values():
        side.close()
    for _ in range(arguments.compiles - 1):
        for platform, side in first_calls(name, arguments).items():
            firsts[platform].append(side.first)
            side.close()
    call = {platform: statistics.median(times[platform]) for platform in SIDES}
    compiling = {platform: max(min(firsts[platform]) - call[platform], 0) for platform in SIDES}
    ratios = [a / b for a, b in zip(times["cpu"], times["heddle"], strict=True)]
    return {"program": name, "kind": programs()[name][0], "ratio": statistics.median(ratios),
            "compile_ratio": compiling["heddle"] / max(compiling["cpu"], 1e-9), "difference": differ,
            **{f"{platform}_ms": 1000 * call[platform] for platform in SIDES},
            **{f"{platform}_compile_ms": 1000 * compiling[platform] for platform in SIDES},
            **{f"{platform}_rounds_ms": [1000 * t for t in times[platform]] for platform in SIDES}}


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def table(rows):
    lines = ["| program | ratio | compile, heddle/cpu | cpu, ms | heddle, ms | compile cpu, ms | heddle, ms "
             "| difference |", "|---|---|---|---|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: row.get("ratio", 0)):
        if "error" in row:
            lines.append(f"| {row['program']} | fails: {row['error']} | | | | | | |")
            continue
        lines.append(f"| {row['program']} | {row['ratio']:.2f} | {row['compile_ratio']:.2f} "
                     f"| {row['cpu_ms']:.3f} | {row['heddle_ms']:.3f} | {row['cpu_compile_ms']:.0f} "
                     f"| {row['heddle_compile_ms']:.0f} | {row['difference']:.1e} |")
    good = [row for row in rows if "error" not in row]
    lines.append(f"| geometric mean of {len(good)} | {geometric_mean([r['ratio'] for r in good]):.2f} "
                 f"| {geometric_mean([max(r['compile_ratio'], 1e-3) for r in good]):.2f} | | | | | |")
    return "\n".join(lines)


def write(path, rows):
    import machine
    about = machine.about(HERE.parent)
    for package in ("flax", "optax", "jaxlib"):
        about["versions"][package] = machine.version_of(package)
    path = pathlib.Path(path)
    path.with_suffix(".json").write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")
    path.with_suffix(".md").write_text(
        f"# Programs of JAX: heddle's platform beside JAX's cpu, {about['date']}\n\n"
        f"{machine.as_markdown(about)}\n\nBoth on one core of their own in turn (`taskset`, real-time class), XLA with "
        f"`{XLA_FLAGS}`. A ratio above 1: heddle is faster. `difference`: the largest of any result, relative to that "
        f"result's largest value.\n\n{table(rows)}\n")


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--compiles", type=int, default=2)
    parser.add_argument("--core", type=int, default=(os.cpu_count() or 1) - 1)
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--write", help="FILE.json and FILE.md")
    parser.add_argument("--side", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments = parse()
    if arguments.side:
        answer(arguments.programs[0], arguments.clock)
        return
    rows = []
    for name in arguments.programs or programs():
        try:
            rows.append(measure(name, arguments))
        except RuntimeError as error:
            rows.append({"program": name, "error": str(error)})
        row = rows[-1]
        print(name, row.get("error") or f"{row['ratio']:.2f}, compile {row['compile_ratio']:.2f}, "
              f"{row['cpu_ms']:.3f} {row['heddle_ms']:.3f} ms, difference {row['difference']:.1e}",
              file=sys.stderr, flush=True)
        if arguments.write:
            write(arguments.write, rows)
    print(table(rows))


if __name__ == "__main__":
    main()
