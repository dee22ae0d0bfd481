"""Operators that move elements, and those that make them from nothing."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from .lower import Graph, Unsupported, Value, is_float
from .table import ROWS, Row, row, type_of

if TYPE_CHECKING:
    from .lower import Number, Operand


def wrap(dim: int, rank: int) -> int:
    return dim + max(rank, 1) if dim < 0 else dim


@row("view", "reshape", "_unsafe_view", "_reshape_alias", "view_copy", "flatten", "squeeze",
     "unsqueeze", "squeeze_copy", "unsqueeze_copy", "_reshape_copy")
def view(g: Graph, r: Any, x: Value, *rest: Any) -> Value:
    if not isinstance(r, torch.Tensor) or type_of(r) != x.type:
        raise Unsupported("a view of another type")
    return g.reshape(x, r.shape)


@row("expand", "expand_copy")
def expand(g: Graph, r: Any, x: Value, *rest: Any) -> Value:
    return g.broadcast(x, r.shape)


@row("prims.broadcast_in_dim")
def broadcast_in_dim(g: Graph, r: Any, x: Value, shape: Sequence[int],
                     dims: Sequence[int]) -> Value:
    return g.broadcast(x, r.shape, list(dims))


@row("permute", "permute_copy")
def permute(g: Graph, r: Any, x: Value, dims: Sequence[int]) -> Value:
    return g.transpose(x, [wrap(d, x.rank) for d in dims])


@row("transpose.int", "transpose_copy.int")
def transpose(g: Graph, r: Any, x: Value, a: int, b: int) -> Value:
    dims = list(range(x.rank))
    if x.rank:
        a, b = wrap(a, x.rank), wrap(b, x.rank)
        dims[a], dims[b] = dims[b], dims[a]
    return g.transpose(x, dims)


ROWS["t"] = lambda g, r, x: g.transpose(x, list(range(x.rank))[::-1])


@row("slice.Tensor", "slice_copy.Tensor")
def slice_(g: Graph, r: Any, x: Value, dim: int = 0, start: int | None = None,
           end: int | None = None, step: int = 1) -> Value:
    dim = wrap(dim, x.rank)
    start, end = _range(x.shape[dim], start, end)
    return g.slice_dim(x, dim, start, end, step)


def _range(n: int, start: int | None, end: int | None) -> tuple[int, int]:
    start = 0 if start is None else start
    end = n if end is None else end
    start = min(max(start + n if start < 0 else start, 0), n)
    end = min(max(end + n if end < 0 else end, start), n)
    return start, end


@row("narrow_copy", "narrow")
def narrow(g: Graph, r: Any, x: Value, dim: int, start: int, length: int) -> Value:
    dim = wrap(dim, x.rank)
    start = wrap(start, x.shape[dim])
    return g.slice_dim(x, dim, start, start + length)


@row("select.int", "select_copy.int")
def select(g: Graph, r: Any, x: Value, dim: int, index: int) -> Value:
    dim = wrap(dim, x.rank)
    index = wrap(index, x.shape[dim])
    return g.slice_dim(x, dim, index, index + 1)


@row("split_with_sizes", "split.Tensor", "split_with_sizes_copy", "unbind", "unbind_copy",
     "split_copy.Tensor")
def split(g: Graph, r: Any, x: Value, *rest: Any) -> list[Value]:
    """The pieces' extents are those of the results."""
    by_sizes = rest and not isinstance(rest[0], int) or len(rest) == 2
    dim = wrap(rest[-1] if rest else 0, x.rank)
    results, start = [], 0
    for one in r:
        extent = one.shape[dim] if by_sizes else 1
        results.append(g.slice_dim(x, dim, start, start + extent))
        start += extent
    return results


@row("cat")
def cat(g: Graph, r: Any, values: Sequence[Value], dim: int = 0) -> Value:
    values = [g.convert(v, type_of(r)) for v in values if v.shape != (0,)]
    if not values:
        return g.full(r.shape, 0, type_of(r))
    return g.concat(values, wrap(dim, len(r.shape)))


@row("stack")
def stack(g: Graph, r: Any, values: Sequence[Value], dim: int = 0) -> Value:
    dim = wrap(dim, len(r.shape))
    one = [*r.shape[:dim], 1, *r.shape[dim + 1:]]
    return g.concat([g.reshape(g.convert(v, type_of(r)), one) for v in values], dim)


@row("constant_pad_nd")
def constant_pad(g: Graph, r: Any, x: Value, pads: Sequence[int], value: Number = 0) -> Value:
    low, high = [0] * x.rank, [0] * x.rank
    for i in range(len(pads) // 2):
        low[x.rank - 1 - i], high[x.rank - 1 - i] = pads[2 * i], pads[2 * i + 1]
    return g.pad(x, value, low, high)


@row("flip", "prims.rev")
def flip(g: Graph, r: Any, x: Value, dims: Sequence[int]) -> Value:
    return g.reverse(x, [wrap(d, x.rank) for d in dims]) if dims and x.rank else x


@row("repeat", "tile")
def repeat(g: Graph, r: Any, x: Value, counts: Sequence[int]) -> Value:
    x = g.reshape(x, [1] * (len(counts) - x.rank) + list(x.shape))
    if x.count == 0 or 0 in counts:
        return g.full(r.shape, 0, x.type)
    shape, dims = [], []
    for n, times in zip(x.shape, counts):
        shape += [times, n]
        dims.append(len(shape) - 1)
    return g.reshape(g.broadcast(x, shape, dims), r.shape)


@row("roll")
def roll(g: Graph, r: Any, x: Value, shifts: Sequence[int], dims: Sequence[int] = ()) -> Value:
    if not dims:
        return g.reshape(roll(g, r, g.reshape(x, [x.count]), shifts, [0]), x.shape)
    for shift, dim in zip(shifts, dims):
        dim = wrap(dim, x.rank)
        n = x.shape[dim]
        if n:
            at = -shift % n
            x = g.concat([g.slice_dim(x, dim, at, n), g.slice_dim(x, dim, 0, at)], dim)
    return x


@row("diagonal", "diagonal_copy")
def diagonal(g: Graph, r: Any, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    dim1, dim2 = wrap(dim1, x.rank), wrap(dim2, x.rank)
    rest = [d for d in range(x.rank) if d not in (dim1, dim2)]
    x = g.transpose(x, [*rest, dim1, dim2])
    n = r.shape[-1]
    if n == 0:
        return g.full(r.shape, 0, x.type)
    at = len(rest)
    x = g.slice_dim(x, at, max(0, -offset), max(0, -offset) + n)
    x = g.slice_dim(x, at + 1, max(0, offset), max(0, offset) + n)
    # Flat, the diagonal is each (n + 1)-th element.
    x = g.reshape(x, [*x.shape[:at], n * n])
    return g.slice_dim(x, at, 0, n * n, n + 1)


def _banded(direction: str) -> Callable[..., Value]:
    def lower(g: Graph, r: Any, x: Value, k: int = 0) -> Value:
        a, b = x.rank - 2, x.rank - 1
        row_, column = g.iota(x.shape[-2:], 0, "s32"), g.iota(x.shape[-2:], 1, "s32")
        inside = g.compare(direction, g.sub(column, row_), k)
        return g.select(g.broadcast(inside, x.shape, [a, b]), x, g.full(x.shape, 0, x.type))
    return lower


tril = ROWS["tril"] = _banded("LE")
triu = ROWS["triu"] = _banded("GE")


@row("unfold", "unfold_copy")
def unfold(g: Graph, r: Any, x: Value, dim: int, size: int, step: int) -> Value:
    if x.rank == 0:
        return g.reshape(x, r.shape)
    dim = wrap(dim, x.rank)
    count = r.shape[dim]
    pieces = [g.reshape(g.slice_dim(x, dim, i, i + (count - 1) * step + 1, step),
                        [*x.shape[:dim], count, *x.shape[dim + 1:], 1]) for i in range(size)]
    if not pieces:
        return g.full(r.shape, 0, x.type)
    return g.concat(pieces, x.rank)


# ---- values from nothing ----

@row("full", "full_like")
def full(g: Graph, r: Any, first: Any, value: Operand, *rest: Any) -> Value:
    return g.broadcast(g.like(value, type_of(r)), r.shape)


ROWS["new_full"] = lambda g, r, x, size, value, *rest: full(g, r, size, value)


def _filled(value: Number) -> Row:
    return lambda g, r, *rest: g.full(r.shape, value, type_of(r))


for _name in ("zeros", "zeros_like", "new_zeros", "empty", "empty_like", "new_empty",
              "empty_strided", "new_empty_strided", "empty_permuted", "zero"):
    ROWS[_name] = _filled(0)
for _name in ("ones", "ones_like", "new_ones"):
    ROWS[_name] = _filled(1)


@row("scalar_tensor")
def scalar_tensor(g: Graph, r: Any, value: Operand, *rest: Any) -> Value:
    return g.like(value, type_of(r))


@row("fill")
def fill(g: Graph, r: Any, x: Value, value: Operand) -> Value:
    return g.broadcast(g.like(value, x.type), x.shape)


@row("copy")
def copy(g: Graph, r: Any, x: Value, y: Value, *rest: Any) -> Value:
    return g.broadcast(g.convert(y, x.type), x.shape)


@row("arange.start_step")
def arange(g: Graph, r: Any, start: Any, end: Any, step: Any = 1, *rest: Any) -> Value:
    type = type_of(r)
    if is_float(type):  # as torch computes it, in double
        at = g.convert(g.iota(r.shape, 0, "s32"), "f64")
        return g.add_(g.mul(at, g.scalar(step, "f64")), g.scalar(start, "f64"))
    at = g.convert(g.iota(r.shape, 0), type)
    return g.add_(g.mul(at, g.scalar(step, type)), g.scalar(start, type))


@row("prims.iota")
def iota(g: Graph, r: Any, length: int, start: Any = 0, step: Any = 1, *rest: Any) -> Value:
    return arange(g, r, start, None, step)


@row("view.dtype", "view_copy.dtype")
def view_dtype(g: Graph, r: Any, x: Value, dtype: Any) -> Value:
    if r.element_size() != torch.empty(0, dtype=dtype).element_size() or r.shape != x.shape:
        raise Unsupported("a view of elements of another size")
    return g.bitcast(x, type_of(r))


@row("select_scatter")
def select_scatter(g: Graph, r: Any, x: Value, y: Value, dim: int, index: int) -> Value:
    dim = wrap(dim, x.rank)
    index = wrap(index, x.shape[dim])
    y = g.reshape(y, [*x.shape[:dim], 1, *x.shape[dim + 1:]])
    return _put(g, x, y, dim, index, index + 1, 1)


@row("slice_scatter")
def slice_scatter(g: Graph, r: Any, x: Value, y: Value, dim: int = 0, start: int | None = None,
                  end: int | None = None, step: int = 1) -> Value:
    dim = wrap(dim, x.rank)
    start, end = _range(x.shape[dim], start, end)
    return _put(g, x, g.convert(y, x.type), dim, start, end, step)


def _put(g: Graph, x: Value, y: Value, dim: int, start: Any, end: int, step: int) -> Value:
    """x with y in a range of one dimension."""
    if y.shape[dim] == 0:
        return x
    if step == 1:
        return g.concat([g.slice_dim(x, dim, 0, start), y,
                         g.slice_dim(x, dim, end, x.shape[dim])], dim)
    low, high, interior = [0] * x.rank, [0] * x.rank, [0] * x.rank
    low[dim], interior[dim] = start, step - 1
    high[dim] = x.shape[dim] - start - (y.shape[dim] - 1) * step - 1
    there = g.pad(g.full(y.shape, True, "pred"), False, low, high, interior)
    return g.select(there, g.pad(y, 0, low, high, interior), x)
