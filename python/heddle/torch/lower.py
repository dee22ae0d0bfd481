"""Writes HLO text: a graph under construction, whose operations infer types and shapes.

A Value is the name of an instruction, with its element type and extents. Operations broadcast as
NumPy's do. Everything that a row of the tables (ops_*.py) needs is a method here.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Union

import torch

if TYPE_CHECKING:
    Number = Union[int, float, complex]  # and bool
    Shape = Sequence[int]
    Pair = tuple[Shape, Shape]  # of two operands
    Operand = Union["Value", Number]

# Element types of HLO by torch's.
TYPES = {
    torch.bool: "pred", torch.uint8: "u8", torch.int8: "s8", torch.int16: "s16",
    torch.int32: "s32", torch.int64: "s64", torch.uint16: "u16", torch.uint32: "u32",
    torch.uint64: "u64", torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32",
    torch.float64: "f64", torch.complex64: "c64", torch.complex128: "c128",
}
DTYPES = {name: dtype for dtype, name in TYPES.items()}
_broadcast_shapes: Callable[..., Shape] = torch.broadcast_shapes  # which has no types
_PARTS = {"c64": "f32", "c128": "f64"}


class Unsupported(Exception):
    """What an operator does here has no form in HLO; the message says why."""


def is_float(type: str) -> bool:
    return type in ("f16", "bf16", "f32", "f64")


def is_complex(type: str) -> bool:
    return type in _PARTS


def is_integer(type: str) -> bool:
    return type[0] in "su" and type != "pred"


def limits(type: str) -> tuple[float, float]:
    """(least, most) finite or integer value of a type."""
    if type == "pred":
        return False, True
    info = torch.finfo(DTYPES[type]) if is_float(type) else torch.iinfo(DTYPES[type])
    return info.min, info.max


class Value:
    """An instruction's result."""
    __slots__ = ("name", "type", "shape")

    def __init__(self, name: str, type: str, shape: Shape) -> None:
        self.name, self.type, self.shape = name, type, tuple(shape)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def count(self) -> int:
        return math.prod(self.shape)


def shape_text(type: str, shape: Shape) -> str:
    return f"{type}[{','.join(map(str, shape))}]"


def _braces(numbers: Shape) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


def number_text(value: Number, type: str) -> str:
    """A number as HLO writes it in a constant of this type."""
    if is_complex(type):
        value = complex(value)
        part = _PARTS[type]
        return f"({number_text(value.real, part)}, {number_text(value.imag, part)})"
    if type == "pred":
        return "true" if value else "false"
    if isinstance(value, complex):
        raise Unsupported(f"the complex number {value} as {type}")
    if is_float(type):
        value = float(value)
        if math.isnan(value):
            return "nan"
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return repr(value)
    least, most = limits(type)
    value = int(value)
    if not least <= value <= most:  # as C converts it
        value = (value - least) % (most - least + 1) + least
    return str(value)


class Graph:
    """HLO text under construction."""

    def __init__(self, name: str = "model") -> None:
        self.name = name
        self.lines: list[str] = []
        self.helpers: dict[str, str] = {}   # text of a computation -> its name
        # (operation, operands, …) -> Value: the same twice is the same
        self.known: dict[tuple[object, ...], Value] = {}
        self.inputs: list[tuple[str, tuple[int, ...]]] = []  # (type, shape)
        self.place = ""     # metadata of what is added next

    # ---- instructions ----

    def add(self, op: str, type: str, shape: Shape, operands: Sequence[Value], attrs: str = "",
            keep: bool = True) -> Value:
        """An instruction; one that is there already is given again."""
        names = ", ".join(value.name for value in operands)
        key = (op, type, tuple(shape), names, attrs)
        if keep and key in self.known:
            return self.known[key]
        name = f"v{len(self.lines)}"
        text = f"{name} = {shape_text(type, shape)} {op}({names})"
        self.lines.append(text + (", " + attrs if attrs else "") + self.place)
        value = Value(name, type, shape)
        self.known[key] = value
        return value

    def add_tuple(self, op: str, parts: Sequence[tuple[str, Shape]], operands: Sequence[Value],
                  attrs: str = "") -> list[Value]:
        """An instruction with several results, [(type, shape)]."""
        names = ", ".join(value.name for value in operands)
        name = f"v{len(self.lines)}"
        shapes = ", ".join(shape_text(*part) for part in parts)
        self.lines.append(f"{name} = ({shapes}) {op}({names})" + (", " + attrs if attrs else ""))
        whole = Value(name, "tuple", ())
        return [self.add("get-tuple-element", *part, [whole], f"index={i}")
                for i, part in enumerate(parts)]

    def parameter(self, type: str, shape: Shape) -> Value:
        number = len(self.inputs)
        self.inputs.append((type, tuple(shape)))
        name = f"p{number}"
        self.lines.append(f"{name} = {shape_text(type, shape)} parameter({number})")
        return Value(name, type, shape)

    def helper(self, lines: list[str], root: str, parameters: Sequence[tuple[str, Shape]]) -> str:
        """The name of a computation: lines of its body, of which `root` is the result."""
        body = [f"a{i} = {shape_text(type, shape)} parameter({i})"
                for i, (type, shape) in enumerate(parameters)] + lines + ["ROOT " + root]
        text = "\n  ".join(body)
        return self.helpers.setdefault(text, f"f{len(self.helpers)}")

    def combiner(self, op: str, type: str) -> str:
        return self.helper([], f"r = {type}[] {op}(a0, a1)", [(type, ()), (type, ())])

    def text(self, outputs: Sequence[Value]) -> str:
        """The module; its results are these values."""
        parts = [f"HloModule {self.name}\n"]
        for body, name in self.helpers.items():
            parts.append(f"{name} {{\n  {body}\n}}\n")
        shapes = ", ".join(shape_text(value.type, value.shape) for value in outputs)
        names = ", ".join(value.name for value in outputs)
        parts.append("ENTRY main {\n  " + "\n  ".join(self.lines)
                     + f"\n  ROOT out = ({shapes}) tuple({names})\n}}\n")
        return "\n".join(parts)

    # ---- constants and types ----

    def scalar(self, value: Number, type: str) -> Value:
        text = number_text(value, type)
        key = ("constant", type, text)
        if key not in self.known:
            name = f"v{len(self.lines)}"
            self.lines.append(f"{name} = {type}[] constant({text})")
            self.known[key] = Value(name, type, ())
        return self.known[key]

    def full(self, shape: Shape, value: Number, type: str) -> Value:
        return self.broadcast(self.scalar(value, type), shape)

    def array(self, values: Sequence[Number], shape: Shape, type: str) -> Value:
        """A constant, of nested lists or a flat list of numbers in row-major order."""
        flat = [number_text(value, type) for value in values]

        def braces(flat: list[str], shape: Shape) -> str:
            if not shape:
                return flat[0]
            step = math.prod(shape[1:])
            return "{" + ", ".join(braces(flat[i * step:(i + 1) * step], shape[1:])
                                   for i in range(shape[0])) + "}"
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {shape_text(type, shape)} constant({braces(flat, shape)})")
        return Value(name, type, shape)

    def like(self, x: Operand, type: str) -> Value:
        """x, a Value or a number, as a value of the type."""
        if not isinstance(x, Value):
            return self.scalar(x, type)
        return self.convert(x, type)

    def convert(self, x: Value, type: str) -> Value:
        """As torch converts: to bool what is not zero, to integers towards zero."""
        if x.type == type:
            return x
        if type == "pred":
            return self.compare("NE", x, 0)
        if is_complex(x.type) and not is_complex(type):
            return self.convert(self.add("real", _PARTS[x.type], x.shape, [x]), type)
        if is_complex(type) and not is_complex(x.type):
            part = self.convert(x, _PARTS[type])
            return self.add("complex", type, x.shape, [part, self.full(x.shape, 0, part.type)])
        if type == "u8" and is_float(x.type):  # modulo 256, as C on x86 does
            x = self.convert(x, "s32")
        return self.add("convert", type, x.shape, [x])

    def bitcast(self, x: Value, type: str) -> Value:
        return x if x.type == type else self.add("bitcast-convert", type, x.shape, [x])

    # ---- movement ----

    def reshape(self, x: Value, shape: Shape) -> Value:
        shape = tuple(shape)
        return x if x.shape == shape else self.add("reshape", x.type, shape, [x])

    def broadcast(self, x: Value, shape: Shape, dims: Shape | None = None) -> Value:
        """To a larger shape; dims: where its dimensions go (absent: NumPy's rule)."""
        shape = tuple(shape)
        if x.shape == shape and dims is None:
            return x
        if dims is None:
            dims = list(range(len(shape) - x.rank, len(shape)))
        keep = [i for i, d in enumerate(dims) if x.shape[i] == shape[d]]
        for i, d in enumerate(dims):
            if x.shape[i] not in (1, shape[d]):
                raise Unsupported(f"a broadcast of {x.shape} to {shape}")
        x = self.reshape(x, [x.shape[i] for i in keep])
        return self.add("broadcast", x.type, shape, [x],
                        f"dimensions={_braces([dims[i] for i in keep])}")

    def together(self, *values: Value) -> list[Value]:
        """Broadcast to one shape."""
        shape = _broadcast_shapes(*(value.shape for value in values))
        return [self.broadcast(value, shape) for value in values]

    def transpose(self, x: Value, dims: Shape) -> Value:
        dims = list(dims)
        if dims == list(range(x.rank)):
            return x
        return self.add("transpose", x.type, [x.shape[d] for d in dims], [x],
                        f"dimensions={_braces(dims)}")

    def slice(self, x: Value, starts: Shape, ends: Shape, steps: Shape | None = None) -> Value:
        steps = steps or [1] * x.rank
        shape = [max(0, -(-(e - s) // t)) for s, e, t in zip(starts, ends, steps)]
        if shape == list(x.shape) and all(t == 1 for t in steps):
            return x
        ranges = ", ".join(f"[{s}:{e}:{t}]" for s, e, t in zip(starts, ends, steps))
        return self.add("slice", x.type, shape, [x], f"slice={{{ranges}}}")

    def slice_dim(self, x: Value, dim: int, start: int, end: int, step: int = 1) -> Value:
        starts, ends, steps = [0] * x.rank, list(x.shape), [1] * x.rank
        starts[dim], ends[dim], steps[dim] = start, max(start, end), step
        return self.slice(x, starts, ends, steps)

    def concat(self, values: Sequence[Value], dim: int) -> Value:
        values = [v for v in values if v.shape[dim] > 0] or values[:1]
        if len(values) == 1:
            return values[0]
        shape = list(values[0].shape)
        shape[dim] = sum(value.shape[dim] for value in values)
        return self.add("concatenate", values[0].type, shape, values, f"dimensions={{{dim}}}")

    def pad(self, x: Value, value: Operand, low: Shape, high: Shape,
            interior: Shape | None = None) -> Value:
        """Negative amounts cut."""
        interior = interior or [0] * x.rank
        if not any(low) and not any(high) and not any(interior):
            return x
        shape = [max(0, l + h + n + max(0, n - 1) * i)
                 for n, l, h, i in zip(x.shape, low, high, interior)]
        places = "x".join(f"{l}_{h}_{i}" for l, h, i in zip(low, high, interior))
        return self.add("pad", x.type, shape, [x, self.like(value, x.type)], f"padding={places}")

    def reverse(self, x: Value, dims: Shape) -> Value:
        return self.add("reverse", x.type, x.shape, [x], f"dimensions={_braces(dims)}")

    def iota(self, shape: Shape, dim: int, type: str = "s64") -> Value:
        return self.add("iota", type, shape, [], f"iota_dimension={dim}")

    # ---- elementwise ----

    def unary(self, op: str, x: Value, type: str | None = None) -> Value:
        return self.add(op, type or x.type, x.shape, [x])

    def alike(self, x: Operand, y: Operand) -> list[Value]:
        """Two Values of one shape: a number, one of both at most, has the other's type."""
        if isinstance(x, Value):
            return self.together(x, y if isinstance(y, Value) else self.scalar(y, x.type))
        assert isinstance(y, Value)
        return self.together(self.scalar(x, y.type), y)

    def binary(self, op: str, x: Operand, y: Operand, type: str | None = None) -> Value:
        """x and y are Values or numbers; a number has the other's type."""
        x, y = self.alike(x, y)
        return self.add(op, type or x.type, x.shape, [x, y])

    def compare(self, direction: str, x: Operand, y: Operand) -> Value:
        x, y = self.alike(x, y)
        return self.add("compare", "pred", x.shape, [x, y], f"direction={direction}")

    def select(self, which: Value, x: Operand, y: Operand) -> Value:
        one = x if isinstance(x, Value) else y
        assert isinstance(one, Value)
        type = one.type
        which, x, y = self.together(which, self.like(x, type), self.like(y, type))
        return self.add("select", type, x.shape, [which, x, y])

    def add_(self, x: Value, y: Operand) -> Value:
        return self.binary("or" if x.type == "pred" else "add", x, y)

    def sub(self, x: Operand, y: Operand) -> Value:
        return self.binary("subtract", x, y)

    def mul(self, x: Operand, y: Operand) -> Value:
        return self.binary("and" if "pred" in (getattr(x, "type", ""), getattr(y, "type", ""))
                           else "multiply", x, y)

    def div(self, x: Operand, y: Operand) -> Value:
        return self.binary("divide", x, y)

    def max(self, x: Operand, y: Operand) -> Value:
        return self.binary("maximum", x, y)

    def min(self, x: Operand, y: Operand) -> Value:
        return self.binary("minimum", x, y)

    def neg(self, x: Value) -> Value:
        return self.unary("negate", x)

    def both(self, x: Operand, y: Operand) -> Value:
        return self.binary("and", x, y)

    def either(self, x: Operand, y: Operand) -> Value:
        return self.binary("or", x, y)

    def no(self, x: Value) -> Value:
        return self.unary("not", x)

    def is_nan(self, x: Value) -> Value:
        return self.compare("NE", x, x)

    # ---- reductions and products ----

    def reduce(self, op: str, x: Value, dims: Shape, start: Number, keep: bool = False) -> Value:
        dims = sorted(dims)
        shape = [n for d, n in enumerate(x.shape) if d not in dims]
        result = x if not dims else self.add(
            "reduce", x.type, shape, [x, self.scalar(start, x.type)],
            f"dimensions={_braces(dims)}, to_apply={self.combiner(op, x.type)}")
        if keep:
            result = self.reshape(result, [1 if d in dims else n for d, n in enumerate(x.shape)])
        return result

    def sum(self, x: Value, dims: Shape, keep: bool = False) -> Value:
        if x.type == "pred":
            return self.reduce("or", x, dims, False, keep)
        return self.reduce("add", x, dims, 0, keep)

    def most(self, x: Value, dims: Shape, keep: bool = False) -> Value:
        return self.reduce("maximum", x, dims, lowest(x.type), keep)

    def least(self, x: Value, dims: Shape, keep: bool = False) -> Value:
        return self.reduce("minimum", x, dims, highest(x.type), keep)

    def dot(self, x: Value, y: Value, contract: Pair, batch: Pair = ((), ())) -> Value:
        """contract, batch: (dimensions of x, dimensions of y). In the inputs' type."""
        if x.type == "pred":
            raise Unsupported("a product of booleans")
        free = [[n for d, n in enumerate(v.shape) if d not in c and d not in b]
                for v, c, b in zip((x, y), contract, batch)]
        shape = [x.shape[d] for d in batch[0]] + free[0] + free[1]
        if any(x.shape[d] == 0 for d in contract[0]):
            return self.full(shape, 0, x.type)
        attrs = f"lhs_contracting_dims={_braces(contract[0])}, rhs_contracting_dims={_braces(contract[1])}"
        if batch[0]:
            attrs = (f"lhs_batch_dims={_braces(batch[0])}, rhs_batch_dims={_braces(batch[1])}, "
                     + attrs)
        return self.add("dot", x.type, shape, [x, y], attrs)


def lowest(type: str) -> float:
    return -math.inf if is_float(type) else limits(type)[0]


def highest(type: str) -> float:
    return math.inf if is_float(type) else limits(type)[1]
