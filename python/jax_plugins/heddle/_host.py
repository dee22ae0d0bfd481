"""Functions of Python behind custom calls of compiled programs, by way of heddle's C interface."""
from __future__ import annotations

import ctypes
import json
import threading
import traceback
import uuid
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    # Arrays (and what backend_config adds) in, arrays out, in order.
    _Function = Callable[..., Any]

TARGET = "heddle_python"
MOST_TYPES = 64  # numbers of element types that are asked for


class _Array(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("rank", ctypes.c_int64),
                ("dims", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p)]


class _Call(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("target", ctypes.c_char_p),
                ("config", ctypes.c_char_p), ("arguments", ctypes.POINTER(_Array)),
                ("argument_count", ctypes.c_int64), ("results", ctypes.POINTER(_Array)),
                ("result_count", ctypes.c_int64), ("error", ctypes.POINTER(ctypes.c_char)),
                ("error_bytes", ctypes.c_int64)]


_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(_Call), ctypes.c_void_p)
_dtypes: dict[int, np.dtype[Any]] = {}  # by number of heddle_type
_named: dict[str, _Function] = {}  # functions that every process has
# Those of one program of this process.
_passing: weakref.WeakValueDictionary[str, Passing] = weakref.WeakValueDictionary()
_process = uuid.uuid4().hex


def _dtype_of(name: str) -> np.dtype[Any] | None:
    plain = {"pred": "bool", "c64": "complex64", "c128": "complex128", "bf16": "bfloat16",
             "f16": "float16", "f32": "float32", "f64": "float64"}
    if name in plain:
        name = plain[name]
    elif name[0] in "su" and name[1:].isdigit():
        name = ("int" if name[0] == "s" else "uint") + name[1:]
    elif name[0] == "f" and "e" in name:
        bits, rest = name[1:].split("e", 1)
        name = f"float{bits}_e{rest}"
    if hasattr(ml_dtypes, name):
        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return found
    try:
        return np.dtype(name)
    except TypeError:
        return None


def _view(array: _Array) -> NDArray[Any]:
    """The array's own memory; the function must not keep it."""
    shape = tuple(array.dims[i] for i in range(array.rank))
    dtype = _dtypes[array.type]
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if size == 0:
        return np.zeros(shape, dtype)
    memory = (ctypes.c_char * size).from_address(array.data)
    return np.frombuffer(memoryview(memory), dtype).reshape(shape)


def _function_of(config: str) -> _Function:
    """`config` is a JSON list: a name, and what the named function wants to know."""
    name, *rest = json.loads(config)
    if name in _named:
        return lambda *arrays: _named[name](*arrays, *rest)
    function = _passing.get(name)
    if function is None:
        raise RuntimeError(f"{name}: the function of this callback is gone; it belongs to another "
                           "process, or its program is no longer used")
    return function


def _answer(pointer: Any, _: object) -> int:
    call = pointer.contents
    try:
        config = call.config.decode().strip('"').replace("'", '"')
        arguments = [_view(call.arguments[i]).copy() for i in range(call.argument_count)]
        results = _function_of(config)(*arguments)
        for i in range(call.result_count):
            np.copyto(_view(call.results[i]), results[i], casting="unsafe")
        return 0
    except BaseException:  # pylint: disable=broad-except
        text = traceback.format_exc().encode()[-(call.error_bytes - 1):]
        ctypes.memmove(call.error, text + b"\0", len(text) + 1)
        return 1


_run = _FUNCTION(_answer)


def start(library: str) -> None:
    """`library`: the plug-in's path, which brings libheddle.so."""
    heddle = ctypes.CDLL(library)
    heddle.heddle_type_name.restype = ctypes.c_char_p
    for number in range(MOST_TYPES):
        name = heddle.heddle_type_name(number).decode()
        dtype = None if name == "?" else _dtype_of(name)
        if dtype is not None:
            _dtypes[number] = dtype
    heddle.heddle_register_custom_call(TARGET.encode(), _run, None)


def name_function(name: str, function: _Function) -> None:
    _named[name] = function


class Passing:
    """A function that lives as long as this object, and its name for a program."""
    _count = 0
    _lock = threading.Lock()

    def __init__(self, function: _Function) -> None:
        self.function = function
        with Passing._lock:
            Passing._count += 1
            self.name = f"{_process}.{Passing._count}"
        _passing[self.name] = self

    def __call__(self, *arrays: NDArray[Any]) -> Any:
        return self.function(*arrays)


def config_of(name: str, *rest: Any) -> str:
    """For a custom call's backend_config, which keeps no double quotes."""
    return json.dumps([name, *rest]).replace('"', "'")
