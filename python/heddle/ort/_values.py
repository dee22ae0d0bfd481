"""OrtValue: an array, as ONNX Runtime passes it around."""
import enum

import numpy

from .. import _arrays
from ..errors import InputError

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


def tensor_type(dtype):
    """'tensor(float)' of float32."""
    name = "object" if dtype.kind in "OUST" else dtype.name
    return f"tensor({TYPES.get(name, (0, name))[1]})"


def dtype_of(element_type):
    """The dtype of a dtype, a numpy type, or ONNX's number."""
    if isinstance(element_type, int):
        for name, (number, _) in TYPES.items():
            if number == element_type:
                found = [n for n in range(32) if _arrays.type_name(n) == name]
                return _arrays.dtype_of(found[0]) if found else numpy.dtype(name)
        raise InputError(f"element type {element_type}: wanted a numpy type, or a number of ONNX")
    return numpy.dtype(element_type)


class OrtMemType(enum.IntEnum):
    DEFAULT = 0
    CPU_INPUT = -2
    CPU_OUTPUT = -1


class OrtDevice:
    def __init__(self, name="cpu", number=0):
        self._name, self._number = name, number

    @staticmethod
    def make(name, number, *_):
        check_device(name)
        return OrtDevice(name, number)

    @staticmethod
    def cpu():
        return 0

    def device_id(self):
        return self._number

    def device_type(self):
        return 0

    @staticmethod
    def default_memory():
        return 0


def check_device(name):
    if str(name).lower() not in ("cpu", "cuda_pinned"):
        raise InputError(f"device {name!r}: values of heddle.ort lie on the host; wanted 'cpu'. A "
                         "session with CUDAExecutionProvider copies them")


class OrtValue:
    """A tensor on the host.

    >>> OrtValue.ortvalue_from_numpy(numpy.zeros((2, 3), numpy.float32)).shape()
    [2, 3]
    """

    def __init__(self, array):
        self._array = array

    @classmethod
    def ortvalue_from_numpy(cls, array, device_type="cpu", device_id=0):
        check_device(device_type)
        return cls(numpy.ascontiguousarray(array) if numpy.ndim(array) else numpy.asarray(array))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, array, onnx_element_type):
        return cls(numpy.ascontiguousarray(array).view(dtype_of(onnx_element_type)))

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape, element_type, device_type="cpu", device_id=0):
        check_device(device_type)
        return cls(numpy.empty(tuple(shape), dtype_of(element_type)))

    @classmethod
    def from_dlpack(cls, tensor, is_bool_tensor=False):
        array = _arrays.as_numpy(tensor)
        return cls(array.view(bool) if is_bool_tensor else array)

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    def __array__(self, dtype=None, copy=None):
        return numpy.asarray(self._array, dtype)

    def numpy(self):
        return self._array

    def shape(self):
        return list(self._array.shape)

    def data_type(self):
        return tensor_type(self._array.dtype)

    def element_type(self):
        name = "object" if self._array.dtype.kind in "OUST" else self._array.dtype.name
        return TYPES[name][0]

    def tensor_size_in_bytes(self):
        return self._array.nbytes

    def device_name(self):
        return "cpu"

    def data_ptr(self):
        return self._array.ctypes.data

    def has_value(self):
        return True

    def is_tensor(self):
        return True

    def is_tensor_sequence(self):
        return False

    def is_sparse_tensor(self):
        return False

    def update_inplace(self, array):
        if array.shape != self._array.shape or array.dtype != self._array.dtype:
            raise InputError(f"update_inplace: {array.dtype}{list(array.shape)}; wanted "
                             f"{self._array.dtype}{self.shape()}")
        self._array[...] = array


def array_of(value):
    return value.numpy() if isinstance(value, OrtValue) else value
