"""heddle.Session: a model, compiled and ready to run."""
from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, overload

import numpy

from . import _arrays, _core

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from . import reports
    from .typing import ArrayInput, Info, Inputs, Model, Origin, Outputs

    # A port as the extension says it: dimensions are (name, extent, least, most).
    _Described = tuple[str, int, bool, list[tuple[str, int, int, int]] | None]
    _Source = str | bytes | tuple[Callable[[dict[str, int]], str], tuple[tuple[str, int, str], ...]]

__all__ = ["Family", "Port", "Session", "compile", "load"]


@dataclasses.dataclass(frozen=True)
class Port:
    """An input or an output of a session.

    shape has a number for each dimension, or the name of one that may differ from run to run (None:
    it has no name); it is None where nothing is known before a run. type is heddle's name of the
    element type.

    >>> port, = heddle.Session("model.onnx").inputs
    >>> port.name, port.shape, port.dtype, port.type
    ('x', ('batch', 3), dtype('float32'), 'f32')
    """
    name: str
    shape: tuple[int | str | None, ...] | None
    dtype: numpy.dtype[Any]
    type: str


def _port(described: _Described) -> Port:
    name, number, is_text, dims = described
    shape = None
    if dims is not None:
        shape = tuple((called or None) if least < most else extent
                      for called, extent, least, most in dims)
    # None of a token, which only modules of HLO pass on; nobody asks what is in it.
    dtype = numpy.dtype(object) if is_text else cast("numpy.dtype[Any]", _arrays.dtype_of(number))
    return Port(name, shape, dtype, "string" if is_text else _core.type_name(number))


@dataclasses.dataclass(frozen=True)
class Family:
    r"""A model that is another text for other extents, as programs are that trace; for Session.

    text_at({"length": 7}) gives HLO or StableHLO text; dims are (input, dimension, name), of inputs
    arg0, arg1, … in order.

    >>> def text_at(extents):
    ...     n = extents["n"]
    ...     return (f"HloModule m\nENTRY e {{ x = f32[{n}] parameter(0)\n"
    ...             f"ROOT y = f32[{n}] negate(x) }}")
    >>> family = heddle.Family(text_at, [("arg0", 0, "n")])
    >>> session = heddle.Session(family, shapes={"arg0": (2,)})
    >>> session.run(None, [numpy.ones(3, numpy.float32)])[0].tolist()
    [-1.0, -1.0, -1.0]
    """
    text_at: Callable[[dict[str, int]], str]
    dims: Sequence[tuple[str, int, str]]
    name: str = "model"


def _bytes_of(model: Any) -> bytes | None:
    """The model as bytes, or None where it is a path."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    model = getattr(model, "model_proto", model)  # torch.onnx.ONNXProgram
    if hasattr(model, "SerializeToString"):  # onnx.ModelProto
        return bytes(model.SerializeToString())
    if hasattr(model, "mlir_module_serialized"):  # jax.export.Exported
        return bytes(model.mlir_module_serialized)
    return None


def _values(values: Mapping[str, Any] | None
            ) -> tuple[dict[str, NDArray[Any]], dict[bytes, int]]:
    """Values by name; strings as numbers, with the list of the strings."""
    numbers: dict[str, NDArray[Any]] = {}
    texts: dict[bytes, int] = {}
    for name, value in (values or {}).items():
        array = _arrays.as_numpy(value)
        if array.dtype.kind in "OUST":
            words, shape = _arrays.flat_texts(array)
            ids = [texts.setdefault(word, len(texts) + 1) if word else 0 for word in words]
            array = numpy.array(ids, numpy.uint32).reshape(shape)
        numbers[name] = array
    return numbers, texts


class Session(_core.Session):
    """A model, compiled and ready to run; any number of threads may run it at the same time.

    model is a path, the bytes of a file (ONNX, HLO, StableHLO or a compiled program), an
    onnx.ModelProto, or what torch.onnx.export and jax.export.export give. Shapes that are only known when it runs need no option: programs are compiled
    when their shapes first come, and kept.

    dims       {"batch": 8} fixes dynamic dimensions; shapes {"x": (8, 3)} all those of an input
    bounds     {"length": 512}: a few programs serve any extent up to this
    fix        {"axes": [1]}: inputs that become part of the model
    values     of a first run, where shapes depend on them and a program is to be compiled now
    late       False: dynamic dimensions that nothing fixes become 1
    progress   called with (step, done, steps, seconds); the compilation ends if it returns True
    Other keywords are options of `heddle compile`: device="cpu", threads=4, level="O2",
    precision="bf16", cache="off", … (heddle.option_names() has all).

    >>> session = heddle.Session("model.onnx", threads=1)
    >>> session.run(None, {"x": numpy.ones((2, 3), numpy.float32)})[0].shape
    (2, 4)
    """

    def __init__(self, model: Model, *, dims: Mapping[str, int] | None = None,
                 bounds: Mapping[str, int] | None = None,
                 shapes: Mapping[str, Sequence[int]] | None = None,
                 fix: Mapping[str, ArrayInput] | None = None,
                 values: Mapping[str, ArrayInput] | None = None,
                 module: str | None = None, random_constants: bool = False,
                 kv_cache: str | None = None, late: bool | None = None,
                 progress: Callable[[str, int, int, float], Any] | None = None,
                 **options: Any) -> None:
        for name, value in options.items():
            if name == "disable" and not isinstance(value, (str, type(None))):
                options[name] = ",".join(value)
            elif isinstance(value, os.PathLike):
                options[name] = os.fspath(value)
        from . import _log  # logging takes a while to import
        _log.watch()
        # What the command is told of it (_command.py).
        self._recipe: dict[str, Any] = {
            "model": model, "dims": dims, "bounds": bounds, "shapes": shapes, "fix": fix,
            "module": module, "random_constants": random_constants, "kv_cache": kv_cache,
            "options": options}
        constants, texts_of_constants = _values(fix)
        firsts, texts_of_values = _values(values)
        if texts_of_constants and texts_of_values:
            raise TypeError("fix= and values= both with strings; wanted them in one of both")
        texts = texts_of_constants or texts_of_values
        shapes = {name: tuple(shape) for name, shape in (shapes or {}).items()}
        given = {"dims": dict(dims or {}), "bounds": dict(bounds or {}), "shapes": shapes,
                 "constants": constants, "values": firsts,
                 "texts": [word.decode() for word in texts], "module": module,
                 "random_constants": random_constants, "kv_cache": kv_cache}
        name, content = "model", _bytes_of(model)
        source: _Source
        if isinstance(model, Family):
            source = (model.text_at, tuple(model.dims))
            name = model.name
            late = True if late is None and not bounds else late
        elif content is None:
            source = os.fsdecode(os.fspath(cast("str | os.PathLike[str]", model)))
        else:
            source = content
        super().__init__(source, name, given, options, late, progress)
        self._input_ports = tuple(map(_port, self._inputs()))
        self._output_ports: tuple[Port, ...] | None = None

    if TYPE_CHECKING:  # the extension's own, with types
        @overload
        def run(self, names: Sequence[str] | None, inputs: Inputs,
                out: None = None) -> list[NDArray[Any]]: ...

        @overload
        def run(self, names: Sequence[str] | None, inputs: Inputs,
                out: Outputs | None = None) -> list[Any]: ...

        def run(self, names: Sequence[str] | None, inputs: Inputs,
                out: Outputs | None = None) -> list[Any]: ...

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The inputs, in order.

        >>> heddle.Session("model.onnx").inputs[0].shape
        ('batch', 3)
        """
        return self._input_ports

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The outputs, in order.

        >>> heddle.Session("model.onnx").outputs[0].name
        'y'
        """
        if self._output_ports is None:
            self._output_ports = tuple(map(_port, self._outputs()))
        return self._output_ports

    @property
    def info(self) -> Info:
        """Facts of the program: device, isa, level, precision, threads, compile_ms, kernels, …

        >>> heddle.Session("model.onnx", level="O1").info["level"]
        'O1'
        """
        return cast("Info", self._info())

    @property
    def origin(self) -> Origin:
        """What an ONNX file says of itself: producer, description, version, opsets, metadata, …

        >>> heddle.Session("model.onnx").origin["opsets"]["ai.onnx"]
        17
        """
        return cast("Origin", self._origin())

    @property
    def notes(self) -> list[str]:
        """Lines that say what was assumed, and which rewrites change numbers.

        >>> heddle.Session("model.onnx", dims={"batch": 2}).notes
        []
        """
        return self._notes()

    def __call__(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """Runs with inputs in order, or by name; returns the output, or a tuple of all.

        >>> heddle.Session("model.onnx")([[1, 2, 3]]).tolist()
        [[0.0, 0.0, 0.0, 0.25]]
        """
        if args and kwargs:
            raise TypeError("inputs in order and by name; wanted one of both")
        feed: Any = args or kwargs
        if len(args) == 1 and isinstance(args[0], dict):
            feed = args[0]
        if out is not None and not isinstance(out, (dict, list, tuple)):
            out = [out]
        results = self.run(None, feed, out)
        return results[0] if len(results) == 1 else tuple(results)

    @overload
    async def run_async(self, names: Sequence[str] | None, inputs: Inputs,
                        out: None = None) -> list[NDArray[Any]]: ...

    @overload
    async def run_async(self, names: Sequence[str] | None, inputs: Inputs,
                        out: Outputs | None = None) -> list[Any]: ...

    async def run_async(self, names: Sequence[str] | None, inputs: Inputs,
                        out: Outputs | None = None) -> list[Any]:
        """As run, without holding up the event loop.

        >>> import asyncio
        >>> session = heddle.Session("model.onnx")
        >>> asyncio.run(session.run_async(["y"], [[[1, 2, 3]]]))[0].shape
        (1, 4)
        """
        import asyncio  # half of the time that numpy takes to import
        return await asyncio.get_running_loop().run_in_executor(
            None, self.run, names, inputs, out)

    def wait(self, seconds: float) -> bool:
        """Waits for a compilation with background=True; whether it is done.

        >>> heddle.Session("model.onnx", background=True, dims={"batch": 2}).wait(60)
        True
        """
        return self._wait(int(seconds * 1000))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the compiled program, with its weights, as a file that heddle.load reads.

        >>> heddle.Session("model.onnx", bounds={"batch": 8}).save("model.heddle")
        >>> heddle.load("model.heddle")([[1, 2, 3]]).shape
        (1, 4)
        """
        self._save(os.fspath(path))

    def explain(self, inputs: Inputs | None = None, **options: Any) -> reports.Explanation:
        """What became of the model, as the command `explain` tells it: kernels, fusions and refusals.

        Keywords are options of the command: kernel="k1f3a…", schedules=True, all=True.

        >>> explanation = heddle.Session("model.onnx", dims={"batch": 2}).explain()
        >>> len(explanation.kernels), explanation.text.splitlines()[0][:10]
        (2, 'model.onnx')
        >>> explanation.html("model.html")
        """
        from . import reports
        return reports.explain(self, inputs, **options)

    def report(self, path: str | os.PathLike[str], inputs: Inputs | None = None,
               **options: Any) -> reports.Report:
        """Writes a page of what was compiled, where its time and memory go, and why (docs/report.md).

        Keywords: profile=True measures, vs="onnxruntime" another engine, too; others are options of
        the command.

        >>> page = heddle.Session("model.onnx", dims={"batch": 2}).report("report.html", profile=True)
        >>> page.data["measured"]["runs"]
        20
        """
        from . import reports
        return reports.report(self, path, inputs, **options)

    def profile(self, inputs: Inputs | None = None, **options: Any) -> reports.Profile:
        """Where the time of a run goes, by kernel; in a process of its own.

        Keywords are options of the command: iterations=100, commands=True, breakdown=True.

        >>> heddle.Session("model.onnx", dims={"batch": 2}).profile().kernels[0]["label"]
        'dot_maximum'
        """
        from . import reports
        return reports.profile(self, inputs, **options)

    def __repr__(self) -> str:
        def text(port: Port) -> str:
            return f"{port.name}: {port.type}" + ("" if port.shape is None else
                                                  "[" + ", ".join(map(str, port.shape)) + "]")
        return (f"<heddle.Session {self._info()['name']} ({', '.join(map(text, self.inputs))}) -> "
                f"({', '.join(map(text, self.outputs))})>")


def compile(model: Model, **options: Any) -> Session:
    """The same as Session(model, **options).

    >>> heddle.compile("model.onnx", dims={"batch": 2}).inputs[0].shape
    (2, 3)
    """
    return Session(model, **options)


def load(path: str | os.PathLike[str], **options: Any) -> Session:
    """A session of a file that Session.save, or `heddle compile`, has written.

    >>> heddle.compile("model.onnx", dims={"batch": 2}).save("model.heddle")
    >>> heddle.load("model.heddle").inputs[0].shape
    (2, 3)
    """
    return Session(path, **options)
