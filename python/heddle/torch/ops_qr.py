"""QR factorisations by Householder's reflections, and products with them."""
from __future__ import annotations

from typing import Any

from .loops import batched, check_matrix, down, line_at, loop, places, turned, unit
from .lower import Graph, Value
from .ops_movement import triu
from .table import row


def _reflect(g: Graph, x: Value, v: Value, tau: Value) -> Value:
    """(1 - tau v v^T) x for v [b, m, 1] and tau [b, 1, 1]"""
    inner = g.sum(g.mul(v, x), [1], True)
    return g.sub(x, g.mul(v, g.mul(tau, inner)))


def _reflection(g: Graph, x: Value, k: Value) -> tuple[Value, Value, Value]:
    """(beta, tau, v) that make column k of x beta in row k and zero below, as LAPACK's larfg."""
    line = g.iota([x.shape[0], x.shape[1], 1], 1, "s32")
    column, zero = line_at(g, x, 2, k), g.scalar(0, x.type)
    below = g.select(g.compare("GT", line, k), column, zero)
    alpha = line_at(g, column, 1, k)
    none = g.compare("EQ", g.most(g.unary("abs", below), [1], True), 0)
    # Scaled: squares of large and small numbers are none.
    scale = g.max(g.most(g.unary("abs", below), [1], True), g.unary("abs", alpha))
    scale = g.select(g.compare("EQ", scale, 0), g.scalar(1, x.type), scale)
    part, first = g.div(below, scale), g.div(alpha, scale)
    length = g.unary("sqrt", g.add_(g.mul(first, first), g.sum(g.mul(part, part), [1], True)))
    length = g.mul(length, scale)
    beta = g.select(g.compare("GE", alpha, 0), g.neg(length), length)
    beta = g.select(none, alpha, beta)
    whole = g.select(none, g.scalar(1, x.type), beta)
    tau = g.select(none, zero, g.div(g.sub(whole, alpha), whole))
    away = g.select(none, g.scalar(1, x.type), g.sub(alpha, beta))
    v = g.select(g.compare("EQ", line, k), g.scalar(1, x.type), g.div(below, away))
    return beta, tau, v


def factor(g: Graph, x: Value) -> tuple[Value, Value]:
    """(R with the reflections below its diagonal, their factors [b, 1, k]) of [b, m, n]"""
    b, m, n = x.shape
    count = min(m, n)

    def step(g: Graph, k: Value, state: list[Value]) -> list[Value]:
        x, taus = state
        beta, tau, v = _reflection(g, x, k)
        rows, columns = places(g, x)
        at_k = g.select(g.compare("EQ", rows, k), g.broadcast(beta, x.shape),
                        g.select(g.compare("GT", rows, k), g.broadcast(v, x.shape), x))
        after = g.select(g.compare("GT", columns, k), _reflect(g, x, v, tau),
                         g.select(g.compare("EQ", columns, k), at_k, x))
        here = g.compare("EQ", g.iota(taus.shape, 2, "s32"), k)
        return [after, g.select(here, tau, taus)]
    result, taus = loop(g, count, [x, g.full([b, 1, count], 0, x.type)], step)
    return result, taus


def times_q(g: Graph, x: Value, taus: Value, c: Value, transposed: bool = False) -> Value:
    """Q c, or Q^T c, for the reflections below the diagonal of x [b, m, n]."""
    count = taus.shape[2]

    def step(g: Graph, number: Value, state: list[Value]) -> list[Value]:
        x, taus, c = state
        k = number if transposed else down(g, number, count)
        line = g.iota([x.shape[0], x.shape[1], 1], 1, "s32")
        v = g.select(g.compare("GT", line, k), line_at(g, x, 2, k), g.scalar(0, x.type))
        v = g.select(g.compare("EQ", line, k), g.scalar(1, x.type), v)
        return [x, taus, _reflect(g, c, v, line_at(g, taus, 2, k))]
    return loop(g, count, [x, taus, c], step)[2]


def _flat_taus(g: Graph, taus: Value) -> Value:
    return batched(g, g.reshape(taus, [*taus.shape[:-1], 1, taus.shape[-1]]))


@row("geqrf")
def geqrf(g: Graph, r: Any, x: Value) -> list[Value]:
    check_matrix(x)
    if 0 in x.shape:
        return [x, g.full(r[1].shape, 0, x.type)]
    result, taus = factor(g, batched(g, x))
    return [g.reshape(result, x.shape), g.reshape(taus, r[1].shape)]


@row("linalg_qr")
def qr(g: Graph, r: Any, x: Value, mode: str = "reduced") -> list[Value]:
    check_matrix(x)
    if 0 in r[1].shape or 0 in x.shape:
        return [unit(g, r[0].shape, x.type) if r[0].numel() else g.full(r[0].shape, 0, x.type),
                g.full(r[1].shape, 0, x.type)]
    flat = batched(g, x)
    result, taus = factor(g, flat)
    upper = triu(g, None, g.slice_dim(result, 1, 0, r[1].shape[-2]))
    upper = g.reshape(upper, r[1].shape)
    if mode == "r":
        return [g.full(r[0].shape, 0, x.type), upper]
    start = unit(g, [flat.shape[0], *r[0].shape[-2:]], x.type)
    return [g.reshape(times_q(g, result, taus, start), r[0].shape), upper]


@row("linalg_householder_product")
def householder_product(g: Graph, r: Any, x: Value, taus: Value) -> Value:
    check_matrix(x)
    if 0 in x.shape:
        return g.full(r.shape, 0, x.type)
    flat = batched(g, x)
    start = unit(g, flat.shape, x.type)
    return g.reshape(times_q(g, flat, _flat_taus(g, taus), start) if taus.shape[-1] else start,
                     r.shape)


@row("ormqr")
def ormqr(g: Graph, r: Any, x: Value, taus: Value, c: Value, left: bool = True,
          transpose: bool = False) -> Value:
    check_matrix(x)
    check_matrix(c)
    if 0 in x.shape or 0 in r.shape or taus.shape[-1] == 0:
        return c
    side = batched(g, c)
    if not left:  # c Q = (Q^T c^T)^T
        side, transpose = turned(g, side), not transpose
    y = times_q(g, batched(g, x), _flat_taus(g, taus), side, transpose)
    return g.reshape(y if left else turned(g, y), r.shape)
