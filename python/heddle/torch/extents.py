"""Sizes of a graph's tensors as numbers, and what dimensions were merged from.

They are expressions of symbols where shapes are dynamic; Bindings has the symbols' values.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import sympy  # type: ignore[import-untyped, unused-ignore]  # has no types
import torch

from .lower import Unsupported
from .merges import Merges

if TYPE_CHECKING:
    from .merges import Expression

    Node = torch.fx.Node


def concrete(value: Any, bindings: Bindings | None) -> Any:
    """An int, float or bool of a symbolic one; bindings None: its hint."""
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        expression = value.node.expr
        if bindings is not None:
            expression = expression.xreplace(bindings)
            if expression.free_symbols:
                raise Unsupported(f"a size that data decides ({value})")
        elif value.node.hint is not None:
            return value.node.hint
        else:
            raise Unsupported(f"a size that data decides ({value})")
        kind = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}[type(value)]
        return kind(expression)
    return value


def sizes(values: Iterable[Any], bindings: Bindings | None) -> tuple[int, ...]:
    return tuple(concrete(value, bindings) for value in values)


def is_number(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool))


def symbols_of(inputs: Sequence[Node]) -> list[tuple[int, int | None, Expression]]:
    """(position, dimension, expression) of what is symbolic in inputs; no dimension: a number."""
    symbolic: list[tuple[int, int | None, Expression]] = []
    for i, node in enumerate(inputs):
        value = node.meta.get("val")
        if isinstance(value, (torch.SymInt, torch.SymFloat)):
            symbolic.append((i, None, value.node.expr))
        elif isinstance(value, torch.Tensor):
            extents: Sequence[Any] = value.shape
            symbolic += [(i, d, size.node.expr) for d, size in enumerate(extents)
                         if isinstance(size, torch.SymInt)]
    return symbolic


def meta_of(value: Any, bindings: Bindings | None) -> Any:
    """What tracing knows of a result, with sizes that are numbers; it has no memory."""
    if isinstance(value, (list, tuple)):
        return [meta_of(one, bindings) for one in value]
    if not isinstance(value, torch.Tensor):
        return concrete(value, bindings)
    if value.device.type != "cpu" or value.layout != torch.strided:
        raise Unsupported(f"a tensor on {value.device}, {value.layout}")
    return torch.empty_strided(sizes(value.shape, bindings), sizes(value.stride(), bindings),
                               dtype=value.dtype, device="meta")


def dense_order(shape: Sequence[int], strides: Sequence[int]) -> list[int] | None:
    """The dimensions in the order of memory, or None: there are gaps or overlaps in it."""
    order = sorted(range(len(shape)), key=lambda d: (-strides[d], d))
    expected = 1
    for d in reversed(order):
        if shape[d] != 1:
            if strides[d] != expected:
                return None
            expected *= shape[d]
    return order


def order_of(value: torch.Tensor, bindings: Bindings | None) -> list[int]:
    """The dimensions in the order of memory, where they are dense there; else as they are."""
    shape, strides = sizes(value.shape, bindings), sizes(value.stride(), bindings)
    return dense_order(shape, strides) or list(range(len(shape)))


class Bindings(dict[Any, Any]):
    """Extents by expression, and what is known of merged ones (Merges)."""
    merges: Merges | None = None


def factors(size: Any, node: Node | None,
            bindings: Bindings | None) -> list[tuple[int, Expression | None]]:
    """What a dimension of a node's result was merged from, where that was several dynamic ones, the
    outermost first: [(extent, expression or None where it is a number)]. Where the graph does not
    show it, in the order in which the arguments have them."""
    expression = size.node.expr if isinstance(size, torch.SymInt) else None
    whole = [(concrete(size, bindings), expression)]
    if not bindings or expression is None or not expression.is_Mul:
        return whole
    seen = bindings.merges and node is not None and bindings.merges.of(node, expression)
    number, parts = sympy.Integer(1), list(seen or ())
    if not seen:
        places = {symbol: i for i, symbol in enumerate(bindings)}
        for part in expression.args:
            if part.is_number:
                number *= part
            else:
                parts.append(part)
        parts.sort(key=lambda part: min(places.get(s, len(places)) for s in part.free_symbols))
        parts[0] *= number
    values = [part.xreplace(bindings) for part in parts]
    if any(value.free_symbols for value in values):
        return whole
    return [(int(value), None if part.is_number else part) for value, part in zip(values, parts)]


def split(value: torch.Tensor, order: Iterable[int], node: Node | None,
          bindings: Bindings | None) -> tuple[list[int], list[Expression | None]]:
    """The extents of memory, with dimensions that were merged apart, and their expressions."""
    parts = [part for d in order for part in factors(value.shape[d], node, bindings)]
    return [n for n, _ in parts], [expression for _, expression in parts]
