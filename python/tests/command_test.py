"""The command as the package has it, and what is told where a part of the package is missing."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import heddle

PACKAGE = pathlib.Path(heddle.__file__).parent
SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "bin" / "heddle"
if not (PACKAGE / "bin" / "heddle").exists():
    print("skipped: the command is not built")
    sys.exit(77)


def call(*arguments, path=PACKAGE.parent):
    # Not from a folder that has the package: python -c looks there first.
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False,
                          cwd="/", env={**os.environ, "PYTHONPATH": str(path)})


class CommandTest(unittest.TestCase):
    def test_as_a_module_and_as_a_script(self):
        for way in (["-m", "heddle"], [SCRIPT]):
            self.assertEqual(f"heddle {heddle.__version__}\n", call(*way, "--version").stdout)
            done = call(*way, "run", "/no/such/model")
            self.assertEqual(2, done.returncode)
            self.assertTrue(done.stderr.startswith("error: /no/such/model"), done.stderr)

    def test_the_script_does_not_import_the_package(self):
        told = call("-X", "importtime", SCRIPT, "--version").stderr
        self.assertIn("importlib.util", told)
        for name in ("numpy", "heddle._core"):
            self.assertNotIn(name, told)


class MissingPartTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        shutil.copytree(PACKAGE, self.path / "heddle", ignore=shutil.ignore_patterns("_core*", "bin"))

    def last_line(self, done, status):
        self.assertEqual(status, done.returncode, done.stderr)
        return done.stderr.splitlines()[-1]

    def test_the_extension(self):
        line = self.last_line(call("-c", "import heddle", path=self.path), 1)
        self.assertRegex(line, r"^ImportError: heddle: .*_core.*pip install --force-reinstall heddle$")

    def test_the_program(self):
        done = call(SCRIPT, "--version", path=self.path)
        line = self.last_line(done, 3)
        self.assertEqual(1, len(done.stderr.splitlines()))
        self.assertRegex(line, "^error: .*bin/heddle: No such file or directory; .*--force-reinstall heddle$")

    def test_the_whole_package(self):
        done = call(SCRIPT, "--version", path=self.path / "none")
        if "heddle " in done.stdout:
            self.skipTest("heddle is installed for this Python")
        self.assertTrue(self.last_line(done, 3).startswith("error: "))


if __name__ == "__main__":
    sys.exit(unittest.main())
