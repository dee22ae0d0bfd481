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
    """An input has no value."""


class UnknownName(InputError):
    """There is no input or output of that name."""


class MachineError(Error, RuntimeError):
    """What the machine cannot do, such as writing a file."""


class OutOfMemory(MachineError, MemoryError):
    """There is too little memory."""


class DeviceError(MachineError):
    """There is no such device, or it failed."""


class Cancelled(Error):
    """The run or the compilation was ended: Session.cancel, a progress function."""
