"""Engines that heddle is compared with, each in a separate process:

    python peers.py KIND MODEL INPUTS.npz THREADS

KIND: onnxruntime, openvino, inductor, and those of row_peers.py.
Answers "ready NAME" or "error TEXT", then for every line with a count a line of JSON: the wall and the
CPU nanoseconds of `count` runs after one that is not measured; for a line with a path, writes the
outputs there. Buffers are bound once where the engine supports that. Inductor compiles the torch module
that MODEL (.../NAME/model.onnx) was exported from.
"""
import json
import os
import sys
import time

import numpy as np

import row_peers


class OnnxRuntime:
    """All optimisations, sequential."""

    def __init__(self, model, inputs, threads):
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.name = f"onnxruntime {ort.__version__}"
        self.session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        self.held = []
        for port in self.session.get_inputs():
            array = inputs[port.name]
            if all(isinstance(n, int) for n in port.shape):
                array = array.reshape(port.shape)
            self._bind(ort, self.binding.bind_ortvalue_input, port.name, array)
        self._bind_outputs(ort)

    def _bind(self, ort, bind, name, array):
        value = ort.OrtValue.ortvalue_from_numpy(array)
        self.held += [array, value]
        bind(name, value)

    def _bind_outputs(self, ort):
        """Runs once to learn the shapes of the outputs, then binds memory of those shapes."""
        names = [port.name for port in self.session.get_outputs()]
        for name in names:
            self.binding.bind_output(name)
        self.session.run_with_iobinding(self.binding)
        self.outputs = dict(zip(names, self.binding.copy_outputs_to_cpu()))
        self.binding.clear_binding_outputs()
        for name, array in self.outputs.items():
            self._bind(ort, self.binding.bind_ortvalue_output, name, np.zeros_like(array))

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def close(self):
        del self.session, self.binding


class OpenVino:
    """One stream for latency, f32 (its default would use bf16 where the processor has it), or what
    HEDDLE_PEER_PRECISION says."""

    def __init__(self, model, inputs, threads):
        import openvino as ov
        self.name = "openvino " + ov.__version__.split("-")[0]
        core = ov.Core()
        network = core.read_model(model)
        ports = {port.get_any_name(): port for port in network.inputs}
        network.reshape({name: list(inputs[name].shape) for name in ports})
        compiled = core.compile_model(network, "CPU", {
            "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": os.environ.get("HEDDLE_PEER_PRECISION", "f32"),
            **({} if "HEDDLE_PEER_PRECISION" in os.environ else {"EXECUTION_MODE_HINT": "ACCURACY"})})
        self.request = compiled.create_infer_request()
        self.held = []
        for name in ports:
            array = np.ascontiguousarray(inputs[name]).reshape(inputs[name].shape)  # also a scalar
            self.held.append(ov.Tensor(array, shared_memory=True))
            self.request.set_tensor(name, self.held[-1])
        self.run()
        # A port has several names, the model's own among them.
        self.outputs = {name: self.request.get_tensor(port).data.copy()
                        for port in compiled.outputs for name in port.get_names()}

    def run(self):
        self.request.infer()


class Inductor:
    """torch.compile with weights packed at compile time (freezing)."""

    def __init__(self, model, inputs, threads):
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "models"))
        import make_models
        import torch
        import torch._inductor.config
        self.torch = torch
        self.name = "inductor " + torch.__version__.split("+")[0]
        torch.set_num_threads(threads)
        torch._inductor.config.freezing = True
        spec = make_models.made(os.path.basename(os.path.dirname(os.path.abspath(model))))
        names = next(iter(spec["inputs"].values()))
        self.arguments = [torch.from_numpy(inputs[name]) for name in names]
        self.module = torch.compile(spec["module"].eval(), dynamic=False)
        results = self.run()
        results = [results] if isinstance(results, torch.Tensor) else results
        self.outputs = {n: r.numpy().copy() for n, r in zip(spec["outputs"], results)}

    def run(self):
        with self.torch.no_grad():
            return self.module(*self.arguments)


KINDS = {"onnxruntime": OnnxRuntime, "openvino": OpenVino, "inductor": Inductor}


def load_npz(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def measure(engine, count):
    """The CPU time is that of all threads: some run everything on a thread of their own."""
    times = {"wall_ns": [], "cpu_ns": []}
    engine.run()
    for _ in range(count):
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        engine.run()
        times["cpu_ns"].append(time.process_time_ns() - cpu)
        times["wall_ns"].append(time.perf_counter_ns() - wall)
    return times


def main():
    kind, model, inputs, threads = sys.argv[1:]
    # What libraries print must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        engine = {**KINDS, **row_peers.KINDS}[kind](model, load_npz(inputs), int(threads))
        engine.run()
    except Exception as error:  # whatever the engine finds wrong with the model
        print(f"error {type(error).__name__}: {' '.join(str(error).split())[:400]}", file=answers,
              flush=True)
        return
    print(f"ready {engine.name}", file=answers, flush=True)
    for line in sys.stdin:
        line = line.strip()
        if line.isdigit():
            answer = measure(engine, int(line))
        else:
            np.savez(line, **engine.outputs)
            answer = {"written": line}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
