"""Samples of images and volumes: at a grid's points, at random windows, with a wide filter."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .lower import Graph, Unsupported, Value, is_float
from .ops_indexing import gather
from .ops_reductions import first_place
from .table import row


# ---- grids ----

def _source(g: Graph, at: Value, size: int, padding: int, align: bool) -> Value:
    """Where -1 to 1 is in an extent."""
    up = g.add_(at, 1)
    x = g.mul(g.div(up, 2), size - 1) if align else g.div(g.sub(g.mul(up, size), 1), 2)
    if padding == 0:
        return x
    if padding == 2:
        low, high = (0, 2 * (size - 1)) if align else (-1, 2 * size - 1)
        if low == high:
            return g.full(x.shape, 0, x.type)
        least, span = low / 2, (high - low) / 2
        away = g.unary("abs", g.sub(x, least))
        extra = g.binary("remainder", away, span)
        flips = g.unary("floor", g.div(away, span))
        odd = g.compare("NE", g.binary("remainder", flips, 2), 0)
        x = g.add_(g.select(odd, g.sub(g.scalar(span, x.type), extra), extra), least)
    return g.min(g.max(x, 0), size - 1)


def _at_corner(g: Graph, x: Value, corner: Sequence[Value], shape: Sequence[int]) -> Value:
    """x [n, c, places] at whole coordinates [n, points]; zero outside."""
    inside, place = g.full(corner[0].shape, True, "pred"), g.full(corner[0].shape, 0, "s64")
    for at, size in zip(corner, shape):
        inside = g.both(inside, g.both(g.compare("GE", at, 0), g.compare("LE", at, size - 1)))
        whole = g.convert(g.min(g.max(at, 0), size - 1), "s64")
        place = g.add_(g.mul(place, size), whole)
    n, points = corner[0].shape
    wide = [n, x.shape[1], points]
    value = gather(g, None, x, 2, g.broadcast(place, wide, [0, 2]))
    return g.select(g.broadcast(inside, wide, [0, 2]), value, g.scalar(0, x.type))


@row("grid_sampler_3d")
def grid_sampler_3d(g: Graph, r: Any, x: Value, grid: Value, mode: int, padding: int,
                    align: bool) -> Value:
    if 0 in x.shape or 0 in r.shape or not is_float(x.type):
        raise Unsupported("samples of nothing")
    n, c, *shape = x.shape
    points = r.shape[2] * r.shape[3] * r.shape[4]
    grid = g.reshape(grid, [n, points, 3])
    at = [_source(g, g.reshape(g.slice_dim(grid, 2, 2 - d, 3 - d), [n, points]), shape[d], padding,
                  align) for d in range(3)]
    x = g.reshape(x, [n, c, shape[0] * shape[1] * shape[2]])
    if mode == 1:
        rounded = [g.unary("round-nearest-even", one) for one in at]
        return g.reshape(_at_corner(g, x, rounded, shape), r.shape)
    if mode != 0:
        raise Unsupported("cubic samples of a volume")
    low = [g.unary("floor", one) for one in at]
    total: Value | None = None
    for number in range(8):
        corner, share = [], g.full([n, points], 1, x.type)
        for d in range(3):
            far = number >> d & 1
            corner.append(g.add_(low[d], far))
            part = g.sub(at[d], low[d])
            share = g.mul(share, part if far else g.sub(g.scalar(1, x.type), part))
        value = g.mul(_at_corner(g, x, corner, shape), g.broadcast(share, [n, c, points], [0, 2]))
        total = value if total is None else g.add_(total, value)
    assert total is not None
    return g.reshape(total, r.shape)


# ---- windows at random places ----

def _starts(g: Graph, sample: Value, size: int, outputs: int, window: int) -> Value:
    """[b, outputs], of samples [b]; the last window is at the end."""
    shape = [sample.shape[0], outputs]
    line, sample = g.iota(shape, 1, sample.type), g.broadcast(sample, shape, [0])
    last = g.compare("EQ", line, outputs - 1)
    step = (size - window) / (outputs - 1) if outputs > 1 else 0
    alpha = g.scalar(step, sample.type)
    first = g.convert(g.mul(sample, alpha), "s32")
    at = g.sub(g.convert(g.mul(g.add_(line, sample), alpha), "s32"), first)
    return g.select(last, g.scalar(size - window, "s32"), at)


def _fractional(g: Graph, r: Any, x: Value, windows: Sequence[int], outputs: Sequence[int],
                samples: Value, order: Sequence[int]) -> list[Value]:
    """order: which sample is for which dimension."""
    dims = len(windows)
    shape = x.shape[-dims:]
    b = 1
    for n in x.shape[:-dims]:
        b *= n
    if 0 in x.shape or 0 in r[0].shape or not is_float(x.type):
        raise Unsupported("windows of nothing")
    samples = g.reshape(samples, [b, dims])
    # [b, outputs…, windows…] in the order of memory
    wide = [b, *outputs, *windows]
    place = g.full(wide, 0, "s64")
    for d in range(dims):
        sample = g.reshape(g.slice_dim(samples, 1, order[d], order[d] + 1), [b])
        start = _starts(g, sample, shape[d], outputs[d], windows[d])
        at = g.add_(g.broadcast(start, wide, [0, 1 + d]), g.iota(wide, 1 + dims + d, "s32"))
        place = g.add_(g.mul(place, shape[d]), g.convert(at, "s64"))
    count = 1
    for n in windows:
        count *= n
    points = r[0].numel() // b
    flat = g.reshape(place, [b, points * count])
    area = 1
    for n in shape:
        area *= n
    value = g.reshape(gather(g, None, g.reshape(x, [b, area]), 1, flat), [b, points, count])
    best, which = first_place(g, value, 2, False)
    here = g.compare("EQ", g.iota(value.shape, 2, which.type), which)
    place = g.select(here, g.reshape(flat, value.shape), g.scalar(0, "s64"))
    return [g.reshape(best, r[0].shape), g.reshape(g.sum(place, [2]), r[1].shape)]


@row("fractional_max_pool2d")
def fractional_max_pool2d(g: Graph, r: Any, x: Value, windows: Sequence[int],
                          outputs: Sequence[int], samples: Value) -> list[Value]:
    return _fractional(g, r, x, windows, outputs, samples, (1, 0))


@row("fractional_max_pool3d")
def fractional_max_pool3d(g: Graph, r: Any, x: Value, windows: Sequence[int],
                          outputs: Sequence[int], samples: Value) -> list[Value]:
    return _fractional(g, r, x, windows, outputs, samples, (0, 1, 2))


# ---- resizing with a filter that grows with the scale ----

def _filter(g: Graph, size: int, outputs: int, align: bool, given: float | None,
            type: str) -> Value:
    """[outputs, size]: of what each result is a mean."""
    if align:
        scale = (size - 1) / (outputs - 1) if outputs > 1 else 0.0
    else:
        scale = 1 / given if given else size / outputs
    support, over = (scale, 1 / scale) if scale >= 1 else (1.0, 1.0)
    shape = [outputs, size]
    center = g.mul(g.add_(g.iota(shape, 0, type), 0.5), scale)
    line = g.iota(shape, 1, type)

    def whole(x: Value) -> Value:
        return g.convert(g.convert(x, "s32"), type)
    first = g.max(whole(g.add_(g.sub(center, support), 0.5)), 0)
    end = g.min(whole(g.add_(g.add_(center, support), 0.5)), size)
    away = g.mul(g.add_(g.sub(line, center), 0.5), over)
    share = g.max(g.sub(g.scalar(1, type), g.unary("abs", away)), 0)
    inside = g.both(g.compare("GE", line, first), g.compare("LT", line, end))
    share = g.select(inside, share, g.scalar(0, type))
    return g.div(share, g.sum(share, [1], True))


@row("_upsample_bilinear2d_aa.default")
def upsample_bilinear2d_aa(g: Graph, r: Any, x: Value, outputs: Sequence[int], align: bool,
                           scale_h: float | None = None, scale_w: float | None = None) -> Value:
    if 0 in x.shape or not is_float(x.type):
        raise Unsupported("nothing to resize")
    rows, columns = (_filter(g, x.shape[2 + d], outputs[d], align, one, x.type)
                     for d, one in ((0, scale_h), (1, scale_w)))
    y = g.dot(x, columns, ([3], [1]))           # [n, c, h, out w]
    y = g.dot(y, rows, ([2], [1]))              # [n, c, out w, out h]
    return g.transpose(y, [0, 1, 3, 2])
