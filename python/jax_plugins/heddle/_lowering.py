"""How JAX's operations become StableHLO for the platform "heddle", where its default is not it.

Contexts, avals and values of MLIR are JAX's own affair, and have no types here.
"""
from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import _host, _linalg

PLATFORM = "heddle"


def _ir_type(ctx: Any, aval: Any) -> Any:
    from jax._src.interpreters import mlir

    of: Callable[..., Any] = mlir.aval_to_ir_type  # older ones of the aval alone
    with_context = len(inspect.signature(of).parameters) > 1
    return of(ctx.module_context, aval) if with_context else of(aval)


def _custom_call(ctx: Any, config: str, operands: Sequence[Any], out_avals: Sequence[Any],
                 has_side_effect: bool = False, token: Any = None) -> tuple[Any, list[Any]]:
    """Calls a function of Python. Returns the token after it, and its results."""
    from jax._src import core
    from jax._src.interpreters import mlir

    result_types = [_ir_type(ctx, aval) for aval in out_avals]
    if token is not None:
        operands = [token, *operands]
        result_types = [_ir_type(ctx, core.abstract_token), *result_types]
    call = mlir.custom_call(_host.TARGET, result_types=result_types, operands=operands,
                            backend_config=config, has_side_effect=has_side_effect)
    results = list(call.results)
    return (results.pop(0) if token is not None else None), results


def _emit_python_callback(original: Callable[..., Any], ctx: Any, callback: Callable[..., Any],
                          token: Any, operands: Sequence[Any], operand_avals: Sequence[Any],
                          result_avals: Sequence[Any], *, has_side_effect: bool,
                          **rest: Any) -> Any:
    """In place of jax._src.callback.emit_python_callback, which knows only JAX's own platforms."""
    if tuple(ctx.module_context.platforms) != (PLATFORM,):
        return original(ctx, callback, token, operands, operand_avals, result_avals,
                        has_side_effect=has_side_effect, **rest)

    def run(*arrays: Any) -> list[Any]:
        results = callback(*arrays)
        if len(results) != len(result_avals):
            raise RuntimeError("Mismatched number of outputs from callback. "
                               f"Expected: {len(result_avals)}, Actual: {len(results)}")
        from jax._src import dtypes
        results = [np.asarray(dtypes.canonicalize_value(np.asarray(r))) for r in results]
        for i, (result, aval) in enumerate(zip(results, result_avals)):
            if result.shape != aval.shape:
                raise RuntimeError(f"Incorrect output shape for return value #{i}: "
                                   f"Expected: {aval.shape}, Actual: {result.shape}")
            if result.dtype != aval.dtype:
                raise RuntimeError(f"Incorrect output dtype for return value #{i}: "
                                   f"Expected: {aval.dtype}, Actual: {result.dtype}")
        return results

    passing = _host.Passing(run)
    ctx.module_context.add_keepalive(passing)
    token, results = _custom_call(ctx, _host.config_of(passing.name), operands, result_avals,
                                  has_side_effect, token)
    return results, token, passing


def _linalg_rule(name: str, ctx: Any, *operands: Any, **params: Any) -> Any:
    from jax._src.interpreters import mlir

    avals = ctx.avals_out
    if ctx.avals_in[0].dtype not in (np.float32, np.float64, np.complex64, np.complex128):
        raise NotImplementedError(f"Unsupported dtype {ctx.avals_in[0].dtype}")  # LAPACK has none
    if any(0 in aval.shape for aval in ctx.avals_in) and name == "svd":
        from jax._src.lax import linalg
        return mlir.lower_fun(linalg._empty_svd, multiple_results=True)(
            ctx, *operands, full_matrices=params["full_matrices"], compute_uv=params["compute_uv"])
    rest = _linalg.arguments(name, params)
    return _custom_call(ctx, _host.config_of("linalg." + name, *rest), operands, avals)[1]


def _window_of(numbers: Any, operand: Any, updates: Any) -> list[int]:
    """The extent of an update's window in each dimension of the operand."""
    one = set(numbers.inserted_window_dims) | set(numbers.operand_batching_dims)
    extents = iter([updates.shape[d] for d in numbers.update_window_dims])
    return [1 if d in one else next(extents) for d in range(len(operand.shape))]


def _scatter_rule(ctx: Any, operand: Any, indices: Any, updates: Any, *, dimension_numbers: Any,
                  **params: Any) -> Any:
    """JAX drops a window that sticks out of the operand as a whole, StableHLO element by element:
    here such a window moves to where none of its elements is inside."""
    import jax.numpy as jnp
    from jax import lax
    from jax._src.interpreters import mlir
    from jax._src.lax import slicing

    shape = ctx.avals_in[0].shape
    window = _window_of(dimension_numbers, *(ctx.avals_in[i] for i in (0, 2)))
    dims = dimension_numbers.scatter_dims_to_operand_dims
    if any(window[d] > 1 for d in dims) and params["mode"] != slicing.GatherScatterMode.CLIP:
        def move(at: Any) -> Any:
            at = at if at.dtype.itemsize == 8 else lax.convert_element_type(at, jnp.int32)
            def each(extents: Sequence[int]) -> Any:
                return jnp.broadcast_to(np.array(extents, at.dtype), at.shape)
            inside = (at >= 0) & (at <= each([shape[d] - window[d] for d in dims]))
            inside = jnp.all(inside, axis=-1, keepdims=True)
            return jnp.where(inside, at, each([shape[d] for d in dims]))

        from jax._src import core
        aval = ctx.avals_in[1]
        dtype = aval.dtype if aval.dtype.itemsize == 8 else np.dtype(np.int32)
        moved = core.ShapedArray(aval.shape, dtype)
        indices, = mlir.lower_fun(move, multiple_results=False)(
            ctx.replace(primitive=None, avals_in=[aval], avals_out=[moved]), indices)
        ctx = ctx.replace(avals_in=[ctx.avals_in[0], moved, ctx.avals_in[2]])
    return slicing._scatter_lower(ctx, operand, indices, updates,
                                  dimension_numbers=dimension_numbers, **params)


def _approx_top_k_rule(ctx: Any, operand: Any, *, reduction_dimension: int, is_max_k: bool,
                       **_: Any) -> Any:
    """Not approximate here: of JAX's platforms only "tpu" gains by that."""
    from jax import lax
    from jax._src.interpreters import mlir

    def find(x: Any) -> Any:
        at = reduction_dimension % x.ndim
        count = ctx.avals_out[0].shape[at]
        if is_max_k:
            last = x.swapaxes(at, -1)
            return [r.swapaxes(at, -1) for r in lax.top_k(last, count)]
        places = lax.broadcasted_iota(ctx.avals_out[1].dtype, x.shape, at)
        return [lax.slice_in_dim(r, 0, count, axis=at)
                for r in lax.sort((x, places), dimension=at, num_keys=1)]

    return mlir.lower_fun(find, multiple_results=True)(ctx, operand)


def _is_cache_used(original: Callable[[Any], bool], backend: Any) -> bool:
    """JAX's cache of programs knows the platforms that it is for."""
    if backend.platform == PLATFORM:
        backend = types.SimpleNamespace(platform="cpu")
    return original(backend)


def register(library: str) -> None:
    """Tells JAX how its operations are written; `library`: the plug-in's path."""
    from jax._src import callback, compilation_cache, debugging
    from jax._src.interpreters import mlir
    from jax._src.lax import ann, linalg, slicing

    _host.start(library)
    if PLATFORM not in mlir._platforms_with_donation:
        mlir._platforms_with_donation.append(PLATFORM)
    callback.emit_python_callback = functools.partial(_emit_python_callback,
                                                      callback.emit_python_callback)
    compilation_cache.is_cache_used = functools.partial(_is_cache_used,
                                                        compilation_cache.is_cache_used)
    mlir.register_lowering(debugging.debug_callback_p, debugging.debug_callback_lowering,
                           platform=PLATFORM, cacheable=False)
    mlir.register_lowering(debugging.debug_print_p, debugging.debug_print_lowering_rule,
                           platform=PLATFORM, cacheable=False)
    for name, function in _linalg.FUNCTIONS.items():
        _host.name_function("linalg." + name, function)
        mlir.register_lowering(getattr(linalg, name + "_p"), functools.partial(_linalg_rule, name),
                               platform=PLATFORM)
    mlir.register_lowering(ann.approx_top_k_p, _approx_top_k_rule, platform=PLATFORM)
    for name in ["", "_add", "_sub", "_mul", "_min", "_max"]:
        mlir.register_lowering(getattr(slicing, f"scatter{name}_p"), _scatter_rule,
                               platform=PLATFORM)
