"""Whole networks: heddle and every peer in turn, one process each; `compare.py models`."""
import importlib.util
import os
import sys
import tempfile

import numpy as np

import contestants
import machine
import onednn
import peers
import roofs

# What is measured without names: every network once, the two sizes that BERT is compared at.
CASES = ["resnet18", "resnet50", "vgg16", "repvgg_a0_train", "repvgg_a0_deploy", "repvgg_b0_deploy",
         "mobilenet_v3", "squeezenet", "densenet121", "efficientnet_b0", "convnext_tiny", "vit_b16",
         "swin_t", "minilm_1x128", "bert_base_1x128", "bert_base_8x200", "transformer", "gpt2_1x128",
         "gpt2_decode", "llama_1x128", "llama_decode", "conformer", "crnn", "deepspeech2", "dien",
         "dlrm"]
PACKAGES = {"onnxruntime": "onnxruntime", "openvino": "openvino", "inductor": "torch"}
KINDS = [*peers.KINDS, "onednn"]


def installed():
    return [kind for kind, package in PACKAGES.items() if importlib.util.find_spec(package)]


def without_ones(shape):
    return [extent for extent in shape if extent != 1]


def error_of(got, expected_path):
    """Largest |a-b| by max|b| over the outputs; infinite where shapes differ, but for extents of 1:
    OpenVINO gives DeepSpeech2's [100,1,29] as [1,100,29]."""
    worst = 0.0
    for name, want in peers.load_npz(expected_path).items():
        if name not in got or without_ones(got[name].shape) != without_ones(want.shape):
            return float("inf")
        value = got[name].reshape(want.shape).astype(np.float64)
        difference = np.abs(value - want).max(initial=0)
        worst = max(worst, float(difference / max(np.abs(want).max(initial=0), 1e-30)))
    return worst


def start_peer(options, kind, model, inputs, threads):
    if kind == "onednn":
        return onednn.OneDnn(os.path.join(options.probes, "onednn_probe"), model, inputs, threads)
    small = {"HEDDLE_PEER_PRECISION": "bf16"} if options.amp != "off" else None
    return contestants.Peer(kind, model, inputs, threads, small)


def start_peers(options, case, threads):
    """([started], [what failed])."""
    model, inputs, expected = (os.path.join(options.models, case[what])
                               for what in ["model", "inputs", "expected"])
    started, failed = [], []
    for kind in options.peers or installed():
        try:
            peer = start_peer(options, kind, model, inputs, threads)
            with tempfile.TemporaryDirectory() as folder:
                error = error_of(peer.outputs(os.path.join(folder, "out.npz")), expected)
            if not error <= options.bound:
                peer.close()
                raise contestants.Failed(f"{kind}: outputs are off by {error:.1e} of max|b|")
            peer.kind, peer.error = kind, error
            started.append(peer)
        except contestants.Failed as failure:
            failed.append(str(failure))
    return started, failed


def measure(options, case, threads):
    clock = "cpu_ns" if options.clock == "cpu" and threads == 1 else "wall_ns"
    taking_part, failed = start_peers(options, case, threads)
    ours = roof = None
    try:
        if not options.peer_only:
            ours = contestants.Heddle(
                os.path.join(options.probes, "heddle_probe"),
                os.path.join(options.models, case["model"]), threads, options.level,
                os.path.join(options.models, case["inputs"]), options.numerics, options.amp)
            taking_part.append(ours)
        if ours and "flops" in case:
            roof = roofs.Roof(options.probes, case, threads)
            taking_part.append(roof)
        counts = contestants.run_counts(taking_part, options.round_seconds)
        rounds = contestants.interleave(taking_part, options.rounds, counts)
    except contestants.Failed as failure:
        return {"failed": [*failed, str(failure)]}
    finally:
        for contestant in taking_part:
            contestant.close()
    measured_roofs = rounds.pop(roof.name) if roof else []
    taking_part = [c for c in taking_part if c is not roof]
    ms = {c: np.array([np.median(r[clock]) / 1e6 for r in rounds[c.name]]) for c in taking_part}
    result = {"clock": clock, "runs_per_round": counts, "failed": failed, "versus": []}
    if ours:
        result["latency_ms"] = machine.spread(ms[ours])
    if roof:
        result["roof"] = roofs.shares(case, ms[ours], measured_roofs, clock)
    for peer in taking_part:
        if peer is ours:
            continue
        row = {"name": peer.name, "kind": peer.kind, "error": peer.error,
               "latency_ms": machine.spread(ms[peer])}
        if ours:
            row["ratio"] = machine.spread(ms[peer] / ms[ours])
        result["versus"].append(row)
    if result["versus"]:
        result["best"] = min(result["versus"], key=lambda row: row["latency_ms"]["median"])["kind"]
    return result


def compare(options, cases):
    results = []
    for case in cases:
        for threads in options.threads:
            result = measure(options, case, threads)
            results.append({"case": case["case"], "threads": threads, "result": result,
                            "load": os.getloadavg()[0]})
            print(" ".join([*line_of(results[-1], KINDS),
                            *roofs.cells(results[-1]["result"].get("roof"))]),
                  file=sys.stderr, flush=True)
    return results


def line_of(row, kinds):
    result = row["result"]
    by_kind = {versus["kind"]: versus for versus in result.get("versus", [])}
    ours = result.get("latency_ms")
    line = [row["case"], str(row["threads"]), f"{ours['median']:.2f}" if ours else "-"]
    for kind in kinds:
        line.append(f"{by_kind[kind]['latency_ms']['median']:.2f}" if kind in by_kind else "-")
    best = by_kind.get(result.get("best"))
    ratio = best.get("ratio") if best else None
    line.append(f"**{ratio['median']:.2f}**" if ratio else "-")
    line.append(f"{ratio['min']:.2f}-{ratio['max']:.2f}" if ratio else "-")
    line.append(best["kind"] if best else "-")
    return line


def geomeans(results):
    """A line of text for every number of threads: the geometric mean of the ratio to the best peer."""
    lines = []
    for threads in sorted({row["threads"] for row in results}):
        ratios = [versus["ratio"]["median"] for row in results if row["threads"] == threads
                  for versus in row["result"].get("versus", [])
                  if "ratio" in versus and versus["kind"] == row["result"]["best"]]
        if ratios:
            lines.append(f"{threads} thread(s): {np.exp(np.mean(np.log(ratios))):.3f} of the best peer "
                         f"in geometric mean over {len(ratios)} networks, lowest {min(ratios):.2f}.")
    return lines


def as_markdown(results):
    kinds = [kind for kind in KINDS
             if any(versus["kind"] == kind for row in results
                    for versus in row["result"].get("versus", []))]
    head = ["network", "threads", "heddle ms", *(f"{kind} ms" for kind in kinds),
            "best peer / heddle", "of rounds", "best peer"]
    lines = [line_of(row, kinds) for row in results]
    if any("roof" in row["result"] for row in results):
        head += roofs.HEAD
        lines = [line + roofs.cells(row["result"].get("roof"))
                 for line, row in zip(lines, results)]
    text = machine.table(head, lines)
    notes = [f"{row['case']}, {row['threads']} thread(s): {failure.splitlines()[-1]}"
             for row in results for failure in row["result"]["failed"]]
    means = geomeans(results) + roofs.geomeans(results)
    parts = ["\n".join(means), "\n".join(f"- {note}" for note in notes)]
    return "\n".join([text, *(part + "\n" for part in parts if part)])
