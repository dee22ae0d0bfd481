"""Small ONNX models as bytes, without the package onnx."""
import struct


def varint(value):
    data = b""
    while value >= 128:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])


def number(tag, value):
    return varint(tag << 3) + varint(value)


def text(tag, data):
    data = data if isinstance(data, bytes) else data.encode()
    return varint(tag << 3 | 2) + varint(len(data)) + data


def value(name, dims):
    """ValueInfoProto of floats; a dimension is a number or a name."""
    shape = b"".join(text(1, number(1, d) if isinstance(d, int) else text(2, d)) for d in dims)
    return text(1, name) + text(2, text(1, number(1, 1) + text(2, shape)))


def floats(name, dims, values):
    return (b"".join(number(1, d) for d in dims) + number(2, 1) + text(8, name) +
            text(9, struct.pack(f"<{len(values)}f", *values)))


def linear():
    """y = x w of f32[batch,3] and f32[3,4]; made by "a tool", with metadata."""
    node = text(1, "x") + text(1, "w") + text(2, "y") + text(4, "MatMul")
    graph = (text(1, node) + text(2, "linear") +
             text(5, floats("w", [3, 4], [i / 4 for i in range(12)])) +
             text(11, value("x", ["batch", 3])) + text(12, value("y", ["batch", 4])))
    return (number(1, 8) + text(2, "a tool") + text(3, "1.2") + text(7, graph) +
            text(8, text(1, "") + number(2, 17)) +
            text(14, text(1, "author") + text(2, "somebody")))
