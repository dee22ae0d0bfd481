"""Operators that draw by values which a graph computes, as draws that need none and arithmetic.

Each gives bit for bit what PyTorch's kernel for CPUs gives under the same seed
(python/tests/torch_random_test.py): it draws the same numbers in the same order, and does the same
with them. What the kernel checks of the values, as that a probability is at most 1, is not checked.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor


def _native_dropout(x: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    if train is False or x.numel() == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    if p == 1:  # eager's dropout draws nothing then
        return x * 0, torch.zeros_like(x, dtype=torch.bool)
    # In the order of memory.
    order, strides = list(range(x.dim())), x.stride()
    if not x.is_contiguous():
        order.sort(key=lambda d: -strides[d])
    shape = [x.shape[d] for d in order]
    mask = aten.bernoulli.p(torch.empty(shape, dtype=torch.bool, device=x.device), 1 - p)
    mask = mask.permute([order.index(d) for d in range(x.dim())])
    return x * mask * (1 / (1 - p)), mask


def _bernoulli(p: Tensor, *, generator: Any = None) -> Any:
    return _bernoulli_like(torch.empty_like(p, memory_format=torch.contiguous_format), p,
                           generator=generator)


def _bernoulli_like(x: Tensor, p: Tensor, *, generator: Any = None) -> Any:
    if generator is not None or not x.is_contiguous():
        return NotImplemented
    # In double where p is; else in float, of 24 random bits.
    type = torch.float64 if p.dtype == torch.float64 else torch.float32
    return (torch.rand(x.shape, dtype=type, device=x.device) < p).to(x.dtype)


def _standard_normal(shape: Any, like: Tensor) -> Tensor:
    return torch.randn(shape, dtype=like.dtype, device=like.device)


def _normal_tensors(mean: Tensor, std: Tensor, *, generator: Any = None) -> Any:
    if generator is not None:
        return NotImplemented
    shape = torch.broadcast_shapes(mean.shape, std.shape)  # type: ignore[no-untyped-call]
    return (_standard_normal(shape, mean) * std + mean).to(mean.dtype)


def _normal_std(mean: float, std: Tensor, *, generator: Any = None) -> Any:
    return NotImplemented if generator is not None else _standard_normal(std.shape, std) * std + mean


def _normal_mean(mean: Tensor, std: float = 1, *, generator: Any = None) -> Any:
    if generator is not None:
        return NotImplemented
    drawn = torch.normal(0.0, std, mean.shape, dtype=mean.dtype, device=mean.device)
    return drawn + mean


def _multinomial(weights: Tensor, count: int, replacement: bool = False, *,
                 generator: Any = None) -> Any:
    """The greatest of weights over exponential numbers; with replacement, where uniform numbers
    stand in the running sum."""
    if generator is not None or weights.dtype != torch.float32 or 0 in weights.shape:
        return NotImplemented
    if not replacement or count == 1:
        ratio = weights / aten.exponential.default(torch.empty_like(weights), 1)
        if count == 1:
            return ratio.argmax(-1, keepdim=True)
        return ratio.topk(count)[1]
    wide = weights.double()
    running = (wide.cumsum(-1) / wide.sum(-1, keepdim=True)).float()
    uniform = torch.rand([*weights.shape[:-1], count], dtype=torch.float64, device=weights.device)
    last = weights.shape[-1] - 1
    return torch.searchsorted(running.double(), uniform).clamp(max=last)


def _rrelu(x: Tensor, noise: Tensor, lower: float = 1 / 8, upper: float = 1 / 3,
           training: bool = False, generator: Any = None) -> Any:
    """Where it draws, it draws for negative elements only: how often depends on values."""
    if training:
        return NotImplemented
    return torch.where(x > 0, x, x * ((lower + upper) / 2)), noise


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.native_dropout.default: _native_dropout,
    aten.bernoulli.default: _bernoulli,
    aten.bernoulli.Tensor: _bernoulli_like,
    aten.normal.Tensor_Tensor: _normal_tensors,
    aten.normal.float_Tensor: _normal_std,
    aten.normal.Tensor_float: _normal_mean,
    aten.multinomial.default: _multinomial,
    aten.rrelu_with_noise_functional.default: _rrelu,
}
