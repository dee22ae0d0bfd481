"""ONNX Runtime's names over heddle: `import heddle.ort as onnxruntime` runs ordinary programs.

>>> import heddle.ort as onnxruntime
>>> onnxruntime.get_available_providers()[-1]
'CPUExecutionProvider'
"""
from .. import __version__
from ._binding import IOBinding
from ._options import (ExecutionMode, GraphOptimizationLevel, OrtAllocatorType, RunOptions,
                       SessionOptions)
from ._providers import get_all_providers, get_available_providers, get_device
from ._session import InferenceSession, ModelMetadata, NodeArg
from ._values import OrtDevice, OrtMemType, OrtValue

__all__ = ["ExecutionMode", "GraphOptimizationLevel", "IOBinding", "InferenceSession",
           "ModelMetadata", "NodeArg", "OrtAllocatorType", "OrtDevice", "OrtMemType", "OrtValue",
           "RunOptions", "SessionOptions", "disable_telemetry_events",
           "enable_telemetry_events", "get_all_providers", "get_available_providers",
           "get_build_info", "get_device", "get_version_string", "set_default_logger_severity",
           "set_default_logger_verbosity"]


def get_version_string() -> str:
    """heddle's version, which says nothing about ONNX Runtime's.

    >>> heddle.ort.get_version_string() == heddle.__version__
    True
    """
    return __version__


def get_build_info() -> str:
    """heddle's name and version.

    >>> heddle.ort.get_build_info().split()[0]
    'heddle'
    """
    return f"heddle {__version__}"


def set_default_logger_severity(severity: int) -> None:
    """Without effect: heddle's log is logging.getLogger("heddle").

    >>> heddle.ort.set_default_logger_severity(3)
    """


def set_default_logger_verbosity(verbosity: int) -> None:
    """Without effect: heddle's log is logging.getLogger("heddle").

    >>> heddle.ort.set_default_logger_verbosity(0)
    """


def disable_telemetry_events() -> None:
    """There are none.

    >>> heddle.ort.disable_telemetry_events()
    """


def enable_telemetry_events() -> None:
    """There are none.

    >>> heddle.ort.enable_telemetry_events()
    """
