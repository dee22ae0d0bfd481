"""Writes onnx_operators/: one small model a family of operators, in the layout of ONNX's backend
tests, with the outputs of ONNX Runtime. Needs numpy, onnx and onnxruntime."""
import json
import pathlib
import shutil

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

FOLDER = pathlib.Path(__file__).parent / "onnx_operators"
RANDOM = np.random.default_rng(4)
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def node(op, inputs, outputs, **attributes):
    """Names apart by one blank; two blanks leave an input out."""
    return helper.make_node(op, inputs.split(" "), outputs.split(" "), **attributes)


def info(name, kind=FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def write(name, nodes, inputs, outputs, constants=(), opset=18, atol=None):
    """inputs: {name: array}; constants: {name: array}; outputs: names. `atol` for sums in which
    terms of that size cancel."""
    graph = helper.make_graph(
        nodes, name,
        [info(key, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
         for key, value in inputs.items()],
        [onnx.ValueInfoProto(name=key) for key in outputs],
        [numpy_helper.from_array(np.asarray(value), key) for key, value in dict(constants).items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    typed = onnx.shape_inference.infer_shapes(model)  # the runtime wants types of outputs
    session = onnxruntime.InferenceSession(typed.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    wanted = session.run(outputs, inputs)
    folder = FOLDER / name
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    if atol is not None:
        (folder / "data.json").write_text(json.dumps({"rtol": 1e-3, "atol": atol}) + "\n")
    for kind, values in (("input", inputs.values()), ("output", wanted)):
        for number, value in enumerate(values):
            tensor = numpy_helper.from_array(np.asarray(value))
            (data / f"{kind}_{number}.pb").write_bytes(tensor.SerializeToString())


def control():
    counter = helper.make_graph(
        [node("Identity", "going", "still"), node("Add", "a x", "next"), node("Mul", "next two", "seen")],
        "body", [info("i", INT64, []), info("going", BOOL, []), info("a", FLOAT, [3])],
        [info("still", BOOL, []), info("next", FLOAT, [3]), info("seen", FLOAT, [3])])
    write("loop_fixed", [node("Loop", "trips  start", "last all", body=counter)],
          {"x": normal(3), "start": normal(3)}, ["last", "all"],
          {"trips": np.int64(7), "two": np.float32(2)})
    growing = helper.make_graph(
        [node("Identity", "going", "still"), node("Concat", "a x", "next", axis=0)],
        "body", [info("i", INT64, []), info("going", BOOL, []), info("a", FLOAT, None)],
        [info("still", BOOL, []), info("next", FLOAT, None)])
    write("loop_growing", [node("Loop", "trips  x", "last", body=growing),
                           node("ReduceSum", "last", "sum", keepdims=0)],
          {"x": normal(3)}, ["sum"], {"trips": np.int64(4)})
    bags = helper.make_graph(
        [node("Gather", "from i", "a"), node("Gather", "to i", "b"),
         node("Unsqueeze", "a axis", "u"), node("Unsqueeze", "b axis", "v"),
         node("Slice", "at u v axis", "mine"), node("Gather", "table mine", "rows"),
         node("ReduceSum", "rows axis", "sum", keepdims=0), node("Identity", "going", "still")],
        "body", [info("i", INT64, []), info("going", BOOL, [])],
        [info("still", BOOL, []), info("sum", FLOAT, None)])
    write("loop_bags", [node("Loop", "trips go", "y", body=bags)],
          {"at": RANDOM.integers(0, 9, 12)}, ["y"],
          {"trips": np.int64(6), "go": np.array(True), "from": np.arange(0, 12, 2),
           "to": np.arange(2, 14, 2), "axis": np.array([0]), "table": normal(9, 4)})
    until = helper.make_graph(
        [node("Add", "a a", "next"), node("ReduceMax", "next", "most", keepdims=0),
         node("Less", "most limit", "still")],
        "body", [info("i", INT64, []), info("going", BOOL, []), info("a", FLOAT, [2])],
        [info("still", BOOL, []), info("next", FLOAT, [2])])
    write("loop_until", [node("Loop", "trips go x", "last", body=until)],
          {"x": np.array([0.5, 1.25], np.float32), "trips": np.array(100, np.int64)}, ["last"],
          {"go": np.array(True), "limit": np.float32(1000)})
    then = helper.make_graph([node("Add", "x y", "t")], "then", [], [info("t", FLOAT, [4])])
    other = helper.make_graph([node("Mul", "x two", "e")], "else", [], [info("e", FLOAT, [4])])
    for positive in (True, False):
        x = np.abs(normal(4)) * (1 if positive else -1)
        write(f"if_{'positive' if positive else 'negative'}",
              [node("ReduceSum", "x", "s", keepdims=0), node("Greater", "s zero", "c"),
               node("If", "c", "z", then_branch=then, else_branch=other)],
              {"x": x, "y": normal(4)}, ["z"], {"zero": np.float32(0), "two": np.float32(2)})
    step = helper.make_graph(
        [node("Add", "state part", "next"), node("Identity", "next", "out")], "body",
        [info("state", FLOAT, [2]), info("part", FLOAT, [2])],
        [info("next", FLOAT, [2]), info("out", FLOAT, [2])])
    write("scan", [node("Scan", "start x", "last all", body=step, num_scan_inputs=1,
                        scan_input_axes=[1], scan_input_directions=[1],
                        scan_output_axes=[1], scan_output_directions=[1])],
          {"start": normal(2), "x": normal(2, 6)}, ["last", "all"])
    write("sequence", [node("SplitToSequence", "x", "parts", axis=1, keepdims=0),
                       node("SequenceAt", "parts two", "third"),
                       node("SequenceInsert", "parts third zero", "more"),
                       node("ConcatFromSequence", "more", "y", axis=0, new_axis=1)],
          {"x": normal(2, 4)}, ["y"], {"two": np.int64(2), "zero": np.int64(0)})


def recurrent():
    times, batch, width, hidden = 7, 2, 3, 4
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for direction, both in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
            inputs = {"x": normal(times, batch, width)}
            constants = {"w": normal(both, gates * hidden, width) / 2,
                         "r": normal(both, gates * hidden, hidden) / 2,
                         "b": normal(both, 2 * gates * hidden) / 2,
                         "h": normal(both, batch, hidden)}
            text, outputs, more = "x w r b  h", "y last", {}
            if op == "LSTM":
                constants["c"] = normal(both, batch, hidden)
                constants["p"] = normal(both, 3 * hidden) / 2
                text, outputs = "x w r b lengths h c p", "y last memory"
                inputs["lengths"] = np.array([5, 7], np.int32)
            if op == "GRU":
                more["linear_before_reset"] = int(direction != "forward")
            nodes = [node(op, text, outputs, direction=direction, hidden_size=hidden, **more)]
            write(f"{op.lower()}_{direction}", nodes, inputs, outputs.split(), constants)
    write("gru_short", [helper.make_node("GRU", ["x", "w", "r"], ["", "last"], hidden_size=hidden)],
          {"x": normal(3, batch, width), "w": normal(1, 3 * hidden, width),
           "r": normal(1, 3 * hidden, hidden)}, ["last"])


def quantised():
    write("quantize", [node("QuantizeLinear", "x scale zero", "q", axis=1),
                       node("DequantizeLinear", "q scale zero", "y", axis=1)],
          {"x": normal(2, 3, 4) * 20}, ["q", "y"],
          {"scale": np.array([0.5, 1.5, 0.25], np.float32), "zero": np.array([3, -7, 0], np.int8)})
    write("dynamic_quantize", [node("DynamicQuantizeLinear", "x", "y scale zero")],
          {"x": normal(5, 3) * 9}, ["y", "scale", "zero"])
    a, b = (RANDOM.integers(0, 255, shape).astype(np.uint8) for shape in ((3, 8), (8, 5)))
    write("matmul_integer", [node("MatMulInteger", "a b za zb", "y")], {"a": a, "b": b}, ["y"],
          {"za": np.uint8(120), "zb": np.uint8(131)})
    write("qlinear_matmul", [node("QLinearMatMul", "a sa za b sb zb sy zy", "y")],
          {"a": a, "b": b}, ["y"],
          {"sa": np.float32(0.02), "za": np.uint8(120), "sb": np.float32(0.01),
           "zb": np.uint8(131), "sy": np.float32(0.04), "zy": np.uint8(100)})
    x = RANDOM.integers(0, 255, (1, 2, 5, 5)).astype(np.uint8)
    w = RANDOM.integers(0, 255, (3, 2, 3, 3)).astype(np.uint8)
    write("qlinear_conv", [node("QLinearConv", "x sx zx w sw zw sy zy b", "y", pads=[1, 1, 1, 1])],
          {"x": x}, ["y"],
          {"sx": np.float32(0.02), "zx": np.uint8(128), "w": w, "sw": np.float32(0.03),
           "zw": np.uint8(127), "sy": np.float32(0.1), "zy": np.uint8(90),
           "b": np.array([50, -200, 7], np.int32)})
    write("conv_integer", [node("ConvInteger", "x w zx zw", "y", strides=[2, 2])], {"x": x}, ["y"],
          {"w": w, "zx": np.uint8(3), "zw": np.uint8(5)})


def sampling():
    grid = RANDOM.uniform(-1.4, 1.4, (2, 3, 4, 2)).astype(np.float32)
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in ("zeros", "border", "reflection"):
            if (mode, padding) == ("bicubic", "border"):
                continue  # the runtime moves such points elsewhere than ONNX's definition
            write(f"grid_sample_{mode}_{padding}",
                  [node("GridSample", "x grid", "y", mode=mode, padding_mode=padding,
                        align_corners=int(padding == "border"))],
                  {"x": normal(2, 3, 5, 6), "grid": grid}, ["y"])
    rois = np.array([[0, 0, 4, 5], [1, 2, 7, 6.5]], np.float32)
    for mode in ("avg", "max"):
        write(f"roi_align_{mode}",
              [node("RoiAlign", "x rois batch", "y", mode=mode, output_height=2, output_width=3,
                    sampling_ratio=2 if mode == "avg" else 1, spatial_scale=0.75)],
              {"x": normal(2, 3, 8, 8), "rois": rois, "batch": np.array([1, 0], np.int64)}, ["y"])
    write("col2im", [node("Col2Im", "x image block", "y", pads=[1, 0, 0, 1], strides=[1, 2])],
          {"x": normal(2, 12, 18)}, ["y"],
          {"image": np.array([6, 6], np.int64), "block": np.array([2, 2], np.int64)})
    write("max_pool_indices",
          [node("MaxPool", "x", "y at", kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])],
          {"x": normal(2, 2, 6, 5)}, ["y", "at"])
    write("max_unpool", [node("MaxPool", "x", "p at", kernel_shape=[2, 2], strides=[2, 2]),
                         node("MaxUnpool", "p at", "y", kernel_shape=[2, 2], strides=[2, 2])],
          {"x": normal(1, 2, 4, 6)}, ["y"])


def various():
    write("dft", [node("DFT", "x", "y", axis=1, onesided=1)], {"x": normal(2, 9, 1)}, ["y"],
          atol=1e-5)
    write("stft", [node("STFT", "x step window", "y")], {"x": normal(2, 32)}, ["y"],
          {"step": np.int64(4), "window": np.hanning(8).astype(np.float32)}, atol=1e-5)
    write("windows", [node("HannWindow", "n", "a"), node("HammingWindow", "n", "b", periodic=0),
                      node("BlackmanWindow", "n", "c"), node("Sum", "a b c", "s"),
                      node("Mul", "s x", "y")],
          {"x": normal(10)}, ["y"], {"n": np.int64(10)})
    for exclusive, reverse in ((0, 0), (1, 0), (0, 1), (1, 1)):
        write(f"cumsum_{exclusive}{reverse}",
              [node("CumSum", "x axis", "y", exclusive=exclusive, reverse=reverse)],
              {"x": RANDOM.integers(-9, 9, (2, 75, 3)).astype(np.float32)}, ["y"], {"axis": np.int64(1)})
    write("det", [node("Det", "x", "y")], {"x": normal(3, 4, 4)}, ["y"])
    write("hardmax", [node("Hardmax", "x", "y", axis=1)], {"x": normal(2, 3, 4)}, ["y"])
    write("reverse_sequence",
          [node("ReverseSequence", "x n", "y", batch_axis=1, time_axis=0)],
          {"x": normal(5, 3, 2), "n": np.array([2, 5, 1], np.int64)}, ["y"])
    write("center_crop_pad", [node("CenterCropPad", "x shape", "y", axes=[0, 2])],
          {"x": normal(5, 3, 4)}, ["y"], {"shape": np.array([2, 7], np.int64)})
    target = np.array([[1, 0], [3, 2], [-1, 1]], np.int64)
    write("nll_loss", [node("NegativeLogLikelihoodLoss", "x target weight", "y", ignore_index=-1)],
          {"x": normal(3, 4, 2), "target": target, "weight": np.abs(normal(4))}, ["y"])
    write("cross_entropy", [node("SoftmaxCrossEntropyLoss", "x target", "y log", ignore_index=-1)],
          {"x": normal(3, 4, 2), "target": target}, ["y", "log"])
    write("non_zero", [node("NonZero", "x", "y")],
          {"x": np.array([[0, 2, 0], [1, 0, 3]], np.float32)}, ["y"])
    write("unique", [node("Unique", "x", "y first back count", sorted=0)],
          {"x": np.array([3, 1, 3, 2, 1], np.float32)}, ["y", "first", "back", "count"])
    write("compress", [node("Compress", "x c", "y", axis=1)],
          {"x": normal(2, 3), "c": np.array([True, False, True])}, ["y"])
    boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3]]], np.float32)
    write("non_max_suppression", [node("NonMaxSuppression", "boxes scores most iou", "y")],
          {"boxes": boxes, "scores": np.array([[[0.5, 0.9, 0.7]]], np.float32)}, ["y"],
          {"most": np.array([3], np.int64), "iou": np.array([0.5], np.float32)})
    shape = np.array([2, -1], np.int64)
    write("shape_as_input", [node("Reshape", "x shape", "y")],
          {"x": normal(3, 4), "shape": shape}, ["y"])


def pools():
    """Windows longer than what is there, in ceil mode: of all that is left."""
    whole = {"kernel_shape": [5, 5], "strides": [5, 5], "ceil_mode": 1}
    write("pools_of_what_is_left",
          [node("AveragePool", "x", "mean", **whole), node("MaxPool", "x", "largest", **whole),
           node("AveragePool", "x", "all", count_include_pad=1, **whole),
           node("AveragePool", "x", "padded", count_include_pad=1, pads=[1] * 4, **whole)],
          {"x": normal(1, 2, 2, 3)}, ["mean", "largest", "all", "padded"], opset=22)


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    for family in (control, recurrent, quantised, sampling, various, pools):
        family()


if __name__ == "__main__":
    main()
