"""What a dimension of several sizes was merged from: batch * length, or length * batch."""
from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

import sympy  # type: ignore[import-untyped, unused-ignore]  # has no types
import torch

if TYPE_CHECKING:
    Expression = Any  # a sympy.Expr

_LOOKED_AT = 200  # nodes, before it is given up
_VIEWS = {torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default,
          torch.ops.aten.reshape.default}


def expression_of(size: Any) -> Expression:
    return size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size)


def _shape(node: torch.fx.Node) -> list[Expression]:
    value = node.meta.get("val")
    return [expression_of(size) for size in value.shape] if isinstance(value, torch.Tensor) else []


def _apart(whole: list[Expression], parts: list[Expression],
           expression: Expression) -> list[Expression] | None:
    """The dimensions in a view's other shape `parts` that stand for `expression` in `whole`."""
    for d, size in enumerate(whole):
        if size != expression:
            continue
        before, at = sympy.Mul(*whole[:d]), 0
        while at < len(parts) and sympy.Mul(*parts[:at]) != before:
            at += 1
        for end in range(at + 2, len(parts) + 1):
            if sympy.Mul(*parts[at:end]) == expression:
                found = [part for part in parts[at:end] if part != 1]
                if len(found) > 1:
                    return found
    return None


class Merges:
    """Looks around a node for the nearest view that merges a dimension, or takes it apart."""

    def __init__(self) -> None:
        self._known: dict[tuple[torch.fx.Node, Expression], list[Expression] | None] = {}

    def of(self, node: torch.fx.Node, expression: Expression) -> list[Expression] | None:
        """The sizes that make up this one in the node's result, the outermost first; None: that is
        seen nowhere."""
        key = (node, expression)
        if key not in self._known:
            self._known[key] = self._find(node, expression)
        return self._known[key]

    @staticmethod
    def _find(node: torch.fx.Node, expression: Expression) -> list[Expression] | None:
        seen, queue = {node}, collections.deque([node])
        while queue and len(seen) < _LOOKED_AT:
            at = queue.popleft()
            shape = _shape(at)
            inputs, users = at.all_input_nodes, list(at.users)
            near = [at] if at.target in _VIEWS else []
            for view in [*near, *(user for user in users if user.target in _VIEWS)]:
                parts = _shape(view.all_input_nodes[0] if view is at else view)
                if found := _apart(shape, parts, expression):
                    return found
            for other in [*inputs, *users, *(n for user in users for n in user.all_input_nodes)]:
                if other not in seen and expression in _shape(other):
                    seen.add(other)
                    queue.append(other)
        return None
