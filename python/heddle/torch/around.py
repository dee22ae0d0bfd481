"""What PyTorch does before and after the programs of a graph: it draws random numbers, and raises
where a factorisation failed.

Numbers whose count and distribution are known when a graph starts are drawn then, in the graph's
order, by the operator that draws them there, and go into the programs as arguments: they are those
of eager PyTorch under the same seed, and the generator is left as eager leaves it.
"""
from __future__ import annotations

import collections
import dataclasses
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import sympy  # type: ignore[import-untyped, unused-ignore]  # has no types
import torch
from torch.utils import _pytree as pytree

from .extents import Bindings, concrete, symbols_of
from .lower import Unsupported
from .table import find

if TYPE_CHECKING:
    from .explanation import Record

    Node = torch.fx.Node
    GraphModule = torch.fx.GraphModule

aten = torch.ops.aten
# They draw for each element of their first argument, whose values they do not read.
_LIKE = ("rand_like", "randn_like", "randint_like", "bernoulli.p", "uniform", "normal_functional",
         "exponential", "cauchy", "geometric", "log_normal")


@dataclasses.dataclass
class _Like:
    """Stands for a tensor of which only these are read; sizes may be symbolic."""
    shape: tuple[Any, ...]
    strides: tuple[Any, ...]
    dtype: torch.dtype

    def tensor(self, bindings: Bindings) -> torch.Tensor:
        shape, strides = ([concrete(n, bindings) for n in ns] for ns in (self.shape, self.strides))
        return torch.empty_strided(shape, strides, dtype=self.dtype)


@dataclasses.dataclass
class Draw:
    """An operator that draws, and its arguments: numbers, symbolic ones, and _Like."""
    target: Any
    args: Any

    def run(self, bindings: Bindings) -> Any:
        def value(one: Any) -> Any:
            return one.tensor(bindings) if isinstance(one, _Like) else concrete(one, bindings)
        args, kwargs = pytree.tree_map(value, self.args)
        return self.target(*args, **kwargs)


@dataclasses.dataclass
class Check:
    """That the numbers LAPACK would report, one of a graph's results, are zeros."""
    name: str
    is_matrix: bool


def _is_draw(node: Node) -> bool:
    """Whether it reads the generator. What other operators of higher order do is not known."""
    if node.op != "call_function":
        return False
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return node.target is not torch.ops.higher_order.with_effects
    return isinstance(node.target, torch._ops.OpOverload) and find(node.target) is None \
        and torch.Tag.nondeterministic_seeded in node.target.tags


def _draw_of(node: Node, bindings: Bindings) -> Draw | None:
    """Of a node; None where it depends on what the graph computes."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return None
    overload = node.target._schema.overload_name
    name = node.target._schema.name.partition("::")[2]
    likes = name in _LIKE or f"{name}.{overload}" in _LIKE

    def value(one: Any, number: int) -> Any:
        one = one.meta["val"] if isinstance(one, torch.fx.Node) else one
        if isinstance(one, torch.Tensor):
            if number or not likes or one.device.type != "cpu" or one.layout != torch.strided:
                raise Unsupported("values of a tensor")
            one = _Like(tuple(one.shape), tuple(one.stride()), one.dtype)
            concrete_sizes = [*one.shape, *one.strides]
        else:
            concrete_sizes = [one]
        for size in concrete_sizes:
            concrete(size, bindings)  # an error where inputs do not tell it
        return one
    try:
        args = tuple(pytree.tree_map(lambda one, i=i: value(one, i), arg)
                     for i, arg in enumerate(node.args))
        kwargs = pytree.tree_map(lambda one: value(one, 1), dict(node.kwargs))
    except Unsupported:
        return None
    device = kwargs.get("device")
    if device is not None and torch.device(device).type != "cpu":
        return None
    return Draw(node.target, (args, kwargs))


def take_draws(gm: GraphModule) -> list[Draw]:
    """Makes what is drawn arguments of the graph, up to the first draw that has to wait."""
    inputs = [node for node in gm.graph.nodes if node.op == "placeholder"]
    known = Bindings((expression, sympy.Integer(2)) for _, _, expression in symbols_of(inputs))
    draws: list[Draw] = []
    last = inputs[-1] if inputs else None
    for node in list(gm.graph.nodes):
        if not _is_draw(node):
            continue
        draw = _draw_of(node, known)
        if draw is None:
            break
        first = next(iter(gm.graph.nodes))
        with gm.graph.inserting_before(first) if last is None else gm.graph.inserting_after(last):
            last = gm.graph.placeholder(f"drawn_{len(draws)}")
        last.meta = dict(node.meta)
        node.replace_all_uses_with(last)
        gm.graph.erase_node(node)
        draws.append(draw)
    if draws:
        _drop_unused(gm.graph)
        gm.recompile()
    return draws


def _drop_unused(graph: torch.fx.Graph) -> None:
    """What only said how much was to be drawn."""
    for node in reversed(list(graph.nodes)):
        if node.op == "call_function" and not node.users and not node.is_impure():
            graph.erase_node(node)


def take_checks(gm: GraphModule) -> list[Check]:
    """Makes further results of the graph what is to be checked."""
    checks, infos = [], []
    for node in list(gm.graph.nodes):
        args = node.args
        if node.target is not torch.ops.higher_order.with_effects \
                or args[1] is not aten._linalg_check_errors.default:
            continue
        if any(user.target is not operator.getitem or user.args[1] != 0 for user in node.users):
            continue
        checks.append(Check(args[3], bool(node.kwargs["is_matrix"])))
        infos.append(args[2])
        for user in list(node.users):
            user.replace_all_uses_with(args[0])
            gm.graph.erase_node(user)
        gm.graph.erase_node(node)
    if checks:
        output = gm.graph.output_node()
        results: Any = output.args[0]
        output.args = ((*results, *infos),)
        gm.recompile()
    return checks


class Around:
    """The function of a graph whose draws and checks were taken from it."""

    def __init__(self, gm: GraphModule, draws: list[Draw], checks: list[Check],
                 record: Record) -> None:
        inputs = [node for node in gm.graph.nodes if node.op == "placeholder"]
        self.symbolic = symbols_of(inputs[:len(inputs) - len(draws)])
        self.draws, self.checks = draws, checks
        record.drawn = collections.Counter(str(draw.target) for draw in draws)
        self.inside: Callable[..., Any] = gm.forward

    def __call__(self, *args: Any) -> Any:
        results = self.inside(*args, *self._drawn(args))
        for check, info in zip(self.checks, results[len(results) - len(self.checks):]):
            aten._linalg_check_errors.default(info, check.name, is_matrix=check.is_matrix)
        return results[:len(results) - len(self.checks)]

    def _drawn(self, args: Sequence[Any]) -> list[Any]:
        bindings = Bindings()
        for i, d, expression in self.symbolic if self.draws else ():
            bindings[expression] = sympy.sympify(args[i] if d is None else args[i].shape[d])
        return [draw.run(bindings) for draw in self.draws]
