"""SessionOptions and RunOptions."""
from __future__ import annotations

import enum
import threading
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .._session import Session
    from ._values import OrtValue


class GraphOptimizationLevel(enum.IntEnum):
    """ONNX Runtime's levels: heddle's O0, O1, and O2 for the others.

    >>> options = heddle.ort.SessionOptions()
    >>> options.graph_optimization_level = heddle.ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    >>> heddle.ort.InferenceSession("model.onnx", options).heddle.info["level"]
    'O1'
    """
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Of SessionOptions.execution_mode: without effect."""
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class OrtAllocatorType(enum.IntEnum):
    """Of ONNX Runtime's allocators, which heddle has no use for."""
    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


def level_of(level: int) -> str:
    """heddle's level."""
    return {0: "O0", 1: "O1"}.get(int(level), "O2")


class _Entries:
    """Configuration by strings: kept, without effect."""

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}


class SessionOptions(_Entries):
    """What has a meaning for heddle: intra_op_num_threads, graph_optimization_level, overrides of
    free dimensions by name, add_initializer. The rest is kept, and has no effect.

    >>> options = SessionOptions()
    >>> options.intra_op_num_threads = 1
    >>> options.add_free_dimension_override_by_name("batch", 2)
    >>> heddle.ort.InferenceSession("model.onnx", options).get_inputs()[0].shape
    [2, 3]
    """

    def __init__(self) -> None:
        super().__init__()
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = 0
        self.graph_optimization_level: int = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.inter_op_num_threads = 0
        self.intra_op_num_threads = 0
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self.profile_file_prefix = "onnxruntime_profile_"
        self.use_deterministic_compute = False
        self.dims: dict[str, int] = {}
        self.initializers: dict[str, OrtValue] = {}

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fixes a dynamic dimension."""
        self.dims[name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Without effect, which it warns of."""
        warnings.warn(f"heddle.ort: dimensions have names only; the override of denotation "
                      f"{denotation!r} has no effect", stacklevel=2)

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """Makes an input a constant of the model."""
        self.initializers[name] = value

    def add_external_initializers(self, names: Iterable[str],
                                  values: Iterable[OrtValue]) -> None:
        """Makes inputs constants of the model."""
        self.initializers.update(zip(names, values))

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Is kept, without effect."""
        self._entries[key] = str(value)

    def get_session_config_entry(self, key: str) -> str:
        """What add_session_config_entry has kept."""
        if key not in self._entries:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        return self._entries[key]

    def register_custom_ops_library(self, path: str) -> None:
        """Raises NotImplementedError."""
        raise NotImplementedError(f"{path}: heddle cannot use ONNX Runtime's custom operators")

    def warn_of_what_has_no_effect(self) -> None:
        """Warns of options that a program may rely on."""
        if self.enable_profiling:
            warnings.warn("heddle.ort: enable_profiling has no effect; heddle profile shows where "
                          "time goes", stacklevel=3)
        if self.optimized_model_filepath:
            warnings.warn("heddle.ort: optimized_model_filepath has no effect; heddle opt --emit "
                          "onnx writes the graph", stacklevel=3)


class RunOptions(_Entries):
    """terminate = True, also from another thread, ends the sessions' runs that have these options;
    the rest is kept, and has no effect.

    >>> options = RunOptions()
    >>> options.terminate = True
    >>> heddle.ort.InferenceSession("model.onnx").run(None, {"x": [[1, 2, 3]]}, options)
    Traceback (most recent call last):
    heddle.errors.Cancelled: RunOptions.terminate is True; set it to False to run
    """

    def __init__(self) -> None:
        super().__init__()
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.training_mode = False
        self._terminate = False
        self._running: list[Session] = []
        self._lock = threading.Lock()

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Is kept, without effect."""
        self._entries[key] = str(value)

    def get_run_config_entry(self, key: str) -> str:
        """What add_run_config_entry has kept."""
        return self._entries[key]

    @property
    def terminate(self) -> bool:
        """Whether runs with these options end; may be set while they run."""
        return self._terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        with self._lock:
            self._terminate = bool(value)
            if value:
                for session in self._running:
                    session.cancel()

    def begin(self, session: Session) -> None:
        """A run of the session begins."""
        from ..errors import Cancelled
        with self._lock:
            if self._terminate:
                raise Cancelled("RunOptions.terminate is True; set it to False to run")
            self._running.append(session)

    def end(self, session: Session) -> None:
        """A run of the session has ended."""
        with self._lock:
            self._running.remove(session)
