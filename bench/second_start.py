"""Times what a start takes besides the run, for processes that find the model in the compile cache.

    bench/second_start.py MODEL [--heddle build/release/heddle] [--threads 1 2] [--rounds 15]
        [--with-program] [--json FILE]

A first start fills a separate cache and reads the model file into the page cache. Then, in
turn: a new process of `heddle run` (time from fork to exit), and one of `heddle bench` for the median of
warm runs. The figure is the median of the processes minus the median run. --with-program: also the
same for a program file (`heddle compile -o`). One more process asks the dynamic linker whether
the code generator was opened. Exit status 1: it was, or the figure is above 100 ms."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

MOST_MS = 100


def run(command, **more):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True,
                          text=True, **more)


def read_files(model):
    # External data lies beside the model.
    for path in [model, *model.parent.glob(model.name + ".data*")]:
        with open(path, "rb") as file:
            while file.read(1 << 24):
                pass


def opens_generator(command):
    environment = dict(os.environ, LD_DEBUG="files")
    return "libheddle-llvm" in run(command, env=environment).stderr


def start(heddle, what, threads, cache):
    command = [heddle, "run", what, "--threads", threads, "--cache", cache, "--json", "-"]
    begin = time.perf_counter()
    done = run(command)
    took = (time.perf_counter() - begin) * 1e3
    return took, json.loads(done.stdout)


def measure(options, what, threads, cache):
    common = ["--threads", threads, "--cache", cache]
    start(options.heddle, what, threads, cache)
    start(options.heddle, what, threads, cache)
    starts, runs, parts = [], [], []
    for _ in range(options.rounds):
        took, facts = start(options.heddle, what, threads, cache)
        if facts["cache"] != "warm":
            sys.exit(f"{what}: not found in the cache")
        starts.append(took)
        parts.append((facts["import_ms"], facts["compile_ms"], facts["first_run_ms"]))
        done = run([options.heddle, "bench", what, *common, "--iterations", "5", "--warmup", "3",
                    "--json", "-"])
        runs.append(json.loads(done.stdout)["latency_ms"]["median"])
    generator = opens_generator([options.heddle, "run", what, *common])
    process, warm = statistics.median(starts), statistics.median(runs)
    row = {"what": str(what), "threads": threads, "process_ms": process, "run_ms": warm,
           "more_ms": process - warm, "import_ms": statistics.median(p[0] for p in parts),
           "compile_ms": statistics.median(p[1] for p in parts),
           "first_run_ms": statistics.median(p[2] for p in parts), "generator_opened": generator}
    print(f"{what} {threads} threads: process {process:.1f} ms ({min(starts):.1f} to "
          f"{max(starts):.1f}), warm run {warm:.1f} ms: {process - warm:+.1f} ms; import "
          f"{row['import_ms']:.1f}, compile {row['compile_ms']:.1f}, first run "
          f"{row['first_run_ms']:.1f}; code generator "
          f"{'OPENED' if generator else 'not opened'}", flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--heddle", default="build/release/heddle")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--with-program", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        read_files(options.model)
        program = pathlib.Path(folder) / "program.heddle"
        if options.with_program:
            run([options.heddle, "compile", options.model, "-o", program, "--cache",
                 folder + "/cache"])
        for threads in options.threads:
            rows.append(measure(options, options.model, threads, folder + "/cache"))
            if options.with_program:
                rows.append(measure(options, program, threads, folder + "/cache"))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if any(row["more_ms"] > MOST_MS or row["generator_opened"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
