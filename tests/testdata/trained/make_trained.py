"""Trains the three networks of this folder by heddle, in f32, and writes them as ONNX: make_trained.py [NAME ...]

Runs build/release/convergence_test, which trains from seed 1 and writes weights and samples, and makes of them
  NAME.onnx       standard operators, batch "N"; images are NCHW
  NAME.calib.npz  x: 64 samples
  NAME.eval.npz   x: 512 samples, labels, and the logits of NAME_forward.hlo
Bytes stand for images: (byte - 128) / 32 is the pixel; and for tokens.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

HERE = pathlib.Path(__file__).resolve().parent
TRAINER = HERE.parents[2] / "build" / "release" / "convergence_test"
HEADS = 4


class Graph:
    def __init__(self, weights):
        self.weights, self.nodes, self.initializers = weights, [], {}

    def constant(self, name, array, dtype=np.float32):
        self.initializers[name] = numpy_helper.from_array(np.ascontiguousarray(array, dtype), name)
        return name

    def parameter(self, name, transposed=None):
        array = self.weights["parameter." + name]
        return self.constant(name, array if transposed is None else array.transpose(transposed))

    def __call__(self, kind, *inputs, name, **attributes):
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def dense(self, name, x, bias=True):
        y = self("MatMul", x, self.parameter(name + ".w" if bias else name), name=name + "_product")
        return self("Add", y, self.parameter(name + ".b"), name=name) if bias else y

    def save(self, path, x):
        graph = helper.make_graph(self.nodes, path.stem, [x],
                                  [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 10])],
                                  list(self.initializers.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                                  producer_name="heddle")
        checker.check_model(model, full_check=True)
        save(model, path)

    def convolution(self, name, x, stride):
        """With its batch norm, by the statistics that training kept."""
        w = self.weights[f"parameter.{name}.w"]
        around, groups = w.shape[0] // 2, w.shape[3] if w.shape[2] == 1 else 1
        x = self("Conv", x, self.parameter(name + ".w", (3, 2, 0, 1)), name=name, group=groups,
                 kernel_shape=w.shape[:2], pads=[around] * 4, strides=[stride] * 2)
        kept = [self.constant(f"{name}.{what}", self.weights[f"statistic.{name}.{what}"])
                for what in ("mean", "variance")]
        return self("BatchNormalization", x, self.parameter(name + ".scale"), self.parameter(name + ".shift"), *kept,
                    name=name + "_norm", epsilon=1e-5)

    def pooled(self, x):
        x = self("Flatten", self("GlobalAveragePool", x, name="pool"), name="flat")
        self("Gemm", x, self.parameter("dense.w"), self.parameter("dense.b"), name="logits")


def cnn(graph):
    x = "x"
    for i, stride in enumerate([1, 2, 2]):
        x = graph("Relu", graph.convolution(f"conv{i}", x, stride), name=f"relu{i}")
    graph.pooled(x)


def mobile(graph):
    low, high = graph.constant("low", 0), graph.constant("high", 6)

    def layer(name, x, stride=1):
        return graph("Clip", graph.convolution(name, x, stride), low, high, name=name + "_clip")

    x = layer("stem", "x", 2)
    for block, stride in [("block0", 2), ("block1", 1)]:
        y = layer(block + "_depthwise", layer(block + "_expand", x), stride)
        y = graph.convolution(block + "_project", y, 1)
        x = y if stride == 2 else graph("Add", x, y, name=block)
    graph.pooled(layer("top", x))


def attention(graph, at, x):
    def split(name, y, order):
        y = graph("Reshape", y, graph.constant("split", [0, 0, HEADS, -1], np.int64), name=f"{at}_{name}_heads")
        return graph("Transpose", y, name=f"{at}_{name}_turned", perm=order)

    q = split("q", graph.dense(f"{at}.q", x), [0, 2, 1, 3])
    k = split("k", graph.dense(f"{at}.k", x, bias=False), [0, 2, 3, 1])
    v = split("v", graph.dense(f"{at}.v", x), [0, 2, 1, 3])
    scale = (graph.weights[f"parameter.{at}.k"].shape[1] // HEADS)**-0.5
    scores = graph("Mul", graph("MatMul", q, k, name=f"{at}_products"), graph.constant("scale", scale),
                   name=f"{at}_scores")
    y = graph("MatMul", graph("Softmax", scores, name=f"{at}_weights", axis=-1), v, name=f"{at}_values")
    y = graph("Transpose", y, name=f"{at}_back", perm=[0, 2, 1, 3])
    y = graph("Reshape", y, graph.constant("join", [0, 0, -1], np.int64), name=f"{at}_joined")
    return graph.dense(f"{at}.out", y)


def gelu(graph, at, x):
    inner = graph("Erf", graph("Mul", x, graph.constant("root", 2**-0.5), name=f"{at}_scaled"), name=f"{at}_erf")
    half = graph("Mul", x, graph.constant("half", 0.5), name=f"{at}_half")
    return graph("Mul", half, graph("Add", inner, graph.constant("one", 1), name=f"{at}_more"), name=f"{at}_gelu")


def transformer(graph):
    def norm(name, x):
        return graph("LayerNormalization", x, graph.parameter(name + ".scale"), graph.parameter(name + ".shift"),
                     name=name, axis=-1, epsilon=1e-6)

    x = graph("Gather", graph.parameter("words"), "x", name="embedded")
    x = graph("Add", x, graph.parameter("places"), name="placed")
    for i in range(2):
        at = f"layer{i}"
        x = graph("Add", x, attention(graph, at + ".attention", norm(at + ".norm1", x)), name=at + "_attended")
        y = gelu(graph, at, graph.dense(at + ".feed.up", norm(at + ".norm2", x)))
        x = graph("Add", x, graph.dense(at + ".feed.down", y), name=at)
    x = graph("ReduceMean", norm("norm", x), name="pool", axes=[1], keepdims=0)
    graph("Gemm", x, graph.parameter("dense.w"), graph.parameter("dense.b"), name="logits")


NETWORKS = {"cnn": cnn, "mobile": mobile, "transformer": transformer}


def packed(x):
    """As bytes; images with the channels first, as ONNX has them."""
    x = x if x.ndim == 2 else x.transpose(0, 3, 1, 2) * 32 + 128
    assert (x == x.astype(np.uint8)).all()
    return x.astype(np.uint8)


def main():
    names = sys.argv[1:] or list(NETWORKS)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([TRAINER, f"--gtest_filter=*TrainedWeights.AreWritten/{name}"], check=True,
                           env={**os.environ, "HEDDLE_TRAINED": folder}, stdout=subprocess.DEVNULL)
            arrays = dict(np.load(os.path.join(folder, name + ".npz")))
        graph = Graph(arrays)
        NETWORKS[name](graph)
        images = arrays["x"].ndim == 4
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT if images else TensorProto.INT64,
                                          ["N", 3, 16, 16] if images else ["N", 32])
        graph.save(HERE / f"{name}.onnx", x)
        np.savez_compressed(HERE / f"{name}.calib.npz", x=packed(arrays["calibration"]))
        np.savez_compressed(HERE / f"{name}.eval.npz", x=packed(arrays["x"]), labels=arrays["labels"].astype(np.uint8),
                            logits=arrays["logits"])


if __name__ == "__main__":
    main()
