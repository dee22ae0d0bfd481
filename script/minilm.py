"""Writes all-MiniLM-L6-v2 with its trained weights as ONNX: minilm.py PACKAGE_MODEL_DIRECTORY OUT.

Inputs input_ids and attention_mask, s64 [batch, sequence]; output embedding, f32 [batch, 384]: the
masked mean of the last hidden states, scaled to unit length, as sentence-transformers computes it.
"""
import json
import pathlib
import struct
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
DTYPES = {"F32": np.float32, "I64": np.int64}


def read_safetensors(path):
    """name -> array, over the mapped file."""
    data = np.memmap(path, dtype=np.uint8, mode="r")
    header_bytes = struct.unpack("<Q", data[:8].tobytes())[0]
    header = json.loads(data[8:8 + header_bytes].tobytes())
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + header_bytes + offset for offset in entry["data_offsets"])
        flat = np.frombuffer(data[begin:end].tobytes(), DTYPES[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


class Graph:
    """Nodes and constants of one graph; every method returns the name of a value."""

    def __init__(self, weights):
        self.weights, self.nodes, self.constants, self.known = weights, [], [], {}

    def op(self, kind, *inputs, name=None, **attributes):
        output = name or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        return output

    def constant(self, array, name=None):
        array = np.ascontiguousarray(array)
        key = name or (array.tobytes(), array.dtype.str, array.shape)
        if key not in self.known:
            self.known[key] = name or f"constant_{len(self.known)}"
            self.constants.append(numpy_helper.from_array(array, self.known[key]))
        return self.known[key]

    def numbers(self, *values):
        return self.constant(np.array(values, np.int64))

    def scalar(self, value):
        return self.constant(np.array(value, np.float32))

    def weight(self, name):
        return self.constant(self.weights[name], name)

    def linear(self, x, name):
        """x [.., in] times the transposed weight [out, in], plus bias."""
        kernel = self.constant(self.weights[name + ".weight"].T, name + ".weight")
        return self.op("Add", self.op("MatMul", x, kernel), self.weight(name + ".bias"))

    def layer_norm(self, x, name, epsilon):
        return self.op("LayerNormalization", x, self.weight(name + ".weight"),
                       self.weight(name + ".bias"), axis=-1, epsilon=epsilon)

    def gelu(self, x):
        erf = self.op("Erf", self.op("Div", x, self.scalar(np.sqrt(2.0))))
        half = self.op("Mul", x, self.op("Add", erf, self.scalar(1.0)))
        return self.op("Mul", half, self.scalar(0.5))


def attention(g, x, mask, prefix, heads, width):
    """x [batch, sequence, heads*width] and an additive mask [batch, 1, 1, sequence]."""
    def split(name, order):
        parts = g.op("Reshape", g.linear(x, f"{prefix}.self.{name}"), g.numbers(0, 0, heads, width))
        return g.op("Transpose", parts, perm=order)

    scores = g.op("MatMul", split("query", [0, 2, 1, 3]), split("key", [0, 2, 3, 1]))
    scores = g.op("Add", g.op("Div", scores, g.scalar(np.sqrt(width))), mask)
    mixed = g.op("MatMul", g.op("Softmax", scores, axis=-1), split("value", [0, 2, 1, 3]))
    joined = g.op("Transpose", mixed, perm=[0, 2, 1, 3])
    return g.linear(g.op("Reshape", joined, g.numbers(0, 0, heads * width)),
                    prefix + ".output.dense")


def embed(g, epsilon):
    words = g.op("Gather", g.weight("embeddings.word_embeddings.weight"), "input_ids")
    length = g.op("Gather", g.op("Shape", "input_ids"), g.numbers(1))
    places = g.op("Slice", g.weight("embeddings.position_embeddings.weight"), g.numbers(0), length,
                  g.numbers(0))
    kind = g.constant(g.weights["embeddings.token_type_embeddings.weight"][0],
                      "embeddings.token_type_embeddings.weight")
    total = g.op("Add", g.op("Add", words, kind), places)
    return g.layer_norm(total, "embeddings.LayerNorm", epsilon)


def pool(g, hidden):
    """Masked mean over the sequence, then unit length."""
    mask = g.op("Unsqueeze", g.op("Cast", "attention_mask", to=TensorProto.FLOAT), g.numbers(2))
    total = g.op("ReduceSum", g.op("Mul", hidden, mask), g.numbers(1), keepdims=0)
    count = g.op("Max", g.op("ReduceSum", mask, g.numbers(1), keepdims=0), g.scalar(1e-9))
    mean = g.op("Div", total, count)
    length = g.op("Sqrt", g.op("ReduceSum", g.op("Mul", mean, mean), g.numbers(1), keepdims=1))
    return g.op("Div", mean, g.op("Max", length, g.scalar(1e-12)), name="embedding")


def build(directory):
    config = json.loads((directory / "config.json").read_text())
    g = Graph(read_safetensors(directory / "model.safetensors"))
    heads, epsilon = config["num_attention_heads"], config["layer_norm_eps"]
    width = config["hidden_size"] // heads
    seen = g.op("Cast", g.op("Unsqueeze", "attention_mask", g.numbers(1, 2)), to=TensorProto.FLOAT)
    mask = g.op("Mul", g.op("Sub", g.scalar(1.0), seen), g.scalar(-10000.0))
    x = embed(g, epsilon)
    for index in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{index}"
        mixed = attention(g, x, mask, layer + ".attention", heads, width)
        x = g.layer_norm(g.op("Add", mixed, x), layer + ".attention.output.LayerNorm", epsilon)
        inner = g.gelu(g.linear(x, layer + ".intermediate.dense"))
        outer = g.linear(inner, layer + ".output.dense")
        x = g.layer_norm(g.op("Add", outer, x), layer + ".output.LayerNorm", epsilon)
    pool(g, x)

    def tokens(name):
        return helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])

    result = helper.make_tensor_value_info("embedding", TensorProto.FLOAT,
                                           ["batch", config["hidden_size"]])
    graph = helper.make_graph(g.nodes, "minilm", [tokens("input_ids"), tokens("attention_mask")],
                              [result], g.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8,
                             producer_name="heddle quickstart")


def main(directory, out):
    model = build(pathlib.Path(directory))
    onnx.checker.check_model(model)
    temporary = pathlib.Path(out).with_suffix(".part")
    onnx.save(model, temporary)
    temporary.rename(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
