"""The table of operators: ATen's name -> a function (graph, result, *arguments).

A row says how an operator is written as HLO. `result` is what torch's tracing says of the result:
a tensor without memory (or a tuple of them), with dtype and shape. Arguments are Values, numbers,
lists and dtypes; those left out have ATen's defaults. The function gives a Value, or a list.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch

from .lower import TYPES, Graph, Unsupported, Value

# Its arguments after the graph are those of ATen's schema, with Values for tensors.
Row = Callable[..., Any]
_Row = TypeVar("_Row", bound=Row)
ROWS: dict[str, Row] = {}
# Those whose results have an extent that data decides (ops_bounded.py), without `result`.
BOUNDED: dict[str, Row] = {}


def row(*names: str) -> Callable[[_Row], _Row]:
    """Decorates a function that lowers these operators ("add.Tensor"; "add": all overloads)."""
    def add(function: _Row) -> _Row:
        for name in names:
            ROWS[name] = function
        return function
    return add


def find(target: Any) -> Row | None:
    """The row of an operator, or None. Those outside ATen are called "prims.NAME", "transformers.NAME"."""
    schema = getattr(target, "_schema", None)
    if schema is None:
        return None
    space, _, name = schema.name.partition("::")
    if space in ("prims", "transformers"):
        return ROWS.get(f"{space}.{name}")
    if space != "aten":
        return None
    return ROWS.get(f"{name}.{schema.overload_name or 'default'}") or ROWS.get(name)


def find_bounded(target: Any) -> Row | None:
    schema = getattr(target, "_schema", None)
    space, _, name = getattr(schema, "name", "").partition("::")
    return BOUNDED.get(name) if space == "aten" else None


def arguments_of(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """All arguments in the schema's order, defaults filled in."""
    result = []
    for i, argument in enumerate(target._schema.arguments):
        if i < len(args):
            result.append(args[i])
        elif argument.name in kwargs:
            result.append(kwargs[argument.name])
        elif argument.has_default_value():
            result.append(argument.default_value)
        else:
            result.append(None)
    return result


def type_of(result: torch.Tensor) -> str:
    """HLO's name of a result's element type."""
    if result.dtype not in TYPES:
        raise Unsupported(f"{result.dtype}")
    return TYPES[result.dtype]


def lower(graph: Graph, target: Any, result: Any, args: Sequence[Any],
          kwargs: Mapping[str, Any]) -> Any:
    """The Values that an operator gives, as `result` says, or Unsupported."""
    function = find(target)
    if function is None:
        raise Unsupported("no row")
    values = function(graph, result, *arguments_of(target, args, kwargs))
    many = isinstance(values, (list, tuple))
    results = result if isinstance(result, (list, tuple)) else [result]
    checked = [fit(graph, value, one)
               for value, one in zip(values if many else [values], results)]
    return checked if many else checked[0]


def fit(graph: Graph, value: Any, result: Any) -> Any:
    """The value in the type that it shall have; its extents must be right."""
    if value is None or not isinstance(result, torch.Tensor):
        return value
    value = graph.like(value, type_of(result))
    if value.shape != tuple(result.shape):
        if value.count != result.numel():
            raise Unsupported(f"a result {tuple(result.shape)}, got {value.shape}")
        value = graph.reshape(value, result.shape)
    assert isinstance(value, Value)
    return value
