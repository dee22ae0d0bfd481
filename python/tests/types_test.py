"""mypy --strict finds nothing in the package, nor in a program that uses all of it; and what it has
to find in a wrong program it finds."""
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import heddle
import heddle.backend
import heddle.ort
import heddle.reports
import heddle.typing
import models

PACKAGE = pathlib.Path(heddle.__file__).absolute().parent
PROGRAM = models.ROOT / "python" / "tests" / "typed_program.py"
# Programs that a checker shall not pass: the line, and the kind of the error.
WRONG = [
    ("heddle.Sesion('model.onnx')", "attr-defined"),
    ("heddle.Session(3)", "arg-type"),
    ("heddle.Session('model.onnx', dims={'batch': 'two'})", "dict-item"),
    ("heddle.Session('model.onnx', bounds=8)", "arg-type"),
    ("session.run(None, 5)", "call-overload"),
    ("session.run(None, {1: x})", "dict-item"),
    ("session.run(None, {'x': object()})", "dict-item"),
    ("session.run(None, [x])[0].no_method()", "attr-defined"),
    ("session.info['levle']", "typeddict-item"),
    ("session.inputs[0].shape[0]", "index"),
    ("session.outputs[0].name = 'z'", "misc"),
    ("heddle.option_names()[0] + 1", "operator"),
    ("heddle.bench(session, duration='long')", "arg-type"),
    ("heddle.check(session).median_ms", "attr-defined"),
    ("heddle.ort.InferenceSession('model.onnx', providers='CPU', sess_options=1)", "arg-type"),
    ("heddle.ort.OrtValue.ortvalue_from_numpy(x).shape() + 1", "operator"),
    ("heddle.backend.prepare('model.onnx').run(object())", "arg-type"),
]


MISSING = [name for name in ("mypy", "onnx") if importlib.util.find_spec(name) is None]


@unittest.skipIf(MISSING, f"{' and '.join(MISSING)} not installed")
class TypesTest(unittest.TestCase):
    maxDiff = None

    def check(self, *arguments):
        """What mypy prints of its errors, for the package where the tests' Python has it."""
        # Its cache lies beside the package, in the folder of the build.
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context",
             "--no-color-output", "--config-file", os.devnull,
             "--cache-dir", PACKAGE.parent / ".mypy_cache", *map(str, arguments)],
            capture_output=True, text=True, timeout=600, cwd=self.folder,
            env={**os.environ, "MYPYPATH": str(PACKAGE.parent)})
        self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
        return done.stdout

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_package(self):
        self.assertTrue((PACKAGE / "py.typed").exists() and (PACKAGE / "_core.pyi").exists())
        # The parts over other libraries say what they give only where these libraries are.
        parts = ["heddle"] + ["jax_plugins.heddle"] * bool(importlib.util.find_spec("jax"))
        without = [] if importlib.util.find_spec("torch") else ["--exclude", "/heddle/torch/"]
        self.assertEqual("", self.check(*without, *(word for part in parts for word in ("-p", part))))

    def test_program(self):
        self.assertEqual("", self.check(PROGRAM))

    def test_objects_of_other_libraries(self):
        missing = [name for name in ("torch", "jax") if importlib.util.find_spec(name) is None]
        if missing:
            self.skipTest(f"{' and '.join(missing)} not installed")
        self.assertEqual("", self.check(PROGRAM.with_name("typed_libraries.py")))

    def test_wrong_programs(self):
        path = self.folder / "wrong.py"
        start = ["import heddle, heddle.backend, heddle.ort, numpy",
                 "session = heddle.Session('model.onnx')", "x = numpy.ones((1, 3), numpy.float32)"]
        path.write_text("\n".join([*start, *(line for line, _ in WRONG)]) + "\n")
        found = {(int(number), kind) for number, kind in re.findall(
            r"^wrong\.py:(\d+): error: .*\[([a-z-]+)\]$", self.check(path), re.MULTILINE)}
        for number, (line, kind) in enumerate(WRONG, len(start) + 1):
            self.assertIn((number, kind), found, line)
        self.assertEqual({number for number, _ in found},
                         set(range(len(start) + 1, len(start) + 1 + len(WRONG))))


class ProgramTest(unittest.TestCase):
    def test_it_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "model.onnx").write_bytes(models.linear("batch"))
            done = subprocess.run([sys.executable, PROGRAM, "model.onnx"], capture_output=True,
                                  text=True, timeout=120, cwd=folder)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertIn("MatFoo", done.stdout)

    def test_it_uses_every_public_name(self):
        words = set(re.findall(r"\w+", PROGRAM.read_text()))
        for module in (heddle, heddle.backend, heddle.ort, heddle.typing):
            missing = set(module.__all__) - words
            self.assertEqual(set(), missing, module.__name__)


if __name__ == "__main__":
    unittest.main()
