"""The rows as small ONNX models for the peers, with inputs and expected outputs in f64.

    python make_rows.py [-o DIR] [ROW ...]

Each row in the forms a peer may know best; the harness takes the fastest of them. Writes
DIR/ROW.FORM.onnx, DIR/ROW.inputs.npz (arg0, arg1, ...: the names heddle gives HLO parameters),
DIR/ROW.expected.npz (out0) and DIR/rows.json with the minimal bytes of each row.
"""
import argparse
import json
import math
import os

import numpy as np
import onnx
from onnx import TensorProto, helper

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT_FOLDER = os.path.join(HERE, "..", "..", "build", "bench-rows")
F32 = TensorProto.FLOAT
B1, B2, B2_MASK, B3 = [1, 4096, 768], [8, 12, 512, 512], [8, 1, 1, 512], [1, 4096, 3072]


def value(name, shape):
    return helper.make_tensor_value_info(name, F32, shape)


def number(name, x):
    return helper.make_tensor(name, F32, [], [x])


def model(name, nodes, inputs, shape, numbers=(), opset=20):
    """Nodes are (op, operands, result) or (op, operands, result, attributes)."""
    made = [helper.make_node(n[0], n[1].split(), [n[2]], **(n[3] if len(n) > 3 else {}))
            for n in nodes]
    graph = helper.make_graph(made, name, [value(*i) for i in inputs], [value("out0", shape)],
                              [number(*n) for n in numbers])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    onnx.checker.check_model(made)
    return made


def b1():
    norm = {"axis": -1, "epsilon": 1e-5}
    inputs = [("arg0", B1), ("arg1", B1), ("arg2", [768]), ("arg3", [768])]
    return {"op": model("b1", [("Add", "arg0 arg1", "h"),
                               ("LayerNormalization", "h arg2 arg3", "out0", norm)], inputs, B1)}


def b2():
    inputs = [("arg0", B2), ("arg1", B2_MASK)]
    nodes = [("Mul", "arg0 scale", "scaled"), ("Add", "scaled arg1", "masked"),
             ("Softmax", "masked", "out0", {"axis": -1})]
    return {"op": model("b2", nodes, inputs, B2, [("scale", 0.125)])}


def b3(approximate):
    inputs = [("arg0", B3), ("arg1", [3072])]
    tail = [("Add", "gate one", "gate1"), ("Mul", "h gate1", "product"),
            ("Mul", "product half", "out0")]
    if approximate == "none":
        nodes = [("Div", "h root", "argument"), ("Erf", "argument", "gate"), *tail]
        numbers = [("root", math.sqrt(2))]
    else:
        nodes = [("Pow", "h three", "cube"), ("Mul", "cube cubic", "part"), ("Add", "h part", "inner"),
                 ("Mul", "inner root", "argument"), ("Tanh", "argument", "gate"), *tail]
        numbers = [("three", 3.0), ("cubic", 0.044715), ("root", math.sqrt(2 / math.pi))]
    numbers += [("one", 1.0), ("half", 0.5)]
    bias = ("Add", "arg0 arg1", "h")
    gelu = ("Gelu", "h", "out0", {"approximate": approximate})
    return {"op": model("b3", [bias, gelu], inputs, B3),
            "parts": model("b3", [bias, *nodes], inputs, B3, numbers, opset=17)}


def inputs_of(row, random):
    def normal(*shape):
        return random.standard_normal(shape, dtype=np.float32)

    if row == "b1":
        return {"arg0": normal(4096, 768), "arg1": normal(4096, 768),
                "arg2": 1 + 0.1 * normal(768), "arg3": 0.1 * normal(768)}
    if row == "b2":
        mask = np.zeros((8, 512), np.float32)
        for batch in range(8):
            mask[batch, 512 - 40 * batch:] = -10000
        return {"arg0": 8 * normal(8, 12, 512, 512), "arg1": mask}
    return {"arg0": 2 * normal(4096, 3072), "arg1": normal(3072)}


def expected_of(row, a):
    """In f64, written apart from both sides."""
    a = {name: x.astype(np.float64) for name, x in a.items()}
    if row == "b1":
        h = a["arg0"] + a["arg1"]
        h = h - h.mean(1, keepdims=True)
        return h / np.sqrt((h * h).mean(1, keepdims=True) + 1e-5) * a["arg2"] + a["arg3"]
    if row == "b2":
        h = a["arg0"] * 0.125 + a["arg1"][:, None, None, :]
        h = np.exp(h - h.max(-1, keepdims=True))
        return h / h.sum(-1, keepdims=True)
    h = a["arg0"] + a["arg1"]
    if row == "b3e":
        erf = np.frompyfunc(math.erf, 1, 1)
        return 0.5 * h * (1 + erf(h / math.sqrt(2)).astype(np.float64))
    return 0.5 * h * (1 + np.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h ** 3)))


ROWS = {"b1": b1, "b2": b2, "b3e": lambda: b3("none"), "b3t": lambda: b3("tanh")}
WHAT = {"b1": "residual + LayerNorm 4096x768", "b2": "scale + mask + softmax 8x12x512x512",
        "b3e": "bias + GELU (erf) 4096x3072", "b3t": "bias + GELU (tanh) 4096x3072"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--folder", default=DEFAULT_FOLDER)
    parser.add_argument("rows", nargs="*", help=f"of {', '.join(ROWS)} (default: all)")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    listed = []
    for row, make in ROWS.items():
        if options.rows and row not in options.rows:
            continue
        inputs = inputs_of(row, np.random.default_rng(0))
        expected = expected_of(row, inputs).astype(np.float32)
        np.savez(os.path.join(options.folder, f"{row}.inputs.npz"), **inputs)
        np.savez(os.path.join(options.folder, f"{row}.expected.npz"), out0=expected)
        forms = make()
        for form, made in forms.items():
            onnx.save(made, os.path.join(options.folder, f"{row}.{form}.onnx"))
        moved = sum(x.nbytes for x in inputs.values()) + expected.nbytes
        listed.append({"row": row, "what": WHAT[row], "forms": list(forms), "bytes": moved})
        print(f"{row}: {', '.join(forms)}; {moved / 1e6:.2f} MB")
    with open(os.path.join(options.folder, "rows.json"), "w") as file:
        json.dump(listed, file, indent=1)


if __name__ == "__main__":
    main()
