"""heddle.ort against what ONNX Runtime does; where that is installed, against itself."""
import threading
import unittest
import warnings

import heddle
import heddle.ort
import models
import numpy as np

X = np.array([[1, 2, 3], [-1, 0.5, 2]], np.float32)


def simple(ort):
    session = ort.InferenceSession(models.linear("batch"), providers=["CPUExecutionProvider"])
    ports = [(p.name, p.type, p.shape) for p in [*session.get_inputs(), *session.get_outputs()]]
    name = session.get_inputs()[0].name
    return [ports, session.get_providers(), session.run(None, {name: X})[0],
            session.run([], {name: X[:1]})[0],
            session.run([session.get_outputs()[0].name], {name: X}, ort.RunOptions())[0]]


def options(ort):
    chosen = ort.SessionOptions()
    chosen.intra_op_num_threads = 1
    chosen.inter_op_num_threads = 1
    chosen.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    chosen.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    chosen.log_severity_level = 3
    chosen.enable_cpu_mem_arena = False
    chosen.add_session_config_entry("session.intra_op.allow_spinning", "0")
    chosen.add_free_dimension_override_by_name("batch", 2)
    session = ort.InferenceSession(models.linear("batch"), sess_options=chosen)
    return [session.get_inputs()[0].shape, session.get_outputs()[0].shape,
            chosen.get_session_config_entry("session.intra_op.allow_spinning"),
            session.get_session_options().intra_op_num_threads, session.run(None, {"x": X})[0],
            session.get_modelmeta().custom_metadata_map, session.get_modelmeta().graph_name]


def bindings(ort):
    session = ort.InferenceSession(models.sum_and_difference())
    a, b = np.arange(4, dtype=np.float32), np.full(4, 2, np.float32)
    binding = session.io_binding()
    binding.bind_cpu_input("a", a)
    binding.bind_ortvalue_input("b", ort.OrtValue.ortvalue_from_numpy(b))
    binding.bind_output("s")
    target = ort.OrtValue.ortvalue_from_shape_and_type([4], np.float32, "cpu", 0)
    binding.bind_ortvalue_output("d", target)
    session.run_with_iobinding(binding)
    first = [*binding.copy_outputs_to_cpu(), target.numpy().copy()]
    own = np.empty(4, np.float32)
    binding.clear_binding_outputs()
    binding.bind_input("b", "cpu", 0, np.float32, [4], a.ctypes.data)
    binding.bind_output("d", "cpu", 0, np.float32, [4], own.ctypes.data)
    session.run_with_iobinding(binding)
    values = session.run_with_ort_values(["s"], {"a": target, "b": target})
    return [*first, own, values[0].numpy(), binding.get_outputs()[0].shape()]


def values(ort):
    value = ort.OrtValue.ortvalue_from_numpy(X.copy())
    value.update_inplace(X * 2)
    return [value.numpy(), value.shape(), value.data_type(), value.element_type(),
            value.device_name(), value.is_tensor(), value.has_value(), value.is_sparse_tensor(),
            value.is_tensor_sequence()]


def strings(ort):
    session = ort.InferenceSession(models.identity(models.STRING, ["n"]))
    got, = session.run(None, {"x": np.array(["a", "ä"])})
    return [session.get_inputs()[0].type, got.dtype == object, got.tolist()]


def asynchronous(ort):
    session = ort.InferenceSession(models.linear())
    done, told = threading.Event(), []

    def callback(results, data, error):
        told.extend([results[0], data, error])
        done.set()
    session.run_async(None, {"x": X}, callback, "mine")
    assert done.wait(60)
    return told


PROGRAMS = [simple, options, bindings, values, strings, asynchronous]


def plain(value):
    return value.tolist() if isinstance(value, np.ndarray) else value


class OrtTest(unittest.TestCase):
    def test_programs(self):
        y = models.linear_value(X).tolist()
        want = {
            "simple": [[("x", "tensor(float)", ["batch", 3]), ("y", "tensor(float)", ["batch", 4])],
                       ["CPUExecutionProvider"], y, y[:1], y],
            "options": [[2, 3], [2, 4], "0", 1, y, {}, "graph"],
            "bindings": [[2, 3, 4, 5], [-2, -1, 0, 1], [-2, -1, 0, 1], [0] * 4, [-4, -2, 0, 2],
                         [4]],
            "values": [(X * 2).tolist(), [2, 3], "tensor(float)", 1, "cpu", True, True, False,
                       False],
            "strings": ["tensor(string)", True, ["a", "ä"]],
            "asynchronous": [y, "mine", ""]}
        for program in PROGRAMS:
            with self.subTest(program.__name__):
                got = [plain(value) for value in program(heddle.ort)]
                self.assertEqual(got, want[program.__name__])

    def test_programs_with_the_real_one(self):
        try:
            import onnxruntime
        except ImportError:
            self.skipTest("onnxruntime is not installed")
        for program in PROGRAMS:
            with self.subTest(program.__name__):
                self.assertEqual([plain(value) for value in program(heddle.ort)],
                                 [plain(value) for value in program(onnxruntime)])

    def test_names_are_its_own(self):
        try:
            import onnxruntime
        except ImportError:
            self.skipTest("onnxruntime is not installed")
        own = {"SessionOptions": {"dims", "initializers", "warn_of_what_has_no_effect"},
               "RunOptions": {"begin", "end"}, "IOBinding": {"run"}}
        for name in ["InferenceSession", "SessionOptions", "RunOptions", "OrtValue", "IOBinding"]:
            theirs = set(dir(getattr(onnxruntime, name)))
            ours = {word for word in dir(getattr(heddle.ort, name)) if word[0] != "_"}
            self.assertEqual(set(), ours - theirs - own.get(name, set()), name)
        modules = {word for word in heddle.ort.__all__ if not hasattr(onnxruntime, word)}
        self.assertEqual(set(), modules)

    def test_missing_inputs(self):
        session = heddle.ort.InferenceSession(models.linear())
        with self.assertRaisesRegex(ValueError, r"Required inputs \(\['x'\]\) are missing"):
            session.run(None, {"z": X})

    def test_memory_without_a_shape(self):
        binding = heddle.ort.InferenceSession(models.sum_and_difference()).io_binding()
        own = np.empty(4, np.float32)
        for given in [(None, [4]), (np.float32, None)]:
            with self.assertRaisesRegex(heddle.InputError, "'d'.*element_type or shape"):
                binding.bind_output("d", "cpu", 0, *given, own.ctypes.data)

    def test_terminate(self):
        chosen = heddle.ort.RunOptions()
        session = heddle.ort.InferenceSession(models.linear())
        chosen.terminate = True
        self.assertRaises(heddle.Cancelled, session.run, None, {"x": X}, chosen)
        chosen.terminate = False
        self.assertEqual(len(session.run(None, {"x": X}, chosen)), 1)
        slow = heddle.ort.SessionOptions()
        slow.graph_optimization_level = heddle.ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = heddle.ort.InferenceSession(models.long_run(5000), slow)
        eye = np.eye(384, dtype=np.float32)
        threading.Timer(0.3, setattr, (chosen, "terminate", True)).start()
        self.assertRaises(heddle.Cancelled, session.run, None, {"x": eye, "w": eye}, chosen)

    def test_providers(self):
        self.assertEqual(heddle.ort.get_available_providers()[-1], "CPUExecutionProvider")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            session = heddle.ort.InferenceSession(
                models.linear(), providers=[("NoSuchExecutionProvider", {"a": 1}),
                                            "CPUExecutionProvider"])
        self.assertIn("NoSuchExecutionProvider", str(caught[0].message))
        self.assertEqual(session.get_providers(), ["CPUExecutionProvider"])
        self.assertRaises(heddle.Error, heddle.ort.OrtValue.ortvalue_from_numpy, X, "cuda", 0)


if __name__ == "__main__":
    unittest.main()
