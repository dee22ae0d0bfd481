"""Reductions, orders and running sums."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from .loops import loop
from .lower import Graph, Unsupported, Value, highest, is_complex, is_float, lowest
from .ops_movement import wrap
from .table import ROWS, Row, row, type_of

if TYPE_CHECKING:
    from .lower import Number


def dims_of(x: Value, dims: int | Sequence[int] | None) -> list[int]:
    if dims is None or dims == []:
        return list(range(x.rank))
    dims = [dims] if isinstance(dims, int) else dims
    return [wrap(d, x.rank) for d in dims] if x.rank else []


@row("sum")
def sum_(g: Graph, r: Any, x: Value, dims: Any = None, keep: bool = False,
         dtype: Any = None) -> Value:
    if isinstance(dims, torch.dtype):  # sum.default(x, dtype)
        dims = None
    return wide_sum(g, g.convert(x, type_of(r)), dims_of(x, dims), keep)


def wide_sum(g: Graph, x: Value, dims: Sequence[int], keep: bool = False) -> Value:
    """In float for 16-bit types, as torch accumulates."""
    if x.type in ("f16", "bf16"):
        return g.convert(g.sum(g.convert(x, "f32"), dims, keep), x.type)
    if x.type == "pred":
        return g.sum(g.convert(x, "s64"), dims, keep)
    return g.sum(x, dims, keep)


def mean_of(g: Graph, x: Value, dims: Sequence[int], keep: bool = False) -> Value:
    count = math.prod(x.shape[d] for d in dims)
    wide = g.convert(x, "f32") if x.type in ("f16", "bf16") else x
    return g.convert(g.div(g.sum(wide, dims, keep), count if count else math.nan), x.type)


@row("mean")
def mean(g: Graph, r: Any, x: Value, dims: Any = None, keep: bool = False,
         dtype: Any = None) -> Value:
    if isinstance(dims, torch.dtype):
        dims = None
    return mean_of(g, g.convert(x, type_of(r)), dims_of(x, dims), keep)


@row("prod")
def prod(g: Graph, r: Any, x: Value, dims: Any = None, keep: bool = False,
         dtype: Any = None) -> Value:
    if isinstance(dims, torch.dtype):
        dims = None
    return g.reduce("multiply", g.convert(x, type_of(r)), dims_of(x, dims), 1, bool(keep))


def _extreme(least: bool) -> Row:
    def lower(g: Graph, r: Any, x: Value, dims: int | Sequence[int] | None = None,
              keep: bool = False) -> Value:
        return _pick(g, x, dims_of(x, dims), bool(keep), least)
    return lower


def _pick(g: Graph, x: Value, dims: Sequence[int], keep: bool, least: bool) -> Value:
    if x.type == "pred":
        return g.reduce("and" if least else "or", x, dims, least, keep)
    return (g.least if least else g.most)(x, dims, keep)


ROWS["amax"], ROWS["amin"] = _extreme(False), _extreme(True)
ROWS["max.default"], ROWS["min.default"] = _extreme(False), _extreme(True)


def first_place(g: Graph, x: Value, dim: int, least: bool) -> tuple[Value, Value]:
    """(value, position) of the first of the greatest along dim, NaN before all. Positions are of 32
    bits where these hold them."""
    best = _pick(g, x, [dim], True, least)
    hit = g.compare("EQ", x, best)
    if is_float(x.type):
        hit = g.either(hit, g.is_nan(x))
    kind = position_type(x.shape[dim])
    at = g.select(hit, g.iota(x.shape, dim, kind), g.scalar(x.shape[dim], kind))
    return best, g.least(at, [dim], True)


def position_type(extent: int) -> str:
    return "s32" if extent < 1 << 31 else "s64"


def _extreme_dim(least: bool) -> Row:
    def lower(g: Graph, r: Any, x: Value, dim: int, keep: bool = False) -> list[Value]:
        if x.rank == 0:
            return [x, g.scalar(0, "s64")]
        return list(first_place(g, x, wrap(dim, x.rank), least))  # fit() drops the dimension
    return lower


ROWS["max.dim"], ROWS["min.dim"] = _extreme_dim(False), _extreme_dim(True)


def _arg(least: bool) -> Row:
    def lower(g: Graph, r: Any, x: Value, dim: int | None = None, keep: bool = False) -> Value:
        if x.rank == 0:
            return g.scalar(0, "s64")
        if dim is None:
            x, dim = g.reshape(x, [x.count]), 0
        return first_place(g, x, wrap(dim, x.rank), least)[1]
    return lower


ROWS["argmax"], ROWS["argmin"] = _arg(False), _arg(True)


@row("any")
def any_(g: Graph, r: Any, x: Value, dims: int | Sequence[int] | None = None,
         keep: bool = False) -> Value:
    return g.reduce("or", g.convert(x, "pred"), dims_of(x, dims), False, keep)


@row("all")
def all_(g: Graph, r: Any, x: Value, dims: int | Sequence[int] | None = None,
         keep: bool = False) -> Value:
    return g.reduce("and", g.convert(x, "pred"), dims_of(x, dims), True, keep)


def variance(g: Graph, x: Value, dims: Sequence[int], correction: float | None,
             keep: bool) -> list[Value]:
    """(variance, mean), of real numbers."""
    if is_complex(x.type):
        raise Unsupported("the variance of complex numbers")
    wide = g.convert(x, "f32") if x.type in ("f16", "bf16") else x
    mean = mean_of(g, wide, dims, True)
    away = g.sub(wide, mean)
    count = math.prod(x.shape[d] for d in dims) - (1 if correction is None else correction)
    total = g.sum(g.mul(away, away), dims, True)
    total = g.div(total, max(count, 0)) if count > 0 else g.div(total, 0)
    shape = [1 if d in dims else n for d, n in enumerate(x.shape)]
    if not keep:
        shape = [n for d, n in enumerate(x.shape) if d not in dims]
    return [g.convert(g.reshape(v, shape), x.type) for v in (total, mean)]


@row("var.correction")
def var(g: Graph, r: Any, x: Value, dims: int | Sequence[int] | None = None,
        correction: float | None = None, keepdim: bool = False) -> Value:
    return variance(g, x, dims_of(x, dims), correction, keepdim)[0]


@row("prims.var")
def prims_var(g: Graph, r: Any, x: Value, dims: int | Sequence[int] | None = None,
              correction: float | None = 1, *rest: Any) -> Value:
    return variance(g, x, dims_of(x, dims), correction, False)[0]


@row("prims.sum")
def prims_sum(g: Graph, r: Any, x: Value, dims: int | Sequence[int] | None = None,
              *rest: Any) -> Value:
    return wide_sum(g, g.convert(x, type_of(r)), dims_of(x, dims))


@row("std.correction")
def std(g: Graph, r: Any, x: Value, dims: int | Sequence[int] | None = None,
        correction: float | None = None, keepdim: bool = False) -> Value:
    return g.unary("sqrt", variance(g, x, dims_of(x, dims), correction, keepdim)[0])


@row("var_mean.correction")
def var_mean(g: Graph, r: Any, x: Value, dims: int | Sequence[int] | None = None,
             correction: float | None = None, keepdim: bool = False) -> list[Value]:
    return variance(g, x, dims_of(x, dims), correction, keepdim)


@row("_softmax")
def softmax(g: Graph, r: Any, x: Value, dim: int, *rest: Any) -> Value:
    x = g.convert(x, type_of(r))
    if x.rank == 0 or x.count == 0:
        return g.full(r.shape, 1, x.type)
    dims = [wrap(dim, x.rank)]
    wide = g.convert(x, "f32") if x.type in ("f16", "bf16") else x
    e = g.unary("exponential", g.sub(wide, g.most(wide, dims, True)))
    return g.div(e, g.sum(e, dims, True))


@row("_log_softmax")
def log_softmax(g: Graph, r: Any, x: Value, dim: int, *rest: Any) -> Value:
    x = g.convert(x, type_of(r))
    if x.rank == 0 or x.count == 0:
        return g.full(r.shape, 0, x.type)
    dims = [wrap(dim, x.rank)]
    wide = g.convert(x, "f32") if x.type in ("f16", "bf16") else x
    low = g.sub(wide, g.most(wide, dims, True))
    return g.sub(low, g.unary("log", g.sum(g.unary("exponential", low), dims, True)))


# ---- running sums ----

# Doubling the step composes each element of all before it: a long one is no program.
_MOST_DOUBLED = 512

def running(g: Graph, x: Value, dim: int, op: str, start: Number) -> Value:
    """As a window that reaches to the start, which is one pass."""
    n = x.shape[dim]
    if x.count == 0:
        return x
    low, size = [0] * x.rank, [1] * x.rank
    low[dim], size[dim] = n - 1, n
    window = "x".join(map(str, size)) + " pad=" + "x".join(f"{one}_0" for one in low)
    return g.add("reduce-window", x.type, x.shape, [x, g.scalar(start, x.type)],
                 f"window={{size={window}}}, to_apply={g.combiner(op, x.type)}")


@row("cumsum")
def cumsum(g: Graph, r: Any, x: Value, dim: int, dtype: Any = None) -> Value:
    x = g.convert(x, type_of(r))
    if x.rank == 0 or x.count == 0:
        return x
    return _precise(g, x, wrap(dim, x.rank), "add", 0)


def _precise(g: Graph, x: Value, dim: int, op: str, start: Number) -> Value:
    """One element after another: in more bits where many are rounded."""
    wide = {"f16": "f32", "bf16": "f32"}.get(x.type, x.type)
    if x.type == "f32" and x.shape[dim] > 1 << 12:
        wide = "f64"
    return g.convert(running(g, g.convert(x, wide), dim, op, start), x.type)


@row("cumprod")
def cumprod(g: Graph, r: Any, x: Value, dim: int, dtype: Any = None) -> Value:
    x = g.convert(x, type_of(r))
    return _precise(g, x, wrap(dim, x.rank), "multiply", 1) if x.rank and x.count else x


@row("logcumsumexp")
def logcumsumexp(g: Graph, r: Any, x: Value, dim: int) -> Value:
    if x.rank == 0 or x.count == 0:
        return x
    dim, step = wrap(dim, x.rank), 1
    if x.shape[dim] > _MOST_DOUBLED:
        raise Unsupported(f"a running sum of {x.shape[dim]} exponentials")
    if not is_float(x.type):
        raise Unsupported(f"running sums of exponentials of {x.type}")
    type, x = x.type, g.convert(x, "f64")  # its gradient is a difference of two such sums
    while step < x.shape[dim]:
        low, high = [0] * x.rank, [0] * x.rank
        low[dim], high[dim] = step, -step
        other = g.pad(x, -math.inf, low, high)
        most, least = g.max(x, other), g.min(x, other)
        rest = g.unary("log-plus-one", g.unary("exponential", g.sub(least, most)))
        x = g.select(g.compare("EQ", least, -math.inf), most,
                     g.select(g.compare("EQ", least, math.inf), most, g.add_(most, rest)))
        step *= 2
    return g.convert(x, type)


def _running_pick(least: bool) -> Row:
    def lower(g: Graph, r: Any, x: Value, dim: int) -> list[Value]:
        if x.rank == 0 or x.count == 0:
            return [x, g.full(x.shape, 0, "s64")]
        dim = wrap(dim, x.rank)
        op, start = ("minimum", highest) if least else ("maximum", lowest)
        best = running(g, x, dim, op, start(x.type))
        hit = g.compare("EQ", x, best)
        if is_float(x.type):
            hit = g.either(hit, g.is_nan(x))
        at = g.select(hit, g.iota(x.shape, dim, "s64"), g.scalar(-1, "s64"))
        at = running(g, at, dim, "maximum", lowest("s64"))
        return [best, at]
    return lower


ROWS["cummax"], ROWS["cummin"] = _running_pick(False), _running_pick(True)


# ---- order ----

def sorted_with_places(g: Graph, x: Value, dim: int, descending: bool,
                       type: str = "s64") -> list[Value]:
    """Stable; NaN is the greatest, as torch has it."""
    which = "compare(a0, a1)"
    scalars = [(x.type, ()), (x.type, ()), (type, ()), (type, ())]
    way = "GT" if descending else "LT"
    if x.type == "pred":
        less = ["c0 = s32[] convert(a0)", "c1 = s32[] convert(a1)"]
        helper = g.helper(less, f"r = pred[] compare(c0, c1), direction={way}", scalars)
    elif is_float(x.type):
        nan = "a1" if not descending else "a0"
        other = "a0" if not descending else "a1"
        lines = [f"l = pred[] {which}, direction={way}",
                 f"n = pred[] compare({nan}, {nan}), direction=NE",
                 f"o = pred[] compare({other}, {other}), direction=EQ",
                 "b = pred[] and(n, o)"]
        helper = g.helper(lines, "r = pred[] or(l, b)", scalars)
    else:
        helper = g.helper([], f"r = pred[] {which}, direction={way}", scalars)
    places = g.iota(x.shape, dim, type)
    return g.add_tuple("sort", [(x.type, x.shape), (type, x.shape)], [x, places],
                       f"dimensions={{{dim}}}, is_stable=true, to_apply={helper}")


@row("sort.default")
def sort(g: Graph, r: Any, x: Value, dim: int = -1, descending: bool = False) -> list[Value]:
    if x.rank == 0:
        return [x, g.scalar(0, "s64")]
    return sorted_with_places(g, x, wrap(dim, x.rank), descending)


@row("sort.stable")
def sort_stable(g: Graph, r: Any, x: Value, stable: Any = None, dim: int = -1,
                descending: bool = False) -> list[Value]:
    return sort(g, r, x, dim, descending)


@row("topk")
def topk(g: Graph, r: Any, x: Value, k: int, dim: int = -1, largest: bool = True,
         sorted: bool = True) -> list[Value]:
    if x.rank == 0:
        return [x, g.scalar(0, "s64")] if k else [g.full([0], 0, x.type)] * 2
    dim = wrap(dim, x.rank)
    if is_float(x.type) and 0 < k <= _PICKED and x.shape[dim] > 2 * k:
        return _picked(g, x, dim, k, not largest)
    return [g.slice_dim(v, dim, 0, k) for v in sorted_with_places(g, x, dim, largest)]


# So many of the greatest are faster picked one after another than sorted.
_PICKED = 64


def _picked(g: Graph, x: Value, dim: int, k: int, least: bool) -> list[Value]:
    """(values, positions) of the k first in order; NaN is the greatest of all."""
    shape = [k if d == dim else n for d, n in enumerate(x.shape)]
    kind = position_type(x.shape[dim])
    # Without NaN in the comparison: as far from what is picked as can be, or the first of all.
    far = math.inf if least else -math.inf

    def step(g: Graph, number: Value, state: list[Value]) -> list[Value]:
        x, free, values, places = state
        line = g.iota(x.shape, dim, kind)
        nan = g.is_nan(x)
        key = g.select(g.either(nan, g.no(free)), far, x)
        best = (g.least if least else g.most)(key, [dim], True)
        hit = g.both(g.both(free, g.no(nan)), g.compare("EQ", key, best))
        nans = g.both(free, nan)
        end = g.scalar(x.shape[dim], kind)
        plain = g.least(g.select(hit, line, end), [dim], True)
        other = g.least(g.select(nans, line, end), [dim], True)
        first, second = (plain, other) if least else (other, plain)
        at = g.select(g.compare("LT", first, end), first, second)
        here = g.compare("EQ", line, at)
        value = g.sum(g.select(here, x, g.scalar(0, x.type)), [dim], True)
        put = g.compare("EQ", g.iota(shape, dim, "s32"), number)
        return [x, g.both(free, g.no(here)), g.select(put, value, values),
                g.select(put, at, places)]
    free = g.full(x.shape, True, "pred")
    _, _, values, places = loop(g, k, [x, free, g.full(shape, 0, x.type), g.full(shape, 0, kind)],
                                step)
    return [values, g.convert(places, "s64")]


@row("kthvalue")
def kthvalue(g: Graph, r: Any, x: Value, k: int, dim: int = -1, keep: bool = False) -> list[Value]:
    if x.rank == 0:
        return [x, g.scalar(0, "s64")]
    dim = wrap(dim, x.rank)
    return [g.slice_dim(v, dim, k - 1, k) for v in sorted_with_places(g, x, dim, False)]


def _median(g: Graph, x: Value, dim: int, ignores_nan: bool) -> list[Value]:
    value, place = sorted_with_places(g, x, dim, False)
    n = x.shape[dim]
    if not is_float(x.type):
        return [g.slice_dim(v, dim, (n - 1) // 2, (n - 1) // 2 + 1) for v in (value, place)]
    there = g.sum(g.convert(g.no(g.is_nan(value)), "s64"), [dim], True)
    if ignores_nan:
        at = g.div(g.max(g.sub(there, 1), 0), 2)
    else:  # the first NaN, if there is one
        at = g.select(g.compare("LT", there, n), there, g.scalar((n - 1) // 2, "s64"))
    here = g.compare("EQ", g.iota(x.shape, dim, "s64"), at)
    hit = g.select(here, place, g.scalar(0, "s64"))
    zero = g.full(x.shape, 0, x.type)
    return [g.sum(g.select(here, value, zero), [dim], True), g.sum(hit, [dim], True)]


def _median_row(ignores_nan: bool) -> Row:
    def lower(g: Graph, r: Any, x: Value, dim: int | None = None,
              keep: bool = False) -> Value | list[Value]:
        single = dim is None
        if x.count == 0:
            raise Unsupported("the median of nothing")
        if dim is None or x.rank == 0:
            x, dim = g.reshape(x, [x.count]), 0
        both = _median(g, x, wrap(dim, x.rank), ignores_nan)
        return both[0] if single else both
    return lower


for _name in ("median.default", "median.dim"):
    ROWS[_name] = _median_row(False)
for _name in ("nanmedian.default", "nanmedian.dim"):
    ROWS[_name] = _median_row(True)
