"""Writes one test model: <name>/model.onnx, inputs.npz, expected.npz.

expected.npz holds what ONNX Runtime gives with all graph optimisations off.
Versions used: torch 2.15, transformers 5, onnx 1.23, onnxruntime 1.31, numpy 2.4.
"""
import os

import numpy as np
import onnx
import onnxruntime as ort

HERE = os.path.dirname(os.path.abspath(__file__))
MOST_BYTES = 300_000


def folder(name):
    path = os.path.join(HERE, name)
    os.makedirs(path, exist_ok=True)
    return path


def record(name, model_path, inputs, short_names=False):
    """Runs the model on `inputs` (name -> array), writes both files."""
    model = onnx.load(model_path)
    strip(model)
    if short_names:
        ports = [port.name for port in [*model.graph.input, *model.graph.output]]
        shorten(model.graph, {name: name for name in ["", *ports]})
    onnx.save(model, model_path)
    size = os.path.getsize(model_path)
    assert size < MOST_BYTES, f"{name}: {size} bytes"
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = ort.InferenceSession(model_path, options, providers=["CPUExecutionProvider"])
    wanted = {i.name for i in session.get_inputs()}
    assert wanted == set(inputs), f"{name}: inputs {sorted(wanted)}, given {sorted(inputs)}"
    names = [o.name for o in session.get_outputs()]
    outputs = session.run(names, inputs)
    np.savez(os.path.join(folder(name), "inputs.npz"), **inputs)
    np.savez(os.path.join(folder(name), "expected.npz"), **dict(zip(names, outputs)))
    ops = {}
    for node in model.graph.node:
        ops[node.op_type] = ops.get(node.op_type, 0) + 1
    print(f"{name}: opset {model.opset_import[0].version}, {len(model.graph.node)} nodes, "
          f"{size} bytes, {ops}")


def strip(model):
    """Takes out what only debugging needs: stack traces, shapes of intermediate values."""
    model.doc_string = ""
    del model.metadata_props[:]
    del model.graph.value_info[:]
    del model.graph.metadata_props[:]
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    for value in list(model.graph.input) + list(model.graph.output) + list(model.graph.initializer):
        value.doc_string = ""
        del value.metadata_props[:]


def shorten(graph, names):
    """Numbers for names of nodes and inner values, which are most of a model with thousands of small
    nodes. `names`: old -> new, grown by what is met; a body sees the names around it."""
    def new(name):
        return names.setdefault(name, str(len(names)))

    for value in [*graph.input, *graph.initializer, *graph.output]:
        value.name = new(value.name)
    for node in graph.node:
        node.name = ""
        for part in [node.input, node.output]:
            part[:] = [new(name) for name in part]
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                shorten(attribute.g, names)


def model_path(name):
    return os.path.join(folder(name), "model.onnx")
