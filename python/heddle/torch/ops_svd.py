"""Singular values, eigenvalues of symmetric matrices, and what does not depend on the signs of
singular vectors: LAPACK's signs are its own, so what gives vectors themselves stays there.

One-sided Jacobi: columns are turned against each other in pairs until all are orthogonal; their
lengths are the singular values. All pairs of a round are turned at once. In double.

References: M. Hestenes, Inversion of matrices by biorthogonalization (1958); R. Brent and F. Luk, The
solution of singular-value and symmetric eigenvalue problems on multiprocessor arrays (1985).
"""
from __future__ import annotations

from typing import Any

from .loops import batched, check_matrix, loop, turned, unit
from .lower import Graph, Unsupported, Value
from .ops_reductions import sorted_with_places
from .table import row

_SWEEPS = 20
# Cosines between columns at which a sweep was the last; the next one's would be their squares.
_ORTHOGONAL = {"f32": 1e-7, "f64": 1e-9}
# n - 1 rounds are a sweep, and there are eight or so: of larger ones LAPACK is much faster.
_MOST = 32
_MOST_ELEMENTS = 2 ** 15


def _turn(g: Graph, m: int, x: Value, y: Value) -> tuple[Value, Value, Value]:
    """Columns of x against those of y, of which the first m rows count; and the greatest cosine."""
    a, b = (g.slice_dim(one, 1, 0, m) for one in (x, y))
    aa, bb, ab = (g.sum(g.mul(*pair), [1], True) for pair in ((a, a), (b, b), (a, b)))
    size = g.mul(g.unary("sqrt", aa), g.unary("sqrt", bb))
    cosine = g.select(g.compare("GT", size, 0), g.div(g.unary("abs", ab), size),
                      g.scalar(0, x.type))
    same = g.compare("EQ", ab, 0)
    zeta = g.div(g.sub(bb, aa), g.select(same, g.scalar(1, x.type), g.mul(ab, 2)))
    slope = g.div(g.scalar(1, x.type), g.add_(
        g.unary("abs", zeta), g.unary("sqrt", g.add_(g.mul(zeta, zeta), 1))))
    slope = g.select(g.compare("LT", zeta, 0), g.neg(slope), slope)
    slope = g.select(same, g.scalar(0, x.type), slope)
    c = g.unary("rsqrt", g.add_(g.mul(slope, slope), 1))
    s = g.mul(c, slope)
    worst = g.most(cosine, [0, 1, 2])
    return (g.sub(g.mul(c, x), g.mul(s, y)), g.add_(g.mul(s, x), g.mul(c, y)), worst)


def _next_pairs(g: Graph, x: Value, y: Value) -> tuple[Value, Value]:
    """As in a round robin: the first stays, the others move one place around."""
    h = x.shape[2]
    if h == 1:
        return x, y
    return (g.concat([g.slice_dim(x, 2, 0, 1), g.slice_dim(y, 2, 0, 1),
                      g.slice_dim(x, 2, 1, h - 1)], 2),
            g.concat([g.slice_dim(y, 2, 1, h), g.slice_dim(x, 2, h - 1, h)], 2))


def decompose(g: Graph, x: Value, type: str, vectors: bool) -> tuple[Value, Value, Value]:
    """(x V, V, singular values [b, 1, n]) of [b, m, n] in double, in no order; `type`: as precise
    as that needs. Without vectors, V has no rows. An odd n becomes one more."""
    x = g.convert(x, "f64")
    b, m, n = x.shape
    # So that squares are neither too large nor too small.
    scale = g.most(g.unary("abs", x), [1, 2], True)
    scale = g.select(g.compare("GT", scale, 0), scale, g.scalar(1, "f64"))
    x = g.div(x, scale)
    if vectors:
        x = g.concat([x, unit(g, [b, n, n], "f64")], 1)
    x = g.pad(x, 0, [0, 0, 0], [0, 0, n % 2])
    half = x.shape[2] // 2
    rounds = 2 * half - 1

    def step(g: Graph, k: Value, state: list[Value]) -> list[Value]:
        x, y, worst, last = state
        x, y, cosine = _turn(g, m, x, y)
        x, y = _next_pairs(g, x, y)
        worst = g.max(worst, cosine)
        ends = g.compare("EQ", g.binary("remainder", k, rounds), rounds - 1)
        return [x, y, g.select(ends, g.scalar(0, "f64"), worst), g.select(ends, worst, last)]

    def going(g: Graph, state: list[Value]) -> Value:
        return g.compare("GT", state[3], _ORTHOGONAL[type])
    one = g.scalar(1, "f64")
    x, y, _, _ = loop(g, _SWEEPS * rounds, [
        g.slice_dim(x, 2, 0, half), g.slice_dim(x, 2, half, 2 * half), g.scalar(0, "f64"), one],
        step, going)
    x = g.concat([x, y], 2)
    us, v = g.slice_dim(x, 1, 0, m), g.slice_dim(x, 1, m, x.shape[1])
    values = g.unary("sqrt", g.sum(g.mul(us, us), [1], True))
    return g.mul(us, scale), v, g.mul(values, scale)


def _tall(g: Graph, x: Value) -> tuple[Value, bool]:
    """([b, m, n] with m >= n, whether it was transposed)"""
    is_wide = x.shape[-2] < x.shape[-1]
    return batched(g, turned(g, x) if is_wide else x), is_wide


@row("_linalg_svd")
def svd(g: Graph, r: Any, x: Value, full: bool = False, vectors: bool = True,
        driver: Any = None) -> list[Value]:
    _check_values(x, vectors)
    if 0 in x.shape:
        return [g.full(one.shape, 0, x.type) for one in r]
    flat, _ = _tall(g, x)
    _, _, values = decompose(g, flat, x.type, False)
    values = sorted_with_places(g, values, 2, True)[0]
    values = g.slice_dim(values, 2, 0, flat.shape[2])
    empty = [g.full(r[i].shape, 0, x.type) for i in (0, 2)]
    return [empty[0], g.reshape(g.convert(values, x.type), r[1].shape), empty[1]]


def _check_values(x: Value, vectors: bool) -> None:
    """Of decompositions of which only the values are wanted."""
    check_matrix(x)
    if vectors:
        raise Unsupported("vectors with LAPACK's signs")
    _check_size(x)


def _check_size(x: Value) -> None:
    if min(x.shape[-2:]) > _MOST or x.count > _MOST_ELEMENTS:
        raise Unsupported("larger than rounds of rotations are good for: LAPACK's")


def _symmetric(g: Graph, x: Value, upper: bool = False) -> Value:
    """[b, n, n] of one of its triangles."""
    x = batched(g, x)
    rows, columns = (g.iota(x.shape, d, "s32") for d in (1, 2))
    return g.select(g.compare("LE" if upper else "GE", rows, columns), x, turned(g, x))


def _eigen(g: Graph, x: Value, vectors: bool) -> tuple[Value, Value]:
    """(eigenvalues [b, 1, n], vectors) in double, in no order, of symmetric [b, n, n]; of an odd n
    there is one of each more: a value that is not above the others, and a vector of zeros."""
    n = x.shape[2]
    x64 = g.convert(x, "f64")
    # Moved up so that none is below zero; then they are singular values.
    up = g.most(g.sum(g.unary("abs", x64), [2], True), [1, 2], True)
    moved = g.add_(x64, g.mul(unit(g, x64.shape, "f64"), up))
    _, v, values = decompose(g, moved, x.type, vectors)
    return g.sub(values, up), v


@row("_linalg_eigh")
def eigh(g: Graph, r: Any, x: Value, side: str = "L", vectors: bool = True) -> list[Value]:
    _check_values(x, vectors)
    if 0 in x.shape:
        return [g.full(one.shape, 0, x.type) for one in r]
    values, _ = _eigen(g, _symmetric(g, x, side == "U"), False)
    values = sorted_with_places(g, values, 2, False)[0]
    values = g.slice_dim(values, 2, values.shape[2] - x.shape[-1], values.shape[2])
    return [g.reshape(g.convert(values, x.type), r[0].shape), g.full(r[1].shape, 0, x.type)]


def _product(g: Graph, x: Value, y: Value) -> Value:
    """x y^T of batches."""
    return g.dot(x, y, ([2], [2]), ([0], [0]))


@row("linalg_pinv.atol_rtol_tensor")
def pinv(g: Graph, r: Any, x: Value, atol: Value | None = None, rtol: Value | None = None,
         hermitian: bool = False) -> Value:
    check_matrix(x)
    _check_size(x)
    if 0 in x.shape:
        return g.full(r.shape, 0, x.type)
    flat, is_wide = (_symmetric(g, x), False) if hermitian else _tall(g, x)
    us, v, values = decompose(g, flat, x.type, True)
    values = g.convert(g.convert(values, x.type), "f64")  # compared as eager compares them
    batch, number = x.shape[:-2], flat.shape[0]

    def limit(value: Value | None, default: float) -> Value:
        value = g.full(batch, default, "f64") if value is None else g.convert(value, "f64")
        return g.reshape(g.broadcast(value, batch), [number, 1, 1])
    eps = {"f32": 2.0 ** -23, "f64": 2.0 ** -52}[x.type]
    lowest = limit(atol, 0)
    relative = limit(rtol, eps * max(x.shape[-2:]))
    if rtol is None and atol is not None:  # the relative limit only where there is none
        relative = g.select(g.compare("GT", lowest, 0), g.scalar(0, "f64"), relative)
    least = g.max(lowest, g.mul(g.most(values, [2], True), relative))
    kept = g.compare("GT", values, least)
    over = g.select(kept, g.div(g.scalar(1, "f64"), g.mul(values, values)), g.scalar(0, "f64"))
    v = g.slice_dim(v, 1, 0, flat.shape[2])
    y = _product(g, g.mul(v, over), us)
    return g.reshape(g.convert(turned(g, y) if is_wide else y, x.type), r.shape)


@row("linalg_polar")
def polar(g: Graph, r: Any, x: Value) -> list[Value]:
    """In a matrix without full rank some columns of U are free: what is added here, far below what
    a result in float shows, chooses them."""
    check_matrix(x)
    _check_size(x)
    if 0 in x.shape or x.shape[-2] < x.shape[-1] or x.type != "f32":
        raise Unsupported("an empty matrix, one with more columns than rows, or one in double")
    flat = g.convert(batched(g, x), "f64")
    rows, columns = (g.iota(flat.shape, d, "f64") for d in (1, 2))
    other = g.unary("cosine", g.add_(g.mul(g.mul(rows, rows), 0.7), g.mul(columns, 1.3)))
    size = g.most(g.unary("abs", flat), [1, 2], True)
    size = g.select(g.compare("GT", size, 0), size, g.scalar(1, "f64"))
    us, v, values = decompose(g, g.add_(flat, g.mul(g.mul(other, size), 1e-13)), x.type, True)
    is_one = g.compare("GT", values, 0)  # not what an odd number of columns was filled up with
    over = g.select(is_one, g.div(g.scalar(1, "f64"), values), g.scalar(0, "f64"))
    left, right = _product(g, g.mul(us, over), v), _product(g, g.mul(v, values), v)
    return [g.reshape(g.convert(one, x.type), result.shape)
            for one, result in zip((left, right), r)]


@row("linalg_matrix_sqrth")
def matrix_sqrth(g: Graph, r: Any, x: Value) -> Value:
    check_matrix(x)
    _check_size(x)
    if 0 in x.shape:
        return g.full(r.shape, 0, x.type)
    values, v = _eigen(g, _symmetric(g, x), True)
    is_none = g.compare("EQ", g.sum(g.mul(v, v), [1], True), 0)
    roots = g.select(is_none, g.scalar(0, "f64"), g.unary("sqrt", values))
    y = _product(g, g.mul(v, roots), v)
    return g.reshape(g.convert(y, x.type), r.shape)
