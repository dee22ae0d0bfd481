"""Exports of PyTorch as its two exporters make them, with dynamic dimensions, each with inputs of
five sizes and what ONNX Runtime gives for them.

python make_exports.py [--large] [--to FOLDER] [MODEL ...]

--large: of sizes at which speed means something, for bench/exports.py; else test data."""
import argparse
import inspect
import pathlib
import warnings

import numpy as np
import onnx
import onnxruntime
import torch

import own_models
import transformer_models
from onnxscript import opset18 as op

HERE = pathlib.Path(__file__).resolve().parent
MODELS = {"yolo": own_models.yolo, "experts": own_models.experts, "speech": own_models.speech,
          "deberta": transformer_models.deberta, "t5_encoder": transformer_models.t5_encoder,
          "t5_decoder": transformer_models.t5_decoder,
          "whisper_encoder": transformer_models.whisper_encoder,
          "whisper_decoder": transformer_models.whisper_decoder}
# Extents of the example that is traced: all different, none is 1.
EXAMPLE = {"batch": 2, "tokens": 3, "earlier": 6, "encoded": 7}


def nms(boxes, scores, iou_threshold: float):
    """torchvision registers its operator with the older exporter only."""
    boxes, scores = op.Unsqueeze(boxes, [0]), op.Unsqueeze(scores, [0, 1])
    most, iou = op.Constant(value_ints=[2**31 - 1]), op.Constant(value_floats=[iou_threshold])
    rows = op.NonMaxSuppression(boxes, scores, most, iou)
    return op.Squeeze(op.Slice(rows, [2], [3], [1]), [1])


def example(case):
    values = {}
    for name, value in case.inputs[1].items():
        dims = case.dims.get(name, {})
        if any(dim in EXAMPLE for dim in dims.values()):
            extents = [EXAMPLE.get(dims.get(i), n) for i, n in enumerate(value.shape)]
            value = np.ones(extents, value.dtype)
        values[name] = torch.from_numpy(value)
    return values


def traced(case, path):
    torch.onnx.export(case.model, tuple(example(case).values()), path, dynamo=False,
                      opset_version=17, input_names=list(case.inputs[0]),
                      output_names=case.outputs, dynamic_axes=case.dims)


def captured(case, path):
    image = {name: 32 * torch.export.Dim("_" + name, min=1, max=64) for name in ("h", "w")}
    shapes = [{i: image.get(dim, torch.export.Dim.DYNAMIC) for i, dim in case.dims[name].items()}
              if name in case.dims else None for name in case.inputs[0]]
    parameters = inspect.signature(case.model.forward).parameters.values()
    named = sum(p.kind != p.VAR_POSITIONAL for p in parameters)
    if named != len(parameters):
        shapes = [*shapes[:named], tuple(shapes[named:])]
    torch.onnx.export(case.model, tuple(example(case).values()), path, dynamo=True,
                      input_names=list(case.inputs[0]), output_names=case.outputs,
                      dynamic_shapes=tuple(shapes), external_data=False,
                      custom_translation_table={torch.ops.torchvision.nms.default: nms})


def without_traces(path):
    """Where in Python each node came from is most of a small file."""
    model = onnx.load(path)
    for thing in (model, model.graph, *model.graph.node, *model.graph.value_info,
                  *model.graph.input, *model.graph.output, *model.graph.initializer):
        del thing.metadata_props[:]
        thing.doc_string = ""
    for node in model.graph.node:
        for attribute in node.attribute:
            attribute.doc_string = ""
    onnx.save(model, path)


def record(case, path, folder):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_outputs()]
    for k, values in enumerate(case.inputs):
        inputs = {port.name: values[port.name] for port in session.get_inputs()}
        outputs = session.run(None, inputs)
        with torch.no_grad():
            wanted = case.model(*(torch.from_numpy(x) for x in values.values()))
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        for name, got, want in zip(names, outputs, wanted):
            if got.shape != want.shape or not np.allclose(got, want, rtol=1e-3, atol=2e-3):
                print(f"{folder.name} {k}: {name} of ONNX Runtime is not that of PyTorch")
        np.savez_compressed(folder / f"inputs_{k}.npz", **inputs)
        np.savez_compressed(folder / f"expected_{k}.npz", **dict(zip(names, outputs)))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("models", nargs="*", choices=[*MODELS, []])
    arguments.add_argument("--large", action="store_true")
    arguments.add_argument("--to", type=pathlib.Path, default=HERE)
    chosen = arguments.parse_args()
    warnings.filterwarnings("ignore")
    for name in chosen.models or MODELS:
        for exporter in (traced, captured):
            torch.manual_seed(0)
            case = MODELS[name](not chosen.large)
            case.model.eval()
            folder = chosen.to / f"{name}_{exporter.__name__}"
            folder.mkdir(parents=True, exist_ok=True)
            path = str(folder / "model.onnx")
            with torch.no_grad():
                exporter(case, path)
            without_traces(path)
            record(case, path, folder)


if __name__ == "__main__":
    main()
