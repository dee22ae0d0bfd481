"""Fourier transforms, triangular systems and distances."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .loops import (batched, check_matrix, line_at, loop, places, solve_triangle, turned, unit)
from .lower import Graph, Unsupported, Value
from .ops_indexing import gather_rows
from .ops_movement import tril
from .table import row, type_of


# ---- transforms ----

def _scaled(g: Graph, x: Value, normalization: int, count: int) -> Value:
    factor = {0: None, 1: 1 / math.sqrt(count), 2: 1 / count}[normalization]
    if factor is None:
        return x
    part = {"c64": "f32", "c128": "f64"}.get(x.type, x.type)
    return g.mul(x, g.convert(g.scalar(factor, part), x.type))


def _fft_last(g: Graph, x: Value, kind: str, dim: int, length: int, shape: Sequence[int],
              type: str) -> Value:
    """Along one dimension, which is brought to the end and back."""
    order = [d for d in range(x.rank) if d != dim] + [dim]
    back = [order.index(d) for d in range(x.rank)]
    x = g.transpose(x, order)
    shape = [shape[d] for d in order]
    y = g.add("fft", type, shape, [x], f"fft_type={kind}, fft_length={{{length}}}")
    return g.transpose(y, back)


@row("_fft_c2c")
def fft_c2c(g: Graph, r: Any, x: Value, dims: Sequence[int], normalization: int,
            forward: bool) -> Value:
    for dim in dims:
        x = _fft_last(g, x, "FFT" if forward else "IFFT", dim % x.rank, x.shape[dim], x.shape,
                      x.type)
    count = math.prod(x.shape[d] for d in dims)
    if not forward:  # HLO's inverse divides already
        x = _times(g, x, count)
    return _scaled(g, x, normalization, count)


def _times(g: Graph, x: Value, factor: complex) -> Value:
    part = {"c64": "f32", "c128": "f64"}.get(x.type, x.type)
    return g.mul(x, g.convert(g.scalar(factor, part), x.type))


@row("_fft_r2c")
def fft_r2c(g: Graph, r: Any, x: Value, dims: Sequence[int], normalization: int,
            onesided: bool) -> Value:
    if not onesided:
        type = type_of(r)
        return fft_c2c(g, r, g.convert(x, type), dims, normalization, True)
    last = dims[-1] % x.rank
    count = math.prod(x.shape[d] for d in dims)
    y = _fft_last(g, x, "RFFT", last, x.shape[last],
                  [n // 2 + 1 if d == last else n for d, n in enumerate(x.shape)], type_of(r))
    for dim in dims[:-1]:
        y = _fft_last(g, y, "FFT", dim % x.rank, y.shape[dim], y.shape, y.type)
    return _scaled(g, y, normalization, count)


@row("_fft_c2r")
def fft_c2r(g: Graph, r: Any, x: Value, dims: Sequence[int], normalization: int,
            size: int) -> Value:
    count = math.prod(r.shape[d] for d in dims)
    for dim in dims[:-1]:
        x = _fft_last(g, x, "IFFT", dim % x.rank, x.shape[dim], x.shape, x.type)
    last = dims[-1] % x.rank
    x = g.slice_dim(x, last, 0, size // 2 + 1)
    y = _fft_last(g, x, "IRFFT", last, size, list(r.shape), type_of(r))
    return _scaled(g, _times(g, y, count), normalization, count)


# ---- linear algebra ----

@row("linalg_cholesky_ex")
def cholesky(g: Graph, r: Any, x: Value, upper: bool = False, check: bool = False) -> list[Value]:
    check_matrix(x)
    if check:
        raise Unsupported("a check while it runs")
    if 0 in x.shape:
        return [x, g.full(x.shape[:-2], 0, "s32")]
    flat = batched(g, turned(g, x) if upper else x)
    b, n, _ = flat.shape

    def step(g: Graph, k: Value, state: list[Value]) -> list[Value]:
        x, bad = state
        column = line_at(g, x, 2, k)
        pivot = line_at(g, column, 1, k)
        line = g.iota(column.shape, 1, "s32")
        column = g.select(g.compare("GE", line, k), g.div(column, g.unary("sqrt", pivot)),
                          g.scalar(0, x.type))
        rows, columns = places(g, x)
        update = g.sub(x, g.mul(column, g.reshape(column, [b, 1, n])))
        here = g.compare("EQ", columns, k)
        x = g.select(here, column, g.select(g.compare("GT", columns, k), update, x))
        # LAPACK's: of the first leading minor that is not positive definite.
        fails = g.both(g.no(g.compare("GT", pivot, 0)), g.compare("EQ", bad, 0))
        return [x, g.select(fails, g.add_(k, 1), bad)]
    y, bad = loop(g, n, [flat, g.full([b, 1, 1], 0, "s32")], step)
    y = g.reshape(tril(g, None, y), x.shape)
    return [turned(g, y) if upper else y, g.reshape(bad, x.shape[:-2])]


@row("linalg_solve_triangular")
def solve_triangular(g: Graph, r: Any, a: Value, b: Value, upper: bool, left: bool = True,
                     unitriangular: bool = False) -> Value:
    check_matrix(a)
    if 0 in r.shape:
        return g.full(r.shape, 0, b.type)
    a, b = (batched(g, x, r.shape[:-2]) for x in (a, b))
    if left:
        return g.reshape(solve_triangle(g, a, b, not upper, unitriangular), r.shape)
    y = solve_triangle(g, turned(g, a), turned(g, b), upper, unitriangular)
    return g.reshape(turned(g, y), r.shape)


@row("triangular_solve")
def triangular_solve(g: Graph, r: Any, b: Value, a: Value, upper: bool = True,
                     transpose: bool = False, unitriangular: bool = False) -> list[Value]:
    check_matrix(a)
    if 0 in r[0].shape:
        return [g.full(one.shape, 0, b.type) for one in r]
    flat, side = (batched(g, x, r[0].shape[:-2]) for x in (a, b))
    y = solve_triangle(g, turned(g, flat) if transpose else flat, side, upper == transpose,
                       unitriangular)
    return [g.reshape(y, r[0].shape), g.broadcast(a, r[1].shape)]


@row("cholesky_solve")
def cholesky_solve(g: Graph, r: Any, b: Value, factor: Value, upper: bool = False) -> Value:
    check_matrix(factor)
    if 0 in r.shape:
        return g.full(r.shape, 0, b.type)
    factor, b = (batched(g, x, r.shape[:-2]) for x in (factor, b))
    lower, over = (turned(g, factor), factor) if upper else (factor, turned(g, factor))
    y = solve_triangle(g, over, solve_triangle(g, lower, b, True), False)
    return g.reshape(y, r.shape)


@row("cholesky_inverse")
def cholesky_inverse(g: Graph, r: Any, factor: Value, upper: bool = False) -> Value:
    return cholesky_solve(g, r, unit(g, factor.shape[-2:], factor.type), factor, upper)


_TAYLOR = [1 / math.factorial(k) for k in range(17)]


@row("linalg_matrix_exp")
def matrix_exp(g: Graph, r: Any, x: Value) -> Value:
    """Taylor's polynomial of degree 16 of a part so small that it is exact, squared as often as that
    was halved. In double."""
    check_matrix(x)
    if 0 in x.shape:
        return g.full(r.shape, 0, x.type)
    if x.shape[-1] > 64:
        raise Unsupported("larger than products in double are good for: PyTorch's")
    a = g.convert(batched(g, x), "f64")
    size = g.most(g.sum(g.unary("abs", a), [2], True), [1, 2], True)
    halvings = g.unary("ceil", g.add_(g.mul(g.unary("log", g.max(size, 0.25)), 1 / math.log(2)), 1))
    halvings = g.min(g.max(halvings, 0), 1100)
    a = g.mul(a, g.unary("exponential", g.mul(halvings, -math.log(2))))

    def product(g: Graph, x: Value, y: Value) -> Value:
        return g.dot(x, y, ([2], [1]), ([0], [0]))
    powers = [unit(g, a.shape, "f64"), a]
    powers += [product(g, a, a)]
    powers += [product(g, powers[2], a), product(g, powers[2], powers[2])]
    y = g.mul(powers[0], _TAYLOR[16])
    for block in (12, 8, 4, 0):
        y = product(g, y, powers[4])
        for k in range(4):
            y = g.add_(y, g.mul(powers[k], _TAYLOR[block + k]))

    def step(g: Graph, k: Value, state: list[Value]) -> list[Value]:
        y, left = state
        again = g.compare("GT", left, 0)
        return [g.select(again, product(g, y, y), y), g.sub(left, 1)]

    def going(g: Graph, state: list[Value]) -> Value:
        return g.compare("GT", g.most(state[1], [0, 1, 2]), 0)
    return g.reshape(loop(g, 1100, [y, halvings], step, going)[0], x.shape)


@row("_trilinear")
def trilinear(g: Graph, r: Any, a: Value, b: Value, c: Value, expand1: Sequence[int],
              expand2: Sequence[int], expand3: Sequence[int], sumdim: Sequence[int],
              unroll: int = 1) -> Value:
    rank = a.rank + len(expand1)
    total: Value | None = None
    for x, more in ((a, expand1), (b, expand2), (c, expand3)):
        shape, at = [], iter(x.shape)
        for d in range(rank):
            shape.append(1 if d in more else next(at))
        x = g.reshape(x, shape)
        total = x if total is None else g.mul(total, x)
    assert total is not None
    return g.sum(total, sumdim)


@row("_pdist_forward")
def pdist(g: Graph, r: Any, x: Value, p: float = 2.0) -> Value:
    n = x.shape[0]
    if n < 2:
        return g.full(r.shape, 0, x.type)
    if p != 2 or n > 64:
        raise Unsupported(f"pairs of {n} rows, norm {p}")
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    first, second = (gather_rows(g, x, g.array([pair[k] for pair in pairs], [len(pairs), 1],
                                               "s64"), [0]) for k in (0, 1))
    away = g.sub(first, second)
    return g.unary("sqrt", g.sum(g.mul(away, away), [1]))
