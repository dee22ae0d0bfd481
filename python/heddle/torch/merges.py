"""What a dimension of several sizes was merged from: batch * length, or length * batch."""
import collections

import sympy
import torch

_LOOKED_AT = 200  # nodes, before it is given up
_VIEWS = {torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default,
          torch.ops.aten.reshape.default}


def expression_of(size):
    return size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size)


def _shape(node):
    value = node.meta.get("val")
    return [expression_of(size) for size in value.shape] if isinstance(value, torch.Tensor) else []


def _apart(whole, parts, expression):
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

    def __init__(self):
        self._known = {}

    def of(self, node, expression):
        """The sizes that make up this one in the node's result, the outermost first; None: that is
        seen nowhere."""
        key = (node, expression)
        if key not in self._known:
            self._known[key] = self._find(node, expression)
        return self._known[key]

    @staticmethod
    def _find(node, expression):
        seen, queue = {node}, collections.deque([node])
        while queue and len(seen) < _LOOKED_AT:
            at = queue.popleft()
            shape = _shape(at)
            inputs, users = at.all_input_nodes, list(at.users)
            near = [at] if at.target in _VIEWS else []
            for view in [*near, *(user for user in users if user.target in _VIEWS)]:
                other = _shape(view.all_input_nodes[0] if view is at else view)
                if found := _apart(shape, other, expression):
                    return found
            for other in [*inputs, *users, *(n for user in users for n in user.all_input_nodes)]:
                if other not in seen and expression in _shape(other):
                    seen.add(other)
                    queue.append(other)
        return None
