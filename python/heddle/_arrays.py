"""Arrays of all kinds as memory and a type, for the extension. Its own path is for dense numpy
arrays of ordinary types; what is here takes the others."""
from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# By number of heddle_type: the dtype, or the name of one in ml_dtypes.
_NAMES = ["bool", "int1", "int2", "int4", "int8", "int16", "int32", "int64", "uint1", "uint2",
          "uint4", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
          "float64", "float8_e5m2", "float8_e4m3", "float8_e4m3fn", "float8_e4m3b11fnuz",
          "float8_e3m4", "float8_e5m2fnuz", "float8_e4m3fnuz", "float8_e8m0fnu",
          "float6_e3m2fn", "float6_e2m3fn", "float4_e2m1fn", "complex64", "complex128"]
_NUMBERS = {name: number for number, name in enumerate(_NAMES)}


def type_name(number: int) -> str:
    """What numpy and ml_dtypes call a type of heddle's.

    >>> type_name(17), type_name(16)
    ('float32', 'bfloat16')
    """
    return _NAMES[number] if number < len(_NAMES) else "object"


@functools.lru_cache(maxsize=None)
def dtype_of(number: int) -> np.dtype[Any] | None:
    """The dtype of a type; None: no array has it (a token).

    Types that numpy lacks are those of ml_dtypes; without that package, bytes or 16-bit integers
    with the same bits.
    """
    if number >= len(_NAMES):
        return None
    name = _NAMES[number]
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        found: np.dtype[Any] = np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
        return found
    except (ImportError, AttributeError):
        return np.dtype(np.uint16 if name == "bfloat16" else np.uint8)


def number_of(dtype: np.dtype[Any]) -> int:
    """The type of a dtype; -1: there is none."""
    return _NUMBERS.get(dtype.name, -1)


def _is_foreign_device(value: Any) -> bool:
    device = getattr(value, "__dlpack_device__", None)
    if device is None:
        return False
    kind = int(device()[0])
    return kind not in (1, 3, 11)  # the host's, also what CUDA has pinned


def as_numpy(value: Any, wanted: int = -1) -> NDArray[Any]:
    """A numpy array of the same memory where that can be, else a copy.

    >>> as_numpy([1, 2], 17).dtype
    dtype('float32')
    """
    from .errors import InputError

    if isinstance(value, np.ndarray):
        return value
    if _is_foreign_device(value):
        raise InputError(
            f"an array of {type(value).__name__} on another device; move it to the host first "
            "(x.cpu(), jax.device_get(x))")
    if hasattr(value, "detach"):  # a tensor of PyTorch, of which DLPack wants no gradients
        value = value.detach()
        if str(value.dtype) == "torch.bfloat16":  # which numpy's DLPack does not know
            bits = value.contiguous().view(importlib.import_module("torch").int16)
            return np.from_dlpack(bits).view(dtype_of(_NUMBERS["bfloat16"]) or np.uint16)
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(value)
        except (BufferError, TypeError, ValueError, RuntimeError):
            pass
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        return np.asarray(value)
    if isinstance(value, (memoryview, bytes, bytearray)):
        return np.asarray(memoryview(value))
    dtype = dtype_of(wanted) if wanted >= 0 else None
    try:
        array = np.asarray(value)
        # Numbers and lists have no type of their own; but nothing is lost without being said.
        if dtype is not None and array.dtype != dtype and array.dtype.kind in "biufc":
            array = array.astype(dtype, casting="same_kind" if array.size else "unsafe")
    except (TypeError, ValueError) as error:
        raise InputError(f"{type(value).__name__} is no array of {type_name(wanted)}: "
                         f"{error}") from None
    return array


def _memory(array: NDArray[Any], number: int) -> NDArray[Any]:
    """What has the array's memory as a buffer: bytes where its type has no format."""
    if number in _NARROW:  # of which ml_dtypes leaves the other bits as they come
        return array.astype(np.int8 if _NAMES[number].startswith("int") else np.uint8)
    if number in _WITHOUT_FORMAT:
        array = array.reshape(-1).view(np.uint8 if array.itemsize == 1 else np.uint16)
    return array


_NARROW = {number for number, name in enumerate(_NAMES) if name.endswith(("int1", "int2", "int4"))}
_WITHOUT_FORMAT = _NARROW | {
    number for number, name in enumerate(_NAMES)
    if name.startswith(("float8", "float6", "float4", "bfloat"))}


def dense(value: Any, wanted: int) -> tuple[NDArray[Any], int, tuple[int, ...]]:
    """(buffer, type, extents) of anything that is an array; a copy where it is not dense."""
    from .errors import InputError

    array = as_numpy(value, wanted)
    number = number_of(array.dtype)
    # Without ml_dtypes: the bits.
    if number != wanted and wanted in _WITHOUT_FORMAT and array.dtype == dtype_of(wanted):
        number = wanted
    if number < 0:
        raise InputError(f"an array of {array.dtype}; wanted "
                         f"{type_name(wanted) if wanted >= 0 else 'numbers'}")
    shape = array.shape
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    return _memory(array, number), number, shape


def writable(value: Any) -> tuple[NDArray[Any], int, tuple[int, ...]]:
    """(buffer, type, extents) of an array that a run can write to."""
    from .errors import InputError

    array = as_numpy(value)
    number = number_of(array.dtype)
    if number < 0 or number in _NARROW or not array.flags.c_contiguous or not array.flags.writeable:
        raise InputError(f"out: a {type(value).__name__} of {array.dtype}; wanted a dense array "
                         "of numbers that can be written")
    return _memory(array, number), number, array.shape


def flat_texts(value: Any) -> tuple[list[bytes], tuple[int, ...]]:
    """([bytes], extents) of an array of strings.

    >>> flat_texts([["a", "b"]])
    ([b'a', b'b'], (1, 2))
    """
    from .errors import InputError

    array = np.asarray(value)
    if array.dtype.kind not in "OUST":
        raise InputError(f"an array of {array.dtype}; wanted strings")
    words = []
    for word in array.reshape(-1).tolist():
        if not isinstance(word, (str, bytes)):
            raise InputError(f"an array with {word!r} in it; wanted strings")
        words.append(word.encode() if isinstance(word, str) else word)
    return words, array.shape


def array_of_texts(words: Sequence[str], shape: tuple[int, ...]) -> NDArray[np.object_]:
    """An array of str objects."""
    array = np.empty(len(words), dtype=object)
    array[:] = words
    return array.reshape(shape)
