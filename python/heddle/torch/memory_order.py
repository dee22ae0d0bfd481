"""Operators whose strides count elements of memory."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from .extents import Bindings, concrete, dense_order, sizes
from .lower import Graph, Unsupported

Node = torch.fx.Node

OPERATORS = {torch.ops.aten.as_strided.default, torch.ops.aten.as_strided_copy.default,
             torch.ops.aten.as_strided_scatter.default}


def _base(node: Node, bindings: Bindings | None) -> Node:
    """The nearest node above that has all of the memory which this one's result is a part of."""
    while True:
        value = node.meta["val"]
        storage = value.untyped_storage()
        if concrete(storage.nbytes(), bindings) == \
                concrete(value.numel(), bindings) * value.itemsize:
            return node
        above = [one for one in node.all_input_nodes
                 if isinstance(one.meta.get("val"), torch.Tensor) and
                 one.meta["val"].untyped_storage()._cdata == storage._cdata]
        if not above:
            raise Unsupported("strides over memory of which the argument is a part")
        node = above[0]


def arguments(graph: Graph, node: Node, args: list[Any], env: Mapping[Node, Any],
              bindings: Bindings | None) -> list[Any]:
    """Those of one of OPERATORS: the first one with its elements in the order of memory."""
    first: Any = node.args[0]
    base = _base(first, bindings)
    value = base.meta["val"]
    order = dense_order(sizes(value.shape, bindings), sizes(value.stride(), bindings))
    if order is None:
        raise Unsupported("strides over memory with gaps")
    into = node.target is torch.ops.aten.as_strided_scatter.default
    if into and (base is not first or order != list(range(len(order)))):
        raise Unsupported("strides over memory in another order than the argument's")
    place = 4 if into else 3  # of the offset
    offset = args[place] if len(args) > place else None
    if offset is None:
        offset = concrete(first.meta["val"].storage_offset(), bindings)
    return [graph.transpose(env[base], order), *args[1:place], offset]
