"""IOBinding: inputs and outputs that stay where they are from run to run."""
import ctypes

import numpy

from ..errors import InputError
from ._values import OrtValue, check_device, dtype_of


def _at(address, dtype, shape):
    """The array at an address, which the caller keeps valid."""
    count = int(numpy.prod(shape, dtype=numpy.int64))
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return numpy.frombuffer(memory, dtype).reshape(shape)


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

    def __init__(self, session):
        self._names = [port.name for port in session.get_outputs()]
        self._inputs = {}
        self._bound = {}  # by name: the array to write to, or None
        self._results = []

    def bind_cpu_input(self, name, array):
        self._inputs[name] = array

    def bind_input(self, name, device_type, device_id, element_type, shape, buffer_ptr):
        check_device(device_type)
        self._inputs[name] = _at(buffer_ptr, dtype_of(element_type), tuple(shape))

    def bind_ortvalue_input(self, name, value):
        self._inputs[name] = value.numpy()

    def bind_output(self, name, device_type="cpu", device_id=0, element_type=None, shape=None,
                    buffer_ptr=None):
        check_device(device_type)
        if name not in self._names:
            raise InputError(f"no output {name!r}; the outputs are {', '.join(self._names)}")
        self._bound[name] = (None if buffer_ptr is None else
                             _at(buffer_ptr, dtype_of(element_type), tuple(shape)))

    def bind_ortvalue_output(self, name, value):
        self._bound[name] = value.numpy()

    def run(self, session):
        names = list(self._bound)
        out = {name: array for name, array in self._bound.items() if array is not None}
        self._results = session.run(names, self._inputs, out or None)

    def get_outputs(self):
        return [OrtValue(array) for array in self._results]

    def get_outputs_as_ortvaluevector(self):
        return self.get_outputs()

    def copy_outputs_to_cpu(self):
        return list(self._results)

    def clear_binding_inputs(self):
        self._inputs = {}

    def clear_binding_outputs(self):
        self._bound, self._results = {}, []

    def synchronize_inputs(self):
        """Values lie on the host."""

    def synchronize_outputs(self):
        """Values lie on the host."""
