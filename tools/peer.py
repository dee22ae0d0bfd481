"""Runs a peer for `heddle bench --vs`, in a Python of the user's:

    python3 -c <this> PEER MODEL INPUTS.npz THREADS HEDDLE

Answers one line each on what was standard output at the start: first "ready NAME VERSION" or
"error TEXT", then for every line "run N" that comes in the nanoseconds of N runs. Buffers are bound
once. A round starts with one run that is not counted; inside it the peer's threads may spin as
they like, and the answer comes when they are asleep: the other side's turn is then quiet.
"""
import os
import sys
import time


class OnnxRuntime:
    def __init__(self, model, inputs, threads, heddle):
        del heddle
        import numpy as np
        import onnxruntime as ort
        self.name = "onnxruntime " + ort.__version__
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # what fails is told below
        self.session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        self.kept = []
        for wanted in self.session.get_inputs():
            if wanted.name not in inputs:
                raise ValueError(f"no value for input {wanted.name}")
            value = np.ascontiguousarray(inputs[wanted.name])
            self.kept.append(ort.OrtValue.ortvalue_from_numpy(value))
            self.binding.bind_ortvalue_input(wanted.name, self.kept[-1])
        names = [output.name for output in self.session.get_outputs()]
        for name in names:
            self.binding.bind_output(name, "cpu")
        self.session.run_with_iobinding(self.binding)
        # The sizes are known now: the outputs get memory that stays.
        for name, value in zip(names, self.binding.copy_outputs_to_cpu()):
            self.kept.append(ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value)))
            self.binding.bind_ortvalue_output(name, self.kept[-1])

    def run(self):
        self.session.run_with_iobinding(self.binding)


class OpenVino:
    def __init__(self, model, inputs, threads, heddle):
        del heddle
        import numpy as np
        import openvino as ov
        self.name = "openvino " + ov.__version__.split("-")[0]
        core = ov.Core()
        network = core.read_model(model)
        network.reshape({name: list(value.shape) for name, value in inputs.items()})
        config = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1,
                  "INFERENCE_PRECISION_HINT": "f32"}
        self.request = core.compile_model(network, "CPU", config).create_infer_request()
        self.kept = []
        for name, value in inputs.items():
            self.kept.append(ov.Tensor(np.ascontiguousarray(value), shared_memory=True))
            self.request.set_tensor(name, self.kept[-1])

    def run(self):
        self.request.infer()


class Xla:
    """XLA for the processor, as JAX brings it, on the model as StableHLO, which `heddle opt` writes."""

    def __init__(self, model, inputs, threads, heddle):
        # XLA has a thread for each core that it may use.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
        os.environ["JAX_PLATFORMS"] = "cpu"
        import jax
        from jax._src.lib import xla_client
        jax.config.update("jax_enable_x64", True)
        self.name = "xla of jax " + jax.__version__
        device = jax.devices("cpu")[0]
        text = self.stablehlo(heddle, model, inputs)
        try:
            from jax._src.lib import _jax
            self.program = device.client.compile_and_load(
                text, _jax.DeviceList((device,)), xla_client.CompileOptions())
        except (AttributeError, ImportError, TypeError):  # older ones
            self.program = device.client.compile(text, xla_client.CompileOptions())
        self.values = [jax.device_put(value, device) for value in inputs.values()]

    @staticmethod
    def stablehlo(heddle, model, inputs):
        import subprocess
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.mlir")
            shapes = [f"--shape={name}=" + "x".join(map(str, value.shape)) for name, value in inputs.items()]
            done = subprocess.run([heddle, "opt", model, "--emit", "stablehlo", "-o", path, *shapes],
                                  capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise ValueError(done.stderr.strip().splitlines()[-1])
            with open(path, "rb") as file:
                return file.read()

    def run(self):
        for value in self.program.execute(self.values):
            value.block_until_ready()


PEERS = {"onnxruntime": OnnxRuntime, "openvino": OpenVino, "xla": Xla}


def make(peer, model, path, threads, heddle):
    import numpy as np
    with np.load(path) as archive:
        inputs = {name: archive[name] for name in archive.files}
    return PEERS[peer](model, inputs, threads, heddle)


def fall_asleep():
    """Returns when no thread of this process runs, and after two seconds in any case."""
    for _ in range(200):
        before = time.process_time()
        time.sleep(0.01)
        if time.process_time() - before < 0.0005:
            return


def main():
    peer, model, path, threads, heddle = sys.argv[1:6]
    # What libraries print must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        made = make(peer, model, path, int(threads), heddle)
        made.run()
    except ImportError as error:
        print(f"error {sys.executable} cannot import what {peer} needs ({error}); install it, or "
              "name another Python by --peer-python", file=answers, flush=True)
        return
    except Exception as error:  # whatever the peer finds wrong with the model
        text = " ".join(str(error).split())
        print(f"error {peer}: {text}", file=answers, flush=True)
        return
    print("ready " + made.name, file=answers, flush=True)
    for line in sys.stdin:
        word, _, count = line.partition(" ")
        if word != "run":
            return
        times = []
        made.run()
        for _ in range(int(count)):
            begin = time.perf_counter_ns()
            made.run()
            times.append(time.perf_counter_ns() - begin)
        fall_asleep()
        print(*times, file=answers, flush=True)


main()
