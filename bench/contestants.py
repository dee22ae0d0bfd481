"""Those who take part in a measurement. Each has `round(count)`: lists of wall and CPU nanoseconds of
`count` runs after one unmeasured run. All are idle between their rounds."""
import json
import os
import subprocess
import time

import numpy as np

# ONNX Runtime's workers go on spinning for a while after a run: the next one waits for them to sleep.
PAUSE_S = 0.05


class Failed(Exception):
    """A contestant that did not answer; the text says why."""


class Server:
    """A probe of this folder: a line with a count in, a line of JSON out."""

    def __init__(self, *command):
        self.command = [str(part) for part in command]
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)

    def ask(self, count):
        try:
            self.process.stdin.write(f"{count}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self.process.stdout.readline()
        if not line:
            _, errors = self.process.communicate()
            raise Failed(f"{' '.join(self.command)}: status {self.process.returncode}: "
                         f"{errors.strip()}")
        return json.loads(line)

    def close(self):
        if self.process.poll() is None:
            self.process.communicate("")


class Heddle(Server):
    """A model through heddle's C interface."""

    def __init__(self, probe, model, threads, level="O2"):
        super().__init__(probe, model, threads, level)
        self.name = "heddle"

    def round(self, count):
        return self.ask(count)


class Copy(Server):
    """The yardstick: by every way; `fastest` takes the one with the lowest median."""

    def __init__(self, probe, moved_bytes, threads):
        super().__init__(probe, moved_bytes, threads)
        self.name = "copy"

    def round(self, count):
        return self.ask(count)

    @staticmethod
    def fastest(ways, clock):
        name = min(ways, key=lambda way: np.median(ways[way][clock]))
        return name, float(np.median(ways[name][clock]))


class OnnxRuntime:
    """ONNX Runtime with all optimisations, sequential, inputs and outputs bound once."""

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
            value = ort.OrtValue.ortvalue_from_numpy(array)
            self.held += [array, value]
            self.binding.bind_ortvalue_input(port.name, value)
        self._bind_outputs(ort)

    def _bind_outputs(self, ort):
        """Runs once to learn the shapes of the outputs, then binds memory of those shapes."""
        names = [port.name for port in self.session.get_outputs()]
        for name in names:
            self.binding.bind_output(name)
        self.session.run_with_iobinding(self.binding)
        self.outputs = dict(zip(names, self.binding.copy_outputs_to_cpu()))
        self.binding.clear_binding_outputs()
        for name, array in self.outputs.items():
            memory = np.zeros_like(array)
            value = ort.OrtValue.ortvalue_from_numpy(memory)
            self.held += [memory, value]
            self.binding.bind_ortvalue_output(name, value)

    def round(self, count):
        times = {"wall_ns": [], "cpu_ns": []}
        self.session.run_with_iobinding(self.binding)
        for _ in range(count):
            wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
            self.session.run_with_iobinding(self.binding)
            times["cpu_ns"].append(time.thread_time_ns() - cpu)
            times["wall_ns"].append(time.perf_counter_ns() - wall)
        return times

    def close(self):
        del self.session, self.binding


def load_npz(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def interleave(contestants, rounds, counts):
    """contestant -> list of its rounds. The order turns, so that nobody always runs first. `counts`:
    the runs of a round, by name: a round is about as long for everybody, so that the caches that
    the others took are won back in a small part of it."""
    results = {c.name: [] for c in contestants}
    for turn in range(rounds):
        shift = turn % len(contestants)
        for contestant in contestants[shift:] + contestants[:shift]:
            time.sleep(PAUSE_S)
            results[contestant.name].append(contestant.round(counts[contestant.name]))
    return results


def run_counts(contestants, wanted_s):
    """Name -> how many runs fill about `wanted_s` seconds."""
    counts = {}
    for contestant in contestants:
        measured = contestant.round(2)
        if "cpu_ns" not in measured:  # a copy by several ways
            measured = measured["memcpy"]
        one_s = min(measured["cpu_ns"]) / 1e9
        counts[contestant.name] = int(min(50, max(1, wanted_s / max(one_s, 1e-6))))
    return counts


def executable(folder, name):
    path = os.path.join(folder, name)
    return path if os.access(path, os.X_OK) else None
