"""Loops of a graph: factorisations take one step for each column, as one kernel for all of them.

Matrices in a loop are batches [b, m, n]; its counter is an s32.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .lower import Graph, Unsupported, Value, is_float, shape_text

Step = Callable[[Graph, Value, list[Value]], list[Value]]
# One step of a loop is a sweep over all matrices: of larger ones LAPACK, which works in blocks and
# finishes one matrix after another, is more than five times as fast.
MOST = 128
MOST_ELEMENTS = 2 ** 17


def loop(g: Graph, count: int, start: Sequence[Value], step: Step,
         going: Callable[[Graph, list[Value]], Value] | None = None) -> list[Value]:
    """The state after `count` steps: step(graph of the body, its number from 0, state) gives the
    next. What it reads beside its state it makes itself. going: ends earlier where it is false."""
    if count <= 0:
        return list(start)
    parts = [("s32", ()), *((value.type, value.shape) for value in start)]
    tuple_ = "(" + ", ".join(shape_text(*part) for part in parts) + ")"

    def body() -> tuple[Graph, list[Value]]:
        inner = Graph()
        inner.helpers = g.helpers
        inner.lines.append(f"a0 = {tuple_} parameter(0)")
        whole = Value("a0", "tuple", ())
        return inner, [inner.add("get-tuple-element", *part, [whole], f"index={i}")
                       for i, part in enumerate(parts)]

    def computation(inner: Graph, root: str) -> str:
        text = "\n  ".join([*inner.lines, "ROOT " + root])
        return g.helpers.setdefault(text, f"f{len(g.helpers)}")
    inner, (number, *state) = body()
    more_ = inner.compare("LT", number, count)
    if going is not None:
        inner.both(more_, going(inner, state))
    more = computation(inner, inner.lines.pop())
    inner, (number, *state) = body()
    after = [inner.add_(number, 1), *step(inner, number, state)]
    for one, (type, shape) in zip(after, parts, strict=True):
        assert (one.type, one.shape) == (type, tuple(shape)), (one.type, one.shape, type, shape)
    next_ = computation(inner, f"next = {tuple_} tuple({', '.join(one.name for one in after)})")
    names = ", ".join(value.name for value in [g.scalar(0, "s32"), *start])
    whole = Value(f"v{len(g.lines)}", "tuple", ())
    g.lines.append(f"{whole.name} = {tuple_} tuple({names})")
    return g.add_tuple("while", parts, [whole], f"condition={more}, body={next_}")[1:]


def line_at(g: Graph, x: Value, dim: int, number: Value) -> Value:
    """The slice of extent 1 along dim at a computed place."""
    zero = g.scalar(0, "s32")
    sizes = [1 if d == dim else n for d, n in enumerate(x.shape)]
    return g.add("dynamic-slice", x.type, sizes,
                 [x, *(number if d == dim else zero for d in range(x.rank))],
                 f"dynamic_slice_sizes={{{','.join(map(str, sizes))}}}")


def down(g: Graph, number: Value, count: int) -> Value:
    """count - 1, …, 0 for the steps 0, …"""
    return g.sub(g.scalar(count - 1, "s32"), number)


def places(g: Graph, x: Value) -> tuple[Value, Value]:
    """(row, column) of each element of the matrices."""
    return g.iota(x.shape, x.rank - 2, "s32"), g.iota(x.shape, x.rank - 1, "s32")


def unit(g: Graph, shape: Sequence[int], type: str) -> Value:
    """Identity matrices; not square: ones where row and column are the same."""
    rows, columns = (g.iota(shape[-2:], d, "s32") for d in (0, 1))
    return g.broadcast(g.convert(g.compare("EQ", rows, columns), type), shape)


def batched(g: Graph, x: Value, batch: Sequence[int] | None = None) -> Value:
    """[…, m, n] as [b, m, n]; `batch`: what it is repeated to before."""
    if batch is not None:
        x = g.broadcast(x, [*batch, *x.shape[-2:]])
    return g.reshape(x, [math.prod(x.shape[:-2]), *x.shape[-2:]])


def turned(g: Graph, x: Value) -> Value:
    """Each matrix transposed."""
    return g.transpose(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2])


def check_matrix(x: Value, most: int = MOST) -> None:
    """Unsupported where LAPACK shall do it."""
    if x.type not in ("f32", "f64"):
        raise Unsupported(f"matrices of {x.type}")
    if max(x.shape[-2:]) > most or x.count > MOST_ELEMENTS:
        raise Unsupported("larger than a loop over columns is good for: LAPACK's")


def solve_triangle(g: Graph, a: Value, b: Value, lower: bool, unit_diagonal: bool = False) -> Value:
    """x of a x = b; a [b, n, n] is read on one side of its diagonal, b is [b, n, k]."""
    n = a.shape[-1]

    def step(g: Graph, number: Value, state: list[Value]) -> list[Value]:
        a, x = state
        k = number if lower else down(g, number, n)
        column = line_at(g, a, 2, k)
        row = line_at(g, x, 1, k)
        if not unit_diagonal:
            row = g.div(row, line_at(g, column, 1, k))
        rows = g.iota(x.shape, 1, "s32")
        rest = g.compare("GT" if lower else "LT", rows, k)
        update = g.sub(x, g.mul(column, row))
        here = g.compare("EQ", rows, k)
        return [a, g.select(here, row, g.select(rest, update, x))]
    assert is_float(a.type)
    return loop(g, n, [a, b], step)[1]
