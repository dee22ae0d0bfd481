"""OrtValue: an array, as ONNX Runtime passes it around."""
from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import numpy

from .. import _arrays
from ..errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from ..typing import ArrayInput, SupportsDLPack

# ONNX's numbers of element types and ONNX Runtime's words, by what numpy calls them.
TYPES = {"float32": (1, "float"), "uint8": (2, "uint8"), "int8": (3, "int8"),
         "uint16": (4, "uint16"), "int16": (5, "int16"), "int32": (6, "int32"),
         "int64": (7, "int64"), "object": (8, "string"), "bool": (9, "bool"),
         "float16": (10, "float16"), "float64": (11, "double"), "uint32": (12, "uint32"),
         "uint64": (13, "uint64"), "complex64": (14, "complex64"),
         "complex128": (15, "complex128"), "bfloat16": (16, "bfloat16"),
         "float8_e4m3fn": (17, "float8e4m3fn"), "float8_e4m3fnuz": (18, "float8e4m3fnuz"),
         "float8_e5m2": (19, "float8e5m2"), "float8_e5m2fnuz": (20, "float8e5m2fnuz"),
         "uint4": (21, "uint4"), "int4": (22, "int4"), "float4_e2m1fn": (23, "float4e2m1")}


def tensor_type(dtype: numpy.dtype[Any]) -> str:
    """'tensor(float)' of float32."""
    name = "object" if dtype.kind in "OUST" else dtype.name
    return f"tensor({TYPES.get(name, (0, name))[1]})"


def dtype_of(element_type: DTypeLike | int) -> numpy.dtype[Any]:
    """The dtype of a dtype, a numpy type, or ONNX's number."""
    if isinstance(element_type, int):
        for name, (number, _) in TYPES.items():
            if number == element_type:
                found = [n for n in range(32) if _arrays.type_name(n) == name]
                known = _arrays.dtype_of(found[0]) if found else None
                return known if known is not None else numpy.dtype(name)
        raise InputError(f"element type {element_type}: wanted a numpy type, or a number of ONNX")
    return numpy.dtype(element_type)


class OrtMemType(enum.IntEnum):
    """Of ONNX Runtime's memory, all of which is the host's here."""
    DEFAULT = 0
    CPU_INPUT = -2
    CPU_OUTPUT = -1


class OrtDevice:
    """Where values lie: on the host.

    >>> OrtDevice.make("cpu", 0).device_type() == OrtDevice.cpu()
    True
    """

    def __init__(self, name: str = "cpu", number: int = 0) -> None:
        self._name, self._number = name, number

    @staticmethod
    def make(name: str, number: int, *_: object) -> OrtDevice:
        """A device; one that is not the host is an error."""
        check_device(name)
        return OrtDevice(name, number)

    @staticmethod
    def cpu() -> int:
        """The host's device_type."""
        return 0

    def device_id(self) -> int:
        """Its number."""
        return self._number

    def device_type(self) -> int:
        """The kind of device."""
        return 0

    @staticmethod
    def default_memory() -> int:
        """The kind of memory."""
        return 0


def check_device(name: str) -> None:
    """Raises where values cannot lie there."""
    if str(name).lower() not in ("cpu", "cuda_pinned"):
        raise InputError(f"device {name!r}: values of heddle.ort lie on the host; wanted 'cpu'. A "
                         "session with CUDAExecutionProvider copies them")


class OrtValue:
    """A tensor on the host.

    >>> OrtValue.ortvalue_from_numpy(numpy.zeros((2, 3), numpy.float32)).shape()
    [2, 3]
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array

    @classmethod
    def ortvalue_from_numpy(cls, array: ArrayLike, device_type: str = "cpu",
                            device_id: int = 0) -> OrtValue:
        """The array itself where it is dense, else a copy."""
        check_device(device_type)
        return cls(numpy.ascontiguousarray(array) if numpy.ndim(array) else numpy.asarray(array))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, array: ArrayLike,
                                           onnx_element_type: int) -> OrtValue:
        """The array's bits as another type of the same size, by ONNX's number."""
        return cls(numpy.ascontiguousarray(array).view(dtype_of(onnx_element_type)))

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape: Sequence[int], element_type: DTypeLike | int,
                                     device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """A tensor to be written to."""
        check_device(device_type)
        return cls(numpy.empty(tuple(shape), dtype_of(element_type)))

    @classmethod
    def from_dlpack(cls, tensor: SupportsDLPack, is_bool_tensor: bool = False) -> OrtValue:
        """The memory of another library's tensor on the host."""
        array = _arrays.as_numpy(tensor)
        return cls(array.view(bool) if is_bool_tensor else array)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __array__(self, dtype: DTypeLike | None = None,
                  copy: bool | None = None) -> NDArray[Any]:
        return numpy.asarray(self._array, dtype)

    def numpy(self) -> NDArray[Any]:
        """The array itself, not a copy."""
        return self._array

    def shape(self) -> list[int]:
        """The extents."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """'tensor(float)'."""
        return tensor_type(self._array.dtype)

    def element_type(self) -> int:
        """ONNX's number of the element type."""
        name = "object" if self._array.dtype.kind in "OUST" else self._array.dtype.name
        return TYPES[name][0]

    def tensor_size_in_bytes(self) -> int:
        """The bytes of its elements."""
        return self._array.nbytes

    def device_name(self) -> str:
        """'cpu'."""
        return "cpu"

    def data_ptr(self) -> int:
        """The address of its memory."""
        return self._array.ctypes.data

    def has_value(self) -> bool:
        """True."""
        return True

    def is_tensor(self) -> bool:
        """True."""
        return True

    def is_tensor_sequence(self) -> bool:
        """False."""
        return False

    def is_sparse_tensor(self) -> bool:
        """False."""
        return False

    def update_inplace(self, array: NDArray[Any]) -> None:
        """Writes values of the same shape and type to its memory.

        >>> value = OrtValue.ortvalue_from_numpy(numpy.zeros(2, numpy.float32))
        >>> value.update_inplace(numpy.ones(2, numpy.float32))
        >>> value.numpy().tolist()
        [1.0, 1.0]
        """
        if array.shape != self._array.shape or array.dtype != self._array.dtype:
            raise InputError(f"update_inplace: {array.dtype}{list(array.shape)}; wanted "
                             f"{self._array.dtype}{self.shape()}")
        self._array[...] = array


def array_of(value: OrtValue | ArrayInput) -> ArrayInput:
    """The array of a value, or what is one."""
    return value.numpy() if isinstance(value, OrtValue) else value
