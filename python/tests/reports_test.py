"""heddle.bench, check, quantize, tune, Session.explain and Session.profile: the command as objects."""
import importlib.util
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import heddle
import models
import numpy as np
from heddle import _command, reports


def product(extent=128):
    weights = np.random.default_rng(0).standard_normal((extent, extent)).astype(np.float32)
    return models.model(
        [models.node("MatMul", ["x", "w"], ["y"])], [("x", models.F32, ["n", extent])],
        [("y", models.F32, ["n", extent])], {"w": weights})


class ReportsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "product.onnx"
        self.path.write_bytes(product())

    def test_explain(self):
        session = heddle.Session(product(), dims={"n": 3}, level="O1", threads=1)
        explanation = session.explain(schedules=True)
        self.assertIn("O1", explanation.text.splitlines()[0])
        self.assertIn("schedule", explanation.data["kernels"][0])
        self.assertIn("<pre>", explanation._repr_html_())
        page = self.folder / "page.html"
        explanation.html(page)
        self.assertIn("<html", page.read_text()[:200])
        with self.assertRaisesRegex(heddle.Error, "--no-such-option"):
            session.explain(no_such_option=1)

    def test_profile(self):
        session = heddle.Session(self.path, bounds={"n": 8})
        profile = session.profile({"x": np.ones((5, 128), np.float32)}, iterations=3)
        self.assertEqual(profile.data["iterations"], 3)
        self.assertGreater(profile.kernels[0]["flops"], 0)
        self.assertIn("<table>", profile._repr_html_())
        profile.html(self.folder / "p.html")

    def test_report(self):
        page = self.folder / "report.html"
        told = heddle.Session(product(), dims={"n": 3}).report(page, iterations=3, profile=True)
        self.assertEqual(told.data["measured"]["runs"], 3)
        self.assertIn("<html", page.read_text(encoding="utf-8")[:200])

    def test_check(self):
        session = heddle.Session(self.path)
        self.assertTrue(heddle.check(session, [np.ones((2, 128), np.float32)]))
        self.assertTrue(heddle.check(str(self.path), dims={"n": 2}, amp="bf16", cosine=0.99).ok)
        different = heddle.check(self.path, dims={"n": 2}, precision="bf16", rtol=1e-9, atol=1e-9)
        self.assertFalse(different)
        self.assertIn("FAIL", different.text)

    def test_inputs_of_any_name(self):
        names = ["file", "allow_pickle", "a/b"]  # of which two are parameters of numpy.savez
        model = models.model(
            [models.node("Add", names[:2], ["s"]), models.node("Add", ["s", names[2]], ["y"])],
            [(name, models.F32, [2]) for name in names], [("y", models.F32, [2])])
        values = {name: np.ones(2, np.float32) for name in names}
        self.assertTrue(heddle.check(model, values))

    def test_wrong(self):
        session = heddle.Session(self.path)
        with self.assertRaisesRegex(heddle.MissingInput, "2 inputs; the model has 1"):
            heddle.check(session, [1, 2])
        with self.assertRaisesRegex(heddle.Error, "z"):
            heddle.check(session, {"z": np.ones(3, np.float32)})
        with self.assertRaisesRegex(TypeError, "threads"):
            heddle.bench(session, threads=1)
        family = heddle.Session(heddle.Family(
            lambda at: f"HloModule m\nENTRY e {{ x = f32[{at['n']}] parameter(0)\n"
                       f"ROOT y = f32[{at['n']}] negate(x) }}", [("arg0", 0, "n")]),
            shapes={"arg0": (2,)})
        self.assertRaisesRegex(heddle.Error, "Family", family.explain)
        with mock.patch.object(_command, "__file__", str(self.folder / "x.py")), \
                mock.patch.dict(os.environ, PATH=""):
            self.assertRaisesRegex(heddle.MachineError, "no command heddle", session.explain)

    def test_fixed_inputs(self):
        session = heddle.Session(models.reshaped(), fix={"shape": np.array([2, -1])})
        self.assertTrue(heddle.check(session, {"x": np.arange(6, dtype=np.float32)}))

    def test_bench(self):
        result = heddle.bench(self.path, {"x": np.ones((4, 128), np.float32)}, duration=0.2)
        self.assertGreater(result.median_ms, 0)
        self.assertEqual(result.ratios, {})
        self.assertRegex(repr(result), "Benchmark of .*product.onnx")
        if importlib.util.find_spec("onnxruntime") is None:
            self.skipTest("onnxruntime is not installed")
        result = heddle.bench(self.path, dims={"n": 4}, vs="onnxruntime", duration=0.5)
        self.assertGreater(result.ratios["onnxruntime"], 0)

    def test_quantize(self):
        rng = np.random.default_rng(1)
        samples = [{"x": rng.standard_normal((4, 128)).astype(np.float32)} for _ in range(4)]
        small = self.folder / "small.onnx"
        done = heddle.quantize(self.path, small, samples, dims={"n": 4}, method="minmax")
        self.assertIsInstance(done, reports.Quantized)
        self.assertLess(small.stat().st_size, 0.5 * self.path.stat().st_size)
        x = samples[0]["x"]
        wanted, got = heddle.Session(self.path)(x), heddle.Session(small)(x)
        self.assertGreater(np.vdot(wanted, got) / np.linalg.norm(wanted) / np.linalg.norm(got), 0.99)

    def test_tune(self):
        result = heddle.tune(self.path, dims={"n": 16}, budget=1, candidates=2,
                             cache=str(self.folder / "cache"))
        self.assertEqual(result.data["shapes"], 1)


if __name__ == "__main__":
    unittest.main()
