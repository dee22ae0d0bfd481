"""What became of a model: heddle.torch.explain(model, *args)."""
from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import Any

import torch

_collecting = threading.local()


@dataclasses.dataclass
class Record:
    """A graph that was compiled: what it is for, its operators, those that run in PyTorch as
    {operator: (why, source line)}, what its parts are: (operators, sizes, note), and how often
    which operator draws numbers for it, with PyTorch's generator, before it starts."""
    kind: str
    operators: int
    eager: dict[str, tuple[str, str | None]]
    parts: list[tuple[int, Any, str]] = dataclasses.field(default_factory=list)
    drawn: dict[str, int] = dataclasses.field(default_factory=dict)


def add(record: Record) -> None:
    """Keeps it where explain() is under way."""
    records = getattr(_collecting, "records", None)
    if records is not None:
        records.append(record)


@dataclasses.dataclass
class Explained:
    """What explain() found: graphs, and the places where Dynamo broke the model into them.

    >>> len(heddle.torch.explain(torch.nn.Linear(2, 3), torch.ones(1, 2)).breaks)
    0
    """
    graphs: list[Record]
    breaks: list[str]

    def __str__(self) -> str:
        lines = [f"{len(self.graphs)} graphs, {len(self.breaks)} breaks"]
        lines += [f"  break: {reason}" for reason in self.breaks]
        for i, graph in enumerate(self.graphs):
            lines.append(f"graph {i} ({graph.kind}): {graph.operators} operators, "
                         f"{len(graph.parts)} programs")
            for count, sizes, note in graph.parts:
                at = f" for {sizes}" if sizes else ""
                lines.append(f"  program: {count} operators{at}; {note}")
            for name, count in graph.drawn.items():
                lines.append(f"  drawn by PyTorch's generator ahead: {name}, {count}")
            for name, (why, line) in graph.eager.items():
                lines.append(f"  PyTorch: {name}: {why}" + (f" ({line})" if line else ""))
        return "\n".join(lines)


def explain(model: Callable[..., Any], *args: Any, options: dict[str, Any] | None = None,
            **kwargs: Any) -> Explained:
    """Compiles the model, runs it once and tells what ran where.

    >>> print(heddle.torch.explain(torch.nn.Linear(2, 3), torch.ones(1, 2)))  # doctest: +ELLIPSIS
    1 graphs, 0 breaks
    graph 0 (forward): ... operators, 1 programs
      program: ... operators; ... kernels, compiled in ... ms
    """
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    before = dict(counters["graph_break"])
    _collecting.records = []
    try:
        torch.compile(model, backend="heddle", options=options)(*args, **kwargs)
        after = counters["graph_break"]
        breaks = [reason.splitlines()[0] for reason, count in after.items()
                  if count > before.get(reason, 0)]
        return Explained(_collecting.records, breaks)
    finally:
        _collecting.records = None
