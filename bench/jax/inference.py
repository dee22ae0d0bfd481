"""Networks that answer: Flax's modules and plain jax.numpy, at sizes of 0.2 to 50 ms a call."""
import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax
from registry import integers, normal, program


def of_module(module, *inputs, **options):
    """Inference of a Flax module with weights from a fixed key."""
    variables = jax.jit(lambda *x: module.init(jax.random.key(0), *x, **options))(*inputs)
    return (lambda variables, *inputs: module.apply(variables, *inputs, **options),
            (variables, *inputs))


@program("inference")
def mlp():
    layers = [layer for width in (512, 512, 256) for layer in (nn.Dense(width), nn.relu)]
    return of_module(nn.Sequential([*layers, nn.Dense(10), nn.log_softmax]), normal(64, 784))


@program("inference")
def cnn():
    def block(width):
        return [nn.Conv(width, (3, 3)), nn.relu, nn.Conv(width, (3, 3)), nn.relu,
                lambda x: nn.max_pool(x, (2, 2), strides=(2, 2))]
    head = [lambda x: x.reshape(x.shape[0], -1), nn.Dense(128), nn.relu, nn.Dense(10)]
    return of_module(nn.Sequential([*block(32), *block(64), *head]), normal(4, 32, 32, 3))


class ResidualBlock(nn.Module):
    width: int
    stride: int = 1

    @nn.compact
    def __call__(self, x, train=False):
        def norm(x):
            return nn.BatchNorm(use_running_average=not train, momentum=0.9)(x)
        stride = (self.stride, self.stride)
        y = nn.relu(norm(nn.Conv(self.width, (3, 3), stride, use_bias=False)(x)))
        y = norm(nn.Conv(self.width, (3, 3), use_bias=False)(y))
        if y.shape != x.shape:
            x = norm(nn.Conv(self.width, (1, 1), stride, use_bias=False)(x))
        return nn.relu(x + y)


@program("inference")
def resnet_blocks():
    return of_module(nn.Sequential([ResidualBlock(64), ResidualBlock(64), ResidualBlock(128, 2)]),
                     normal(2, 28, 28, 64))


class EncoderBlock(nn.Module):
    heads: int
    hidden: int
    dropout: float = 0.0
    dtype: jnp.dtype = jnp.float32

    @nn.compact
    def __call__(self, x, mask=None, train=False):
        width = x.shape[-1]
        y = nn.LayerNorm(dtype=self.dtype)(x)
        y = nn.MultiHeadDotProductAttention(self.heads, dtype=self.dtype)(y, y, mask=mask)
        x = x + nn.Dropout(self.dropout, deterministic=not train)(y)
        y = nn.gelu(nn.Dense(self.hidden, dtype=self.dtype)(nn.LayerNorm(dtype=self.dtype)(x)))
        y = nn.Dense(width, dtype=self.dtype)(y)
        return x + nn.Dropout(self.dropout, deterministic=not train)(y)


@program("inference")
def vit():
    class Vit(nn.Module):
        @nn.compact
        def __call__(self, images):
            x = nn.Conv(192, (16, 16), (16, 16))(images).reshape(images.shape[0], -1, 192)
            token = self.param("cls", nn.initializers.zeros, (1, 1, 192))
            x = jnp.concatenate([jnp.broadcast_to(token, (x.shape[0], 1, 192)), x], 1)
            x = x + self.param("position", nn.initializers.normal(0.02), (1, x.shape[1], 192))
            for _ in range(2):
                x = EncoderBlock(3, 768)(x)
            return nn.Dense(100)(nn.LayerNorm()(x)[:, 0])
    return of_module(Vit(), normal(2, 160, 160, 3))


class Bert(nn.Module):
    dtype: jnp.dtype = jnp.float32

    @nn.compact
    def __call__(self, words, valid):
        x = nn.Embed(2000, 256)(words) + nn.Embed(512, 256)(jnp.arange(words.shape[1]))[None]
        x = nn.LayerNorm()(x).astype(self.dtype)
        for _ in range(2):
            x = EncoderBlock(4, 1024, dtype=self.dtype)(x, nn.make_attention_mask(valid, valid))
        return nn.tanh(nn.Dense(256, dtype=self.dtype)(x[:, 0]))


@program("inference")
def bert():
    valid = jnp.arange(64)[None] < jnp.array([[64], [40]])
    return of_module(Bert(), integers(2000, 2, 64), valid)


@program("inference")
def bert_bf16():
    valid = jnp.arange(64)[None] < jnp.array([[64], [40]])
    return of_module(Bert(jnp.bfloat16), integers(2000, 2, 64), valid)


@program("inference")
def gpt_decode():
    """One token of a decoder of four layers, whose cache holds 256."""
    width, heads, length, layers = 256, 8, 256, 4
    weights = [{"qkv": normal(width, 3 * width, seed=i, scale=0.05),
                "out": normal(width, width, seed=i + 10, scale=0.05),
                "up": normal(width, 4 * width, seed=i + 20, scale=0.05),
                "down": normal(4 * width, width, seed=i + 30, scale=0.05)} for i in range(layers)]
    table = normal(4000, width, seed=99, scale=0.1)

    def norm(x):
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    def layer(w, x, cache, place):
        q, k, v = jnp.split(norm(x) @ w["qkv"], 3, -1)
        keys = lax.dynamic_update_slice(cache[0], k.reshape(1, 1, heads, -1), (0, place, 0, 0))
        values = lax.dynamic_update_slice(cache[1], v.reshape(1, 1, heads, -1), (0, place, 0, 0))
        score = jnp.einsum("bhd,bthd->bht", q.reshape(1, heads, -1), keys) / jnp.sqrt(width / heads)
        score = jnp.where(jnp.arange(length) <= place, score, -jnp.inf)
        seen = jnp.einsum("bht,bthd->bhd", jax.nn.softmax(score), values).reshape(1, -1)
        x = x + seen @ w["out"]
        return x + jax.nn.gelu(norm(x) @ w["up"]) @ w["down"], (keys, values)

    def step(weights, table, caches, token, place):
        x, new = table[token], []
        for w, cache in zip(weights, caches, strict=True):
            x, cache = layer(w, x, cache, place)
            new.append(cache)
        return jnp.argmax(norm(x) @ table.T, -1), new
    caches = [(normal(1, length, heads, width // heads, seed=i), normal(1, length, heads, width // heads))
              for i in range(layers)]
    return step, (weights, table, caches, integers(4000, 1), 100)


@program("inference")
def llama_block():
    width, heads, groups, length = 512, 8, 2, 64
    size = width // heads
    names = {"q": (width, width), "k": (width, groups * size), "v": (width, groups * size),
             "o": (width, width), "gate": (width, 1376), "up": (width, 1376), "down": (1376, width)}
    weights = {name: normal(*shape, seed=i, scale=0.04) for i, (name, shape) in enumerate(names.items())}

    def norm(x):
        return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)

    def turn(x):
        angle = jnp.arange(length)[:, None] / 10000 ** (jnp.arange(0, size, 2) / size)
        cos, sin = jnp.cos(angle)[None, :, None], jnp.sin(angle)[None, :, None]
        a, b = jnp.split(x, 2, -1)
        return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

    def block(w, x):
        y = norm(x)
        q = turn((y @ w["q"]).reshape(1, length, heads, size))
        k = turn((y @ w["k"]).reshape(1, length, groups, size))
        v = (y @ w["v"]).reshape(1, length, groups, size)
        y = jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(1, length, width)
        x = x + y @ w["o"]
        y = norm(x)
        return x + (jax.nn.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"]
    return block, (weights, normal(1, length, width))


@program("inference")
def lstm():
    return of_module(nn.RNN(nn.OptimizedLSTMCell(128)), normal(16, 40, 64))


@program("inference")
def gru_bidirectional():
    return of_module(nn.Bidirectional(nn.RNN(nn.GRUCell(64)), nn.RNN(nn.GRUCell(64))), normal(8, 50, 32))


@program("inference")
def unet():
    class Unet(nn.Module):
        @nn.compact
        def __call__(self, x):
            kept = []
            for width in (16, 32, 64):
                x = nn.silu(nn.GroupNorm(8)(nn.Conv(width, (3, 3))(x)))
                kept.append(x)
                x = nn.avg_pool(x, (2, 2), (2, 2))
            x = nn.silu(nn.Conv(64, (3, 3))(x))
            for width in (64, 32, 16):
                x = nn.ConvTranspose(width, (2, 2), (2, 2))(x)
                x = nn.silu(nn.GroupNorm(8)(nn.Conv(width, (3, 3))(jnp.concatenate([x, kept.pop()], -1))))
            return nn.Conv(3, (1, 1))(x)
    return of_module(Unet(), normal(1, 64, 64, 3))


@program("inference")
def mobile_blocks():
    """Inverted residual blocks, by nnx."""
    class Block(nnx.Module):
        def __init__(self, width, rngs):
            self.up = nnx.Conv(width, 4 * width, (1, 1), rngs=rngs)
            self.deep = nnx.Conv(4 * width, 4 * width, (3, 3), feature_group_count=4 * width, rngs=rngs)
            self.norm = nnx.BatchNorm(4 * width, use_running_average=True, rngs=rngs)
            self.down = nnx.Conv(4 * width, width, (1, 1), rngs=rngs)

        def __call__(self, x):
            return x + self.down(jax.nn.hard_swish(self.norm(self.deep(self.up(x)))))

    graph, state = nnx.split([Block(32, nnx.Rngs(i)) for i in range(3)])

    def apply(state, x):
        for block in nnx.merge(graph, state):
            x = block(x)
        return x.mean((1, 2))
    return apply, (state, normal(2, 28, 28, 32))


@program("inference")
def wavenet():
    """Dilated causal convolutions over sound."""
    taps = [normal(2, 32, 64, seed=i, scale=0.1) for i in range(6)]
    mixes = [normal(32, 32, seed=i + 20, scale=0.1) for i in range(6)]

    def apply(taps, mixes, x):
        for i, (tap, mix) in enumerate(zip(taps, mixes, strict=True)):
            y = lax.conv_general_dilated(x, tap, (1,), [(2 ** i, 0)], rhs_dilation=(2 ** i,),
                                         dimension_numbers=("NWC", "WIO", "NWC"))
            a, b = jnp.split(y, 2, -1)
            x = x + (jnp.tanh(a) * jax.nn.sigmoid(b)) @ mix
        return x
    return apply, (taps, mixes, normal(1, 2000, 32))


@program("inference")
def mixture_of_experts():
    tokens, width, experts, capacity = 128, 128, 8, 48

    def apply(gate, up, down, x):
        weight, chosen = lax.top_k(jax.nn.softmax(x @ gate), 2)
        mask = jax.nn.one_hot(chosen.reshape(-1), experts, dtype=jnp.int32)
        place = (jnp.cumsum(mask, 0) * mask).sum(-1) - 1
        kept = place < capacity
        slot = jnp.where(kept, chosen.reshape(-1) * capacity + place, experts * capacity)
        sent = jnp.zeros((experts * capacity + 1, width)).at[slot].set(jnp.repeat(x, 2, 0))
        y = jnp.einsum("ecd,edh->ech", sent[:-1].reshape(experts, capacity, width), up)
        y = jnp.einsum("ech,ehd->ecd", jax.nn.gelu(y), down).reshape(-1, width)
        back = jnp.where(kept[:, None], y[jnp.minimum(slot, experts * capacity - 1)], 0)
        return (back.reshape(tokens, 2, width) * weight[..., None]).sum(1)
    return apply, (normal(width, experts), normal(experts, width, 256, scale=0.1),
                   normal(experts, 256, width, scale=0.1), normal(tokens, width))


@program("inference")
def attention_variants():
    """Local, linear and cross attention beside each other."""
    def apply(q, k, v, memory):
        near = jnp.abs(jnp.arange(192)[:, None] - jnp.arange(192)) < 32
        score = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8
        local = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(near, score, -1e9)), v)
        fq, fk = jax.nn.elu(q) + 1, jax.nn.elu(k) + 1
        linear = jnp.einsum("bqhd,bhde->bqhe", fq, jnp.einsum("bkhd,bkhe->bhde", fk, v))
        linear = linear / jnp.einsum("bqhd,bhd->bqh", fq, fk.sum(1))[..., None]
        cross = nn.dot_product_attention(q, memory, memory)
        return local + linear + cross
    return apply, (*(normal(2, 192, 4, 64, seed=i) for i in range(3)), normal(2, 50, 4, 64, seed=4))


@program("inference")
def int8_dense():
    def apply(layers, x):
        for weight, scale in layers:
            top = jnp.max(jnp.abs(x), -1, keepdims=True) / 127
            byte = jnp.round(x / top).astype(jnp.int8)
            y = lax.dot_general(byte, weight, (((1,), (0,)), ((), ())),
                                preferred_element_type=jnp.int32)
            x = jax.nn.relu(y.astype(jnp.float32) * top * scale)
        return x
    layers = [((normal(512, 512, seed=i) * 40).clip(-127, 127).astype("int8"),
               abs(normal(512, seed=i + 5)) * 0.002) for i in range(3)]
    return apply, (layers, normal(64, 512))


@program("inference")
def recommender():
    """DLRM: tables, dense features, products of pairs."""
    def apply(tables, bottom, top, dense, ids):
        x = dense
        for w in bottom:
            x = jax.nn.relu(x @ w)
        rows = jax.vmap(lambda table, i: table[i].sum(1), (0, 1), 1)(tables, ids)
        all_rows = jnp.concatenate([x[:, None], rows], 1)
        pairs = jnp.einsum("bid,bjd->bij", all_rows, all_rows)
        i, j = jnp.triu_indices(all_rows.shape[1], 1)
        x = jnp.concatenate([x, pairs[:, i, j]], -1)
        for w in top[:-1]:
            x = jax.nn.relu(x @ w)
        return jax.nn.sigmoid(x @ top[-1])[:, 0]
    bottom = [normal(13, 128, scale=0.2), normal(128, 32, scale=0.1)]
    top = [normal(32 + 36, 128, scale=0.1), normal(128, 1, scale=0.1)]
    return apply, (normal(8, 5000, 32), bottom, top, normal(256, 13), integers(5000, 256, 8, 4))
