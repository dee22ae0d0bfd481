"""The rows: what they are, their inputs from a fixed seed, and the bytes that they have to move."""
import dataclasses
from typing import Callable

import numpy as np

import many_tensors

TENSORS = many_tensors.shapes(**many_tensors.FULL)


class Draw:
    """Values from a fixed seed."""

    def __init__(self):
        self.random = np.random.default_rng(0)

    def normal(self, *shape, scale=1.0, mean=0.0):
        x = self.random.standard_normal(shape, dtype=np.float32)
        return x if (scale, mean) == (1, 0) else np.float32(scale) * x + np.float32(mean)

    def positive(self, *shape):
        """About one, never near zero."""
        return np.abs(self.normal(*shape, scale=0.3)) + np.float32(0.6)

    def below(self, limit, *shape):
        return self.random.integers(0, limit, shape, dtype=np.int32)

    def gamma(self, width):
        return self.normal(width, scale=0.1, mean=1)

    def beta(self, width):
        return self.normal(width, scale=0.1)


def b2(draw):
    scores = draw.normal(8, 12, 512, 512, scale=8)
    mask = np.zeros((8, 512), np.float32)
    for batch in range(8):
        mask[batch, 512 - 40 * batch:] = -10000
    return [scores, mask]


def layer_norm_backward(draw):
    x = draw.normal(4096, 768, scale=2, mean=0.5)
    rstd = 1 / np.sqrt(x.var(1) + np.float32(1e-5))
    return [draw.normal(4096, 768), x, draw.gamma(768), x.mean(1), rstd]


def batch_norm_backward(draw):
    x = draw.normal(64, 256, 28, 28, scale=2, mean=0.5)
    rstd = 1 / np.sqrt(x.var((0, 2, 3)) + np.float32(1e-5))
    return [draw.normal(*x.shape), x, draw.gamma(256), x.mean((0, 2, 3)), rstd]


def attention_pooling(draw):
    return [draw.normal(256, 100, 36), draw.normal(256, 100, scale=3), 1 + draw.below(100, 256)]


def masked_softmax(draw):
    lengths = 100 + draw.below(276, 32)
    valid = np.arange(375)[None, :] < lengths[:, None]
    return [draw.normal(32, 4, 375, 375, scale=4), valid]


def rope(draw):
    place = np.arange(2048)[:, None] / 10000 ** (np.arange(64)[None, :] / 64)
    place = np.concatenate([place, place], axis=1)
    return [draw.normal(2048, 12288), np.cos(place).astype(np.float32),
            np.sin(place).astype(np.float32)]


def embeddings(draw):
    tables = [draw.normal(n, 768, scale=0.05) for n in [30522, 512, 2]]
    position = np.tile(np.arange(512, dtype=np.int32), 8)
    return [*tables, draw.below(30522, 4096), position, draw.below(2, 4096), draw.gamma(768),
            draw.beta(768)]


def adamw(draw):
    arrays = [draw.normal(*shape, scale=0.05) for shape in TENSORS]
    arrays += [draw.normal(*shape, scale=0.01) for shape in TENSORS]
    arrays += [draw.normal(*shape, scale=0.01) for shape in TENSORS]
    arrays += [np.square(draw.normal(*shape, scale=0.01)) for shape in TENSORS]
    return [*arrays, np.float32(1 - 0.9 ** 10), np.float32(1 - 0.999 ** 10)]


@dataclasses.dataclass
class Row:
    what: str
    inputs: Callable  # Draw -> arrays in the order of the parameters
    # Parameters of which only the rows that another one names are read: table -> indices.
    looked_up: dict = dataclasses.field(default_factory=dict)

    def make_inputs(self):
        return {f"arg{i}": np.asarray(x) for i, x in enumerate(self.inputs(Draw()))}

    def moved_bytes(self, inputs, outputs):
        """Each input and output once; of a table the rows that are looked up, each once."""
        total = sum(x.nbytes for x in outputs)
        for name, x in inputs.items():
            if name in self.looked_up:
                total += x[0].nbytes * len(np.unique(inputs[self.looked_up[name]]))
            else:
                total += x.nbytes
        return total


ROWS = {
    "b1": Row("residual + LayerNorm 4096x768", lambda d: [
        d.normal(4096, 768), d.normal(4096, 768), d.gamma(768), d.beta(768)]),
    "b2": Row("scale + mask + softmax 8x12x512x512", b2),
    "b3e": Row("bias + GELU (erf) 4096x3072", lambda d: [
        d.normal(4096, 3072, scale=2), d.normal(3072)]),
    "b3t": Row("bias + GELU (tanh) 4096x3072", lambda d: [
        d.normal(4096, 3072, scale=2), d.normal(3072)]),
    "b4": Row("LayerNorm backward 4096x768", layer_norm_backward),
    "b5": Row("dropout + residual + LayerNorm, training 4096x1024", lambda d: [
        d.normal(4096, 1024), d.normal(4096, 1024), d.gamma(1024), d.beta(1024), np.int32(20261)]),
    "t1": Row("label-smoothed cross entropy + dlogits 1024x32000", lambda d: [
        d.normal(1024, 32000, scale=2), d.below(32000, 1024)]),
    "t2": Row("softmax of few long rows 64x30000", lambda d: [d.normal(64, 30000, scale=3)]),
    "d1": Row("multiply + row reduce 750000x32", lambda d: [
        d.normal(750000, 32), d.normal(750000, 32)]),
    "d2": Row("AUGRU cell 256x36", lambda d: [
        *(d.normal(256, 36) for _ in range(5)), np.clip(d.positive(256) - 0.5, 0, 1)]),
    "d3": Row("masked softmax over 100 + weighted sum 256x100x36", attention_pooling),
    "d4": Row("Dice by batch statistics 25600x80", lambda d: [
        d.normal(25600, 80, scale=2, mean=0.3), d.normal(80, scale=0.25)]),
    "c1": Row("BatchNorm training + ReLU 64x256x8x25", lambda d: [
        d.normal(64, 256, 8, 25, scale=2, mean=0.3), d.gamma(256), d.beta(256)]),
    "c2": Row("LSTM cell 64x1024 to 64x256", lambda d: [
        d.normal(64, 1024), d.normal(64, 256)]),
    "a1": Row("GLU + BatchNorm inference + swish 32x375x512", lambda d: [
        d.normal(32, 375, 512), d.gamma(256), d.beta(256), d.beta(256), d.positive(256)]),
    "a2": Row("masked softmax 32x4x375x375", masked_softmax),
    "l1": Row("residual + RMSNorm, two outputs 4096x4096", lambda d: [
        d.normal(4096, 4096), d.normal(4096, 4096), d.gamma(4096)]),
    "l2": Row("SwiGLU 2048x11008", lambda d: [
        d.normal(2048, 11008, scale=2), d.normal(2048, 11008)]),
    "l3": Row("QKV split + RoPE + head transpose 2048x12288", rope),
    "l4": Row("RMSNorm + int8 by row 4096x4096", lambda d: [
        d.normal(4096, 4096), d.gamma(4096)]),
    "l5": Row("log-sum-exp + target gather 256x128256", lambda d: [
        d.normal(256, 128256, scale=2), d.below(128256, 256)]),
    "l6": Row("router: softmax + top 8 + renormalise 8192x64", lambda d: [
        d.normal(8192, 64, scale=2)]),
    "l7": Row("AdamW, 148 tensors, 17.9 M", adamw),
    "l8": Row("global norm + clip, 148 tensors, 17.9 M", lambda d: [
        d.normal(*shape, scale=0.01) for shape in TENSORS]),
    "x1": Row("NCHW to NHWC + LayerNorm 64x96x56x56", lambda d: [
        d.normal(64, 96, 56, 56), d.gamma(96), d.beta(96)]),
    "x2": Row("global response norm 16x56x56x384", lambda d: [
        d.normal(16, 56, 56, 384), d.gamma(384), d.beta(384)]),
    "u1": Row("GroupNorm(32) + SiLU 2x320x64x64", lambda d: [
        d.normal(2, 320, 64, 64, scale=2, mean=0.3), d.gamma(320), d.beta(320)]),
    "u2": Row("gate*y + residual, LayerNorm, modulate 8x1024x1152", lambda d: [
        d.normal(8, 1024, 1152), d.normal(8, 1024, 1152),
        *(d.normal(8, 1152, scale=0.3) for _ in range(3))]),
    "e1": Row("three embeddings + LayerNorm 4096x768", embeddings,
              {"arg0": "arg3", "arg1": "arg4", "arg2": "arg5"}),
    "e2": Row("embedding bag sum 4096x50x64", lambda d: [
        d.normal(500000, 64), d.below(500000, 4096, 50)], {"arg0": "arg1"}),
    "r1": Row("BatchNorm backward 64x256x28x28", batch_norm_backward),
}
