"""Training steps of five networks as HLO text: make_training.py [-o DIR] [--size full|tiny] [NAME ...]

Writes for every NAME of networks.py
  DIR/NAME_step.hlo     forward, backward, Adam: (parameters, moments, count, seed, batch) -> the new ones and the loss
  DIR/NAME_forward.hlo  the loss alone, with dropout
and NAME_*.inputs.npz (arg0, arg1, ...), NAME_*.expected.npz (out0, ...: what XLA:CPU computes), for
full sizes only with --data.
"""
import argparse
import os

import jax
import jax.numpy as jnp
import numpy as np

import blocks
import networks

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT_FOLDER = os.path.realpath(os.path.join(HERE, "..", "..", "build", "bench-training"))


def forms_of(name, size):
    """Name of the form -> (function, arguments, arguments that may be overwritten)."""
    network = networks.NETWORKS[name]
    sizes = network.sizes[size]
    parameters = network.parameters(blocks.Drawer(0), sizes)
    batch = {key: jnp.asarray(value, jnp.float32 if value.dtype.kind == "f" else jnp.int32)
             for key, value in network.batch(np.random.default_rng(0), sizes).items()}
    seed = jnp.uint32(1)

    def forward(parameters, seed, batch):
        return network.loss(parameters, batch, seed, sizes)

    def step(parameters, moments, count, seed, batch):
        loss, gradients = jax.value_and_grad(forward)(parameters, seed, batch)
        parameters, moments = blocks.adam(parameters, gradients, moments, count)
        return parameters, moments, loss

    zeros = jax.tree.map(jnp.zeros_like, parameters)
    moments = (zeros, jax.tree.map(lambda x: jnp.full_like(x, 1e-4), parameters))
    return {"forward": (forward, (parameters, seed, batch), ()),
            "step": (step, (parameters, moments, jnp.float32(3), seed, batch), (0, 1))}


def write(name, function, arguments, donated, folder, data):
    path = os.path.join(folder, name)
    lowered = jax.jit(function, donate_argnums=donated, keep_unused=True).lower(*arguments)
    with open(path + ".hlo", "w") as file:
        file.write(lowered.as_text(dialect="hlo"))
    if data:
        leaves = jax.tree.leaves(arguments)
        np.savez_compressed(path + ".inputs.npz",
                            **{f"arg{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)})
        results = jax.tree.leaves(jax.jit(function)(*arguments))
        np.savez_compressed(path + ".expected.npz",
                            **{f"out{i}": np.asarray(leaf) for i, leaf in enumerate(results)})
    print(f"{name}: {len(jax.tree.leaves(arguments))} arguments, "
          f"{os.path.getsize(path + '.hlo') // 1000} KB of text")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("-o", "--output", default=DEFAULT_FOLDER)
    parser.add_argument("--size", choices=["full", "tiny"], default="full")
    parser.add_argument("--data", action="store_true", help="inputs and expected outputs, too")
    options = parser.parse_args()
    os.makedirs(options.output, exist_ok=True)
    for name in options.names or networks.NETWORKS:
        for form, (function, arguments, donated) in forms_of(name, options.size).items():
            write(f"{name}_{form}", function, arguments, donated, options.output,
                  options.data or options.size == "tiny")


if __name__ == "__main__":
    main()
