"""Networks over time: Conformer, DeepSpeech 2, and CRNN, which reads a line of text in a picture."""
import math

import torch
from torch import nn
from torch.nn import functional as F

from common import calibrated, spec


def sinusoids(length, width):
    """The encoding of the relative positions length-1 ... -(length-1): [2 length - 1, width]."""
    positions = torch.arange(length - 1, -length, -1.0).unsqueeze(1)
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    return torch.stack([torch.sin(positions * rates), torch.cos(positions * rates)], -1).flatten(1)


class RelativeAttention(nn.Module):
    """Attention with relative positions, as Transformer-XL and the Conformer have it."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.head_width = heads, width // heads
        self.queries, self.keys, self.values = (nn.Linear(width, width) for _ in range(3))
        self.positions = nn.Linear(width, width, bias=False)
        self.content_bias = nn.Parameter(torch.randn(heads, self.head_width) * 0.1)
        self.position_bias = nn.Parameter(torch.randn(heads, self.head_width) * 0.1)
        self.out = nn.Linear(width, width)

    def forward(self, x, encoding):
        batch, length, width = x.shape
        split = (batch, length, self.heads, self.head_width)
        queries = self.queries(x).view(split)
        keys = self.keys(x).view(split).permute(0, 2, 3, 1)
        values = self.values(x).view(split).transpose(1, 2)
        places = self.positions(encoding).view(-1, self.heads, self.head_width).permute(1, 2, 0)
        by_content = (queries + self.content_bias).transpose(1, 2) @ keys
        by_place = self.shifted((queries + self.position_bias).transpose(1, 2) @ places)
        weights = torch.softmax((by_content + by_place) / math.sqrt(self.head_width), -1)
        return self.out((weights @ values).transpose(1, 2).reshape(batch, length, width))

    @staticmethod
    def shifted(scores):
        """[.., t, 2t-1] by distance -> [.., t, t] by position: a pad, two reshapes, two slices."""
        batch, heads, length, distances = scores.shape
        padded = F.pad(scores, (1, 0)).view(batch, heads, distances + 1, length)
        return padded[:, :, 1:].reshape(batch, heads, length, distances)[..., :length]


class ConvolutionModule(nn.Module):
    def __init__(self, width, kernel):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.widen = nn.Conv1d(width, 2 * width, 1)
        self.along = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.batch_norm = nn.BatchNorm1d(width)
        self.out = nn.Conv1d(width, width, 1)

    def forward(self, x):
        y = F.glu(self.widen(self.norm(x).transpose(1, 2)), 1)
        return self.out(F.silu(self.batch_norm(self.along(y)))).transpose(1, 2)


def feed_forward(width):
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(),
                         nn.Linear(4 * width, width))


class ConformerBlock(nn.Module):
    def __init__(self, width, heads, kernel):
        super().__init__()
        self.before, self.after = feed_forward(width), feed_forward(width)
        self.attention_norm = nn.LayerNorm(width)
        self.attention = RelativeAttention(width, heads)
        self.convolution = ConvolutionModule(width, kernel)
        self.norm = nn.LayerNorm(width)

    def forward(self, x, encoding):
        x = x + 0.5 * self.before(x)
        x = x + self.attention(self.attention_norm(x), encoding)
        x = x + self.convolution(x)
        return self.norm(x + 0.5 * self.after(x))


class Conformer(nn.Module):
    """Frames [batch, time, features] to log probabilities at a quarter of the time."""

    def __init__(self, features, frames, width, heads, layers, kernel, classes):
        super().__init__()
        self.reduce = nn.Sequential(nn.Conv2d(1, width, 3, 2), nn.ReLU(),
                                    nn.Conv2d(width, width, 3, 2), nn.ReLU())
        steps, rows = (((n - 1) // 2 - 1) // 2 for n in (frames, features))
        self.project = nn.Linear(width * rows, width)
        self.register_buffer("encoding", sinusoids(steps, width))
        self.blocks = nn.ModuleList(ConformerBlock(width, heads, kernel) for _ in range(layers))
        self.head = nn.Linear(width, classes)

    def forward(self, frames):
        x = self.reduce(frames.unsqueeze(1))
        x = self.project(x.transpose(1, 2).flatten(2))
        for block in self.blocks:
            x = block(x, self.encoding)
        return torch.log_softmax(self.head(x), -1)


class Crnn(nn.Module):
    """Convolutions down to one row, two bidirectional LSTMs along it. Picture [batch, 1, 32, w]."""

    def __init__(self, widths=(64, 128, 256, 256, 512, 512, 512), hidden=256, classes=37):
        super().__init__()
        layers, now = [], 1
        pools = {0: nn.MaxPool2d(2), 1: nn.MaxPool2d(2), 3: nn.MaxPool2d((2, 2), (2, 1), (0, 1)),
                 5: nn.MaxPool2d((2, 2), (2, 1), (0, 1))}
        for index, width in enumerate(widths):
            last = index == len(widths) - 1
            layers.append(nn.Conv2d(now, width, 2 if last else 3, padding=0 if last else 1))
            if index in (2, 4, 6):
                layers.append(nn.BatchNorm2d(width))
            layers += [nn.ReLU()] + ([pools[index]] if index in pools else [])
            now = width
        self.look = nn.Sequential(*layers)
        self.read = nn.LSTM(now, hidden, num_layers=2, bidirectional=True)
        self.head = nn.Linear(2 * hidden, classes)

    def forward(self, image):
        columns = self.look(image).squeeze(2).permute(2, 0, 1)
        return torch.log_softmax(self.head(self.read(columns)[0]), -1)


class DeepSpeech2(nn.Module):
    """Spectrogram [batch, 1, features, time]; directions of the recurrences are summed."""

    def __init__(self, features=161, hidden=800, layers=5, channels=32, classes=29):
        super().__init__()
        self.listen = nn.Sequential(
            nn.Conv2d(1, channels, (41, 11), (2, 2), (20, 5)), nn.BatchNorm2d(channels),
            nn.Hardtanh(0, 20),
            nn.Conv2d(channels, channels, (21, 11), (2, 1), (10, 5)), nn.BatchNorm2d(channels),
            nn.Hardtanh(0, 20))
        rows = ((features - 1) // 2 + 1 - 1) // 2 + 1
        widths = [channels * rows] + [hidden] * (layers - 1)
        self.norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(layers - 1))
        self.layers = nn.ModuleList(
            nn.GRU(width, hidden, bidirectional=True, bias=True) for width in widths)
        self.head = nn.Linear(hidden, classes)

    def forward(self, spectrogram):
        x = self.listen(spectrogram).flatten(1, 2).permute(2, 0, 1)
        for index, layer in enumerate(self.layers):
            if index:
                x = self.norms[index - 1](x.permute(1, 2, 0)).permute(2, 0, 1)
            y = layer(x)[0]
            x = y.view(y.shape[0], y.shape[1], 2, -1).sum(2)
        return torch.log_softmax(self.head(x), -1)


def conformer(features=80, frames=403, width=256, heads=4, layers=16, kernel=31, classes=1000):
    """Conformer-M of four seconds of speech."""
    network = Conformer(features, frames, width, heads, layers, kernel, classes)
    x = torch.randn(1, frames, features)
    return spec(calibrated(network, x), {"frames": x}, ["log_probabilities"])


def crnn():
    image = torch.randn(1, 1, 32, 100)
    return spec(calibrated(Crnn(), image), {"image": image}, ["log_probabilities"])


def deepspeech2():
    x = torch.rand(1, 1, 161, 200)
    return spec(calibrated(DeepSpeech2(), x), {"spectrogram": x}, ["log_probabilities"])


MODELS = {"conformer": conformer, "crnn": crnn, "deepspeech2": deepspeech2}
