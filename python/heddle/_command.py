"""The heddle command: finds it, runs it on a session's model, and takes its JSON."""
from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from . import _arrays, _session, errors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .typing import Inputs

_NOT_OPTIONS = {"background"}  # of the command


def program() -> str:
    """Its path: in this package, or the one that the shell would find."""
    inside = pathlib.Path(__file__).parent / "bin" / "heddle"
    found = str(inside) if os.access(inside, os.X_OK) else shutil.which("heddle")
    if found is None:
        raise errors.MachineError(f"no command heddle: neither {inside} nor in PATH; install the "
                                  "package again, or heddle itself")
    return found


class Workspace:
    """A folder with a session's model and values as files, as long as a `with` block."""

    def __init__(self, session: _session.Session,
                 inputs: Inputs | None = None) -> None:
        self._session, self._inputs = session, inputs
        self._stack = contextlib.ExitStack()
        # Of the values, by name of a dimension.
        self._extents: dict[int | str | None, int] = {}

    def __enter__(self) -> Workspace:
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="heddle-"))
        self.folder = pathlib.Path(folder)
        return self

    def __exit__(self, *about: object) -> None:
        self._stack.close()

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def _model(self) -> str:
        model = self._session._recipe["model"]
        if isinstance(model, _session.Family):
            raise errors.Error("a session of a Family has no model file, which the command wants; "
                               "make one of text_at(extents).encode()")
        content = _session._bytes_of(model)
        if content is None:
            return os.fsdecode(os.fspath(model))
        name = self.path("model")
        pathlib.Path(name).write_bytes(content)
        return name

    def _values(self) -> list[str]:
        values = dict(self._session._recipe["fix"] or {})
        given: Any = self._inputs
        if given is not None and not hasattr(given, "items"):
            ports = self._session.inputs
            if len(given) != len(ports):
                raise errors.MissingInput(f"{len(given)} inputs; the model has {len(ports)}")
            given = {port.name: value for port, value in zip(ports, given)}
        for name, value in (given or {}).items():
            values[name] = value
        types = {port.name: port.dtype for port in self._session.inputs}
        arrays = {name: numpy.asarray(value, types.get(name))
                  if isinstance(value, (bool, int, float, list, tuple)) else _arrays.as_numpy(value)
                  for name, value in values.items()}
        if not arrays:
            return []
        for port in self._session.inputs:
            if port.name in arrays and port.shape is not None:
                self._extents.update(zip(port.shape, arrays[port.name].shape))
        _write_npz(self.path("inputs.npz"), arrays)
        return ["--inputs", self.path("inputs.npz")]

    def model_arguments(self) -> list[str]:
        """The model, how it was opened, its values and the options of its compilation."""
        recipe = self._session._recipe
        arguments = [self._model(), *self._values()]
        for name, extent in (recipe["dims"] or {}).items():
            arguments += ["--dim", f"{name}={extent}"]
        for name, most in (recipe["bounds"] or {}).items():
            arguments += ["--dim", f"{name}={self._extents.get(name, most)}<={most}"]
        for name, shape in (recipe["shapes"] or {}).items():
            arguments += ["--shape", f"{name}={'x'.join(map(str, shape))}"]
        for name in recipe["fix"] or {}:
            arguments += ["--fix", name]
        if recipe["module"]:
            arguments += ["--module", recipe["module"]]
        if recipe["random_constants"]:
            arguments.append("--random-constants")
        if recipe["kv_cache"]:
            arguments += ["--kv-cache", recipe["kv_cache"]]
        return arguments + options(recipe["options"])

    def samples(self, samples: Iterable[Mapping[str, Any]]) -> str:
        """A folder with values by name as npz files, one a sample."""
        folder = self.folder / "samples"
        folder.mkdir()
        for number, values in enumerate(samples):
            _write_npz(str(folder / f"{number:06}.npz"),
                       {name: _arrays.as_numpy(value) for name, value in values.items()})
        return str(folder)

    def run(self, command: str, arguments: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """Its text and its JSON. What it refuses is an exception."""
        done = subprocess.run([program(), command, *arguments, "--json", self.path("result.json")],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              errors="replace", check=False)
        if done.returncode not in (0, 1):
            lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
            kind = errors.Error if done.returncode == 2 else errors.MachineError
            raise kind(lines[-1].removeprefix("error: ") if lines else
                       f"heddle {command} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
        data = json.loads(pathlib.Path(self.path("result.json")).read_text())
        return done.stdout, data


def _write_npz(path: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """As numpy.savez, for which an input must not be called "file" or "allow_pickle"."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(name + ".npy", "w", force_zip64=True) as file:
                numpy.lib.format.write_array(file, array)


def options(given: Mapping[str, Any]) -> list[str]:
    """Keywords as options of the command: cosine=0.99 is --cosine 0.99."""
    arguments = []
    for name, value in given.items():
        if value is None or value is False or name in _NOT_OPTIONS:
            continue
        arguments.append("--" + name.replace("_", "-"))
        if value is not True:
            arguments.append(str(value))
    return arguments
