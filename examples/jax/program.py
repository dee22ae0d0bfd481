"""A program of JAX on heddle: nothing in it says so.

    pip install jax; JAX_PLATFORMS=heddle python program.py
"""
import jax
import jax.numpy as jnp


@jax.jit
def step(weights, x, y):
    def loss(w):
        return jnp.mean((jnp.tanh(x @ w["a"]) @ w["b"] - y) ** 2)
    value, gradient = jax.value_and_grad(loss)(weights)
    return value, jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradient)


def main():
    print("on", jax.devices()[0].platform)
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (128, 4))
    y = jnp.sin(x[:, :1]) + x[:, 1:2]
    weights = {"a": jax.random.normal(keys[1], (4, 32)) / 2,
               "b": jax.random.normal(keys[2], (32, 1)) / 6}
    for number in range(201):
        value, weights = step(weights, x, y)
        if number % 100 == 0:
            print(f"step {number}: {value:.4f}")


if __name__ == "__main__":
    main()
