"""PyTorch's linear layer and cross entropy in pieces of the batch: here as they are, in one piece."""
from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch

Tensor = torch.Tensor


def _loss(x: Tensor, matrix: Tensor, target: Tensor, bias: Tensor | None, weight: Tensor | None,
          reduction: str, ignored: int, smoothing: float) -> Tensor:
    logits = torch.nn.functional.linear(x, matrix, bias)
    return torch.nn.functional.cross_entropy(logits, target, weight, ignore_index=ignored,
                                             reduction=reduction, label_smoothing=smoothing)


def _chunked(x: Tensor, matrix: Tensor, target: Tensor, bias: Tensor | None, weight: Tensor | None,
             reduction: str, ignored: int, smoothing: float, size: int, policy: str,
             dtype: torch.dtype, retained: bool, *gradients: bool) -> Any:
    """Without gradients: that operator gives them together with its result."""
    if any(gradients) or x.dtype != torch.float32 or dtype != x.dtype:
        return NotImplemented
    loss = _loss(x, matrix, target, bias, weight, reduction, ignored, smoothing)
    return loss, x.new_empty(0, 0), x.new_empty(0, 0), x.new_empty(0)


def _chunked_no_reduction(x: Tensor, matrix: Tensor, target: Tensor, bias: Tensor | None,
                          weight: Tensor | None, ignored: int, size: int, policy: str,
                          dtype: torch.dtype) -> Any:
    if x.dtype != torch.float32 or dtype != x.dtype:
        return NotImplemented
    return _loss(x, matrix, target, bias, weight, "none", ignored, 0.0)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By operator, of this PyTorch."""
    try:
        importlib.import_module("torch.nn.modules.linear_cross_entropy")  # registers them
    except ImportError:  # an older one
        return {}
    found = {}
    for name, function in (("_linear_cross_entropy_batch_chunked", _chunked),
                           ("_linear_cross_entropy_batch_chunked_no_reduction",
                            _chunked_no_reduction)):
        operator = getattr(torch.ops.torch_nn, name, None)
        if operator is not None:
            found[operator.default] = function
    return found
