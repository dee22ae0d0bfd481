"""What tests of the installed package share: it is put into a folder once, and moved."""
import atexit
import functools
import os
import pathlib
import shutil
import subprocess
import tempfile

from cli import ROOT, CliTest

BUILD = pathlib.Path(os.environ.get("HEDDLE_BUILD", ROOT / "build" / "release"))
WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Wshadow", "-Werror"]


@functools.lru_cache(maxsize=None)
def prefix():
    """Where all of it is installed; nothing in it may know where it was put first."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="heddle-installed-"))
    atexit.register(shutil.rmtree, folder, True)
    subprocess.run(["cmake", "--install", BUILD, "--prefix", folder / "first"], check=True,
                   capture_output=True)
    (folder / "first").rename(folder / "moved")
    return folder / "moved"


class PackageTest(CliTest):
    def call(self, *arguments, status=0, cwd=None, **environment):
        done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True,
                              check=False, cwd=cwd, env={**os.environ, **environment})
        self.assertEqual(status, done.returncode, f"{arguments}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def need_build(self):
        for name in ["libheddle.so", "libheddle.a"]:
            if not (BUILD / name).exists():
                self.skipTest(f"{BUILD} has no {name}: build heddle_installed")
