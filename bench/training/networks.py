"""The five models of FusionStitching's evaluation for training: sizes, parameters, losses.

NETWORKS: name -> Network; `sizes` has "full" and "tiny". A loss is a function of (parameters,
batch, seed of dropout, sizes).
"""
from collections import namedtuple

import jax.numpy as jnp
import numpy as np
from jax import nn

import blocks

# parameters(draw, size), batch(random, size) -> dict of arrays, loss(p, batch, seed, size)
Network = namedtuple("Network", "sizes parameters batch loss")
DROPOUT = 0.1


def encoder_layer_parameters(draw, width, inner):
    return {"attention": blocks.attention_parameters(draw, width),
            "feed": blocks.feed_forward_parameters(draw, width, inner),
            "norm1": draw.norm(width), "norm2": draw.norm(width)}


def encoder_layer(p, x, mask, heads, seed, activation):
    """Post-norm, as in BERT and the first Transformer."""
    y = blocks.attention(p["attention"], x, x, mask, heads, seed, DROPOUT)
    x = blocks.layer_norm(p["norm1"], x + blocks.dropout(y, seed + 1, DROPOUT))
    y = blocks.feed_forward(p["feed"], x, activation)
    return blocks.layer_norm(p["norm2"], x + blocks.dropout(y, seed + 2, DROPOUT))


def causal(length):
    return jnp.where(jnp.tril(jnp.ones((length, length), bool)), 0, blocks.NEGATIVE)


# BERT: masked words, the decoder tied to the embedding.
def bert_parameters(draw, s):
    return {"words": draw.normal(s["vocabulary"], s["width"], scale=0.02),
            "places": draw.normal(s["length"], s["width"], scale=0.02),
            "segments": draw.normal(2, s["width"], scale=0.02), "norm": draw.norm(s["width"]),
            "layers": [encoder_layer_parameters(draw, s["width"], s["inner"])
                       for _ in range(s["layers"])],
            "transform": draw.dense(s["width"], s["width"]), "transform_norm": draw.norm(s["width"]),
            "bias": jnp.zeros(s["vocabulary"])}


def bert_batch(random, s):
    shape = (s["batch"], s["length"])
    lengths = random.integers(s["length"] // 2, s["length"] + 1, s["batch"])
    return {"tokens": random.integers(0, s["vocabulary"], shape),
            "segments": random.integers(0, 2, shape),
            "mask": (np.arange(s["length"]) < lengths[:, None]).astype(np.float32),
            "positions": random.integers(0, s["length"], (s["batch"], s["masked"])),
            "labels": random.integers(0, s["vocabulary"], (s["batch"], s["masked"]))}


def bert_loss(p, batch, seed, s):
    x = p["words"][batch["tokens"]] + p["places"] + p["segments"][batch["segments"]]
    x = blocks.dropout(blocks.layer_norm(p["norm"], x), seed, DROPOUT)
    mask = (1 - batch["mask"])[:, None, None, :] * blocks.NEGATIVE
    for i, layer in enumerate(p["layers"]):
        x = encoder_layer(layer, x, mask, s["heads"], seed + 8 * i + 1,
                          lambda y: nn.gelu(y, approximate=False))
    x = jnp.take_along_axis(x, batch["positions"][..., None], 1)
    x = blocks.layer_norm(p["transform_norm"],
                          nn.gelu(blocks.dense(p["transform"], x), approximate=False))
    return blocks.cross_entropy(x @ p["words"].T + p["bias"], batch["labels"])


# One layer of BERT by itself, forward and backward; its input has a gradient too.
def bert_layer_parameters(draw, s):
    return {"layer": encoder_layer_parameters(draw, s["width"], s["inner"]),
            "x": draw.normal(s["batch"], s["length"], s["width"], scale=1)}


def bert_layer_batch(random, s):
    return {"wanted": random.standard_normal((s["batch"], s["length"], s["width"]))}


def bert_layer_loss(p, batch, seed, s):
    y = encoder_layer(p["layer"], p["x"], 0, s["heads"], seed, lambda x: nn.gelu(x, approximate=False))
    return ((y - batch["wanted"])**2).mean()


# Transformer: encoder and decoder, label smoothing.
def transformer_parameters(draw, s):
    def decoder_layer():
        p = encoder_layer_parameters(draw, s["width"], s["inner"])
        return {**p, "across": blocks.attention_parameters(draw, s["width"]),
                "norm3": draw.norm(s["width"])}

    return {"words": draw.normal(s["vocabulary"], s["width"], scale=s["width"]**-0.5),
            "encoder": [encoder_layer_parameters(draw, s["width"], s["inner"])
                        for _ in range(s["layers"])],
            "decoder": [decoder_layer() for _ in range(s["layers"])]}


def transformer_batch(random, s):
    shape = (s["batch"], s["length"])
    return {name: random.integers(0, s["vocabulary"], shape)
            for name in ("source", "target", "labels")}


def sines(length, width):
    angles = np.arange(length)[:, None] / 10000**(np.arange(0, width, 2) / width)
    return jnp.asarray(np.concatenate([np.sin(angles), np.cos(angles)], 1), jnp.float32)


def transformer_loss(p, batch, seed, s):
    def embedded(tokens, seed):
        x = p["words"][tokens] * s["width"]**0.5 + sines(s["length"], s["width"])
        return blocks.dropout(x, seed, DROPOUT)

    memory = embedded(batch["source"], seed)
    for i, layer in enumerate(p["encoder"]):
        memory = encoder_layer(layer, memory, 0.0, s["heads"], seed + 8 * i + 1, nn.relu)
    x = embedded(batch["target"], seed + 100)
    for i, layer in enumerate(p["decoder"]):
        at = seed + 8 * i + 101
        y = blocks.attention(layer["attention"], x, x, causal(s["length"]), s["heads"], at, DROPOUT)
        x = blocks.layer_norm(layer["norm1"], x + blocks.dropout(y, at + 1, DROPOUT))
        y = blocks.attention(layer["across"], x, memory, 0.0, s["heads"], at + 2, DROPOUT)
        x = blocks.layer_norm(layer["norm3"], x + blocks.dropout(y, at + 3, DROPOUT))
        y = blocks.feed_forward(layer["feed"], x, nn.relu)
        x = blocks.layer_norm(layer["norm2"], x + blocks.dropout(y, at + 4, DROPOUT))
    return blocks.cross_entropy(x @ p["words"].T, batch["labels"], smoothing=0.1)


# DIEN: interests by a GRU, their evolution by an AUGRU, the loss with the auxiliary one.
def dien_parameters(draw, s):
    item, width = 2 * s["embedding"], s["width"]
    joined = s["embedding"] + 2 * item + width
    return {"users": draw.normal(s["users"], s["embedding"], scale=1.0),
            "items": draw.normal(s["items"], s["embedding"], scale=1.0),
            "categories": draw.normal(s["categories"], s["embedding"], scale=1.0),
            "interest": blocks.gru_parameters(draw, item, width),
            "evolution": blocks.gru_parameters(draw, width, width),
            "attention": {"item": draw.normal(item, width), "first": draw.dense(4 * width, 80),
                          "second": draw.dense(80, 40), "last": draw.normal(40, 1)},
            "auxiliary": {"first": draw.dense(item + width, 100), "last": draw.dense(100, 1)},
            "norm": draw.norm(joined), "first": draw.dense(joined, 200), "dice1": jnp.zeros(200),
            "second": draw.dense(200, 80), "dice2": jnp.zeros(80), "last": draw.dense(80, 2)}


def dien_batch(random, s):
    history = (s["batch"], s["length"])
    lengths = random.integers(s["length"] // 2, s["length"] + 1, s["batch"])
    batch = {"user": random.integers(0, s["users"], s["batch"]),
             "mask": (np.arange(s["length"]) < lengths[:, None]).astype(np.float32),
             "label": random.integers(0, 2, s["batch"])}
    for kind in ("items", "categories"):
        batch[kind] = random.integers(0, s[kind], s["batch"])
        for what in ("history", "refused"):
            batch[f"{what}_{kind}"] = random.integers(0, s[kind], history)
    return batch


def dien_loss(p, batch, _, s):
    def embedded(prefix):
        return jnp.concatenate([p[kind][batch[prefix + kind]] for kind in ("items", "categories")], -1)

    target, history, refused = embedded(""), embedded("history_"), embedded("refused_")
    mask = batch["mask"]
    interest = blocks.gru(p["interest"], history.transpose(1, 0, 2)).transpose(1, 0, 2)

    def clicked(items):
        x = jnp.concatenate([interest[:, :-1], items[:, 1:]], -1)
        return blocks.dense(p["auxiliary"]["last"],
                            nn.sigmoid(blocks.dense(p["auxiliary"]["first"], x)))[..., 0]

    auxiliary = -(nn.log_sigmoid(clicked(history)) + nn.log_sigmoid(-clicked(refused)))
    auxiliary = (auxiliary * mask[:, 1:]).mean()

    attention = p["attention"]
    query = jnp.broadcast_to((target @ attention["item"])[:, None], interest.shape)
    scores = jnp.concatenate([query, interest, query - interest, query * interest], -1)
    for name in ("first", "second"):
        scores = nn.sigmoid(blocks.dense(attention[name], scores))
    scores = (scores @ attention["last"])[..., 0]
    weights = nn.softmax(jnp.where(mask > 0, scores, blocks.NEGATIVE), -1)
    state = blocks.gru(p["evolution"], interest.transpose(1, 0, 2), weights.T)[-1]

    bag = (history * mask[..., None]).sum(1)
    x = blocks.batch_norm(p["norm"],
                          jnp.concatenate([p["users"][batch["user"]], target, bag, state], -1))
    x = blocks.dice(p["dice1"], blocks.dense(p["first"], x))
    x = blocks.dice(p["dice2"], blocks.dense(p["second"], x))
    return blocks.cross_entropy(blocks.dense(p["last"], x), batch["label"]) + auxiliary


# ASR: a Conformer on spectra, by CTC.
def asr_parameters(draw, s):
    width = s["width"]

    def layer():
        return {"feed1": blocks.feed_forward_parameters(draw, width, s["inner"]),
                "feed2": blocks.feed_forward_parameters(draw, width, s["inner"]),
                "attention": blocks.attention_parameters(draw, width),
                "expand": draw.dense(width, 2 * width),
                "depthwise": draw.normal(s["kernel"], 1, 1, width), "middle": draw.norm(width),
                "shrink": draw.dense(width, width),
                **{f"norm{i}": draw.norm(width) for i in range(5)}}

    reduced = -(-(-(-s["features"] // 2)) // 2)
    return {"first": draw.normal(3, 3, 1, width), "second": draw.normal(3, 3, width, width),
            "in": draw.dense(reduced * width, width), "layers": [layer() for _ in range(s["layers"])],
            "out": draw.dense(width, s["vocabulary"])}


def asr_batch(random, s):
    return {"spectra": random.standard_normal((s["batch"], s["frames"], s["features"])),
            "labels": random.integers(1, s["vocabulary"], (s["batch"], s["labels"]))}


def asr_loss(p, batch, seed, s):
    x = batch["spectra"][..., None]
    for name in ("first", "second"):
        x = nn.relu(blocks.convolution(p[name], x, (2, 2)))
    x = blocks.dense(p["in"], x.reshape(*x.shape[:2], -1))
    for i, layer in enumerate(p["layers"]):
        at = seed + 8 * i
        y = blocks.feed_forward(layer["feed1"], blocks.layer_norm(layer["norm0"], x), nn.silu)
        x = x + 0.5 * blocks.dropout(y, at, DROPOUT)
        y = blocks.layer_norm(layer["norm1"], x)
        x = x + blocks.attention(layer["attention"], y, y, 0.0, s["heads"], at + 1, DROPOUT)
        y = blocks.dense(layer["expand"], blocks.layer_norm(layer["norm2"], x))
        y = nn.glu(y)[:, :, None]
        y = blocks.convolution(layer["depthwise"], y, groups=s["width"])[:, :, 0]
        y = blocks.dense(layer["shrink"], nn.silu(blocks.batch_norm(layer["middle"], y)))
        x = x + blocks.dropout(y, at + 2, DROPOUT)
        y = blocks.feed_forward(layer["feed2"], blocks.layer_norm(layer["norm3"], x), nn.silu)
        x = blocks.layer_norm(layer["norm4"], x + 0.5 * blocks.dropout(y, at + 3, DROPOUT))
    return blocks.ctc_loss(blocks.dense(p["out"], x).transpose(1, 0, 2), batch["labels"])


# CRNN: convolutions with batch norms, two bidirectional LSTMs, CTC.
CRNN_LAYERS = [(1, True), (2, True), (4, False), (4, (2, 1)), (8, False), (8, (2, 1))]


def crnn_parameters(draw, s):
    channels = [1] + [factor * s["width"] for factor, _ in CRNN_LAYERS]
    top = channels[-1]
    return {"layers": [{"w": draw.normal(3, 3, a, b), "norm": draw.norm(b)}
                       for a, b in zip(channels, channels[1:])],
            "last": draw.normal(2, 2, top, top), "last_norm": draw.norm(top),
            "lstm": [{way: blocks.lstm_parameters(draw, inputs, s["state"]) for way in ("on", "back")}
                     for inputs in (top, s["state"])],
            "between": [draw.dense(2 * s["state"], s["state"]),
                        draw.dense(2 * s["state"], s["vocabulary"])]}


def crnn_batch(random, s):
    return {"images": random.standard_normal((s["batch"], 32, s["columns"], 1)),
            "labels": random.integers(1, s["vocabulary"], (s["batch"], s["labels"]))}


def max_pool(x, window):
    """Windows that do not overlap."""
    height, width = window
    n, h, w, c = x.shape
    return x.reshape(n, h // height, height, w // width, width, c).max((2, 4))


def crnn_loss(p, batch, _, s):
    x = batch["images"]
    for layer, (_, pool) in zip(p["layers"], CRNN_LAYERS):
        x = nn.relu(blocks.batch_norm(layer["norm"], blocks.convolution(layer["w"], x)))
        if pool:
            x = max_pool(x, (2, 2) if pool is True else pool)
    x = nn.relu(blocks.batch_norm(p["last_norm"], blocks.convolution(p["last"], x, padding="VALID")))
    x = x[:, 0].transpose(1, 0, 2)
    for lstm, dense in zip(p["lstm"], p["between"]):
        x = jnp.concatenate([blocks.lstm(lstm["on"], x), blocks.lstm(lstm["back"], x, True)], -1)
        x = blocks.dense(dense, x)
    return blocks.ctc_loss(x, batch["labels"])


NETWORKS = {
    "bert": Network(
        {"full": dict(layers=4, width=768, inner=3072, heads=12, vocabulary=30522, length=128,
                      batch=4, masked=20),
         "tiny": dict(layers=1, width=16, inner=32, heads=2, vocabulary=40, length=12, batch=2,
                      masked=3)},
        bert_parameters, bert_batch, bert_loss),
    "bert_layer": Network(
        {"full": dict(width=768, inner=3072, heads=12, length=128, batch=4),
         "tiny": dict(width=16, inner=32, heads=2, length=12, batch=2)},
        bert_layer_parameters, bert_layer_batch, bert_layer_loss),
    "transformer": Network(
        {"full": dict(layers=3, width=512, inner=2048, heads=8, vocabulary=16000, length=64, batch=4),
         "tiny": dict(layers=1, width=16, inner=24, heads=2, vocabulary=30, length=10, batch=2)},
        transformer_parameters, transformer_batch, transformer_loss),
    "dien": Network(
        {"full": dict(users=50000, items=100000, categories=1600, embedding=18, width=36, length=100,
                      batch=256),
         "tiny": dict(users=20, items=30, categories=10, embedding=6, width=8, length=7, batch=4)},
        dien_parameters, dien_batch, dien_loss),
    "asr": Network(
        {"full": dict(layers=4, width=256, inner=1024, heads=4, kernel=31, features=80, frames=400,
                      batch=4, labels=30, vocabulary=1000),
         "tiny": dict(layers=1, width=16, inner=24, heads=2, kernel=5, features=12, frames=40,
                      batch=2, labels=3, vocabulary=20)},
        asr_parameters, asr_batch, asr_loss),
    "crnn": Network(
        {"full": dict(width=64, state=256, columns=128, batch=16, labels=8, vocabulary=37),
         "tiny": dict(width=4, state=8, columns=32, batch=2, labels=2, vocabulary=12)},
        crnn_parameters, crnn_batch, crnn_loss),
}
