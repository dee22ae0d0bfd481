"""The rows of bench/rows on the GPU of this machine, beside torch.compile and JAX.

    python3 bench/gpu_rows.py --probe build/release/gpu_probe --rows build/bench-rows

Arrays stay on the device. Every engine runs 15 rounds of 20 runs, one behind the other, and waits at the
end of a round: the median round over 20 counts, so what is small lies in the second cache for all of
them, and launches are counted as far as the device waits for them. Outputs are compared with the f64
ones of make_rows.py as memory_rows.py does. A peer that is not installed, or that fails, has its
reason in the table. Without a GPU it says so and ends with status 3.
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "rows")]

import contestants  # noqa: E402
import memory_rows  # noqa: E402

ROUNDS, RUNS = 15, 20


def timed(run, wait):
    for _ in range(3):
        run()
    wait()
    rounds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(RUNS):
            run()
        wait()
        rounds.append((time.perf_counter() - begin) / RUNS * 1e6)
    return statistics.median(rounds)


def as_outputs(results):
    results = results if isinstance(results, (tuple, list)) else [results]
    return {f"out{i}": x for i, x in enumerate(results)}


def by_torch(row, inputs):
    """The fastest form."""
    import torch
    import torch_rows
    if not torch.cuda.is_available():
        raise RuntimeError("torch has no GPU")
    arguments = [torch.from_numpy(np.asarray(x)).cuda() for x in inputs.values()]
    best = None
    for form in row["torch_forms"]:
        torch._dynamo.reset()
        function = torch.compile(torch_rows.forms_of(row["row"])[form], dynamic=False)
        with torch.no_grad():
            results = function(*arguments)
            us = timed(lambda: function(*arguments), torch.cuda.synchronize)
        if best is None or us < best[0]:
            outputs = {name: x.cpu().numpy() for name, x in as_outputs(results).items()}
            best = us, outputs, "torch.compile " + torch.__version__
    return best


def by_jax(row, inputs):
    import jax
    import jax_rows
    if jax.default_backend() != "gpu":
        raise RuntimeError("jax has no GPU")
    function = jax_rows.compiled(row["row"])
    arguments = [jax.device_put(x) for x in inputs.values()]
    last = [jax.block_until_ready(function(*arguments))]

    def run():
        last[0] = function(*arguments)

    us = timed(run, lambda: jax.block_until_ready(last[0]))
    return us, {name: np.array(x) for name, x in as_outputs(last[0]).items()}, "jax " + jax.__version__


def by_heddle(options, row, inputs_path):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out.npz")
        done = subprocess.run([options.probe, memory_rows.hlo_of(options, row), inputs_path, path],
                              capture_output=True, text=True)
        told = json.loads(done.stdout or "{}")
        if done.returncode != 0:
            raise RuntimeError(told.get("error") or done.stderr.strip()[-300:])
        return told, dict(np.load(path))


def measure(options, row):
    files = [os.path.join(options.rows, f"{row['row']}.{what}.npz") for what in ("inputs", "expected")]
    inputs, expected = dict(np.load(files[0])), dict(np.load(files[1]))
    result = {"row": row["row"], "what": row["what"], "bytes": row["bytes"], "engines": {}}

    def checked(name, outputs):
        error = memory_rows.error_of(outputs, expected)
        memory_rows.check(name, error)
        return error

    try:
        told, outputs = by_heddle(options, row, files[0])
        result["heddle"] = told
        result["engines"]["heddle"] = {"us": told["us"], "error": checked("heddle", outputs)}
    except (RuntimeError, OSError, contestants.Failed) as problem:
        result["engines"]["heddle"] = {"failed": str(problem)}
    for name, peer in (("torch", by_torch), ("jax", by_jax)):
        try:
            us, outputs, version = peer(row, inputs)
            result["engines"][name] = {"us": us, "version": version,
                                       "error": checked(name, outputs)}
        except Exception as problem:  # a peer may fail in any way
            result["engines"][name] = {"failed": f"{type(problem).__name__}: {problem}"[:300]}
    return result


def cell(engine):
    if "failed" in engine:
        return engine["failed"].split("\n")[0][:60]
    return f"{engine['us']:.1f}"


def as_markdown(device, results):
    lines = [f"# The rows on {device}, {datetime.date.today()}", "",
             "µs of a run, arrays on the device; copy: the row's bytes by the driver's own copy.", "",
             "| row | what | MB | copy | heddle | kernels | ×copy | torch.compile | JAX | ratio |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    ratios = []
    for one in results:
        engines = one["engines"]
        ours, copy = engines["heddle"].get("us"), one.get("heddle", {}).get("copy_us")
        peers = [x["us"] for name, x in engines.items() if name != "heddle" and "us" in x]
        ratio = min(peers) / ours if ours and peers else None
        if ratio:
            ratios.append(ratio)
        lines.append(
            f"| {one['row']} | {one['what']} | {one['bytes'] / 1e6:.1f} | {copy and format(copy, '.1f')} | "
            f"{cell(engines['heddle'])} | {one.get('heddle', {}).get('launches')} | "
            f"{ours and copy and format(ours / copy, '.2f')} | {cell(engines['torch'])} | "
            f"{cell(engines['jax'])} | {ratio and format(ratio, '.2f')} |")
    if ratios:
        lines += ["", f"Best peer over heddle: geomean {statistics.geometric_mean(ratios):.2f}, "
                      f"least {min(ratios):.2f}, {len(ratios)} rows."]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--probe", default="build/release/gpu_probe")
    parser.add_argument("--rows", default="build/bench-rows")
    parser.add_argument("--only", help="rows by name, with commas")
    parser.add_argument("--output", default=os.path.join(HERE, "results", "gpu"))
    options = parser.parse_args()
    with open(os.path.join(options.rows, "rows.json")) as file:
        rows = json.load(file)
    if options.only:
        rows = [row for row in rows if row["row"] in options.only.split(",")]
    results = []
    for row in rows:
        one = measure(options, row)
        if any(word in one["engines"]["heddle"].get("failed", "")
               for word in ("no NVIDIA driver", "there is none")):
            print(one["engines"]["heddle"]["failed"], file=sys.stderr)
            return 3
        print(row["row"], {name: cell(engine) for name, engine in one["engines"].items()}, flush=True)
        results.append(one)
    device = next((one["heddle"]["device"] for one in results if "heddle" in one), "no GPU")
    os.makedirs(options.output, exist_ok=True)
    stem = os.path.join(options.output, f"{datetime.date.today()}-rows")
    with open(stem + ".json", "w") as file:
        json.dump(results, file, indent=1)
    with open(stem + ".md", "w") as file:
        file.write(as_markdown(device, results))
    print(stem + ".md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
