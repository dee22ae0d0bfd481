"""Incomplete gamma functions: a series below the mean, a continued fraction above it."""
from __future__ import annotations

import math
from typing import Any

from .loops import loop
from .lower import Graph, Unsupported, Value
from .ops_special import lgamma
from .table import row, type_of

_MOST_TERMS = 2000
_EPS = 2.0 ** -40  # of a sum whose result is of 24 bits


def _prefix(g: Graph, a: Value, x: Value) -> Value:
    """x^a e^-x / gamma(a + 1)"""
    log = g.sub(g.sub(g.mul(a, g.unary("log", x)), x), lgamma(g, g.add_(a, 1)))
    return g.unary("exponential", log)


def _series(g: Graph, a: Value, x: Value, wanted: Value) -> Value:
    """Sum of x^n / ((a + 1) … (a + n)), where it is wanted."""
    one = g.full(x.shape, 1, "f64")
    term = g.select(wanted, one, g.scalar(0, "f64"))

    def step(g: Graph, k: Value, state: list[Value]) -> list[Value]:
        a, x, term, total = state
        term = g.div(g.mul(term, x), g.add_(a, g.convert(g.add_(k, 1), "f64")))
        return [a, x, term, g.add_(total, term)]

    def going(g: Graph, state: list[Value]) -> Value:
        more = g.compare("GT", state[2], g.mul(state[3], _EPS))
        return g.reduce("or", more, list(range(more.rank)), False)
    return loop(g, _MOST_TERMS, [a, x, term, term], step, going)[3]


def _fraction(g: Graph, a: Value, x: Value, wanted: Value) -> Value:
    """gamma(a, x) / (x^a e^-x) by Lentz's method, where it is wanted."""
    a = g.select(wanted, a, g.scalar(0.5, "f64"))
    x = g.select(wanted, x, g.scalar(2, "f64"))
    b = g.sub(g.add_(x, 1), a)
    d = g.div(g.scalar(1, "f64"), b)
    tiny = 1e-300
    start = [a, b, g.full(x.shape, 1 / tiny, "f64"), d, d, g.full(x.shape, 2, "f64")]

    def step(g: Graph, k: Value, state: list[Value]) -> list[Value]:
        a, b, c, d, h, _ = state
        i = g.convert(g.add_(k, 1), "f64")
        an = g.neg(g.mul(i, g.sub(i, a)))
        b = g.add_(b, 2)

        def not_zero(value: Value) -> Value:
            small = g.compare("LT", g.unary("abs", value), tiny)
            return g.select(small, g.scalar(tiny, "f64"), value)
        d = g.div(g.scalar(1, "f64"), not_zero(g.add_(g.mul(an, d), b)))
        c = not_zero(g.add_(b, g.div(an, c)))
        factor = g.mul(d, c)
        return [a, b, c, d, g.mul(h, factor), factor]

    def going(g: Graph, state: list[Value]) -> Value:
        more = g.compare("GT", g.unary("abs", g.sub(state[5], 1)), _EPS)
        return g.reduce("or", more, list(range(more.rank)), False)
    return loop(g, _MOST_TERMS, start, step, going)[4]


def _incomplete(g: Graph, a: Value, x: Value) -> tuple[Value, Value]:
    """(P, Q) of Abramowitz and Stegun 6.5 for finite positive arguments."""
    below = g.compare("LT", x, g.add_(a, 1))
    prefix = _prefix(g, a, x)
    lower = g.mul(prefix, _series(g, a, x, below))
    upper = g.mul(g.mul(prefix, a), _fraction(g, a, x, g.no(below)))
    one = g.scalar(1, "f64")
    return (g.select(below, lower, g.sub(one, upper)), g.select(below, g.sub(one, lower), upper))


def _gamma(g: Graph, r: Any, a: Value, x: Value, upper: bool) -> Value:
    type = type_of(r)
    if type == "f64":
        raise Unsupported("in double, which it is not precise enough for")
    a, x = g.together(g.convert(a, "f64"), g.convert(x, "f64"))
    if 0 in x.shape:
        return g.full(x.shape, 0, type)
    infinite_a, infinite_x = (g.compare("EQ", one, math.inf) for one in (a, x))
    good = g.both(g.both(g.compare("GT", a, 0), g.compare("GT", x, 0)),
                  g.no(g.either(infinite_a, infinite_x)))
    one, nan = g.scalar(1, "f64"), g.scalar(math.nan, "f64")
    p, q = _incomplete(g, g.select(good, a, one), g.select(good, x, one))
    value = q if upper else p
    ends = (1.0, 0.0) if upper else (0.0, 1.0)  # at x = 0 and beyond all
    value = g.select(infinite_a, g.select(infinite_x, nan, g.scalar(ends[0], "f64")),
                     g.select(infinite_x, g.scalar(ends[1], "f64"), value))
    value = g.select(g.compare("EQ", x, 0), g.scalar(ends[0], "f64"), value)
    at_zero = g.select(g.compare("GT", x, 0), g.scalar(ends[1], "f64"), nan)
    value = g.select(g.compare("EQ", a, 0), at_zero, value)
    wrong = g.either(g.either(g.compare("LT", a, 0), g.compare("LT", x, 0)),
                     g.either(g.is_nan(a), g.is_nan(x)))
    return g.select(wrong, nan, value)


@row("igamma")
def igamma(g: Graph, r: Any, a: Value, x: Value) -> Value:
    return _gamma(g, r, a, x, False)


@row("igammac")
def igammac(g: Graph, r: Any, a: Value, x: Value) -> Value:
    return _gamma(g, r, a, x, True)
