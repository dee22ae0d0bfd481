"""The Python blocks of the pages, and the examples of the docstrings."""
import doctest
import importlib
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import heddle
import models
import numpy

sys.path.insert(0, str(models.ROOT / "tests"))
import doc_blocks  # noqa: E402  pylint: disable=wrong-import-position

MODULES = ["heddle._arrays", "heddle._session", "heddle.backend", "heddle.errors", "heddle.ort",
           "heddle.ort._binding", "heddle.ort._options", "heddle.ort._providers",
           "heddle.ort._session", "heddle.ort._values", "heddle.reports"]


class DocsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        pathlib.Path("model.onnx").write_bytes(models.linear("batch"))

    def test_docstrings(self):
        count = 0
        for name in MODULES:
            result = doctest.testmod(importlib.import_module(name),
                                     extraglobs={"heddle": heddle, "numpy": numpy})
            self.assertEqual(result.failed, 0, name)
            count += result.attempted
        self.assertGreater(count, 40)

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
        for name in heddle.__all__:
            self.assertTrue(getattr(heddle, name).__doc__, name)
        for name, member in vars(heddle.Session).items():
            if not name.startswith("_"):
                self.assertTrue(member.__doc__, name)


if __name__ == "__main__":
    unittest.main()
