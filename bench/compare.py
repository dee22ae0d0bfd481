"""Heddle against others in interleaved rounds; prints Markdown, writes JSON.

    compare.py models [NAME ...]   whole networks against ONNX Runtime, OpenVINO, Inductor
    compare.py products [NAME ...] single products and convolutions, also relative to the machine's roofs
    compare.py rows [NAME ...]     memory-bound rows: time over that of a copy in the same round,
                                   also for XLA:CPU through JAX
    compare.py cold [NAME ...]     from file to first result with nothing cached, and peak memory

All sides: the same number of threads, one stream, buffers bound once, one process each. A figure is the
median over the rounds; a ratio is taken round by round, and is the peer's time over heddle's.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import machine
import memory_rows
import networks

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))


def chosen(listed, key, names, otherwise):
    wanted = names or otherwise
    unknown = set(wanted) - {row[key] for row in listed}
    if unknown:
        sys.exit(f"compare: nothing named {', '.join(sorted(unknown))}; make it first")
    return [row for name in wanted for row in listed if row[key] == name]


def listing(folder, file):
    path = os.path.join(folder, file)
    if not os.path.exists(path):
        sys.exit(f"compare: {path} is missing; make it with bench/models or bench/rows first")
    with open(path) as opened:
        return json.load(opened)


def compare_models(options):
    cases = chosen(listing(options.models, "cases.json"), "case", options.names, networks.CASES)
    results = networks.compare(options, cases)
    return results, networks.as_markdown(results)


def compare_products(options):
    """The same for single products and convolutions; without names all of them."""
    options.models = options.products
    listed = listing(options.models, "cases.json")
    cases = chosen(listed, "case", options.names, [case["case"] for case in listed])
    if options.isa:  # before oneDNN's own name, and since
        os.environ |= {"HEDDLE_ISA": "avx2", "DNNL_MAX_CPU_ISA": "AVX2",
                       "ONEDNN_MAX_CPU_ISA": "AVX2"}
    if not options.peers:
        # OpenVINO's products run at up to 1.9 times the peak of AVX2 whatever it is told.
        left_out = ["inductor", "onnxruntime", "openvino"] if options.isa else ["inductor"]
        options.peers = [kind for kind in networks.installed() if kind not in left_out]
        if os.path.exists(os.path.join(options.probes, "onednn_probe")):
            options.peers.append("onednn")
    results = networks.compare(options, cases)
    return results, networks.as_markdown(results)


def compare_rows(options):
    listed = listing(options.rows, "rows.json")
    rows = chosen(listed, "row", options.names, [row["row"] for row in listed])
    results = memory_rows.compare(options, rows)
    return results, memory_rows.as_markdown(results)


# ---- from file to first result ----

def weight_bytes(folder):
    return sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder)
               if f.startswith("model.onnx"))


def cold_run(options, case, threads, cache):
    """Seconds and peak memory of one `heddle run` in a process of its own."""
    command = [options.heddle, "run", os.path.join(options.models, case["model"]), "--inputs",
               os.path.join(options.models, case["inputs"]), "--threads", str(threads), "--level",
               options.level, "--cache", cache]
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - begin
    if process.returncode != 0:
        return {"failed": f"status {process.returncode}: {errors.strip()[-400:]}"}
    return {"s": seconds, "cpu_s": usage.ru_utime + usage.ru_stime,
            "peak_bytes": usage.ru_maxrss * 1024}


def compare_cold(options):
    cases = chosen(listing(options.models, "cases.json"), "case", options.names, networks.CASES)
    results, rows = [], []
    for case in cases:
        weights = weight_bytes(os.path.dirname(os.path.join(options.models, case["model"])))
        for threads in options.threads:
            cache = tempfile.mkdtemp()
            first = cold_run(options, case, threads, cache)
            second = cold_run(options, case, threads, cache)
            shutil.rmtree(cache)
            results.append({"case": case["case"], "threads": threads, "first": first,
                            "second": second, "weight_bytes": weights})
            rows.append(cold_line(case, threads, first, second, weights))
            print(" ".join(rows[-1]), file=sys.stderr, flush=True)
    head = ["model", "threads", "first s", "its CPU s", "again s", "peak / weights, first", "again"]
    return results, machine.table(head, rows)


def cold_line(case, threads, first, second, weights):
    start = [case["case"], str(threads)]
    for result in [first, second]:
        if "failed" in result:
            return [*start, result["failed"].split("\n")[-1], "", "", "", ""]
    return [*start, f"{first['s']:.2f}", f"{first['cpu_s']:.2f}", f"{second['s']:.2f}",
            f"{first['peak_bytes'] / weights:.2f}", f"{second['peak_bytes'] / weights:.2f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["models", "products", "rows", "cold"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--heddle", default=os.path.join(ROOT, "build", "release", "heddle"))
    parser.add_argument("--probes", default=os.path.join(ROOT, "build", "release"),
                        help="folder of copy_probe and heddle_probe (-DHEDDLE_BENCH=ON)")
    parser.add_argument("--models", default=os.path.join(ROOT, "build", "bench-models"))
    parser.add_argument("--products", default=os.path.join(ROOT, "build", "bench-products"))
    parser.add_argument("--rows", default=os.path.join(ROOT, "build", "bench-rows"))
    parser.add_argument("--threads", default="1,2", type=lambda s: [int(n) for n in s.split(",")])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--round-seconds", type=float, default=0.1, help="of one contestant")
    parser.add_argument("--level", default="O2")
    parser.add_argument("--numerics", default="default", help="of heddle, for models")
    parser.add_argument("--amp", default="off", help="of heddle, for models; with anything but off "
                        "OpenVINO computes in bf16")
    parser.add_argument("--bound", type=float, default=1e-3, help="how far a peer may be from the recorded "
                        "outputs before its time means nothing, relative to the largest")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall",
                        help="cpu: the thread's own clock where one thread runs, for a busy machine")
    parser.add_argument("--peers", type=lambda s: s.split(",") if s else [], help="of models: "
                        f"{', '.join(networks.KINDS)}; of rows: {', '.join(memory_rows.PACKAGES)} "
                        "(default: those that Python finds)")
    parser.add_argument("--heaps", type=lambda s: s.split(","), default=["kept"],
                        help="of rows: kept also tries each peer with a heap that keeps its memory; "
                        "default does not (kept)")
    parser.add_argument("--isa", choices=["avx2"], help="of products: hold heddle and oneDNN to it (the "
                        "others cannot be, and do not take part)")
    parser.add_argument("--peer-only", action="store_true", help="without heddle")
    parser.add_argument("--out", help="writes OUT.json and OUT.md")
    options = parser.parse_args()
    header = machine.about(ROOT)
    measure = {"models": compare_models, "products": compare_products, "rows": compare_rows,
               "cold": compare_cold}[options.what]
    results, markdown = measure(options)
    markdown = machine.as_markdown(header) + "\n" + markdown
    print(markdown)
    machine.write(options.out, header, options.rounds, results, markdown)


if __name__ == "__main__":
    main()
