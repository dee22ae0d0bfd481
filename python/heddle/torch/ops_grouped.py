"""Products of groups of rows, each with a matrix of its own (mixtures of experts): where the groups
end is data.

A group goes through its product block by block, in a loop that ends with it. Rows of the last block
that belong to the next groups are overwritten by these.
"""
from __future__ import annotations

from typing import Any

from .loops import loop
from .lower import Graph, Unsupported, Value
from .ops_products import product
from .table import row

# Every group has its own loop, so that its matrix can be packed once.
MOST_GROUPS = 16
MOST_ROWS = 64  # of a block


def _block(rows: int, groups: int) -> int:
    """Half of a group of average size: of the rows of its last block about half are another's."""
    size = 1
    while size < MOST_ROWS and 4 * size <= rows // max(groups, 1):
        size *= 2
    return size


def _bounds(g: Graph, ends: Value, rows: int) -> list[Value]:
    """Where groups start and end: 0, the end of the first, …; inside the rows."""
    ends = g.max(g.min(g.convert(ends, "s32"), rows), 0)
    return [g.scalar(0, "s32"),
            *(g.reshape(g.slice_dim(ends, 0, i, i + 1), []) for i in range(ends.shape[0]))]


def _rows_at(g: Graph, x: Value, at: Value, rows: int) -> Value:
    return g.add("dynamic-slice", x.type, [rows, x.shape[1]], [x, at, g.scalar(0, "s32")],
                 f"dynamic_slice_sizes={{{rows},{x.shape[1]}}}")


def _padded(g: Graph, x: Value, size: int) -> Value:
    """With rows after the last, so that a block may start at any of its rows."""
    return g.pad(x, 0, [0, 0], [size, 0])


def _groups(ends: Value) -> int:
    groups = ends.shape[0]
    if groups > MOST_GROUPS:
        raise Unsupported(f"more than {MOST_GROUPS} groups")
    return groups


def _before_end(g: Graph, state: list[Value]) -> Value:
    return g.compare("LT", state[0], state[1])


def by_rows(g: Graph, x: Value, matrices: Value, ends: Value) -> Value:
    """[rows, k] and [groups, k, n] give [rows, n]; zeros after the last group."""
    (rows, depth), width = x.shape, matrices.shape[2]
    groups = _groups(ends)
    if 0 in (rows, groups, depth, width):
        return g.full([rows, width], 0, x.type)
    size, bounds = _block(rows, groups), _bounds(g, ends, rows)

    def step(g: Graph, number: Value, state: list[Value]) -> list[Value]:
        at, end, x, matrix, result = state
        product = g.dot(_rows_at(g, x, at, size), matrix, ([1], [0]))
        result = g.add("dynamic-update-slice", result.type, result.shape,
                       [result, product, at, g.scalar(0, "s32")])
        return [g.add_(at, size), end, x, matrix, result]

    x = _padded(g, x, size)
    result = g.full([rows + size, width], 0, x.type)
    for i, (start, end) in enumerate(zip(bounds, bounds[1:])):
        matrix = g.reshape(g.slice_dim(matrices, 0, i, i + 1), [depth, width])
        result = loop(g, -(-rows // size), [start, end, x, matrix, result], step, _before_end)[-1]
    inside = g.compare("LT", g.iota([rows, width], 0, "s32"),
                       g.broadcast(bounds[-1], [rows, width], []))
    return g.select(inside, g.slice_dim(result, 0, 0, rows), 0)


def of_rows(g: Graph, x: Value, y: Value, ends: Value) -> Value:
    """[rows, m] and [rows, n] give [groups, m, n]: products over the rows of each group."""
    (rows, height), width = x.shape, y.shape[1]
    groups = _groups(ends)
    if 0 in (rows, groups, height, width):
        return g.full([groups, height, width], 0, x.type)
    size, bounds = _block(rows, groups), _bounds(g, ends, rows)

    def step(g: Graph, number: Value, state: list[Value]) -> list[Value]:
        at, end, x, y, total = state

        def block(x: Value) -> Value:
            shape = [size, x.shape[1]]
            inside = g.compare("LT", g.iota(shape, 0, "s32"),
                               g.broadcast(g.sub(end, at), shape, []))
            return g.convert(g.select(inside, _rows_at(g, x, at, size), 0), total.type)
        return [g.add_(at, size), end, x, y, g.add_(total, g.dot(block(x), block(y), ([0], [0])))]

    type = "f32" if x.type in ("f16", "bf16") else x.type
    x, y = _padded(g, x, size), _padded(g, y, size)
    results = []
    for start, end in zip(bounds, bounds[1:]):
        zero = g.full([height, width], 0, type)
        total = loop(g, -(-rows // size), [start, end, x, y, zero], step, _before_end)[-1]
        results.append(g.reshape(total, [1, height, width]))
    return g.convert(g.concat(results, 0), x.type)


def _turned(g: Graph, x: Value) -> Value:
    return g.transpose(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2])


@row("_grouped_mm")
def grouped_mm(g: Graph, r: Any, x: Value, y: Value, ends: Value | None = None,
               bias: Value | None = None, *rest: Any) -> Value:
    if bias is not None:
        raise Unsupported("a bias of grouped_mm")
    if ends is None:
        return product(g, x, y, ([2], [1]), ([0], [0]))
    if y.rank == 3:
        return by_rows(g, x, y, ends)
    if x.rank == 3:  # the columns of y are in groups
        return _turned(g, by_rows(g, _turned(g, y), _turned(g, x), ends))
    return of_rows(g, _turned(g, x), y, ends)


@row("transformers.grouped_mm_fallback")
def fallback(g: Graph, r: Any, x: Value, matrices: Value, ends: Value) -> Value:
    return by_rows(g, x, matrices, ends)


@row("transformers.grouped_mm_fallback_backward")
def fallback_backward(g: Graph, r: Any, x: Value, matrices: Value, ends: Value,
                      grad: Value) -> list[Value]:
    return [by_rows(g, grad, _turned(g, matrices), ends), of_rows(g, x, grad, ends)]
