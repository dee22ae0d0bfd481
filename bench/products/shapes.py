"""What the products are: their shapes, and models() that builds each through a class given to it. No
package is needed here."""
WEIGHTS_BYTES = 48 << 20  # of all copies, about
MOST_COPIES = 16

PRODUCTS = {
    "bert_1280x768x768": (1280, 768, 768), "bert_1280x3072x768": (1280, 3072, 768),
    "bert_1280x768x3072": (1280, 768, 3072), "bert_128x768x768": (128, 768, 768),
    "bert_128x3072x768": (128, 3072, 768), "bert_128x768x3072": (128, 768, 3072),
    "one_3136x64x64": (3136, 64, 64), "one_3136x256x64": (3136, 256, 64),
    "one_784x512x128": (784, 512, 128), "one_196x1024x256": (196, 1024, 256),
    "one_196x256x1024": (196, 256, 1024), "one_49x2048x512": (49, 2048, 512),
    "square_256": (256, 256, 256), "square_512": (512, 512, 512),
    "square_1024": (1024, 1024, 1024), "square_2048": (2048, 2048, 2048),
    "rows_1x1000x2048": (1, 1000, 2048), "rows_1x4096x4096": (1, 4096, 4096),
    "rows_8x768x768": (8, 768, 768), "rows_16x3072x768": (16, 3072, 768),
    "rows_32x768x3072": (32, 768, 3072),
    # Twins: as it is, and padded to whole vectors.
    "padding_512x1000x512": (512, 1000, 512), "padding_512x1008x512": (512, 1008, 512),
    "padding_1024x100x256": (1024, 100, 256), "padding_1024x112x256": (1024, 112, 256),
    "padding_512x512x500": (512, 512, 500), "padding_512x512x501": (512, 512, 501),
    "padding_512x512x512": (512, 512, 512),
    "padding_3136x70x65": (3136, 70, 65), "padding_3136x80x80": (3136, 80, 80),
    "odd_57x333x517": (57, 333, 517), "odd_3x1000x512": (3, 1000, 512),
    "odd_100x100x100": (100, 100, 100), "odd_197x3000x193": (197, 3000, 193),
    "odd_1001x77x1001": (1001, 77, 1001), "odd_20x4096x1024": (20, 4096, 1024),
    "odd_2x2048x2048": (2, 2048, 2048), "odd_4x1024x4096": (4, 1024, 4096),
}
# size, input and output channels, kernel, stride, groups
CONVOLUTIONS = {
    "conv_56_64_64_3": (56, 64, 64, 3, 1, 1), "conv_56_128_128_3s2": (56, 128, 128, 3, 2, 1),
    "conv_28_128_128_3": (28, 128, 128, 3, 1, 1), "conv_28_256_256_3s2": (28, 256, 256, 3, 2, 1),
    "conv_14_256_256_3": (14, 256, 256, 3, 1, 1), "conv_14_512_512_3s2": (14, 512, 512, 3, 2, 1),
    "conv_7_512_512_3": (7, 512, 512, 3, 1, 1), "conv_224_3_64_7s2": (224, 3, 64, 7, 2, 1),
    "vgg_224_64_64_3": (224, 64, 64, 3, 1, 1), "vgg_112_128_128_3": (112, 128, 128, 3, 1, 1),
    "vgg_56_256_256_3": (56, 256, 256, 3, 1, 1), "vgg_28_512_512_3": (28, 512, 512, 3, 1, 1),
    "depth_112_32_3": (112, 32, 32, 3, 1, 32), "depth_56_144_3": (56, 144, 144, 3, 1, 144),
    "depth_56_144_5s2": (56, 144, 144, 5, 2, 144), "depth_28_240_5": (28, 240, 240, 5, 1, 240),
    "depth_14_480_3": (14, 480, 480, 3, 1, 480), "depth_7_960_5": (7, 960, 960, 5, 1, 960),
    "group_56_128_3": (56, 128, 128, 3, 1, 32), "group_28_256_3": (28, 256, 256, 3, 1, 32),
    "group_14_512_3": (14, 512, 512, 3, 1, 32), "one_56_256_512s2": (56, 256, 512, 1, 2, 1),
    "padding_20_46_32_3": (20, 46, 32, 3, 1, 1), "padding_20_174_64_5": (20, 174, 64, 5, 1, 1),
    "padding_20_48_32_3": (20, 48, 32, 3, 1, 1), "padding_20_176_64_5": (20, 176, 64, 5, 1, 1),
    "padding_56_30_60_3": (56, 30, 60, 3, 1, 1), "padding_56_32_64_3": (56, 32, 64, 3, 1, 1),
}
# size, channels, kernel, dilation
DILATED = {"dilated_28_128_3d2": (28, 128, 3, 2), "dilated_33_256_3d6": (33, 256, 3, 6)}
ACTIVATIONS = ["Relu", "Gelu", "HardSwish", "Softplus"]
PAIRS = {"pair_2464_1_4_4": (2464, 1, 4, 4), "pair_16384_256_64_16": (16384, 256, 64, 16),
         "pair_32768_576_128_64": (32768, 576, 128, 64), "pair_128320_96_32_96": (128320, 96, 32, 96)}
# size, input channels, features, stride of the first; the second has as many features
CHAINED = {"chain_224_3_48_2": (224, 3, 48, 2), "chain_112_48_48_2": (112, 48, 48, 2),
           "chain_56_48_48_1": (56, 48, 48, 1), "chain_224_3_64_2": (224, 3, 64, 2),
           "chain_112_64_64_2": (112, 64, 64, 2), "chain_56_64_64_1": (56, 64, 64, 1),
           "chain_112_64_64_1": (112, 64, 64, 1)}
# rows, then the width of the input and of every layer
LAYERS = {"chain_2048_13_512_256_64": (2048, 13, 512, 256, 64),
          "chain_65536_64_64_64_64_64": (65536, 64, 64, 64, 64, 64),
          "chain_50176_32_64_32_16": (50176, 32, 64, 32, 16)}


def copies_of(weight_elems):
    return max(1, min(MOST_COPIES, WEIGHTS_BYTES // (4 * weight_elems)))


def models(make_model):
    """(name, model). make_model(seed) has input(shape), weight(shape, fan_in), product(x, m, n, k),
    convolution(x, size, channels, features, kernel, stride, groups, bias=False, dilation=1), node(kind,
    inputs) with ONNX's names, and output(x)."""
    for name, (m, n, k) in PRODUCTS.items():
        model = make_model(0)
        for _ in range(copies_of(n * k)):
            model.output(model.product(model.input((m, k)), m, n, k))
        yield name, model
    for name, (size, channels, features, kernel, stride, groups) in CONVOLUTIONS.items():
        model = make_model(0)
        for _ in range(min(4, copies_of(features * channels // groups * kernel * kernel))):
            x = model.input((1, channels, size, size))
            # In a row where the shapes allow: what a network sees.
            for _ in range(4 if channels == features and stride == 1 else 1):
                x = model.convolution(x, size, channels, features, kernel, stride, groups)
            model.output(x)
        yield name, model
    for name, (size, channels, kernel, dilation) in DILATED.items():
        model = make_model(0)
        for _ in range(4):
            x = model.input((1, channels, size, size))
            for _ in range(4):
                x = model.convolution(x, size, channels, channels, kernel, 1, 1, dilation=dilation)
            model.output(x)
        yield name, model
    for kind in ACTIVATIONS:
        model = make_model(0)
        for _ in range(4):
            x = model.product(model.input((1280, 768)), 1280, 3072, 768)
            model.output(model.node(kind, [model.node("Add", [x, model.weight((3072,), 1)])]))
        yield f"epilogue_{kind.lower()}", model
    for name, (size, channels, features, stride) in CHAINED.items():
        model = make_model(0)
        x = model.input((1, channels, size, size))
        x = model.convolution(x, size, channels, features, 3, stride, 1, bias=True)
        x = model.node("Relu", [x])
        x = model.convolution(x, size // stride, features, features, 1, 1, 1, bias=True)
        model.output(model.node("Relu", [x]))
        yield name, model
    for name, (m, *widths) in LAYERS.items():
        model = make_model(0)
        x = model.input((m, widths[0]))
        for k, n in zip(widths, widths[1:]):
            x = model.node("Add", [model.product(x, m, n, k), model.weight((n,), 1)])
            x = model.node("Relu", [x])
        model.output(x)
        yield name, model
    for name, (m, k, n0, n1) in PAIRS.items():
        model = make_model(0)
        x = model.node("Relu", [model.product(model.input((m, k)), m, n0, k)])
        model.output(model.node("Relu", [model.product(x, m, n1, n0)]))
        yield name, model
