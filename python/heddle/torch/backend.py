"""The function that torch.compile calls: a Dynamo graph becomes programs of heddle."""
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from functorch.compile import (  # type: ignore[import-untyped, unused-ignore]  # has no types
    make_boxed_func, min_cut_rematerialization_partition)
from torch._dynamo.backends.common import aot_autograd

import heddle

from . import (cross_entropy, draws, ops_counts, ops_elementwise, ops_gamma,  # noqa: F401 rows
               ops_grouped, ops_indexing, ops_ldl, ops_linalg, ops_lu, ops_movement,
               ops_polynomials, ops_pools, ops_products, ops_qr, ops_reductions, ops_samples,
               ops_special, ops_svd)
from .partition import compile_graph
from .table import find

@functools.cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """PyTorch's decompositions of what has no row of its own."""
    table = torch._decomp.core_aten_decompositions()
    more = torch._decomp.get_decompositions([
        getattr(torch.ops.aten, name) for name in _DECOMPOSED if hasattr(torch.ops.aten, name)])
    return {op: by for op, by in {**table, **more, **draws.DECOMPOSITIONS,
                                       **cross_entropy.decompositions()}.items()
            if find(op) is None}


# With a decomposition that is not among the core ones.
_DECOMPOSED = (
    "_native_batch_norm_legit", "_native_batch_norm_legit_functional", "native_batch_norm",
    "_native_batch_norm_legit_no_training", "_batch_norm_with_update_functional",
    "_batch_norm_no_update", "batch_norm_backward", "native_group_norm", "native_layer_norm",
    "_softmax", "_log_softmax", "linalg_vector_norm", "lcm", "dist", "addmv", "index_select",
    "_adaptive_avg_pool2d_backward", "permute_copy",
    "nll_loss2d_backward", "upsample_bilinear2d", "embedding_dense_backward", "hann_window",
    "_fused_rms_norm", "_fused_rms_norm_backward", "grid_sampler_2d", "unfold", "fmod",
    "_prelu_kernel", "_prelu_kernel_backward", "std_mean", "var_mean", "celu", "diagonal_scatter")


_SMALL = b"HloModule small\nENTRY e { ROOT x = f32[] parameter(0) }"


@functools.cache
def check_options(options: tuple[tuple[str, Any], ...]) -> None:
    """options: (name, value) pairs. An error names the one that is none, or its values."""
    known = heddle.option_names()
    for name, _ in options:
        if name not in known:
            raise ValueError(f"torch.compile: no option '{name}' of heddle; the options are "
                             + ", ".join(known))
    heddle.Session(_SMALL, **dict(options))


def backend(gm: torch.fx.GraphModule, example_inputs: Sequence[Any], *,
            options: Mapping[str, Any] | None = None,
            mode: str | None = None) -> Callable[..., Any]:
    """A Dynamo backend: gm as a function of programs of heddle.

    options: of heddle.Session (threads, level, precision, …). Another one, or a
    value that it cannot have, is an error.

    >>> model = torch.nn.Linear(3, 2)
    >>> compiled = torch.compile(model, backend="heddle", options={"threads": 1})
    >>> torch.allclose(compiled(torch.ones(4, 3)), model(torch.ones(4, 3)))
    True
    """
    if mode not in (None, "default"):
        raise ValueError(f"torch.compile: mode '{mode}' is not one of heddle's; use options=")
    options = dict(options or {})
    check_options(tuple(options.items()))

    def compiler(kind: str) -> Callable[..., Any]:
        def compile(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
            return make_boxed_func(compile_graph(graph, kind, options))
        return compile
    return aot_autograd(
        fw_compiler=compiler("forward"), bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"), decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition)(gm, example_inputs)
