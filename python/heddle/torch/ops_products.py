"""Products, convolutions and attention's backward pass."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .lower import Graph, Unsupported, Value, is_complex, is_float
from .ops_reductions import wide_sum
from .table import ROWS, Row, row

if TYPE_CHECKING:
    from .lower import Pair


def product(g: Graph, x: Value, y: Value, contract: Pair, batch: Pair = ((), ())) -> Value:
    if is_complex(x.type):
        raise Unsupported("products of complex numbers")
    return g.dot(x, y, contract, batch)


@row("mm")
def mm(g: Graph, r: Any, x: Value, y: Value, *rest: Any) -> Value:
    return product(g, x, y, ([1], [0]))


@row("bmm")
def bmm(g: Graph, r: Any, x: Value, y: Value, *rest: Any) -> Value:
    return product(g, x, y, ([2], [1]), ([0], [0]))


@row("mv")
def mv(g: Graph, r: Any, x: Value, y: Value) -> Value:
    return product(g, x, y, ([1], [0]))


@row("dot", "vdot")
def dot(g: Graph, r: Any, x: Value, y: Value) -> Value:
    return product(g, x, y, ([0], [0]))


def _plus(times: Row) -> Row:
    """beta * start + alpha * product."""
    def lower(g: Graph, r: Any, start: Any, x: Value, y: Value, beta: Any = 1, alpha: Any = 1,
              *rest: Any) -> Value:
        result: Value = times(g, r, x, y)
        if alpha != 1:
            result = g.mul(result, g.scalar(alpha, result.type))
        if beta == 0:
            return result
        start = g.broadcast(g.convert(start, result.type), r.shape)
        return g.add_(start if beta == 1 else g.mul(start, g.scalar(beta, start.type)), result)
    return lower


ROWS["addmm"], ROWS["baddbmm"], ROWS["addmv"] = _plus(mm), _plus(bmm), _plus(mv)
ROWS["addbmm"] = _plus(lambda g, r, x, y: product(g, x, y, ([0, 2], [0, 1])))


@row("_linear", "linear")
def linear(g: Graph, r: Any, x: Value, weight: Value, bias: Value | None = None) -> Value:
    result = product(g, x, weight, ([x.rank - 1], [1]))
    return result if bias is None else g.add_(result, bias)


# ---- convolution ----

def _each(values: Any, count: int) -> list[int]:
    numbers: list[int] = list(values)
    return numbers * count if len(numbers) == 1 else numbers


def _labels(count: int) -> str:
    space = "0123456789"[:count]
    return f"bf{space}_oi{space}->bf{space}"


def _window(sizes: Sequence[int], strides: Sequence[int], pads: Sequence[tuple[int, int]],
            base: Any, dilations: Sequence[int]) -> str:
    parts = ["size=" + "x".join(map(str, sizes)), "stride=" + "x".join(map(str, strides)),
             "pad=" + "x".join(f"{low}_{high}" for low, high in pads)]
    if any(d != 1 for d in base):
        parts.append("lhs_dilate=" + "x".join(map(str, base)))
    if any(d != 1 for d in dilations):
        parts.append("rhs_dilate=" + "x".join(map(str, dilations)))
    return "window={" + " ".join(parts) + "}"


def convolve(g: Graph, x: Value, weight: Value, strides: Sequence[int],
             pads: Sequence[tuple[int, int]], base: Sequence[int], dilations: Sequence[int],
             groups: int, labels: str | None = None, shape: Sequence[int] | None = None) -> Value:
    """HLO's convolution; weight [out, in / groups, …]."""
    count = x.rank - 2
    sizes = weight.shape[2:]
    if shape is None:
        space = []
        for n, k, s, (low, high), b, d in zip(x.shape[2:], sizes, strides, pads, base, dilations):
            whole = (n - 1) * b + 1 + low + high
            space.append((whole - ((k - 1) * d + 1)) // s + 1)
        shape = [x.shape[0], weight.shape[0], *space]
    attrs = (_window(sizes, strides, pads, base, dilations)
             + f", dim_labels={labels or _labels(count)}")
    if groups != 1:
        attrs += f", feature_group_count={groups}"
    return g.add("convolution", x.type, shape, [x, weight], attrs)


def _turned(g: Graph, weight: Value, groups: int) -> Value:
    """A filter [in, out / groups, …] of a transposed convolution as [out, in / groups, …]."""
    inputs, per_group = weight.shape[:2]
    space = list(weight.shape[2:])
    w = g.reshape(weight, [groups, inputs // groups, per_group, *space])
    w = g.transpose(w, [0, 2, 1, *range(3, 3 + len(space))])
    w = g.reshape(w, [groups * per_group, inputs // groups, *space])
    return g.reverse(w, range(2, 2 + len(space))) if space else w


def transposed(g: Graph, x: Value, weight: Value, strides: Sequence[int], pads: Sequence[int],
               dilations: Sequence[int], extra: Sequence[int], groups: int) -> Value:
    sizes = weight.shape[2:]
    around = [(d * (k - 1) - p, d * (k - 1) - p + e)
              for k, p, d, e in zip(sizes, pads, dilations, extra)]
    ones = [1] * len(sizes)
    return convolve(g, x, _turned(g, weight, groups), ones, around, strides, dilations, groups)


@row("convolution", "_convolution")
def convolution(g: Graph, r: Any, x: Value, weight: Value, bias: Value | None, stride: Any,
                padding: Any, dilation: Any, is_transposed: bool, extra: Sequence[int], groups: int,
                *rest: Any) -> Value:
    if not is_float(x.type):
        raise Unsupported(f"a convolution of {x.type}")
    if 0 in r.shape or x.count == 0 or weight.count == 0:
        raise Unsupported("a convolution without elements")
    count = x.rank - 2
    stride, padding, dilation = (_each(v, count) for v in (stride, padding, dilation))
    if is_transposed:
        y = transposed(g, x, weight, stride, padding, dilation, _each(extra, count), groups)
    else:
        y = convolve(g, x, weight, stride, [(p, p) for p in padding], [1] * count, dilation,
                     groups)
    return y if bias is None else g.add_(y, g.broadcast(bias, y.shape, [1]))


@row("convolution_backward")
def convolution_backward(g: Graph, r: Any, grad: Value, x: Value, weight: Value, bias_sizes: Any,
                         stride: Any, padding: Any, dilation: Any, is_transposed: bool,
                         extra: Sequence[int], groups: int,
                         mask: Sequence[bool]) -> list[Value | None]:
    count = x.rank - 2
    stride, padding, dilation = (_each(v, count) for v in (stride, padding, dilation))
    results: list[Value | None] = [None, None, None]
    if is_transposed:
        if mask[0]:
            whole = convolve(g, grad, weight, stride, [(p, p) for p in padding], [1] * count,
                             dilation, groups)
            results[0] = _cut(g, whole, x.shape)
        if mask[1]:
            results[1] = _filter_gradient(g, grad, x, weight, stride, padding, dilation, groups)
    else:
        if mask[0]:
            # What the last stride left over at the end is not reached by any output.
            more = [n + 2 * p - ((k - 1) * d + 1) - (o - 1) * s for n, p, k, d, o, s in zip(
                x.shape[2:], padding, weight.shape[2:], dilation, grad.shape[2:], stride)]
            results[0] = transposed(g, grad, weight, stride, padding, dilation, more, groups)
        if mask[1]:
            results[1] = _filter_gradient(g, x, grad, weight, stride, padding, dilation, groups)
    if mask[2]:
        results[2] = wide_sum(g, grad, [0, *range(2, grad.rank)])
    return results


def _cut(g: Graph, x: Value, shape: Sequence[int]) -> Value:
    return g.slice(x, [0] * x.rank, shape)


def _filter_gradient(g: Graph, x: Value, grad: Value, weight: Value, stride: Sequence[int],
                     padding: Sequence[int], dilation: Sequence[int], groups: int) -> Value:
    """[out, in / groups, …]: x as images whose batch is contracted, grad as the filter."""
    batch, features = x.shape[:2]
    space = list(range(2, x.rank))
    # Groups side by side in the batch of the product: [features / groups, groups * batch, …].
    x = g.reshape(x, [batch, groups, features // groups, *x.shape[2:]])
    x = g.transpose(x, [2, 1, 0, *(d + 1 for d in space)])
    x = g.reshape(x, [features // groups, groups * batch, *x.shape[3:]])
    w = g.transpose(grad, [1, 0, *space])  # [out, batch, …]: out is by group already
    sizes = weight.shape[2:]
    pads = []
    for n, k, p, s, d, o in zip(x.shape[2:], sizes, padding, stride, dilation, grad.shape[2:]):
        reach = (o - 1) * s + 1 + (k - 1) * d
        pads.append((p, reach - n - p))
    y = convolve(g, x, w, dilation, pads, [1] * len(sizes), stride, groups)
    return g.transpose(y, [1, 0, *space])  # [features / groups, out, …] -> [out, …]


# ---- attention ----

_HEADS = ([0, 1], [0, 1])


def _scores(g: Graph, q: Value, k: Value, causal: bool, attn_mask: Value | None,
            scale: float | None) -> tuple[Value, float]:
    """(scores, the scale), in float for 16-bit types."""
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = g.dot(q, k, ([3], [3]), _HEADS)
    if scores.type in ("f16", "bf16"):
        scores = g.convert(scores, "f32")
    scores = g.mul(scores, g.scalar(scale, scores.type))
    if attn_mask is not None:
        if attn_mask.type == "pred":
            attn_mask = g.select(attn_mask, g.scalar(0, scores.type),
                                 g.scalar(-math.inf, scores.type))
        scores = g.add_(scores, g.convert(attn_mask, scores.type))
    if causal:
        rows, columns = (g.iota(scores.shape[2:], d, "s32") for d in (0, 1))
        seen = g.broadcast(g.compare("GE", rows, columns), scores.shape, [2, 3])
        scores = g.select(seen, scores, g.full(scores.shape, -math.inf, scores.type))
    return scores, scale


@row("_scaled_dot_product_flash_attention_for_cpu")
def attention(g: Graph, r: Any, q: Value, k: Value, v: Value, dropout: float = 0.0,
              causal: bool = False, attn_mask: Value | None = None,
              scale: float | None = None) -> list[Value]:
    if dropout:
        raise Unsupported("attention with dropout")
    if k.shape[1] != q.shape[1]:
        raise Unsupported("attention with fewer heads of keys")
    scores, _ = _scores(g, q, k, causal, attn_mask, scale)
    most = g.most(scores, [3], True)
    e = g.unary("exponential", g.sub(scores, most))
    total = g.sum(e, [3], True)
    out = g.dot(g.convert(g.div(e, total), v.type), v, ([3], [2]), _HEADS)
    return [out, g.reshape(g.add_(most, g.unary("log", total)), q.shape[:3])]


@row("_scaled_dot_product_flash_attention_for_cpu_backward")
def attention_backward(g: Graph, r: Any, grad: Value, q: Value, k: Value, v: Value, out: Value,
                       logsumexp: Value, dropout: float, causal: bool,
                       attn_mask: Value | None = None, scale: float | None = None) -> list[Value]:
    if dropout:
        raise Unsupported("attention with dropout")
    scores, scale = _scores(g, q, k, causal, attn_mask, scale)
    p = g.unary("exponential", g.sub(scores, g.reshape(logsumexp, [*q.shape[:3], 1])))
    p = g.convert(p, q.type)
    dv = g.dot(p, grad, ([2], [2]), _HEADS)
    dp = g.dot(grad, v, ([3], [3]), _HEADS)
    delta = g.sum(g.mul(grad, out), [3], True)
    ds = g.mul(g.mul(p, g.sub(dp, delta)), g.scalar(scale, q.type))
    return [g.dot(ds, k, ([3], [2]), _HEADS), g.dot(ds, q, ([2], [2]), _HEADS), dv]


@row("_cdist_forward")
def cdist(g: Graph, r: Any, x: Value, y: Value, p: float, mode: Any = None) -> Value:
    if p not in (1, 2):
        raise Unsupported(f"distances of norm {p}")
    a = g.reshape(x, [*x.shape[:-1], 1, x.shape[-1]])
    b = g.reshape(y, [*y.shape[:-2], 1, *y.shape[-2:]])
    away = g.sub(a, b)
    if p == 1:
        return g.sum(g.unary("abs", away), [away.rank - 1])
    return g.unary("sqrt", g.sum(g.mul(away, away), [away.rank - 1]))
