"""Parts of networks for training, as functions of JAX arrays: parameters are nested dicts."""
import jax
import jax.numpy as jnp
from jax import lax, nn

NEGATIVE = -1e9  # for what may not be attended to, and for the logarithm of zero


class Drawer:
    """Draws initial parameters, one key after the other."""

    def __init__(self, seed):
        self.key = jax.random.PRNGKey(seed)

    def normal(self, *shape, scale=None):
        self.key, key = jax.random.split(self.key)
        fan_in = shape[0] if len(shape) < 3 else shape[0] * shape[1] * shape[2]
        return jax.random.normal(key, shape) * (scale or fan_in**-0.5)

    def dense(self, inputs, outputs):
        return {"w": self.normal(inputs, outputs), "b": jnp.zeros(outputs)}

    def norm(self, width):
        return {"scale": jnp.ones(width), "shift": jnp.zeros(width)}


def hashed(shape, seed):
    """Random words keyed by position and seed: every fusion sees the same stream."""
    elems = 1
    for extent in shape:
        elems *= extent
    h = lax.iota(jnp.uint32, elems).reshape(shape) + seed.astype(jnp.uint32) * jnp.uint32(2654435769)
    h = (h ^ (h >> 16)) * jnp.uint32(2246822507)
    h = (h ^ (h >> 13)) * jnp.uint32(3266489909)
    return h ^ (h >> 16)


def dropout(x, seed, rate):
    if not rate:
        return x
    kept = (hashed(x.shape, seed) >> 1) >= jnp.uint32(rate * 2**31)
    return jnp.where(kept, x / (1 - rate), 0)


def dense(p, x):
    return x @ p["w"] + p["b"]


def layer_norm(p, x, epsilon=1e-6):
    centered = x - x.mean(-1, keepdims=True)
    variance = (centered * centered).mean(-1, keepdims=True)
    return centered * lax.rsqrt(variance + epsilon) * p["scale"] + p["shift"]


def batch_norm(p, x, epsilon=1e-5):
    """By the statistics of the batch, over all axes but the last."""
    axes = tuple(range(x.ndim - 1))
    centered = x - x.mean(axes)
    return centered * lax.rsqrt((centered * centered).mean(axes) + epsilon) * p["scale"] + p["shift"]


def dice(p, x):
    """DIN's activation: between x and alpha·x by the batch's statistics."""
    axes = tuple(range(x.ndim - 1))
    centered = x - x.mean(axes)
    gate = nn.sigmoid(centered * lax.rsqrt((centered * centered).mean(axes) + 1e-9))
    return gate * x + (1 - gate) * p * x


def convolution(w, x, strides=(1, 1), padding="SAME", groups=1):
    return lax.conv_general_dilated(x, w, strides, padding, feature_group_count=groups,
                                    dimension_numbers=("NHWC", "HWIO", "NHWC"))


def attention_parameters(draw, width):
    """No bias of the keys: softmax does not see it, its gradient would be noise around zero."""
    return {"k": draw.normal(width, width),
            **{name: draw.dense(width, width) for name in ("q", "v", "out")}}


def attention(p, x, memory, mask, heads, seed, rate):
    """mask: added to the scores [B,H,Q,K]."""
    def split(y):
        return y.reshape(*y.shape[:2], heads, -1).transpose(0, 2, 1, 3)

    q, k, v = split(dense(p["q"], x)), split(memory @ p["k"]), split(dense(p["v"], memory))
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * q.shape[-1]**-0.5 + mask
    weights = dropout(nn.softmax(scores, -1), seed, rate)
    y = jnp.einsum("bhqk,bhkd->bhqd", weights, v).transpose(0, 2, 1, 3)
    return dense(p["out"], y.reshape(x.shape))


def feed_forward_parameters(draw, width, inner):
    return {"up": draw.dense(width, inner), "down": draw.dense(inner, width)}


def feed_forward(p, x, activation):
    return dense(p["down"], activation(dense(p["up"], x)))


def lstm_parameters(draw, inputs, width):
    return {"in": draw.dense(inputs, 4 * width), "state": draw.normal(width, 4 * width)}


def lstm(p, x, reverse=False):
    """x [T,B,I] -> [T,B,width]."""
    width = p["state"].shape[0]

    def step(carry, gates):
        hidden, cell = carry
        i, f, g, o = jnp.split(gates + hidden @ p["state"], 4, -1)
        cell = nn.sigmoid(f) * cell + nn.sigmoid(i) * jnp.tanh(g)
        hidden = nn.sigmoid(o) * jnp.tanh(cell)
        return (hidden, cell), hidden

    zero = jnp.zeros((x.shape[1], width))
    return lax.scan(step, (zero, zero), dense(p["in"], x), reverse=reverse)[1]


def gru_parameters(draw, inputs, width):
    return {"in": draw.dense(inputs, 3 * width), "state": draw.normal(width, 3 * width)}


def gru(p, x, attention_weights=None):
    """x [T,B,I] -> [T,B,width]; with weights [T,B] the update gate is scaled by them (AUGRU)."""
    width = p["state"].shape[0]
    weights = jnp.ones(x.shape[:2]) if attention_weights is None else attention_weights

    def step(hidden, now):
        gates, weight = now
        from_state = hidden @ p["state"]
        reset, update = jnp.split(nn.sigmoid((gates + from_state)[:, :2 * width]), 2, -1)
        candidate = jnp.tanh(gates[:, 2 * width:] + reset * from_state[:, 2 * width:])
        update = update * weight[:, None]
        hidden = (1 - update) * hidden + update * candidate
        return hidden, hidden

    return lax.scan(step, jnp.zeros((x.shape[1], width)), (dense(p["in"], x), weights))[1]


def cross_entropy(logits, labels, smoothing=0.0):
    log_probability = nn.log_softmax(logits, -1)
    at_label = jnp.take_along_axis(log_probability, labels[..., None], -1)[..., 0]
    return -((1 - smoothing) * at_label + smoothing * log_probability.mean(-1)).mean()


def ctc_loss(logits, labels, blank=0):
    """Connectionist temporal classification: logits [T,B,V], labels [B,L] without blanks."""
    steps, batch, _ = logits.shape
    log_probability = nn.log_softmax(logits, -1)
    length = labels.shape[1]
    extended = jnp.full((batch, 2 * length + 1), blank).at[:, 1::2].set(labels)
    emitted = jnp.take_along_axis(log_probability,
                                  jnp.broadcast_to(extended, (steps, *extended.shape)), -1)
    may_skip = jnp.concatenate(
        [jnp.zeros((batch, 2), bool),
         (extended[:, 2:] != blank) & (extended[:, 2:] != extended[:, :-2])], 1)

    def behind(alpha, count):
        return jnp.pad(alpha[:, :-count], ((0, 0), (count, 0)), constant_values=NEGATIVE)

    def step(alpha, here):
        skipped = jnp.where(may_skip, behind(alpha, 2), NEGATIVE)
        return jnp.logaddexp(jnp.logaddexp(alpha, behind(alpha, 1)), skipped) + here, None

    first = jnp.where(jnp.arange(2 * length + 1) < 2, emitted[0], NEGATIVE)
    last, _ = lax.scan(step, first, emitted[1:])
    return -jnp.logaddexp(last[:, -1], last[:, -2]).mean() / length


def adam(parameters, gradients, moments, step, rate=1e-4):
    """One update; moments: (first, second), step: f32 count from 1."""
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, moments[1], gradients)
    corrected = rate * jnp.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    parameters = jax.tree.map(lambda p, m, v: p - corrected * m / (jnp.sqrt(v) + 1e-8), parameters,
                              first, second)
    return parameters, (first, second)
