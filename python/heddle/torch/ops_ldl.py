"""LDL^T factorisations of symmetric matrices by Bunch and Kaufman's pivots, stored as LAPACK does.

J. Bunch and L. Kaufman, Some stable methods for calculating inertia and solving symmetric linear
systems (1977). One step is for one column; a block of two is done in the step of its first.
"""
from __future__ import annotations

import math
from typing import Any

from .loops import batched, check_matrix, down, line_at, loop, places, turned
from .lower import Graph, Unsupported, Value
from .table import row

_ALPHA = (1 + math.sqrt(17)) / 8


def _line(g: Graph, x: Value, at: Value) -> Value:
    """Row `at` [b, 1, 1] of x, as [b, 1, n]."""
    here = g.compare("EQ", g.iota(x.shape, 1, "s32"), at)
    return g.sum(g.select(here, x, g.scalar(0, x.type)), [1], True)


def _element(g: Graph, line: Value, at: Value) -> Value:
    """[b, 1, 1] of [b, 1, n]"""
    here = g.compare("EQ", g.iota(line.shape, 2, "s32"), at)
    return g.sum(g.select(here, line, g.scalar(0, line.type)), [2], True)


def _swapped(g: Graph, x: Value, k: Value, one: Value, two: Value) -> Value:
    """Rows and columns one and two in each other's place, of the part from k."""
    rows, columns = places(g, x)
    inside = g.both(g.compare("GE", rows, k), g.compare("GE", columns, k))
    line_one, line_two = _line(g, x, one), _line(g, x, two)
    y = g.select(g.compare("EQ", rows, one), line_two,
                 g.select(g.compare("EQ", rows, two), line_one, x))
    y = g.select(inside, y, x)
    back = turned(g, y)
    line_one, line_two = (g.reshape(_line(g, back, at), [x.shape[0], x.shape[1], 1])
                          for at in (one, two))
    z = g.select(g.compare("EQ", columns, one), line_two,
                 g.select(g.compare("EQ", columns, two), line_one, y))
    return g.select(inside, z, x)


def _pivot(g: Graph, x: Value, k: Value) -> tuple[Value, Value, Value]:
    """(row to be exchanged, whether the block is of two, whether the column is zero) at k"""
    place = g.iota([x.shape[0], 1, x.shape[2]], 2, "s32")
    zero = g.scalar(0, x.type)
    line = g.unary("abs", line_at(g, x, 1, k))
    diagonal = line_at(g, line, 2, k)
    below = g.select(g.compare("GT", place, k), line, g.scalar(-1, x.type))
    most = g.most(below, [2], True)
    at = g.least(g.select(g.compare("EQ", below, most), place, g.scalar(x.shape[2], "s32")), [2],
                 True)
    column = g.max(most, zero)
    at = g.min(at, x.shape[2] - 1)
    other = g.unary("abs", _line(g, x, at))
    beside = g.both(g.compare("GE", place, k), g.compare("NE", place, at))
    row_ = g.most(g.select(beside, other, zero), [2], True)
    is_zero = g.compare("EQ", g.max(diagonal, column), 0)
    stays = g.compare("GE", diagonal, g.mul(column, _ALPHA))
    safe = g.select(g.compare("GT", row_, 0), row_, g.scalar(1, x.type))
    stays = g.either(stays, g.compare("GE", diagonal,
                                      g.mul(g.mul(column, _ALPHA), g.div(column, safe))))
    stays = g.either(stays, g.either(is_zero, g.is_nan(diagonal)))
    single = g.compare("GE", _element(g, other, at), g.mul(row_, _ALPHA))
    return (g.select(stays, k, at), g.both(g.no(stays), g.no(single)), is_zero)


def _factor_step(g: Graph, k: Value, state: list[Value]) -> list[Value]:
    x, pivots, info, second = state
    b, n = x.shape[:2]
    at, two, is_zero = _pivot(g, x, k)
    next_ = g.add_(k, 1)
    moved = g.select(two, next_, k)
    y = _swapped(g, x, k, moved, at)
    rows, columns = places(g, y)
    # One column: y -= l d l^T
    line = line_at(g, y, 1, k)
    d = line_at(g, line, 2, k)
    d = g.select(is_zero, g.scalar(1, x.type), d)
    part = g.div(line, d)
    column = g.reshape(part, [b, n, 1])
    trailing = g.both(g.compare("GT", rows, k), g.compare("GT", columns, k))
    one = g.select(trailing, g.sub(y, g.mul(column, line)), y)
    one = g.select(g.both(g.compare("EQ", columns, k), g.compare("GT", rows, k)), column, one)
    # Two: y -= [l1 l2] D [l1 l2]^T
    after = g.min(next_, n - 1)
    second_line = line_at(g, y, 1, after)
    d11, d21, d22 = line_at(g, line, 2, k), line_at(g, line, 2, after), \
        line_at(g, second_line, 2, after)
    d21 = g.select(two, d21, g.scalar(1, x.type))
    a11, a22 = g.div(d22, d21), g.div(d11, d21)
    over = g.div(g.div(g.scalar(1, x.type), g.sub(g.mul(a11, a22), 1)), d21)
    l1 = g.mul(over, g.sub(g.mul(a11, line), second_line))
    l2 = g.mul(over, g.sub(g.mul(a22, second_line), line))
    c1, c2 = g.reshape(l1, [b, n, 1]), g.reshape(l2, [b, n, 1])
    inside = g.both(g.compare("GT", rows, next_), g.compare("GT", columns, next_))
    update = g.sub(g.sub(y, g.mul(c1, line)), g.mul(c2, second_line))
    pair = g.select(inside, update, y)
    below = g.compare("GT", rows, next_)
    pair = g.select(g.both(below, g.compare("EQ", columns, k)), c1, pair)
    pair = g.select(g.both(below, g.compare("EQ", columns, next_)), c2, pair)
    done = g.select(two, pair, g.select(is_zero, y, one))
    place = g.iota(pivots.shape, 2, "s32")
    number = g.add_(at, 1)
    number = g.select(two, g.neg(number), number)
    here = g.either(g.compare("EQ", place, k), g.both(two, g.compare("EQ", place, next_)))
    bad = g.both(is_zero, g.compare("EQ", info, 0))
    return [g.select(second, x, done), g.select(g.both(here, g.no(second)), number, pivots),
            g.select(g.both(bad, g.no(second)), next_, info), g.both(two, g.no(second))]


@row("linalg_ldl_factor_ex")
def ldl_factor(g: Graph, r: Any, x: Value, hermitian: bool = False,
               check: bool = False) -> list[Value]:
    check_matrix(x, 32)
    if check:
        raise Unsupported("a check while it runs")
    if 0 in x.shape:
        return [g.full(one.shape, 0, type) for one, type in zip(r, (x.type, "s32", "s32"))]
    flat = batched(g, x)
    b, n = flat.shape[:2]
    rows, columns = places(g, flat)
    whole = g.select(g.compare("GE", rows, columns), flat, turned(g, flat))
    y, pivots, info, _ = loop(g, n, [whole, g.full([b, 1, n], 0, "s32"),
                                     g.full([b, 1, 1], 0, "s32"),
                                     g.full([b, 1, 1], False, "pred")], _factor_step)
    y = g.select(g.compare("GE", rows, columns), y, g.scalar(0, x.type))
    return [g.reshape(y, r[0].shape), g.reshape(pivots, r[1].shape), g.reshape(info, r[2].shape)]


def _exchanged(g: Graph, x: Value, one: Value, two: Value) -> Value:
    rows = g.iota(x.shape, 1, "s32")
    return g.select(g.compare("EQ", rows, one), _line(g, x, two),
                    g.select(g.compare("EQ", rows, two), _line(g, x, one), x))


def _forward(g: Graph, k: Value, state: list[Value]) -> list[Value]:
    ld, pivots, x, second = state
    n = ld.shape[1]
    pivot = line_at(g, pivots, 2, k)
    two = g.compare("LT", pivot, 0)
    next_ = g.add_(k, 1)
    after = g.min(next_, n - 1)
    y = _exchanged(g, x, g.select(two, next_, k), g.sub(g.unary("abs", pivot), 1))
    rows = g.iota(x.shape, 1, "s32")
    first, other = line_at(g, y, 1, k), line_at(g, y, 1, after)
    l1, l2 = line_at(g, ld, 2, k), line_at(g, ld, 2, after)
    d11, d21, d22 = line_at(g, l1, 1, k), line_at(g, l1, 1, after), line_at(g, l2, 1, after)
    single = g.select(g.compare("GT", rows, k), g.sub(y, g.mul(l1, first)),
                      g.select(g.compare("EQ", rows, k), g.div(first, d11), y))
    d21 = g.select(two, d21, g.scalar(1, x.type))
    a1, a2 = g.div(d11, d21), g.div(d22, d21)
    b1, b2 = g.div(first, d21), g.div(other, d21)
    away = g.sub(g.mul(a1, a2), 1)
    pair = g.select(g.compare("GT", rows, next_),
                    g.sub(g.sub(y, g.mul(l1, first)), g.mul(l2, other)), y)
    pair = g.select(g.compare("EQ", rows, k), g.div(g.sub(g.mul(a2, b1), b2), away), pair)
    pair = g.select(g.compare("EQ", rows, next_), g.div(g.sub(g.mul(a1, b2), b1), away), pair)
    return [ld, pivots, g.select(second, x, g.select(two, pair, single)),
            g.both(two, g.no(second))]


def _backward(g: Graph, number: Value, state: list[Value]) -> list[Value]:
    ld, pivots, x, second = state
    k = down(g, number, ld.shape[1])
    pivot = line_at(g, pivots, 2, k)
    two = g.compare("LT", pivot, 0)
    before = g.max(g.sub(k, 1), 0)
    rows = g.iota(x.shape, 1, "s32")
    below = g.select(g.compare("GT", rows, k), x, g.scalar(0, x.type))

    def less(y: Value, at: Value) -> Value:
        inner = g.sum(g.mul(line_at(g, ld, 2, at), below), [1], True)
        return g.select(g.compare("EQ", rows, at), g.sub(y, inner), y)
    y = less(x, k)
    y = g.select(two, less(y, before), y)
    y = _exchanged(g, y, k, g.sub(g.unary("abs", pivot), 1))
    return [ld, pivots, g.select(second, x, y), g.both(two, g.no(second))]


@row("linalg_ldl_solve")
def ldl_solve(g: Graph, r: Any, ld: Value, pivots: Value, x: Value,
              hermitian: bool = False) -> Value:
    check_matrix(ld, 32)
    if 0 in r.shape:
        return g.full(r.shape, 0, ld.type)
    batch, n = list(r.shape[:-2]), ld.shape[-1]
    pivots = g.reshape(g.convert(pivots, "s32"), [*pivots.shape[:-1], 1, n])
    flat = [batched(g, one, batch) for one in (ld, pivots, x)]
    none = g.full([flat[0].shape[0], 1, 1], False, "pred")
    y = loop(g, n, [*flat, none], _forward)[2]
    return g.reshape(loop(g, n, [*flat[:2], y, none], _backward)[2], r.shape)
