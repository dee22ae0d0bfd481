"""Small convolutional networks with random weights, exported by torch: python make_cnns.py"""
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from recording import model_path, record


def export(name, module, image, opset=17, dynamic_axes=None, output="out"):
    module.eval()
    with torch.no_grad():
        torch.onnx.export(module, (image,), model_path(name), input_names=["image"],
                          output_names=[output], dynamic_axes=dynamic_axes, opset_version=opset,
                          dynamo=False, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.PRESERVE)
    record(name, model_path(name), {"image": image.numpy()})


def randomise(module):
    """Batch norms that do something."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            nn.init.normal_(part.running_mean, std=0.3)
            nn.init.uniform_(part.running_var, 0.5, 2)
            nn.init.uniform_(part.weight, 0.5, 2)
            nn.init.normal_(part.bias, std=0.3)
    return module


def cnn():
    """Convolution, batch norm, ReLU, pools, a linear layer."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16), nn.LeakyReLU(0.1),
        nn.AvgPool2d(3, stride=1, padding=1), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(16, 10), nn.Softmax(1))


class Residual(nn.Module):
    """ResNet's block and MobileNet's: sums, depthwise and grouped convolutions, squeeze-excite."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, stride=2, padding=3, bias=False),
                                  nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.left = nn.Sequential(nn.Conv2d(8, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16),
                                  nn.ReLU(), nn.Conv2d(16, 16, 3, 1, 1, bias=False),
                                  nn.BatchNorm2d(16))
        self.right = nn.Sequential(nn.Conv2d(8, 16, 1, 2, bias=False), nn.BatchNorm2d(16))
        self.expand = nn.Sequential(nn.Conv2d(16, 32, 1), nn.Hardswish())
        self.depthwise = nn.Sequential(nn.Conv2d(32, 32, 3, padding=2, dilation=2, groups=32),
                                       nn.BatchNorm2d(32), nn.ReLU6())
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(32, 8, 1), nn.SiLU(),
                                     nn.Conv2d(8, 32, 1), nn.Hardsigmoid())
        self.project = nn.Conv2d(32, 16, 1, groups=4)
        self.head = nn.Linear(16, 10)

    def forward(self, image):
        x = self.stem(image)
        x = F.relu(self.left(x) + self.right(x))
        y = self.depthwise(self.expand(x))
        y = y * self.squeeze(y)
        x = x + self.project(y)
        return self.head(x.mean((2, 3)))


class UNet(nn.Module):
    """Down, up by a transposed convolution and by resizing, skips, group and instance norm."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.GroupNorm(4, 8), nn.SiLU())
        self.down = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(8, 16, 3, stride=2),
                                  nn.InstanceNorm2d(16, affine=True), nn.GELU())
        self.deeper = nn.Sequential(nn.Conv2d(16, 32, 2, stride=2), nn.PReLU(32))
        self.up = nn.ConvTranspose2d(32, 16, 3, stride=2, padding=1, output_padding=1, groups=2)
        self.last = nn.Conv2d(24, 4, 3, padding=1)
        self.shuffle = nn.PixelShuffle(2)

    def forward(self, image):
        first = self.first(image)
        down = self.down(first)
        x = self.up(self.deeper(down)) + down
        x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        x = self.last(torch.cat([x, first], 1))
        small = F.interpolate(x, size=(6, 6), mode="nearest")
        return self.shuffle(x).flatten(1).sum(1) + small.amax((1, 2, 3))


MAKERS = {
    "cnn": lambda: export("cnn", randomise(cnn()), torch.randn(2, 3, 16, 16), 17,
                          {"image": {0: "batch"}}),
    "cnn_opset9": lambda: export("cnn_opset9", randomise(cnn()), torch.randn(1, 3, 12, 12), 9),
    "residual": lambda: export("residual", randomise(Residual()), torch.randn(1, 3, 32, 32), 16),
    "unet": lambda: export("unet", UNet(), torch.randn(2, 1, 8, 8), 18),
}

if __name__ == "__main__":
    for maker in sys.argv[1:] or MAKERS:
        torch.manual_seed(0)
        np.random.seed(0)
        MAKERS[maker]()
