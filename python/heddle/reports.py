"""What heddle says of a model, as objects: bench, check, quantize and tune, and what
Session.explain and Session.profile give.

Each is what the command of that name prints, in a process of its own, for the session's model and
options. It has `data` (the command's JSON, docs/CLI.md), `text`, and shows itself in notebooks.
"""
from __future__ import annotations

import html as _html
import os
import pathlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from . import _command
from ._session import Session

if TYPE_CHECKING:
    from .typing import ArrayInput, Inputs, Model

__all__ = ["Benchmark", "Check", "Explanation", "Profile", "Quantized", "Report", "Tuning", "bench",
           "check", "quantize", "tune"]

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>body {{ font: 14px/1.4 sans-serif; margin: 1em; color-scheme: light dark }}
pre {{ overflow-x: auto }} td, th {{ padding: 0 .6em; text-align: right }}
td:last-child, th:last-child {{ text-align: left }}</style>
<h1>{title}</h1>{body}</html>
"""


class Report:
    """What a command printed (`text`, which str gives, too) and its JSON (`data`).

    >>> report = heddle.check("model.onnx")
    >>> str(report) == report.text, report.data["model"]
    (True, 'model.onnx')
    """

    def __init__(self, text: str, data: dict[str, Any]) -> None:
        self.text, self.data = text, data

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<heddle.{type(self).__name__} of {self.data.get('model', 'a model')}>"

    def _repr_html_(self) -> str:
        return f"<pre>{_html.escape(self.text)}</pre>"

    def html(self, path: str | os.PathLike[str]) -> None:
        """Writes a page.

        >>> heddle.check("model.onnx").html("check.html")
        """
        title = _html.escape(f"{type(self).__name__}: {self.data.get('model', '')}")
        pathlib.Path(path).write_text(_PAGE.format(title=title, body=self._repr_html_()),
                                      encoding="utf-8")


class Explanation(Report):
    """Kernels, their schedules and predicted times, what was fused, what was refused and why."""
    _write: Callable[[str], Report]

    @property
    def kernels(self) -> list[dict[str, Any]]:
        """What the program has of kernels, an entry each.

        >>> heddle.Session("model.onnx").explain().kernels[0]["label"]
        'dot_maximum'
        """
        return cast("list[dict[str, Any]]", self.data["kernels"])

    def html(self, path: str | os.PathLike[str]) -> None:
        """Writes the page of Session.report, which takes another compilation."""
        self._write(os.fspath(path))


class Profile(Report):
    """Where the time of a run goes, by kernel.

    >>> profile = heddle.Session("model.onnx").profile([[[1, 2, 3]]], iterations=10)
    >>> sorted(one["ms"] for one in profile.kernels) == [one["ms"] for one in profile.kernels][::-1]
    True
    """

    @property
    def kernels(self) -> list[dict[str, Any]]:
        """An entry for each kernel: label, ms, flops, bytes, …; the slowest one first."""
        return cast("list[dict[str, Any]]", self.data["kernels"])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{one['ms'] * 1000:.1f}<td>{one['commands']}<td>{_html.escape(one['label'])}"
            for one in self.kernels)
        return f"<table><tr><th>µs<th>count<th>kernel{rows}</table>"


class Benchmark(Report):
    """Latency and throughput, and those of other engines on the same model and inputs."""

    @property
    def median_ms(self) -> float:
        """Of a run.

        >>> heddle.bench("model.onnx", duration=0.1).median_ms > 0
        True
        """
        return cast(float, self.data["latency_ms"]["median"])

    @property
    def ratios(self) -> dict[str, float]:
        """By engine: how many times as long as heddle it takes."""
        return {one["name"].split()[0]: one["ratio"]["median"] for one in self.data["versus"]}


class Check(Report):
    """How far the compiled results are from the reference interpreter's."""

    @property
    def ok(self) -> bool:
        """Whether all are within tolerance.

        >>> heddle.check("model.onnx").ok
        True
        """
        return cast(bool, self.data["pass"])

    def __bool__(self) -> bool:
        return self.ok


class Quantized(Report):
    """What quantisation has done: size, error and speed by layer.

    >>> small = heddle.quantize("product.onnx", "small.onnx", dims={"n": 2}).data
    >>> [layer["op"] for layer in small["layers"]], small["bytes"] < small["float_bytes"]
    (['MatMul'], True)
    """


class Tuning(Report):
    """What was measured, and what is faster now.

    >>> str(heddle.tune("model.onnx", dims={"batch": 2}, budget=1))[:9]
    '1 shape: '
    """


def _session_of(model: Model | Session, options: Mapping[str, Any]) -> Session:
    if isinstance(model, Session):
        if options:
            raise TypeError(f"{', '.join(options)}: options of a model; this session has its own")
        return model
    return Session(model, **options)


_Kind = TypeVar("_Kind", bound=Report)


def _run(kind: type[_Kind], command: str, session: Session, inputs: Inputs | None,
         arguments: list[str]) -> _Kind:
    with _command.Workspace(session, inputs) as space:
        return kind(*space.run(command, [*space.model_arguments(), *arguments]))


def explain(session: Session, inputs: Inputs | None = None, **options: Any) -> Explanation:
    """As Session.explain."""
    result: Explanation = _run(Explanation, "explain", session, inputs, _command.options(options))
    result._write = lambda path: report(session, path, inputs)
    return result


def profile(session: Session, inputs: Inputs | None = None, **options: Any) -> Profile:
    """As Session.profile."""
    return _run(Profile, "profile", session, inputs, _command.options(options))


def report(session: Session, path: str | os.PathLike[str], inputs: Inputs | None = None, *,
           vs: str | Sequence[str] = (), **options: Any) -> Report:
    """As Session.report."""
    arguments = ["-o", os.fspath(path), *_peers(vs), *_command.options(options)]
    return _run(Report, "report", session, inputs, arguments)


def _peers(vs: str | Sequence[str]) -> list[str]:
    peers = [vs] if isinstance(vs, str) else list(vs)
    arguments = [word for peer in peers for word in ("--vs", peer)]
    return [*arguments, "--peer-python", sys.executable] if peers else []


def bench(model: Model | Session, inputs: Inputs | None = None, *, vs: str | Sequence[str] = (),
          duration: float | None = None, iterations: int | None = None, warmup: int | None = None,
          **options: Any) -> Benchmark:
    """Measures a session, or a model with these options; beside "onnxruntime" or "openvino".

    inputs: values by name or in order (None: random ones). The peers run in turn with heddle, in this
    Python.

    >>> result = heddle.bench("model.onnx", duration=0.1)
    >>> result.data["model"], result.ratios
    ('model.onnx', {})
    """
    arguments = _peers(vs)
    arguments += _command.options(
        {"duration": duration, "iterations": iterations, "warmup": warmup})
    return _run(Benchmark, "bench", _session_of(model, options), inputs, arguments)


def check(model: Model | Session, inputs: Inputs | None = None, *, rtol: float | None = None,
          atol: float | None = None, cosine: float | None = None, **options: Any) -> Check:
    """Compares what a session, or a model with these options, computes with the reference
    interpreter. A difference is no exception: `if not heddle.check(session): …`

    >>> print(heddle.check("model.onnx", [[[1, 2, 3]]]).text.splitlines()[-1])
    PASS
    """
    arguments = _command.options({"rtol": rtol, "atol": atol, "cosine": cosine})
    return _run(Check, "check", _session_of(model, options), inputs, arguments)


def quantize(model: Model | Session, output: str | os.PathLike[str],
             calib: str | os.PathLike[str] | Iterable[Mapping[str, ArrayInput]] | None = None,
             **options: Any) -> Quantized:
    """Writes a model with weights of 8 or 4 bits, as `heddle quantize` does.

    calib: a folder of npz files, one a sample; one npz file; or a list of samples, each values by
    name. Other keywords are options of the command: weights="int4", method="kl", block=64, …

    >>> heddle.quantize("model.onnx", "small.onnx", dims={"batch": 2})
    Traceback (most recent call last):
    heddle.errors.Error: model.onnx: nothing to quantise: no product, convolution or table of f32 constants of a useful size
    """
    opening: dict[str, Any] = {
        name: options.pop(name) for name in ("dims", "shapes", "fix", "module") if name in options}
    session = _session_of(model, opening)
    with _command.Workspace(session) as space:
        arguments = [*space.model_arguments(), "-o", os.fspath(output)]
        if calib is not None and not isinstance(calib, (str, os.PathLike)):
            calib = space.samples(calib)
        if calib is not None:
            arguments += ["--calib", os.fspath(calib)]
        return Quantized(*space.run("quantize", arguments + _command.options(options)))


def tune(model: Model | Session, inputs: Inputs | None = None, *, budget: int | None = None,
         candidates: int | None = None, **options: Any) -> Tuning:
    """Measures ways to compute a model, and keeps the best for compilations to come.

    >>> heddle.tune("model.onnx", dims={"batch": 2}, budget=1).data["shapes"]
    1
    """
    arguments = _command.options({"budget": budget, "candidates": candidates})
    return _run(Tuning, "tune", _session_of(model, options), inputs, arguments)
