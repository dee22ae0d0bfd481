"""Operators that work element by element."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from .lower import DTYPES, TYPES, Graph, Unsupported, Value, is_complex, is_float
from .table import ROWS, Row, row, type_of

if TYPE_CHECKING:
    from .lower import Number, Operand

# Operators that are one of HLO's; integers and booleans become floats where the result is one.
_SAME = {
    "abs": "abs", "neg": "negate", "ceil": "ceil", "floor": "floor", "acos": "acos",
    "acosh": "acosh", "asin": "asin", "asinh": "asinh", "atanh": "atanh", "cos": "cosine",
    "cosh": "cosh", "sin": "sine", "sinh": "sinh", "tan": "tan", "tanh": "tanh",
    "exp": "exponential", "expm1": "exponential-minus-one", "log": "log", "log1p": "log-plus-one",
    "sqrt": "sqrt", "rsqrt": "rsqrt", "erf": "erf", "erfc": "erfc", "sigmoid": "logistic",
    "sign": "sign", "round.default": "round-nearest-even", "sgn": "sign",
    "bitwise_not": "not", "logical_not": "not",
}
_TAKES_INTEGERS = {"abs", "negate", "sign", "not"}
_EXACT_ON_INTEGERS = {"ceil", "floor", "round-nearest-even"}


def _unary(op: str, as_bool: bool = False) -> Row:
    def lower(g: Graph, r: Any, x: Value, *rest: Any) -> Value:
        type = "pred" if as_bool else type_of(r)
        if op == "abs" and is_complex(x.type):
            return g.unary("abs", x, type)
        x = g.convert(x, type)
        if not is_float(type) and not is_complex(type):
            if op in _EXACT_ON_INTEGERS or type == "pred" and op in ("abs", "sign"):
                return x
            if op not in _TAKES_INTEGERS:
                raise Unsupported(f"{op} of {type}")
        return g.unary(op, x)
    return lower


for _name, _op in _SAME.items():
    ROWS[_name] = _unary(_op, _name == "logical_not")


def _binary(op: str) -> Row:
    def lower(g: Graph, r: Any, x: Operand, y: Operand, *rest: Any) -> Value:
        type = type_of(r)
        return g.binary(op, g.like(x, type), g.like(y, type))
    return lower


for _name, _op in {
        "atan2": "atan2", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
        "pow.Tensor_Tensor": "power", "pow.Scalar": "power"}.items():
    ROWS[_name] = _binary(_op)


def common_type(x: Operand, y: Operand) -> str:
    """The type that two operands are compared or computed in."""
    values: list[Any] = [torch.empty(v.shape, dtype=DTYPES[v.type], device="meta")
                         if isinstance(v, Value) else v for v in (x, y)]
    return TYPES[torch.result_type(*values)]


def _comparison(direction: str) -> Row:
    def lower(g: Graph, r: Any, x: Operand, y: Operand) -> Value:
        type = common_type(x, y)
        return g.compare(direction, g.like(x, type), g.like(y, type))
    return lower


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    ROWS[_name] = _comparison(_name.upper())


def _logical(op: str) -> Row:
    return lambda g, r, x, y: g.binary(op, g.convert(x, "pred"), g.convert(y, "pred"))


for _name, _op in {"logical_and": "and", "logical_or": "or", "logical_xor": "xor"}.items():
    ROWS[_name] = _logical(_op)


def _scaled(g: Graph, y: Operand, alpha: Number | None, type: str) -> Value:
    y = g.like(y, type)
    return y if alpha in (1, None) else g.mul(y, g.scalar(alpha, type))


@row("add")
def add(g: Graph, r: Any, x: Operand, y: Operand, alpha: Number = 1) -> Value:
    return g.add_(g.like(x, type_of(r)), _scaled(g, y, alpha, type_of(r)))


@row("sub")
def sub(g: Graph, r: Any, x: Operand, y: Operand, alpha: Number = 1) -> Value:
    return g.sub(g.like(x, type_of(r)), _scaled(g, y, alpha, type_of(r)))


@row("rsub")
def rsub(g: Graph, r: Any, x: Operand, y: Operand, alpha: Number = 1) -> Value:
    return g.sub(g.like(y, type_of(r)), _scaled(g, x, alpha, type_of(r)))


@row("mul")
def mul(g: Graph, r: Any, x: Operand, y: Operand) -> Value:
    return g.mul(g.like(x, type_of(r)), g.like(y, type_of(r)))


def _rounded(g: Graph, x: Value, mode: str | None) -> Value:
    return g.unary("floor", x) if mode == "floor" else truncated(g, x)


def truncated(g: Graph, x: Value) -> Value:
    return g.select(g.compare("LT", x, 0), g.unary("ceil", x), g.unary("floor", x))


def _safe(g: Graph, y: Value) -> Value:
    """A divisor that is not 0: what an integer's quotient by 0 is, nobody may read."""
    return g.select(g.compare("EQ", y, 0), 1, y)


@row("div", "true_divide")
def div(g: Graph, r: Any, x: Operand, y: Operand, rounding_mode: str | None = None) -> Value:
    type = type_of(r)
    x, y = g.together(g.like(x, type), g.like(y, type))
    if rounding_mode is None:
        return g.div(x, y)
    if not is_float(type):
        if rounding_mode == "trunc":
            return g.div(x, _safe(g, y))
        y = _safe(g, y)
        quotient = g.div(x, y)
        rest = g.binary("remainder", x, y)
        down = g.both(g.compare("NE", rest, 0),
                      g.compare("NE", g.compare("LT", rest, 0), g.compare("LT", y, 0)))
        return g.select(down, g.sub(quotient, 1), quotient)
    if rounding_mode == "trunc":
        return truncated(g, g.div(x, y))
    # As Python and torch: from the remainder.
    rest = g.binary("remainder", x, y)
    exact = g.div(g.sub(x, rest), y)
    down = g.both(g.compare("NE", rest, 0),
                  g.compare("NE", g.compare("LT", rest, 0), g.compare("LT", y, 0)))
    exact = g.select(down, g.sub(exact, 1), exact)
    near = g.unary("floor", exact)
    near = g.select(g.compare("GT", g.sub(exact, near), 0.5), g.add_(near, 1), near)
    return g.select(g.compare("EQ", y, 0), g.div(x, y), near)


ROWS["floor_divide"] = lambda g, r, x, y: div(g, r, x, y, "floor")


@row("fmod")
def fmod(g: Graph, r: Any, x: Operand, y: Operand) -> Value:
    x, y = g.like(x, type_of(r)), g.like(y, type_of(r))
    return g.binary("remainder", x, y if is_float(y.type) else _safe(g, y))


ROWS["prims.fmod"] = fmod


@row("remainder")
def remainder(g: Graph, r: Any, x: Operand, y: Operand) -> Value:
    x, y = g.together(g.like(x, type_of(r)), g.like(y, type_of(r)))
    y = y if is_float(y.type) else _safe(g, y)
    rest = g.binary("remainder", x, y)
    other = g.both(g.compare("NE", rest, 0),
                   g.compare("NE", g.compare("LT", rest, 0), g.compare("LT", y, 0)))
    return g.select(other, g.add_(rest, y), rest)


@row("pow.Tensor_Scalar")
def pow_scalar(g: Graph, r: Any, x: Operand, y: Any) -> Value:
    x = g.like(x, type_of(r))
    if is_complex(x.type):
        raise Unsupported("powers of complex numbers")
    powers = {0.5: lambda: g.unary("sqrt", x), 1: lambda: x, 2: lambda: g.mul(x, x),
              3: lambda: g.mul(g.mul(x, x), x), -1: lambda: g.div(g.scalar(1, x.type), x),
              -0.5: lambda: g.unary("rsqrt", x), 0: lambda: g.full(x.shape, 1, x.type)}
    if y in powers and (is_float(x.type) or y in (0, 1, 2, 3)):
        return powers[y]()
    return g.binary("power", x, g.scalar(y, x.type))


@row("square")
def square(g: Graph, r: Any, x: Value) -> Value:
    return g.mul(x, x)


@row("reciprocal")
def reciprocal(g: Graph, r: Any, x: Value) -> Value:
    x = g.convert(x, type_of(r))
    return g.div(g.scalar(1, x.type), x)


@row("trunc", "fix")
def trunc(g: Graph, r: Any, x: Value) -> Value:
    return truncated(g, x) if is_float(x.type) else x


@row("round.decimals")
def round_decimals(g: Graph, r: Any, x: Value, decimals: int) -> Value:
    scale = 10.0 ** abs(decimals)
    if decimals < 0:
        return g.mul(g.unary("round-nearest-even", g.div(x, scale)), scale)
    return g.div(g.unary("round-nearest-even", g.mul(x, scale)), scale)


@row("maximum", "max.other")
def maximum(g: Graph, r: Any, x: Operand, y: Operand) -> Value:
    return g.max(g.like(x, type_of(r)), g.like(y, type_of(r)))


@row("minimum", "min.other")
def minimum(g: Graph, r: Any, x: Operand, y: Operand) -> Value:
    return g.min(g.like(x, type_of(r)), g.like(y, type_of(r)))


def _without_nan(pick: Callable[[Graph, Value, Value], Value]) -> Row:
    def lower(g: Graph, r: Any, x: Operand, y: Operand) -> Value:
        x, y = g.like(x, type_of(r)), g.like(y, type_of(r))
        both = pick(g, x, y)
        if not is_float(both.type):
            return both
        return g.select(g.is_nan(x), y, g.select(g.is_nan(y), x, both))
    return lower


ROWS["fmax"] = _without_nan(lambda g, x, y: g.max(x, y))
ROWS["fmin"] = _without_nan(lambda g, x, y: g.min(x, y))


@row("clamp", "clip", "hardtanh")
def clamp(g: Graph, r: Any, x: Value, low: Operand | None = None,
          high: Operand | None = None) -> Value:
    x = g.convert(x, type_of(r))
    if low is not None:
        x = g.max(x, g.like(low, x.type))
    return x if high is None else g.min(x, g.like(high, x.type))


ROWS["clamp_min"] = clamp
ROWS["clamp_max"] = lambda g, r, x, high: clamp(g, r, x, None, high)
ROWS["relu"] = lambda g, r, x: g.max(x, g.scalar(0, x.type))
ROWS["relu6"] = lambda g, r, x: g.min(g.max(x, 0), 6)


@row("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(g: Graph, r: Any, which: Value, x: Operand, y: Operand) -> Value:
    return g.select(g.convert(which, "pred"), g.like(x, type_of(r)), g.like(y, type_of(r)))


@row("isnan")
def isnan(g: Graph, r: Any, x: Value) -> Value:
    return g.is_nan(x)


@row("isinf")
def isinf(g: Graph, r: Any, x: Value) -> Value:
    if not is_float(x.type):
        return g.full(x.shape, False, "pred")
    return g.compare("EQ", g.unary("abs", x), math.inf)


ROWS["signbit"] = lambda g, r, x: g.compare("LT", _bits(g, x), 0) if is_float(x.type) \
    else g.compare("LT", x, 0)


def _bits(g: Graph, x: Value) -> Value:
    return g.bitcast(x, {"f16": "s16", "bf16": "s16", "f32": "s32", "f64": "s64"}[x.type])


@row("copysign")
def copysign(g: Graph, r: Any, x: Operand, y: Operand) -> Value:
    type = type_of(r)
    size = g.unary("abs", g.like(x, type))
    negative = g.compare("LT", _bits(g, g.like(y, type)), 0)
    return g.select(negative, g.neg(size), size)


@row("atan")
def atan(g: Graph, r: Any, x: Value) -> Value:
    x = g.convert(x, type_of(r))
    return g.binary("atan2", x, g.scalar(1, x.type))


def _log_by(base: float) -> Row:
    def lower(g: Graph, r: Any, x: Value) -> Value:
        x = g.convert(x, type_of(r))
        return g.mul(g.unary("log", x), 1 / math.log(base))
    return lower


ROWS["log2"], ROWS["log10"] = _log_by(2), _log_by(10)


@row("exp2")
def exp2(g: Graph, r: Any, x: Value) -> Value:
    x = g.convert(x, type_of(r))
    return g.binary("power", g.scalar(2, x.type), x)


@row("hypot")
def hypot(g: Graph, r: Any, x: Value, y: Value) -> Value:
    x, y = g.unary("abs", x), g.unary("abs", y)
    large, small = g.max(x, y), g.min(x, y)
    ratio = g.div(small, large)
    size = g.mul(large, g.unary("sqrt", g.add_(g.mul(ratio, ratio), 1)))
    return g.select(g.either(g.compare("EQ", small, 0), g.compare("EQ", large, math.inf)),
                    large, size)


@row("_to_copy", "prims.convert_element_type", "prims.device_put")
def to_copy(g: Graph, r: Any, x: Value, *rest: Any) -> Value:
    return g.convert(x, type_of(r))


@row("clone", "alias", "detach", "lift_fresh_copy", "lift_fresh", "lift", "contiguous",
     "positive", "prims.view_of", "alias_copy")
def same(g: Graph, r: Any, x: Any, *rest: Any) -> Any:
    return x


@row("_conj", "_conj_physical", "conj_physical")
def conj(g: Graph, r: Any, x: Value) -> Value:
    if not is_complex(x.type):
        return x
    part = "f32" if x.type == "c64" else "f64"
    real, imag = g.unary("real", x, part), g.unary("imag", x, part)
    return g.binary("complex", real, g.neg(imag), x.type)


@row("complex")
def complex_(g: Graph, r: Any, x: Value, y: Value) -> Value:
    return g.binary("complex", x, y, type_of(r))


@row("real", "imag")
def real(g: Graph, r: Any, x: Value) -> Value:
    return g.unary("real", x, type_of(r))


@row("view_as_real")
def view_as_real(g: Graph, r: Any, x: Value) -> Value:
    parts = [g.unary(op, x, type_of(r)) for op in ("real", "imag")]
    return g.concat([g.reshape(part, (*x.shape, 1)) for part in parts], x.rank)


@row("view_as_complex")
def view_as_complex(g: Graph, r: Any, x: Value) -> Value:
    re, im = (g.reshape(g.slice_dim(x, x.rank - 1, i, i + 1), x.shape[:-1]) for i in (0, 1))
    return g.binary("complex", re, im, type_of(r))


def _polar_parts(g: Graph, size: Value, angle: Value) -> tuple[Value, Value]:
    return g.mul(size, g.unary("cosine", angle)), g.mul(size, g.unary("sine", angle))


@row("polar")
def polar(g: Graph, r: Any, size: Value, angle: Value) -> Value:
    return g.binary("complex", *_polar_parts(g, size, angle), type_of(r))


@row("angle")
def angle(g: Graph, r: Any, x: Value) -> Value:
    if is_complex(x.type):
        return g.binary("atan2", g.unary("imag", x, type_of(r)), g.unary("real", x, type_of(r)))
    x = g.convert(x, type_of(r))
    half_turn = g.select(g.compare("LT", x, 0), g.scalar(math.pi, x.type), g.scalar(0, x.type))
    return g.select(g.is_nan(x), x, half_turn)


def _shift(op: str) -> Row:
    return lambda g, r, x, y: g.binary(op, g.like(x, type_of(r)), g.like(y, type_of(r)))


ROWS["bitwise_left_shift"] = ROWS["__lshift__"] = _shift("shift-left")
ROWS["bitwise_right_shift"] = ROWS["__rshift__"] = _shift("shift-right-arithmetic")


# ---- activations ----

@row("gelu")
def gelu(g: Graph, r: Any, x: Value, approximate: str = "none") -> Value:
    if approximate == "tanh":
        cube = g.mul(g.mul(x, x), x)
        inner = g.mul(g.add_(x, g.mul(cube, 0.044715)), math.sqrt(2 / math.pi))
        return g.mul(g.mul(x, 0.5), g.add_(g.unary("tanh", inner), 1))
    return g.mul(g.mul(x, 0.5), g.add_(g.unary("erf", g.mul(x, math.sqrt(0.5))), 1))


@row("leaky_relu")
def leaky_relu(g: Graph, r: Any, x: Value, slope: float = 0.01) -> Value:
    return g.select(g.compare("GT", x, 0), x, g.mul(x, slope))


@row("elu")
def elu(g: Graph, r: Any, x: Value, alpha: float = 1, scale: float = 1,
        input_scale: float = 1) -> Value:
    below = g.mul(g.unary("exponential-minus-one", g.mul(x, input_scale)), alpha * scale)
    return g.select(g.compare("GT", x, 0), g.mul(x, scale), below)


@row("silu")
def silu(g: Graph, r: Any, x: Value) -> Value:
    return g.mul(x, g.unary("logistic", x))


@row("ldexp")
def ldexp(g: Graph, r: Any, x: Operand, y: Operand) -> Value:
    type = type_of(r)
    return g.mul(g.like(x, type), g.binary("power", g.scalar(2, type), g.like(y, type)))


@row("nextafter")
def nextafter(g: Graph, r: Any, x: Value, y: Value) -> Value:
    bits = _bits(g, x)
    zero = g.compare("EQ", x, 0)
    up = g.compare("GT", y, x)
    away = g.compare("EQ", up, g.compare("GT", x, 0))
    moved = g.bitcast(g.select(away, g.add_(bits, 1), g.sub(bits, 1)), x.type)
    tiny = g.bitcast(g.full(x.shape, 1, bits.type), x.type)
    moved = g.select(zero, g.select(up, tiny, g.neg(tiny)), moved)
    moved = g.select(g.compare("EQ", x, y), y, moved)
    return g.select(g.is_nan(x), x, g.select(g.is_nan(y), y, moved))

@row("frexp")
def frexp(g: Graph, r: Any, x: Value) -> list[Value]:
    if x.type != "f32":
        raise Unsupported(f"the parts of {x.type}")
    tiny = g.compare("LT", g.unary("abs", x), 2.0 ** -126)
    scaled = g.bitcast(g.select(tiny, g.mul(x, 2.0 ** 24), x), "s32")
    exponent = g.both(g.binary("shift-right-logical", scaled, 23), 255)
    mantissa = g.bitcast(g.either(g.both(scaled, -0x7F800001), 126 << 23), "f32")
    exponent = g.sub(exponent, g.select(tiny, g.scalar(126 + 24, "s32"), g.scalar(126, "s32")))
    plain = g.both(g.compare("NE", x, 0), g.unary("is-finite", x, "pred"))
    return [g.select(plain, mantissa, x), g.select(plain, exponent, g.scalar(0, "s32"))]


# What decompositions leave of prims: operands have the result's type.
for _name in ("add", "sub", "mul", "div", "abs", "neg", "exp", "log", "sqrt", "rsqrt", "eq", "ne",
              "lt", "le", "gt", "ge", "maximum", "minimum", "floor", "ceil", "sin", "cos", "tan",
              "tanh", "erf", "where", "remainder", "isfinite", "trunc", "reciprocal", "atan2"):
    _row = ROWS.get(_name) or ROWS.get(_name + ".self")
    if _row is not None:
        ROWS["prims." + _name] = _row
ROWS["prims.pow"] = ROWS["pow.Tensor_Tensor"]
ROWS["prims.round"] = ROWS["round.default"]
