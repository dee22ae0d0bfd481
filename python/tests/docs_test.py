"""The Python blocks of the pages, and the examples of the docstrings."""
import doctest
import importlib
import importlib.util
import inspect
import os
import pathlib
import subprocess
import sys
import tempfile
import typing
import unittest

import heddle
import heddle.backend
import heddle.ort
import heddle.reports
import heddle.typing
import models
import numpy

sys.path.insert(0, str(models.ROOT / "tests"))
import doc_blocks  # noqa: E402  pylint: disable=wrong-import-position

MODULES = ["heddle._arrays", "heddle._session", "heddle.backend", "heddle.errors", "heddle.ort",
           "heddle.ort._binding", "heddle.ort._options", "heddle.ort._providers",
           "heddle.ort._session", "heddle.ort._values", "heddle.reports", "heddle.typing"]
GLOBALS = {"heddle": heddle, "numpy": numpy}
# Types that only say what others take and give, and names of ONNX Runtime's without effect.
WITHOUT_EXAMPLE = {
    "heddle.errors", "heddle.ort.ExecutionMode", "heddle.ort.OrtAllocatorType",
    "heddle.ort.OrtMemType", "heddle.typing.Exported", "heddle.typing.ModelProto",
    "heddle.typing.ONNXProgram", "heddle.typing.Origin", "heddle.typing.Unsupported"}


class DocsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        pathlib.Path("model.onnx").write_bytes(models.linear("batch"))
        weights = numpy.random.default_rng(0).standard_normal((128, 128)).astype(numpy.float32)
        pathlib.Path("product.onnx").write_bytes(models.model(
            [models.node("MatMul", ["x", "w"], ["y"])], [("x", models.F32, ["n", 128])],
            [("y", models.F32, ["n", 128])], {"w": weights}))

    def test_docstrings(self):
        count = 0
        for name in MODULES:
            result = doctest.testmod(importlib.import_module(name), extraglobs=GLOBALS)
            self.assertEqual(result.failed, 0, name)
            count += result.attempted
        self.assertGreater(count, 100)

    def test_docstrings_of_the_extension(self):
        for what in [heddle.option_names, heddle.Session.run, heddle.Session.cancel]:
            examples = doctest.DocTestParser().get_doctest(
                what.__doc__, dict(GLOBALS), what.__name__, None, None)
            self.assertGreater(len(examples.examples), 0, what.__name__)
            self.assertEqual(doctest.DocTestRunner().run(examples).failed, 0, what.__name__)

    def test_sessions_on_pages(self):
        pages = {block.page for block in doc_blocks.blocks("python") if block.text.startswith(">>>")}
        self.assertIn("docs/python.md", pages)
        for page in pages:
            result = doctest.testfile(str(models.ROOT / page), module_relative=False)
            self.assertEqual(result.failed, 0, page)
            self.assertGreater(result.attempted, 2, page)

    def test_programs_on_pages(self):
        ran = 0
        for block in doc_blocks.blocks("python"):
            if block.text.startswith(">>>"):
                continue
            with self.subTest(str(block)):
                for package in ["torch", "jax"]:
                    if f"import {package}" in block.text and importlib.util.find_spec(package) is None:
                        self.skipTest(f"{block}: {package} is not installed")
                done = subprocess.run([sys.executable, "-c", block.text], capture_output=True, text=True,
                                      timeout=300, check=False)
                self.assertEqual(0, done.returncode, f"{block}\n{block.text}{done.stdout}{done.stderr}")
                ran += 1
        self.assertGreater(ran, 2)

    def test_example(self):
        program = models.ROOT / "examples" / "python" / "batches.py"
        done = subprocess.run([sys.executable, program, "model.onnx", "batch=8"],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"requests of 8 sizes, [1-3] compilations")

    def test_every_public_name_is_explained(self):
        for module in [heddle, heddle.backend, heddle.errors, heddle.ort, heddle.reports,
                       heddle.typing]:
            for name in module.__all__:
                what, called = getattr(module, name), f"{module.__name__}.{name}"
                if typing.get_origin(what) is not None:  # another name of a type
                    continue
                members = vars(what).items() if inspect.isclass(what) else []
                texts = {f"{called}.{key}": member.__doc__ for key, member in members
                         if not key.startswith("_") and
                         (callable(member) or isinstance(member, property))}
                texts[called] = what.__doc__
                for place, text in texts.items():
                    self.assertTrue(text, place)
                if called not in WITHOUT_EXAMPLE:
                    self.assertIn(">>> ", "".join(map(str, texts.values())), called)


if __name__ == "__main__":
    unittest.main()
