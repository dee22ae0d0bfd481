"""Products in bf16 and in bytes beside oneDNN (as torch runs it) and ONNX Runtime: typed_products.py [--rounds N] [NAME ...]

bf16: operands and results in bf16, features last, against torch with one thread (its matmul and convolution are
oneDNN's). Bytes: QLinearMatMul and QLinearConv (u8 by s8, results u8), the same file against ONNX Runtime with one thread.
Several copies with weights of their own are run in turn, so that no weights stay in the first caches. heddle and the peer take
turns; the ratio is that of the medians of the rounds. Shapes of bench/products with at least 64 rows.
Wants numpy, torch, onnx and onnxruntime.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "products"))
import shapes  # noqa: E402

HEDDLE = os.path.join(HERE, "..", "build", "release", "heddle")
COPIES = 4
NAMES = re.compile(r"(bert|square|one|conv|vgg|dilated|group)_")


def all_shapes():
    """name -> ("dot", m, n, k) or ("conv", size, inputs, features, kernel, stride, groups, dilation)."""
    found = {name: ("dot", *shape) for name, shape in shapes.PRODUCTS.items() if shape[0] >= 64}
    found.update({name: ("conv", *shape, 1) for name, shape in shapes.CONVOLUTIONS.items()})
    found.update({name: ("conv", size, channels, channels, kernel, 1, 1, dilation)
                  for name, (size, channels, kernel, dilation) in shapes.DILATED.items()})
    return {name: shape for name, shape in found.items() if NAMES.match(name) or name in shapes.DILATED}


def output_size(shape):
    _, size, _, _, kernel, stride, _, dilation = shape
    pad = kernel // 2 * dilation
    return (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1


def flops(shape):
    if shape[0] == "dot":
        return 2 * shape[1] * shape[2] * shape[3]
    _, _, inputs, features, kernel, _, groups, _ = shape
    return 2 * output_size(shape) ** 2 * features * inputs // groups * kernel ** 2


def bf16_text(shape):
    lines, results = [], []
    for i in range(COPIES):
        if shape[0] == "dot":
            _, m, n, k = shape
            x, w, y = f"[{m},{k}]", f"[{k},{n}]", f"[{m},{n}]"
            op = f"dot(x{i}, w{i}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
        else:
            _, size, inputs, features, kernel, stride, groups, dilation = shape
            pad, out = kernel // 2 * dilation, output_size(shape)
            x, w = f"[1,{size},{size},{inputs}]", f"[{kernel},{kernel},{inputs // groups},{features}]"
            y = f"[1,{out},{out},{features}]"
            op = (f"convolution(x{i}, w{i}), window={{size={kernel}x{kernel} stride={stride}x{stride} pad={pad}_{pad}x{pad}_{pad} "
                  f"rhs_dilate={dilation}x{dilation}}}, dim_labels=b01f_01io->b01f, feature_group_count={groups}")
        lines += [f"x{i} = bf16{x} parameter({i})", f"w{i} = bf16{w} constant({{...}})", f"s{i} = f32{y} {op}",
                  f"y{i} = bf16{y} convert(s{i})"]
        results.append(f"bf16{y}")
    lines.append(f"ROOT t = ({', '.join(results)}) tuple({', '.join(f'y{i}' for i in range(COPIES))})")
    return "HloModule m\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"


def torch_runner(shape):
    import torch
    torch.set_num_threads(1)
    if shape[0] == "dot":
        _, m, n, k = shape
        xs = [torch.randn(m, k, dtype=torch.bfloat16) for _ in range(COPIES)]
        ws = [torch.randn(k, n, dtype=torch.bfloat16) for _ in range(COPIES)]
        calls = list(zip(xs, ws))
        return lambda: [torch.matmul(x, w) for x, w in calls]
    _, size, inputs, features, kernel, stride, groups, dilation = shape
    last = torch.channels_last
    calls = []
    for _ in range(COPIES):
        x = torch.randn(1, inputs, size, size, dtype=torch.bfloat16).to(memory_format=last)
        conv = torch.nn.Conv2d(inputs, features, kernel, stride, kernel // 2 * dilation, dilation, groups, bias=False)
        calls.append((x, conv.to(torch.bfloat16).to(memory_format=last).eval()))

    def run():
        with torch.inference_mode():
            return [conv(x) for x, conv in calls]
    return run


def quantised_model(shape, path):
    import onnx
    from onnx import helper, numpy_helper
    draw = np.random.default_rng(0)
    nodes, inputs, outputs, values = [], [], [], []

    def value(name, array):
        values.append(numpy_helper.from_array(array, name))
        return name
    scales = [value("xs", np.float32(0.02)), value("xz", np.uint8(128)), value("ws", np.float32(0.01)),
              value("wz", np.int8(0)), value("ys", np.float32(0.5)), value("yz", np.uint8(128))]
    for i in range(COPIES):
        if shape[0] == "dot":
            _, m, n, k = shape
            x, w, y, op, more = [m, k], [k, n], [m, n], "QLinearMatMul", {}
        else:
            _, size, channels, features, kernel, stride, groups, dilation = shape
            pad, out = kernel // 2 * dilation, output_size(shape)
            x, w, y, op = [1, channels, size, size], [features, channels // groups, kernel, kernel], [1, features, out, out], "QLinearConv"
            more = {"pads": [pad] * 4, "strides": [stride] * 2, "dilations": [dilation] * 2, "group": groups,
                    "kernel_shape": [kernel] * 2}
        value(f"w{i}", draw.integers(-127, 128, w).astype(np.int8))
        inputs.append(helper.make_tensor_value_info(f"x{i}", onnx.TensorProto.UINT8, x))
        outputs.append(helper.make_tensor_value_info(f"y{i}", onnx.TensorProto.UINT8, y))
        nodes.append(helper.make_node(op, [f"x{i}", *scales[:2], f"w{i}", *scales[2:]], [f"y{i}"], **more))
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, values), opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.save(model, path)


def ort_runner(path):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    draw = np.random.default_rng(1)
    feeds = {x.name: draw.integers(0, 256, x.shape).astype(np.uint8) for x in session.get_inputs()}
    return lambda: session.run(None, feeds)


def peer_seconds(run, seconds=0.25):
    run()
    times, begin = [], time.perf_counter()
    while time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def heddle_seconds(path):
    done = subprocess.run([HEDDLE, "bench", path, "--random-constants", "--threads", "1"], capture_output=True, text=True)
    found = re.search(r"median ([\d.]+) (ms|us|s)\b", done.stdout)
    if not found:
        raise SystemExit(f"{path}: {done.stderr}")
    return float(found[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1}[found[2]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kind", choices=["bf16", "bytes"], help="one of the two")
    parser.add_argument("--peak", type=float, nargs=2, metavar=("BF16", "BYTES"), help="fastest rates in G operations a second, for shares")
    options = parser.parse_args()
    kinds = [options.kind] if options.kind else ["bf16", "bytes"]
    peaks = dict(zip(["bf16", "bytes"], options.peak or [float("nan")] * 2))
    print("| product | " + " | ".join(f"{kind}: G/s | of peak | peer / heddle" for kind in kinds) + " |")
    print("|---" * (1 + 3 * len(kinds)) + "|")
    ratios, shares = {kind: [] for kind in kinds}, {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory() as folder:
        for name, shape in all_shapes().items():
            if options.names and name not in options.names:
                continue
            row = [name]
            for kind in kinds:
                path = os.path.join(folder, name + (".hlo" if kind == "bf16" else ".onnx"))
                if kind == "bf16":
                    open(path, "w").write(bf16_text(shape))
                    peer = torch_runner(shape)
                else:
                    quantised_model(shape, path)
                    peer = ort_runner(path)
                ours, theirs = [], []
                for _ in range(options.rounds):
                    ours.append(heddle_seconds(path))
                    theirs.append(peer_seconds(peer))
                rate = flops(shape) * COPIES / statistics.median(ours) / 1e9
                ratios[kind].append(statistics.median(theirs) / statistics.median(ours))
                shares[kind].append(rate / peaks[kind])
                row += [f"{rate:.0f}", f"{shares[kind][-1]:.2f}", f"{ratios[kind][-1]:.2f}"]
            print("| " + " | ".join(row) + " |", flush=True)
    for kind in kinds:
        mean = [float(np.exp(np.mean(np.log(values)))) for values in (shares[kind], ratios[kind])]
        print(f"\n{kind}: {mean[0]:.3f} of the peak and {mean[1]:.2f} of the peer's speed in geometric mean over {len(ratios[kind])}; "
              f"least {min(shares[kind]):.2f} and {min(ratios[kind]):.2f}")


if __name__ == "__main__":
    main()
