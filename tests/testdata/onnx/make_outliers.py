"""A small transformer block whose normalisations have a few channels that are 50 times larger than the
others, and next weights that undo it, as large language models come to have them. Its second half is gated:
the outliers of the last product lie in a branch that is not normalised. 8 bits for whole activations lose it
without SmoothQuant. Writes outliers/ beside this file."""
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).parent / "outliers"
WIDTH, HIDDEN, ROWS = 32, 48, 16


def main():
    random = np.random.default_rng(0)
    nodes, initializers = [], []

    def constant(name, array):
        initializers.append(numpy_helper.from_array(np.ascontiguousarray(array, np.float32), name))
        return name

    def node(kind, inputs, output, **attributes):
        nodes.append(helper.make_node(kind, inputs, [output], name=output + "_node", **attributes))
        return output

    def outliers(width):
        scale = np.ones(width, np.float32)
        scale[random.choice(width, 3, replace=False)] = 50
        return scale

    def weights(name, rows, columns, scale):
        return constant(name, random.standard_normal((rows, columns)) / np.sqrt(rows) / scale[:, None])

    def norm(value, name):
        scale = outliers(WIDTH)
        gamma = (1 + 0.1 * random.standard_normal(WIDTH)) * scale
        beta = 0.1 * random.standard_normal(WIDTH) * scale
        return node("LayerNormalization", [value, constant(name + "_gamma", gamma), constant(name + "_beta", beta)],
                    name, axis=-1, epsilon=1e-5), scale

    ones = np.ones(WIDTH, np.float32)
    n, scale = norm("x", "norm1")
    q, k, v = [node("MatMul", [n, weights(f"w{name}", WIDTH, WIDTH, scale)], name) for name in "qkv"]
    scores = node("MatMul", [q, node("Transpose", [k], "kt", perm=[0, 2, 1])], "scores")
    small = node("Mul", [scores, constant("root", np.float32(WIDTH ** -0.5))], "scaled")
    mixed = node("MatMul", [node("Softmax", [small], "p", axis=-1), v], "mixed")
    h = node("Add", ["x", node("MatMul", [mixed, weights("wo", WIDTH, WIDTH, ones)], "o")], "h")
    n, scale = norm(h, "norm2")
    wide = outliers(HIDDEN)
    gate = node("MatMul", [n, weights("wgate", WIDTH, HIDDEN, scale)], "gate")
    open_ = node("Mul", [gate, node("Sigmoid", [gate], "sigmoid")], "silu")
    up = node("MatMul", [n, constant("wup", random.standard_normal((WIDTH, HIDDEN)) / np.sqrt(WIDTH)
                                     / scale[:, None] * wide)], "up")
    gated = node("Mul", [open_, up], "gated")
    node("Add", [h, node("MatMul", [gated, weights("wdown", HIDDEN, WIDTH, wide)], "down")], "y")

    shape = [1, ROWS, WIDTH]
    graph = helper.make_graph(nodes, "outliers", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    HERE.mkdir(exist_ok=True)
    onnx.save(model, HERE / "model.onnx")
    x = random.standard_normal(shape).astype(np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    np.savez(HERE / "inputs.npz", x=x)
    np.savez(HERE / "expected.npz", y=session.run(None, {"x": x})[0])


if __name__ == "__main__":
    main()
