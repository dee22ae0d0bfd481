"""Writes the products as HLO text without weights: enough to compile them, and no packages are needed.

    as_hlo.py FOLDER      writes FOLDER/NAME.hlo
"""
import os
import sys

import shapes

HALF_ROOT = 0.7071067811865476


class Model:
    """As shapes.models() wants one."""

    def __init__(self, _seed):
        self.lines, self.types, self.outputs = [], {}, []
        self.parameters = 0

    def add(self, prefix, shape, text):
        name = f"{prefix}{len(self.lines)}"
        self.types[name] = tuple(shape)
        self.lines.append(f"  {name} = {self.type_of(shape)} {text}")
        return name

    @staticmethod
    def type_of(shape):
        return f"f32[{','.join(map(str, shape))}]"

    def input(self, shape):
        self.parameters += 1
        return self.add("x", shape, f"parameter({self.parameters - 1})")

    def weight(self, shape, _fan_in):
        return self.add("w", shape, "constant({...})")

    def number(self, value, like):
        scalar = self.add("c", (), f"constant({value!r})")
        return self.add("b", self.types[like], f"broadcast({scalar}), dimensions={{}}")

    def op(self, name, *operands):
        return self.add("v", self.types[operands[0]], f"{name}({', '.join(operands)})")

    def product(self, x, m, n, k):
        return self.add("v", (m, n), f"dot({x}, {self.weight((k, n), k)}), "
                        "lhs_contracting_dims={1}, rhs_contracting_dims={0}")

    def convolution(self, x, size, channels, features, kernel, stride, groups, bias=False, dilation=1):
        pad = kernel // 2 * dilation
        out = (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
        weight = self.weight((features, channels // groups, kernel, kernel), 1)
        window = (f"size={kernel}x{kernel} stride={stride}x{stride} pad={pad}_{pad}x{pad}_{pad} "
                  f"rhs_dilate={dilation}x{dilation}")
        result = self.add("v", (1, features, out, out),
                          f"convolution({x}, {weight}), window={{{window}}}, "
                          f"dim_labels=bf01_oi01->bf01, feature_group_count={groups}")
        return self.plus_vector(result, self.weight((features,), 1), 1) if bias else result

    def plus_vector(self, x, vector, dimension):
        wide = self.add("b", self.types[x], f"broadcast({vector}), dimensions={{{dimension}}}")
        return self.op("add", x, wide)

    def node(self, kind, inputs):
        x = inputs[0]
        if kind == "Add":
            return self.plus_vector(x, inputs[1], len(self.types[x]) - 1)
        if kind == "Relu":
            return self.op("maximum", x, self.number(0.0, x))
        if kind == "Gelu":
            inner = self.op("erf", self.op("multiply", x, self.number(HALF_ROOT, x)))
            half = self.op("multiply", x, self.number(0.5, x))
            return self.op("multiply", half, self.op("add", inner, self.number(1.0, x)))
        if kind == "HardSwish":
            line = self.op("add", self.op("multiply", x, self.number(1 / 6, x)), self.number(0.5, x))
            inside = self.op("maximum", self.number(0.0, x),
                             self.op("minimum", self.number(1.0, x), line))
            return self.op("multiply", x, inside)
        if kind == "Softplus":
            small = self.op("exponential", self.op("negate", self.op("abs", x)))
            return self.op("add", self.op("maximum", x, self.number(0.0, x)),
                           self.op("log-plus-one", small))
        raise ValueError(f"{kind}: no such node")

    def output(self, x):
        self.outputs.append(x)

    def text(self, name):
        types = ", ".join(self.type_of(self.types[x]) for x in self.outputs)
        root = f"  ROOT out = ({types}) tuple({', '.join(self.outputs)})"
        return "\n".join([f"HloModule {name}", "ENTRY main {", *self.lines, root, "}", ""])


def write(folder):
    os.makedirs(folder, exist_ok=True)
    for name, model in shapes.models(Model):
        with open(os.path.join(folder, name + ".hlo"), "w") as file:
            file.write(model.text(name))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("wanted as_hlo.py FOLDER")
    write(sys.argv[1])
