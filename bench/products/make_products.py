"""Single products and convolutions as ONNX models, for `compare.py models --models FOLDER`.

A model holds several copies of one shape, each with its own weights and input, so that weights
come from beyond the second-level cache, as they do in a network; in cases.json `flops` and `bytes` (of
inputs, weights and outputs) are for all copies.
The sets: products of BERT, 1x1 convolutions of ResNet-50 as products, squares, few rows; convolutions
of ResNet-50 with their strides, of VGG, depthwise ones, ResNeXt's 32 groups; activations after a
product (`epilogue`); two successive products (`pair`); a 3x3 convolution followed by a 1x1 one, and
sequences of products (`chain`); extents that do not fill a vector beside their padded twins (`padding`);
odd extents (`odd`) and dilated windows (`dilated`).

    make_products.py [NAME ...]    only the cases whose names begin with NAME
"""
import argparse
import json
import os

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import shapes

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))


class Model:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.inputs, self.outputs, self.weights = [], [], [], []
        self.values, self.flops = {}, 0

    def input(self, shape):
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        self.values[name] = self.random.standard_normal(shape, dtype=np.float32)
        return name

    def weight(self, shape, fan_in):
        name = f"w{len(self.weights)}"
        value = self.random.standard_normal(shape, dtype=np.float32) / np.float32(np.sqrt(fan_in))
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def node(self, kind, inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def product(self, x, m, n, k):
        self.flops += 2 * m * n * k
        return self.node("MatMul", [x, self.weight((k, n), k)])

    def convolution(self, x, size, channels, features, kernel, stride, groups, bias=False,
                    dilation=1):
        out = (size + stride - 1) // stride
        depth = channels // groups * kernel * kernel
        self.flops += 2 * out * out * features * depth
        pad = kernel // 2 * dilation
        weights = [self.weight((features, channels // groups, kernel, kernel), depth)]
        if bias:
            weights.append(self.weight((features,), 1))
        return self.node("Conv", [x, *weights],
                         kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4,
                         group=groups, dilations=[dilation] * 2)

    def output(self, name):
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))

    def proto(self):
        graph = helper.make_graph(self.nodes, "products", self.inputs, self.outputs, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def reference(path, values):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, values)))


def weight_bytes(model):
    return sum(4 * int(np.prod(weight.dims)) for weight in model.weights)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", default=os.path.join(ROOT, "build", "bench-products"))
    options = parser.parse_args()
    cases = []
    for name, model in shapes.models(Model):
        if options.names and not name.startswith(tuple(options.names)):
            continue
        folder = os.path.join(options.out, name)
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "model.onnx")
        if not os.path.exists(os.path.join(folder, "expected.npz")):
            onnx.save(model.proto(), path)
            np.savez(os.path.join(folder, "inputs.npz"), **model.values)
            np.savez(os.path.join(folder, "expected.npz"), **reference(path, model.values))
        values = [np.load(os.path.join(folder, f"{what}.npz")) for what in ["inputs", "expected"]]
        moved = weight_bytes(model) + sum(file[key].nbytes for file in values for key in file.files)
        cases.append({"case": name, "model": f"{name}/model.onnx", "inputs": f"{name}/inputs.npz",
                      "expected": f"{name}/expected.npz", "flops": model.flops,
                      "bytes": moved})
    with open(os.path.join(options.out, "cases.json"), "w") as file:
        json.dump(cases, file, indent=1)


if __name__ == "__main__":
    main()
