"""InferenceSession."""
from __future__ import annotations

import threading
import warnings
from typing import TYPE_CHECKING, Any

from .. import _session as heddle_session
from ..errors import DeviceError, MissingInput
from ._binding import IOBinding
from ._options import RunOptions, SessionOptions, level_of
from ._providers import resolve
from ._values import OrtValue, array_of, tensor_type

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from ..typing import ArrayInput, ModelProto, Origin
    from ._providers import Providers


class NodeArg:
    """An input or an output: name, shape (numbers, names, None), type ('tensor(float)').

    >>> InferenceSession("model.onnx").get_outputs()[0].shape
    ['batch', 4]
    """

    def __init__(self, port: heddle_session.Port) -> None:
        self.name = port.name
        self.shape: list[int | str | None] = list(port.shape) if port.shape is not None else []
        self.type = tensor_type(port.dtype)

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata:
    """producer_name, graph_name, domain, description, graph_description, version,
    custom_metadata_map.

    >>> InferenceSession("model.onnx").get_modelmeta().custom_metadata_map
    {}
    """

    def __init__(self, origin: Origin) -> None:
        self.producer_name = origin["producer"]
        self.graph_name = origin["graph"]
        self.domain = origin["domain"]
        self.description = origin["description"]
        self.graph_description = origin["graph_description"]
        self.version = origin["version"]
        self.custom_metadata_map = origin["metadata"]


class InferenceSession:
    """A model, compiled by heddle. What only heddle has is in `session.heddle`, a heddle.Session.

    >>> session = InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    >>> session.run(None, {"x": numpy.ones((2, 3), numpy.float32)})[0].shape
    (2, 4)
    """

    def __init__(self, path_or_bytes: str | os.PathLike[str] | bytes | bytearray | memoryview |
                 ModelProto, sess_options: SessionOptions | None = None,
                 providers: Providers | None = None,
                 provider_options: Sequence[Mapping[str, Any]] | None = None,
                 **kwargs: Any) -> None:
        self._options = sess_options if sess_options is not None else SessionOptions()
        self._model = (bytes(path_or_bytes) if isinstance(path_or_bytes, (bytearray, memoryview))
                       else path_or_bytes)
        if hasattr(self._model, "SerializeToString"):
            self._model = self._model.SerializeToString()
        self._options.warn_of_what_has_no_effect()
        self.heddle: heddle_session.Session
        self.set_providers(providers, provider_options)

    def set_providers(self, providers: Providers | None = None,
                      provider_options: Sequence[Mapping[str, Any]] | None = None) -> None:
        """Compiles for the first of these that works."""
        chosen = resolve(providers, provider_options)
        options: dict[str, Any] = {
                   "level": level_of(self._options.graph_optimization_level),
                   "dims": self._options.dims or None,
                   "fix": {name: array_of(value)
                           for name, value in self._options.initializers.items()} or None,
                   "threads": self._options.intra_op_num_threads or None}
        for number, (name, _, device) in enumerate(chosen):
            try:
                self.heddle = heddle_session.Session(self._model, device=device, **options)
            except DeviceError as error:
                if number + 1 == len(chosen):
                    raise
                warnings.warn(f"heddle.ort: {name}: {error}; goes on with the next provider",
                              stacklevel=3)
                continue
            self._providers = chosen[number:]
            break
        self._inputs = [NodeArg(port) for port in self.heddle.inputs]
        self._outputs: list[NodeArg] | None = None
        self._run = self.heddle.run

    def get_inputs(self) -> list[NodeArg]:
        """The inputs, in order."""
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in order."""
        if self._outputs is None:
            self._outputs = [NodeArg(port) for port in self.heddle.outputs]
        return self._outputs

    def get_overridable_initializers(self) -> list[NodeArg]:
        """None: initialisers are constants."""
        return []

    def get_providers(self) -> list[str]:
        """The provider that it was compiled for, and those that would have been next."""
        return [name for name, _, _ in self._providers]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of each provider, as text."""
        return {name: options for name, options, _ in self._providers}

    def get_session_options(self) -> SessionOptions:
        """Those that it was made with."""
        return self._options

    def get_modelmeta(self) -> ModelMetadata:
        """What the file says of itself."""
        return ModelMetadata(self.heddle.origin)

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, ArrayInput],
            run_options: RunOptions | None = None) -> list[NDArray[Any]]:
        """A list of arrays: of the outputs named, or of all."""
        if run_options is not None:
            return self._run_with(run_options, output_names, input_feed)
        try:
            return self._run(output_names or None, input_feed)
        except MissingInput:
            known = [port.name for port in self._inputs]
            missing = [name for name in known if name not in input_feed]
            raise MissingInput(f"Required inputs ({missing}) are missing from input feed "
                               f"({list(input_feed)}).") from None

    def _run_with(self, run_options: RunOptions, output_names: Sequence[str] | None,
                  input_feed: Mapping[str, ArrayInput]) -> list[NDArray[Any]]:
        run_options.begin(self.heddle)
        try:
            return self.run(output_names, input_feed)
        finally:
            run_options.end(self.heddle)

    def run_async(self, output_names: Sequence[str] | None, input_feed: Mapping[str, ArrayInput],
                  callback: Callable[[list[NDArray[Any]] | None, Any, str], object],
                  user_data: Any, run_options: RunOptions | None = None) -> None:
        """Runs on a thread of its own, which calls callback(results, user_data, error)."""
        def work() -> None:
            results: list[NDArray[Any]] | None
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as failure:  # noqa: BLE001: the callback is told of all of them
                results, error = None, str(failure)
            callback(results, user_data, error)
        threading.Thread(target=work, daemon=True).start()

    def run_with_ort_values(self, output_names: Sequence[str] | None,
                            input_dict_ort_values: Mapping[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        """As run, with OrtValues."""
        feed = {name: value.numpy() for name, value in input_dict_ort_values.items()}
        return [OrtValue(array) for array in self.run(output_names, feed, run_options)]

    def run_with_iobinding(self, iobinding: IOBinding,
                           run_options: RunOptions | None = None) -> None:
        """Runs with what is bound; the results are in the binding."""
        options = run_options if run_options is not None else RunOptions()
        options.begin(self.heddle)
        try:
            iobinding.run(self.heddle)
        finally:
            options.end(self.heddle)

    def io_binding(self) -> IOBinding:
        """A new binding of this session's inputs and outputs."""
        return IOBinding(self)

    def disable_fallback(self) -> None:
        """Providers are tried in order, once."""

    def enable_fallback(self) -> None:
        """Providers are tried in order, once."""

    def end_profiling(self) -> str:
        """Raises NotImplementedError."""
        raise NotImplementedError("heddle.ort has no profiles; heddle profile shows where time "
                                  "goes")
