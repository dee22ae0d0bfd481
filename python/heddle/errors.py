"""The exceptions that heddle raises. All are heddle.Error; the message says what, where, what was
got, what was wanted and what to do."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .typing import Unsupported

__all__ = ["Cancelled", "DeviceError", "Error", "InputError", "MachineError", "MissingInput",
           "OutOfMemory", "ShapeError", "UnknownName", "UnsupportedOperators"]


class Error(Exception):
    """A model, an option or an array is not what it should be.

    >>> heddle.Session("nowhere.onnx")
    Traceback (most recent call last):
    heddle.errors.Error: nowhere.onnx: cannot be opened: No such file or directory
    """


class UnsupportedOperators(Error, NotImplementedError):
    """The model is fine, but an operator, a type or a form of it is not implemented.

    unsupported is all that the model has of that kind, where it is known: a list of dictionaries with
    kind, what, detail, way_out, place (the first one), opset and count.

    >>> with open("model.onnx", "rb") as file:
    ...     unknown = file.read().replace(b"MatMul", b"MatFoo")
    >>> try:
    ...     heddle.Session(unknown)
    ... except heddle.UnsupportedOperators as error:
    ...     print([one["what"] for one in error.unsupported])
    ['MatFoo']
    """
    unsupported: list[Unsupported] = []


class InputError(Error, ValueError):
    """An array that a run cannot take: of another type, or no array.

    >>> heddle.Session("model.onnx")(numpy.ones((1, 3), numpy.int32))
    Traceback (most recent call last):
    heddle.errors.InputError: input x is s32[1,3]; wanted f32
    """


class ShapeError(InputError):
    """Shapes that do not fit the model, or each other.

    >>> heddle.Session("model.onnx")([[1, 2]])
    Traceback (most recent call last):
    heddle.errors.ShapeError: input x is f32[1,2]; wanted f32[batch,3]
    """


class MissingInput(InputError):
    """An input has no value.

    >>> heddle.Session("model.onnx").run(None, {})
    Traceback (most recent call last):
    heddle.errors.MissingInput: no value for x; the inputs are x
    """


class UnknownName(InputError):
    """There is no input or output of that name.

    >>> heddle.Session("model.onnx").run(["z"], [[[1, 2, 3]]])
    Traceback (most recent call last):
    heddle.errors.UnknownName: no output 'z'; the outputs are y
    """


class MachineError(Error, RuntimeError):
    """What the machine cannot do, such as writing a file.

    >>> issubclass(heddle.OutOfMemory, heddle.MachineError)
    True
    """


class OutOfMemory(MachineError, MemoryError):
    """There is too little memory.

    >>> heddle.Session(b'''HloModule m
    ... ENTRY e {
    ...   x = f32[64,64] parameter(0)
    ...   xx = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ...   ROOT y = f32[64,64] dot(xx, xx), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ... }''', memory_limit=64)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    heddle.errors.OutOfMemory: m: temporaries need 16384 bytes (...), the limit is 64; ...
    """


class DeviceError(MachineError):
    """There is no such device, or it failed.

    >>> heddle.Session("model.onnx", device="cuda:99")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    heddle.errors.DeviceError: cuda: libcuda.so.1 was not found: no NVIDIA driver is installed
    """


class Cancelled(Error):
    """The run or the compilation was ended: Session.cancel, a progress function.

    >>> heddle.Session("model.onnx", progress=lambda step, done, steps, seconds: True)
    Traceback (most recent call last):
    heddle.errors.Cancelled: compilation cancelled before load
    """
