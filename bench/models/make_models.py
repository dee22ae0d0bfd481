"""Full-size networks with random weights, exported by torch: make_models.py [-o DIR] [NAME ...]

Writes DIR/NAME/model.onnx and, for every size the network is run at, inputs*.npz and expected*.npz
(what ONNX Runtime gives with all graph optimisations off), and DIR/cases.json, the list of all
cases. NAME_dynamo is NAME by torch's newer exporter. Existing models are left alone (--again makes
them anew); each export runs in a separate process, and one that fails does not stop the others.
"""
import argparse
import json
import multiprocessing
import os
import shutil
import sys
import traceback

import numpy as np
import onnx
import onnxruntime as ort
import torch

import language
import recommend
import speech
import vision

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT_FOLDER = os.path.join(HERE, "..", "..", "build", "bench-models")
DYNAMO = "_dynamo"
DYNAMO_OPSET = 18

# Name -> maker of a specification (common.py).
MODELS = {**vision.MODELS, **language.MODELS, **speech.MODELS, **recommend.MODELS}
# Their axes are dynamic: the newer exporter is told of that in another way.
ONLY_TORCHSCRIPT = [name for name in MODELS if name.endswith("_dynamic")]


def all_names():
    return [*MODELS, *(name + DYNAMO for name in MODELS if name not in ONLY_TORCHSCRIPT)]


def made(name):
    """The specification of a network: every time with the same weights and inputs."""
    torch.manual_seed(0)
    return MODELS[name.removesuffix(DYNAMO)]()


def export(spec, path, dynamo, external_data=True):
    arguments = next(iter(spec["inputs"].values()))
    more = {"opset_version": spec["opset"], "dynamo": False, "do_constant_folding": True,
            "dynamic_axes": spec["axes"]}
    if dynamo:
        more = {"opset_version": max(spec["opset"], DYNAMO_OPSET), "dynamo": True,
                "external_data": external_data}
    with torch.no_grad():
        torch.onnx.export(spec["module"], tuple(arguments.values()), path,
                          input_names=list(arguments), output_names=spec["outputs"], **more)


def unoptimised(path):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def outputs_of(session, inputs):
    """Name -> array; says so where an output would show nothing."""
    names = [port.name for port in session.get_outputs()]
    outputs = dict(zip(names, session.run(names, inputs)))
    for name, value in outputs.items():
        if not np.isfinite(value).all():
            raise ValueError(f"output {name} is not finite")
        if value.size > 1 and value.std() == 0:
            raise ValueError(f"output {name} is the same everywhere")
    return outputs


def record(name, spec, folder):
    """Inputs and expected outputs of every case; the rows of cases.json."""
    path = os.path.join(folder, name, "model.onnx")
    session = unoptimised(path)
    wanted = [i.name for i in session.get_inputs()]
    rows = []
    for case, tensors in spec["inputs"].items():
        inputs = {n: tensors[n].numpy() for n in wanted}
        suffix = f"_{case}" if case else ""
        files = {what: os.path.join(name, f"{what}{suffix}.npz") for what in ["inputs", "expected"]}
        np.savez(os.path.join(folder, files["inputs"]), **inputs)
        np.savez(os.path.join(folder, files["expected"]), **outputs_of(session, inputs))
        rows.append({"case": name + suffix, "model": os.path.join(name, "model.onnx"), **files})
    return rows


def described(name, folder, rows):
    graph = onnx.load(os.path.join(folder, name, "model.onnx"), load_external_data=False).graph
    size = sum(os.path.getsize(os.path.join(folder, name, f))
               for f in os.listdir(os.path.join(folder, name)) if f.startswith("model"))
    return (f"{name}: {len(graph.node)} nodes, {size / 1e6:.0f} MB, cases "
            f"{', '.join(row['case'] for row in rows)}")


def listed(folder):
    path = os.path.join(folder, "cases.json")
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return json.load(file)


def is_complete(name, folder):
    rows = [row for row in listed(folder) if os.path.dirname(row["model"]) == name]
    return rows and all(os.path.exists(os.path.join(folder, row[what]))
                        for row in rows for what in ["model", "inputs", "expected"])


def make(name, folder):
    os.makedirs(os.path.join(folder, name), exist_ok=True)
    spec = made(name)
    try:
        export(spec, os.path.join(folder, name, "model.onnx"), name.endswith(DYNAMO))
        rows = record(name, spec, folder)
    except Exception:
        traceback.print_exc()
        shutil.rmtree(os.path.join(folder, name))
        sys.exit(1)
    kept = [row for row in listed(folder) if os.path.dirname(row["model"]) != name]
    with open(os.path.join(folder, "cases.json"), "w") as file:
        json.dump(kept + rows, file, indent=1)
    print(described(name, folder, rows), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--folder", default=DEFAULT_FOLDER)
    parser.add_argument("--again", action="store_true", help="also makes existing models anew")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(all_names())} (default: all)")
    options = parser.parse_args()
    unknown = set(options.names) - set(all_names())
    if unknown:
        sys.exit(f"make_models: no model named {', '.join(sorted(unknown))}")
    failed = []
    for name in options.names or all_names():
        if is_complete(name, options.folder) and not options.again:
            continue
        process = multiprocessing.get_context("fork").Process(target=make,
                                                              args=(name, options.folder))
        process.start()
        process.join()
        if process.exitcode != 0:
            failed.append(name)
            print(f"{name}: FAILED", flush=True)
    if failed:
        sys.exit(f"make_models: not made: {', '.join(failed)}")


if __name__ == "__main__":
    main()
