"""heddle.Session: what it takes, what it gives, what it refuses."""
import asyncio
import logging
import os
import pathlib
import signal
import sys
import tempfile
import unittest

import heddle
import models
import numpy as np

X = np.array([[1, 2, 3], [-1, 0.5, 2]], np.float32)


class RunTest(unittest.TestCase):
    def test_from_bytes_path_and_pathlike(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "linear.onnx"
            path.write_bytes(models.linear())
            for source in [models.linear(), bytearray(models.linear()), path, os.fspath(path)]:
                got = heddle.Session(source).run(None, {"x": X})
                self.assertIsInstance(got, list)
                np.testing.assert_allclose(got[0], models.linear_value(X), rtol=1e-6)

    def test_from_a_proto(self):
        class Proto:
            def SerializeToString(self):
                return models.linear()
        class Program:
            model_proto = Proto()
        for model in [Proto(), Program()]:
            np.testing.assert_allclose(heddle.Session(model)(X), models.linear_value(X), rtol=1e-6)

    def test_from_hlo_text(self):
        text = b"HloModule m\nENTRY e { p = f32[2] parameter(0) ROOT r = f32[2] add(p, p) }"
        np.testing.assert_array_equal(heddle.Session(text)([1, 2]), [2, 4])

    def test_outputs_by_name(self):
        session = heddle.Session(models.sum_and_difference())
        a, b = np.arange(4, dtype=np.float32), np.full(4, 2, np.float32)
        feed = {"a": a, "b": b}
        s, d = session.run(None, feed)
        np.testing.assert_array_equal(s, a + b)
        np.testing.assert_array_equal(d, a - b)
        np.testing.assert_array_equal(session.run(["d"], feed), [a - b])
        d, s, again = session.run(["d", "s", "d"], feed)
        np.testing.assert_array_equal(s, a + b)
        np.testing.assert_array_equal(d, again)
        self.assertEqual(session.run([], feed), [])

    def test_called(self):
        session = heddle.Session(models.sum_and_difference())
        for got in [session([1] * 4, [2] * 4), session(a=[1] * 4, b=[2] * 4),
                    session({"a": [1] * 4, "b": [2] * 4})]:
            self.assertIsInstance(got, tuple)
            np.testing.assert_array_equal(got[1], [-1] * 4)
        one = heddle.Session(models.linear())
        self.assertEqual(one(X).shape, (2, 4))
        self.assertRaises(TypeError, lambda: session([1] * 4, b=[2] * 4))

    def test_into_arrays_of_the_caller(self):
        session = heddle.Session(models.sum_and_difference())
        feed = {"a": np.ones(4, np.float32), "b": np.ones(4, np.float32)}
        out = np.zeros(4, np.float32)
        got = session.run(None, feed, {"s": out})
        self.assertIs(got[0], out)
        np.testing.assert_array_equal(out, 2)
        got = session.run(["d"], feed, out=[out])
        self.assertIs(got[0], out)
        np.testing.assert_array_equal(out, 0)
        for wrong in [np.zeros(3, np.float32), np.zeros(4, np.float64),
                      np.zeros(8, np.float32)[::2]]:
            self.assertRaises(heddle.InputError, session.run, ["d"], feed, [wrong])
        frozen = np.zeros(4, np.float32)
        frozen.flags.writeable = False
        self.assertRaises(heddle.InputError, session.run, ["d"], feed, [frozen])
        self.assertEqual(out.tolist(), [0] * 4)

    def test_log(self):
        with self.assertLogs("heddle", "DEBUG") as log:
            heddle.Session(models.sum_and_difference())
        text = "\n".join(log.output)
        self.assertIn("INFO:heddle:opened graph (ONNX)", text)
        self.assertIn("DEBUG:heddle:", text)
        with self.assertLogs("heddle", "WARNING") as log:
            logging.getLogger("heddle").warning("nothing of heddle's own")
            heddle.Session(models.sum_and_difference())
        self.assertEqual(len(log.output), 1)

    def test_log_of_a_handler_that_fails(self):
        class Failing(logging.Handler):
            def emit(self, record):
                raise RuntimeError("no more paper")
        handler = Failing()
        logger = logging.getLogger("heddle")
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        hook, told = sys.unraisablehook, []
        sys.unraisablehook = told.append
        try:
            heddle.Session(models.sum_and_difference())
        finally:
            sys.unraisablehook = hook
            logger.removeHandler(handler)
            logger.setLevel(logging.NOTSET)
        self.assertEqual(str(told[0].exc_value), "no more paper")

    def test_async(self):
        session = heddle.Session(models.linear())

        async def all_of_them():
            return await asyncio.gather(*(session.run_async(None, {"x": X * k})
                                          for k in range(5)))
        for k, got in enumerate(asyncio.run(all_of_them())):
            np.testing.assert_allclose(got[0], models.linear_value(X * k), rtol=1e-6)

    def test_saved_and_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "linear.heddle"
            heddle.compile(models.linear()).save(path)
            loaded = heddle.load(path)
            np.testing.assert_allclose(loaded(X), models.linear_value(X), rtol=1e-6)
            self.assertEqual(loaded.info["format"], "compiled program")
            loaded = heddle.Session(path.read_bytes())
            np.testing.assert_allclose(loaded(X), models.linear_value(X), rtol=1e-6)


class PortsTest(unittest.TestCase):
    def test_fixed(self):
        session = heddle.Session(models.linear())
        self.assertEqual(session.inputs,
                         (heddle.Port("x", (2, 3), np.dtype(np.float32), "f32"),))
        self.assertEqual([port.shape for port in session.outputs], [(2, 4)])
        self.assertIn("x: f32[2, 3]", repr(session))

    def test_dynamic(self):
        for options in [{}, {"bounds": {"batch": 8}}]:
            session = heddle.Session(models.linear("batch"), **options)
            self.assertEqual(session.inputs[0].shape, ("batch", 3))
            self.assertEqual(session.outputs[0].shape, ("batch", 4))
        for options in [{"dims": {"batch": 5}}, {"shapes": {"x": [5, 3]}}]:
            session = heddle.Session(models.linear("batch"), **options)
            self.assertEqual(session.inputs[0].shape, (5, 3))

    def test_facts(self):
        info = heddle.Session(models.linear(), threads=1, level="O1").info
        self.assertEqual((info["device"], info["threads"], info["level"]), ("cpu", 1, "O1"))
        self.assertGreater(info["kernels"], 0)


class ErrorTest(unittest.TestCase):
    def assert_raises(self, kind, text, function, *args, **kwargs):
        with self.assertRaises(kind) as caught:
            function(*args, **kwargs)
        self.assertIs(type(caught.exception), kind)
        self.assertIsInstance(caught.exception, (heddle.Error, TypeError))
        self.assertIn(text, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))

    def test_models(self):
        self.assert_raises(heddle.Error, "nowhere.onnx", heddle.Session, "nowhere.onnx")
        self.assert_raises(heddle.Error, "not a model", heddle.Session, b"nonsense")
        self.assert_raises(heddle.Error, "", heddle.Session, b"")
        self.assert_raises(heddle.Error, "", heddle.Session, models.linear()[:60])
        bogus = models.model([models.node("Bogus", ["x"], ["y"])], [("x", models.F32, [1])],
                             [("y", models.F32, [1])])
        self.assert_raises(heddle.UnsupportedOperators, "Bogus", heddle.Session, bogus)
        self.assertRaises(NotImplementedError, heddle.Session, bogus)
        wrong = models.model([models.node("MatMul", ["x", "x"], ["y"])],
                             [("x", models.F32, [2, 3])], [("y", models.F32, [2, 3])])
        self.assert_raises(heddle.ShapeError, "f32[2,3]", heddle.Session, wrong)
        self.assertRaises(TypeError, heddle.Session, 3)

    def test_options(self):
        linear = models.linear()
        self.assert_raises(TypeError, "no option 'levle'; the options are device",
                           heddle.Session, linear, levle="O1")
        self.assert_raises(heddle.Error, "O0", heddle.Session, linear, level="O9")
        self.assert_raises(heddle.Error, "threads", heddle.Session, linear, threads=10**6)
        self.assert_raises(heddle.Error, "threads", heddle.Session, linear, threads=10**30)
        self.assert_raises(heddle.Error, "threads", heddle.Session, linear, threads=-7)
        self.assertRaises(TypeError, heddle.Session, linear, threads="4")
        self.assert_raises(heddle.Error, "nodim", heddle.Session, linear, dims={"nodim": 3})
        self.assert_raises(heddle.OutOfMemory, "limit", heddle.Session,
                           models.long_run(4), memory_limit=64)
        self.assertRaises(MemoryError, heddle.Session, models.long_run(4), memory_limit=64)

    @unittest.skipIf(os.path.exists("/dev/nvidia0"), "there is a GPU")
    def test_no_such_device(self):
        self.assert_raises(heddle.DeviceError, "cuda", heddle.Session, models.linear(),
                           device="cuda")

    def test_inputs(self):
        run = heddle.Session(models.linear()).run
        self.assert_raises(heddle.MissingInput, "no value for x", run, None, {})
        self.assert_raises(heddle.MissingInput, "0 inputs", run, None, [])
        self.assert_raises(heddle.UnknownName, "no input 'z'", run, None, {"x": X, "z": X})
        self.assert_raises(heddle.UnknownName, "no output 'z'; the outputs are y", run, ["z"],
                           {"x": X})
        self.assert_raises(heddle.ShapeError, "input x is f32[2,2]; wanted f32[2,3]", run, None,
                           {"x": X[:, :2]})
        self.assert_raises(heddle.ShapeError, "f32[3]", run, None, {"x": X[0]})
        self.assert_raises(heddle.InputError, "input x is f64[2,3]; wanted f32", run, None,
                           {"x": X.astype(np.float64)})
        self.assert_raises(heddle.InputError, "object", run, None, {"x": X.astype(object)})
        self.assert_raises(heddle.InputError, "", run, None, {"x": "text"})
        self.assert_raises(heddle.InputError, "", run, None, {"x": None})
        self.assertRaises(TypeError, run, "y", {"x": X})
        self.assertRaises(TypeError, run, None, 3)
        np.testing.assert_allclose(run(None, {"x": X})[0], models.linear_value(X), rtol=1e-6)

    def test_indices_out_of_range(self):
        gather = models.model([models.node("Gather", ["w", "i"], ["y"])],
                              [("i", models.I64, [2])], [("y", models.F32, [2, 4])],
                              {"w": models.WEIGHTS})
        session = heddle.Session(gather)
        np.testing.assert_array_equal(session([0, 2]), models.WEIGHTS[[0, 2]])
        self.assert_raises(heddle.Error, "3", session, [0, 3])

    def test_progress(self):
        steps = []
        heddle.Session(models.linear(), cache="off",
                       progress=lambda step, done, count, seconds: steps.append(step))
        self.assertIn("codegen", steps)
        self.assert_raises(heddle.Cancelled, "", heddle.Session, models.linear(), cache="off",
                           progress=lambda *_: True)

        def fails(*_):
            raise KeyError("mine")
        with self.assertRaisesRegex(KeyError, "mine"):
            heddle.Session(models.linear(), cache="off", progress=fails)
        late = heddle.Session(models.linear("batch"), cache="off", progress=lambda *_: len(
            steps) < 0)
        self.assertEqual(late(X).shape, (2, 4))

    def test_ctrl_c_while_compiling(self):
        with self.assertRaises(KeyboardInterrupt):
            heddle.Session(models.long_run(50), cache="off",
                           progress=lambda *_: os.kill(os.getpid(), signal.SIGINT))
        self.assertEqual(heddle.Session(models.linear())(X).shape, (2, 4))

    def test_in_the_background(self):
        session = heddle.Session(models.linear(), background=True, cache="off")
        for _ in range(3):
            np.testing.assert_allclose(session(X), models.linear_value(X), rtol=1e-6)
        self.assertTrue(session.wait(60))
        self.assertFalse(session.info["pending"])
        self.assertEqual(session.info["level"], "O2")
        np.testing.assert_allclose(session(X), models.linear_value(X), rtol=1e-6)

    def test_every_option_of_the_command(self):
        with tempfile.TemporaryDirectory() as folder:
            values = {"device": "cpu", "target": "host", "level": "O2", "fuse": "stitch",
                      "memory": "static", "numerics": "strict", "precision": "f32",
                      "library": "none", "cache": pathlib.Path(folder), "dump": folder,
                      "disable": [], "memory_limit": 1 << 30, "threads": 1, "streams": 1,
                      "order": "module", "compile_threads": 1, "amp": "off",
                      "loss_scale": "none", "ranges": None, "keep_programs": 3,
                      "keep_memory": 1 << 30, "background": False}
            self.assertEqual(set(values), set(heddle.option_names()))
            session = heddle.Session(models.linear(), **values)
            np.testing.assert_allclose(session(X), models.linear_value(X), rtol=1e-6)
            self.assertTrue(list(pathlib.Path(folder).rglob("*.hlo")))


if __name__ == "__main__":
    unittest.main()
