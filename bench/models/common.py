"""What the networks of this folder share: a specification of an export, and weights that have an effect.

A specification is a dict: module (torch.nn.Module), inputs (case -> input name -> tensor, the first
case is exported), outputs (names), and optionally opset, axes (input name -> axis -> name) for the
TorchScript exporter. A case "" is the only one of its network.
"""
import torch


def spec(module, inputs, outputs, opset=17, axes=None):
    """`inputs`: name -> tensor, or case -> name -> tensor."""
    if isinstance(next(iter(inputs.values())), torch.Tensor):
        inputs = {"": inputs}
    return {"module": module.eval(), "inputs": inputs, "outputs": outputs, "opset": opset,
            "axes": axes}


def livelier(module):
    """Norms and biases that do something: a fresh network has ones and zeros there."""
    with torch.no_grad():
        for value in module.parameters():
            if value.dim() == 1:
                value.add_(torch.randn_like(value) * 0.1)
    return module


def calibrated(module, *inputs):
    """Weights of a size at which the values of a deep network neither vanish nor grow, livelier(), and
    batch norms with the statistics of `inputs`, moved a little, so that nothing is normalised
    perfectly. Without that the outputs would hardly depend on the inputs."""
    for part in module.modules():
        if isinstance(part, (torch.nn.modules.conv._ConvNd, torch.nn.Linear)):
            torch.nn.init.kaiming_normal_(part.weight)
    livelier(module).eval()
    norms = [part for part in module.modules()
             if isinstance(part, torch.nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.momentum = 1.0
        norm.train()
    with torch.no_grad():
        module(*inputs)
        for norm in norms:
            norm.eval()
            deviation = norm.running_var.sqrt()
            norm.running_mean.add_(torch.randn_like(deviation) * deviation * 0.1)
            norm.running_var.mul_(torch.empty_like(deviation).uniform_(0.8, 1.25)).clamp_(min=1e-3)
    return module


class Sole(torch.nn.Module):
    """A network of a library that answers with an object: the tensor of one name."""

    def __init__(self, model, result, *inputs):
        super().__init__()
        self.model, self.result, self.inputs = model, result, inputs

    def forward(self, *values):
        return getattr(self.model(**dict(zip(self.inputs, values))), self.result)
