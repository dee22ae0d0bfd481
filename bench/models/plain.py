"""MobileNetV3, SqueezeNet and EfficientNet-B0 as ONNX with random weights, for measuring what compilation
costs: needs neither torch nor torchvision, whose layers these are one by one.

    python plain.py FOLDER [NAME ...]     (default: all; FOLDER/NAME.onnx)
"""
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper


class Net:
    """A graph in the making; every method returns the name of its result."""

    def __init__(self):
        self.nodes, self.weights, self.rng = [], [], np.random.default_rng(0)

    def op(self, kind, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def weight(self, *shape):
        name = f"w{len(self.weights)}"
        scale = 1 / np.sqrt(max(np.prod(shape[1:]), 1))
        values = (self.rng.standard_normal(shape) * scale).astype(np.float32)
        self.weights.append(onnx.numpy_helper.from_array(values, name))
        return name


    def conv(self, x, inputs, outputs, kernel, stride=1, groups=1, pad=None):
        pad = kernel // 2 if pad is None else pad
        return self.op("Conv", x, self.weight(outputs, inputs // groups, kernel, kernel),
                       self.weight(outputs), kernel_shape=[kernel] * 2, strides=[stride] * 2,
                       pads=[pad] * 4, group=groups)

    def gemm(self, x, inputs, outputs):
        return self.op("Gemm", x, self.weight(outputs, inputs), self.weight(outputs), transB=1)

    def hard_sigmoid(self, x):
        return self.op("HardSigmoid", x, alpha=1 / 6)

    def hard_swish(self, x):
        return self.op("HardSwish", x)

    def silu(self, x):
        return self.op("Mul", x, self.op("Sigmoid", x))

    def relu(self, x):
        return self.op("Relu", x)

    def sigmoid(self, x):
        return self.op("Sigmoid", x)

    def squeeze_excite(self, x, width, narrow, inner, gate):
        s = self.op("GlobalAveragePool", x)
        s = inner(self.conv(s, width, narrow, 1))
        return self.op("Mul", x, gate(self.conv(s, narrow, width, 1)))

    def model(self, result, classes):
        graph = helper.make_graph(
            self.nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 224, 224])],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, [1, classes])], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def eighths(x):
    """torchvision's rounding of widths."""
    value = max(8, int(x + 4) // 8 * 8)
    return value + 8 if value < 0.9 * x else value


def mobilenet_v3():
    net = Net()
    x, width = net.hard_swish(net.conv("x", 3, 16, 3, 2)), 16
    # kernel, width inside, width, squeeze and excite, hard swish, stride
    for kernel, inside, outputs, excite, hard, stride in [
            (3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2),
            (5, 120, 40, 1, 0, 1), (5, 120, 40, 1, 0, 1), (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1),
            (3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1),
            (5, 672, 160, 1, 1, 2), (5, 960, 160, 1, 1, 1), (5, 960, 160, 1, 1, 1)]:
        act, y = net.hard_swish if hard else net.relu, x
        if inside != width:
            y = act(net.conv(y, width, inside, 1))
        y = act(net.conv(y, inside, inside, kernel, stride, groups=inside))
        if excite:
            y = net.squeeze_excite(y, inside, eighths(inside // 4), net.relu, net.hard_sigmoid)
        y = net.conv(y, inside, outputs, 1)
        x, width = net.op("Add", x, y) if stride == 1 and width == outputs else y, outputs
    x = net.op("Flatten", net.op("GlobalAveragePool", net.hard_swish(net.conv(x, width, 960, 1))))
    x = net.gemm(net.hard_swish(net.gemm(x, 960, 1280)), 1280, 1000)
    return net.model(x, 1000)


def squeezenet():
    net = Net()

    def pool(x):
        return net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)

    def fire(x, inputs, narrow, wide):
        x = net.relu(net.conv(x, inputs, narrow, 1))
        return net.op("Concat", net.relu(net.conv(x, narrow, wide, 1)),
                      net.relu(net.conv(x, narrow, wide, 3)), axis=1)

    x = pool(net.relu(net.conv("x", 3, 64, 3, 2, pad=0)))
    x = pool(fire(fire(x, 64, 16, 64), 128, 16, 64))
    x = pool(fire(fire(x, 128, 32, 128), 256, 32, 128))
    x = fire(fire(fire(fire(x, 256, 48, 192), 384, 48, 192), 384, 64, 256), 512, 64, 256)
    x = net.op("GlobalAveragePool", net.relu(net.conv(x, 512, 1000, 1)))
    return net.model(net.op("Flatten", x), 1000)


def efficientnet_b0():
    net = Net()
    x, width = net.silu(net.conv("x", 3, 32, 3, 2)), 32
    # expansion, kernel, stride, width, blocks
    for expansion, kernel, stride, outputs, blocks in [
            (1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3),
            (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)]:
        for block in range(blocks):
            step, inside, y = stride if block == 0 else 1, width * expansion, x
            if expansion != 1:
                y = net.silu(net.conv(y, width, inside, 1))
            y = net.silu(net.conv(y, inside, inside, kernel, step, groups=inside))
            y = net.squeeze_excite(y, inside, max(1, width // 4), net.silu, net.sigmoid)
            y = net.conv(y, inside, outputs, 1)
            x, width = net.op("Add", x, y) if step == 1 and width == outputs else y, outputs
    x = net.op("Flatten", net.op("GlobalAveragePool", net.silu(net.conv(x, width, 1280, 1))))
    return net.model(net.gemm(x, 1280, 1000), 1000)


NETWORKS = {"mobilenet_v3": mobilenet_v3, "squeezenet": squeezenet, "efficientnet_b0": efficientnet_b0}


def main():
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(NETWORKS):
        print(f"error: wanted plain.py FOLDER [NAME ...], names of {', '.join(NETWORKS)}", file=sys.stderr)
        return 2
    os.makedirs(sys.argv[1], exist_ok=True)
    for name in sys.argv[2:] or NETWORKS:
        model = NETWORKS[name]()
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, os.path.join(sys.argv[1], name + ".onnx"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
