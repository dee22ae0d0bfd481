"""SessionOptions and RunOptions."""
import enum
import threading
import warnings


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class OrtAllocatorType(enum.IntEnum):
    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


def level_of(level):
    """heddle's level."""
    return {0: "O0", 1: "O1"}.get(int(level), "O2")


class _Entries:
    """Configuration by strings: kept, without effect."""

    def __init__(self):
        self._entries = {}


class SessionOptions(_Entries):
    """What has a meaning for heddle: intra_op_num_threads, graph_optimization_level, overrides of
    free dimensions by name, add_initializer. The rest is kept, and has no effect.

    >>> options = SessionOptions()
    >>> options.intra_op_num_threads = 1
    >>> options.add_free_dimension_override_by_name("batch", 2)
    >>> heddle.ort.InferenceSession("model.onnx", options).get_inputs()[0].shape
    [2, 3]
    """

    def __init__(self):
        super().__init__()
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.inter_op_num_threads = 0
        self.intra_op_num_threads = 0
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self.profile_file_prefix = "onnxruntime_profile_"
        self.use_deterministic_compute = False
        self.dims, self.initializers = {}, {}

    def add_free_dimension_override_by_name(self, name, size):
        self.dims[name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation, size):
        warnings.warn(f"heddle.ort: dimensions have names only; the override of denotation "
                      f"{denotation!r} has no effect", stacklevel=2)

    def add_initializer(self, name, value):
        self.initializers[name] = value

    def add_external_initializers(self, names, values):
        self.initializers.update(zip(names, values))

    def add_session_config_entry(self, key, value):
        self._entries[key] = str(value)

    def get_session_config_entry(self, key):
        if key not in self._entries:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        return self._entries[key]

    def register_custom_ops_library(self, path):
        raise NotImplementedError(f"{path}: heddle cannot use ONNX Runtime's custom operators")

    def warn_of_what_has_no_effect(self):
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

    def __init__(self):
        super().__init__()
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.training_mode = False
        self._terminate = False
        self._running = []
        self._lock = threading.Lock()

    def add_run_config_entry(self, key, value):
        self._entries[key] = str(value)

    def get_run_config_entry(self, key):
        return self._entries[key]

    @property
    def terminate(self):
        return self._terminate

    @terminate.setter
    def terminate(self, value):
        with self._lock:
            self._terminate = bool(value)
            if value:
                for session in self._running:
                    session.cancel()

    def begin(self, session):
        from ..errors import Cancelled
        with self._lock:
            if self._terminate:
                raise Cancelled("RunOptions.terminate is True; set it to False to run")
            self._running.append(session)

    def end(self, session):
        with self._lock:
            self._running.remove(session)
