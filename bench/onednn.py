"""oneDNN as a contestant of `compare.py models`, for models of products and convolutions: writes the
model as the steps that onednn_probe runs. The epilogue of a step (a vector that is added, an
activation) becomes its post-operation, as heddle fuses it."""
import os
import tempfile

import numpy as np

import contestants
import peers

STEPS = {"MatMul": "product", "Conv": "convolution"}
ACTIVATIONS = ["Relu", "Gelu", "HardSwish", "Softplus"]


def attributes_of(node):
    import onnx
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def same(values, what, node):
    """The one number that an attribute has in all dimensions."""
    if len(set(values)) != 1:
        raise contestants.Failed(f"onednn: {what} of {node.name or node.output[0]} differ")
    return values[0]


def convolution_words(node):
    given = attributes_of(node)
    if given.get("auto_pad", b"NOTSET") != b"NOTSET" or set(given.get("dilations", [1])) != {1}:
        raise contestants.Failed("onednn: auto_pad and dilations are not spoken")
    return [same(given.get("strides", [1]), "strides", node), same(given.get("pads", [0]), "pads",
                                                                   node), given.get("group", 1)]


class Steps:
    """The steps of a graph and the values they name; Failed where a node is no step."""

    def __init__(self, graph, inputs):
        import onnx
        self.values = {name: np.ascontiguousarray(value) for name, value in inputs.items()}
        self.values |= {w.name: onnx.numpy_helper.to_array(w) for w in graph.initializer}
        self.readers = {}
        for node in graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        self.outputs = [port.name for port in graph.output]
        self.lines, self.taken = [], set()
        for node in graph.node:
            if node.output[0] not in self.taken:
                self.add(node)
        self.lines += [f"output {name}" for name in self.outputs]

    def only_reader(self, name, kinds):
        readers = self.readers.get(name, [])
        if name in self.outputs or len(readers) != 1 or readers[0].op_type not in kinds:
            return None
        return readers[0]

    def add(self, node):
        if node.op_type not in STEPS:
            raise contestants.Failed(f"onednn: {node.op_type} is not spoken")
        bias = node.input[2] if len(node.input) > 2 else "-"
        end, activation = node.output[0], "-"
        added = self.only_reader(end, ["Add"]) if bias == "-" else None
        if added is not None:
            other = next((name for name in added.input if name != end), end)
            if other not in self.values or self.values[other].ndim != 1:
                raise contestants.Failed("onednn: an Add of anything but a vector is not spoken")
            bias, end = other, added.output[0]
            self.taken.add(end)
        follows = self.only_reader(end, ACTIVATIONS)
        if follows is not None and not attributes_of(follows):
            activation, end = follows.op_type, follows.output[0]
            self.taken.add(end)
        words = [STEPS[node.op_type], end, *node.input[:2], bias, activation]
        if node.op_type == "Conv":
            words += convolution_words(node)
        self.lines.append(" ".join(map(str, words)))


class OneDnn(contestants.Server):
    def __init__(self, probe, model, inputs, threads):
        import onnx
        if not os.path.exists(probe):
            raise contestants.Failed(f"onednn: {probe} is missing (-DHEDDLE_BENCH=ON, libdnnl-dev)")
        steps = Steps(onnx.load(model).graph, peers.load_npz(inputs))
        with tempfile.TemporaryDirectory() as folder:
            lines, values = os.path.join(folder, "steps"), os.path.join(folder, "values.npz")
            with open(lines, "w") as file:
                file.write("\n".join(steps.lines) + "\n")
            np.savez(values, **steps.values)
            super().__init__("env", f"OMP_NUM_THREADS={threads}", probe, lines, values)
            word, _, text = self.answer().strip().partition(" ")
        if word != "ready":
            self.close()
            raise contestants.Failed(f"onednn: {text}")
        self.name = text

    def outputs(self, path):
        self.ask(path)
        return peers.load_npz(path)
