"""Functions of mathematics, computed in double for results in float."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from . import series
from .lower import Graph, Unsupported, Value
from .table import ROWS, Row, row, type_of

_EULER = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
# B(2j) / (2j)!
_ZETA = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
         1 / 74724249600)


def in_double(function: Row) -> Row:
    """Decorates f(g, *values in f64): rows for results of fewer bits."""
    def lower(g: Graph, r: Any, *args: Any) -> Value:
        if type_of(r) == "f64":
            raise Unsupported("in double, which it is not precise enough for")
        value: Value = function(g, *(g.like(x, "f64") for x in args))
        return value
    return lower


def horner(g: Graph, x: Value, coefficients: Sequence[float]) -> Value:
    """Highest power first."""
    y = g.full(x.shape, coefficients[0], "f64")
    for one in coefficients[1:]:
        y = g.add_(g.mul(y, x), one)
    return y


def chebyshev(g: Graph, table: tuple[float, float, Sequence[float]], u: Value) -> Value:
    """A series of series.py at u; u is kept inside its interval."""
    low, high, coefficients = table
    u = g.min(g.max(u, low), high)
    t = g.div(g.sub(g.mul(u, 2), low + high), high - low)
    twice = g.mul(t, 2)
    a = b = g.full(u.shape, 0, "f64")
    for one in reversed(coefficients[1:]):
        a, b = g.add_(g.sub(g.mul(twice, a), b), one), a
    return g.add_(g.sub(g.mul(t, a), b), coefficients[0])


def log(g: Graph, x: Value) -> Value:
    return g.unary("log", x)


def exp(g: Graph, x: Value) -> Value:
    return g.unary("exponential", x)


def sqrt(g: Graph, x: Value) -> Value:
    return g.unary("sqrt", x)


def inverse(g: Graph, value: float, x: Value) -> Value:
    """value / x"""
    return g.div(g.scalar(value, "f64"), x)


# ---- Bessel functions ----

def i0e(g: Graph, x: Value) -> Value:
    x = g.unary("abs", x)
    large = g.div(chebyshev(g, series.I0E_LARGE, inverse(g, 8, x)), sqrt(g, x))
    y = g.select(g.compare("LE", x, 8), chebyshev(g, series.I0E_SMALL, x), large)
    return g.select(g.is_nan(x), x, y)


def i1e(g: Graph, x: Value) -> Value:
    size = g.unary("abs", x)
    large = g.div(chebyshev(g, series.I1E_LARGE, inverse(g, 8, size)), sqrt(g, size))
    y = g.select(g.compare("LE", size, 8), g.mul(size, chebyshev(g, series.I1E_SMALL, size)), large)
    y = g.select(g.compare("LT", x, 0), g.neg(y), y)
    return g.select(g.is_nan(x), x, y)


def i0(g: Graph, x: Value) -> Value:
    return g.mul(i0e(g, x), exp(g, g.unary("abs", x)))


def i1(g: Graph, x: Value) -> Value:
    return g.mul(i1e(g, x), exp(g, g.unary("abs", x)))


def _beyond_zero(g: Graph, x: Value, y: Value) -> Value:
    """Infinite at 0, none below."""
    y = g.select(g.compare("EQ", x, 0), math.inf, y)
    return g.select(g.compare("LT", x, 0), math.nan, g.select(g.is_nan(x), x, y))


def _k(order: int, scaled: bool) -> Callable[[Graph, Value], Value]:
    def function(g: Graph, x: Value) -> Value:
        half_log = log(g, g.mul(x, 0.5))
        squared = g.mul(x, x)
        if order == 0:
            small = g.sub(chebyshev(g, series.K0_SMALL, squared), g.mul(half_log, i0(g, x)))
            large = chebyshev(g, series.K0E_LARGE, inverse(g, 2, x))
        else:
            small = g.add_(g.div(chebyshev(g, series.K1_SMALL, squared), x),
                           g.mul(half_log, i1(g, x)))
            large = chebyshev(g, series.K1E_LARGE, inverse(g, 2, x))
        large = g.div(large, sqrt(g, x))
        if scaled:
            small = g.mul(small, exp(g, x))
        else:
            large = g.mul(large, exp(g, g.neg(x)))
        return _beyond_zero(g, x, g.select(g.compare("LE", x, 2), small, large))
    return function


def _hankel(g: Graph, x: Value, order: int) -> tuple[Value, Value, Value, Value, Value]:
    """(P, Q / x, cosine, sine, size) for x of 8 and more."""
    u = inverse(g, 64, g.mul(x, x))
    p = chebyshev(g, (series.P0, series.P1)[order], u)
    q = g.div(chebyshev(g, (series.Q0, series.Q1)[order], u), x)
    at = g.sub(x, (2 * order + 1) * math.pi / 4)
    size = sqrt(g, inverse(g, 2 / math.pi, x))
    return p, q, g.unary("cosine", at), g.unary("sine", at), size


def _j(order: int) -> Callable[[Graph, Value], Value]:
    def function(g: Graph, x: Value) -> Value:
        size = g.unary("abs", x)
        squared = g.mul(size, size)
        small = chebyshev(g, (series.J0_SMALL, series.J1_SMALL)[order], squared)
        if order:
            small = g.mul(small, size)
        p, q, cosine, sine, scale = _hankel(g, size, order)
        large = g.mul(scale, g.sub(g.mul(p, cosine), g.mul(q, sine)))
        y = g.select(g.compare("LE", size, 8), small, large)
        y = g.select(g.compare("EQ", size, math.inf), 0, y)
        if order:
            y = g.select(g.compare("LT", x, 0), g.neg(y), y)
        return g.select(g.is_nan(x), x, y)
    return function


def _y(order: int) -> Callable[[Graph, Value], Value]:
    def function(g: Graph, x: Value) -> Value:
        squared = g.mul(x, x)
        small = chebyshev(g, (series.Y0_SMALL, series.Y1_SMALL)[order], squared)
        regular = g.mul(log(g, x), _j(order)(g, x))
        if order:
            small = g.mul(small, x)
            regular = g.sub(regular, inverse(g, 1, x))
        small = g.add_(small, g.mul(regular, 2 / math.pi))
        p, q, cosine, sine, scale = _hankel(g, x, order)
        large = g.mul(scale, g.add_(g.mul(p, sine), g.mul(q, cosine)))
        y = g.select(g.compare("LE", x, 8), small, large)
        y = g.select(g.compare("EQ", x, math.inf), 0, y)
        y = g.select(g.compare("EQ", x, 0), -math.inf, y)
        return g.select(g.compare("LT", x, 0), math.nan, y)
    return function


def airy_ai(g: Graph, x: Value) -> Value:
    positive = g.max(x, 3)
    root = sqrt(g, positive)
    zeta = g.mul(g.mul(positive, root), 2 / 3)
    u = inverse(g, 3 ** 1.5, g.mul(positive, root))
    large = g.div(g.mul(chebyshev(g, series.AIRY_LARGE, u), exp(g, g.neg(zeta))), sqrt(g, root))
    z = g.max(g.neg(x), 6)
    root = sqrt(g, z)
    at = g.add_(g.mul(g.mul(z, root), 2 / 3), math.pi / 4)
    small_root = inverse(g, 6 ** 1.5, g.mul(z, root))
    u = g.mul(small_root, small_root)
    p = chebyshev(g, series.AIRY_P, u)
    q = g.mul(chebyshev(g, series.AIRY_Q, u), small_root)
    waves = g.sub(g.mul(p, g.unary("sine", at)), g.mul(q, g.unary("cosine", at)))
    waves = g.div(waves, g.mul(sqrt(g, root), math.sqrt(math.pi)))
    middle = chebyshev(g, series.AIRY_MIDDLE, x)
    y = g.select(g.compare("GT", x, 3), large, g.select(g.compare("LT", x, -6), waves, middle))
    y = g.select(g.compare("EQ", x, math.inf), 0, y)
    return g.select(g.either(g.is_nan(x), g.compare("EQ", x, -math.inf)), math.nan, y)


def spherical_j0(g: Graph, x: Value) -> Value:
    y = g.div(g.unary("sine", x), x)
    y = g.select(g.compare("EQ", x, 0), 1, y)
    return g.select(g.compare("EQ", g.unary("abs", x), math.inf), 0, y)


# ---- gamma and its kin ----

_SHIFT = 8


def lgamma(g: Graph, x: Value) -> Value:
    above = g.select(g.compare("LT", x, 0.5), g.sub(g.scalar(1, "f64"), x), x)
    product, at = above, above
    for _ in range(_SHIFT - 1):
        at = g.add_(at, 1)
        product = g.mul(product, at)
    at = g.add_(above, _SHIFT)
    over = inverse(g, 1, at)
    terms = (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
    rest = g.mul(horner(g, g.mul(over, over), terms), over)
    y = g.add_(g.sub(g.mul(g.sub(at, 0.5), log(g, at)), at), 0.5 * math.log(2 * math.pi))
    small = g.sub(g.add_(y, rest), log(g, product))
    at = g.sub(above, 0.5)
    large = g.add_(g.sub(g.mul(at, log(g, above)), above), 0.5 * math.log(2 * math.pi))
    y = g.select(g.compare("GT", above, 1e8), large, small)
    fraction = g.sub(x, g.unary("floor", x))
    sine = g.unary("abs", g.unary("sine", g.mul(fraction, math.pi)))
    reflected = g.sub(g.sub(g.scalar(math.log(math.pi), "f64"), log(g, sine)), y)
    y = g.select(g.compare("LT", x, 0.5), reflected, y)
    pole = g.both(g.compare("LE", x, 0), g.compare("EQ", fraction, 0))
    infinite = g.compare("EQ", g.unary("abs", x), math.inf)
    return g.select(g.either(pole, infinite), math.inf, y)


def digamma(g: Graph, x: Value) -> Value:
    below = g.compare("LT", x, 0)
    above = g.select(below, g.sub(g.scalar(1, "f64"), x), x)
    lost = g.full(x.shape, 0, "f64")
    for k in range(_SHIFT):
        lost = g.add_(lost, inverse(g, 1, g.add_(above, k)))
    at = g.add_(above, _SHIFT)
    over = inverse(g, 1, at)
    squared = g.mul(over, over)
    y = g.sub(log(g, at), g.mul(over, 0.5))
    y = g.sub(y, g.mul(horner(g, squared, _EULER[::-1]), squared))
    y = g.sub(y, lost)
    fraction = g.sub(x, g.unary("floor", x))
    turn = g.mul(fraction, math.pi)
    y = g.select(below, g.sub(y, g.div(g.scalar(math.pi, "f64"), g.unary("tan", turn))), y)
    y = g.select(g.both(below, g.compare("EQ", fraction, 0)), math.nan, y)
    signed = g.compare("LT", g.bitcast(x, "s64"), 0)
    pole = g.select(signed, g.scalar(math.inf, "f64"), g.scalar(-math.inf, "f64"))
    y = g.select(g.compare("EQ", x, 0), pole, y)
    return g.select(g.compare("EQ", x, math.inf), math.inf, y)


def zeta(g: Graph, s: Value, q: Value) -> Value:
    """Hurwitz's, by Euler and Maclaurin's sum; where q is negative that begins there."""
    s, q = g.together(s, q)
    steps = 32
    total = g.full(q.shape, 0, "f64")
    at = q
    power = g.neg(s)
    for _ in range(steps):
        total = g.add_(total, g.binary("power", at, power))
        at = g.add_(at, 1)
    last = g.binary("power", at, power)
    total = g.add_(total, g.add_(g.div(g.mul(last, at), g.sub(s, 1)), g.mul(last, 0.5)))
    factor, over = s, inverse(g, 1, at)
    term = g.mul(last, over)
    for j, one in enumerate(_ZETA):
        total = g.add_(total, g.mul(g.mul(term, factor), one))
        factor = g.mul(factor, g.mul(g.add_(s, 2 * j + 1), g.add_(s, 2 * j + 2)))
        term = g.mul(term, g.mul(over, over))
    whole = g.compare("EQ", q, g.unary("floor", q))
    below = g.compare("LE", q, 0)
    fraction = g.compare("NE", s, g.unary("floor", s))
    y = g.select(g.both(below, fraction), math.nan, total)
    # So far below, the sum above would not reach what it is good for.
    y = g.select(g.compare("LT", q, 8 - steps), math.nan, y)
    y = g.select(g.both(below, whole), math.inf, y)
    y = g.select(g.compare("EQ", s, 1), math.inf, y)
    return g.select(g.compare("LT", s, 1), math.nan, y)


@row("polygamma")
def polygamma(g: Graph, r: Any, n: int, x: Value) -> Value:
    if type_of(r) == "f64":
        raise Unsupported("in double, which it is not precise enough for")
    x = g.convert(x, "f64")
    if n == 0:
        return digamma(g, x)
    if n > 1:
        y = g.mul(zeta(g, g.full(x.shape, n + 1, "f64"), x), math.factorial(n))
        return y if n % 2 else g.neg(y)
    below = g.compare("LT", x, 0.5)
    above = g.select(below, g.sub(g.scalar(1, "f64"), x), x)
    y = zeta(g, g.full(x.shape, 2, "f64"), above)
    sine = g.unary("sine", g.mul(g.sub(x, g.unary("floor", x)), math.pi))
    reflected = g.sub(g.div(g.scalar(math.pi ** 2, "f64"), g.mul(sine, sine)), y)
    return g.select(below, reflected, y)


# ---- the normal distribution ----

def erfinv(g: Graph, x: Value) -> Value:
    size = g.unary("abs", x)
    # A first guess (Winitzki), then Newton's steps on erfc, which keeps small tails.
    rest = g.sub(g.scalar(1, "f64"), size)
    l = log(g, g.mul(rest, g.add_(size, 1)))
    a = g.add_(g.mul(l, 0.5), 2 / (math.pi * 0.147))
    inner = g.sub(sqrt(g, g.sub(g.mul(a, a), g.div(l, 0.147))), a)
    y = sqrt(g, g.max(inner, 0))
    for _ in range(3):
        slope = g.mul(exp(g, g.neg(g.mul(y, y))), 2 / math.sqrt(math.pi))
        y = g.add_(y, g.div(g.sub(g.unary("erfc", y), rest), slope))
    y = g.select(g.compare("EQ", size, 1), math.inf, y)
    y = g.select(g.compare("GT", size, 1), math.nan, y)
    return g.select(g.compare("LT", x, 0), g.neg(y), y)


def ndtri(g: Graph, p: Value) -> Value:
    tail = g.min(p, g.sub(g.scalar(1, "f64"), p))
    z = sqrt(g, g.mul(log(g, tail), -2))
    far = g.sub(chebyshev(g, series.NDTRI_TAIL, inverse(g, 1, z)), z)
    far = g.select(g.compare("GT", p, 0.5), g.neg(far), far)
    near = g.mul(erfinv(g, g.sub(g.mul(p, 2), 1)), math.sqrt(2))
    y = g.select(g.compare("LT", tail, 0.15), far, near)
    y = g.select(g.compare("EQ", p, 0), -math.inf, g.select(g.compare("EQ", p, 1), math.inf, y))
    return g.select(g.compare("LT", tail, 0), math.nan, y)


def erfcx(g: Graph, x: Value) -> Value:
    size = g.unary("abs", x)
    y = g.div(chebyshev(g, series.ERFCX, g.div(g.sub(size, 3.75), g.add_(size, 3.75))),
              g.add_(g.mul(size, 2), 1))
    y = g.select(g.compare("EQ", size, math.inf), 0, y)
    below = g.sub(g.mul(exp(g, g.mul(x, x)), 2), y)
    return g.select(g.compare("LT", x, 0), below, y)


_FUNCTIONS: dict[str, Row] = {
    "i0": i0, "special_i0e": i0e, "special_i1": i1, "special_i1e": i1e,
    "special_modified_bessel_i0": i0, "special_modified_bessel_i1": i1,
    "special_modified_bessel_k0": _k(0, False), "special_modified_bessel_k1": _k(1, False),
    "special_scaled_modified_bessel_k0": _k(0, True),
    "special_scaled_modified_bessel_k1": _k(1, True),
    "special_bessel_j0": _j(0), "special_bessel_j1": _j(1), "special_bessel_y0": _y(0),
    "special_bessel_y1": _y(1), "special_airy_ai": airy_ai,
    "special_spherical_bessel_j0": spherical_j0, "lgamma": lgamma, "digamma": digamma,
    "special_zeta": zeta, "erfinv": erfinv, "special_ndtri": ndtri,
    "special_erfcx": erfcx}
for _name, _function in _FUNCTIONS.items():
    ROWS[_name] = in_double(_function)
