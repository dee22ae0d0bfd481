"""LU factorisations of small matrices and what follows from them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .lower import Graph, Unsupported, Value, is_float
from .ops_movement import tril, triu
from .ops_reductions import first_place
from .table import row

# Larger ones are LAPACK's.
_MOST = 64


def decompose(g: Graph, x: Value) -> tuple[Value, Value, Value, Value]:
    """(LU, pivots from 0, the order of rows, their sign) with partial pivoting, column by column."""
    *batch, m, n = x.shape
    if not is_float(x.type) or max(m, n) > _MOST:
        raise Unsupported("a factorisation that is LAPACK's")
    rank = x.rank
    line = g.iota([*batch, m], rank - 2, "s64")
    sign, pivots = g.full([*batch], 1, x.type), []
    if 0 in x.shape:
        return x, g.full([*batch, min(m, n)], 0, "s64"), line, sign
    # The last column goes along with the rows: where each was.
    x = g.concat([x, g.reshape(g.convert(line, x.type), [*batch, m, 1])], rank - 1)
    rows, columns = g.iota(x.shape, rank - 2, "s32"), g.iota(x.shape, rank - 1, "s32")
    for k in range(min(m, n)):
        column = g.reshape(g.slice_dim(x, rank - 1, k, k + 1), [*batch, m])
        size = g.select(g.compare("GE", line, k), g.unary("abs", column), g.scalar(-1, x.type))
        at = g.convert(first_place(g, size, rank - 2, False)[1], "s64")  # [..., 1]
        pivots.append(at)
        x = exchange(g, x, line, k, at)
        same = g.reshape(g.compare("EQ", at, k), [*batch])
        sign = g.select(same, sign, g.neg(sign))
        pivot = g.slice_dim(g.slice_dim(x, rank - 2, k, k + 1), rank - 1, k, k + 1)
        pivot = g.select(g.compare("EQ", pivot, 0), g.scalar(1, x.type), pivot)
        column = g.slice_dim(x, rank - 1, k, k + 1)
        factor = g.div(column, pivot)
        update = g.sub(x, g.mul(factor, g.slice_dim(x, rank - 2, k, k + 1)))
        below = g.compare("GT", rows, k)
        inside = g.both(below, g.both(g.compare("GT", columns, k), g.compare("LT", columns, n)))
        under = g.both(below, g.compare("EQ", columns, k))
        x = g.select(inside, update, g.select(under, g.broadcast(factor, x.shape), x))
    order = g.convert(g.reshape(g.slice_dim(x, rank - 1, n, n + 1), [*batch, m]), "s64")
    return g.slice_dim(x, rank - 1, 0, n), g.concat(pivots, rank - 2), order, sign


def exchange(g: Graph, x: Value, line: Value, k: int, at: Value) -> Value:
    """x with rows k and at [..., 1] in each other's place, as a product: of zeros and ones."""
    here, there = g.compare("EQ", line, k), g.compare("EQ", line, at)
    from_row = g.select(here, at, g.select(there, g.scalar(k, "s64"), line))
    batch = list(range(x.rank - 2))
    return g.dot(permutation_of(g, from_row, x.type), x, ([x.rank - 1], [x.rank - 2]),
                 (batch, batch))


def permutation_of(g: Graph, from_row: Value, type: str) -> Value:
    """[..., i, j] is 1 where row i comes from j."""
    n = from_row.shape[-1]
    shape = [*from_row.shape, n]
    wide = g.broadcast(from_row, shape, list(range(from_row.rank)))
    return g.convert(g.compare("EQ", wide, g.iota(shape, len(shape) - 1, "s64")), type)


def order_of_rows(g: Graph, pivots: Value, rows: int) -> Value:
    """What the pivots, from 1, make of rows that stood in order."""
    if rows > _MOST:
        raise Unsupported("a factorisation that is LAPACK's")
    shape = [*pivots.shape[:-1], rows]
    line = g.iota(shape, len(shape) - 1, "s64")
    order = g.reshape(g.convert(line, "f32"), [*shape, 1])
    for k in range(pivots.shape[-1]):
        at = g.sub(g.convert(g.slice_dim(pivots, pivots.rank - 1, k, k + 1), "s64"), 1)
        order = exchange(g, order, line, k, at)
    return g.convert(g.reshape(order, shape), "s64")


def _unit(g: Graph, shape: Sequence[int]) -> Value:
    rows, columns = (g.iota(shape[-2:], d, "s32") for d in (0, 1))
    return g.compare("EQ", rows, columns)


def parts_of(g: Graph, lu: Value) -> tuple[Value, Value]:
    """(L, U) of a factorisation in one matrix."""
    *_, m, n = lu.shape
    k, rank = min(m, n), lu.rank
    left = tril(g, None, g.slice_dim(lu, rank - 1, 0, k), -1)
    left = g.add_(left, g.convert(_unit(g, left.shape), lu.type))
    upper = triu(g, None, g.slice_dim(lu, rank - 2, 0, k))
    return left, upper


def permutation(g: Graph, order: Value, type: str) -> Value:
    """P of A = P L U."""
    n = order.shape[-1]
    shape = [*order.shape, n]
    columns = g.broadcast(g.reshape(order, [*order.shape[:-1], 1, n]), shape)
    rows = g.iota(shape, len(shape) - 2, "s64")
    return g.convert(g.compare("EQ", rows, columns), type)


@row("linalg_lu")
def lu_(g: Graph, r: Any, x: Value, pivot: bool = True) -> list[Value]:
    if not pivot:
        raise Unsupported("a factorisation without pivots")
    lu, _, order, _ = decompose(g, x)
    return [permutation(g, order, x.type), *parts_of(g, lu)]


@row("lu_unpack")
def lu_unpack(g: Graph, r: Any, lu: Value, pivots: Value, with_data: bool = True,
              with_pivots: bool = True) -> list[Value]:
    if not is_float(lu.type):
        raise Unsupported("a complex factorisation")
    empty = g.full([0], 0, lu.type)
    left, upper = parts_of(g, lu) if with_data else (empty, empty)
    if not with_pivots:
        return [empty, left, upper]
    return [permutation(g, order_of_rows(g, pivots, lu.shape[-2]), lu.type), left, upper]


def _diagonal(g: Graph, lu: Value) -> Value:
    value = g.sum(g.select(_unit(g, lu.shape), lu, g.scalar(0, lu.type)), [lu.rank - 1])
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
    return [lu, g.add_(g.convert(pivots, "s32"), 1), _singular(g, lu)]


@row("_linalg_det")
def det(g: Graph, r: Any, x: Value) -> list[Value]:
    lu, pivots, _, sign = decompose(g, x)
    value = g.mul(sign, g.reduce("multiply", _diagonal(g, lu), [x.rank - 2], 1))
    return [value, lu, g.add_(g.convert(pivots, "s32"), 1)]


@row("_linalg_slogdet")
def slogdet(g: Graph, r: Any, x: Value) -> list[Value]:
    lu, pivots, _, sign = decompose(g, x)
    diagonal = _diagonal(g, lu)
    last = [diagonal.rank - 1]
    signs = g.reduce("multiply", g.unary("sign", diagonal), last, 1)
    size = g.sum(g.unary("log", g.unary("abs", diagonal)), last)
    return [g.mul(sign, signs), size, lu, g.add_(g.convert(pivots, "s32"), 1)]
