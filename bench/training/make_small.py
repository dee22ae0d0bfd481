"""Training steps of three small classifiers, whole: make_small.py [-o DIR] [NAME ...]

Writes for every NAME of small_networks.py
  DIR/NAME_step.hlo     (parameters, statistics, moments, count, x, labels) -> the new ones and the loss
  DIR/NAME_forward.hlo  (parameters, statistics, x) -> logits, with the statistics kept
  DIR/NAME.json         what a driver must know: data, batch, steps, arguments of the step in order, each with
                        name, role (parameter, statistic, moment, count, x, label), type, shape, init, deviation
No weights and no data: the driver draws both (tests/trained_network.h).
"""
import argparse
import json
import os

import jax
import jax.numpy as jnp

import blocks
import small_networks

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT_FOLDER = os.path.realpath(os.path.join(HERE, "..", "..", "tests", "testdata", "trained"))
EVALUATION = 64  # rows of NAME_forward.hlo
WARM_UP = 20     # steps


def is_init(x):
    return isinstance(x, small_networks.Init)


def shapes_of(tree):
    return jax.tree.map(lambda init: jax.ShapeDtypeStruct(init.shape, jnp.float32), tree, is_leaf=is_init)


def rate_at(network, count):
    """Rises to the network's rate, then falls to a fiftieth of it along a line."""
    falling = jnp.maximum(1 - count / network.steps, 0.02)
    return network.rate * jnp.minimum(count / WARM_UP, 1.0) * falling


def update(network, parameters, gradients, moments, count):
    rate = rate_at(network, count)
    if network.optimizer == "adam":
        return blocks.adam(parameters, gradients, moments, count, rate)
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, gradients)
    return jax.tree.map(lambda p, m: p - rate * m, parameters, moments), moments


def step_of(network):
    def loss(parameters, statistics, x, labels):
        logits, statistics = network.logits(parameters, statistics, x, True)
        hot = jax.nn.one_hot(labels, small_networks.CLASSES)  # no gather, so no scatter behind it
        return -(hot * jax.nn.log_softmax(logits, -1)).sum(-1).mean(), statistics

    def step(parameters, statistics, moments, count, x, labels):
        (value, statistics), gradients = jax.value_and_grad(loss, has_aux=True)(parameters, statistics, x, labels)
        parameters, moments = update(network, parameters, gradients, moments, count)
        return parameters, statistics, moments, count + 1, value
    return step


def x_shape(network, batch):
    if network.data == "images":
        return jax.ShapeDtypeStruct((batch, 16, 16, 3), jnp.float32)
    return jax.ShapeDtypeStruct((batch, small_networks.TRANSFORMER["length"]), jnp.int32)


def arguments_of(network):
    """Of the step: shapes, and the list for the driver."""
    zeros = jax.tree.map(lambda init: small_networks.Init(init.shape), network.parameters, is_leaf=is_init)
    moments = (zeros, zeros) if network.optimizer == "adam" else zeros
    one = small_networks.Init((), "ones")
    state = {"parameter": network.parameters, "statistic": network.statistics, "moment": moments, "count": one}
    described = []
    for role, tree in state.items():
        for path, init in jax.tree_util.tree_flatten_with_path(tree, is_leaf=is_init)[0]:
            name = ".".join(str(getattr(key, "key", getattr(key, "idx", ""))) for key in path)
            described.append({"name": name or role, "role": role, "type": "f32", "shape": list(init.shape),
                              "init": init.kind, "deviation": round(init.deviation, 6)})
    x, labels = x_shape(network, network.batch), jax.ShapeDtypeStruct((network.batch,), jnp.int32)
    for role, shape in [("x", x), ("label", labels)]:
        described.append({"name": role, "role": role, "type": "f32" if shape.dtype == jnp.float32 else "s32",
                          "shape": list(shape.shape)})
    return [*map(shapes_of, state.values()), x, labels], described


def write(path, function, arguments, donated=()):
    lowered = jax.jit(function, donate_argnums=donated, keep_unused=True).lower(*arguments)
    with open(path, "w") as file:
        file.write(lowered.as_text(dialect="hlo").rstrip() + "\n")
    print(f"{path}: {len(jax.tree.leaves(arguments))} arguments, {os.path.getsize(path) // 1000} KB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("-o", "--output", default=DEFAULT_FOLDER)
    options = parser.parse_args()
    os.makedirs(options.output, exist_ok=True)
    for name in options.names or small_networks.NETWORKS:
        network = small_networks.NETWORKS[name]
        path = os.path.join(options.output, name)
        arguments, described = arguments_of(network)
        write(path + "_step.hlo", step_of(network), arguments, (0, 1, 2, 3))
        write(path + "_forward.hlo", lambda p, kept, x: network.logits(p, kept, x, False)[0],
              [arguments[0], arguments[1], x_shape(network, EVALUATION)])
        lines = ",\n  ".join(json.dumps(argument) for argument in described)
        with open(path + ".json", "w") as file:
            file.write(f'{{"data": "{network.data}", "batch": {network.batch}, "steps": {network.steps}, '
                       f'"evaluation_batch": {EVALUATION},\n "arguments": [\n  {lines}\n ]}}\n')


if __name__ == "__main__":
    main()
