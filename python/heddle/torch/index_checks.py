"""Positions that a caller gives and that an operator takes: eager PyTorch raises where one of them is
outside, and a program would read or write at the nearest one there is."""
from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from .merges import expression_of

if TYPE_CHECKING:
    from .extents import Bindings

    Node = torch.fx.Node

aten = torch.ops.aten
# Positions have the values of what these are given, all of them.
_SAME_VALUES = {
    aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.unsqueeze.default,
    aten.squeeze.dim, aten.squeeze.dims, aten.permute.default, aten.transpose.int, aten.t.default,
    aten.clone.default, aten.alias.default, aten.detach.default, aten.expand.default}
# By operator: where the table and the positions stand among its arguments. Their dimension is the
# argument between them, or 0.
_ALONG = {aten.embedding.default: (0, 1), aten.index_select.default: (0, 2),
          aten.gather.default: (0, 2), aten.scatter.src: (0, 2), aten.scatter.value: (0, 2),
          aten.scatter_add.default: (0, 2)}
_INDEXED = {aten.index.Tensor, aten.index_put.default}  # negative positions count from the end


@dataclasses.dataclass(frozen=True)
class Check:
    """Of the argument at `position`: from `low` to `high`, expressions of sizes."""
    position: int
    low: Any
    high: Any
    operator: str

    def at(self, bindings: Bindings) -> Check | None:
        """The same for given sizes; None where they are not known."""
        low, high = (one.xreplace(bindings) for one in (self.low, self.high))
        if low.free_symbols or high.free_symbols:
            return None
        return Check(self.position, int(low), int(high), self.operator)

    def run(self, args: Sequence[Any]) -> None:
        values = args[self.position]
        if values.numel() == 0:
            return
        least, most = (int(one) for one in torch.aminmax(values))
        if self.low <= least and most <= self.high:
            return
        wrong = least if least < self.low else most
        raise IndexError(f"{self.operator}: index {wrong} is out of range; wanted {self.low} to "
                         f"{self.high}")


def _argument(node: Any, positions: Mapping[Node, int]) -> int | None:
    """The placeholder that has a node's values; its number among the arguments."""
    while isinstance(node, torch.fx.Node) and node not in positions:
        if node.target not in _SAME_VALUES:
            return None
        node = node.args[0]
    return positions.get(node)


def _extent(node: Any, dim: int) -> Any:
    """As an expression; None where it is not known, or the value is a number."""
    value = node.meta.get("val")
    has_dim = isinstance(value, torch.Tensor) and value.dim() > 0
    return expression_of(value.shape[dim]) if has_dim else None


def _is_integer(node: Any) -> bool:
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    return isinstance(value, torch.Tensor) and value.dtype in (torch.int64, torch.int32)


def _uses(node: Any) -> Iterator[tuple[Any, Any, bool]]:
    """(positions, extent, whether they may be negative) that an operator takes."""
    if node.target in _ALONG:
        table, at = _ALONG[node.target]
        yield node.args[at], _extent(node.args[table], node.args[1] if at == 2 else 0), False
    elif node.target in _INDEXED:
        for dim, at in enumerate(node.args[1]):
            yield at, _extent(node.args[0], dim), True


def find(graph: torch.fx.Graph) -> list[Check]:
    """The checks of a graph's arguments, one for each range."""
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    positions = {node: i for i, node in enumerate(inputs)}
    checks: dict[Any, Check] = {}
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        for at, extent, wraps in _uses(node):
            position = _argument(at, positions)
            if position is None or extent is None or not _is_integer(at):
                continue
            low = -extent if wraps else expression_of(0)
            checks.setdefault((position, low, extent),
                              Check(position, low, extent - 1, str(node.target)))
    return list(checks.values())
