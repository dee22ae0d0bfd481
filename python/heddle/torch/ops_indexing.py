"""Operators that read or write at positions that are values."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .lower import Graph, Unsupported, Value, highest, is_float, lowest
from .ops_movement import wrap
from .ops_reductions import running
from .table import row, type_of

if TYPE_CHECKING:
    from .lower import Number, Operand


def gather_rows(g: Graph, x: Value, at: Value, dims: Sequence[int]) -> Value:
    """x at positions: at [..., len(dims)], not negative, in these dimensions of x; the others
    stand behind the positions' dimensions."""
    rest = [d for d in range(x.rank) if d not in dims]
    where = at.shape[:-1]
    sizes = [1 if d in dims else n for d, n in enumerate(x.shape)]
    shape = [*where, *(x.shape[d] for d in rest)]
    offsets = [len(where) + i for i in range(len(rest))]
    if 0 in shape:
        return g.full(shape, 0, x.type)
    text = "offset_dims={{{}}}, collapsed_slice_dims={{{}}}, start_index_map={{{}}}, " \
        "index_vector_dim={}, slice_sizes={{{}}}"
    return g.add("gather", x.type, shape, [x, at], text.format(
        *(",".join(map(str, v)) for v in (offsets, dims, dims)), len(where),
        ",".join(map(str, sizes))))


def scatter_rows(g: Graph, x: Value, at: Value, updates: Value, dims: Sequence[int],
                 op: str | None = None) -> Value:
    """x with updates [..., rest of x] put, or combined by op, at [..., len(dims)]."""
    if updates.count == 0:
        return x
    where = at.shape[:-1]
    windows = [len(where) + i for i in range(x.rank - len(dims))]
    t = x.type
    if op is None:
        helper = g.helper([], f"r = {t}[] copy(a1)", [(t, ()), (t, ())])
    else:
        helper = g.combiner(op, t)
    text = "update_window_dims={{{}}}, inserted_window_dims={{{}}}, " \
        "scatter_dims_to_operand_dims={{{}}}, index_vector_dim={}, to_apply={}"
    return g.add("scatter", t, x.shape, [x, at, updates], text.format(
        *(",".join(map(str, v)) for v in (windows, dims, dims)), len(where), helper))


def positive(g: Graph, at: Value, extent: int) -> Value:
    """Positions from the end as those from the start."""
    return g.select(g.compare("LT", at, 0), g.add_(at, g.scalar(extent, at.type)), at)


def vectors(g: Graph, parts: Sequence[Value]) -> Value:
    """Positions in several dimensions, as [..., len(parts)]."""
    parts = g.together(*parts)
    return g.concat([g.reshape(part, [*part.shape, 1]) for part in parts], parts[0].rank)


def take_flat(g: Graph, x: Value, at: Value, shape: Sequence[int]) -> Value:
    at = g.reshape(at, [*at.shape, 1])
    return g.reshape(gather_rows(g, g.reshape(x, [x.count]), at, [0]), shape)


@row("take")
def take(g: Graph, r: Any, x: Value, at: Value) -> Value:
    return take_flat(g, x, positive(g, at, x.count), at.shape)


@row("embedding")
def embedding(g: Graph, r: Any, table: Value, at: Value, *rest: Any) -> Value:
    return gather_rows(g, table, g.reshape(at, [*at.shape, 1]), [0])


@row("index_select")
def index_select(g: Graph, r: Any, x: Value, dim: int, at: Value) -> Value:
    if x.rank == 0:
        return g.reshape(x, r.shape)
    dim = wrap(dim, x.rank)
    at = g.reshape(at, [at.count, 1])
    y = gather_rows(g, x, at, [dim])  # the positions stand first
    order = list(range(1, y.rank))
    return g.transpose(y, [*order[:dim], 0, *order[dim:]])


def _along(g: Graph, x: Value, dim: int, at: Value) -> Value:
    """Positions [..., rank of x] of which one dimension's are given."""
    parts = [at if d == dim else g.iota(at.shape, d, at.type) for d in range(x.rank)]
    return vectors(g, parts)


@row("gather")
def gather(g: Graph, r: Any, x: Value, dim: int, at: Value, *rest: Any) -> Value:
    if x.rank == 0:
        return g.broadcast(g.reshape(x, [1] * at.rank), at.shape)
    if at.count == 0:
        return g.full(at.shape, 0, x.type)
    at = g.reshape(at, at.shape or (1,))
    return gather_rows(g, x, _along(g, x, wrap(dim, x.rank), at), list(range(x.rank)))


def _scatter(g: Graph, x: Value, dim: int, at: Value, updates: Value, op: str | None,
             start: Value | None = None) -> Value:
    """Into x, or where `start` is given into that instead."""
    shape = x.shape
    base = x if start is None else start
    if not shape:
        base, at, updates = (g.reshape(v, [1]) for v in (base, at, updates))
    elif at.rank == 0:
        at, updates = g.reshape(at, [1]), g.reshape(updates, [1])
    if at.count == 0:
        return x if start is None else start
    updates = g.slice(updates, [0] * at.rank, at.shape)
    dims = list(range(base.rank))
    y = scatter_rows(g, base, _along(g, base, wrap(dim, base.rank), at), updates, dims, op)
    return g.reshape(y, shape)


@row("scatter.src", "scatter.value")
def scatter(g: Graph, r: Any, x: Value, dim: int, at: Value, src: Operand) -> Value:
    src = g.broadcast(g.like(src, x.type), at.shape) if not isinstance(src, Value) else src
    return _scatter(g, x, dim, at, g.convert(src, x.type), None)


@row("scatter_add")
def scatter_add(g: Graph, r: Any, x: Value, dim: int, at: Value, src: Value) -> Value:
    return _scatter(g, x, dim, at, g.convert(src, x.type), _sum_of(x.type))


def _sum_of(type: str) -> str:
    return "or" if type == "pred" else "add"


_REDUCTIONS = {"sum": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum",
               "mean": "add"}


def neutral(op: str, type: str) -> float:
    return {"add": 0, "multiply": 1, "maximum": lowest(type), "minimum": highest(type)}[op]


def _with_self(g: Graph, x: Value, dim: int, at: Value, src: Value, reduce: str, include_self: bool,
               put: Callable[[Value, Value, str], Value]) -> Value:
    op = _REDUCTIONS[reduce]
    start = x
    ones = g.full(src.shape, 1, x.type)
    if not include_self:
        there = put(g.full(x.shape, 0, "s32"), g.full(src.shape, 1, "s32"), "maximum")
        touched = g.compare("GT", there, 0)
        start = g.select(touched, g.full(x.shape, neutral(op, x.type), x.type), x)
    y = put(start, src, op)
    if reduce == "mean":
        count = put(g.full(x.shape, int(include_self), x.type), ones, "add")
        count = g.max(count, 1)
        if is_float(x.type):
            y = g.div(y, count)
        else:
            quotient, rest = g.div(y, count), g.binary("remainder", y, count)
            y = g.select(g.compare("LT", rest, 0), g.sub(quotient, 1), quotient)
    return y


@row("scatter_reduce.two")
def scatter_reduce(g: Graph, r: Any, x: Value, dim: int, at: Value, src: Value, reduce: str,
                   include_self: bool = True) -> Value:
    if at.count == 0:
        return x
    src = g.reshape(src, src.shape or (1,))
    at = g.reshape(at, at.shape or (1,))
    src = g.slice(src, [0] * at.rank, at.shape)
    return _with_self(g, x, dim, at, src, reduce, include_self, lambda base, updates, op: _scatter(
        g, base, dim, at, updates, op))


@row("index_reduce")
def index_reduce(g: Graph, r: Any, x: Value, dim: int, at: Value, src: Value, reduce: str,
                 include_self: bool = True) -> Value:
    if x.rank == 0:
        return g.reshape(index_reduce(g, r, g.reshape(x, [1]), 0, at, g.reshape(src, [src.count]),
                                      reduce, include_self), ())
    dim = wrap(dim, x.rank)
    if at.count == 0 or src.count == 0:
        return x
    src = g.transpose(src, [dim, *(d for d in range(x.rank) if d != dim)])
    at = g.reshape(at, [at.count, 1])
    return _with_self(g, x, dim, at, src, reduce, include_self, lambda base, updates, op:
                      scatter_rows(g, base, at, updates, [dim], op))


# ---- tensors as indices ----

def _plan(g: Graph, x: Value, indices: Sequence[Value | None]) -> tuple[list[int], Value]:
    """(dimensions of x that are indexed, positions [..., those])."""
    given = [(d, at) for d, at in enumerate(indices) if at is not None]
    if any(at.type == "pred" for _, at in given):
        raise Unsupported("a mask as an index: how many elements there are is data")
    places = [positive(g, g.convert(at, "s64"), x.shape[d]) for d, at in given]
    return [d for d, _ in given], vectors(g, places)


def _side_by_side(dims: Sequence[int]) -> bool:
    return dims == list(range(dims[0], dims[0] + len(dims)))


@row("index.Tensor", "_unsafe_index.Tensor")
def index(g: Graph, r: Any, x: Value, indices: Sequence[Value | None]) -> Value:
    if 0 in r.shape:
        return g.full(r.shape, 0, x.type)
    dims, at = _plan(g, x, indices)
    y = gather_rows(g, x, at, dims)
    if not _side_by_side(dims) or dims[0] == 0:
        return y
    count, first = at.rank - 1, dims[0]
    order = list(range(count, y.rank))
    return g.transpose(y, [*order[:first], *range(count), *order[first:]])


@row("index_put", "_unsafe_index_put")
def index_put(g: Graph, r: Any, x: Value, indices: Sequence[Value | None], values: Value,
              accumulate: bool = False, *rest: Any) -> Value:
    if not any(at is not None for at in indices):
        raise Unsupported("index_put without an index")
    if len([at for at in indices if at is not None]) == 1 and accumulate is False:
        mask = next(at for at in indices if at is not None)
        if mask.type == "pred" and indices[0] is mask:
            return _put_where(g, x, mask, g.convert(values, x.type))
    dims, at = _plan(g, x, indices)
    count = at.rank - 1
    rest_dims = [d for d in range(x.rank) if d not in dims]
    target = [*at.shape[:-1], *(x.shape[d] for d in rest_dims)]
    values = g.convert(values, x.type)
    if _side_by_side(dims) and dims[0] > 0:
        first = dims[0]
        shape = [*(x.shape[d] for d in rest_dims[:first]), *at.shape[:-1],
                 *(x.shape[d] for d in rest_dims[first:])]
        values = g.broadcast(values, shape)
        values = g.transpose(values, [*range(first, first + count), *range(first),
                                      *range(first + count, len(shape))])
    else:
        values = g.broadcast(values, target)
    return scatter_rows(g, x, at, values, dims, _sum_of(x.type) if accumulate else None)


def _put_where(g: Graph, x: Value, mask: Value, values: Value) -> Value:
    """values [places of the mask, rest of x], or what broadcasts to that."""
    rest = x.shape[mask.rank:]
    if values.rank <= len(rest) or values.shape[0] == 1:
        if values.rank > len(rest):
            values = g.reshape(values, values.shape[1:])
        values = g.broadcast(values, x.shape)
    else:
        values = g.broadcast(values, [values.shape[0], *rest])
        at = places_in_order(g, mask)
        at = g.min(at, g.scalar(values.shape[0] - 1, "s64"))
        values = gather_rows(g, values, g.reshape(at, [*mask.shape, 1]), [0])
    return g.select(g.broadcast(mask, x.shape, list(range(mask.rank))), values, x)


def places_in_order(g: Graph, mask: Value) -> Value:
    """For each true element of a mask, how many come before it."""
    flags = g.convert(g.reshape(mask, [mask.count]), "s64")
    return g.reshape(g.max(g.sub(running(g, flags, 0, "add", 0), 1), 0), mask.shape)


@row("nonzero_static")
def nonzero_static(g: Graph, r: Any, x: Value, size: int, fill_value: int = -1) -> Value:
    if 0 in r.shape or x.count == 0:
        return g.full(r.shape, fill_value, "s64")
    mask = g.convert(x, "pred")
    # One row more, for what does not fit and what is zero.
    at = g.select(mask, g.min(places_in_order(g, mask), size), g.scalar(size, "s64"))
    at = g.reshape(at, [x.count, 1])
    where = vectors(g, [g.iota(x.shape, d) for d in range(x.rank)])
    table = scatter_rows(g, g.full([size + 1, x.rank], fill_value, "s64"), at,
                         g.reshape(where, [x.count, x.rank]), [0])
    return g.slice_dim(table, 0, 0, size)


@row("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(g: Graph, r: Any, table: Value, at: Value, offsets: Value,
                  by_frequency: bool = False, mode: int = 0, sparse: bool = False,
                  weights: Value | None = None, include_last: bool = False,
                  padding: int = -1) -> list[Value]:
    bags = r[0].shape[0]
    if mode == 2 or padding != -1 or bags == 0 or at.count == 0:
        raise Unsupported("bags of maxima, of nothing, or with padding")
    n = at.shape[0]
    starts = g.convert(offsets, at.type)
    starts = g.slice_dim(starts, 0, 0, bags)
    here = g.broadcast(g.iota([n], 0, at.type), [n, bags], [0])
    bag = g.sum(g.convert(g.compare("GE", here, g.broadcast(starts, [n, bags], [1])), at.type),
                [1])
    bag = g.sub(bag, g.scalar(1, at.type))
    values = gather_rows(g, table, g.reshape(at, [n, 1]), [0])
    if weights is not None:
        values = g.mul(values, g.broadcast(weights, values.shape, [0]))
    where = g.reshape(bag, [n, 1])
    out = scatter_rows(g, g.full(r[0].shape, 0, table.type), where, values, [0], "add")
    counts = scatter_rows(g, g.full([bags], 0, at.type), where, g.full([n], 1, at.type), [0],
                          "add")
    if mode == 1:
        share = g.convert(g.max(counts, g.scalar(1, at.type)), table.type)
        out = g.div(out, g.broadcast(share, out.shape, [0]))
    if any(one.numel() != size for one, size in zip(r[1:3], (n, bags)) if one.numel()):
        raise Unsupported("bags with a last offset")
    results = [bag if r[1].numel() else g.full(r[1].shape, 0, at.type),
               counts if r[2].numel() else g.full(r[2].shape, 0, at.type)]
    return [out, *results, g.full(r[3].shape, 0, at.type)]


@row("index_add")
def index_add(g: Graph, r: Any, x: Value, dim: int, at: Value, src: Value,
              alpha: Number = 1) -> Value:
    if x.rank == 0:
        return g.reshape(index_add(g, r, g.reshape(x, [1]), 0, at, g.reshape(src, [src.count]),
                                   alpha), ())
    dim = wrap(dim, x.rank)
    src = g.transpose(g.convert(src, x.type), [dim, *(d for d in range(x.rank) if d != dim)])
    if alpha != 1:
        src = g.mul(src, g.scalar(alpha, x.type))
    return scatter_rows(g, x, g.reshape(at, [at.count, 1]), src, [dim], _sum_of(x.type))


@row("searchsorted.Tensor")
def searchsorted(g: Graph, r: Any, edges: Value, x: Value, out_int32: bool = False,
                 right: bool = False, side: str | None = None,
                 sorter: Value | None = None) -> Value:
    if edges.rank not in (1, x.rank):
        raise Unsupported("searchsorted of one value in rows")
    if sorter is not None:
        edges = gather(g, r, edges, -1, sorter)
    after = right or side == "right"
    a = g.reshape(x, [*x.shape, 1])
    n = edges.shape[-1]
    if edges.rank == 1:
        b = g.broadcast(edges, [*x.shape, n], [x.rank])
    else:
        dims = [*range(x.rank - 1), x.rank]
        b = g.broadcast(edges, [*x.shape, n], dims)
    before = g.compare("LE" if after else "LT", b, a)
    if is_float(x.type):
        before = g.either(before, g.is_nan(g.broadcast(a, b.shape)))
    return g.sum(g.convert(before, type_of(r)), [x.rank])


@row("bucketize.Tensor")
def bucketize(g: Graph, r: Any, x: Value, edges: Value, out_int32: bool = False,
              right: bool = False) -> Value:
    return searchsorted(g, r, edges, x, out_int32, right)


@row("as_strided_scatter")
def as_strided_scatter(g: Graph, r: Any, x: Value, src: Value, size: Sequence[int],
                       stride: Sequence[int], offset: int | None = None) -> Value:
    if src.count == 0:
        return x
    at = strided_places(g, size, stride, offset)
    at = g.reshape(at, [src.count, 1])
    flat = scatter_rows(g, g.reshape(x, [x.count]), at, g.reshape(src, [src.count]), [0])
    return g.reshape(flat, x.shape)


def strided_places(g: Graph, size: Sequence[int], stride: Sequence[int],
                   offset: int | None) -> Value:
    """Number of each element of a strided view among those of its memory."""
    at = g.scalar(offset or 0, "s64")
    for d, (n, step) in enumerate(zip(size, stride)):
        if n > 1 and step:
            at = g.add_(at, g.mul(g.iota(size, d), step))
    return g.broadcast(at, size)


@row("as_strided", "as_strided_copy")
def as_strided(g: Graph, r: Any, x: Value, size: Sequence[int], stride: Sequence[int],
               offset: int | None = None) -> Value:
    """Of a dense tensor: its elements by number."""
    if r.numel() == 0:
        return g.full(r.shape, 0, x.type)
    return take_flat(g, x, strided_places(g, size, stride, offset), r.shape)


@row("diagonal_scatter")
def diagonal_scatter(g: Graph, r: Any, x: Value, src: Value, offset: int = 0, dim1: int = 0,
                     dim2: int = 1) -> Value:
    dim1, dim2 = wrap(dim1, x.rank), wrap(dim2, x.rank)
    n = src.shape[-1] if src.rank else 0
    if n == 0:
        return x
    rest = [d for d in range(x.rank) if d not in (dim1, dim2)]
    along = g.iota([n], 0)
    at = vectors(g, [g.add_(along, max(0, -offset)), g.add_(along, max(0, offset))])
    src = g.transpose(src, [src.rank - 1, *range(src.rank - 1)])
    # The positions' columns in the order of x's dimensions.
    dims = [dim1, dim2]
    if dim1 > dim2:
        at, dims = g.reverse(at, [1]), [dim2, dim1]
    assert len(rest) == src.rank - 1
    return scatter_rows(g, x, at, src, dims)


@row("put")
def put(g: Graph, r: Any, x: Value, at: Value, src: Value, accumulate: bool = False) -> Value:
    if at.count == 0:
        return x
    where = g.reshape(positive(g, at, x.count), [at.count, 1])
    flat = scatter_rows(g, g.reshape(x, [x.count]), where, g.reshape(src, [src.count]), [0],
                        _sum_of(x.type) if accumulate else None)
    return g.reshape(flat, x.shape)


@row("scatter.reduce", "scatter.value_reduce")
def scatter_by(g: Graph, r: Any, x: Value, dim: int, at: Value, src: Operand, reduce: str) -> Value:
    src = g.broadcast(g.like(src, x.type), at.shape) if not isinstance(src, Value) else src
    op = {"add": "add", "multiply": "multiply"}[reduce]
    return _scatter(g, x, dim, at, src, op)


@row("masked_scatter")
def masked_scatter(g: Graph, r: Any, x: Value, mask: Value, src: Value) -> Value:
    """The n-th place of the mask gets the n-th element."""
    x, mask = g.together(x, mask)
    if x.count == 0:
        return x
    at = g.min(places_in_order(g, mask), g.scalar(src.count - 1, "s64"))
    taken = take_flat(g, src, at, x.shape)
    return g.select(mask, taken, x)
