"""Compiled programs as files: damage of every kind is one error line, and nothing of the code
generator is opened to run one."""
import os
import pathlib
import random
import subprocess
import sys
import unittest

from cache_test import MODEL
from cli import HEDDLE, CliTest

BUILD = pathlib.Path(os.environ.get("HEDDLE_BUILD", pathlib.Path(HEDDLE).parent))

# Runs a model through the C interface in a process of its own; prints what is mapped.
RUNNER = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.heddle_status_message.restype = ctypes.c_char_p
def ok(status):
    assert not status, library.heddle_status_message(ctypes.c_void_p(status))
for name in ("model_open", "compile", "context_create", "context_bind_input",
             "context_bind_output", "context_run"):
    getattr(library, "heddle_" + name).restype = ctypes.c_void_p
model, program, context = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
ok(library.heddle_model_open(sys.argv[2].encode(), None, ctypes.byref(model)))
ok(library.heddle_compile(model, None, ctypes.byref(program)))
ok(library.heddle_context_create(program, ctypes.byref(context)))
buffers = [(ctypes.c_float * n)() for n in (16 * 64, 64 * 64, 16)]
for i in range(2):
    ok(library.heddle_context_bind_input(context, ctypes.c_int64(i), buffers[i]))
ok(library.heddle_context_bind_output(context, ctypes.c_int64(0), buffers[2]))
ok(library.heddle_context_run(context))
assert list(buffers[2]) == [64.0] * 16
print("LLVM" if "LLVM" in open("/proc/self/maps").read() else "none")
"""


class ProgramFileTest(CliTest):
    def compiled(self, *options):
        model = self.file("stack.hlo", MODEL)
        path = self.folder / "stack.heddle"
        self.ok("compile", model, "-o", path, *options)
        return path

    def test_random_inputs_are_those_of_the_model(self):
        path = self.compiled()
        wanted = self.folder / "wanted.npz"
        self.ok("run", self.folder / "stack.hlo", "--seed", "3", "--outputs", wanted)
        self.ok("check", path, "--seed", "3", "--expected", wanted)

    def test_every_damage_is_one_error_line(self):
        path = self.compiled()
        good = path.read_bytes()
        bad_file = self.folder / "bad.heddle"
        rng = random.Random(11)
        lengths = [0, 1, 7, 8, 100, 4095, 4096, len(good) - 1] + \
            [rng.randrange(len(good)) for _ in range(8)]
        places = [0, 5, 8, 12, 16, 24, 32, 128] + [rng.randrange(len(good)) for _ in range(10)]
        reasons = set()
        for length in lengths:
            bad_file.write_bytes(good[:length])
            reasons.add(self.fails(2, "run", bad_file)[:60])
        for place in places:
            bad = bytearray(good)
            bad[place] ^= 1 << rng.randrange(8)
            bad_file.write_bytes(bad)
            reasons.add(self.fails(2, "run", bad_file)[:60])
        bad_file.write_bytes(good + b"\0")
        self.assertIn("damaged", self.fails(2, "run", bad_file))
        # Foreign: another file format behind our first bytes, and without them.
        bad_file.write_bytes(good[:8] + b"\x7fELF" * 5000)
        self.fails(2, "run", bad_file)
        self.fails(2, "run", "/bin/sh")
        self.assertIn("bad.heddle", " ".join(reasons))
        self.assertTrue(self.ok("run", path))

    def test_the_header_is_enough_to_inspect(self):
        path = self.compiled()
        good = path.read_bytes()
        # Behind the header anything may be wrong.
        name = self.folder / "cut.heddle"
        bad = bytearray(good)
        for at in range(8192, len(bad)):
            bad[at] ^= 0x55
        name.write_bytes(bad)
        shown = self.json("inspect", name, "--header")
        self.assertEqual(("stack", len(good)), (shown["name"], shown["file_bytes"]))
        self.assertTrue(shown["features"])
        self.fails(2, "inspect", name)
        name.write_bytes(bad[:4095])
        self.fails(2, "inspect", name, "--header")

    def test_says_which_options_come_too_late(self):
        path = self.compiled()
        for option, value in [("--target", "spr"), ("--streams", "2"), ("--level", "O1"), ("--disable", "cse"),
                              ("--device", "cpu"), ("--threads", "1")]:
            with self.subTest(option):
                told = "stays as it was compiled" in self.ok("run", path, option, value).stderr
                self.assertEqual(told, option not in ("--device", "--threads"))

    def test_other_instruction_set(self):
        path = self.compiled()
        error = self.fails(2, "run", path, env={"HEDDLE_ISA": "portable"})
        self.assertIn("this machine lacks", error)
        self.assertEqual("host", self.json("inspect", path, "--header")["target"])

    def test_runs_without_the_code_generator(self):
        library = BUILD / "libheddle.so"
        # The C interface is a target of its own: a build of the command alone has none to load.
        if not library.exists():
            self.skipTest(f"{BUILD} has no libheddle.so: build all of it")
        model = self.file("stack.hlo", MODEL)
        path = self.compiled()
        environment = {**os.environ, "HEDDLE_CACHE": str(self.folder / "cache_of_runner")}
        mapped = []
        for file in (path, model, model):  # a program; the cache cold, then warm
            done = subprocess.run([sys.executable, "-c", RUNNER, library, str(file)],
                                  capture_output=True, text=True, env=environment, check=False)
            self.assertEqual(0, done.returncode, done.stderr)
            mapped.append(done.stdout.strip())
        self.assertEqual(["none", "LLVM", "none"], mapped)


if __name__ == "__main__":
    sys.exit(unittest.main())
