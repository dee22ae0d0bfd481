"""Three small classifiers of ten classes that are trained in tree: parameters, statistics, logits.

NETWORKS: name -> Network. Parameters are nested dicts of Init, which say how a driver draws them;
statistics, too: means and variances for batch norms at inference. `logits(p, statistics, x,
training)` gives (logits, new statistics); normalised by the batch where `training`.
"""
from collections import namedtuple

import jax.numpy as jnp
from jax import lax, nn

import blocks

CLASSES = 10

# kind: "normal" (of this deviation), "ones" or "zeros"
Init = namedtuple("Init", "shape kind deviation", defaults=("zeros", 0.0))
# data: what the driver makes as x: "images" f32[batch,16,16,3] or "tokens" s32[batch,32]
Network = namedtuple("Network", "data batch steps optimizer rate parameters statistics logits")


def kernel(*shape, gain=2.0):
    """He-normal: the fan-in is all but the last extent."""
    fan_in = 1
    for extent in shape[:-1]:
        fan_in *= extent
    return Init(shape, "normal", (gain / fan_in)**0.5)


def dense(inputs, outputs, gain=1.0):
    return {"w": kernel(inputs, outputs, gain=gain), "b": Init((outputs,))}


def norm(width):
    return {"scale": Init((width,), "ones"), "shift": Init((width,))}


def statistics(width):
    return {"mean": Init((width,)), "variance": Init((width,), "ones")}


def convolution(w, x, stride=1, groups=1):
    around = w.shape[0] // 2
    return blocks.convolution(w, x, (stride, stride), [(around, around)] * 2, groups)


def batch_norm(p, kept, x, training, momentum=0.9, epsilon=1e-5):
    """(normalised, new statistics); over all axes but the last."""
    mean, variance = kept["mean"], kept["variance"]
    if training:
        axes = tuple(range(x.ndim - 1))
        mean = x.mean(axes)
        variance = ((x - mean)**2).mean(axes)
        kept = {"mean": momentum * kept["mean"] + (1 - momentum) * lax.stop_gradient(mean),
                "variance": momentum * kept["variance"] + (1 - momentum) * lax.stop_gradient(variance)}
    return (x - mean) * (lax.rsqrt(variance + epsilon) * p["scale"]) + p["shift"], kept


# A plain network: convolutions, batch norms, ReLUs; (outputs, stride) of each.
CNN = [(32, 1), (32, 2), (64, 2)]


def cnn_parameters():
    p, inputs = {"dense": dense(64, CLASSES)}, 3
    for i, (outputs, _) in enumerate(CNN):
        p[f"conv{i}"] = {"w": kernel(3, 3, inputs, outputs), **norm(outputs)}
        inputs = outputs
    return p


def cnn_logits(p, kept, x, training):
    new = {}
    for i, (_, stride) in enumerate(CNN):
        layer = p[f"conv{i}"]
        x, new[f"conv{i}"] = batch_norm(layer, kept[f"conv{i}"], convolution(layer["w"], x, stride), training)
        x = nn.relu(x)
    return blocks.dense(p["dense"], x.mean((1, 2))), new


# Inverted residuals: a product to more channels, a depthwise convolution, a product back.
MOBILE = [(64, 48, 2), (96, 48, 1)]  # inner, outputs, stride
MOBILE_STEM, MOBILE_HEAD = 32, 96


def mobile_layers():
    """(name, kernel, groups?, stride) by layer, in order of use."""
    yield "stem", kernel(3, 3, 3, MOBILE_STEM), 1, 2
    inputs = MOBILE_STEM
    for i, (inner, outputs, stride) in enumerate(MOBILE):
        yield f"block{i}_expand", kernel(1, 1, inputs, inner), 1, 1
        yield f"block{i}_depthwise", kernel(3, 3, 1, inner), inner, stride
        yield f"block{i}_project", kernel(1, 1, inner, outputs, gain=1.0), 1, 1
        inputs = outputs
    yield "top", kernel(1, 1, inputs, MOBILE_HEAD), 1, 1


def mobile_parameters():
    p = {"dense": dense(MOBILE_HEAD, CLASSES)}
    for name, w, _, _ in mobile_layers():
        p[name] = {"w": w, **norm(w.shape[-1])}
    return p


def relu6(x):
    return jnp.clip(x, 0.0, 6.0)


def mobile_logits(p, kept, x, training):
    new, block = {}, x
    for name, _, groups, stride in mobile_layers():
        y = convolution(p[name]["w"], x, stride, groups)
        y, new[name] = batch_norm(p[name], kept[name], y, training)
        if name.endswith("_project"):
            x = block = y + block if y.shape == block.shape else y
        else:
            x = relu6(y)
            block = x if name == "stem" else block
    return blocks.dense(p["dense"], x.mean((1, 2))), new


def statistics_of(parameters):
    return {name: statistics(layer["scale"].shape[0]) for name, layer in parameters.items() if "scale" in layer}


# A pre-norm transformer encoder.
TRANSFORMER = dict(layers=2, width=64, inner=128, heads=4, vocabulary=64, length=32)


def transformer_parameters():
    s = TRANSFORMER
    width = s["width"]

    def layer():
        attention = {name: dense(width, width) for name in ("q", "v", "out")}
        return {"attention": {**attention, "k": kernel(width, width, gain=1.0)},
                "feed": {"up": dense(width, s["inner"], 2.0), "down": dense(s["inner"], width)},
                "norm1": norm(width), "norm2": norm(width)}

    return {"words": Init((s["vocabulary"], width), "normal", 0.5),
            "places": Init((s["length"], width), "normal", 0.5),
            **{f"layer{i}": layer() for i in range(s["layers"])},
            "norm": norm(width), "dense": dense(width, CLASSES)}


def transformer_logits(p, _, tokens, training):
    x = p["words"].at[tokens].get(mode="promise_in_bounds") + p["places"]
    for i in range(TRANSFORMER["layers"]):
        layer = p[f"layer{i}"]
        y = blocks.layer_norm(layer["norm1"], x)
        x = x + blocks.attention(layer["attention"], y, y, 0.0, TRANSFORMER["heads"], None, 0)
        y = blocks.layer_norm(layer["norm2"], x)
        x = x + blocks.feed_forward(layer["feed"], y, lambda u: nn.gelu(u, approximate=False))
    return blocks.dense(p["dense"], blocks.layer_norm(p["norm"], x).mean(1)), {}


NETWORKS = {
    "cnn": Network("images", 32, 300, "momentum", 0.05, cnn_parameters(),
                   statistics_of(cnn_parameters()), cnn_logits),
    "mobile": Network("images", 32, 300, "momentum", 0.05, mobile_parameters(),
                      statistics_of(mobile_parameters()), mobile_logits),
    "transformer": Network("tokens", 32, 300, "adam", 2e-3, transformer_parameters(), {}, transformer_logits),
}
