"""Sizes and strides of what a graph computes, and operators whose strides count elements of memory."""
import torch

from .lower import Unsupported

OPERATORS = {torch.ops.aten.as_strided.default, torch.ops.aten.as_strided_copy.default,
             torch.ops.aten.as_strided_scatter.default}


def concrete(value, bindings):
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


def sizes(values, bindings):
    return tuple(concrete(value, bindings) for value in values)


def dense_order(shape, strides):
    """The dimensions in the order of memory, or None: there are gaps or overlaps in it."""
    order = sorted(range(len(shape)), key=lambda d: (-strides[d], d))
    expected = 1
    for d in reversed(order):
        if shape[d] != 1:
            if strides[d] != expected:
                return None
            expected *= shape[d]
    return order


def _base(node, bindings):
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


def arguments(graph, node, args, env, bindings):
    """Those of one of OPERATORS: the first one with its elements in the order of memory."""
    base = _base(node.args[0], bindings)
    value = base.meta["val"]
    order = dense_order(sizes(value.shape, bindings), sizes(value.stride(), bindings))
    if order is None:
        raise Unsupported("strides over memory with gaps")
    into = node.target is torch.ops.aten.as_strided_scatter.default
    if into and (base is not node.args[0] or order != list(range(len(order)))):
        raise Unsupported("strides over memory in another order than the argument's")
    place = 4 if into else 3  # of the offset
    offset = args[place] if len(args) > place else None
    if offset is None:
        offset = concrete(node.args[0].meta["val"].storage_offset(), bindings)
    return [graph.transpose(env[base], order), *args[1:place], offset]
