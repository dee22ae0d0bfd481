"""Networks that look at a picture: torchvision's and transformers', and RepVGG."""
import torch
from torch import nn

from common import Sole, calibrated, livelier, spec


class RepBlock(nn.Module):
    """RepVGG's block in its training form: 3x3, 1x1 and, where the shape stays, the identity, each
    with a batch norm, summed, then the activation."""

    def __init__(self, inputs, outputs, stride, activation):
        super().__init__()
        self.wide = self._branch(inputs, outputs, 3, stride)
        self.narrow = self._branch(inputs, outputs, 1, stride)
        same = inputs == outputs and stride == 1
        self.identity = nn.BatchNorm2d(inputs) if same else None
        self.activation = activation()

    @staticmethod
    def _branch(inputs, outputs, kernel, stride):
        return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
                             nn.BatchNorm2d(outputs))

    def forward(self, x):
        total = self.wide(x) + self.narrow(x)
        return self.activation(total if self.identity is None else total + self.identity(x))

    def merged(self):
        """The same function as one 3x3 convolution with a bias."""
        conv = self.wide[0]
        result = nn.Conv2d(conv.in_channels, conv.out_channels, 3, conv.stride, 1)
        with torch.no_grad():
            kernel, bias = self._folded(conv.weight, self.wide[1])
            point, point_bias = self._folded(self.narrow[0].weight, self.narrow[1])
            kernel, bias = kernel + nn.functional.pad(point, (1, 1, 1, 1)), bias + point_bias
            if self.identity is not None:
                unit = torch.zeros_like(kernel)
                for channel in range(unit.shape[0]):
                    unit[channel, channel, 1, 1] = 1
                unit, unit_bias = self._folded(unit, self.identity)
                kernel, bias = kernel + unit, bias + unit_bias
            result.weight.copy_(kernel)
            result.bias.copy_(bias)
        return nn.Sequential(result, self.activation)

    @staticmethod
    def _folded(kernel, norm):
        scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        return kernel * scale.reshape(-1, 1, 1, 1), norm.bias - norm.running_mean * scale


# RepVGG's sizes: blocks of a stage, width factor of the first stages and of the last.
REPVGG = {"a0": ([2, 4, 14, 1], 0.75, 2.5), "b0": ([4, 6, 16, 1], 1, 2.5)}


class RepVgg(nn.Module):
    def __init__(self, blocks, factor, last_factor, classes=1000, widths=(64, 128, 256, 512),
                 activation=nn.ReLU):
        super().__init__()
        now = min(64, int(widths[0] * factor))
        layers = [RepBlock(3, now, 2, activation)]
        factors = [factor, factor, factor, last_factor]
        for count, width, times in zip(blocks, widths, factors):
            for index in range(count):
                layers.append(RepBlock(now, int(width * times), 1 if index else 2, activation))
                now = int(width * times)
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(now, classes)

    def forward(self, image):
        return self.head(self.body(image).mean((2, 3)))

    def deployed(self):
        """The network in its form for use; this one is no longer usable."""
        self.body = nn.Sequential(*[block.merged() for block in self.body])
        return self


def picture(side=224, batch=1):
    return torch.randn(batch, 3, side, side)


def image_spec(module, image, opset=17, axes=None):
    return spec(module, {"image": image}, ["logits"], opset, axes)


def torchvision_model(name, opset=17):
    def make():
        import torchvision
        image = picture()
        return image_spec(calibrated(getattr(torchvision.models, name)(), image), image, opset)
    return make


def repvgg(size, deploy):
    def make():
        image = picture()
        network = calibrated(RepVgg(*REPVGG[size]), image)
        return image_spec(network.deployed() if deploy else network, image)
    return make


def vit():
    import transformers
    config = transformers.ViTConfig(num_labels=1000, attn_implementation="eager")
    network = livelier(transformers.ViTForImageClassification(config))
    return spec(Sole(network, "logits", "pixel_values"), {"pixel_values": picture()}, ["logits"])


def swin_dynamic():
    """Swin-T of transformers with a dynamic batch: thousands of nodes of shape arithmetic."""
    import transformers
    config = transformers.SwinConfig(num_labels=1000, attn_implementation="eager")
    network = livelier(transformers.SwinForImageClassification(config))
    return spec(Sole(network, "logits", "pixel_values"), {"pixel_values": picture()}, ["logits"],
                axes={"pixel_values": {0: "batch"}})


MODELS = {
    "resnet18": torchvision_model("resnet18"),
    "resnet50": torchvision_model("resnet50"),
    "vgg16": torchvision_model("vgg16"),
    "repvgg_a0_train": repvgg("a0", False),
    "repvgg_a0_deploy": repvgg("a0", True),
    "repvgg_b0_train": repvgg("b0", False),
    "repvgg_b0_deploy": repvgg("b0", True),
    "mobilenet_v3": torchvision_model("mobilenet_v3_large"),
    "squeezenet": torchvision_model("squeezenet1_1"),
    "densenet121": torchvision_model("densenet121"),
    "efficientnet_b0": torchvision_model("efficientnet_b0"),
    "convnext_tiny": torchvision_model("convnext_tiny"),
    "vit_b16": vit,
    "swin_t": torchvision_model("swin_t"),
    "swin_dynamic": swin_dynamic,
}
