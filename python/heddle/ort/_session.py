"""InferenceSession."""
import threading
import warnings

from .. import _session as heddle_session
from ..errors import DeviceError, MissingInput
from ._binding import IOBinding
from ._options import RunOptions, SessionOptions, level_of
from ._providers import resolve
from ._values import OrtValue, array_of, tensor_type


class NodeArg:
    """An input or an output: name, shape (numbers, names, None), type ('tensor(float)').

    >>> InferenceSession("model.onnx").get_outputs()[0].shape
    ['batch', 4]
    """

    def __init__(self, port):
        self.name = port.name
        self.shape = list(port.shape) if port.shape is not None else []
        self.type = tensor_type(port.dtype)

    def __repr__(self):
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


class ModelMetadata:
    """producer_name, graph_name, domain, description, graph_description, version,
    custom_metadata_map."""

    def __init__(self, origin):
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

    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options=None,
                 **kwargs):
        self._options = sess_options if sess_options is not None else SessionOptions()
        self._model = (bytes(path_or_bytes) if isinstance(path_or_bytes, (bytearray, memoryview))
                       else path_or_bytes)
        if hasattr(self._model, "SerializeToString"):
            self._model = self._model.SerializeToString()
        self._options.warn_of_what_has_no_effect()
        self.heddle = None
        self.set_providers(providers, provider_options)

    def set_providers(self, providers=None, provider_options=None):
        """Compiles for the first of these that works."""
        chosen = resolve(providers, provider_options)
        options = {"level": level_of(self._options.graph_optimization_level),
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
        self._outputs = None
        self._run = self.heddle.run

    def get_inputs(self):
        return self._inputs

    def get_outputs(self):
        if self._outputs is None:
            self._outputs = [NodeArg(port) for port in self.heddle.outputs]
        return self._outputs

    def get_overridable_initializers(self):
        return []

    def get_providers(self):
        return [name for name, _, _ in self._providers]

    def get_provider_options(self):
        return {name: options for name, options, _ in self._providers}

    def get_session_options(self):
        return self._options

    def get_modelmeta(self):
        return ModelMetadata(self.heddle.origin)

    def run(self, output_names, input_feed, run_options=None):
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

    def _run_with(self, run_options, output_names, input_feed):
        run_options.begin(self.heddle)
        try:
            return self.run(output_names, input_feed)
        finally:
            run_options.end(self.heddle)

    def run_async(self, output_names, input_feed, callback, user_data, run_options=None):
        """Runs on a thread of its own, which calls callback(results, user_data, error)."""
        def work():
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as failure:  # noqa: BLE001: the callback is told of all of them
                results, error = None, str(failure)
            callback(results, user_data, error)
        threading.Thread(target=work, daemon=True).start()

    def run_with_ort_values(self, output_names, input_dict_ort_values, run_options=None):
        feed = {name: value.numpy() for name, value in input_dict_ort_values.items()}
        return [OrtValue(array) for array in self.run(output_names, feed, run_options)]

    def run_with_iobinding(self, iobinding, run_options=None):
        options = run_options if run_options is not None else RunOptions()
        options.begin(self.heddle)
        try:
            iobinding.run(self.heddle)
        finally:
            options.end(self.heddle)

    def io_binding(self):
        return IOBinding(self)

    def disable_fallback(self):
        """Providers are tried in order, once."""

    def enable_fallback(self):
        """Providers are tried in order, once."""

    def end_profiling(self):
        raise NotImplementedError("heddle.ort has no profiles; heddle profile shows where time "
                                  "goes")
