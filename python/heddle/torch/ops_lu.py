"""LU factorisations with partial pivoting, and what follows from them."""
from __future__ import annotations

from typing import Any

from .loops import (batched, check_matrix, down, line_at, loop, places, solve_triangle, turned,
                    unit)
from .lower import Graph, Unsupported, Value
from .ops_movement import tril, triu
from .table import row


def _exchange(g: Graph, x: Value, k: Value, at: Value) -> tuple[Value, Value]:
    """(x with rows k and at [b, 1, 1] in each other's place, row `at` alone)"""
    rows = g.iota(x.shape, 1, "s32")
    there = g.compare("EQ", rows, at)
    row = g.sum(g.select(there, x, g.scalar(0, x.type)), [1], True)
    moved = g.select(there, line_at(g, x, 1, k), x)
    return g.select(g.compare("EQ", rows, k), row, moved), row


def _factor(g: Graph, x: Value, *along: Value) -> tuple[Value, Value, Value, list[Value]]:
    """(LU, pivots from 0 [b, 1, k], where each row was [b, m, 1], L^-1 P b for each b of `along`)
    of [b, m, n]."""
    b, m, n = x.shape
    count = min(m, n)

    def step(g: Graph, k: Value, state: list[Value]) -> list[Value]:
        x, pivots, order, *along = state
        line = g.iota([b, m, 1], 1, "s32")
        size = g.select(g.compare("GE", line, k), g.unary("abs", line_at(g, x, 2, k)),
                        g.scalar(-1, x.type))
        best = g.most(size, [1], True)
        hit = g.both(g.compare("EQ", size, best), g.compare("GE", line, k))
        at = g.least(g.select(hit, line, g.scalar(m, "s32")), [1], True)
        at = g.select(g.compare("EQ", at, m), k, at)  # all are NaN
        x, row = _exchange(g, x, k, at)
        pivot = line_at(g, row, 2, k)
        pivot = g.select(g.compare("EQ", pivot, 0), g.scalar(1, x.type), pivot)
        factor = g.div(line_at(g, x, 2, k), pivot)
        rows, columns = places(g, x)
        below = g.compare("GT", rows, k)
        update = g.sub(x, g.mul(factor, row))
        x = g.select(g.both(below, g.compare("GT", columns, k)), update,
                     g.select(g.both(below, g.compare("EQ", columns, k)), factor, x))
        here = g.compare("EQ", g.iota(pivots.shape, 2, "s32"), k)
        after = [x, g.select(here, at, pivots), _exchange(g, order, k, at)[0]]
        for one in along:
            one, row = _exchange(g, one, k, at)
            below = g.compare("GT", g.iota(one.shape, 1, "s32"), k)
            after.append(g.select(below, g.sub(one, g.mul(factor, row)), one))
        return after
    lu, pivots, order, *done = loop(
        g, count, [x, g.full([b, 1, count], 0, "s32"), g.iota([b, m, 1], 1, "s32"), *along], step)
    return lu, pivots, order, done


def decompose(g: Graph, x: Value) -> tuple[Value, Value, Value, Value]:
    """(LU, pivots from 0, the order of rows, their sign)"""
    check_matrix(x)
    *batch, m, n = x.shape
    count = min(m, n)
    if 0 in x.shape:
        return (x, g.full([*batch, count], 0, "s32"), g.iota([*batch, m], len(batch), "s32"),
                g.full(batch, 1, x.type))
    lu, pivots, order, _ = _factor(g, batched(g, x))
    moved = g.compare("NE", pivots, g.iota(pivots.shape, 2, "s32"))
    one = g.scalar(1, x.type)
    sign = g.reduce("multiply", g.select(moved, g.neg(one), one), [1, 2], 1)
    return (g.reshape(lu, x.shape), g.reshape(pivots, [*batch, count]),
            g.reshape(order, [*batch, m]), g.reshape(sign, batch))


def order_of_rows(g: Graph, pivots: Value, rows: int, back: bool = False) -> Value:
    """What the pivots [b, 1, k], from 1, make of rows [b, m, 1] that stood in order; back: what
    undoes that."""
    def step(g: Graph, number: Value, state: list[Value]) -> list[Value]:
        pivots, order = state
        k = down(g, number, pivots.shape[2]) if back else number
        at = g.sub(line_at(g, pivots, 2, k), 1)
        return [pivots, _exchange(g, order, k, at)[0]]
    start = g.iota([pivots.shape[0], rows, 1], 1, "s32")
    return loop(g, pivots.shape[2], [g.convert(pivots, "s32"), start], step)[1]


def parts_of(g: Graph, lu: Value) -> tuple[Value, Value]:
    """(L, U) of a factorisation in one matrix."""
    *_, m, n = lu.shape
    k, rank = min(m, n), lu.rank
    left = tril(g, None, g.slice_dim(lu, rank - 1, 0, k), -1)
    left = g.add_(left, unit(g, left.shape, lu.type))
    upper = triu(g, None, g.slice_dim(lu, rank - 2, 0, k))
    return left, upper


def permutation(g: Graph, order: Value, type: str, turned: bool = False) -> Value:
    """P of A = P L U; turned: its transpose."""
    n = order.shape[-1]
    shape = [*order.shape, n]
    at = [*order.shape, 1] if turned else [*order.shape[:-1], 1, n]
    places = g.iota(shape, len(shape) - (1 if turned else 2), order.type)
    return g.convert(g.compare("EQ", g.broadcast(g.reshape(order, at), shape), places), type)


def in_order(g: Graph, order: Value, x: Value) -> Value:
    """Rows of x [b, m, k] as order [b, m, 1] names them: a product with zeros and ones."""
    flat = g.reshape(order, order.shape[:2])
    return g.dot(permutation(g, flat, x.type, turned=True), x, ([2], [1]), ([0], [0]))


@row("linalg_lu")
def lu_(g: Graph, r: Any, x: Value, pivot: bool = True) -> list[Value]:
    if not pivot:
        raise Unsupported("a factorisation without pivots")
    lu, _, order, _ = decompose(g, x)
    return [permutation(g, order, x.type), *parts_of(g, lu)]


@row("lu_unpack")
def lu_unpack(g: Graph, r: Any, lu: Value, pivots: Value, with_data: bool = True,
              with_pivots: bool = True) -> list[Value]:
    check_matrix(lu)
    empty = g.full([0], 0, lu.type)
    left, upper = parts_of(g, lu) if with_data else (empty, empty)
    if not with_pivots:
        return [empty, left, upper]
    *batch, rows, _ = lu.shape
    if 0 in pivots.shape:
        order = g.iota([*batch, rows], len(batch), "s32")
    else:
        order = order_of_rows(g, batched(g, g.reshape(pivots, [*batch, 1, pivots.shape[-1]])), rows)
        order = g.reshape(order, [*batch, rows])
    return [permutation(g, order, lu.type), left, upper]


def _diagonal(g: Graph, lu: Value) -> Value:
    only = g.mul(lu, unit(g, lu.shape, lu.type)) if 0 in lu.shape else \
        g.select(g.convert(unit(g, lu.shape, "s32"), "pred"), lu, g.scalar(0, lu.type))
    value = g.sum(only, [lu.rank - 1])
    return g.slice_dim(value, value.rank - 1, 0, min(lu.shape[-2:]))


def _singular(g: Graph, lu: Value) -> Value:
    """The number of the first zero on the diagonal, from 1; 0: there is none."""
    diagonal = _diagonal(g, lu)
    n = diagonal.shape[-1]
    if diagonal.count == 0:
        return g.full(diagonal.shape[:-1], 0, "s32")
    at = g.select(g.compare("EQ", diagonal, 0), g.iota(diagonal.shape, diagonal.rank - 1, "s32"),
                  g.scalar(n, "s32"))
    first = g.least(at, [diagonal.rank - 1])
    return g.select(g.compare("EQ", first, n), g.scalar(0, "s32"), g.add_(first, 1))


@row("linalg_lu_factor_ex")
def lu_factor(g: Graph, r: Any, x: Value, pivot: bool = True, check: bool = False) -> list[Value]:
    if not pivot:
        raise Unsupported("a factorisation that is LAPACK's")
    lu, pivots, _, _ = decompose(g, x)
    return [lu, g.add_(pivots, 1), _singular(g, lu)]


@row("_linalg_det")
def det(g: Graph, r: Any, x: Value) -> list[Value]:
    lu, pivots, _, sign = decompose(g, x)
    value = g.mul(sign, g.reduce("multiply", _diagonal(g, lu), [x.rank - 2], 1))
    return [value, lu, g.add_(pivots, 1)]


@row("_linalg_slogdet")
def slogdet(g: Graph, r: Any, x: Value) -> list[Value]:
    lu, pivots, _, sign = decompose(g, x)
    diagonal = _diagonal(g, lu)
    last = [diagonal.rank - 1]
    signs = g.reduce("multiply", g.unary("sign", diagonal), last, 1)
    size = g.sum(g.unary("log", g.unary("abs", diagonal)), last)
    return [g.mul(sign, signs), size, lu, g.add_(pivots, 1)]


# ---- systems ----

def _solve(g: Graph, a: Value, b: Value) -> tuple[Value, Value, Value]:
    """(x of a x = b, LU, pivots from 0) for [b, n, n] and [b, n, k]."""
    lu, pivots, _, (half,) = _factor(g, a, b)
    return solve_triangle(g, lu, half, lower=False), lu, pivots


@row("linalg_inv_ex")
def inverse(g: Graph, r: Any, x: Value, check: bool = False) -> list[Value]:
    check_matrix(x)
    if check:
        raise Unsupported("a check while it runs")
    if 0 in x.shape:
        return [x, g.full(x.shape[:-2], 0, "s32")]
    flat = batched(g, x)
    y, lu, _ = _solve(g, flat, unit(g, flat.shape, x.type))
    return [g.reshape(y, x.shape), g.reshape(_singular(g, lu), x.shape[:-2])]


@row("_linalg_solve_ex")
def solve_ex(g: Graph, r: Any, a: Value, b: Value, left: bool = True,
             check: bool = False) -> list[Value]:
    check_matrix(a)
    if check:
        raise Unsupported("a check while it runs")
    is_vector = left and tuple(r[0].shape) == tuple(b.shape) and \
        b.rank == a.rank - 1 or b.rank == 1
    batch, n = list(r[0].shape[:-1] if is_vector else r[0].shape[:-2]), a.shape[-1]
    if 0 in r[0].shape or 0 in a.shape:
        if a.count:
            lu, pivots, _, _ = decompose(g, a)
            return [g.full(r[0].shape, 0, a.type), lu, g.add_(pivots, 1), _singular(g, lu)]
        return [g.full(one.shape, 0, type) for one, type in zip(r, (a.type, a.type, "s32", "s32"))]
    b = g.reshape(b, [*b.shape, 1]) if is_vector else b
    sides = g.broadcast(b, [*batch, *b.shape[-2:]])
    wide = g.broadcast(a, [*batch, n, n])
    if not left:  # x a = b is a^T x^T = b^T
        x = turned(g, _solve(g, batched(g, turned(g, wide)), batched(g, turned(g, sides)))[0])
        lu, pivots, _, _ = decompose(g, a)
    else:
        x, lu, pivots = _solve(g, batched(g, wide), batched(g, sides))
        if wide.shape != a.shape:  # the factors are those of each matrix once
            lu, pivots, _, _ = decompose(g, a)
    lu = g.reshape(lu, a.shape)
    pivots = g.reshape(pivots, a.shape[:-1])
    return [g.reshape(x, r[0].shape), lu, g.add_(pivots, 1), _singular(g, lu)]


@row("linalg_lu_solve")
def lu_solve(g: Graph, r: Any, lu: Value, pivots: Value, b: Value, left: bool = True,
             adjoint: bool = False) -> Value:
    check_matrix(lu)
    if 0 in r.shape:
        return g.full(r.shape, 0, lu.type)
    batch, n = list(r.shape[:-2]), lu.shape[-1]
    lu, b = (batched(g, one, batch) for one in (lu, b))
    places = batched(g, g.reshape(pivots, [*pivots.shape[:-1], 1, n]), batch)
    x = _lu_solved(g, lu, places, b if left else turned(g, b), adjoint == left)
    return g.reshape(x if left else turned(g, x), r.shape)


def _lu_solved(g: Graph, lu: Value, pivots: Value, b: Value, transposed: bool) -> Value:
    """x of P L U x = b, or of its transpose x = b."""
    if not transposed:
        b = in_order(g, order_of_rows(g, pivots, lu.shape[1]), b)
        return solve_triangle(g, lu, solve_triangle(g, lu, b, True, True), False)
    over = turned(g, lu)
    y = solve_triangle(g, over, solve_triangle(g, over, b, True), False, True)
    return in_order(g, order_of_rows(g, pivots, lu.shape[1], back=True), y)

