"""Fourier transforms, triangular systems and distances."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .lower import Graph, Unsupported, Value, is_float
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
    if check or not is_float(x.type):
        raise Unsupported("a check while it runs")
    swap = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    if upper:
        x = g.transpose(x, swap)
    y = tril(g, None, g.add("cholesky", x.type, x.shape, [x], "lower=true"))
    bad = g.reduce("or", g.is_nan(y), [x.rank - 2, x.rank - 1], False)
    return [g.transpose(y, swap) if upper else y, g.convert(bad, "s32")]


def solve(g: Graph, a: Value, b: Value, lower: bool, unit: bool = False, transposed: bool = False,
          left: bool = True) -> Value:
    if 0 in b.shape:
        return b
    way = "TRANSPOSE" if transposed else "NO_TRANSPOSE"
    flags = ", ".join(f"{name}={str(bool(value)).lower()}" for name, value in (
        ("left_side", left), ("lower", lower), ("unit_diagonal", unit)))
    return g.add("triangular-solve", b.type, b.shape, [a, b], f"{flags}, transpose_a={way}")


def _batched(g: Graph, x: Value, batch: Sequence[int]) -> Value:
    return g.broadcast(x, [*batch, *x.shape[-2:]])


@row("linalg_solve_triangular")
def solve_triangular(g: Graph, r: Any, a: Value, b: Value, upper: bool, left: bool = True,
                     unitriangular: bool = False) -> Value:
    if not is_float(b.type):
        raise Unsupported("a complex system")
    if 0 in r.shape:
        return g.full(r.shape, 0, b.type)
    batch = r.shape[:-2]
    return solve(g, _batched(g, a, batch), _batched(g, b, batch), not upper, unitriangular,
                 left=left)


@row("triangular_solve")
def triangular_solve(g: Graph, r: Any, b: Value, a: Value, upper: bool = True,
                     transpose: bool = False, unitriangular: bool = False) -> list[Value]:
    if not is_float(b.type):
        raise Unsupported("a complex system")
    if 0 in r[0].shape:
        return [g.full(one.shape, 0, b.type) for one in r]
    batch = r[0].shape[:-2]
    return [solve(g, _batched(g, a, batch), _batched(g, b, batch), not upper, unitriangular,
                  transpose), g.broadcast(a, r[1].shape)]


@row("cholesky_solve")
def cholesky_solve(g: Graph, r: Any, b: Value, factor: Value, upper: bool = False) -> Value:
    if not is_float(b.type):
        raise Unsupported("a complex system")
    if 0 in r.shape:
        return g.full(r.shape, 0, b.type)
    batch = r.shape[:-2]
    factor, b = _batched(g, factor, batch), _batched(g, b, batch)
    y = solve(g, factor, b, not upper, transposed=upper)
    return solve(g, factor, y, not upper, transposed=not upper)


@row("cholesky_inverse")
def cholesky_inverse(g: Graph, r: Any, factor: Value, upper: bool = False) -> Value:
    rows, columns = (g.iota(factor.shape[-2:], d, "s32") for d in (0, 1))
    unit = g.convert(g.compare("EQ", rows, columns), factor.type)
    return cholesky_solve(g, r, unit, factor, upper)


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
