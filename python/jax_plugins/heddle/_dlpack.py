"""DLPack: arrays of the platform "heddle" lie in the host's memory, and are shared as such.

jaxlib makes tensors of DLPack for its own platforms alone, so numpy makes them here, and what others
made goes by way of jaxlib's platform "cpu". No step copies.
"""
from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

PLATFORM = "heddle"
_CPU = (1, 0)  # kDLCPU, its device
_BFLOAT = 4  # kDLBfloat


class _Tensor(ctypes.Structure):
    """The beginning of a DLManagedTensor."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("type_code", ctypes.c_uint8), ("type_bits", ctypes.c_uint8)]


def _shared(view: Any) -> Any:
    """The same memory without the mark that it is not to be written, which a DLManagedTensor lacks;
    it holds the array."""
    if view.nbytes == 0:
        return np.empty(view.shape, view.dtype)
    memory = (ctypes.c_char * view.nbytes).from_address(view.ctypes.data)
    memory.array = view
    return np.frombuffer(memory, view.dtype).reshape(view.shape)


def _export(array: Any, copy: bool | None) -> Any:
    """A capsule. The array's memory stays as it is while the capsule's consumer has it: a donated
    array's result then lies elsewhere."""
    from jax._src import dlpack
    if not dlpack.is_supported_dtype(array.dtype):
        raise BufferError(f"DLPack has no arrays of {array.dtype}")
    view = np.asarray(array)
    shared = view.copy() if copy else _shared(view)
    if shared.dtype != ml_dtypes.bfloat16:
        return shared.__dlpack__()
    capsule = shared.view(np.uint16).__dlpack__()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    _Tensor.from_address(pointer_of(capsule, b"dltensor")).type_code = _BFLOAT
    return capsule


def _dlpack(original: Callable[..., Any], self: Any, *, stream: Any = None,
            max_version: tuple[int, int] | None = None,
            dl_device: tuple[Any, int] | None = None, copy: bool | None = None) -> Any:
    """In place of jax.Array.__dlpack__."""
    if self.platform() != PLATFORM:
        return original(self, stream=stream, max_version=max_version, dl_device=dl_device,
                        copy=copy)
    if dl_device is not None and (int(dl_device[0]), dl_device[1]) != _CPU:
        raise BufferError(f"an array on heddle's device is in the host's memory, which is DLPack's "
                          f"device {_CPU}; {tuple(dl_device)} was asked for")
    return _export(self, copy)


def _dlpack_device(original: Callable[..., Any], self: Any) -> tuple[Any, int]:
    """In place of jax.Array.__dlpack_device__."""
    if self.platform() != PLATFORM:
        found: tuple[Any, int] = original(self)
        return found
    from jax._src import dlpack
    names: Any = dlpack  # the type is of another module in other versions
    return names.DLDeviceType.kDLCPU, 0


def _is_here(device: Any, imported: Any) -> bool:
    """Whether an array that jaxlib took over on `imported` is wanted on heddle's `device`; None: on
    the default one."""
    from jax._src import xla_bridge
    wanted = device.platform if device is not None else xla_bridge.default_backend()
    return bool(imported.platform == "cpu" and wanted == PLATFORM)


def _check_device(original: Callable[..., Any], device: Any, imported: Any,
                  copy: bool | None) -> None:
    """In place of jax._src.dlpack._check_device: between the two there is nothing to copy."""
    if not _is_here(device, imported):
        original(device, imported, copy)


def _place_array(original: Callable[..., Any], array: Any, device: Any, imported: Any,
                 copy: bool | None) -> Any:
    """In place of jax._src.dlpack._place_array."""
    if not _is_here(device, imported):
        return original(array, device, imported, copy)
    import jax
    view = np.asarray(array)
    placed = jax.device_put(view, device)
    if copy is False and view.nbytes > 0 and placed.unsafe_buffer_pointer() != view.ctypes.data:
        raise ValueError("the array's memory is not aligned to 64 bytes, as heddle's arrays are, "
                         "and copy=False was asked for; use copy=None or copy=True")
    return placed


def register() -> None:
    """Gives JAX's arrays on "heddle" their part of the array API."""
    from jax._src import array, dlpack

    def replace(where: Any, name: str, function: Callable[..., Any]) -> None:
        original = getattr(where, name)

        @functools.wraps(original)
        def replaced(*arguments: Any, **rest: Any) -> Any:
            return function(original, *arguments, **rest)
        setattr(where, name, replaced)

    replace(array.ArrayImpl, "__dlpack__", _dlpack)
    replace(array.ArrayImpl, "__dlpack_device__", _dlpack_device)
    ways: dict[str, Callable[..., Any]] = {"_check_device": _check_device,
                                           "_place_array": _place_array}
    for name, function in ways.items():
        if hasattr(dlpack, name):  # older ones have none: arrays come by way of "cpu"
            replace(dlpack, name, function)
