"""ONNX's backend interface, for its test runner:

    import onnx.backend.test
    import heddle.backend
    tests = onnx.backend.test.BackendTest(heddle.backend, __name__)

>>> import heddle.backend
>>> heddle.backend.prepare("model.onnx").run([[[1, 2, 3]]])[0].shape
(1, 4)
"""
from . import _session

__all__ = ["PreparedModel", "is_compatible", "prepare", "run_model", "run_node",
           "supports_device"]


class PreparedModel:
    """What prepare gives: run(inputs) gives the outputs, in order."""

    def __init__(self, session):
        self.session = session

    def run(self, inputs, **_):
        """inputs: arrays in order, or by name, or the only one."""
        if not isinstance(inputs, (list, tuple, dict)):
            inputs = [inputs]
        return tuple(self.session.run(None, inputs))


def supports_device(device):
    """'CPU'; 'CUDA' where there is a GPU.

    >>> supports_device("CPU"), supports_device("ABACUS")
    (True, False)
    """
    kind = device.split(":")[0].upper()
    if kind == "CUDA":
        from .ort import get_available_providers
        return "CUDAExecutionProvider" in get_available_providers()
    return kind == "CPU"


def is_compatible(model, device="CPU", **_):
    """Whether it is worth trying: prepare says what else is wrong."""
    return supports_device(device)


def prepare(model, device="CPU", **options):
    """Compiles an onnx.ModelProto, a path or bytes. options: those of heddle.Session."""
    options.pop("no_check_UNSAFE", None)
    return PreparedModel(_session.Session(model, device=device.lower(), **options))


def run_model(model, inputs, device="CPU", **options):
    """Compiles and runs once.

    >>> run_model("model.onnx", [[[1, 2, 3]]])[0].shape
    (1, 4)
    """
    return prepare(model, device, **options).run(inputs)


def run_node(node, inputs, device="CPU", outputs_info=None, **options):
    """One node: needs the onnx package."""
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
