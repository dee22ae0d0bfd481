"""Programs that are no networks: loops, statistics, signals, sorting, simulation."""
import jax
import jax.numpy as jnp
from jax import lax
from registry import integers, normal, program


@program("science")
def k_means():
    def run(x, centres):
        def step(centres, _):
            distance = (x ** 2).sum(1)[:, None] - 2 * x @ centres.T + (centres ** 2).sum(1)
            nearest = jnp.argmin(distance, 1)
            count = jax.ops.segment_sum(jnp.ones(len(x)), nearest, len(centres))
            total = jax.ops.segment_sum(x, nearest, len(centres))
            return total / jnp.maximum(count, 1)[:, None], distance.min(1).mean()
        return lax.scan(step, centres, None, length=10)
    x = normal(2000, 16)
    return run, (x, x[:16])


@program("science")
def pca_power():
    def run(x, start):
        x = x - x.mean(0)

        def one(x, v):
            def body(carry):
                v, _, i = carry
                w = x.T @ (x @ v)
                w = w / jnp.linalg.norm(w)
                return w, jnp.abs(w - v).max(), i + 1
            v = lax.while_loop(lambda c: (c[1] > 1e-6) & (c[2] < 60), body, (v, jnp.inf, 0))[0]
            return x - jnp.outer(x @ v, v), v
        return lax.scan(one, x, start)[1]
    x = normal(300, 64) * jnp.linspace(5, 0.5, 64)
    return run, (x, normal(3, 64))


@program("science")
def gaussian_process():
    def run(x, y, xs, scale):
        def kernel(a, b):
            d = ((a[:, None] - b[None]) ** 2).sum(-1)
            return jnp.exp(-0.5 * d / scale ** 2)
        low = jnp.linalg.cholesky(kernel(x, x) + 1e-2 * jnp.eye(len(x)))
        alpha = jax.scipy.linalg.cho_solve((low, True), y)
        cross = kernel(xs, x)
        v = jax.scipy.linalg.solve_triangular(low, cross.T, lower=True)
        return cross @ alpha, 1 - (v * v).sum(0), jnp.log(jnp.diag(low)).sum()
    return run, (normal(200, 3), normal(200), normal(100, 3, seed=1), 1.5)


@program("science")
def n_body():
    def run(x, v, mass):
        def force(x):
            d = x[None] - x[:, None]
            r = (d * d).sum(-1) + 1e-2
            return (d * (mass[None, :] * r ** -1.5)[..., None]).sum(1)

        def step(carry, _):
            x, v = carry
            v = v + 0.005 * force(x)
            x = x + 0.01 * v
            v = v + 0.005 * force(x)
            return (x, v), (v * v).sum()
        return lax.scan(step, (x, v), None, length=10)
    return run, (normal(128, 3), normal(128, 3, seed=1, scale=0.1), abs(normal(128)))


@program("science")
def heat_equation():
    def run(u):
        def step(u, _):
            inner = u[1:-1, 1:-1] + 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
                                           - 4 * u[1:-1, 1:-1])
            return u.at[1:-1, 1:-1].set(inner), None
        return lax.scan(step, u, None, length=50)[0]
    return run, (normal(128, 128),)


@program("science")
def game_of_life():
    def run(board):
        def step(_, board):
            near = sum(jnp.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)
                       if (i, j) != (0, 0))
            return ((near == 3) | ((near == 2) & (board == 1))).astype(board.dtype)
        return lax.fori_loop(0, 20, step, board)
    return run, (integers(2, 128, 128),)


@program("science")
def monte_carlo():
    def run(key, price):
        def path(key):
            steps = jax.random.normal(key, (32,))
            walk = jnp.cumsum(0.2 * jnp.sqrt(1 / 32) * steps - 0.02 / 32)
            return jnp.exp(walk)
        paths = price * jax.vmap(path)(jax.random.split(key, 2000))
        gain = jnp.maximum(paths.mean(1) - price, 0)
        return gain.mean(), gain.std(), jnp.percentile(paths[:, -1], jnp.array([5.0, 50.0, 95.0]))
    return run, (jax.random.key(0), 100.0)


@program("science")
def kalman_filter():
    def run(transition, observe, q, r, seen):
        def step(carry, z):
            x, p = carry
            x, p = transition @ x, transition @ p @ transition.T + q
            s = observe @ p @ observe.T + r
            gain = jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(s), observe @ p).T
            x = x + gain @ (z - observe @ x)
            p = p - gain @ observe @ p
            return (x, p), x
        return lax.scan(step, (jnp.zeros(6), jnp.eye(6)), seen)[1]
    return run, (jnp.eye(6) + 0.1 * jnp.eye(6, k=1), normal(3, 6), 0.01 * jnp.eye(6), jnp.eye(3),
                 normal(200, 3))


@program("science")
def fft_filter():
    def run(x, width):
        spectrum = jnp.fft.rfft(x)
        frequency = jnp.fft.rfftfreq(x.shape[-1])
        low = jnp.fft.irfft(spectrum * jnp.exp(-(frequency * width) ** 2), x.shape[-1])
        return low, jnp.abs(spectrum) ** 2
    return run, (normal(64, 2048), 20.0)


@program("science")
def spectrogram():
    def run(x):
        frames = x[jnp.arange(0, 15872, 128)[:, None] + jnp.arange(512)]
        power = jnp.abs(jnp.fft.rfft(frames * jnp.hanning(512))) ** 2
        return jnp.log(power @ jnp.abs(jnp.sin(jnp.arange(257 * 40.0))).reshape(257, 40) + 1e-6)
    return run, (normal(16384),)


@program("science")
def ranking():
    def run(score, relevance):
        order = jnp.argsort(-score, axis=1)
        ranked = jnp.take_along_axis(relevance, order, 1)
        gain = (ranked[:, :10] / jnp.log2(jnp.arange(2, 12))).sum(1)
        best = (jnp.sort(relevance, 1)[:, ::-1][:, :10] / jnp.log2(jnp.arange(2, 12))).sum(1)
        top, index = lax.top_k(score, 20)
        return (gain / jnp.maximum(best, 1e-6)).mean(), top, index
    return run, (normal(64, 1000), abs(normal(64, 1000, seed=1)))


@program("science")
def state_space():
    """A linear recurrence by an associative scan."""
    def run(a, b, c, x):
        decay = jnp.exp(-jax.nn.softplus(x @ a))

        def join(left, right):
            return left[0] * right[0], right[0] * left[1] + right[1]
        h = lax.associative_scan(join, (decay, (1 - decay) * (x @ b)), axis=1)[1]
        return h @ c
    return run, (normal(32, 64, scale=0.2), normal(32, 64), normal(64, 32), normal(4, 256, 32))


@program("science")
def tensor_network():
    def run(cores, left, right):
        for core in cores:
            left = jnp.einsum("iab,apc,bpd,ipq->icd", left, core, core, right, optimize="optimal")
            left = left / jnp.linalg.norm(left)
        return jnp.einsum("iaa->i", left)
    return run, ([normal(48, 4, 48, seed=i, scale=0.1) for i in range(6)], normal(4, 48, 48),
                 normal(4, 4, 4, seed=9))


@program("science")
def lorenz_runge_kutta():
    def run(state):
        def slope(s):
            x, y, z = s[..., 0], s[..., 1], s[..., 2]
            return jnp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z], -1)

        def step(s, _):
            k1 = slope(s)
            k2 = slope(s + 0.005 * k1)
            k3 = slope(s + 0.005 * k2)
            k4 = slope(s + 0.01 * k3)
            s = s + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            return s, s.mean(0)
        return lax.scan(step, state, None, length=50)
    return run, (normal(256, 3),)


@program("science")
def mandelbrot():
    def run(re, im):
        c = re[None, :] + 1j * im[:, None]

        def body(carry):
            z, count, i = carry
            z = jnp.where(jnp.abs(z) < 2, z * z + c, z)
            return z, count + (jnp.abs(z) < 2), i + 1
        start = (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32), 0)
        return lax.while_loop(lambda s: s[2] < 40, body, start)[1]
    return run, (jnp.linspace(-2, 0.5, 120), jnp.linspace(-1.1, 1.1, 100))


@program("science")
def hamiltonian_sampler():
    def run(key, x, a):
        def energy(q):
            return 0.5 * ((a @ q) ** 2).sum() + jnp.log(jnp.cosh(q)).sum()

        def sample(q, key):
            first, second = jax.random.split(key)
            p = jax.random.normal(first, q.shape)

            def leap(_, s):
                q, p = s
                p = p - 0.05 * jax.grad(energy)(q)
                q = q + 0.1 * p
                return q, p - 0.05 * jax.grad(energy)(q)
            q_, p_ = lax.fori_loop(0, 5, leap, (q, p))
            change = energy(q) + 0.5 * (p @ p) - energy(q_) - 0.5 * (p_ @ p_)
            q = jnp.where(jnp.log(jax.random.uniform(second)) < change, q_, q)
            return q, q
        return jax.vmap(lambda q, key: lax.scan(sample, q, jax.random.split(key, 20)))(
            x, jax.random.split(key, len(x)))[1].mean((0, 1))
    return run, (jax.random.key(0), normal(16, 20), normal(20, 20, scale=0.1))


@program("science")
def page_rank():
    def run(source, target):
        degree = jnp.zeros(2000).at[source].add(1.0)

        def body(carry):
            rank, _, i = carry
            share = (rank / jnp.maximum(degree, 1))[source]
            new = 0.15 / 2000 + 0.85 * jnp.zeros(2000).at[target].add(share)
            return new, jnp.abs(new - rank).sum(), i + 1
        return lax.while_loop(lambda s: (s[1] > 1e-7) & (s[2] < 30), body,
                              (jnp.full(2000, 1 / 2000), jnp.inf, 0))[0]
    return run, (integers(2000, 10000), integers(2000, 10000, seed=1))


@program("science")
def optimal_transport():
    def run(x, y):
        cost = jnp.sqrt(((x[:, None] - y[None]) ** 2).sum(-1) + 1e-9)

        def step(carry, _):
            f, g = carry
            f = -0.1 * jax.nn.logsumexp((g - cost) / 0.1, axis=1)
            g = -0.1 * jax.nn.logsumexp((f[:, None] - cost) / 0.1, axis=0)
            return (f, g), None
        (f, g), _ = lax.scan(step, (jnp.zeros(len(x)), jnp.zeros(len(y))), None, length=10)
        return (jnp.exp((f[:, None] + g - cost) / 0.1) * cost).sum()
    return jax.value_and_grad(run), (normal(150, 2), normal(150, 2, seed=1) + 1)


@program("science")
def image_pipeline():
    def run(images, kernel):
        small = jax.image.resize(images, (images.shape[0], 64, 64, 3), "bilinear")
        gray = small @ jnp.array([0.299, 0.587, 0.114])
        blur = lax.conv(gray[:, None], kernel[None, None], (1, 1), "SAME")[:, 0]
        dx, dy = jnp.gradient(blur, axis=(1, 2))
        edge = jnp.hypot(dx, dy)
        peak = lax.reduce_window(edge, -jnp.inf, lax.max, (1, 3, 3), (1, 1, 1), "SAME")
        return jnp.where(edge == peak, edge, 0), jnp.histogram(gray, 32, (-2, 2))[0]
    return run, (normal(4, 160, 160, 3), abs(normal(5, 5)) / 20)


@program("science")
def edit_distance():
    """Dynamic programming by a scan over rows, over a batch of pairs."""
    def run(a, b):
        def one(a, b):
            def row(previous, letter):
                change = jnp.minimum(previous[1:] + 1, previous[:-1] + (b != letter))

                def cell(left, c):
                    value = jnp.minimum(left + 1, c)
                    return value, value
                rest = lax.scan(cell, previous[0] + 1, change)[1]
                return jnp.concatenate([previous[:1] + 1, rest]), None
            return lax.scan(row, jnp.arange(len(b) + 1), a)[0][-1]
        return jax.vmap(one)(a, b)
    return run, (integers(4, 32, 32), integers(4, 32, 32, seed=1))


@program("science")
def quantile_bootstrap():
    def run(key, x):
        def one(key):
            chosen = jax.random.choice(key, x, (len(x),))
            return jnp.stack([chosen.mean(), jnp.median(chosen), chosen.std()])
        return jnp.quantile(jax.vmap(one)(jax.random.split(key, 64)), jnp.array([0.025, 0.975]), axis=0)
    return run, (jax.random.key(0), normal(1000))
