"""Networks whose shapes depend on values: a detector with NMS, a mixture of experts, a text to
speech model with a length regulator. Random weights."""
import dataclasses

import numpy as np
import torch
import torchvision
from torch import nn
from torch.nn import functional as F


@dataclasses.dataclass
class Case:
    """A model, inputs of five sizes, which of their dimensions are dynamic, names of outputs."""
    model: nn.Module
    inputs: list
    dims: dict
    outputs: list


def of(seed):
    return np.random.RandomState(seed)


class Conv(nn.Module):
    def __init__(self, inputs, outputs, size=1, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)
        self.norm = nn.BatchNorm2d(outputs, momentum=None)

    def forward(self, x):
        return F.silu(self.norm(self.conv(x)))


class Split(nn.Module):
    """YOLO's C2f: halves, of which one passes bottlenecks; all that came up is joined."""

    def __init__(self, width, blocks=1):
        super().__init__()
        half = width // 2
        self.first = Conv(width, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(Conv(half, half, 3), Conv(half, half, 3)) for _ in range(blocks))
        self.last = Conv((2 + blocks) * half, width)

    def forward(self, x):
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(parts[-1] + block(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Pyramid(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.last = Conv(width, width // 2), Conv(width * 2, width)
        self.pool = nn.MaxPool2d(5, 1, 2)

    def forward(self, x):
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Yolo(nn.Module):
    def __init__(self, width, classes, bins, head, threshold=0.5, iou=0.5):
        super().__init__()
        self.bins, self.threshold, self.iou = bins, threshold, iou
        c = [width << i for i in range(5)]
        self.stages = nn.ModuleList([
            nn.Sequential(Conv(3, c[0], 3, 2), Conv(c[0], c[1], 3, 2), Split(c[1])),
            nn.Sequential(Conv(c[1], c[2], 3, 2), Split(c[2], 2)),
            nn.Sequential(Conv(c[2], c[3], 3, 2), Split(c[3], 2)),
            nn.Sequential(Conv(c[3], c[4], 3, 2), Split(c[4]), Pyramid(c[4]))])
        self.up = nn.ModuleList([nn.Sequential(Conv(c[4] + c[3], c[3]), Split(c[3])),
                                 nn.Sequential(Conv(c[3] + c[2], c[2]), Split(c[2]))])
        self.boxes = nn.ModuleList(
            nn.Sequential(Conv(k, head, 3), nn.Conv2d(head, 4 * bins, 1)) for k in c[2:])
        self.classes = nn.ModuleList(
            nn.Sequential(Conv(k, head, 3), nn.Conv2d(head, classes, 1)) for k in c[2:])
        self.register_buffer("distances", torch.arange(float(bins)))

    def forward(self, image):
        fine = self.stages[1](self.stages[0](image))
        middle = self.stages[2](fine)
        coarse = self.stages[3](middle)
        twice = nn.Upsample(scale_factor=2.0, mode="nearest")
        middle = self.up[0](torch.cat([twice(coarse), middle], 1))
        fine = self.up[1](torch.cat([twice(middle), fine], 1))
        boxes, scores = [], []
        for level, x in enumerate((fine, middle, coarse)):
            h, w = x.shape[2], x.shape[3]
            y0, x0 = torch.meshgrid(torch.arange(h, dtype=x.dtype) + 0.5,
                                    torch.arange(w, dtype=x.dtype) + 0.5, indexing="ij")
            y0, x0 = y0.reshape(-1), x0.reshape(-1)
            d = self.boxes[level](x).flatten(2)[0].reshape(4, self.bins, h * w).softmax(1)
            d = (d * self.distances[None, :, None]).sum(1)
            corners = [x0 - d[0], y0 - d[1], x0 + d[2], y0 + d[3]]
            boxes.append(torch.stack(corners, 1) * (8 << level))
            scores.append(self.classes[level](x).flatten(2)[0].sigmoid().t())
        boxes = torch.cat(boxes)
        best, label = torch.cat(scores).max(1)
        likely = torch.nonzero(best > self.threshold).squeeze(1)
        boxes, best, label = boxes[likely], best[likely], label[likely]
        apart = boxes + label.to(boxes.dtype)[:, None] * 4096.0
        kept = torchvision.ops.nms(apart, best, self.iou)
        return boxes[kept], best[kept], label[kept]


def picture(seed, h, w, steps):
    """Noise at several scales, in so many steps (few compress)."""
    random = of(seed)

    def noise(k):
        grid = random.rand(1, 3, h // k, w // k).astype(np.float32)
        return F.interpolate(torch.from_numpy(grid), size=(h, w), mode="bilinear")

    return torch.round((noise(4) + noise(16) + noise(32) / 2) / 2.5 * steps) / steps


def yolo(tiny):
    model = Yolo(1, 3, 4, 8) if tiny else Yolo(16, 8, 16, 64)
    logits, steps, edge = [], *((15, 96) if tiny else (65535, 448))
    with torch.no_grad():
        model.train()
        for seed in range(3):
            model(picture(20 + seed, edge, edge, steps))
        model.eval()
        for part in model.classes:
            part.register_forward_hook(lambda module, _, y: logits.append((module[1], y)))
        model(picture(9, edge, edge, steps))
        for last, y in logits:  # as scores of a trained model: few above the threshold
            k = 1 / (y - y.mean((0, 2, 3), keepdim=True)).std()
            last.weight *= k
            last.bias.copy_((last.bias - y.mean((0, 2, 3))) * k - 2)
    for part in model.classes:
        part._forward_hooks.clear()
    sizes = [(64, 64), (64, 96), (64, 32), (32, 32), (96, 64)] if tiny else \
        [(320, 320), (256, 384), (416, 320), (192, 256), (448, 448)]
    images = [{"image": picture(k, h, w, steps).numpy()} for k, (h, w) in enumerate(sizes)]
    return Case(model, images, {"image": {2: "h", 3: "w"}}, ["boxes", "scores", "labels"])


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Experts(nn.Module):
    """Each expert computes the tokens that chose it: a where and an index_add for each."""

    def __init__(self, width, inner, experts, top=2):
        super().__init__()
        self.experts, self.top = experts, top
        self.gate = nn.Linear(width, experts, bias=False)

        def linear(inputs, outputs):
            return nn.ModuleList(nn.Linear(inputs, outputs, bias=False) for _ in range(experts))

        self.gated, self.linear = linear(width, inner), linear(width, inner)
        self.back = linear(inner, width)

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        weights, chosen = torch.topk(F.softmax(self.gate(rows), dim=1), self.top, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        mask = F.one_hot(chosen, num_classes=self.experts).permute(2, 1, 0)
        y = torch.zeros_like(rows)
        for e in range(self.experts):
            place, token = torch.where(mask[e])
            mine = rows[token]
            mine = self.back[e](F.silu(self.gated[e](mine)) * self.linear[e](mine))
            y = y.index_add(0, token, mine * weights[token, place, None])
        return y.reshape(x.shape)


def heads_of(x, heads):
    b, t, d = x.shape
    return x.reshape(b, t, 3, heads, d // 3 // heads).permute(2, 0, 3, 1, 4).unbind(0)


def joined(x):
    return x.transpose(1, 2).flatten(2)


class ExpertLayer(nn.Module):
    def __init__(self, width, inner, experts, heads):
        super().__init__()
        self.heads, self.first, self.second = heads, RmsNorm(width), RmsNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.experts = Experts(width, inner, experts)

    def forward(self, x):
        q, k, v = heads_of(self.qkv(self.first(x)), self.heads)
        x = x + self.out(joined(F.scaled_dot_product_attention(q, k, v, is_causal=True)))
        return x + self.experts(self.second(x))


def experts(tiny):
    width, inner, count, layers, words = (16, 16, 4, 1, 20) if tiny else (256, 512, 8, 2, 500)
    model = nn.Sequential(nn.Embedding(words, width),
                          *(ExpertLayer(width, inner, count, 4) for _ in range(layers)),
                          nn.Linear(width, words, bias=False))
    sizes = [(1, 6), (2, 5), (1, 9), (1, 1), (3, 4)] if tiny else \
        [(1, 16), (2, 17), (1, 48), (1, 5), (4, 32)]
    tokens = [{"ids": of(k).randint(0, words, size)} for k, size in enumerate(sizes)]
    return Case(model, tokens, {"ids": {0: "batch", 1: "tokens"}}, ["logits"])


class SpeechLayer(nn.Module):
    def __init__(self, width, heads=2, size=9):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wide = nn.Conv1d(width, 2 * width, size, padding=size // 2)
        self.narrow = nn.Conv1d(2 * width, width, 1)

    def forward(self, x):
        q, k, v = heads_of(self.qkv(x), self.heads)
        x = self.first(x + self.out(joined(F.scaled_dot_product_attention(q, k, v))))
        return self.second(x + self.narrow(F.relu(self.wide(x.transpose(1, 2)))).transpose(1, 2))


class Speech(nn.Module):
    """FastSpeech: phonemes are encoded, each is repeated for as many frames as predicted, frames
    are decoded."""

    def __init__(self, width, layers, bins, words, bias, size):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.encoder = nn.ModuleList(SpeechLayer(width, size=size) for _ in range(layers))
        self.decoder = nn.ModuleList(SpeechLayer(width, size=size) for _ in range(layers))
        self.predictor = nn.Conv1d(width, width, 3, padding=1)
        self.norm, self.duration = nn.LayerNorm(width), nn.Linear(width, 1)
        self.bins = nn.Linear(width, bins)
        self.post = nn.Sequential(nn.Conv1d(bins, width, 5, padding=2), nn.Tanh(),
                                  nn.Conv1d(width, bins, 5, padding=2))
        nn.init.constant_(self.duration.bias, bias)
        self.register_buffer("rates", torch.exp(torch.arange(0, width, 2) * (-9.2 / width)))

    def placed(self, x):
        angles = torch.arange(x.shape[1], dtype=x.dtype)[:, None] * self.rates[None]
        return x + torch.cat([angles.sin(), angles.cos()], 1)[None]

    def forward(self, ids, speed):
        x = self.placed(self.embedding(ids))
        for layer in self.encoder:
            x = layer(x)
        hidden = self.norm(F.relu(self.predictor(x.transpose(1, 2))).transpose(1, 2))
        frames = (torch.exp(self.duration(hidden).squeeze(-1)) - 1) * speed
        durations = torch.clamp(torch.round(frames), min=1).to(torch.int64)
        y = self.placed(torch.repeat_interleave(x[0], durations[0], dim=0)[None])
        for layer in self.decoder:
            y = layer(y)
        y = self.bins(y)
        return y + self.post(y.transpose(1, 2)).transpose(1, 2), durations


def speech(tiny):
    words = 20 if tiny else 60
    model = Speech(16, 1, 8, words, 1.0, 3) if tiny else Speech(256, 3, 80, words, 1.6, 9)
    sizes = [(6, 1), (9, 1.2), (4, 0.8), (12, 1), (1, 1.5)] if tiny else \
        [(40, 1), (57, 1.2), (23, 0.8), (80, 1), (12, 1.5)]
    texts = [{"ids": of(k).randint(0, words, (1, n)), "speed": np.array([speed], np.float32)}
             for k, (n, speed) in enumerate(sizes)]
    return Case(model, texts, {"ids": {1: "phonemes"}}, ["frames", "durations"])
