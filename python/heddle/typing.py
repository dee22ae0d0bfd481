"""Types of what heddle takes and gives, for annotations in programs that use it.

>>> from heddle.typing import ArrayInput
>>> def scores(session: heddle.Session, x: ArrayInput) -> list[float]:
...     return session.run(None, {"x": x})[0][0].tolist()
>>> scores(heddle.Session("model.onnx"), [[1, 2, 3]])
[0.0, 0.0, 0.0, 0.25]
"""
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Union

from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from typing import TypeAlias

    from ._session import Family

__all__ = ["ArrayInput", "Exported", "Info", "Inputs", "Model", "ModelProto", "ONNXProgram",
           "Origin", "Outputs", "SupportsDLPack", "Unsupported"]


class SupportsDLPack(Protocol):
    """An array of another library: a tensor of PyTorch, an array of JAX.

    >>> hasattr(numpy.ones(2), "__dlpack__")
    True
    """

    def __dlpack__(self) -> Any: ...

    def __dlpack_device__(self) -> tuple[Any, Any]: ...


class ModelProto(Protocol):
    """onnx.ModelProto."""

    def SerializeToString(self) -> bytes:  # pylint: disable=invalid-name
        """The content of a file."""
        ...


class ONNXProgram(Protocol):
    """torch.onnx.ONNXProgram, which torch.onnx.export gives."""

    @property
    def model_proto(self) -> ModelProto:
        """The model as ONNX."""
        ...


class Exported(Protocol):
    """jax.export.Exported."""

    @property
    def mlir_module_serialized(self) -> bytes | bytearray:
        """The model as StableHLO's portable bytecode."""
        ...


class Info(TypedDict):
    """Facts of a program: Session.info.

    >>> heddle.Session("model.onnx", threads=1).info["threads"]
    1
    """
    name: str
    format: str
    device: str
    isa: str
    target: str
    level: str
    precision: str
    options: str
    bucket: str
    threads: int
    cache_warm: bool
    pending: bool
    import_ms: float
    compile_ms: float
    compilations: int
    kernels: int
    launches: int
    flops: int
    constant_bytes: int
    temporary_bytes: int


class Origin(TypedDict):
    """What a model's file says of itself: Session.origin."""
    producer: str
    producer_version: str
    domain: str
    description: str
    graph: str
    graph_description: str
    ir_version: int
    version: int
    opsets: dict[str, int]
    metadata: dict[str, str]


class Unsupported(TypedDict):
    """An operator, a type or a form that is not implemented: UnsupportedOperators.unsupported."""
    kind: str
    what: str
    detail: str
    way_out: str
    place: str
    opset: int
    count: int


# What is read as an array: numpy's, DLPack's, buffers, numbers and lists of numbers.
ArrayInput: "TypeAlias" = Union[ArrayLike, SupportsDLPack]
# Inputs of a run: by name, or in order.
Inputs: "TypeAlias" = Union[Mapping[str, ArrayInput], Sequence[ArrayInput]]
# Arrays that a run writes to: by name, or in order. Where there is None, an array is made.
Outputs: "TypeAlias" = Union[dict[str, Any], Sequence[Any]]
# A model: a path, the content of a file, or an object that has it.
Model: "TypeAlias" = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, ModelProto,
                           ONNXProgram, Exported, "Family"]
