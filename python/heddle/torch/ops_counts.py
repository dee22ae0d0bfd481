"""Histograms, most frequent values, reductions of segments, hashes."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .lower import Graph, Unsupported, Value, highest, is_float
from .ops_indexing import scatter_rows
from .ops_movement import wrap
from .table import row


# ---- histograms ----

def _count(g: Graph, at: Value, inside: Value, bins: int, weight: Value | None, type: str) -> Value:
    """How many positions [n] there are of each of `bins`, or their weights' sums."""
    n = at.shape[0]
    one = g.full([n], 1, type) if weight is None else g.convert(g.reshape(weight, [n]), type)
    one = g.select(inside, one, g.scalar(0, type))
    at = g.select(inside, at, g.scalar(0, at.type))
    return scatter_rows(g, g.full([bins], 0, type), g.reshape(at, [n, 1]), one, [0], "add")


def _ends(g: Graph, x: Value, given: Sequence[float] | None, apart: float) -> tuple[Value, Value]:
    """(least, most) of x [n], or the range that is given; `apart` from what would be one value."""
    if given is not None:
        low, high = (g.scalar(one, x.type) for one in given)
    elif x.count == 0:
        low = high = g.scalar(0, x.type)
    else:
        low, high = g.least(x, [0]), g.most(x, [0])
    same = g.compare("EQ", low, high)
    return (g.select(same, g.sub(low, apart), low), g.select(same, g.add_(high, apart), high))


def _edges(g: Graph, low: Value, high: Value, bins: int) -> Value:
    """As torch.linspace: from the nearer end."""
    step = g.div(g.sub(high, low), bins)
    line = g.iota([bins + 1], 0, low.type)
    up = g.add_(g.mul(line, step), low)
    down = g.sub(high, g.mul(g.sub(g.scalar(bins, low.type), line), step))
    return g.select(g.compare("LT", line, (bins + 1) // 2), up, down)


def _places(g: Graph, x: Value, edges: Value) -> tuple[Value, Value]:
    """(bin of each of x [n], whether it is in one)"""
    n, last = x.shape[0], edges.shape[0] - 1
    low, high = (g.reshape(g.slice_dim(edges, 0, i, i + 1), []) for i in (0, last))
    inside = g.both(g.compare("GE", x, low), g.compare("LE", x, high))
    shape = [n, last + 1]
    reached = g.compare("LE", g.broadcast(edges, shape, [1]), g.broadcast(x, shape, [0]))
    at = g.sub(g.sum(g.convert(reached, "s32"), [1]), 1)
    return g.min(g.max(at, 0), last - 1), inside


def _histogram(g: Graph, x: Value, edges: Sequence[Value], weight: Value | None,
               density: bool) -> Value:
    """Of points [n, d] between edges in each of d dimensions."""
    n = x.shape[0]
    bins = [one.shape[0] - 1 for one in edges]
    at, inside = g.full([n], 0, "s32"), g.full([n], True, "pred")
    for d, one in enumerate(edges):
        place, within = _places(g, g.reshape(g.slice_dim(x, 1, d, d + 1), [n]), one)
        at, inside = g.add_(g.mul(at, bins[d]), place), g.both(inside, within)
    counts = g.reshape(_count(g, at, inside, math.prod(bins), weight, x.type), bins)
    if not density:
        return counts
    counts = g.div(counts, g.sum(counts, list(range(len(bins)))))
    for d, one in enumerate(edges):
        width = g.sub(g.slice_dim(one, 0, 1, bins[d] + 1), g.slice_dim(one, 0, 0, bins[d]))
        counts = g.div(counts, g.broadcast(width, bins, [d]))
    return counts


@row("histc")
def histc(g: Graph, r: Any, x: Value, bins: int = 100, low: float = 0, high: float = 0) -> Value:
    if not is_float(x.type):
        raise Unsupported(f"a histogram of {x.type}")
    x = g.reshape(x, [x.count])
    first, last = _ends(g, x, None if low == high else (low, high), 1)
    if x.count == 0:
        return g.full([bins], 0, x.type)
    inside = g.both(g.compare("GE", x, first), g.compare("LE", x, last))
    at = g.div(g.mul(g.sub(x, first), bins), g.sub(last, first))
    at = g.min(g.convert(g.select(inside, at, g.scalar(0, x.type)), "s32"), bins - 1)
    return _count(g, at, inside, bins, None, x.type)


@row("histogram.bin_ct")
def histogram_by_count(g: Graph, r: Any, x: Value, bins: int = 100,
                       range: Sequence[float] | None = None, weight: Value | None = None,
                       density: bool = False) -> list[Value]:
    x = g.reshape(x, [x.count])
    edges = _edges(g, *_ends(g, x, range, 0.5), bins)
    if x.count == 0 and not density:
        return [g.full([bins], 0, x.type), edges]
    return [_histogram(g, g.reshape(x, [x.count, 1]), [edges], weight, density), edges]


@row("histogram.bins_tensor")
def histogram_by_edges(g: Graph, r: Any, x: Value, edges: Value, weight: Value | None = None,
                       density: bool = False) -> list[Value]:
    return [_histogram(g, g.reshape(x, [x.count, 1]), [edges], weight, density), edges]


def _edges_of_dims(g: Graph, x: Value, bins: Sequence[int],
                   range: Sequence[float] | None) -> list[Value]:
    points = math.prod(x.shape[:-1])
    x, edges = g.reshape(x, [points, len(bins)]), []
    for d, count in enumerate(bins):
        given = None if range is None else range[2 * d:2 * d + 2]
        column = g.reshape(g.slice_dim(x, 1, d, d + 1), [points])
        edges.append(_edges(g, *_ends(g, column, given, 0.5), count))
    return edges


@row("_histogramdd_bin_edges")
def histogramdd_edges(g: Graph, r: Any, x: Value, bins: Sequence[int],
                      range: Sequence[float] | None = None, weight: Value | None = None,
                      density: bool = False) -> list[Value]:
    return _edges_of_dims(g, x, bins, range)


@row("_histogramdd_from_bin_cts")
def histogramdd_by_counts(g: Graph, r: Any, x: Value, bins: Sequence[int],
                          range: Sequence[float] | None = None, weight: Value | None = None,
                          density: bool = False) -> Value:
    return histogramdd_by_edges(g, r, x, _edges_of_dims(g, x, bins, range), weight, density)


@row("_histogramdd_from_bin_tensors")
def histogramdd_by_edges(g: Graph, r: Any, x: Value, edges: Sequence[Value],
                         weight: Value | None = None, density: bool = False) -> Value:
    points = math.prod(x.shape[:-1])
    return _histogram(g, g.reshape(x, [points, len(edges)]), edges, weight, density)


# ---- others ----

# Each element is compared with each other one of its row: of longer ones a sort is faster.
_COMPARED = 256


@row("mode")
def mode(g: Graph, r: Any, x: Value, dim: int = -1, keep: bool = False) -> list[Value]:
    """Of equally frequent values the least; of its positions the last."""
    if x.rank == 0:
        return [x, g.scalar(0, "s64")]
    dim = wrap(dim, x.rank)
    n = x.shape[dim]
    if x.count == 0 or n > _COMPARED or x.type == "pred":
        raise Unsupported(f"the mode of {n} elements")
    x = g.transpose(x, [d for d in range(x.rank) if d != dim] + [dim])
    last, wide = x.rank - 1, [*x.shape, n]
    a, b = (g.broadcast(x, wide, [*range(last), d]) for d in (last, last + 1))
    same = g.compare("EQ", a, b)
    nan = g.is_nan(x) if is_float(x.type) else g.full(x.shape, False, "pred")
    count = g.max(g.sum(g.convert(same, "s32"), [last + 1]), 1)  # no NaN is like another one
    often = g.compare("EQ", count, g.most(count, [last], True))
    good = g.both(often, g.no(nan))
    value = g.least(g.select(good, x, highest(x.type)), [last], True)
    line = g.iota(x.shape, last, "s64")
    at = g.select(g.both(good, g.compare("EQ", x, value)), line, g.scalar(-1, "s64"))
    at = g.most(at, [last], True)
    other = g.most(g.select(g.both(often, nan), line, g.scalar(-1, "s64")), [last], True)
    at = g.select(g.compare("LT", at, 0), other, at)
    result = g.select(g.compare("EQ", line, at), x, g.scalar(0, x.type))
    return [g.sum(result, [last]), g.reshape(at, x.shape[:-1])]


@row("hash_tensor")
def hash_tensor(g: Graph, r: Any, x: Value, dims: Sequence[int] = (), keep: bool = False,
                mode: int = 0) -> Value:
    if x.type not in ("f16", "bf16", "f32", "f64", "s8", "s16", "s32", "s64"):
        raise Unsupported(f"a hash of {x.type}")
    x = g.bitcast(g.convert(x, "f64" if is_float(x.type) else "s64"), "u64")
    reduced = [wrap(d, x.rank) for d in dims if x.rank] or list(range(x.rank))
    return g.reduce("xor", x, reduced, 0)


_SEGMENTS = {"sum": ("add", 0), "mean": ("add", 0), "max": ("maximum", -math.inf),
             "min": ("minimum", math.inf), "prod": ("multiply", 1)}


@row("segment_reduce")
def segment_reduce(g: Graph, r: Any, x: Value, reduce: str, lengths: Value | None = None,
                   indices: Value | None = None, offsets: Value | None = None, axis: int = 0,
                   unsafe: bool = False, initial: float | None = None) -> Value:
    op, start = _SEGMENTS[reduce]
    bounds = lengths if offsets is None else offsets
    if bounds is None or indices is not None or not is_float(x.type):
        raise Unsupported("segments by indices")
    if 0 in r.shape or 0 in x.shape:
        raise Unsupported("segments of nothing")
    axis = wrap(axis, x.rank)
    first, last = _bounds(g, bounds, offsets is not None, axis)
    # [before, segments, n, behind]
    count, n = r.shape[axis], x.shape[axis]
    wide = [*x.shape[:axis], count, *x.shape[axis:]]
    places = g.iota(wide, axis + 1, "s64")
    first, last = (g.broadcast(one, wide, list(range(axis + 1))) for one in (first, last))
    inside = g.both(g.compare("GE", places, first), g.compare("LT", places, last))
    x = g.broadcast(x, wide, [d for d in range(len(wide)) if d != axis])
    result = g.reduce(op, g.select(inside, x, g.scalar(start, x.type)), [axis + 1], start)
    size = g.reduce("add", g.convert(inside, x.type), [axis + 1], 0)
    if initial is not None:
        result = g.binary(op, result, g.scalar(initial, x.type))
    if reduce == "mean":
        empty = g.compare("EQ", size, 0)
        divided = g.div(result, g.select(empty, g.scalar(1, x.type), size))
        none = g.scalar(math.nan, x.type) if initial is None else result
        result = g.select(empty, none, divided)
    return result


def _bounds(g: Graph, bounds: Value, are_offsets: bool, axis: int) -> tuple[Value, Value]:
    bounds = g.convert(bounds, "s64")
    n = bounds.shape[axis]
    if are_offsets:
        return g.slice_dim(bounds, axis, 0, n - 1), g.slice_dim(bounds, axis, 1, n)
    wide = [*bounds.shape, n]
    before = g.compare("GE", g.iota(wide, axis, "s32"), g.iota(wide, axis + 1, "s32"))
    each = g.broadcast(bounds, wide, [*range(axis), axis + 1])
    last = g.sum(g.select(before, each, g.scalar(0, "s64")), [axis + 1])
    return g.sub(last, bounds), last
