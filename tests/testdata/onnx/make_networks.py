"""Small ones of bench/models' networks, exported by torch: python make_networks.py [NAME ...]

Needs torchvision beside what the other makers need. NAME_dynamo is by torch's newer exporter.
"""
import os
import sys
from functools import partial

import numpy as np
import torch
from torch import nn

from recording import HERE, model_path, record

sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "bench", "models"))
import language
import make_models
import recommend
import speech
import vision
from common import calibrated, livelier, spec


class Fire(nn.Module):
    """SqueezeNet's block."""

    def __init__(self, inputs, squeezed, outputs):
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeezed, 1)
        self.point = nn.Conv2d(squeezed, outputs, 1)
        self.wide = nn.Conv2d(squeezed, outputs, 3, padding=1)

    def forward(self, x):
        x = self.squeeze(x).relu()
        return torch.cat([self.point(x).relu(), self.wide(x).relu()], 1)


class Bottleneck(nn.Module):
    """The blocks of ResNet-50 (`narrow` given) and of ResNet-18."""

    def __init__(self, inputs, outputs, stride, narrow=None):
        super().__init__()
        shapes = [(inputs, narrow, 1, 1), (narrow, narrow, 3, stride), (narrow, outputs, 1, 1)]
        if narrow is None:
            shapes = [(inputs, outputs, 3, stride), (outputs, outputs, 3, 1)]
        layers = []
        for a, b, kernel, step in shapes:
            layers += [nn.Conv2d(a, b, kernel, step, kernel // 2, bias=False), nn.BatchNorm2d(b),
                       nn.ReLU()]
        self.body = nn.Sequential(*layers[:-1])
        self.short = nn.Identity() if inputs == outputs and stride == 1 else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return (self.body(x) + self.short(x)).relu()


def head(width):
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10)]


def picture(module, side, opset=17):
    image = vision.picture(side, 2)
    return vision.image_spec(calibrated(module, image), image, opset)


def resnet(narrow):
    stem = [nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return picture(nn.Sequential(*stem, Bottleneck(8, 16, 1, narrow), Bottleneck(16, 16, 1, narrow),
                                 Bottleneck(16, 24, 2, narrow), *head(24)), 32)


def vgg():
    layers, now = [], 3
    for width in (8, 16):
        layers += [nn.Conv2d(now, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1),
                   nn.ReLU(), nn.MaxPool2d(2, 2)]
        now = width
    return picture(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(144, 32),
                                 nn.ReLU(), nn.Dropout(), nn.Linear(32, 10)), 24)


def repvgg(deploy, activation=nn.ReLU):
    network = vision.RepVgg([1, 2, 2], 1, 2, 10, (8, 12, 16), activation)
    result = picture(network, 24)
    if deploy:
        network.deployed()
    return result


def squeezenet():
    return picture(nn.Sequential(nn.Conv2d(3, 16, 3, 2), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True),
                                 Fire(16, 4, 8), Fire(16, 6, 12), nn.MaxPool2d(3, 2, ceil_mode=True),
                                 nn.Conv2d(24, 10, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                                 nn.Flatten()), 30)


def mobilenet():
    from torchvision.models.mobilenetv3 import InvertedResidualConfig, MobileNetV3
    config = partial(InvertedResidualConfig, dilation=1, width_mult=1)
    return picture(MobileNetV3([config(8, 3, 8, 8, True, "RE", 2), config(8, 3, 24, 12, False, "RE", 2),
                                config(12, 5, 32, 12, True, "HS", 1)], 32, num_classes=10), 32)


def efficientnet():
    from torchvision.models.efficientnet import EfficientNet, MBConvConfig
    return picture(EfficientNet([MBConvConfig(1, 3, 1, 8, 8, 1), MBConvConfig(4, 5, 2, 8, 12, 2)], 0.2,
                                num_classes=10, last_channel=24), 24)


def densenet():
    from torchvision.models import DenseNet
    return picture(DenseNet(8, (2, 3), 8, bn_size=2, num_classes=10), 32)


def convnext():
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt
    network = ConvNeXt([CNBlockConfig(8, 16, 1), CNBlockConfig(16, None, 2)], layer_scale=0.5,
                       num_classes=10)
    return picture(network, 24)


def swin_static():
    """torchvision's; its shifted windows are rolls and padding."""
    from torchvision.models import SwinTransformer
    return picture(SwinTransformer([2, 2], 12, [2, 1], [2, 4], [3, 3], mlp_ratio=2, num_classes=10), 20)


def transformer():
    """torch's own in its usual form: norms after the sums, ReLU."""
    network = livelier(language.Translator(16, 2, 2, 32, 40))
    inputs = {"source": torch.randint(0, 40, (2, 6)), "target": torch.randint(0, 40, (2, 4))}
    return spec(network, inputs, ["log_probabilities"])


def gpt2_decode():
    import transformers
    config = transformers.GPT2Config(vocab_size=40, n_positions=32, n_embd=32, n_layer=2, n_head=2,
                                     n_inner=64)
    tokens = torch.randint(0, 40, (2, 1))
    return language.decoder_spec(transformers.GPT2LMHeadModel(config), tokens, 6, 2, 2, 16)


def llama_block(length, past):
    import transformers
    config = transformers.LlamaConfig(vocab_size=8, hidden_size=32, intermediate_size=44,
                                      num_hidden_layers=1, num_attention_heads=4,
                                      num_key_value_heads=2, max_position_embeddings=32)
    hidden = torch.randn(2, length, 32)
    return language.decoder_spec(transformers.LlamaModel(config), hidden, past, 1, 2, 8, embeds=True)


def crnn():
    image = torch.randn(2, 1, 32, 20)
    network = speech.Crnn((4, 6, 8, 8, 12, 12, 16), 12, 10)
    return spec(calibrated(network, image), {"image": image}, ["log_probabilities"])


def deepspeech2():
    x = torch.rand(2, 1, 41, 16)
    network = speech.DeepSpeech2(41, 12, 2, 2, 10)
    return spec(calibrated(network, x), {"spectrogram": x}, ["log_probabilities"])


DLRM_SIZES = (5, [10, 30, 7], 4, [6, 16], [12, 1])
MAKERS = {
    "resnet18": lambda: resnet(None), "resnet50": lambda: resnet(6), "vgg": vgg,
    "repvgg_train": lambda: repvgg(False), "repvgg_deploy": lambda: repvgg(True),
    "repvgg_hardswish": lambda: repvgg(True, nn.Hardswish),
    "squeezenet": squeezenet, "mobilenet": mobilenet, "efficientnet": efficientnet,
    "densenet": densenet, "convnext": convnext, "swin_static": swin_static,
    "transformer": transformer, "gpt2_cached": gpt2_decode,
    "llama_block": lambda: llama_block(5, 0), "llama_block_cached": lambda: llama_block(1, 5),
    "conformer": lambda: speech.conformer(16, 35, 16, 2, 2, 5, 12),
    "crnn": crnn, "deepspeech2": deepspeech2,
    "dien": lambda: recommend.dien_spec(3, 6, 20, 30, 7, 4, widths=(12, 6)),
    "dlrm": lambda: recommend.dlrm_spec(*DLRM_SIZES, 1, False),
    "dlrm_bags": lambda: recommend.dlrm_spec(*DLRM_SIZES, 3, True),
}
# By both exporters: where they write different graphs.
BOTH = ["mobilenet", "convnext", "swin_static", "transformer", "llama_block_cached", "conformer",
        "crnn", "deepspeech2", "dien", "dlrm_bags"]


def make(name):
    torch.manual_seed(0)
    np.random.seed(0)
    dynamo = name.endswith(make_models.DYNAMO)
    made = MAKERS[name.removesuffix(make_models.DYNAMO)]()
    make_models.export(made, model_path(name), dynamo, external_data=False)
    arguments = next(iter(made["inputs"].values()))
    record(name, model_path(name), {key: value.numpy() for key, value in arguments.items()},
           short_names=True)


if __name__ == "__main__":
    for wanted in sys.argv[1:] or [*MAKERS, *(name + make_models.DYNAMO for name in BOTH)]:
        make(wanted)
