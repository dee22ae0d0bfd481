"""What of a graph becomes programs, and what runs as PyTorch runs it."""
from __future__ import annotations

import collections
import operator
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from . import around, explanation, ops_bounded
from .extents import is_number
from .program import Part, lower_node, placeholder_value, values_of
from .lower import Graph, Unsupported

if TYPE_CHECKING:
    from .program import Env

    GraphModule = torch.fx.GraphModule
    Node = torch.fx.Node


def find_unsupported(gm: GraphModule) -> dict[Node, str]:
    """{node: why} of the operators without a form in HLO, tried one by one."""
    graph = Graph()
    env: Env = {}
    reasons: dict[Node, str] = {}
    bindings = None  # hints
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            try:
                env[node] = placeholder_value(graph, node, bindings, gm)
            except Unsupported as why:
                env[node] = why
        elif node.op == "call_function":
            try:
                env[node] = lower_node(graph, node, env, bindings)
            except Unsupported as why:
                reasons[node] = str(why)
            except Exception as error:  # a row that was given what it does not expect
                reasons[node] = f"{type(error).__name__}: {error}"
            if node in reasons:
                env[node] = values_of(graph, node, bindings)
    return reasons


class _Support(OperatorSupportBase):
    def __init__(self, reasons: Mapping[Node, str]) -> None:
        self.reasons = reasons

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: Node) -> bool:
        if node.op != "call_function" or node in self.reasons:
            return False
        # A part of a tuple stays with what makes the tuple.
        whole: Any = node.args[0] if node.args else None
        return node.target is not operator.getitem or self.is_node_supported(submodules, whole)


def source_line(node: Node) -> str | None:
    """Where in the user's code an operator comes from, or None."""
    trace = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines()]
    files = [line for line in trace if line.startswith("File ")]
    return files[-1] if files else None


def tell(reasons: Mapping[Node, str]) -> None:
    """One warning: operators, how many of each, where the first comes from."""
    counts = collections.Counter(str(node.target) for node in reasons)
    parts = []
    for name, count in counts.most_common():
        first = next(node for node in reasons if str(node.target) == name)
        line = source_line(first)
        why = "" if reasons[first] == "no row" else f": {reasons[first]}"
        parts.append(f"{name} ({count}{'' if line is None else ', ' + line}{why})")
    warnings.warn("heddle: these operators run as PyTorch runs them: " + "; ".join(parts),
                  stacklevel=2)


def _static_names(gm: GraphModule, kind: str) -> set[str]:
    """Placeholders that hold parameters and buffers which no gradient goes to."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    if kind != "inference" or metadata is None:
        return set()
    inputs = [node for node in gm.graph.nodes if node.op == "placeholder"]
    return {inputs[i].name for i in metadata.static_input_indices if i < len(inputs)}


# Where the factorisations say whether they give vectors, and which results those are.
_VECTORS = {torch.ops.aten._linalg_svd.default: (2, "compute_uv", (0, 2)),
            torch.ops.aten._linalg_eigh.default: (2, "compute_v", (1,))}


def leave_out_vectors(gm: GraphModule) -> None:
    """Has only values computed where nothing reads singular vectors or eigenvectors."""
    for node in gm.graph.nodes:
        place, name, vectors = _VECTORS.get(node.target, (0, "", ()))
        if name and not any(user.args[1] in vectors for user in node.users):
            if len(node.args) > place:
                node.update_arg(place, False)
            else:
                node.update_kwarg(name, False)


# Products of groups of rows: programs pack the matrices of groups ahead where they stay the same.
# Others are copied in every call, and above this size PyTorch, which reads them in place, is faster.
_OF_GROUPS = {"aten._grouped_mm", "transformers.grouped_mm_fallback",
              "transformers.grouped_mm_fallback_backward"}
MOST_COPIED_BYTES = 1 << 20


def _stays(node: Node, static: set[str]) -> bool:
    while _is_view(node):
        node = cast("Node", node.args[0])
    return node.op == "get_attr" or node.name in static


def changing_groups(gm: GraphModule, static: set[str]) -> dict[Node, str]:
    """{node: why} of the products of groups that are better left to PyTorch."""
    reasons: dict[Node, str] = {}
    for node in gm.graph.nodes:
        if str(node.target).rpartition(".")[0] not in _OF_GROUPS:
            continue
        if not any(one.meta["val"].ndim == 1 for one in node.all_input_nodes):
            continue  # no ends of groups: it is a batched product
        matrices = [one for one in node.all_input_nodes if one.meta["val"].ndim == 3] or [node]
        if any(one.meta["val"].nbytes > MOST_COPIED_BYTES and not _stays(one, static)
               for one in matrices):
            reasons[node] = "matrices that may change from call to call"
    return reasons


def compile_graph(gm: GraphModule, kind: str, options: dict[str, Any]) -> Callable[..., Any]:
    """A function of the graph's inputs that gives a list of its outputs."""
    static = _static_names(gm, kind)
    draws, checks = around.take_draws(gm), around.take_checks(gm)
    leave_out_vectors(gm)
    ops_bounded.drop_assertions(gm)
    reasons = {**changing_groups(gm, static), **find_unsupported(gm)}
    operators = [n for n in gm.graph.nodes if n.op == "call_function"]
    record = explanation.Record(kind, len(operators), {
        str(node.target): (why, source_line(node)) for node, why in reasons.items()})
    explanation.add(record)
    if reasons:
        tell(reasons)
    if not draws and not checks:
        return _programs(gm, reasons, static, options, record)
    whole = around.Around(gm, draws, checks, record)
    whole.inside = _programs(gm, reasons, static, options, record)
    return whole


def _is_view(node: Node) -> bool:
    """Whether PyTorch does nothing for it: other sizes and strides of the same memory."""
    return isinstance(node.target, torch._ops.OpOverload) and node.target.is_view \
        and isinstance(node.meta.get("val"), torch.Tensor)


def views_for_eager(gm: GraphModule, reasons: Mapping[Node, str]) -> set[Node]:
    """Gives what PyTorch runs its own views of arguments and of what PyTorch ran; returns these.

    As results of a program they would be copies: of all experts' weights, say.
    """
    views: set[Node] = set()

    def viewed(node: Node) -> Node | None:
        """The same for PyTorch alone, or None where it is computed by a program."""
        if node.op in ("placeholder", "get_attr") or node in reasons or node in views:
            return node
        if not _is_view(node):
            return None
        source: Any = node.args[0]
        source = viewed(source)
        if source is None:
            return None
        with gm.graph.inserting_after(node):
            copied = gm.graph.node_copy(node, lambda one: source if one is node.args[0] else one)
        views.add(copied)
        return copied

    for node in reasons:
        for given in node.all_input_nodes:
            own = viewed(given) if _is_view(given) and given not in reasons else None
            if own is not None:
                node.replace_input_with(given, own)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return {node for node in views if node.users}


def _programs(gm: GraphModule, reasons: Mapping[Node, str], static: set[str],
              options: dict[str, Any], record: explanation.Record) -> Callable[..., Any]:
    if not reasons:
        return Part(gm, static, options, record) if record.operators else gm.forward
    eager = {**reasons, **dict.fromkeys(views_for_eager(gm, reasons), "a view")}
    partitioner = CapabilityBasedPartitioner(gm, _Support(eager),
                                             allows_single_node_partition=True)
    whole = partitioner.fuse_partitions(partitioner.propose_partitions())
    for node in whole.graph.nodes:
        if node.op != "call_module":
            continue
        inside = getattr(whole, node.target)
        inner = [n for n in inside.graph.nodes if n.op == "placeholder"]
        # Numbers and views alone are not worth a program.
        if all(is_number(n) for n in inside.graph.nodes if n.op == "call_function"):
            continue
        held = {p.name for p, given in zip(inner, node.args)
                if given.op == "placeholder" and given.name in static}
        part = Part(inside, held, options, record)
        inside.forward = part
    return whole.forward


__all__ = ["compile_graph", "find_unsupported", "source_line"]
