"""Memory-bound rows: heddle and the best of every peer in turn; `compare.py rows`.

The best of a peer: the fastest of its forms, with the C library's heap as it is or told to keep its
memory. Errors are in units in the last place (f32) of the larger of the expected element and the root
mean square of its output, against f64 rounded to f32; integers are counted where they differ.
"""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

import contestants
import machine
import peers

PACKAGES = {"onnxruntime": "onnxruntime", "openvino": "openvino", "xla": "jax", "inductor": "torch"}
HEAPS = {"": None,
         "kept": {"MALLOC_TRIM_THRESHOLD_": str(1 << 34), "MALLOC_TOP_PAD_": str(1 << 26),
                  "MALLOC_MMAP_MAX_": "0", "MALLOC_ARENA_MAX": "1"}}
TRIAL_RUNS = 5
# Beyond that an output is wrong: |a-b| by max|b|, and the share of integers that may differ (a value
# between two roundings, two equal scores).
BOUND, INTEGERS_BOUND = 1e-3, 1e-3


def installed():
    return [kind for kind, package in PACKAGES.items() if importlib.util.find_spec(package)]


# ---- errors ----

def error_of(got, expected):
    """Of all outputs together: {"ulp", "relative_to_max", "integers_off"}."""
    worst = {"ulp": 0.0, "relative_to_max": 0.0, "integers_off": 0.0}
    for name, want in expected.items():
        have = got.get(name)
        if have is None or have.size != want.size:
            return {**worst, "relative_to_max": float("inf")}
        have = have.reshape(want.shape)
        if want.dtype != np.float32:
            off = np.mean(have.astype(np.int64) != want.astype(np.int64))
            worst["integers_off"] = max(worst["integers_off"], float(off))
            continue
        difference = np.abs(have.astype(np.float64) - want)
        if not np.isfinite(difference).all():
            return {**worst, "relative_to_max": float("inf")}
        size = np.abs(want)
        typical = np.float32(np.sqrt(np.mean(np.square(want, dtype=np.float64))))
        ulps = difference / np.spacing(np.maximum(size, max(typical, np.float32(1e-37))))
        relative = difference.max(initial=0) / max(size.max(initial=0), 1e-37)
        worst["ulp"] = max(worst["ulp"], float(ulps.max(initial=0)))
        worst["relative_to_max"] = max(worst["relative_to_max"], float(relative))
    return worst


def check(name, error):
    if not (error["relative_to_max"] <= BOUND and error["integers_off"] <= INTEGERS_BOUND):
        raise contestants.Failed(f"{name}: outputs are off by {error['relative_to_max']:.1e} of "
                                 f"max|b|, {error['integers_off']:.1e} of the integers")


# ---- peers ----

def models_of(options, kind, row):
    """form -> (kind for peers.py, its model)."""
    if kind == "xla":
        return {"jax": ("xla", row["row"])}
    if kind == "inductor":
        return {form: ("inductor_row", f"{row['row']}.{form}") for form in row["torch_forms"]}
    return {form: (kind, os.path.join(options.rows, f"{row['row']}.{form}.onnx"))
            for form in row["onnx_forms"]}


class Trials:
    """Starts one variant of a peer after the other and keeps the fastest."""

    def __init__(self, options, row, threads, clock, expected):
        self.options, self.row, self.threads, self.clock = options, row, threads, clock
        self.expected = expected
        self.inputs = os.path.join(options.rows, f"{row['row']}.inputs.npz")
        self.tried, self.failed = [], []

    def start(self, kind, form, model, heap):
        peer = contestants.Peer(*model, self.inputs, self.threads, HEAPS[heap])
        try:
            with tempfile.TemporaryDirectory() as folder:
                peer.error = error_of(peer.outputs(os.path.join(folder, "out.npz")), self.expected)
            check(f"{kind} {form}", peer.error)
            peer.trial_ms = min(peer.round(TRIAL_RUNS)[self.clock]) / 1e6
        except contestants.Failed:
            peer.close()
            raise
        peer.kind, peer.form, peer.heap = kind, form, heap
        self.tried.append({"kind": kind, "form": form, "heap": heap, "ms": peer.trial_ms,
                           "error": peer.error})
        return peer

    def better(self, best, kind, form, model, heap):
        try:
            peer = self.start(kind, form, model, heap)
        except contestants.Failed as failure:
            heap = f", heap {heap}" if heap else ""
            self.failed.append(f"{form}{heap}: {failure}")
            return best
        if best and best.trial_ms <= peer.trial_ms:
            peer.close()
            return best
        if best:
            best.close()
        return peer

    def best_of(self, kind):
        """None where no variant works."""
        best = None
        models = models_of(self.options, kind, self.row)
        for form, model in models.items():
            best = self.better(best, kind, form, model, "")
        if best and "kept" in self.options.heaps:
            best = self.better(best, kind, best.form, models[best.form], "kept")
        return best


# ---- heddle ----

def hlo_of(options, row):
    kept = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rows", f"{row['row']}.hlo")
    return kept if os.path.exists(kept) else os.path.join(options.rows, f"{row['row']}.hlo")


def ask_heddle(options, *arguments):
    done = subprocess.run([options.heddle, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise contestants.Failed(f"heddle {arguments[0]}: status {done.returncode}: "
                                 f"{done.stderr.strip()[-300:]}")
    return done.stdout


def heddle_facts(options, row, threads):
    """Kernels, launches, phases, compile time, temporaries; refusals by code."""
    told = json.loads(ask_heddle(options, "explain", hlo_of(options, row), "--threads", str(threads),
                                 "--level", options.level, "--cache", "off", "--json", "-"))
    kernels = [kernel for kernel in told["kernels"] if not kernel["once"]]
    refused = {}
    for refusal in told["refusals"]:
        refused.setdefault(refusal["code"], []).append(
            f"{refusal['producer']} into {refusal['consumer']}: {refusal['reason']}")
    return {"kernels": len(kernels), "launches": len(told["order"]),
            "phases": sum(kernel["phases"] * len(kernel["commands"]) for kernel in kernels),
            "compile_ms": sum(told["steps_ms"].values()),
            "temporary_bytes": told["memory_bytes"]["temporaries"], "refused": refused}


def heddle_error(options, row, threads, inputs, expected):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out.npz")
        ask_heddle(options, "run", hlo_of(options, row), "--inputs", inputs, "--outputs", path,
                   "--threads", str(threads), "--level", options.level, "--cache", "off")
        error = error_of(peers.load_npz(path), expected)
    check("heddle", error)
    return error


# ---- one row ----

def measure(options, row, threads):
    clock = "cpu_ns" if threads == 1 and options.clock == "cpu" else "wall_ns"
    expected = peers.load_npz(os.path.join(options.rows, f"{row['row']}.expected.npz"))
    trials = Trials(options, row, threads, clock, expected)
    result = {"row": row["row"], "threads": threads, "clock": clock, "bytes": row["bytes"],
              "failed": [f"{form}: not exported: {why}" for form, why in row["failed"].items()]}
    taking_part = [contestants.Copy(os.path.join(options.probes, "copy_probe"), row["bytes"], threads)]
    try:
        if not options.peer_only:
            result["heddle"] = heddle_facts(options, row, threads)
            result["heddle"]["error"] = heddle_error(options, row, threads, trials.inputs, expected)
            taking_part.append(contestants.Heddle(
                os.path.join(options.probes, "heddle_probe"), hlo_of(options, row), threads,
                options.level, trials.inputs))
        for kind in installed() if options.peers is None else options.peers:
            peer = trials.best_of(kind)
            taking_part += [peer] if peer else []
        del trials.expected, expected
        counts = contestants.run_counts(taking_part, options.round_seconds)
        rounds = contestants.interleave(taking_part, options.rounds, counts)
    finally:
        for contestant in taking_part:
            contestant.close()
    fastest = [contestants.Copy.fastest(r, clock) for r in rounds.pop("copy")]
    copies = np.array([ns for _, ns in fastest])
    result |= {"runs_per_round": counts, "copy_ms": machine.spread(copies / 1e6),
               "copy_ways": {way: sum(w == way for w, _ in fastest) for way, _ in fastest},
               "load": os.getloadavg()[0], "tried": trials.tried, "versus": []}
    result["failed"] += trials.failed
    times = {name: np.array([np.median(r[clock]) for r in measured])
             for name, measured in rounds.items()}
    for contestant in taking_part[1:]:
        ns = times[contestant.name]
        told = {"ms": machine.spread(ns / 1e6), "factor": machine.spread(ns / copies)}
        if contestant.name == "heddle":
            result["heddle"] |= told
            continue
        if "heddle" in times:
            told["ratio"] = machine.spread(ns / times["heddle"])
        result["versus"].append({"name": contestant.name, "kind": contestant.kind,
                                 "form": contestant.form, "heap": contestant.heap,
                                 "error": contestant.error, **told})
    result["versus"].sort(key=lambda peer: peer["ms"]["median"])
    return result


def compare(options, rows):
    results = []
    for row in rows:
        for threads in options.threads:
            try:
                result = measure(options, row, threads)
            except contestants.Failed as failure:
                result = {"row": row["row"], "threads": threads, "failed": [str(failure)]}
            results.append({**result, "what": row["what"]})
            print(" | ".join(line_of(results[-1])), *result["failed"], sep="\n  ",
                  file=sys.stderr, flush=True)
    return results


# ---- the report ----

HEAD = ["row", "what", "threads", "copy ms", "heddle, times copy", "of rounds", "kernels, launches, phases",
        "ulp", *PACKAGES, "best peer / heddle", "best peer", "its ulp"]


def error_text(error):
    off = f", {error['integers_off']:.1e} of integers" if error["integers_off"] else ""
    return f"{error['ulp']:.1f}{off}"


def line_of(result):
    line = [result["row"], result["what"], str(result["threads"])]
    if "copy_ms" not in result:
        return [*line, "failed", *[""] * (len(HEAD) - 4)]
    ours, versus = result.get("heddle"), result["versus"]
    line.append(f"{result['copy_ms']['median']:.3f}")
    if ours:
        factor = ours["factor"]
        line += [f"**{factor['median']:.2f}**", f"{factor['min']:.2f}-{factor['max']:.2f}",
                 f"{ours['kernels']}, {ours['launches']}, {ours['phases']}",
                 error_text(ours["error"])]
    else:
        line += [""] * 4
    for kind in PACKAGES:
        found = [peer for peer in versus if peer["kind"] == kind]
        line.append(f"{found[0]['factor']['median']:.2f}" if found else "-")
    if not versus:
        return [*line, "-", "-", "-"]
    best = versus[0]
    ratio = f"{best['ratio']['median']:.2f}" if "ratio" in best else "-"
    heap = ", kept heap" if best["heap"] else ""
    return [*line, ratio, f"{best['kind']} {best['form']}{heap}", error_text(best["error"])]


def geomean(values):
    return float(np.exp(np.mean(np.log(values))))


def summary(results):
    """Lines: geometric means and the three worst, for every number of threads."""
    lines = []
    for threads in sorted({result["threads"] for result in results}):
        rows = [r for r in results if r["threads"] == threads and "copy_ms" in r]
        ours = {r["row"]: r["heddle"]["factor"]["median"] for r in rows if "heddle" in r}
        best = {r["row"]: r["versus"][0]["factor"]["median"] for r in rows if r["versus"]}
        ratios = {r["row"]: r["versus"][0]["ratio"]["median"] for r in rows
                  if "heddle" in r and r["versus"]}
        for what, found, order in [("heddle by copy", ours, -1), ("best peer by copy", best, -1),
                                   ("best peer by heddle", ratios, 1)]:
            if not found:
                continue
            worst = sorted(found.items(), key=lambda item: order * item[1])[:3]
            named = ", ".join(f"{row} {x:.2f}" for row, x in worst)
            lines.append(f"{threads} thread(s), {what}: {geomean(list(found.values())):.2f} in geometric "
                         f"mean over {len(found)} rows; the worst: {named}.")
    return lines


def as_markdown(results):
    notes = [f"- {r['row']}, {r['threads']} thread(s): {text.splitlines()[-1]}"
             for r in results for text in r["failed"]]
    parts = [machine.table(HEAD, [line_of(result) for result in results]), *summary(results), "", *notes]
    return "\n".join(parts).rstrip() + "\n"
