"""IOBinding: inputs and outputs that stay where they are from run to run."""
from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy

from ..errors import InputError
from ._values import OrtValue, check_device, dtype_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import DTypeLike, NDArray

    from .._session import Session
    from ..typing import ArrayInput
    from ._session import InferenceSession


def _at(address: int, dtype: numpy.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The array at an address, which the caller keeps valid."""
    count = int(numpy.prod(shape, dtype=numpy.int64))
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return numpy.frombuffer(memoryview(memory), dtype).reshape(shape)


class IOBinding:
    """Made by InferenceSession.io_binding.

    >>> session = heddle.ort.InferenceSession("model.onnx")
    >>> binding = session.io_binding()
    >>> binding.bind_cpu_input("x", numpy.ones((2, 3), numpy.float32))
    >>> binding.bind_output("y")
    >>> session.run_with_iobinding(binding)
    >>> binding.copy_outputs_to_cpu()[0].shape
    (2, 4)
    """

    def __init__(self, session: InferenceSession) -> None:
        self._names = [port.name for port in session.get_outputs()]
        self._inputs: dict[str, ArrayInput] = {}
        self._bound: dict[str, NDArray[Any] | None] = {}  # the array to write to, or None
        self._results: list[NDArray[Any]] = []

    def bind_cpu_input(self, name: str, array: ArrayInput) -> None:
        """An array on the host, which the runs to come read."""
        self._inputs[name] = array

    def bind_input(self, name: str, device_type: str, device_id: int,
                   element_type: DTypeLike | int, shape: Sequence[int], buffer_ptr: int) -> None:
        """Memory of the caller's, which stays valid as long as there are runs."""
        check_device(device_type)
        self._inputs[name] = _at(buffer_ptr, dtype_of(element_type), tuple(shape))

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        """An OrtValue, which the runs to come read."""
        self._inputs[name] = value.numpy()

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0,
                    element_type: DTypeLike | int | None = None, shape: Sequence[int] | None = None,
                    buffer_ptr: int | None = None) -> None:
        """An output that is wanted; with buffer_ptr it is written to that memory."""
        check_device(device_type)
        if name not in self._names:
            raise InputError(f"no output {name!r}; the outputs are {', '.join(self._names)}")
        if buffer_ptr is None:
            self._bound[name] = None
            return
        if element_type is None or shape is None:
            raise InputError(f"output {name!r}: memory at an address without element_type or "
                             "shape; give both")
        self._bound[name] = _at(buffer_ptr, dtype_of(element_type), tuple(shape))

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        """An output that is written to an OrtValue."""
        self._bound[name] = value.numpy()

    def run(self, session: Session) -> None:
        """As InferenceSession.run_with_iobinding runs it: session is the heddle.Session."""
        names = list(self._bound)
        out = {name: array for name, array in self._bound.items() if array is not None}
        self._results = session.run(names, self._inputs, out or None)

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, in the order in which they were bound."""
        return [OrtValue(array) for array in self._results]

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        """As get_outputs."""
        return self.get_outputs()

    def copy_outputs_to_cpu(self) -> list[NDArray[Any]]:
        """The outputs of the last run, which lie on the host."""
        return list(self._results)

    def clear_binding_inputs(self) -> None:
        """Forgets the inputs."""
        self._inputs = {}

    def clear_binding_outputs(self) -> None:
        """Forgets the outputs, and the results of the last run."""
        self._bound, self._results = {}, []

    def synchronize_inputs(self) -> None:
        """Values lie on the host."""

    def synchronize_outputs(self) -> None:
        """Values lie on the host."""
