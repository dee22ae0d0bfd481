"""heddle compiles deep-learning models and runs them.

    import heddle
    session = heddle.Session("model.onnx")
    y, = session.run(None, {"x": x})
"""
from typing import TYPE_CHECKING, Any

try:
    from ._core import option_names
except ImportError as error:
    raise ImportError(f"heddle: {error}; is the package installed whole, and for this Python? "
                      "pip install --force-reinstall heddle") from None
from . import errors
from ._core import version as _version
from ._session import Family, Port, Session, compile, load
from .errors import (Cancelled, DeviceError, Error, InputError, MachineError, MissingInput,
                     OutOfMemory, ShapeError, UnknownName, UnsupportedOperators)

__version__ = _version()
_REPORTS = ("bench", "check", "quantize", "tune")  # import what few programs need
__all__ = ["Cancelled", "DeviceError", "Error", "Family", "InputError", "MachineError",
           "MissingInput", "OutOfMemory", "Port", "Session", "ShapeError", "UnknownName",
           "UnsupportedOperators",
           "bench", "check", "compile", "errors", "load", "option_names", "quantize", "tune"]

if TYPE_CHECKING:
    from .reports import bench, check, quantize, tune
else:  # a checker would take any name to be there
    def __getattr__(name: str) -> Any:
        if name in _REPORTS:
            from . import reports
            return getattr(reports, name)
        raise AttributeError(f"module 'heddle' has no attribute {name!r}")
