"""ONNX's backend interface, for its test runner:

    import onnx.backend.test
    import heddle.backend
    tests = onnx.backend.test.BackendTest(heddle.backend, __name__)

>>> import heddle.backend
>>> heddle.backend.prepare("model.onnx").run([[[1, 2, 3]]])[0].shape
(1, 4)
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _session

if TYPE_CHECKING:
    from collections.abc import Sequence

    import onnx
    from numpy.typing import NDArray

    from .typing import ArrayInput, Inputs, Model

__all__ = ["PreparedModel", "is_compatible", "prepare", "run_model", "run_node",
           "supports_device"]


class PreparedModel:
    """What prepare gives: run(inputs) gives the outputs, in order.

    >>> heddle.backend.prepare("model.onnx").session.inputs[0].name
    'x'
    """

    def __init__(self, session: _session.Session) -> None:
        self.session = session

    def run(self, inputs: Inputs | ArrayInput, **_: Any) -> tuple[NDArray[Any], ...]:
        """inputs: arrays in order, or by name, or the only one.

        >>> y, = heddle.backend.prepare("model.onnx").run({"x": [[1, 2, 3]]})
        >>> y.tolist()
        [[0.0, 0.0, 0.0, 0.25]]
        """
        feed: Any = inputs if isinstance(inputs, (list, tuple, dict)) else [inputs]
        return tuple(self.session.run(None, feed))


def supports_device(device: str) -> bool:
    """'CPU'; 'CUDA' where there is a GPU.

    >>> supports_device("CPU"), supports_device("ABACUS")
    (True, False)
    """
    kind = device.split(":")[0].upper()
    if kind == "CUDA":
        from .ort import get_available_providers
        return "CUDAExecutionProvider" in get_available_providers()
    return kind == "CPU"


def is_compatible(model: Model, device: str = "CPU", **_: Any) -> bool:
    """Whether it is worth trying: prepare says what else is wrong.

    >>> is_compatible("model.onnx"), is_compatible("model.onnx", "ABACUS")
    (True, False)
    """
    return supports_device(device)


def prepare(model: Model, device: str = "CPU", **options: Any) -> PreparedModel:
    """Compiles an onnx.ModelProto, a path or bytes. options: those of heddle.Session.

    >>> prepare("model.onnx", "CPU", dims={"batch": 2}).session.inputs[0].shape
    (2, 3)
    """
    options.pop("no_check_UNSAFE", None)
    return PreparedModel(_session.Session(model, device=device.lower(), **options))


def run_model(model: Model, inputs: Inputs | ArrayInput, device: str = "CPU",
              **options: Any) -> tuple[NDArray[Any], ...]:
    """Compiles and runs once.

    >>> run_model("model.onnx", [[[1, 2, 3]]])[0].shape
    (1, 4)
    """
    return prepare(model, device, **options).run(inputs)


def run_node(node: onnx.NodeProto, inputs: Sequence[ArrayInput], device: str = "CPU",
             outputs_info: object = None, **options: Any) -> tuple[NDArray[Any], ...]:
    """One node: needs the onnx package.

    >>> from onnx import helper                                           # doctest: +SKIP
    >>> run_node(helper.make_node("Abs", ["x"], ["y"]), [numpy.array([-1.5])])  # doctest: +SKIP
    (array([1.5]),)
    """
    import numpy
    from onnx import helper

    arrays = [numpy.asarray(value) for value in inputs]
    names = [name for name in node.input if name]
    graph = helper.make_graph(
        [node], "node",
        [helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
         for name, array in zip(names, arrays)],
        [helper.make_empty_tensor_value_info(name) for name in node.output if name])
    opset = options.pop("opset_version", None)
    imports = [helper.make_opsetid("", opset)] if opset else None
    return run_model(helper.make_model(graph, opset_imports=imports), arrays, device, **options)
