"""The examples in Python run, and the notebook's cells do."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import models

EXAMPLES = models.ROOT / "examples"


class ExamplesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def call(self, *arguments, **environment):
        done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True,
                              timeout=600, env={**os.environ, **environment}, cwd=self.folder)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout

    def test_first(self):
        model = self.folder / "model.onnx"
        model.write_bytes(models.linear("batch"))
        self.assertEqual("y float32 (1, 4)\n", self.call(EXAMPLES / "python" / "first.py", model))

    def test_notebook(self):
        book = json.loads((EXAMPLES / "notebook" / "heddle.ipynb").read_text())
        self.assertEqual(4, book["nbformat"])
        cells = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
        self.assertGreater(len(cells), 4)
        for cell in cells:
            self.assertEqual([], cell["outputs"])
        program = "\n".join("".join(cell["source"]) for cell in cells)
        (self.folder / "cells.py").write_text(program)
        told = self.call(self.folder / "cells.py", MPLBACKEND="agg")
        self.assertIn("[(1, 8), (17, 8), (64, 8)]", told)
        self.assertIn("input x is f32[4,15]; wanted f32[batch,16]", told)

    @unittest.skipUnless(importlib.util.find_spec("torch"), "torch is not installed")
    def test_torch(self):
        told = self.call(EXAMPLES / "torch" / "train.py")
        self.assertLess(float(told.split("last: ")[1]), 0.5)

    @unittest.skipUnless(importlib.util.find_spec("jax"), "jax is not installed")
    def test_jax(self):
        told = self.call(EXAMPLES / "jax" / "program.py", JAX_PLATFORMS="heddle")
        self.assertIn("on heddle\n", told)
        losses = [float(line.split(": ")[1]) for line in told.splitlines()[1:]]
        self.assertLess(losses[-1], losses[0] / 4)


if __name__ == "__main__":
    unittest.main()
