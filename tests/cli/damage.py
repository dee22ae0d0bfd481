"""Damages inputs by their structure: HLO text, ONNX models, npz and npy files, options.

Every function takes a random.Random and gives bytes, text or arguments: the same seed, the same
damage. Nothing here knows what the command answers.
"""
import io
import os
import pathlib
import random
import re
import struct
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NUMBERS = ["-1", "0", "1", "2", "3", "7", "64", "65", "4096", "2147483647", "2147483648",
           "4294967296", "1099511627776", "9223372036854775807", "9223372036854775808",
           "-9223372036854775808"]
TYPES = ["f32", "f64", "f16", "bf16", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "pred",
         "c64", "c128", "s4", "u4", "f8e4m3fn", "opaque", "token"]


def hlo_seeds():
    """Small modules that cover the operators."""
    texts = []
    for folder in ("tests/testdata/control", "tests/testdata/kinds", "src/hlo/testdata"):
        for path in sorted((ROOT / folder).glob("*.hlo")):
            for part in path.read_text().split("// -----"):
                if "ENTRY" in part and len(part) < 6000:
                    texts.append(part.strip() + "\n")
    return texts


def opcodes():
    table = (ROOT / "src" / "hlo" / "ops.def").read_text()
    return re.findall(r'^HEDDLE_OP\(\w+, "([^"]+)"', table, re.M)


class Hlo:
    def __init__(self):
        self.seeds = hlo_seeds()
        self.opcodes = opcodes()

    def __call__(self, rng):
        text = rng.choice(self.seeds)
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            text = rng.choice([self.number, self.number, self.number, self.type, self.opcode,
                               self.operand, self.line, self.attribute, self.rank,
                               self.characters])(rng, text)
        return text

    @staticmethod
    def place(rng, pattern, text):
        found = list(re.finditer(pattern, text))
        return rng.choice(found) if found else None

    def replaced(self, rng, pattern, text, choices):
        found = self.place(rng, pattern, text)
        if found is None:
            return text
        return text[:found.start()] + rng.choice(choices) + text[found.end():]

    def number(self, rng, text):
        return self.replaced(rng, r"(?<![\w.])-?\d+", text, NUMBERS)

    def type(self, rng, text):
        return self.replaced(rng, r"\b(?:f32|f16|bf16|f64|s32|s64|u32|u8|s8|pred|c64)(?=\[)", text,
                             TYPES)

    def opcode(self, rng, text):
        return self.replaced(rng, r"(?<=[\]} )] )[a-z][a-z0-9-]+(?=\()", text, self.opcodes)

    def operand(self, rng, text):
        names = re.findall(r"^\s*(?:ROOT )?%?([\w.-]+) =", text, re.M)
        return self.replaced(rng, r"(?<=[(,] )%?[\w.-]+(?=[,)])|(?<=\()%?[\w.-]+(?=[,)])", text,
                             names or ["x"])

    def line(self, rng, text):
        lines = text.split("\n")
        at = rng.randrange(len(lines))
        kind = rng.randrange(3)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, lines[at])
        else:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        return "\n".join(lines)

    def attribute(self, rng, text):
        found = self.place(rng, r", [a-z_]+=(?:\{[^}]*\}|[^,\n]+)", text)
        if found is None:
            return text
        if rng.random() < 0.5:
            return text[:found.start()] + text[found.end():]
        other = self.place(rng, r", [a-z_]+=(?:\{[^}]*\}|[^,\n]+)", text)
        return text[:found.start()] + other.group() + text[found.end():]

    def rank(self, rng, text):
        choices = ["[]", "[1]", "[0]", "[2,3]", "[1,1,1,1]", "[" + ",".join(["1"] * 64) + "]",
                   "[" + ",".join(["1"] * 300) + "]", "[<=4]", "[?]", "[1099511627776]",
                   "[65536,65536]", "[1,2,0,3]"]
        return self.replaced(rng, r"\[[\d,]*\](?:\{[\d,]*\})?", text, choices)

    def characters(self, rng, text):
        at = rng.randrange(len(text))
        if rng.random() < 0.5:
            return text[:at] + text[at + rng.randrange(1, 40):]
        return text[:at] + rng.choice("{}()[],=%#\"'/*<>-?\0\x1b\xff") + text[at:]


class Mlir(Hlo):
    """StableHLO text: models of JAX, and StableHLO's tests where they are."""

    def __init__(self):
        self.seeds = [path.read_text() for path in sorted((ROOT / "tests/testdata/stablehlo").glob("*.mlir"))]
        corpora = pathlib.Path(os.environ.get("HEDDLE_CORPORA", "/nowhere"))
        for path in sorted(corpora.glob("stablehlo-interpret/**/*.mlir")):
            self.seeds += [part for part in path.read_text().split("// -----") if len(part) < 6000]
        table = "".join(path.read_text() for path in (ROOT / "src" / "import").glob("stablehlo_*.cc"))
        self.opcodes = re.findall(r'\{"((?:stablehlo|chlo|check)\.[a-z_]+)", ', table)

    def type(self, rng, text):
        return self.replaced(rng, r"\b(?:f32|f16|bf16|f64|i32|i64|ui32|ui8|i8|i1)(?=>)", text,
                             ["f32", "bf16", "f64", "i1", "i4", "i32", "ui64", "index", "complex<f32>",
                              "f8E4M3FN", "!stablehlo.token", "!quant.uniform<i8:f32, 0.5:3>", "tuple<>"])

    def opcode(self, rng, text):
        return self.replaced(rng, r"(?:stablehlo|chlo|check)\.[a-z_]+", text, self.opcodes)

    def operand(self, rng, text):
        return self.replaced(rng, r"%[\w#]+(?![\w:]* =)", text, re.findall(r"%\w+", text) or ["%0"])

    def attribute(self, rng, text):
        return self.replaced(rng, r"= (?:\[[^]]*\]|array<[^>]*>|dense<[^>]*>|#\w+[.\w]*<[^>]*>|true|false)", text,
                             ["= []", "= [0]", "= [1, 0]", "= array<i64: 2>", "= dense<1> : tensor<2x2xi64>", "= true",
                              "= -1 : i64", "= #stablehlo<comparison_direction EQ>", "= \"x\"", "= unit"])

    def rank(self, rng, text):
        return self.replaced(rng, r"(?<=tensor<)[\dx?]*(?=[a-z])", text,
                             ["", "0x", "1x", "2x3x", "1x1x1x1x", "?x", "1099511627776x", "65536x65536x", "1x" * 300])


class Onnx:
    """Needs the package onnx."""

    def __init__(self):
        import onnx
        self.onnx = onnx
        folders = ["onnx_operators", "onnx_contrib", "onnx_ml"]
        self.seeds = [path.read_bytes() for folder in folders
                      for path in sorted((ROOT / "tests/testdata" / folder).glob("*/model.onnx"))
                      if path.stat().st_size < 200_000]
        self.operators = sorted({schema.name for schema in onnx.defs.get_all_schemas()
                                 if schema.domain == ""})

    def __call__(self, rng):
        data = rng.choice(self.seeds)
        if rng.random() < 0.1:
            return flip(rng, data)
        model = self.onnx.load_from_string(data)
        for _ in range(rng.choice([1, 1, 2, 3])):
            rng.choice([self.attribute, self.attribute, self.shape, self.shape, self.operator,
                        self.wire, self.initializer, self.initializer, self.elem_type, self.node,
                        self.opset])(rng, model)
        return model.SerializeToString()

    @staticmethod
    def graphs(graph):
        """The graph and those inside its nodes."""
        yield graph
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    yield from Onnx.graphs(attribute.g)

    def some_node(self, rng, model):
        nodes = [node for graph in self.graphs(model.graph) for node in graph.node]
        return rng.choice(nodes) if nodes else None

    def integer(self, rng):
        return max(-2**63, min(2**63 - 1, int(rng.choice(NUMBERS))))

    def attribute(self, rng, model):
        node = self.some_node(rng, model)
        if node is None or not node.attribute:
            return
        attribute = rng.choice(node.attribute)
        kind = rng.randrange(4)
        if kind == 0:
            node.attribute.remove(attribute)
        elif attribute.ints:
            if kind == 1:
                attribute.ints.append(self.integer(rng))
            elif kind == 2:
                attribute.ints.pop()
            else:
                attribute.ints[rng.randrange(len(attribute.ints))] = self.integer(rng)
        elif attribute.type == self.onnx.AttributeProto.INT:
            attribute.i = self.integer(rng)
        elif attribute.type == self.onnx.AttributeProto.FLOAT:
            attribute.f = rng.choice([0.0, -1.0, float("nan"), float("inf"), 1e38, -1e-45])
        elif attribute.type == self.onnx.AttributeProto.STRING:
            attribute.s = rng.choice([b"", b"SAME_UPPER", b"linear", b"\x1b[2J", b"\0", b"x" * 999])

    def shape(self, rng, model):
        values = list(model.graph.input)
        tensors = [value.type.tensor_type for value in values if value.type.HasField("tensor_type")]
        if not tensors:
            return
        dims = rng.choice(tensors).shape.dim
        kind = rng.randrange(3)
        if kind == 0 and dims:
            del dims[rng.randrange(len(dims))]
        elif kind == 1:
            dims.add().dim_value = rng.choice([0, 1, 2, 3, 2**31, 2**62])
        elif dims:
            dims[rng.randrange(len(dims))].dim_value = rng.choice([0, 1, 2, 5, 64, 2**20, 2**40, -1])

    def operator(self, rng, model):
        node = self.some_node(rng, model)
        if node is not None:
            node.op_type = rng.choice(self.operators)
            if rng.random() < 0.5:
                del node.attribute[:]

    def wire(self, rng, model):
        node = self.some_node(rng, model)
        if node is None or not node.input:
            return
        names = [value.name for value in model.graph.input] + \
            [tensor.name for tensor in model.graph.initializer] + \
            [name for other in model.graph.node for name in other.output] + ["", "nobody"]
        kind = rng.randrange(3)
        if kind == 0:
            node.input.append(rng.choice(names))
        elif kind == 1:
            node.input.pop()
        else:
            node.input[rng.randrange(len(node.input))] = rng.choice(names)

    def initializer(self, rng, model):
        if not model.graph.initializer:
            return
        tensor = rng.choice(model.graph.initializer)
        kind = rng.randrange(4)
        if kind == 0:
            tensor.data_type = rng.randrange(0, 30)
        elif kind == 1 and tensor.dims:
            tensor.dims[rng.randrange(len(tensor.dims))] = self.integer(rng)
        elif kind == 2 and tensor.raw_data:
            data = bytearray(tensor.raw_data)
            for _ in range(rng.randrange(1, 9)):
                data[rng.randrange(len(data))] = rng.choice([0, 1, 0x7f, 0x80, 0xff])
            tensor.raw_data = bytes(data)
        elif tensor.raw_data:
            tensor.raw_data = tensor.raw_data[:rng.randrange(len(tensor.raw_data))]

    def elem_type(self, rng, model):
        if model.graph.input:
            rng.choice(model.graph.input).type.tensor_type.elem_type = rng.randrange(0, 30)

    def node(self, rng, model):
        nodes = model.graph.node
        if not nodes:
            return
        node = rng.choice(nodes)
        if rng.random() < 0.5:
            nodes.remove(node)
        else:
            copy = nodes.add()
            copy.CopyFrom(node)
            if rng.random() < 0.5:
                for i, name in enumerate(copy.output):
                    copy.output[i] = name + "_2"

    def opset(self, rng, model):
        model.opset_import[0].version = rng.choice([0, 1, 6, 7, 9, 11, 13, 18, 21, 23, 28, 29, -1])


def flip(rng, data):
    """Bytes changed, cut or repeated."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 8])):
        if not data:
            break
        at = rng.randrange(len(data))
        kind = rng.randrange(4)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del data[at:at + rng.randrange(1, 64)]
        else:
            data[at:at] = data[at:at + rng.randrange(1, 64)]
    if rng.random() < 0.2:
        del data[rng.randrange(len(data) + 1):]
    return bytes(data)


def npy(rng):
    """One array: mostly f32[2,3], with a header that may lie."""
    shape = rng.choice(["(2, 3)", "(2, 3)", "(2,3,)", "()", "(6,)", "(-1, 3)", "(0, 3)", "(2, 3",
                        "(9223372036854775807, 3)", "(4294967296, 4294967296)", "[2, 3]",
                        "(" + "1, " * 80 + ")", "(2.0, 3)", "(1099511627776,)"])
    descr = rng.choice(["'<f4'", "'<f4'", "'<f4'", "'>f4'", "'<f8'", "'|O'", "'<U7'", "'|V2'",
                        "[('a', '<f4')]", "'<i4'", "'|b1'", "''", "'<f4", "'<c8'"])
    order = rng.choice(["False", "False", "True", "1", "None"])
    header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    length = rng.choice([len(header)] * 8 + [0, 65535, 10])
    version = rng.choice([1, 1, 1, 1, 2, 3, 0, 9])
    data = b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H", length) + header.encode()
    data += struct.pack("<6f", *range(6)) if rng.random() < 0.8 else b"\0" * rng.randrange(64)
    return flip(rng, data) if rng.random() < 0.3 else data


def npz(rng):
    memory = io.BytesIO()
    method = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
    with zipfile.ZipFile(memory, "w", method) as archive:
        for name in rng.sample(["x.npy", "y.npy", "arg0.npy", "x", "../x.npy", ".npy", "a/b.npy",
                                "\x1b[2J.npy"], rng.randrange(4)):
            archive.writestr(name, npy(rng))
    data = memory.getvalue()
    return flip(rng, data) if rng.random() < 0.5 else data


def options(rng):
    """Arguments of `run` after the model."""
    values = ["", "0", "-1", "1", "2", "9223372036854775807", "9223372036854775808", "1e9", "nan",
              "x", "\x1b[2J", "1x2", "=", "off", "\xff", "a" * 5000, "0x10", "1,2", " "]
    specs = ["x=2x3xf32=1 2 3 4 5 6", "x=2x3xf32=1", "x=2x3xf32=", "x=", "=1", "x=f32=1",
             "x=1099511627776xf32=1", "x=2x3xq7=1", "x=-2x3xf32=1", "x=2x3xf32=1 2",
             "x=9223372036854775807x3xf32=1", "x=2x3xf32=nan inf -inf 1e400 0 0", "x=nothing.npy",
             "x=/dev/zero", "x=/tmp", "x=" + "1x" * 100 + "f32=1"]
    chosen = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        name = rng.choice(["--dim", "--shape", "--input", "--seed", "--threads", "--level",
                           "--device", "--numerics", "--library", "--precision", "--memory",
                           "--memory-limit", "--fuse", "--module", "--stop-after", "--json",
                           "--unknown", "--inputs"])
        value = rng.choice(specs if name == "--input" else values)
        if name in ("--dim", "--shape") and rng.random() < 0.8:
            value = rng.choice(["n", "x", "", "x" * 300]) + "=" + value
        if name == "--json":
            value = "-"
        if name == "--threads":  # more than a few thousand are refused, not started
            value = rng.choice(["0", "-1", "1", "2", "x", "", "99999999999999999999"])
        chosen += [name, value.replace("\0", "")]
    return chosen


def sources():
    """name -> function of a random.Random that gives a case: files by name, and arguments."""
    hlo, mlir = Hlo(), Mlir()  # options and arrays need one plain model only
    plain = ("HloModule m\nENTRY e {\n  x = f32[2,3] parameter(0)\n  y = f32[2,3] add(x, x)\n"
             "  ROOT z = f32[2,3] tanh(y)\n}\n")
    cases = {
        "hlo": lambda rng: ({"m.hlo": hlo(rng).encode("utf-8", "surrogateescape")}, ["m.hlo"]),
        "mlir": lambda rng: ({"m.mlir": mlir(rng).encode("utf-8", "surrogateescape")}, ["m.mlir"]),
        "npy": lambda rng: ({"m.hlo": plain.encode(), "x.npy": npy(rng)},
                            ["m.hlo", "--input", "x=x.npy"]),
        "npz": lambda rng: ({"m.hlo": plain.encode(), "x.npz": npz(rng)},
                            ["m.hlo", "--inputs", "x.npz"]),
        "options": lambda rng: ({"m.hlo": plain.encode()}, ["m.hlo"] + options(rng)),
    }
    try:
        onnx = Onnx()
        cases["onnx"] = lambda rng: ({"m.onnx": onnx(rng)}, ["m.onnx"])
    except ImportError:
        pass
    return cases


if __name__ == "__main__":
    for name, make in sources().items():
        files, arguments = make(random.Random(1))
        print(name, {file: len(content) for file, content in files.items()}, arguments)
