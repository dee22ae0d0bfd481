"""Steps of training, most of them by Flax and Optax."""
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax import nnx
from inference import EncoderBlock, ResidualBlock
from jax import lax
from registry import integers, normal, program


def step_of(loss, optimizer, params, *batch):
    """A step: gradient, update. The function returns new weights, state and loss."""
    def step(params, state, *batch):
        value, gradient = jax.value_and_grad(loss)(params, *batch)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, value
    return step, (params, optimizer.init(params), *batch)


def classified(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


@program("training")
def mlp_adam():
    module = nn.Sequential([nn.Dense(256), nn.relu, nn.Dense(256), nn.relu, nn.Dense(10)])
    params = jax.jit(module.init)(jax.random.key(0), normal(1, 784))
    return step_of(lambda p, x, y: classified(module.apply(p, x), y), optax.adam(1e-3), params,
                   normal(64, 784), integers(10, 64))


@program("training")
def cnn_momentum():
    module = nn.Sequential([nn.Conv(16, (3, 3)), nn.relu, lambda x: nn.avg_pool(x, (2, 2), (2, 2)),
                            nn.Conv(32, (3, 3)), nn.relu, lambda x: nn.max_pool(x, (2, 2), (2, 2)),
                            lambda x: x.reshape(x.shape[0], -1), nn.Dense(64), nn.relu, nn.Dense(10)])
    params = jax.jit(module.init)(jax.random.key(0), normal(1, 28, 28, 1))
    return step_of(lambda p, x, y: classified(module.apply(p, x), y), optax.sgd(0.1, momentum=0.9),
                   params, normal(16, 28, 28, 1), integers(10, 16))


@program("training")
def resnet_batch_norm():
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = ResidualBlock(32)(nn.Conv(32, (3, 3))(x), train=True)
            return nn.Dense(10)(ResidualBlock(64, 2)(x, train=True).mean((1, 2)))
    module, optimizer = Net(), optax.sgd(0.05, momentum=0.9, nesterov=True)
    variables = jax.jit(module.init)(jax.random.key(0), normal(1, 16, 16, 3))

    def step(params, stats, state, x, y):
        def loss(params):
            logits, changed = module.apply({"params": params, "batch_stats": stats}, x,
                                           mutable=["batch_stats"])
            return classified(logits, y), changed["batch_stats"]
        (value, stats_), gradient = jax.value_and_grad(loss, has_aux=True)(params)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), stats_, state, value
    params = variables["params"]
    return step, (params, variables["batch_stats"], optimizer.init(params), normal(8, 16, 16, 3),
                  integers(10, 8))


class LanguageModel(nn.Module):
    dropout: float = 0.0
    remat: bool = False

    @nn.compact
    def __call__(self, words):
        embed = nn.Embed(500, 128)
        x = embed(words) + nn.Embed(64, 128)(jnp.arange(words.shape[1]))
        block = nn.remat(EncoderBlock, static_argnums=(3,)) if self.remat else EncoderBlock
        for i in range(2):
            x = block(4, 512, self.dropout, name=f"block{i}")(x, nn.make_causal_mask(words), self.dropout > 0)
        return embed.attend(nn.LayerNorm()(x))


def language(optimizer, **options):
    module = LanguageModel(**options)
    words = integers(500, 4, 33)
    params = LanguageModel().init(jax.random.key(0), words[:, :-1])

    def loss(params, words, key):
        logits = module.apply(params, words[:, :-1], rngs={"dropout": key})
        return classified(logits, words[:, 1:])
    return step_of(loss, optimizer, params, words, jax.random.key(1))


@program("training")
def transformer_adamw():
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-3, 100, 1000)
    return language(optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule)))


@program("training")
def transformer_dropout():
    return language(optax.adam(1e-3), dropout=0.1)


@program("training")
def transformer_remat_lion():
    return language(optax.lion(1e-4), remat=True)


@program("training")
def autoencoder_variational():
    class Vae(nn.Module):
        @nn.compact
        def __call__(self, x, key):
            h = nn.relu(nn.Dense(256)(x))
            mean, logvar = nn.Dense(20)(h), nn.Dense(20)(h)
            z = mean + jnp.exp(0.5 * logvar) * jax.random.normal(key, mean.shape)
            return nn.Dense(784)(nn.relu(nn.Dense(256)(z))), mean, logvar
    module = Vae()
    x = jax.nn.sigmoid(normal(64, 784))

    def loss(params, x, key):
        logits, mean, logvar = module.apply(params, x, key)
        error = optax.sigmoid_binary_cross_entropy(logits, x).sum(-1)
        return (error - 0.5 * (1 + logvar - mean ** 2 - jnp.exp(logvar)).sum(-1)).mean()
    return step_of(loss, optax.adam(1e-3), jax.jit(module.init)(jax.random.key(0), x, jax.random.key(1)), x,
                   jax.random.key(2))


@program("training")
def gan_step():
    make = nn.Sequential([nn.Dense(128), nn.leaky_relu, nn.Dense(256), nn.leaky_relu, nn.Dense(784),
                          jnp.tanh])
    judge = nn.Sequential([nn.Dense(256), nn.leaky_relu, nn.Dense(128), nn.leaky_relu, nn.Dense(1)])
    optimizer = optax.adam(2e-4, b1=0.5)
    p, q = jax.jit(make.init)(jax.random.key(0), normal(1, 64)), jax.jit(judge.init)(jax.random.key(1), normal(1, 784))

    def step(p, q, sp, sq, real, key):
        noise = jax.random.normal(key, (real.shape[0], 64))

        def loss_q(q):
            yes, no = judge.apply(q, real), judge.apply(q, make.apply(p, noise))
            return jax.nn.softplus(-yes).mean() + jax.nn.softplus(no).mean()
        lq, gq = jax.value_and_grad(loss_q)(q)
        update, sq = optimizer.update(gq, sq)
        q = optax.apply_updates(q, update)
        lp, gp = jax.value_and_grad(
            lambda p: jax.nn.softplus(-judge.apply(q, make.apply(p, noise))).mean())(p)
        update, sp = optimizer.update(gp, sp)
        return optax.apply_updates(p, update), q, sp, sq, lp, lq
    return step, (p, q, optimizer.init(p), optimizer.init(q), jnp.tanh(normal(64, 784)),
                  jax.random.key(3))


@program("training")
def diffusion_step():
    class Noise(nn.Module):
        @nn.compact
        def __call__(self, x, t):
            angle = t[:, None] * 1000 ** (-jnp.arange(16) / 16)
            time = nn.Dense(32)(jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], -1))
            y = nn.swish(nn.Conv(32, (3, 3))(x) + time[:, None, None])
            y = y + nn.Conv(32, (3, 3))(nn.swish(nn.GroupNorm(8)(y)))
            return nn.Conv(x.shape[-1], (3, 3))(nn.swish(y))
    module, kept = Noise(), jnp.cumprod(1 - jnp.linspace(1e-4, 0.02, 1000))

    def loss(params, x, key):
        first, second = jax.random.split(key)
        t = jax.random.randint(first, (x.shape[0],), 0, 1000)
        noise = jax.random.normal(second, x.shape)
        a = kept[t][:, None, None, None]
        seen = jnp.sqrt(a) * x + jnp.sqrt(1 - a) * noise
        return jnp.mean((module.apply(params, seen, t.astype(jnp.float32)) - noise) ** 2)
    x = normal(8, 16, 16, 3)
    return step_of(loss, optax.adamw(1e-3), jax.jit(module.init)(jax.random.key(0), x, normal(8)), x,
                   jax.random.key(1))


@program("training")
def lstm_training():
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(1)(nn.RNN(nn.OptimizedLSTMCell(64))(x)[:, -1, :])
    module = Net()
    return step_of(lambda p, x, y: jnp.mean((module.apply(p, x) - y) ** 2), optax.rmsprop(1e-3),
                   jax.jit(module.init)(jax.random.key(0), normal(1, 20, 16)), normal(32, 30, 16), normal(32, 1))


@program("training")
def graph_network():
    nodes, edges, width = 400, 2400, 32

    def loss(params, x, sender, receiver, y):
        for edge, node in params["layers"]:
            message = jax.nn.relu(jnp.concatenate([x[sender], x[receiver]], -1) @ edge)
            total = jax.ops.segment_sum(message, receiver, nodes)
            count = jax.ops.segment_sum(jnp.ones(edges), receiver, nodes)
            x = jax.nn.relu(jnp.concatenate([x, total / jnp.maximum(count, 1)[:, None]], -1) @ node)
        return classified(x @ params["out"], y)
    params = {"layers": [(normal(2 * width, width, seed=i, scale=0.2),
                          normal(2 * width, width, seed=i + 5, scale=0.2)) for i in range(2)],
              "out": normal(width, 7)}
    return step_of(loss, optax.adam(1e-2), params, normal(nodes, width), integers(nodes, edges),
                   integers(nodes, edges, seed=1), integers(7, nodes))


@program("training")
def embeddings_adagrad():
    def loss(params, words, context, other):
        a, b = params["in"][words], params["out"][context]
        c = params["out"][other]
        yes = jax.nn.log_sigmoid((a * b).sum(-1))
        no = jax.nn.log_sigmoid(-jnp.einsum("bd,bnd->bn", a, c)).sum(-1)
        return -(yes + no).mean()
    params = {"in": normal(3000, 64, scale=0.1), "out": normal(3000, 64, seed=1, scale=0.1)}
    return step_of(loss, optax.adagrad(0.1), params, integers(3000, 256), integers(3000, 256, seed=1),
                   integers(3000, 256, 5, seed=2))


@program("training")
def nnx_mixer():
    class Mixer(nnx.Module):
        def __init__(self, rngs):
            self.tokens = nnx.Linear(64, 64, rngs=rngs)
            self.first, self.second = nnx.Linear(96, 192, rngs=rngs), nnx.Linear(192, 96, rngs=rngs)
            self.norm, self.head = nnx.LayerNorm(96, rngs=rngs), nnx.Linear(96, 10, rngs=rngs)

        def __call__(self, x):
            x = x + jnp.swapaxes(self.tokens(jnp.swapaxes(self.norm(x), 1, 2)), 1, 2)
            x = x + self.second(nnx.gelu(self.first(self.norm(x))))
            return self.head(x.mean(1))
    graph, params = nnx.split(Mixer(nnx.Rngs(0)))
    return step_of(lambda p, x, y: classified(nnx.merge(graph, p)(x), y), optax.adam(1e-3), params,
                   normal(16, 64, 96), integers(10, 16))


@program("training")
def private_gradients():
    """Gradients of each example, clipped, by vmap."""
    def loss(params, x, y):
        for w, b in params[:-1]:
            x = jnp.tanh(x @ w + b)
        return classified(x @ params[-1][0] + params[-1][1], y)

    def step(params, x, y, key):
        def clipped(x, y):
            gradient = jax.grad(loss)(params, x, y)
            factor = 1 / jnp.maximum(1.0, optax.global_norm(gradient))
            return jax.tree.map(lambda g: g * factor, gradient)
        total = jax.tree.map(lambda g: g.sum(0), jax.vmap(clipped)(x, y))
        keys = iter(jax.random.split(key, 6))
        return jax.tree.map(
            lambda p, g: p - 0.1 / 64 * (g + jax.random.normal(next(keys), g.shape)), params, total)
    sizes = (64, 128, 64, 10)
    params = [(normal(a, b, scale=0.1), normal(b)) for a, b in zip(sizes, sizes[1:], strict=False)]
    return step, (params, normal(64, 64), integers(10, 64), jax.random.key(0))


@program("training")
def meta_learning():
    """MAML: a gradient through gradients, over a batch of tasks."""
    def net(p, x):
        return jnp.tanh(jnp.tanh(x @ p[0] + p[1]) @ p[2] + p[3]) @ p[4]

    def error(p, x, y):
        return jnp.mean((net(p, x) - y) ** 2)

    def outer(p, x, y, xt, yt):
        def task(x, y, xt, yt):
            inner = p
            for _ in range(3):
                inner = jax.tree.map(lambda w, g: w - 0.05 * g, inner, jax.grad(error)(inner, x, y))
            return error(inner, xt, yt)
        return jax.vmap(task)(x, y, xt, yt).mean()
    p = [normal(1, 40), normal(40), normal(40, 40, scale=0.2), normal(40), normal(40, 1, scale=0.2)]
    data = [normal(16, 10, 1, seed=i) for i in range(4)]
    return step_of(outer, optax.adam(1e-3), p, *data)


@program("training")
def policy_gradient():
    """Rollouts of a cart with a pole, and the gradient of their return."""
    def move(state, force):
        x, v, a, w = jnp.moveaxis(state, -1, 0)
        pull = (force + 0.05 * w * w * jnp.sin(a)) / 1.1
        turn = (9.8 * jnp.sin(a) - jnp.cos(a) * pull) / (0.5 * (4 / 3 - 0.1 * jnp.cos(a) ** 2 / 1.1))
        push = pull - 0.05 * turn * jnp.cos(a) / 1.1
        return state + 0.02 * jnp.stack([v, push, w, turn], -1)

    def loss(params, start, key):
        def step(state, key):
            out = jnp.tanh(state @ params[0]) @ params[1]
            force = out[..., 0] + 0.1 * jax.random.normal(key, out.shape[:-1])
            state = move(state, 10 * jnp.tanh(force))
            return state, (state[..., 2] ** 2).mean()
        return lax.scan(step, start, jax.random.split(key, 50))[1].sum()
    return step_of(loss, optax.adam(1e-2), [normal(4, 32), normal(32, 1, scale=0.1)],
                   normal(64, 4, scale=0.1), jax.random.key(0))


@program("training")
def softmax_regression():
    """All of a training by gradient descent in one program."""
    def train(w, x, y):
        def step(w, _):
            value, gradient = jax.value_and_grad(
                lambda w: classified(x @ w, y) + 1e-3 * (w * w).sum())(w)
            return w - 0.5 * gradient, value
        return lax.scan(step, w, None, length=30)
    return train, (normal(64, 10, scale=0.01), normal(500, 64), integers(10, 500))


@program("training")
def logistic_lbfgs():
    optimizer = optax.lbfgs()

    def train(w, x, y):
        def loss(w):
            return jax.nn.softplus(-y * (x @ w)).mean() + 1e-2 * (w * w).sum()
        both = optax.value_and_grad_from_state(loss)

        def step(carry, _):
            w, state = carry
            value, gradient = both(w, state=state)
            update, state = optimizer.update(gradient, state, w, value=value, grad=gradient,
                                             value_fn=loss)
            return (optax.apply_updates(w, update), state), value
        return lax.scan(step, (w, optimizer.init(w)), None, length=10)[1]
    return train, (normal(50, scale=0.01), normal(400, 50), jnp.sign(normal(400)))
