"""Runs the kernels of the rows on this machine's GPU: correctness, and speed beside torch.compile and JAX.

    HEDDLE_GPU_BUDGET=540 python3 bench/gpu_rows.py --out FOLDER      (--list, --only, --dry)

Runs from a checkout or from a folder made by script/gpu_kit, wherever it is. Items, in this order: the
machine's facts; `test:ROW`, every kernel of a row at small extents against the reference interpreter;
`suite:…` and `model:…`, whole programs on the GPU (gpu_programs.py); `row:ROW`, the full row: checked, and
timed with its arrays on the device; `network:NAME`, timed; `torch:…`, `jax:…` and `torchnet:…`, the peers
of several rows or networks each (gpu_peers.py). Rows and networks are alone: what runs beside, --lanes at a
time, is paused meanwhile.
Inputs are made when an item is reached, from a fixed seed. FOLDER/results.jsonl gets one line per item,
at once (gpu_queue.py): the same command resumes where the last one ended. FOLDER/summary.txt is
written at the end.

--dry: uses a stand-in for the GPU (libhost_gpu.so), at small extents; every time is "not measured".
Exit status: 0 all that ran is correct, 1 something is not, 3 no GPU.
"""
import argparse
import datetime
import fnmatch
import os
import signal
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(HERE, "rows")]

import gpu_items  # noqa: E402
import gpu_peers  # noqa: E402
import gpu_programs  # noqa: E402
import gpu_queue  # noqa: E402

DEFAULT_BUDGET = 540
LIMITS = {"facts": 60, "test": 90, "row": 90, "torch": 240, "jax": 240, "suite": 120, "model": 60,
          "network": 60, "torchnet": 240}
TIMED = ("row", "network")
DRY_FACTOR = 4  # the host's compiler and the host in place of a GPU


def child(options, name):
    words = [sys.executable, os.path.abspath(__file__), "--child", name, "--programs",
             options.programs, "--out", options.out]
    return words + (["--dry"] if options.dry else [])


def all_items(options):
    def item(name, **more):
        limit = LIMITS[name.split(":")[0]] * (DRY_FACTOR if options.dry else 1)
        timed = name.split(":")[0] in TIMED
        return gpu_queue.Item(name, child(options, name), limit, alone=timed, background=not timed,
                              **more)

    rows = gpu_items.row_names()
    checked, networks = gpu_programs.names(options.programs)
    items = [item("facts"), item("test:streams", needs="facts"), item("test:hal", needs="facts")]
    items += [item(f"test:{row}", needs="facts") for row in rows]
    items += [item(name, needs="facts") for name in checked]
    items += [item(f"row:{row}", needs=f"test:{row}") for row in rows]
    items += [item(name, needs="facts") for name in networks]
    for peer, names in [("torch", rows), ("jax", rows),
                        ("torchnet", [name.split(":")[1] for name in networks])]:
        shares = [names[share::gpu_peers.SHARES] for share in range(gpu_peers.SHARES)]
        items += [item(f"{peer}:{'+'.join(share)}", needs="facts") for share in shares if share]
    return items


def chosen(items, only):
    """By patterns of items' or rows' names; the facts always."""
    if not only:
        return items
    patterns = only.split(",")
    return [item for item in items
            if item.name == "facts" or any(fnmatch.fnmatch(item.name, p) or
                                           p in item.name.split(":")[-1].split("+") for p in patterns)]


def text_of(value):
    return f"{value:.1f}" if isinstance(value, (int, float)) else str(value)


def measured_peers(records):
    """By "torch:a1": what the shares of the peers measured."""
    return {f"{name.split(':')[0]}:{what}": result for name, record in records.items()
            for what, result in record.get("measured", {}).items()}


def networks_as_markdown(records, peers_of):
    names = [name.split(":")[1] for name in records if name.startswith("network:")]
    if not names:
        return []
    lines = ["", "Networks, f32, µs of a run with inputs and outputs on the host:", "",
             "| network | heddle | launches | torch eager | torch.compile, graphs | torch.compile / heddle |",
             "|" + "---|" * 6]
    for name in names:
        ours, peer = records[f"network:{name}"], peers_of.get(f"torchnet:{name}", {})
        us, theirs = ours.get("us", ours["status"]), peer.get("us", "-")
        ratio = f"{theirs / us:.2f}" if all(isinstance(x, float) for x in (us, theirs)) else "-"
        lines.append(f"| {name} | {text_of(us)} | {ours.get('launches', '-')} | "
                     f"{text_of(peer.get('eager_us', '-'))} | {text_of(theirs)} | {ratio} |")
    return lines


def as_markdown(items, records):
    facts = records.get("facts", {})
    lines = [f"# The rows on {facts.get('device', 'no GPU')}, {datetime.date.today()}", "",
             "µs of a run, arrays on the device, runs back to back; copy: the row's bytes by the driver's own "
             "copy; one by one: without recorded launches; waited for: a session's run, by the host's clock.", "",
             "| row | kernels at small extents | the row | error of max | launches | copy | heddle | "
             "×copy | one by one | waited for | torch.compile | JAX | best peer / heddle |", "|" + "---|" * 13]
    ratios = []
    peers_of = measured_peers(records)

    def told(name):
        record = records.get(name) or peers_of.get(name)
        if record is None:
            return "not run"
        if record.get("status", gpu_queue.DONE) != gpu_queue.DONE:
            return record["status"]
        return text_of(record.get("us", "failed"))

    asked = {word for item in items for word in item.name.split(":")[-1].split("+")}
    for row in filter(asked.__contains__, gpu_items.row_names()):
        ours = records.get(f"row:{row}", {})
        us, copy = ours.get("us"), ours.get("copy_us")
        numbers = [x for x in (us, copy) if isinstance(x, (int, float))]
        peers = [peers_of.get(f"{peer}:{row}", {}).get("us") for peer in ("torch", "jax")]
        peers = [x for x in peers if isinstance(x, (int, float))]
        ratio = min(peers) / us if peers and len(numbers) == 2 and us > 0 else None
        if ratio:
            ratios.append(ratio)
        lines.append("| " + " | ".join([
            row, records.get(f"test:{row}", {}).get("status", "not run"),
            ours.get("status", "not run"), f"{ours['error_of_max']:.1e}" if "error_of_max" in ours else "-",
            str(ours.get("launches", "-")), text_of(copy if copy is not None else "-"),
            told(f"row:{row}"), f"{us / copy:.2f}" if len(numbers) == 2 and copy > 0 else "-",
            text_of(ours.get("apart_us", "-")), text_of(ours.get("run_us", "-")),
            told(f"torch:{row}"), told(f"jax:{row}"), f"{ratio:.2f}" if ratio else "-"]) + " |")
    if ratios:
        lines += ["", f"Best peer over heddle: geomean {statistics.geometric_mean(ratios):.2f}, "
                      f"least {min(ratios):.2f}, {len(ratios)} rows."]
    lines += networks_as_markdown(records, peers_of)
    left = [item.name for item in items if item.name not in records]
    lines += ["", f"{len(items) - len(left)} of {len(items)} items; left: {', '.join(left) or 'none'}.", ""]
    lines += [f"- {name}: {record['status']}: {record.get('error', '')} {record.get('stderr', '')[-200:]}".rstrip()
              for name, record in records.items() if record["status"] != gpu_queue.DONE]
    lines += [f"- {name}: {record['error']}" for name, record in peers_of.items() if "error" in record]
    return "\n".join(lines).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--budget", type=float, help="seconds [HEDDLE_GPU_BUDGET, else 540]",
                        default=float(os.environ.get("HEDDLE_GPU_BUDGET") or DEFAULT_BUDGET))
    parser.add_argument("--out", help="where the results go", default=os.path.join(
        HERE, "results", "gpu", str(datetime.date.today())))
    parser.add_argument("--programs", help="the folder of gpu_probe and gpu_run_test",
                        default=gpu_items.program_folder(ROOT))
    parser.add_argument("--lanes", type=int, default=max(1, min(8, (os.cpu_count() or 1) // 2)),
                        help="items beside each other that are not timed")
    parser.add_argument("--only", help="items or rows, separated by commas; patterns")
    parser.add_argument("--list", action="store_true", help="lists the items, their limits and known results")
    parser.add_argument("--again", action="store_true", help="also runs what failed before")
    parser.add_argument("--dry", action="store_true", help="uses a stand-in for the GPU")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.out, options.programs = os.path.abspath(options.out), os.path.abspath(options.programs)
    if options.child:
        return gpu_items.run(options.child, options.programs, options.out, options.dry)
    items = chosen(all_items(options), options.only)
    results = os.path.join(options.out, "results.jsonl")
    if options.list:
        known = gpu_queue.read_results(results)
        for item in items:
            print(f"{item.name:20} {item.limit:4.0f} s  {known.get(item.name, {}).get('status', '-')}")
        return 0
    os.makedirs(options.out, exist_ok=True)
    environment = gpu_items.environment(ROOT, options.programs, options.out, options.dry)
    queue = gpu_queue.Queue(items, results, options.budget, options.again, environment=environment, lanes=options.lanes,
                            say=lambda text: print(text, file=sys.stderr, flush=True))
    signal.signal(signal.SIGTERM, queue.stop)
    signal.signal(signal.SIGINT, queue.stop)
    records = queue.run()
    with open(os.path.join(options.out, "summary.txt"), "w") as file:
        file.write(as_markdown(items, records))
    print(os.path.join(options.out, "summary.txt"))
    if records.get("facts", {}).get("status") not in (None, gpu_queue.DONE):
        print(f"gpu_rows: error: {records['facts'].get('error', 'no GPU')}", file=sys.stderr)
        return 3
    return int(any(record["status"] != gpu_queue.DONE for name, record in records.items()
                   if name.split(":")[0] in ("test", "row")))


if __name__ == "__main__":
    sys.exit(main())
