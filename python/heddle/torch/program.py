"""A part of a graph as programs: lowered and compiled for the sizes that come."""
from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import sympy  # type: ignore[import-untyped, unused-ignore]  # has no types
import torch

import heddle

from . import index_checks, memory_order
from .extents import (Bindings, concrete, dense_order, is_number, meta_of, order_of, sizes,
                      split, symbols_of)
from .lower import TYPES, Graph, Unsupported, Value
from .merges import Merges
from .ops_bounded import Bounded, unbind
from .table import arguments_of, find_bounded, lower

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .explanation import Record
    from .merges import Expression

    Node = torch.fx.Node
    Env = dict[Node, Any]  # what nodes give: Values, numbers, and lists of them
    Constants = Mapping[int, torch.Tensor]  # by position among the arguments

# Programs of one part, for other sizes each; the one that ran longest ago goes.
KEPT = 64
# As often parameters may change before they become inputs.
_MOST_MOVES = 2
# So many programs of a part have parameters as constants, each in its own packing; those for
# further sizes take them as inputs, and share their memory.
_PACKED = 3


# ---- lowering ----

def _parameter(graph: Graph, value: Any, bindings: Bindings | None,
               node: Node | None = None) -> Any:
    if not isinstance(value, torch.Tensor):
        return concrete(value, bindings)
    if value.device.type != "cpu" or value.layout != torch.strided or value.dtype not in TYPES:
        return value  # whoever reads it is not supported
    order = order_of(value, bindings)
    shape = sizes(value.shape, bindings)
    type = TYPES[value.dtype]
    x = graph.parameter("s16" if type == "bf16" else type, split(value, order, node, bindings)[0])
    x = graph.reshape(graph.bitcast(x, type), [shape[d] for d in order])
    return graph.transpose(x, [order.index(d) for d in range(len(order))])


def placeholder_value(graph: Graph, node: Node, bindings: Bindings | None,
                      gm: torch.fx.GraphModule) -> Any:
    value = node.meta.get("val")
    if node.op == "get_attr":
        value = getattr(gm, str(node.target))
    return _parameter(graph, value, bindings, node)


def values_of(graph: Graph, node: Node, bindings: Bindings | None) -> Any:
    """Values for results of which nothing is known but their types."""
    def of(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [of(one) for one in value]
        try:
            return _parameter(graph, value, bindings)
        except Unsupported:
            return value
    return of(node.meta.get("val"))


def _argument(value: Any, env: Env, bindings: Bindings | None) -> Any:
    if isinstance(value, torch.fx.Node):
        value = env[value]
        if isinstance(value, torch.Tensor):
            raise Unsupported(f"a tensor of {value.dtype} on {value.device}")
        if isinstance(value, Bounded):
            raise Unsupported("an extent that data decides")
        if isinstance(value, Unsupported):  # as find_unsupported keeps what no program can take
            raise value
        return value
    if isinstance(value, (list, tuple)):
        return [_argument(one, env, bindings) for one in value]
    if isinstance(value, slice):
        raise Unsupported("a slice")
    return concrete(value, bindings)


def lower_node(graph: Graph, node: Node, env: Env, bindings: Bindings | None) -> Any:
    """What a node gives: Values and numbers."""
    if node.target is torch.ops.aten._local_scalar_dense.default and \
            all(user.target is torch.ops.aten.scalar_tensor.default for user in node.users):
        return graph.reshape(_argument(node.args[0], env, bindings), [])  # a tensor again
    if is_number(node):
        return concrete(node.meta["val"], bindings)
    if node.target is operator.getitem:
        whole: Any = node.args[0]
        return env[whole][node.args[1]]
    if not isinstance(node.target, torch._ops.OpOverload):
        raise Unsupported("no row")
    if "val" not in node.meta:
        raise Unsupported("nothing is known of its result")
    first: Any = node.args[0] if node.args else None
    if node.target is torch.ops.aten.unbind.int and isinstance(env.get(first), Bounded):
        rest: Any = node.args[1:]
        return unbind(graph, env[first], *rest)
    args = [_argument(value, env, bindings) for value in node.args]
    kwargs = {name: _argument(value, env, bindings) for name, value in node.kwargs.items()}
    if node.target in memory_order.OPERATORS:
        args = memory_order.arguments(graph, node, args, env, bindings)
    bounded = find_bounded(node.target)
    if bounded is not None:
        return bounded(graph, *arguments_of(node.target, args, kwargs))
    return lower(graph, node.target, meta_of(node.meta["val"], bindings), args, kwargs)


# ---- programs ----

class _Sizes(torch.fx.Interpreter):
    """Runs a graph on tensors without memory, and keeps what comes out of each node."""

    def run_node(self, node: Node) -> Any:
        value = super().run_node(node)
        node.meta = {**node.meta, "val": value}
        return value


def specialised(gm: torch.fx.GraphModule, args: Sequence[Any]) -> torch.fx.GraphModule:
    """The graph with the sizes that it has for these arguments."""
    copied = torch.fx.GraphModule(gm, copy_graph(gm))
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fakes = [mode.from_tensor(arg.detach(), static_shapes=True)
                 if isinstance(arg, torch.Tensor) else arg for arg in args]
        _Sizes(copied).run(*fakes)
    return copied


def _specialised(gm: torch.fx.GraphModule, args: Sequence[Any],
                 why: Unsupported) -> torch.fx.GraphModule:
    try:
        return specialised(gm, args)
    except Exception:  # tracing finds no sizes where data decides them
        raise why from None


def copy_graph(gm: torch.fx.GraphModule) -> torch.fx.Graph:
    graph = torch.fx.Graph()
    output = graph.graph_copy(gm.graph, {})
    graph.output(output)
    return graph


class _Input:
    """How a tensor is handed over."""

    def __init__(self, node: Node, bindings: Bindings | None) -> None:
        value: torch.Tensor = node.meta["val"]
        self.order = order_of(value, bindings)
        self.plain = self.order == list(range(len(self.order)))
        self.is_bf16 = value.dtype == torch.bfloat16
        self.extents, self.expressions = split(value, self.order, node, bindings)
        self.is_split = len(self.extents) > len(self.order)

    def array(self, tensor: torch.Tensor) -> NDArray[Any]:
        """An array of the tensor's memory, or of a dense copy."""
        tensor = tensor.detach()
        if tensor.is_conj():
            tensor = tensor.resolve_conj()
        if tensor.is_neg():
            tensor = tensor.resolve_neg()
        if not self.plain:
            tensor = tensor.permute(*self.order)
        if not tensor.is_contiguous():
            tensor = tensor.contiguous()
        array: NDArray[Any] = (tensor.view(torch.int16) if self.is_bf16 else tensor).numpy()
        return array.reshape(self.extents) if self.is_split else array


class _Output:
    """How an array becomes the tensor that the graph says."""

    def __init__(self, node: Node, bindings: Bindings | None) -> None:
        value: torch.Tensor = node.meta["val"]
        self.shape = sizes(value.shape, bindings)
        self.strides = sizes(value.stride(), bindings)
        self.order = order_of(value, bindings)
        plain = torch.empty(self.shape, device="meta").stride() == self.strides
        # "plain": as it comes; "view": other strides of the same memory; "copy": with gaps.
        self.way = "plain" if plain else "view"
        if not plain and dense_order(self.shape, self.strides) is None:
            self.way = "plain" if 0 in self.strides else "copy"
        self.is_bf16 = value.dtype == torch.bfloat16
        order: Sequence[int] = self.order if self.way == "view" else range(len(self.order))
        self.extents, _ = split(value, order, node, bindings)
        self.is_split = len(self.extents) > len(self.order)

    def value(self, graph: Graph, x: Value) -> Value:
        if self.way == "view":
            x = graph.transpose(x, self.order)
        if self.is_split:
            x = graph.reshape(x, self.extents)
        return graph.bitcast(x, "s16") if self.is_bf16 else x

    def take(self, results: Sequence[NDArray[Any]], number: int) -> torch.Tensor:
        return self.tensor(results[number])

    def tensor(self, array: NDArray[Any]) -> torch.Tensor:
        tensor = torch.from_numpy(array)
        if self.is_split and self.way != "view":
            tensor = tensor.view(self.shape)
        if self.is_bf16:
            tensor = tensor.view(torch.bfloat16)
        if self.way == "plain":
            return tensor
        if self.way == "view":
            return tensor.as_strided(self.shape, self.strides)
        return torch.empty_strided(self.shape, self.strides, dtype=tensor.dtype).copy_(tensor)


class _CutOutput:
    """How an array becomes as much of it as the next result says."""

    def __init__(self, bounded: Bounded) -> None:
        self.order = bounded.order

    def take(self, results: Sequence[NDArray[Any]], number: int) -> torch.Tensor:
        tensor = torch.from_numpy(results[number])[:int(results[number + 1])]
        # In memory of its own: there may be much less of it.
        return (tensor if self.order is None else tensor.permute(*self.order)).clone()


def _is_only_given_back(node: Node) -> bool:
    """Whether nothing reads a tensor: tokens, which order effects, are not even tensors."""
    return not node.users or (isinstance(node.meta.get("val"), torch.Tensor)
                              and all(user.op == "output" for user in node.users))


class Lowered:
    """A part for given sizes as text, and how tensors go in and out."""
    ARGUMENT = -1

    def __init__(self, gm: torch.fx.GraphModule, bindings: Bindings, constants: Constants) -> None:
        graph = Graph()
        env: Env = {}
        # (position among the arguments, _Input) of those that are fed
        self.inputs: list[tuple[int, _Input]] = []
        self.names: list[str] = []                 # what the text calls them
        self.fixed: dict[str, NDArray[Any]] = {}   # values of the others
        position = -1
        for node in gm.graph.nodes:
            if node.op == "placeholder":
                position += 1
                if _is_only_given_back(node):
                    continue
                number = len(graph.inputs)
                env[node] = placeholder_value(graph, node, bindings, gm)
                if len(graph.inputs) > number:
                    how = _Input(node, bindings)
                    if position in constants:
                        self.fixed[f"arg{number}"] = how.array(constants[position])
                    else:
                        self.inputs.append((position, how))
                        self.names.append(f"arg{number}")
            elif node.op == "get_attr":
                number = len(graph.inputs)
                env[node] = placeholder_value(graph, node, bindings, gm)
                self.fixed[f"arg{number}"] = _attribute(gm, node, bindings)
            elif node.op == "call_function":
                env[node] = lower_node(graph, node, env, bindings)
            elif node.op == "output":
                values = self._take_outputs(graph, node, env, bindings)
        self.text = graph.text(values) if values else None

    def _take_outputs(self, graph: Graph, node: Node, env: Env, bindings: Bindings) -> list[Value]:
        wanted: Any = node.args[0]
        self.single = not isinstance(wanted, (list, tuple))
        # Each (None, a number), (number of the result, _Output), or (Lowered.ARGUMENT, position):
        # what a graph keeps for its gradients is often an argument as it is.
        self.outputs: list[tuple[int | None, Any]] = []
        values: list[Value] = []
        arguments: dict[Any, int] = {}
        for argument in node.graph.nodes:
            if argument.op == "placeholder":
                arguments[argument] = len(arguments)
        for one in [wanted] if self.single else wanted:
            x = env.get(one) if isinstance(one, torch.fx.Node) else one
            if one in arguments and isinstance(one.meta.get("val"), torch.Tensor):
                self.outputs.append((self.ARGUMENT, arguments[one]))
                continue
            if isinstance(x, Bounded):
                self.outputs.append((len(values), _CutOutput(x)))
                values += [x.value, x.count]
                continue
            if not isinstance(x, Value):
                self.outputs.append((None, concrete(x, bindings)))
                continue
            output = _Output(one, bindings)
            x = output.value(graph, x)
            self.outputs.append((len(values), output))
            values.append(x)
        return values


class Program:
    """A part for given sizes, ready to run."""

    def __init__(self, lowered: Lowered, session: heddle.Session | None,
                 checks: list[index_checks.Check]) -> None:
        self.session, self.checks = session, checks
        self.inputs, self.outputs, self.single = lowered.inputs, lowered.outputs, lowered.single

    def __call__(self, args: Sequence[Any]) -> Any:
        for check in self.checks:
            check.run(args)
        results: list[NDArray[Any]] = []
        if self.session is not None:
            results = self.session.run(None, [how.array(args[i]) for i, how in self.inputs])
        outputs = [how if number is None else
                   args[how] if number == Lowered.ARGUMENT else how.take(results, number)
                   for number, how in self.outputs]
        return outputs[0] if self.single else outputs


def _attribute(gm: torch.fx.GraphModule, node: Node, bindings: Bindings) -> NDArray[Any]:
    value = getattr(gm, str(node.target))
    holder = torch.fx.Graph().placeholder("x")
    holder.meta["val"] = value
    return _Input(holder, bindings).array(value)


class Part:
    """A graph all of whose operators have a row: programs by sizes, made when these first come."""

    def __init__(self, gm: torch.fx.GraphModule, static: set[str], options: dict[str, Any],
                 record: Record) -> None:
        self.gm, self.options, self.record = gm, options, record
        self.programs: dict[tuple[Any, ...], Program] = {}
        # A session for all sizes, where there can be one.
        self.family: heddle.Session | None = None
        self.is_told = 0     # its compilations that the record has
        self.eager = False
        self.moves = 0
        inputs = [node for node in gm.graph.nodes if node.op == "placeholder"]
        self.static = [i for i, node in enumerate(inputs) if node.name in static and node.users]
        self.marks: list[tuple[int, int]] | None = None
        self.held: list[torch.Tensor] = []
        self.symbolic = symbols_of(inputs)
        self.merges, self.checks = Merges(), index_checks.find(gm.graph)
        self.symbols = self._named_sizes()

    def _moved(self, args: Sequence[Any]) -> None:
        """Whether a tensor that is a constant of the programs is another one, or was written."""
        marks = [(args[i].data_ptr(), args[i]._version) for i in self.static]
        if marks == self.marks:
            return
        if self.marks is not None:
            self.programs.clear()
            self.family = None
            self.moves += 1
        self.marks = marks
        self.held = [args[i] for i in self.static]  # no other tensor gets their memory
        if self.moves >= _MOST_MOVES:
            self.static, self.marks, self.held = [], [], []

    def _bindings(self, extents: Iterable[Any]) -> Bindings:
        bindings = Bindings()
        for (_, _, expression), extent in zip(self.symbolic, extents):
            bindings[expression] = sympy.sympify(extent)
        bindings.merges = self.merges
        return bindings

    def __call__(self, *args: Any) -> Any:
        if self.eager:
            return self._run_eagerly(args)
        if self.static:
            if self.marks is None and any(args[i].is_inference() for i in self.static):
                self.static = [i for i in self.static if not args[i].is_inference()]
            self._moved(args)
        extents = tuple(args[i] if d is None else args[i].shape[d] for i, d, _ in self.symbolic)
        program = self.programs.get(extents)
        if program is None:
            program = self._make(extents, args)
            if program is None:
                return self._run_eagerly(args)
        return program(args)

    def _make(self, extents: tuple[Any, ...], args: Sequence[Any]) -> Program | None:
        try:
            program = self._made(extents, args)
        except heddle.Cancelled:
            raise
        except (Unsupported, heddle.Error) as error:
            warnings.warn(f"heddle: a graph runs as PyTorch runs it: {error}", stacklevel=2)
            self.record.parts.append((0, extents, f"PyTorch: {error}"))
            self.eager = True
            return None
        while len(self.programs) >= KEPT:
            del self.programs[next(iter(self.programs))]
        self.programs[extents] = program
        return program

    def _made(self, extents: tuple[Any, ...], args: Sequence[Any]) -> Program:
        constants = {i: args[i] for i in self.static}
        gm, bindings = self.gm, self._bindings(extents)
        if self.family is None and len(self.programs) >= _PACKED:
            constants = {}
        try:
            lowered = Lowered(gm, bindings, constants)
        except Unsupported as why:  # a size that does not follow from those of arguments by name
            if not self.symbolic:
                raise
            gm, self.symbols, self.family = _specialised(self.gm, args, why), [], None
            lowered = Lowered(gm, Bindings(), constants)
        if lowered.text is None:
            return self._noted(lowered, None, extents, bindings, "no kernels")
        if self.symbols and self.family is None:
            self.family = self._open_family(lowered, constants)
        session = self.family or heddle.Session(lowered.text.encode(), fix=lowered.fixed,
                                                **self.options)
        return self._noted(lowered, session, extents, bindings)

    def _named_sizes(self) -> list[Expression]:
        """The symbols of all sizes; none where one of them is the size of no tensor."""
        named = [expression for _, d, expression in self.symbolic
                 if d is not None and expression.is_symbol]
        needed: set[Expression] = set().union(
            *(expression.free_symbols for _, _, expression in self.symbolic))
        return list(dict.fromkeys(named)) if needed == set(named) else []

    def _open_family(self, lowered: Lowered, constants: Constants) -> heddle.Session | None:
        names = {position: name for (position, _), name in zip(lowered.inputs, lowered.names)}

        def text_at(extents: dict[str, int]) -> str:
            bindings = Bindings((symbol, sympy.Integer(extents[str(symbol)]))
                                for symbol in self.symbols)
            bindings.merges = self.merges
            text = Lowered(self.gm, bindings, constants).text
            assert text is not None  # there are results, whatever the sizes
            return text

        ways = dict(lowered.inputs)
        dims = [(names[position], d, str(expression).replace(" ", ""))
                for position, how in lowered.inputs
                for d, expression in enumerate(how.expressions) if expression is not None]
        if not {str(symbol) for symbol in self.symbols} <= {name for _, _, name in dims}:
            self.symbols = []  # one is the size of none of them
            return None
        shapes = {name: ways[position].extents for position, name in names.items()}
        return heddle.Session(heddle.Family(text_at, dims), shapes=shapes, fix=lowered.fixed,
                              **self.options)

    def _noted(self, lowered: Lowered, session: heddle.Session | None, extents: tuple[Any, ...],
               bindings: Bindings, note: str = "") -> Program:
        count = sum(node.op == "call_function" for node in self.gm.graph.nodes)
        if session is not None:
            info = session.info
            note = f"{info['kernels']} kernels, compiled in {info['compile_ms']:.0f} ms"
        if session is None or session is not self.family or self.is_told == 0:
            self.record.parts.append((count, extents, note))
        self.is_told += session is self.family
        checks = [check.at(bindings) for check in self.checks]
        return Program(lowered, session, [check for check in checks if check is not None])

    def _run_eagerly(self, args: Sequence[Any]) -> Any:
        return type(self.gm).forward(self.gm, *args)
