"""Writes jax/programs.npz: small programs of JAX, each as HLO text, as StableHLO text and as portable
bytecode, all three of the same exported module, with inputs and what XLA computes of them on a CPU.
Needs jax and numpy: python make_jax.py [NAME ...] (names: only these, shown instead of written)

The archive has five arrays of bytes: `hlo`, `stablehlo`, `bytecode` and `values` hold everything one
behind the other, and `index` is a text that says what is where, in bytes, one thing a line:
    program NAME
    hlo BEGIN END            (stablehlo, bytecode: likewise)
    arg TYPE DIMS BEGIN END  (out: likewise; DIMS as 2x3, or - for a scalar)"""
import functools
import pathlib
import sys

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import export, lax
from jaxlib import _hlo, xla_client

FOLDER = pathlib.Path(__file__).parent / "jax"
PROGRAMS = {}
TYPES = {"bool": "pred", "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2", "bfloat16": "bf16",
         "complex64": "c64", "complex128": "c128"}


def type_name(dtype):
    name = np.dtype(dtype).name
    return TYPES.get(name) or name.replace("uint", "u").replace("int", "s").replace("float", "f")


def seeded(name):
    return np.random.default_rng(sum(ord(c) * (i + 1) for i, c in enumerate(name)))


def real(random, shape, dtype=np.float32, low=-2.0, high=2.0):
    """Multiples of 1/64, which pack well."""
    return (np.round(random.uniform(low, high, shape) * 64) / 64).astype(dtype)


def program(name, function, *makers):
    """Inputs are arrays, or functions of a random generator."""
    assert name not in PROGRAMS, name
    random = seeded(name)
    inputs = [m(random) if callable(m) else np.asarray(m) for m in makers]
    PROGRAMS[name] = (function, inputs)


def f32(*shape, low=-2.0, high=2.0):
    return lambda random: real(random, shape, np.float32, low, high)


def of(dtype, *shape, low=-2.0, high=2.0):
    return lambda random: real(random, shape, dtype, low, high)


def ints(*shape, low=-9, high=9, dtype=np.int32):
    return lambda random: random.integers(low, high, shape).astype(dtype)


def bools(*shape):
    return lambda random: random.integers(0, 2, shape).astype(bool)


def complexes(*shape):
    return lambda random: (real(random, shape) + 1j * real(random, shape)).astype(np.complex64)


def elementwise():
    x, positive, unit = f32(3, 5), f32(3, 5, low=0.1, high=3), f32(3, 5, low=-0.9, high=0.9)
    for name in ("abs", "negative", "exp", "expm1", "sin", "cos", "tanh", "sinh", "cosh", "sign", "floor",
                 "ceil", "square", "cbrt", "arctan", "arcsinh", "isfinite", "trunc", "rint", "exp2", "sinc"):
        program(name, getattr(jnp, name), x)
    for name in ("log", "log1p", "log2", "log10", "sqrt", "reciprocal"):
        program(name, getattr(jnp, name), positive)
    for name in ("arcsin", "arccos", "arctanh"):
        program(name, getattr(jnp, name), unit)
    program("arccosh", jnp.arccosh, f32(3, 5, low=1.1, high=4))
    program("rsqrt", lax.rsqrt, positive)
    program("erf", lax.erf, x)
    program("erfc", lax.erfc, x)
    program("erf_inv", lax.erf_inv, unit)
    program("lgamma", lax.lgamma, positive)
    program("digamma", lax.digamma, positive)
    program("bessel_i1e", lax.bessel_i1e, x)
    program("bessel_i0e", lax.bessel_i0e, x)
    program("igamma", lax.igamma, f32(6, low=0.5, high=3), f32(6, low=0.2, high=4))
    program("zeta", jax.scipy.special.zeta, f32(6, low=1.5, high=4), f32(6, low=0.5, high=3))
    program("polygamma", functools.partial(jax.scipy.special.polygamma, 1), f32(6, low=0.5, high=3))
    for name in ("add", "subtract", "multiply", "maximum", "minimum", "hypot", "arctan2", "logaddexp",
                 "copysign", "heaviside", "nextafter"):
        program(f"binary_{name}", getattr(jnp, name), x, f32(5))
    program("binary_divide", jnp.divide, x, f32(5, low=0.5, high=3))
    program("binary_power", jnp.power, positive, f32(5))
    program("binary_mod", jnp.mod, x, f32(5, low=0.5, high=3))
    program("binary_fmod", jnp.fmod, x, f32(5, low=0.5, high=3))
    program("floor_divide", jnp.floor_divide, x, f32(5, low=0.5, high=3))
    program("integer_power", lambda x: (x**2, x**3, x**-2), positive)
    program("comparisons", lambda a, b: (a < b, a <= b, a == b, a != b), ints(4, 3), ints(4, 3))
    program("where_clip", lambda x: jnp.where(x > 0, jnp.clip(x, 0.25, 1), -x), x)
    program("nan_to_num", jnp.nan_to_num, np.array([np.nan, np.inf, -np.inf, 1], np.float32))
    program("integer_arithmetic", lambda a, b: (a + b, a - b, a * b, a // b, a % b),
            ints(7), ints(7, low=1))
    program("bits", lambda a, b: (a & b, a | b, a ^ b, ~a, a << 2, a >> 1, lax.population_count(a), lax.clz(a)),
            ints(7), ints(7))
    program("logic", lambda a, b: (a & b, a | b, a ^ b, ~a), bools(9), bools(9))
    program("complex_parts", lambda z: (jnp.real(z), jnp.imag(z), jnp.conj(z), jnp.abs(z)), complexes(5))
    program("complex_arithmetic", lambda a, b: (a + b, a * b, a - b), complexes(5), complexes(5))
    program("complex_exp", jnp.exp, complexes(5))


def shapes():
    x = f32(3, 4)
    program("reshape_transpose", lambda x: x.reshape(2, 6).T, x)
    program("concatenate", lambda x, y: jnp.concatenate([x, y, x], 1), x, f32(3, 2))
    program("stack_split", lambda x: jnp.split(jnp.stack([x, x * 2]), 2, axis=2), x)
    program("pad_modes", lambda x: (jnp.pad(x, 1), jnp.pad(x, 1, "edge"), jnp.pad(x, 1, "reflect")), x)
    program("lax_pad", lambda x: lax.pad(x, jnp.float32(1), [(1, 0, 1), (-1, 2, 0)]), x)
    program("flip_roll", lambda x: (jnp.flip(x, 0), jnp.roll(x, 2, 1), jnp.rot90(x)), x)
    program("tile_repeat", lambda x: (jnp.tile(x, (2, 1)), jnp.repeat(x, 2, 1)), x)
    program("broadcast", lambda x: jnp.broadcast_to(x[:, None], (3, 2, 4)), x)
    program("squeeze_expand", lambda x: jnp.squeeze(x[None, :, 0:1]) + jnp.expand_dims(x, 0)[0, :, 1], x)
    program("slices", lambda x: (x[1:, ::2], x[::-1, 1:3], x[-1]), x)
    program("triangles", lambda x: (jnp.tril(x), jnp.triu(x, 1)), x)
    program("iota_linspace", lambda x: x + jnp.arange(4) + jnp.linspace(0, 1, 4, dtype=jnp.float32), x)
    program("meshgrid", lambda a, b: jnp.meshgrid(a, b), f32(3), f32(2))
    program("eye_diag", lambda x: jnp.diag(x) + jnp.eye(4, dtype=jnp.float32), f32(4))
    program("one_hot", lambda i: jax.nn.one_hot(i, 5), ints(4, low=0, high=5))
    program("moveaxis", lambda x: jnp.moveaxis(x, 0, 2), f32(2, 3, 4))


def reductions():
    x = f32(4, 6)
    for name in ("sum", "mean", "max", "min", "prod", "var", "std", "argmax", "argmin", "cumsum", "cumprod",
                 "ptp", "median", "nanmax"):
        program(f"reduce_{name}", lambda x, name=name: getattr(jnp, name)(x, axis=1), x)
    program("reduce_all_any", lambda b: (b.all(0), b.any(1), b.sum()), bools(3, 4))
    program("reduce_integers", lambda i: (i.sum(0), i.max(), i.prod(1)), ints(3, 4, low=-3, high=4))
    program("norms", lambda x: (jnp.linalg.norm(x), jnp.linalg.norm(x, axis=1)), x)
    program("logsumexp", lambda x: jax.nn.logsumexp(x, axis=1), x)
    program("reduce_window", lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 3), (1, 2), "SAME"), x)
    program("reduce_pairs", lambda x: lax.reduce((x, jnp.arange(24).reshape(4, 6)), (-jnp.inf, 0), lambda a, b: (
        jnp.maximum(a[0], b[0]), jnp.where(a[0] >= b[0], a[1], b[1])), (1,)), x)
    program("reduce_precision", lambda x: lax.reduce_precision(x, 5, 7), x)
    program("cummax_cummin", lambda x: (lax.cummax(x, 1), lax.cummin(x, 0, reverse=True)), x)
    program("cumlogsumexp", lambda x: lax.cumlogsumexp(x, 1), x)
    program("associative_scan", lambda x: lax.associative_scan(jnp.multiply, x, axis=1), x)
    program("select_and_scatter", jax.grad(lambda x: (lax.reduce_window(
        x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID") ** 2).sum()), f32(4, 4))
    program("histogram", lambda x: jnp.histogram(x, bins=4, range=(-2, 2))[0], f32(12))
    program("bincount", lambda i: jnp.bincount(i, length=5), ints(9, low=0, high=5))


def products():
    program("matmul", jnp.matmul, f32(3, 5), f32(5, 4))
    program("matmul_batched", jnp.matmul, f32(2, 3, 5), f32(2, 5, 4))
    program("matmul_vector", lambda a, b: (a @ b, b @ a.T), f32(3, 5), f32(5))
    program("outer", jnp.outer, f32(3), f32(4))
    program("tensordot", lambda a, b: jnp.tensordot(a, b, ((1, 2), (0, 1))), f32(2, 3, 4), f32(3, 4, 2))
    program("einsum_chain", lambda a, b, c: jnp.einsum("ij,jk,kl->il", a, b, c), f32(2, 3), f32(3, 4), f32(4, 2))
    program("einsum_trace", lambda a: jnp.einsum("ii->i", a), f32(4, 4))
    program("kron", jnp.kron, f32(2, 2), f32(2, 3))
    program("dot_integers", jnp.matmul, ints(3, 4), ints(4, 2))
    program("dot_bytes", lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32),
            ints(3, 4, dtype=np.int8), ints(4, 2, dtype=np.int8))
    program("dot_bf16", lambda a, b: lax.dot(a, b, preferred_element_type=jnp.float32),
            of(ml_dtypes.bfloat16, 3, 4), of(ml_dtypes.bfloat16, 4, 2))
    program("dot_f64", jnp.matmul, of(np.float64, 3, 4), of(np.float64, 4, 2))
    program("dot_complex", jnp.matmul, complexes(2, 3), complexes(3, 2))
    program("conv_2d", lambda x, w: lax.conv(x, w, (1, 1), "SAME"), f32(1, 2, 5, 5), f32(3, 2, 3, 3))
    program("conv_strided", lambda x, w: lax.conv_general_dilated(x, w, (2, 2), [(1, 0), (0, 1)], rhs_dilation=(1, 2)),
            f32(1, 2, 6, 6), f32(2, 2, 2, 2))
    program("conv_nhwc", lambda x, w: lax.conv_general_dilated(
        x, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")), f32(2, 4, 4, 2), f32(2, 2, 2, 3))
    program("conv_depthwise", lambda x, w: lax.conv_general_dilated(
        x, w, (1,), "SAME", feature_group_count=4, dimension_numbers=("NWC", "WIO", "NWC")), f32(1, 6, 4), f32(3, 1, 4))
    program("conv_transposed", lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"), f32(1, 3, 3, 2), f32(2, 2, 2, 3))
    program("conv_gradient", jax.grad(lambda w, x: (lax.conv(x, w, (1, 1), "SAME") ** 2).sum()),
            f32(2, 2, 3, 3), f32(1, 2, 4, 4))
    program("convolve", lambda a, b: jnp.convolve(a, b, "full"), f32(6), f32(3))
    program("fft", jnp.fft.fft, complexes(8))
    program("ifft", jnp.fft.ifft, complexes(2, 6))
    program("rfft", jnp.fft.rfft, f32(2, 8))
    program("irfft", lambda z: jnp.fft.irfft(z, 8), complexes(5))
    program("fft2", jnp.fft.fft2, complexes(3, 4))
    program("polyval", lambda p, x: jnp.polyval(p, x), f32(4), f32(5))
    program("cross", jnp.cross, f32(4, 3), f32(4, 3))
    definite = np.array([[4, 1, 0.5], [1, 3, 0.25], [0.5, 0.25, 2]], np.float32)
    program("cholesky_solve", lambda a, b: lax.linalg.triangular_solve(
        lax.linalg.cholesky(a), b, left_side=True, lower=True), definite, f32(3, 2))


def indexing():
    x = f32(4, 5)
    rows = ints(3, low=0, high=4)
    program("gather_rows", lambda x, i: x[i], x, rows)
    program("gather_pairs", lambda x, i, j: x[i, j], x, rows, rows)
    program("take_along_axis", lambda x, i: jnp.take_along_axis(x, i, 1), x, ints(4, 2, low=0, high=5))
    program("take_clipped", lambda x, i: jnp.take(x, i, axis=1, mode="clip"), x, ints(3, low=0, high=9))
    program("take_filled", lambda x, i: jnp.take(x, i, axis=0, mode="fill", fill_value=7), x, ints(3, low=0, high=9))
    program("scatter_set", lambda x, y: x.at[1:3, 2].set(y), x, f32(2))
    program("scatter_add", lambda x, i: x.at[i].add(1.5), x, rows)
    program("scatter_mul", lambda x, i: x.at[:, i].multiply(2), x, rows)
    program("scatter_max", lambda x, i: x.at[i, 1].max(0.5), x, rows)
    program("segment_sum", lambda x, i: jax.ops.segment_sum(x, i, 3), f32(6), ints(6, low=0, high=3))
    program("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, 1), (2, 3)), x, np.int32(3))
    program("dynamic_update", lambda x, i, y: lax.dynamic_update_slice(x, y, (i, i)), x, np.int32(2), f32(2, 2))
    program("dynamic_index", lambda x, i: lax.dynamic_index_in_dim(x, i, 1), x, np.int32(-1))
    program("sort", lambda x: jnp.sort(x, axis=1), x)
    program("sort_descending", lambda x: jnp.sort(x, axis=0, descending=True), x)
    program("argsort", lambda x: jnp.argsort(x, axis=1), x)
    program("sort_pairs", lambda i, x: lax.sort((i, x), num_keys=1), ints(6, low=0, high=4), f32(6))
    program("lexsort", lambda a, b: jnp.lexsort((a, b)), ints(6, low=0, high=3), ints(6, low=0, high=3))
    program("top_k", lambda x: lax.top_k(x, 3), x)
    program("searchsorted", lambda x, v: jnp.searchsorted(jnp.sort(x), v), f32(8), f32(4))
    program("digitize", lambda x: jnp.digitize(x, jnp.array([-1.0, 0.0, 1.0])), f32(6))
    program("interp", lambda x: jnp.interp(x, jnp.array([-2.0, 0.0, 2.0]), jnp.array([1.0, 3.0, 0.0])), f32(6))
    program("unique_sized", lambda i: jnp.unique(i, size=5, fill_value=99), ints(8, low=0, high=5))
    program("nonzero_sized", lambda b: jnp.nonzero(b, size=4, fill_value=-1)[0], bools(8))


def control():
    x = f32(4)
    program("cond", lambda p, x: lax.cond(p, jnp.sin, lambda x: x * 2, x), np.bool_(True), x)
    program("switch", lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda x: -x], x), np.int32(1), x)
    program("while_loop", lambda x: lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 1.5), (0, x)), x)
    program("while_of_data", lambda x: lax.while_loop(lambda s: jnp.max(s) < 50, lambda s: s * 2 + 1, x), f32(4, low=0))
    program("fori_loop", lambda x: lax.fori_loop(0, 6, lambda i, s: s + i * x, x), x)
    program("scan", lambda x: lax.scan(lambda c, v: (c * 0.5 + v, jnp.tanh(c)), jnp.zeros(4, jnp.float32), x), f32(5, 4))
    program("scan_reverse", lambda x: lax.scan(lambda c, v: (c + v, c * v), jnp.float32(1), x, reverse=True), f32(6))
    program("scan_gradient", jax.grad(lambda x: lax.scan(lambda c, v: (jnp.sin(c) + v, c), jnp.float32(0), x)[0]), f32(6))
    program("scan_unrolled", lambda x: lax.scan(lambda c, v: (c + v, c), jnp.float32(0), x, unroll=3), f32(7))
    program("map", lambda x: lax.map(lambda v: v * jnp.sum(v), x), f32(3, 4))
    program("nested_loops", lambda x: lax.fori_loop(0, 3, lambda i, s: lax.fori_loop(
        0, i + 1, lambda j, t: t * 0.5 + j, s), x), x)
    program("cond_in_scan", lambda x: lax.scan(lambda c, v: (lax.cond(v > 0, lambda: c + v, lambda: c - 1.0), c),
                                               jnp.float32(0), x), f32(6))
    program("newton", lambda a: lax.fori_loop(0, 6, lambda i, y: 0.5 * (y + a / y), a), f32(4, low=0.5, high=4))
    program("collatz", lambda n: lax.while_loop(lambda s: s[0] != 1, lambda s: (
        jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1), (n, 0)), np.int64(27))


def networks():
    x = f32(3, 6)
    for name in ("relu", "gelu", "silu", "softplus", "sigmoid", "elu", "selu", "leaky_relu", "log_sigmoid", "softmax",
                 "log_softmax", "hard_tanh", "relu6", "celu", "mish", "glu", "standardize"):
        program(f"nn_{name}", getattr(jax.nn, name), x)

    def layer_norm(x, scale, shift):
        mean = x.mean(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * scale + shift

    def attention(q, k, v):
        scores = jnp.einsum("hqd,hkd->hqk", q, k) / np.float32(2)
        scores = jnp.where(jnp.tril(jnp.ones((4, 4), bool)), scores, np.float32(-1e9))
        return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores), v)

    def perceptron(w, v, x):
        return jnp.tanh(x @ w) @ v

    def loss(w, v, x, y):
        return ((perceptron(w, v, x) - y) ** 2).mean()

    def cell(w, u, h, x):
        z, r, n = jnp.split(x @ w, 3, axis=-1)
        a, b, c = jnp.split(h @ u, 3, axis=-1)
        z, r = jax.nn.sigmoid(z + a), jax.nn.sigmoid(r + b)
        return (1 - z) * jnp.tanh(n + r * c) + z * h

    def cross_entropy(w, x, labels):
        return -jnp.take_along_axis(jax.nn.log_softmax(x @ w), labels[:, None], 1).mean()

    def adam(w, m, v, g):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return w - 0.01 * (m / 0.1) / (jnp.sqrt(v / 0.001) + 1e-8), m, v

    w, v = f32(6, 5, low=-0.5, high=0.5), f32(5, 2, low=-0.5, high=0.5)
    program("layer_norm", layer_norm, x, f32(6), f32(6))
    program("layer_norm_gradient", jax.grad(lambda x, s, b: (layer_norm(x, s, b) ** 3).sum(), (0, 1, 2)), x, f32(6), f32(6))
    program("attention", attention, f32(2, 4, 3), f32(2, 4, 3), f32(2, 4, 3))
    program("attention_gradient", jax.grad(lambda q, k, v: attention(q, k, v).sum(), (0, 1, 2)),
            f32(2, 4, 3), f32(2, 4, 3), f32(2, 4, 3))
    program("perceptron", perceptron, w, v, x)
    program("perceptron_gradient", jax.grad(loss, (0, 1)), w, v, x, f32(3, 2))
    program("sgd_step", lambda w, v, x, y: jax.tree.map(
        lambda p, g: p - 0.1 * g, (w, v), jax.grad(loss, (0, 1))(w, v, x, y)), w, v, x, f32(3, 2))
    program("sgd_steps", lambda w, v, x, y: lax.fori_loop(0, 3, lambda i, p: jax.tree.map(
        lambda p, g: p - 0.1 * g, p, jax.grad(loss, (0, 1))(*p, x, y)), (w, v)), w, v, x, f32(3, 2))
    program("adam_step", adam, f32(5), f32(5), f32(5, low=0, high=1), f32(5))
    program("gru_cell", cell, f32(4, 9, low=-0.5, high=0.5), f32(3, 9, low=-0.5, high=0.5), f32(2, 3), f32(2, 4))
    program("gru_scan", lambda w, u, xs: lax.scan(lambda h, x: (cell(w, u, h, x),) * 2, jnp.zeros((2, 3), jnp.float32), xs)[1],
            f32(4, 9, low=-0.5, high=0.5), f32(3, 9, low=-0.5, high=0.5), f32(4, 2, 4))
    program("cross_entropy", jax.value_and_grad(cross_entropy), w, x, ints(3, low=0, high=5))
    program("batch_norm", lambda x: (x - x.mean(0)) * lax.rsqrt(x.var(0) + 1e-3), x)
    program("max_pool", lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), f32(1, 4, 4, 2))
    program("avg_pool", lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4, f32(1, 4, 4, 2))
    program("embedding_gradient", jax.grad(lambda t, i: (t[i] ** 2).sum()), f32(5, 3), ints(4, low=0, high=5))
    program("jvp", lambda x, t: jax.jvp(lambda x: jnp.sin(x) * x, (x,), (t,)), f32(5), f32(5))
    program("hessian", jax.hessian(lambda x: (jnp.sin(x) * x[::-1]).sum()), f32(3))
    program("jacobian", jax.jacobian(lambda x: jnp.outer(x, x * x)), f32(3))
    program("checkpoint", jax.grad(lambda x: jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x).sum()), f32(5))
    program("custom_derivative", jax.grad(lambda x: clipped(x).sum()), f32(5))
    program("vmap", jax.vmap(lambda x, y: x @ y), f32(3, 4), f32(3, 4))
    program("vmap_gradient", jax.vmap(jax.grad(lambda x: jnp.tanh(x).prod())), f32(3, 4))
    program("vmap_gather", jax.vmap(lambda x, i: x[i]), f32(3, 5), ints(3, low=0, high=5))
    program("vmap_scatter", jax.vmap(lambda x, i: x.at[i].set(9)), f32(3, 5), ints(3, low=0, high=5))
    program("vmap_dynamic_slice", jax.vmap(lambda x, i: lax.dynamic_slice(x, (i,), (2,))), f32(3, 5), ints(3, low=0, high=4))
    program("vmap_while", jax.vmap(lambda n: lax.while_loop(lambda s: s < 20, lambda s: s * 2 + 1, n)), ints(4, low=1, high=9))
    program("vmap_cond", jax.vmap(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x)), bools(4), f32(4))


@jax.custom_jvp
def clipped(x):
    return jnp.clip(x, -1, 1)


clipped.defjvp(lambda primals, tangents: (clipped(*primals), 3 * tangents[0]))


def randoms():
    key = np.array([7, 42], np.uint32)
    for name, draw in {"bits": lambda k: jax.random.bits(k, (6,), jnp.uint32),
                       "uniform": lambda k: jax.random.uniform(k, (6,), jnp.float32),
                       "normal": lambda k: jax.random.normal(k, (6,), jnp.float32),
                       "randint": lambda k: jax.random.randint(k, (6,), 0, 100, jnp.int32),
                       "split": lambda k: jax.random.key_data(jax.random.split(k, 3)),
                       "fold_in": lambda k: jax.random.key_data(jax.random.fold_in(k, 5)),
                       "bernoulli": lambda k: jax.random.bernoulli(k, 0.3, (8,)),
                       "permutation": lambda k: jax.random.permutation(k, 8),
                       "exponential": lambda k: jax.random.exponential(k, (5,), jnp.float32),
                       "categorical": lambda k: jax.random.categorical(k, jnp.array([0.1, 0.5, 0.2]), shape=(6,)),
                       "dropout": lambda k: jnp.where(jax.random.bernoulli(k, 0.5, (8,)), jnp.float32(2), 0)}.items():
        program(f"random_{name}", lambda k, draw=draw: draw(jax.random.wrap_key_data(k)), key)


def types():
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float64):
        name = np.dtype(dtype).name
        program(f"{name}_arithmetic", lambda a, b: (a + b, a * b - a, jnp.maximum(a, b)), of(dtype, 6), of(dtype, 6))
        program(f"{name}_functions", lambda a: (jnp.exp(a), jnp.tanh(a), jnp.sqrt(jnp.abs(a))), of(dtype, 6))
        program(f"{name}_sum", lambda a: a.sum(0), of(dtype, 4, 5))
        program(f"{name}_softmax", jax.nn.softmax, of(dtype, 2, 5))
    for dtype in (np.int8, np.int16, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
        name = np.dtype(dtype).name
        program(f"{name}_arithmetic", lambda a, b: (a + b, a * b, a // b, a % b, a >> 1, jnp.minimum(a, b)),
                ints(6, low=1, high=100, dtype=dtype), ints(6, low=1, high=9, dtype=dtype))
    program("conversions", lambda x: [x.astype(t) for t in (
        jnp.float16, jnp.bfloat16, jnp.int32, jnp.int8, bool)], f32(6))
    program("float8", lambda x: [x.astype(t).astype(jnp.float32) for t in (jnp.float8_e4m3fn, jnp.float8_e5m2)], f32(8))
    program("bitcasts", lambda x: (lax.bitcast_convert_type(x, jnp.int32), lax.bitcast_convert_type(x, jnp.uint8)), f32(4))
    program("f64_functions", lambda a: (jnp.sin(a), jnp.log(jnp.abs(a) + 1), a ** 3), of(np.float64, 6))
    program("mixed_precision", lambda x, w: (x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)).astype(jnp.float32),
            f32(2, 4), f32(4, 3))


def exported_forms(function, inputs):
    exported = export.export(jax.jit(function))(*inputs)
    text = exported.mlir_module()
    computation = xla_client._xla.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)
    options = _hlo.HloPrintOptions()
    options.print_metadata = False
    options.print_large_constants = True
    hlo = computation.get_hlo_module().to_string(options)
    hlo = "\n".join(line for line in hlo.splitlines() if line.strip()) + "\n"
    text = exported_text(text)
    outputs = jax.tree.leaves(exported.call(*inputs))
    return hlo.encode(), text.encode(), exported.mlir_module_serialized, [np.asarray(x) for x in outputs]


def exported_text(text):
    """Without places, which are those of this machine."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    with mlir.make_ir_context():
        return ir.Module.parse(text).operation.get_asm(enable_debug_info=False)


def main():
    for family in (elementwise, shapes, reductions, products, indexing, control, networks, randoms, types):
        family()
    chosen = sys.argv[1:]
    parts = {name: bytearray() for name in ("hlo", "stablehlo", "bytecode", "values")}
    index = []

    def put(part, data, *words):
        begin = len(parts[part])
        parts[part] += data
        index.append(" ".join([*words, str(begin), str(begin + len(data))]))

    for name, (function, inputs) in PROGRAMS.items():
        if chosen and name not in chosen:
            continue
        wide = any(value.dtype in (np.float64, np.int64, np.uint64) for value in inputs)
        with jax.enable_x64(wide):
            hlo, text, bytecode, outputs = exported_forms(function, inputs)
        if chosen:
            print(hlo.decode(), text.decode(), inputs, outputs, sep="\n")
            continue
        index.append(f"program {name}")
        for part, data in (("hlo", hlo), ("stablehlo", text), ("bytecode", bytecode)):
            put(part, data, part)
        for kind, values in (("arg", inputs), ("out", outputs)):
            for value in values:
                dims = "x".join(map(str, value.shape)) or "-"
                put("values", value.tobytes(), kind, type_name(value.dtype), dims)
    if chosen:
        return
    parts["index"] = "\n".join(index).encode()
    FOLDER.mkdir(exist_ok=True)
    np.savez_compressed(FOLDER / "programs.npz", **{n: np.frombuffer(bytes(d), np.uint8) for n, d in parts.items()})
    print(len(PROGRAMS), "programs;", {n: len(d) for n, d in parts.items()})


if __name__ == "__main__":
    main()
