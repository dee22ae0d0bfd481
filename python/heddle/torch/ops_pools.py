"""Pools and their gradients."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .lower import Graph, Unsupported, Value, is_float, lowest
from .ops_indexing import scatter_rows, vectors
from .ops_products import _each, _window
from .ops_reductions import first_place, mean_of, position_type
from .table import ROWS, Row

if TYPE_CHECKING:
    from .lower import Number


# ---- pools ----

def _ceil_more(extents: Sequence[int], out: Sequence[int], sizes: Sequence[int],
               strides: Sequence[int], pads: Sequence[int], dilations: Sequence[int]) -> list[int]:
    """How far windows reach behind the padding, of each dimension (ceil_mode)."""
    return [max(0, (o - 1) * s + (k - 1) * d + 1 - n - 2 * p)
            for n, o, k, s, p, d in zip(extents, out, sizes, strides, pads, dilations)]


def _reduce_window(g: Graph, x: Value, op: str, start: Number, sizes: Sequence[int],
                   strides: Sequence[int], pads: Sequence[tuple[int, int]],
                   dilations: Sequence[int], out: Sequence[int]) -> Value:
    outer = x.rank - len(sizes)
    one = [1] * outer
    window = _window([*one, *sizes], [*one, *strides], [(0, 0)] * outer + list(pads),
                     [1] * x.rank, [*one, *dilations])
    return g.add("reduce-window", x.type, out, [x, g.scalar(start, x.type)],
                 f"{window}, to_apply={g.combiner(op, x.type)}")


def _avg_pool(count: int) -> Row:
    def lower(g: Graph, r: Any, x: Value, size: Any, stride: Any = (), padding: Any = 0,
              ceil: bool = False, include_pad: bool = True, divisor: int | None = None) -> Value:
        if not is_float(x.type):
            raise Unsupported(f"a pool of {x.type}")
        size, padding = _each(size, count), _each(padding or [0], count)
        stride = _each(stride or size, count)
        space, out = x.shape[-count:], r.shape[-count:]
        ones = [1] * count
        more = _ceil_more(space, out, size, stride, padding, ones)
        # Rows that no window reaches are cut by a negative padding.
        pads = [(p, p + m) for p, m in zip(padding, more)]
        total = _reduce_window(g, x, "add", 0, size, stride, pads, ones, r.shape)
        if divisor is not None:
            return g.div(total, divisor)
        if include_pad and not any(more):
            return g.div(total, math.prod(size))
        counts = _counts(space, out, size, stride, padding, include_pad)
        lines: Value | None = None
        for d, values in enumerate(counts):
            line = g.broadcast(g.array(values, [len(values)], x.type), out, [d])
            lines = line if lines is None else g.mul(lines, line)
        assert lines is not None
        return g.div(total, g.broadcast(lines, r.shape))
    return lower


def _counts(space: Sequence[int], out: Sequence[int], size: Sequence[int], stride: Sequence[int],
            padding: Sequence[int], include_pad: bool) -> list[list[int]]:
    result = []
    for n, o, k, s, p in zip(space, out, size, stride, padding):
        low, high = (-p, n + p) if include_pad else (0, n)
        result.append([min(i * s - p + k, high) - max(i * s - p, low) for i in range(o)])
    return result


ROWS["avg_pool2d"], ROWS["avg_pool3d"] = _avg_pool(2), _avg_pool(3)
ROWS["avg_pool1d"] = _avg_pool(1)


def windows(g: Graph, x: Value, sizes: Sequence[int], strides: Sequence[int], pads: Sequence[int],
            more: Sequence[int], dilations: Sequence[int], out: Sequence[int],
            fill: complex) -> Value:
    """[..., out..., elements of a window], by slices of a padded x."""
    count = len(sizes)
    outer = x.rank - count
    low = [0] * outer + list(pads)
    high = [0] * outer + [p + m for p, m in zip(pads, more)]
    x = g.pad(x, fill, low, high)
    pieces = []
    for number in range(math.prod(sizes)):
        starts: list[int] = []
        rest = number
        for k in reversed(sizes):
            starts.insert(0, rest % k)
            rest //= k
        starts = [0] * outer + [i * d for i, d in zip(starts, dilations)]
        ends = list(x.shape[:outer]) + [
            s + (o - 1) * t + 1 for s, o, t in zip(starts[outer:], out, strides)]
        piece = g.slice(x, starts, ends, [1] * outer + list(strides))
        pieces.append(g.reshape(piece, [*piece.shape, 1]))
    return g.concat(pieces, x.rank)


def _max_pool(count: int) -> Row:
    def lower(g: Graph, r: Any, x: Value, size: Any, stride: Any = (), padding: Any = 0,
              dilation: Any = 1, ceil: bool = False) -> list[Value]:
        size, padding = _each(size, count), _each(padding or [0], count)
        stride, dilation = _each(stride or size, count), _each(dilation or [1], count)
        space, out = x.shape[-count:], r[0].shape[-count:]
        if math.prod(size) > 256:
            raise Unsupported("positions of maxima in large windows")
        more = _ceil_more(space, out, size, stride, padding, dilation)
        pads = [(p, p + m) for p, m in zip(padding, more)]
        value = _reduce_window(g, x, "maximum", lowest(x.type), size, stride, pads, dilation,
                               r[0].shape)
        each = windows(g, x, size, stride, padding, more, dilation, out, lowest(x.type))
        place = g.reshape(first_place(g, each, each.rank - 1, False)[1], r[1].shape)
        # The number in the window as a position in the image.
        kind = position_type(math.prod(space))
        flat, rest = g.scalar(0, kind), g.convert(place, kind)
        parts: list[Value] = []
        for k in reversed(size):
            parts.insert(0, g.binary("remainder", rest, k))
            rest = g.div(rest, k)
        outer = x.rank - count
        for d in range(count):
            at = g.mul(g.iota(place.shape, outer + d, kind), stride[d])
            at = g.add_(g.sub(at, padding[d]), g.mul(parts[d], dilation[d]))
            flat = g.add_(g.mul(flat, space[d]), at)
        return [value, flat]
    return lower


ROWS["max_pool2d_with_indices"] = _max_pool(2)
ROWS["max_pool3d_with_indices"] = _max_pool(3)


def _to_places(count: int) -> Row:
    """A gradient goes to where the maximum was; the positions are the last argument."""
    def lower(g: Graph, r: Any, grad: Value, x: Value, *rest: Any) -> Value:
        space = math.prod(x.shape[-count:])
        outer = x.count // space if space else 0
        if outer == 0 or grad.count == 0:
            return g.full(x.shape, 0, x.type)
        grad = g.reshape(grad, [outer, grad.count // outer])
        at = g.reshape(rest[-1], grad.shape)
        where = vectors(g, [g.iota(at.shape, 0), at])
        y = scatter_rows(g, g.full([outer, space], 0, x.type), where, grad, [0, 1], "add")
        return g.reshape(y, x.shape)
    return lower


for _count in (2, 3):
    ROWS[f"max_pool{_count}d_with_indices_backward"] = _to_places(_count)
    ROWS[f"adaptive_max_pool{_count}d_backward"] = _to_places(_count)


def _adaptive(count: int, pick: Callable[[Graph, Value, int, list[tuple[int, int]]], Value]) -> Row:
    def lower(g: Graph, r: Any, x: Value, out: Any) -> Value:
        first = r[0] if isinstance(r, (list, tuple)) else r
        space, out = x.shape[-count:], first.shape[-count:]
        for step, (n, o) in enumerate(zip(space, out)):
            dim = x.rank - count + step
            x = pick(g, x, dim, [(i * n // o, -(-(i + 1) * n // o)) for i in range(o)])
        return x
    return lower


def _mean_pieces(g: Graph, x: Value, dim: int, ranges: Sequence[tuple[int, int]]) -> Value:
    widths = {end - start for start, end in ranges}
    n, o = x.shape[dim], len(ranges)
    if len(widths) == 1 and n == o * next(iter(widths)):
        y = g.reshape(x, [*x.shape[:dim], o, n // o, *x.shape[dim + 1:]])
        return mean_of(g, y, [dim + 1])
    return g.concat([mean_of(g, g.slice_dim(x, dim, *ends), [dim], True) for ends in ranges], dim)


ROWS["_adaptive_avg_pool2d"] = _adaptive(2, _mean_pieces)
ROWS["_adaptive_avg_pool3d"] = _adaptive(3, _mean_pieces)


def _maximum_pieces(count: int) -> Row:
    def lower(g: Graph, r: Any, x: Value, out: Sequence[int]) -> list[Value]:
        """Window by window: they need not be of one size."""
        space, to = x.shape[-count:], r[0].shape[-count:]
        if math.prod(to) > 256:
            raise Unsupported("so many windows of different sizes")
        outer = x.rank - count
        numbers = g.reshape(g.iota([math.prod(space)], 0), space)
        numbers = g.broadcast(numbers, x.shape)
        values, places = [], []
        for number in range(math.prod(to)):
            at: list[int] = []
            rest = number
            for o in reversed(to):
                at.insert(0, rest % o)
                rest //= o
            starts = [0] * outer + [i * n // o for i, n, o in zip(at, space, to)]
            ends = list(x.shape[:outer]) + [-(-(i + 1) * n // o)
                                            for i, n, o in zip(at, space, to)]
            shape = [*x.shape[:outer], math.prod(e - s for s, e in zip(starts[outer:],
                                                                       ends[outer:]))]
            piece = g.reshape(g.slice(x, starts, ends), shape)
            names = g.reshape(g.slice(numbers, starts, ends), shape)
            best, first = first_place(g, piece, outer, False)
            values.append(best)
            hit = g.compare("EQ", g.iota(shape, outer, first.type), first)
            places.append(g.sum(g.select(hit, names, g.scalar(0, "s64")), [outer], True))
        return [g.concat(values, outer), g.concat(places, outer)]
    return lower


ROWS["adaptive_max_pool2d"], ROWS["adaptive_max_pool3d"] = _maximum_pieces(2), _maximum_pieces(3)


def _avg_pool_backward(count: int) -> Row:
    def lower(g: Graph, r: Any, grad: Value, x: Value, size: Any, stride: Any, padding: Any,
              ceil: bool, include_pad: bool, divisor: int | None = None) -> Value:
        size, padding = _each(size, count), _each(padding or [0], count)
        stride = _each(stride or size, count)
        space, out = x.shape[-count:], grad.shape[-count:]
        if divisor is not None:
            grad = g.div(grad, divisor)
        else:
            counts = _counts(space, out, size, stride, padding, include_pad)
            for d, values in enumerate(counts):
                line = g.array(values, [len(values)], x.type)
                grad = g.div(grad, g.broadcast(line, grad.shape, [x.rank - count + d]))
        outer = x.rank - count
        low = [0] * outer + [k - 1 - p for k, p in zip(size, padding)]
        high = [0] * outer + [n + p - 1 - (o - 1) * s for n, p, o, s in zip(
            space, padding, out, stride)]
        wide = g.pad(grad, 0, low, high, [0] * outer + [s - 1 for s in stride])
        return _reduce_window(g, wide, "add", 0, size, [1] * count, [(0, 0)] * count, [1] * count,
                              x.shape)
    return lower


ROWS["avg_pool2d_backward"], ROWS["avg_pool3d_backward"] = (_avg_pool_backward(2),
                                                            _avg_pool_backward(3))


def _adaptive_backward(count: int) -> Row:
    def lower(g: Graph, r: Any, grad: Value, x: Value) -> Value:
        for step in range(count):
            dim = x.rank - count + step
            n, o = x.shape[dim], grad.shape[dim]
            share = [0.0] * (o * n)
            for i in range(o):
                start, end = i * n // o, -(-(i + 1) * n // o)
                for k in range(start, end):
                    share[i * n + k] = 1 / (end - start)
            grad = g.dot(grad, g.array(share, [o, n], grad.type), ([dim], [0]))
            order = list(range(grad.rank - 1))
            grad = g.transpose(grad, [*order[:dim], grad.rank - 1, *order[dim:]])
        return grad
    return lower


ROWS["_adaptive_avg_pool2d_backward"] = _adaptive_backward(2)
ROWS["_adaptive_avg_pool3d_backward"] = _adaptive_backward(3)
