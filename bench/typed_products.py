"""Products in bf16 and in bytes beside oneDNN (as torch runs it) and ONNX Runtime: typed_products.py [--rounds N] [NAME ...]

bf16: operands and results in bf16, features last, against torch with one thread (its matmul and convolution are
oneDNN's). u8s8 and s8s8: the same products of bytes, sums scaled by column, rounded, and kept as u8 (s8); u8s8 against
oneDNN's products of quantised tensors, as Inductor calls them. onnx:
QLinearMatMul and QLinearConv (u8 by s8, results u8), the same file against ONNX Runtime with one thread: its pictures have
features first, so that a transpose at both ends is part of the time.
Several copies with weights of their own are run in turn, so that no weights stay in the first caches. heddle and the peer take
turns; of the rounds the least time counts, and times are the processor's: other programs on the machine slow some rounds down.
The peak is what word_probe reaches in the same rounds (the fastest).
Shapes of bench/products with at least 64 rows.
Wants numpy, torch, onnx and onnxruntime.
"""
import argparse
import json
import math
import os
import re
import resource
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
PROBE = os.path.join(HERE, "..", "build", "release", "word_probe")  # built with -DHEDDLE_BENCH=ON
COPIES = 4
RUN_FLOPS = 1e11  # of the fewest runs that are timed: 0.1 to 0.2 s
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


def operation(shape, i):
    """Extents of both operands and of the result of copy i, and its product."""
    if shape[0] == "dot":
        _, m, n, k = shape
        return f"[{m},{k}]", f"[{k},{n}]", f"[{m},{n}]", f"dot(x{i}, w{i}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
    _, size, inputs, features, kernel, stride, groups, dilation = shape
    pad, out = kernel // 2 * dilation, output_size(shape)
    return (f"[1,{size},{size},{inputs}]", f"[{kernel},{kernel},{inputs // groups},{features}]", f"[1,{out},{out},{features}]",
            f"convolution(x{i}, w{i}), window={{size={kernel}x{kernel} stride={stride}x{stride} pad={pad}_{pad}x{pad}_{pad} "
            f"rhs_dilate={dilation}x{dilation}}}, dim_labels=b01f_01io->b01f, feature_group_count={groups}")


def requantised(i, y, kind):
    """The sums s of copy i, scaled by column, rounded and put into a byte's range."""
    columns = y[1:-1].split(",")
    low, high = (0, 255) if kind == "u8" else (-128, 127)
    scales = ",".join(f"{0.001 + 0.0001 * (j % 7):.4f}" for j in range(int(columns[-1])))
    return [f"c{i} = f32[{columns[-1]}] constant({{{scales}}})", f"b{i} = f32{y} broadcast(c{i}), dimensions={{{len(columns) - 1}}}", f"f{i} = f32{y} convert(s{i})",
            f"m{i} = f32{y} multiply(f{i}, b{i})", f"r{i} = f32{y} round-nearest-even(m{i})",
            f"l{i} = f32[] constant({low})", f"h{i} = f32[] constant({high})", f"lb{i} = f32{y} broadcast(l{i}), dimensions={{}}",
            f"hb{i} = f32{y} broadcast(h{i}), dimensions={{}}", f"p{i} = f32{y} clamp(lb{i}, r{i}, hb{i})"]


def hlo_text(shape, left, right, sums):
    lines, results = [], []
    for i in range(COPIES):
        x, w, y, op = operation(shape, i)
        lines += [f"x{i} = {left}{x} parameter({i})", f"w{i} = {right}{w} constant({{...}})", f"s{i} = {sums}{y} {op}"]
        lines += requantised(i, y, left) if sums == "s32" else []
        lines += [f"y{i} = {left}{y} convert({'p' if sums == 's32' else 's'}{i})"]
        results.append(f"{left}{y}")
    lines.append(f"ROOT t = ({', '.join(results)}) tuple({', '.join(f'y{i}' for i in range(COPIES))})")
    return "HloModule m\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"


# kind: types of the operands and of the sums. onnx: a file of its own.
KINDS = {"bf16": ("bf16", "bf16", "f32"), "u8s8": ("u8", "s8", "s32"), "s8s8": ("s8", "s8", "s32"), "onnx": None}


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


def torch_bytes_runner(shape):
    """oneDNN's products of u8 by s8 with sums requantised to u8, weights packed ahead: what Inductor calls."""
    import torch
    torch.set_num_threads(1)
    onednn = torch.ops.onednn
    draw = torch.Generator().manual_seed(0)
    calls = []
    for _ in range(COPIES):
        if shape[0] == "dot":
            _, m, n, k = shape
            x = torch.randint(0, 256, (m, k), dtype=torch.uint8, generator=draw)
            w = onednn.qlinear_prepack(torch.randint(-127, 128, (n, k), dtype=torch.int8, generator=draw), [m, k])
            scales, zeros = torch.full((n,), 0.01), torch.zeros(n, dtype=torch.int64)
            calls.append(lambda x=x, w=w, scales=scales, zeros=zeros: onednn.qlinear_pointwise(
                x, 0.02, 0, w, scales, zeros, None, 0.5, 0, torch.uint8, "none", [], ""))
            continue
        _, size, inputs, features, kernel, stride, groups, dilation = shape
        x = torch.randint(0, 256, (1, inputs, size, size), dtype=torch.uint8, generator=draw).to(memory_format=torch.channels_last)
        plain = torch.randint(-127, 128, (features, inputs // groups, kernel, kernel), dtype=torch.int8, generator=draw)
        scales, zeros = torch.full((features,), 0.01), torch.zeros(features, dtype=torch.int64)
        window = [[stride] * 2, [kernel // 2 * dilation] * 2, [dilation] * 2, groups]
        w = onednn.qconv_prepack(plain, scales, 0.02, 0, *window, list(x.shape))
        calls.append(lambda x=x, w=w, scales=scales, zeros=zeros, window=window: onednn.qconv2d_pointwise(
            x, 0.02, 0, w, scales, zeros, None, *window, 0.5, 0, torch.uint8, "none", [], ""))

    def run():
        with torch.inference_mode():
            return [call() for call in calls]
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
    while time.perf_counter() - begin < seconds or len(times) < 3:
        start = time.thread_time()
        run()
        times.append(time.thread_time() - start)
    return statistics.median(times)


def processor_seconds(heddle, path, runs):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [heddle, "bench", path, "--random-constants", "--threads", "1", "--warmup", "1", "--iterations", str(runs)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{path}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def heddle_seconds(heddle, path, runs):
    """Of one run, by the processor's time of many runs less that of few: compilation is in both."""
    return (processor_seconds(heddle, path, 4 * runs) - processor_seconds(heddle, path, runs)) / (3 * runs)


def make(kind, shape, folder, name):
    """The file that heddle is given, and the peer's runner (none for bytes in HLO)."""
    if kind == "onnx":
        path = os.path.join(folder, name + ".onnx")
        quantised_model(shape, path)
        return path, ort_runner(path)
    path = os.path.join(folder, f"{name}-{kind}.hlo")
    with open(path, "w") as file:
        file.write(hlo_text(shape, *KINDS[kind]))
    peers = {"bf16": torch_runner, "u8s8": torch_bytes_runner}
    return path, peers[kind](shape) if kind in peers else None


def measure(path, peer, runs, options):
    """Seconds by heddle, by the other binary and by the peer: the least of rounds in which they take turns. And the peaks
    of these rounds: the clock falls where other programs run."""
    peaks = []
    times = {"heddle": [], "before": [], "peer": []}
    for _ in range(options.rounds):
        peaks.append(json.loads(subprocess.run([options.probe], capture_output=True, text=True, check=True).stdout))
        times["heddle"].append(heddle_seconds(HEDDLE, path, runs))
        if options.before:
            times["before"].append(heddle_seconds(options.before, path, runs))
        if peer and not options.no_peer:
            times["peer"].append(peer_seconds(peer))
    return ({who: min(values, default=float("nan")) for who, values in times.items()},
            {what: max(peak[what] for peak in peaks) for what in peaks[0]})


def geomean(values):
    return float(np.exp(np.mean(np.log(values))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kind", choices=KINDS, action="append", help="one of these (may be repeated)")
    parser.add_argument("--probe", default=PROBE, help="bench/word_probe, which says what the peaks are")
    parser.add_argument("--before", metavar="HEDDLE", help="another binary that takes turns too: its time beside heddle's")
    parser.add_argument("--no-peer", action="store_true")
    options = parser.parse_args()
    kinds = options.kind or list(KINDS)
    ratio = "before / heddle" if options.before else "peer / heddle"
    print("| product | " + " | ".join(f"{kind}: G/s | of peak | {ratio}" for kind in kinds) + " |")
    print("|---" * (1 + 3 * len(kinds)) + "|")
    ratios, shares = {kind: [] for kind in kinds}, {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory() as folder:
        for name, shape in all_shapes().items():
            if options.names and name not in options.names:
                continue
            row = [name]
            for kind in kinds:
                runs = math.ceil(RUN_FLOPS / (flops(shape) * COPIES))
                seconds, peaks = measure(*make(kind, shape, folder, name), runs, options)
                rate = flops(shape) * COPIES / seconds["heddle"] / 1e9
                ratios[kind].append(seconds["before" if options.before else "peer"] / seconds["heddle"])
                shares[kind].append(rate / peaks["bf16" if kind == "bf16" else "bytes"])
                row += [f"{rate:.0f}", f"{shares[kind][-1]:.2f}", f"{ratios[kind][-1]:.2f}"]
            print("| " + " | ".join(row) + " |", flush=True)
    for kind in kinds:
        print(f"\n{kind}: {geomean(shares[kind]):.3f} of the peak, {ratio} {geomean(ratios[kind]):.2f} in geometric mean over "
              f"{len(ratios[kind])}; least {min(shares[kind]):.2f} and {min(ratios[kind]):.2f}")


if __name__ == "__main__":
    main()
