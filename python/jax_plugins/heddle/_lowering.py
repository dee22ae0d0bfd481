"""How JAX's operations become StableHLO for the platform "heddle", where its default is not it."""
import functools

import numpy as np

from . import _host, _linalg

PLATFORM = "heddle"


def _custom_call(ctx, config, operands, out_avals, has_side_effect=False, token=None):
    """Calls a function of Python. Returns the token after it, and its results."""
    from jax._src import core
    from jax._src.interpreters import mlir

    types = [mlir.aval_to_ir_type(ctx.module_context, aval) for aval in out_avals]
    if token is not None:
        operands = [token, *operands]
        types = [mlir.aval_to_ir_type(ctx.module_context, core.abstract_token), *types]
    call = mlir.custom_call(_host.TARGET, result_types=types, operands=operands,
                            backend_config=config, has_side_effect=has_side_effect)
    results = list(call.results)
    return (results.pop(0) if token is not None else None), results


def _emit_python_callback(original, ctx, callback, token, operands, operand_avals, result_avals, *,
                          has_side_effect, **rest):
    """In place of jax._src.callback.emit_python_callback, which knows only JAX's own platforms."""
    if tuple(ctx.module_context.platforms) != (PLATFORM,):
        return original(ctx, callback, token, operands, operand_avals, result_avals,
                        has_side_effect=has_side_effect, **rest)

    def run(*arrays):
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


def _linalg_rule(name, ctx, *operands, **params):
    from jax._src.interpreters import mlir

    avals = ctx.avals_out
    if any(0 in aval.shape for aval in ctx.avals_in) and name == "svd":
        from jax._src.lax import linalg
        return mlir.lower_fun(linalg._empty_svd, multiple_results=True)(
            ctx, *operands, full_matrices=params["full_matrices"], compute_uv=params["compute_uv"])
    rest = _linalg.arguments(name, params)
    return _custom_call(ctx, _host.config_of("linalg." + name, *rest), operands, avals)[1]


def register(library):
    from jax._src import callback, debugging
    from jax._src.interpreters import mlir
    from jax._src.lax import linalg

    _host.start(library)
    if PLATFORM not in mlir._platforms_with_donation:
        mlir._platforms_with_donation.append(PLATFORM)
    callback.emit_python_callback = functools.partial(_emit_python_callback,
                                                      callback.emit_python_callback)
    mlir.register_lowering(debugging.debug_callback_p, debugging.debug_callback_lowering,
                           platform=PLATFORM, cacheable=False)
    mlir.register_lowering(debugging.debug_print_p, debugging.debug_print_lowering_rule,
                           platform=PLATFORM, cacheable=False)
    for name, function in _linalg.FUNCTIONS.items():
        _host.name_function("linalg." + name, function)
        mlir.register_lowering(getattr(linalg, name + "_p"), functools.partial(_linalg_rule, name),
                               platform=PLATFORM)
