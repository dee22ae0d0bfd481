"""Decompositions of matrices by SciPy's LAPACK, as JAX has them on its own CPU platform."""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]
    Arrays = Sequence[Array]


def _routine(name: str, dtype: np.dtype[Any]) -> Callable[..., Any]:
    # Takes a quarter of a second; programs without it should not. SciPy has no types.
    lapack = importlib.import_module("scipy.linalg.lapack")
    found: Callable[..., Any] = lapack.get_lapack_funcs((name,), dtype=dtype)[0]
    return found


def _batched(function: Callable[..., Arrays]) -> Callable[..., list[Array]]:
    """Of a function of matrices one of stacks of them; the results are stacked, too."""
    def run(a: Array, *rest: Any) -> list[Array]:
        batch = a.shape[:-2]
        count = int(np.prod(batch, dtype=np.int64))
        others = [x.reshape((count, *x.shape[len(batch):])) if isinstance(x, np.ndarray) else x
                  for x in rest]
        each = [function(m, *(x[i] if isinstance(x, np.ndarray) else x for x in others))
                for i, m in enumerate(a.reshape((count, *a.shape[-2:])))]
        if not each:  # no matrix: shapes are those of one
            one = function(np.eye(*a.shape[-2:], dtype=a.dtype),
                           *(np.zeros(x.shape[1:], x.dtype) if isinstance(x, np.ndarray) else x
                             for x in others))
            return [np.zeros((*batch, *r.shape), r.dtype) for r in map(np.asarray, one)]
        return [np.stack(r).reshape((*batch, *np.shape(r[0]))) for r in zip(*each)]
    return run


def _or_nan(info: int, *arrays: Array) -> Arrays:
    """What JAX gives where LAPACK fails."""
    return arrays if info == 0 else [np.full_like(x, np.nan) for x in arrays]


def _geqrf(a: Array) -> Arrays:
    if 0 in a.shape:
        return a, np.zeros(0, a.dtype)
    qr, tau, _, _ = _routine("geqrf", a.dtype)(a)
    return qr, tau


def _geqp3(a: Array, jpvt: Array) -> Arrays:
    if 0 in a.shape:
        return a, jpvt, np.zeros(0, a.dtype)
    qr, pivots, tau, _, _ = _routine("geqp3", a.dtype)(a)
    return qr, pivots.astype(jpvt.dtype), tau


def _householder_product(a: Array, taus: Array) -> Arrays:
    if 0 in a.shape:
        return (a,)
    if taus.size == 0:
        return (np.eye(*a.shape, dtype=a.dtype),)
    name = "ungqr" if np.iscomplexobj(a) else "orgqr"
    return (_routine(name, a.dtype)(a, taus)[0],)


def _lu(a: Array) -> Arrays:
    m, n = a.shape
    if 0 in a.shape:
        return a, np.zeros(0, np.int32), np.arange(m, dtype=np.int32)
    lu, pivots, _ = _routine("getrf", a.dtype)(a)
    rows = np.arange(m, dtype=np.int32)
    for i, p in enumerate(pivots):
        rows[[i, p]] = rows[[p, i]]
    return lu, pivots.astype(np.int32), rows


def _eigh(a: Array, lower: bool) -> Arrays:
    if a.size == 0:
        return a, np.zeros(0, a.real.dtype)
    name = "heevd" if np.iscomplexobj(a) else "syevd"
    w, v, info = _routine(name, a.dtype)(a, lower=lower)
    return _or_nan(info, v, w)


def _svd(a: Array, full_matrices: bool, compute_uv: bool) -> Arrays:
    u, s, vt, info = _routine("gesdd", a.dtype)(a, compute_uv=compute_uv,
                                                full_matrices=full_matrices)
    return _or_nan(info, s, u, vt) if compute_uv else _or_nan(info, s)


def _complex_vectors(w: Array, v: Array) -> Array:
    """Real LAPACK keeps of two conjugate vectors the real and the imaginary part."""
    result = v.astype(np.result_type(v.dtype, np.complex64))
    for i in np.flatnonzero(w.imag > 0):
        result[:, i] = v[:, i] + 1j * v[:, i + 1]
        result[:, i + 1] = result[:, i].conj()
    return result


def _eig(a: Array, left: bool, right: bool) -> Arrays:
    if a.size == 0:
        empty = a.astype(np.result_type(a.dtype, np.complex64))
        return [np.zeros(0, empty.dtype)] + [empty] * (left + right)
    geev = _routine("geev", a.dtype)
    if np.iscomplexobj(a):
        w, vl, vr, info = geev(a, compute_vl=left, compute_vr=right)
    else:
        real, imaginary, vl, vr, info = geev(a, compute_vl=left, compute_vr=right)
        w = real + 1j * imaginary
        w = w.astype(np.result_type(a.dtype, np.complex64))
        vl = _complex_vectors(w, vl) if left else vl
        vr = _complex_vectors(w, vr) if right else vr
    return _or_nan(info, w, *([vl] if left else []), *([vr] if right else []))


def _hessenberg(a: Array) -> Arrays:
    if a.shape[-1] < 2:
        return a, np.zeros(max(a.shape[-1] - 1, 0), a.dtype)
    h, tau, info = _routine("gehrd", a.dtype)(a)
    return _or_nan(info, h, tau)


def _schur(a: Array, vectors: bool) -> Arrays:
    if a.size == 0:
        return [a, a] if vectors else [a]
    result = _routine("gees", a.dtype)(lambda *_: False, a, compute_v=vectors)
    form, schur_vectors, info = result[0], result[-3], result[-1]
    return _or_nan(info, form, schur_vectors) if vectors else _or_nan(info, form)


def _tridiagonal(a: Array, lower: bool) -> Arrays:
    name = "hetrd" if np.iscomplexobj(a) else "sytrd"
    if a.shape[-1] == 1:
        real = a.real.astype(a.dtype)  # LAPACK reads a Hermitian matrix, and writes one
        return real, a[0].real, np.zeros(0, a.real.dtype), np.zeros(0, a.dtype)
    c, d, e, tau, info = _routine(name, a.dtype)(a, lower=lower)
    return _or_nan(info, c, d, e, tau)


_OF_MATRICES: dict[str, Callable[..., Arrays]] = {
    "geqrf": _geqrf, "geqp3": _geqp3, "householder_product": _householder_product, "lu": _lu,
    "eigh": _eigh, "svd": _svd, "eig": _eig, "hessenberg": _hessenberg, "schur": _schur,
    "tridiagonal": _tridiagonal}
FUNCTIONS = {name: _batched(function) for name, function in _OF_MATRICES.items()}
_FIELDS = {"eigh": ["lower"], "svd": ["full_matrices", "compute_uv"], "tridiagonal": ["lower"],
           "eig": ["compute_left_eigenvectors", "compute_right_eigenvectors"],
           "schur": ["compute_schur_vectors"]}


def arguments(name: str, params: Mapping[str, Any]) -> list[bool]:
    """What a function wants to know of its primitive's parameters. Raises for what LAPACK lacks."""
    if params.get("sort_eig_vals"):
        raise NotImplementedError("The sort feature of LAPACK's gees routine is not implemented.")
    if params.get("subset_by_index") is not None:
        raise NotImplementedError(f"subset_by_index of {name} on heddle")
    return [bool(params[field]) for field in _FIELDS.get(name, [])]
