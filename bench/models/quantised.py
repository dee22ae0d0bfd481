"""Quantised variants of the networks of make_models.py, by ONNX Runtime's own tool.

    quantised.py [-o DIR] [NAME ...]

NAME is a case of DIR/cases.json with a suffix: `_qdq` (static, QDQ, the input and noise around it as
calibration set), `_qoperator` (the same as QLinear operators), `_dynamic8` (dynamic), `_nbits` (MatMulNBits,
groups of 32). Adds the cases to DIR/cases.json; what is expected is what ONNX Runtime gives with all
graph optimisations off.
"""
import argparse
import json
import os

import numpy as np
import onnx
import onnxruntime as ort
from onnxruntime import quantization
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType
from onnxruntime.quantization.shape_inference import quant_pre_process

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT_FOLDER = os.path.join(HERE, "..", "..", "build", "bench-models")
# What is made without names.
NAMES = ["resnet50_qdq", "mobilenet_v3_qdq", "efficientnet_b0_qdq", "bert_base_1x128_qdq", "minilm_1x128_qdq",
         "vit_b16_qdq", "bert_base_1x128_dynamic8", "gpt2_1x128_dynamic8", "llama_1x128_nbits", "llama_decode_nbits"]


class Noisy(CalibrationDataReader):
    """The case's inputs, and floats around them."""

    def __init__(self, inputs, count=4):
        random = np.random.default_rng(0)
        self.feeds = []
        for i in range(count):
            self.feeds.append({name: value if i == 0 or value.dtype != np.float32 else
                               (value + 0.3 * random.standard_normal(value.shape)).astype(np.float32)
                               for name, value in inputs.items()})

    def get_next(self):
        return self.feeds.pop() if self.feeds else None


def static(prepared, target, inputs, form):
    quantization.quantize_static(prepared, target, Noisy(inputs), quant_format=form, per_channel=True,
                                 activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                                 extra_options={"ActivationSymmetric": False})


def nbits(source, target):
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    model = onnx.load(source)
    quantizer = MatMulNBitsQuantizer(model, block_size=32, is_symmetric=True)
    quantizer.process()
    onnx.save(quantizer.model.model if hasattr(quantizer.model, "model") else quantizer.model, target)


def make(folder, case, suffix):
    name = f"{case['case']}_{suffix}"
    os.makedirs(os.path.join(folder, name), exist_ok=True)
    source = os.path.join(folder, case["model"])
    target = os.path.join(folder, name, "model.onnx")
    inputs = dict(np.load(os.path.join(folder, case["inputs"])))
    prepared = os.path.join(folder, name, "prepared.onnx")
    if suffix == "nbits":
        nbits(source, target)
    else:
        quant_pre_process(source, prepared, skip_symbolic_shape=True)
        if suffix == "dynamic8":
            quantization.quantize_dynamic(prepared, target, weight_type=QuantType.QInt8)
        else:
            static(prepared, target, inputs, QuantFormat.QDQ if suffix == "qdq" else QuantFormat.QOperator)
        os.remove(prepared)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(target, options, providers=["CPUExecutionProvider"])
    outputs = session.run(None, inputs)
    expected = os.path.join(name, "expected.npz")
    np.savez(os.path.join(folder, expected), **{port.name: value for port, value in zip(session.get_outputs(), outputs)})
    print(f"{name}: {os.path.getsize(target) / 1e6:.0f} MB")
    return {**case, "case": name, "model": os.path.join(name, "model.onnx"), "expected": expected}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", default=DEFAULT_FOLDER)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    path = os.path.join(options.output, "cases.json")
    for name in options.names or NAMES:
        with open(path) as file:
            cases = json.load(file)
        plain, suffix = name.rsplit("_", 1)
        source = [case for case in cases if case["case"] == plain]
        if not source:
            raise SystemExit(f"quantised: no case {plain} in {path}; make it with make_models.py")
        made = make(options.output, source[0], suffix)
        cases = [case for case in cases if case["case"] != name] + [made]
        with open(path, "w") as file:
            json.dump(cases, file, indent=1)


if __name__ == "__main__":
    main()
