"""Results whose extent is data: computed for the largest extent there can be, and cut when they leave
the program. What reads one inside of a graph is not lowered; it gets the cut one.
"""
from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Sequence
from typing import Any

import torch

from .lower import Graph, Unsupported, Value, is_float
from .ops_indexing import gather_rows, places_in_order, scatter_rows, vectors
from .ops_movement import wrap
from .ops_reductions import running
from .table import BOUNDED, find_bounded

# Rows, and comparisons of them, that a program orders faster than a sort does.
_COMPARED, _COMPARISONS = 256, 2 ** 18


@dataclasses.dataclass
class Bounded:
    """The first `count` rows of a value; their dimensions in another order after that."""
    value: Value
    count: Value
    order: Sequence[int] | None = None


def _count(g: Graph, mask: Value) -> Value:
    return g.sum(g.convert(mask, "s64"), list(range(mask.rank)))


def _packed(g: Graph, mask: Value, rows: Value) -> Value:
    """The rows [n, …] for which the mask [n] is true, and anything after them."""
    n = mask.count
    at = g.select(mask, places_in_order(g, mask), g.scalar(n, "s64"))
    start = g.full([n + 1, *rows.shape[1:]], 0, rows.type)
    return g.slice_dim(scatter_rows(g, start, g.reshape(at, [n, 1]), rows, [0]), 0, 0, n)


def _check(x: Value) -> None:
    if x.type == "bf16":
        raise Unsupported("an extent that data decides")


def _nothing(g: Graph, type: str, *rest: int) -> Bounded:
    return Bounded(g.full([1, *rest], 0, type), g.scalar(0, "s64"))


def nonzero(g: Graph, x: Value) -> Bounded:
    _check(x)
    if x.count == 0:
        return _nothing(g, "s64", x.rank)
    mask = g.convert(x, "pred")
    flat = g.reshape(mask, [x.count])
    if x.rank == 0:
        return Bounded(g.full([1, 0], 0, "s64"), _count(g, flat))
    where = vectors(g, [g.iota(x.shape, d) for d in range(x.rank)])
    return Bounded(_packed(g, flat, g.reshape(where, [x.count, x.rank])), _count(g, mask))


def masked_select(g: Graph, x: Value, mask: Value) -> Bounded:
    x, mask = g.together(x, mask)
    _check(x)
    if x.count == 0:
        return _nothing(g, x.type)
    flat = g.reshape(mask, [x.count])
    return Bounded(_packed(g, flat, g.reshape(x, [x.count])), _count(g, mask))


def _runs(g: Graph, x: Value, inverse: bool, counts: bool, places: Value | None,
          shape: Sequence[int]) -> list[Any]:
    """[the first of each run of equal rows of x [n, …], which run each row is of, how long they
    are]; places: where the rows stood."""
    n = x.shape[0]
    none = g.full([0], 0, "s64")
    if n == 0:
        return [_nothing(g, x.type, *x.shape[1:]), g.full(shape, 0, "s64") if inverse else none,
                _nothing(g, "s64") if counts else none]
    rest = [0] * (x.rank - 1)
    before = g.pad(g.slice_dim(x, 0, 0, n - 1), 0, [1, *rest], [0, *rest])
    differs = g.reduce("or", g.compare("NE", x, before), list(range(1, x.rank)), False)
    first = g.either(differs, g.compare("EQ", g.iota([n], 0, "s32"), 0))
    count = _count(g, first)
    results: list[Any] = [Bounded(_packed(g, first, x), count), none, none]
    if inverse:
        number = g.sub(running(g, g.convert(first, "s64"), 0, "add", 0), 1)
        if places is not None:
            number = scatter_rows(g, g.full([n], 0, "s64"), g.reshape(places, [n, 1]), number, [0])
        results[1] = g.reshape(number, shape)
    if counts:
        start, line = _packed(g, first, g.iota([n], 0, "s64")), g.iota([n], 0, "s64")
        start = g.select(g.compare("LT", line, count), start, g.scalar(n, "s64"))
        after = g.pad(g.slice_dim(start, 0, 1, n), n, [0], [1])
        results[2] = Bounded(g.sub(after, start), count)
    return results


def _order(g: Graph, x: Value) -> Value:
    """Where the rows of x [n, k] stand in their order: each is compared with each other one."""
    n, k = x.shape
    if n > _COMPARED or k > _COMPARED or n * n * k > _COMPARISONS:
        raise Unsupported(f"an order of {n} rows of {k}: a sort is faster")
    less, more = (g.full([n, n], False, "pred") for _ in range(2))
    for c in range(k):
        column = g.reshape(g.slice_dim(x, 1, c, c + 1), [n])
        a, b = g.broadcast(column, [n, n], [0]), g.broadcast(column, [n, n], [1])
        below, above = g.compare("LT", a, b), g.compare("GT", a, b)
        if is_float(x.type):  # NaN is the greatest
            below = g.either(below, g.both(g.is_nan(b), g.no(g.is_nan(a))))
            above = g.either(above, g.both(g.is_nan(a), g.no(g.is_nan(b))))
        open_ = g.no(g.either(less, more))
        less, more = (g.either(one, g.both(open_, now)) for one, now in ((less, below),
                                                                        (more, above)))
    earlier = g.compare("LT", g.iota([n, n], 0, "s32"), g.iota([n, n], 1, "s32"))
    before = g.either(less, g.both(g.no(more), earlier))
    rank = g.sum(g.convert(before, "s32"), [0])
    here = g.compare("EQ", g.broadcast(rank, [n, n], [0]), g.iota([n, n], 1, "s32"))
    return g.sum(g.select(here, g.iota([n, n], 0, "s64"), g.scalar(0, "s64")), [0])


def unique(g: Graph, x: Value, sorted: bool = True, inverse: bool = False,
           counts: bool = False) -> list[Any]:
    _check(x)
    if x.count == 0:
        return _runs(g, g.reshape(x, [0]), inverse, counts, None, x.shape)
    places = _order(g, g.reshape(x, [x.count, 1]))
    flat = gather_rows(g, g.reshape(x, [x.count]), g.reshape(places, [x.count, 1]), [0])
    return _runs(g, flat, inverse, counts, places, x.shape)


def _rows(g: Graph, x: Value, dim: int) -> tuple[Value, list[int], list[int]]:
    """(x as [n, elements of a row], the row's shape, how its dimensions go back)"""
    order = [dim, *(d for d in range(x.rank) if d != dim)]
    x = g.transpose(x, order)
    flat = g.reshape(x, [x.shape[0], math.prod(x.shape[1:])])
    return flat, list(x.shape), [order.index(d) for d in range(x.rank)]


def _as_they_were(g: Graph, results: list[Any], shape: Sequence[int],
                  back: list[int]) -> list[Any]:
    first: Bounded = results[0]
    value = g.reshape(first.value, [first.value.shape[0], *shape[1:]])
    return [Bounded(value, first.count, back), *results[1:]]


def unique_consecutive(g: Graph, x: Value, inverse: bool = False, counts: bool = False,
                       dim: int | None = None) -> list[Any]:
    _check(x)
    if dim is None or x.rank == 0:
        return _runs(g, g.reshape(x, [x.count]), inverse, counts, None, x.shape)
    flat, shape, back = _rows(g, x, wrap(dim, x.rank))
    return _as_they_were(g, _runs(g, flat, inverse, counts, None, flat.shape[:1]), shape, back)


def unique_dim(g: Graph, x: Value, dim: int, sorted: bool = True, inverse: bool = False,
               counts: bool = False) -> list[Any]:
    _check(x)
    if x.count == 0 or x.rank == 0:
        raise Unsupported("an extent that data decides")
    flat, shape, back = _rows(g, x, wrap(dim, x.rank))
    n = flat.shape[0]
    places = _order(g, flat)
    flat = gather_rows(g, flat, g.reshape(places, [n, 1]), [0])
    return _as_they_were(g, _runs(g, flat, inverse, counts, places, [n]), shape, back)


def unbind(g: Graph, x: Bounded, dim: int = 0) -> list[Bounded]:
    value = x.value
    if dim not in (1, -1) or value.rank != 2 or x.order is not None:
        raise Unsupported("an extent that data decides")
    return [Bounded(g.reshape(g.slice_dim(value, 1, i, i + 1), value.shape[:1]), x.count)
            for i in range(value.shape[1])]


BOUNDED.update({"nonzero": nonzero, "masked_select": masked_select, "_unique2": unique,
                "unique_consecutive": unique_consecutive, "unique_dim": unique_dim})


def drop_assertions(gm: torch.fx.GraphModule) -> None:
    """That such an extent is not negative, and at most what it is computed for."""
    graph = gm.graph
    for node in list(graph.nodes):
        if node.target is torch.ops.aten._assert_scalar.default and _holds(node.args[0]):
            graph.erase_node(node)
    for node in reversed(list(graph.nodes)):
        if not node.users and node.target in (operator.ge, operator.le,
                                              torch.ops.aten.sym_size.int):
            graph.erase_node(node)
    gm.recompile()


def _holds(condition: Any) -> bool:
    if not isinstance(condition, torch.fx.Node) or condition.target not in (operator.ge,
                                                                            operator.le):
        return False
    size: Any = condition.args[0]
    if not isinstance(size, torch.fx.Node) or \
            size.target is not torch.ops.aten.sym_size.int:
        return False
    whole: Any = size.args[0]
    if whole.target is operator.getitem:
        whole = whole.args[0]
    return find_bounded(whole.target) is not None
