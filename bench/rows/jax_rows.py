"""Every row as a function of JAX arrays, for XLA:CPU."""
import jax
import jax.numpy as jnp
from jax import lax, nn

import many_tensors


def normalised(h, epsilon, axis=-1):
    centered = h - h.mean(axis, keepdims=True)
    return centered * lax.rsqrt((centered * centered).mean(axis, keepdims=True) + epsilon)


def b1(x, residual, gamma, beta):
    return normalised(x + residual, 1e-5) * gamma + beta


def b2(scores, mask):
    return nn.softmax(scores * 0.125 + mask[:, None, None, :], -1)


def b3e(x, bias):
    return nn.gelu(x + bias, approximate=False)


def b3t(x, bias):
    return nn.gelu(x + bias, approximate=True)


def b4(dy, x, gamma, mean, rstd):
    normal = (x - mean[:, None]) * rstd[:, None]
    g = dy * gamma
    along = (g * normal).mean(1, keepdims=True)
    dx = (g - g.mean(1, keepdims=True) - normal * along) * rstd[:, None]
    return dx, (dy * normal).sum(0), dy.sum(0)


def kept_elements(shape, seed):
    h = lax.iota(jnp.uint32, shape[0] * shape[1]).reshape(shape) + seed.astype(jnp.uint32)
    h = (h ^ (h >> 16)) * jnp.uint32(2246822507)
    h = (h ^ (h >> 13)) * jnp.uint32(3266489909)
    h = h ^ (h >> 16)
    return (h >> 1) >= jnp.uint32(214748365)


def b5(x, residual, gamma, beta, seed):
    kept = kept_elements(x.shape, seed)
    h = jnp.where(kept, x * (1 / 0.9), 0) + residual
    mean = h.mean(1)
    centered = h - mean[:, None]
    rstd = lax.rsqrt((centered * centered).mean(1) + 1e-5)
    return centered * rstd[:, None] * gamma + beta, kept.astype(jnp.uint8), mean, rstd


def t1(logits, label):
    log_probability = nn.log_softmax(logits, 1)
    here = lax.broadcasted_iota(jnp.int32, logits.shape, 1) == label[:, None]
    at_label = jnp.where(here, log_probability, 0).sum(1)
    loss = -(0.9 * at_label + 0.1 * log_probability.mean(1))
    target = jnp.where(here, jnp.float32(0.9), 0) + 0.1 / logits.shape[1]
    return loss, jnp.exp(log_probability) - target


def t2(x):
    return nn.softmax(x, -1)


def d1(x, weight):
    return (x * weight).sum(1)


def d2(update, reset, candidate_x, candidate_h, state, attention):
    candidate = jnp.tanh(candidate_x + nn.sigmoid(reset) * candidate_h)
    return state + nn.sigmoid(update) * attention[:, None] * (candidate - state)


def d3(keys, scores, length):
    inside = jnp.arange(scores.shape[1], dtype=jnp.int32) < length[:, None]
    weight = nn.softmax(jnp.where(inside, scores, -1e9), -1)
    return (keys * weight[:, :, None]).sum(1)


def d4(x, alpha):
    gate = nn.sigmoid(normalised(x, 1e-9, 0))
    return gate * x + (1 - gate) * alpha * x


def by_channel(x):
    return x[None, :, None, None]


def c1(x, gamma, beta):
    mean = x.mean((0, 2, 3))
    centered = x - by_channel(mean)
    variance = (centered * centered).mean((0, 2, 3))
    scale = lax.rsqrt(variance + 1e-5) * gamma
    return nn.relu(centered * by_channel(scale) + by_channel(beta)), mean, variance


def c2(gates, c):
    i, f, g, o = jnp.split(gates, 4, 1)
    c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
    return nn.sigmoid(o) * jnp.tanh(c), c


def a1(x, gamma, beta, mean, variance):
    h = (nn.glu(x, -1) - mean) * (lax.rsqrt(variance + 1e-5) * gamma) + beta
    return nn.silu(h)


def a2(scores, valid):
    return nn.softmax(jnp.where(valid[:, None, None, :], scores, -1e9), -1)


def rms_norm(h, weight):
    return h * lax.rsqrt((h * h).mean(-1, keepdims=True) + 1e-5) * weight


def l1(x, residual, weight):
    h = x + residual
    return rms_norm(h, weight), h


def l2(gate, up):
    return nn.silu(gate) * up


def turned(x):
    first, second = jnp.split(x, 2, -1)
    return jnp.concatenate([-second, first], -1)


def l3(qkv, cosine, sine):
    q, k, v = (part.reshape(-1, 32, 128).transpose(1, 0, 2) for part in jnp.split(qkv, 3, 1))
    return q * cosine + turned(q) * sine, k * cosine + turned(k) * sine, v


def l4(x, weight):
    y = rms_norm(x, weight)
    scale = jnp.abs(y).max(1) / 127
    return jnp.round(y / scale[:, None]).astype(jnp.int8), scale


def l5(logits, target):
    return nn.logsumexp(logits, 1) - jnp.take_along_axis(logits, target[:, None], 1)[:, 0]


def l6(logits):
    chosen, expert = lax.top_k(nn.softmax(logits, 1), 8)
    return chosen / chosen.sum(1, keepdims=True), expert


def l7(*tensors):
    *tensors, mean_correction, square_correction = tensors
    n = len(tensors) // 4

    def step(p, g, m, v):
        m = m * many_tensors.MEAN_KEPT + g * (1 - many_tensors.MEAN_KEPT)
        v = v * many_tensors.SQUARE_KEPT + g * g * (1 - many_tensors.SQUARE_KEPT)
        change = m / mean_correction / (jnp.sqrt(v / square_correction) + many_tensors.EPSILON)
        return p - many_tensors.LEARNING_RATE * (change + many_tensors.DECAY * p), m, v

    stepped = [step(*tensors[i::n]) for i in range(n)]
    return tuple(x for kind in zip(*stepped) for x in kind)


def l8(*gradients):
    norm = jnp.sqrt(sum((g * g).sum() for g in gradients))
    scale = jnp.minimum(many_tensors.MOST_NORM / (norm + 1e-6), 1)
    return (*(g * scale for g in gradients), norm)


def x1(x, gamma, beta):
    return normalised(x.transpose(0, 2, 3, 1), 1e-6) * gamma + beta


def x2(x, gamma, beta):
    norm = jnp.sqrt((x * x).sum((1, 2), keepdims=True))
    return x * (norm / (norm.mean(-1, keepdims=True) + 1e-6)) * gamma + beta + x


def u1(x, gamma, beta):
    h = normalised(x.reshape(x.shape[0], 32, -1), 1e-5).reshape(x.shape)
    return nn.silu(h * by_channel(gamma) + by_channel(beta))


def u2(x, branch, gate, shift, scale):
    h = x + branch * gate[:, None]
    return normalised(h, 1e-6) * (1 + scale[:, None]) + shift[:, None], h


def looked_up(table, indices):
    return table.at[indices].get(mode="promise_in_bounds")


def e1(words, positions, types, word, position, type_, gamma, beta):
    h = looked_up(words, word) + looked_up(positions, position) + looked_up(types, type_)
    return normalised(h, 1e-12) * gamma + beta


def e2(table, bag):
    return looked_up(table, bag).sum(1)


def r1(dy, x, gamma, mean, rstd):
    normal = (x - by_channel(mean)) * by_channel(rstd)
    dbeta, dgamma = dy.sum((0, 2, 3)), (dy * normal).sum((0, 2, 3))
    count = dy.size // dy.shape[1]
    inner = dy - by_channel(dbeta / count) - normal * by_channel(dgamma / count)
    return inner * by_channel(gamma * rstd), dgamma, dbeta


def compiled(row):
    return jax.jit(globals()[row])
