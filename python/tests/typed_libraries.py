"""What heddle takes of other libraries, for types_test.py: checked, not run."""
from __future__ import annotations

import heddle
import heddle.backend
import heddle.ort
import heddle.torch
import jax
import jax.export
import ml_dtypes
import numpy as np
import onnx
import torch


def models(proto: onnx.ModelProto, program: torch.onnx.ONNXProgram,
           exported: jax.export.Exported) -> list[heddle.Session]:
    heddle.ort.InferenceSession(proto, providers=["CPUExecutionProvider"], provider_options=[{}])
    return [heddle.Session(proto), heddle.compile(program), heddle.Session(exported)]


def arrays(session: heddle.Session, tensor: torch.Tensor, array: jax.Array) -> None:
    session.run(None, {"x": tensor, "y": array, "z": np.zeros(3, ml_dtypes.bfloat16)})
    session.run(None, [tensor, array, np.float32(1), 1.5, True, [1, 2], [["text"]]])
    tensors: dict[str, torch.Tensor] = {"x": tensor}
    session.run(["y"], tensors, {"y": torch.empty(2)})
    session(tensor, out=torch.empty(2))
    value = heddle.ort.OrtValue.from_dlpack(tensor)
    session.run(None, {"x": value, "y": array})
    heddle.check(session, tensors)
    heddle.quantize(session, "small.onnx", [tensors, {"x": array}])


def shapes(proto: onnx.ModelProto, node: onnx.NodeProto, tensor: torch.Tensor) -> None:
    heddle.Session(proto, shapes={"x": tensor.shape, "y": np.ones(3).shape}, fix={"z": tensor})
    heddle.backend.run_node(node, [tensor])


def compiled(model: torch.nn.Module, tensor: torch.Tensor) -> str:
    torch.compile(model, backend=heddle.torch.backend, options={"threads": 2})
    explained: heddle.torch.Explained = heddle.torch.explain(model, tensor)
    return explained.graphs[0].kind
