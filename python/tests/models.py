"""Small ONNX models, written without the onnx package, and where test data is."""
import pathlib
import struct

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "testdata"

F32, I64, STRING, BOOL, BF16 = 1, 7, 8, 9, 16


def _varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _field(number, value):
    """A field of a protobuf message; lists are repeated ones."""
    if isinstance(value, list):
        return b"".join(_field(number, one) for one in value)
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _value(name, type_number, dims):
    shape = b"".join(_field(1, _field(2 if isinstance(dim, str) else 1, dim)) for dim in dims)
    tensor = _field(1, type_number) + _field(2, shape)
    return _field(1, name) + _field(2, _field(1, tensor))


def tensor(name, array):
    number = {"float32": F32, "int64": I64, "bool": BOOL}[array.dtype.name]
    return (_field(1, list(array.shape)) + _field(2, number) + _field(8, name) +
            _field(9, array.tobytes()))


def _attribute(name, value):
    if isinstance(value, float):
        return _field(1, name) + _field(2, value) + _field(20, 1)
    if isinstance(value, int):
        return _field(1, name) + _field(3, value) + _field(20, 2)
    if isinstance(value, list):
        return _field(1, name) + _field(8, value) + _field(20, 7)
    return _field(1, name) + _field(4, value) + _field(20, 3)


def node(kind, inputs, outputs, domain="", **attributes):
    return (_field(1, list(inputs)) + _field(2, list(outputs)) + _field(4, kind) +
            _field(7, domain) +
            _field(5, [_attribute(name, value) for name, value in attributes.items()]))


def model(nodes, inputs, outputs, constants=(), opset=17):
    """inputs, outputs: (name, type, dims); constants: {name: array}. Bytes of a ModelProto."""
    graph = (_field(1, list(nodes)) + _field(2, "graph") +
             _field(5, [tensor(*one) for one in dict(constants).items()]) +
             _field(11, [_value(*one) for one in inputs]) +
             _field(12, [_value(*one) for one in outputs]))
    domains = [_field(1, "") + _field(2, opset), _field(1, "ai.onnx.ml") + _field(2, 3)]
    return _field(1, 9) + _field(7, graph) + _field(8, domains)


WEIGHTS = np.arange(12, dtype=np.float32).reshape(3, 4) / 8 - 1


def linear(batch=2):
    """y = relu(x w): f32[batch, 3] to f32[batch, 4]."""
    return model([node("MatMul", ["x", "w"], ["p"]), node("Relu", ["p"], ["y"])],
                 [("x", F32, [batch, 3])], [("y", F32, [batch, 4])], {"w": WEIGHTS})


def linear_value(x):
    return np.maximum(x @ WEIGHTS, 0)


def sum_and_difference():
    """s = a + b, d = a - b of f32[4]."""
    return model([node("Add", ["a", "b"], ["s"]), node("Sub", ["a", "b"], ["d"])],
                 [("a", F32, [4]), ("b", F32, [4])], [("s", F32, [4]), ("d", F32, [4])])


def cache(total):
    """present = past and x in one, y = the sum of present w: lengths past and past + 1. `total`:
    what the model calls that of present; an input `mask` has it, too."""
    return model([node("Concat", ["past", "x"], ["present"], axis=1),
                  node("MatMul", ["present", "w"], ["z"]), node("Unsqueeze", ["mask", "two"], ["m"]),
                  node("Mul", ["z", "m"], ["masked"]),
                  node("ReduceSum", ["masked", "one"], ["y"], keepdims=0)],
                 [("past", F32, [2, "past", 3]), ("x", F32, [2, 1, 3]), ("mask", F32, [2, total])],
                 [("y", F32, [2, 4]), ("present", F32, [2, total, 3])],
                 {"w": WEIGHTS, "one": np.array([1]), "two": np.array([2])})


def positives():
    """The places of what is positive in f32[n]: their number is known when it runs."""
    return model([node("Greater", ["x", "zero"], ["p"]), node("NonZero", ["p"], ["y"])],
                 [("x", F32, ["n"])], [("y", I64, [1, "count"])],
                 {"zero": np.zeros((), np.float32)})


def reshaped():
    """x in the shape that the input `shape` says."""
    return model([node("Reshape", ["x", "shape"], ["y"])],
                 [("x", F32, [6]), ("shape", I64, [2])], [("y", F32, ["a", "b"])])


def long_run(times=300, size=384):
    """x multiplied by itself many times."""
    nodes = [node("MatMul", ["x" if i == 0 else f"x{i}", "w"], [f"x{i + 1}"])
             for i in range(times)]
    return model(nodes, [("x", F32, [size, size]), ("w", F32, [size, size])],
                 [(f"x{times}", F32, [size, size])])


def identity(type_number, dims):
    return model([node("Identity", ["x"], ["y"])], [("x", type_number, dims)],
                 [("y", type_number, dims)])
