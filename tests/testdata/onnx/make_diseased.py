"""A small network of ReLUs whose hidden channels have scales from 1/32 to 32: each convolution's channels
are multiplied by such a number and the next one's weights divided by it, so that the function is that of a
healthy network. Quantisation without equalisation loses it. Writes diseased/ beside this file."""
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).parent / "diseased"
WIDTHS = [3, 16, 24, 24, 32]


def main():
    random = np.random.default_rng(0)
    nodes, initializers, scale = [], [], np.ones(WIDTHS[0], np.float32)
    value = "x"

    def constant(name, array):
        initializers.append(numpy_helper.from_array(np.ascontiguousarray(array, np.float32), name))
        return name

    for layer in range(len(WIDTHS) - 1):
        inputs, outputs = WIDTHS[layer], WIDTHS[layer + 1]
        depthwise = inputs == outputs
        weights = random.standard_normal((outputs, 1 if depthwise else inputs, 3, 3)).astype(np.float32)
        weights *= np.sqrt(2 / weights[0].size)
        bias = random.standard_normal(outputs).astype(np.float32) * 0.1
        weights /= scale.reshape(-1, 1, 1, 1) if depthwise else scale.reshape(1, -1, 1, 1)
        scale = (2 ** random.uniform(-5, 5, outputs)).astype(np.float32)
        weights *= scale.reshape(-1, 1, 1, 1)
        names = [value, constant(f"w{layer}", weights), constant(f"b{layer}", bias * scale)]
        nodes.append(helper.make_node("Conv", names, [f"c{layer}"], name=f"conv{layer}", pads=[1, 1, 1, 1],
                                      group=inputs if depthwise else 1))
        nodes.append(helper.make_node("Relu", [f"c{layer}"], [f"r{layer}"], name=f"relu{layer}"))
        value = f"r{layer}"
    weights = random.standard_normal((10, WIDTHS[-1], 1, 1)).astype(np.float32) / scale.reshape(1, -1, 1, 1)
    nodes.append(helper.make_node("Conv", [value, constant("last", weights / 6)], ["l"], name="last"))
    nodes.append(helper.make_node("GlobalAveragePool", ["l"], ["p"], name="pool"))
    nodes.append(helper.make_node("Flatten", ["p"], ["y"], name="flatten"))
    graph = helper.make_graph(nodes, "diseased", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 10])], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    HERE.mkdir(exist_ok=True)
    onnx.save(model, HERE / "model.onnx")
    x = random.standard_normal((1, 3, 16, 16)).astype(np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    np.savez(HERE / "inputs.npz", x=x)
    np.savez(HERE / "expected.npz", y=session.run(None, {"x": x})[0])


if __name__ == "__main__":
    main()
