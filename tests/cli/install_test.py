"""What is installed works by itself: the command, completion, the C interface from C."""
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from cli import MODELS, ROOT, CliTest

BUILD = pathlib.Path(os.environ.get("HEDDLE_BUILD", ROOT / "build" / "release"))


class InstallTest(CliTest):
    def setUp(self):
        super().setUp()
        if not (BUILD / "libheddle.so").exists():
            self.skipTest(f"{BUILD} has no libheddle.so: build all of it")
        self.prefix = self.folder / "prefix"
        self.call("cmake", "--install", BUILD, "--prefix", self.prefix, "--component", "heddle")

    def call(self, *arguments, **environment):
        done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True,
                              check=False, env={**os.environ, **environment})
        self.assertEqual(0, done.returncode, f"{arguments}: {done.stdout}{done.stderr}")
        return done.stdout

    def test_the_command_compiles(self):
        text = self.call(self.prefix / "bin" / "heddle", "run", MODELS / "cnn" / "model.onnx",
                         HEDDLE_CACHE="off")
        self.assertIn("output out", text)

    def test_only_the_c_interface_is_exported(self):
        names = [line.split()[-1].split("@")[0] for line in
                 self.call("nm", "-D", "--defined-only", self.prefix / "lib" / "libheddle.so")
                 .splitlines()]
        headers = (self.prefix / "include" / "heddle").glob("heddle*.h")
        declared = " ".join(header.read_text() for header in headers)
        self.assertGreater(len(names), 30)
        for name in names:
            self.assertTrue(name + "(" in declared, name)

    def test_a_c_program(self):
        work = self.folder / "embed"
        self.call("cmake", "-G", "Ninja", "-S", ROOT / "examples" / "embed", "-B", work,
                  f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.call("cmake", "--build", work)
        text = self.call(work / "embed", MODELS / "minilm" / "model.onnx", HEDDLE_CACHE="off")
        self.assertRegex(text, r"^embedding\[0\] = -?\d")
        done = subprocess.run([work / "embed", "/no/such/model"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(2, done.returncode)
        self.assertTrue(done.stderr.startswith("error: "))

    def test_compiling_in_the_background(self):
        work = self.folder / "background"
        self.call("cmake", "-G", "Ninja", "-S", ROOT / "examples" / "background", "-B", work,
                  f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.call("cmake", "--build", work)
        text = self.call(work / "background", HEDDLE_CACHE="off")
        self.assertIn("level O2; results of the two programs differ by: rounding", text)
        self.assertIn("cancelled: ", text)
        self.assertIn("bytes left: 0", text)

    def test_the_server(self):
        if shutil.which("pkg-config") is None or subprocess.run(["pkg-config", "cpp-httplib"], check=False).returncode != 0:
            self.skipTest("libcpp-httplib-dev is not installed")
        for example, made in [("serve", "serve"), ("triton", "libtriton_heddle.so")]:
            work = self.folder / example
            self.call("cmake", "-G", "Ninja", "-S", ROOT / "examples" / example, "-B", work,
                      f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0")
            self.call("cmake", "--build", work)
            self.assertTrue((work / made).exists())
        self.assertIn("--models", self.call(self.folder / "serve" / "serve", "--help"))

    def test_a_device_of_another_tree(self):
        work = self.folder / "device"
        self.call("cmake", "-G", "Ninja", "-S", ROOT / "examples" / "device", "-B", work,
                  f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.call("cmake", "--build", work)
        self.call("ctest", "--test-dir", work, "--output-on-failure")
        text = self.call(self.prefix / "bin" / "heddle", "check", MODELS / "minilm" / "model.onnx",
                         "--device", f"plugin:{work / 'libtoy.so'}", HEDDLE_CACHE="off")
        self.assertIn("on toy", text)
        self.assertEqual("PASS", text.splitlines()[-1])
        self.assertIn("heddle_device", self.fails(
            2, "run", MODELS / "minilm" / "model.onnx", "--device",
            f"plugin:{self.prefix / 'lib' / 'libheddle.so'}"))

    def test_the_header_is_c_and_cxx(self):
        for compiler, language in [("cc", "c"), ("c++", "c++")]:
            if shutil.which(compiler):
                self.call(compiler, "-x", language, "-Wall", "-Wextra", "-Werror", "-pedantic",
                          "-fsyntax-only", self.prefix / "include" / "heddle" / "heddle.h")


class CompletionTest(CliTest):
    def test_bash_completes_commands_options_and_choices(self):
        script = self.file("completion", self.ok("completion", "bash").stdout)

        def complete(*words):
            line = " ".join(f"'{word}'" for word in words)
            program = (f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; "
                       "_heddle; printf '%s\\n' \"${COMPREPLY[@]}\"")
            return subprocess.run(["bash", "-c", program], capture_output=True, text=True,
                                  check=True).stdout.split()

        self.assertEqual(["compile", "completion", "conform"], sorted(complete("heddle", "co")))
        self.assertIn("--vs", complete("heddle", "bench", "m.onnx", "--v"))
        self.assertEqual(["O0", "O1", "O2"], complete("heddle", "run", "m.onnx", "--level", "O"))

    def test_other_shells(self):
        self.assertIn("#compdef heddle", self.ok("completion", "zsh").stdout)
        fish = self.ok("completion", "fish").stdout
        self.assertIn("-l peer-python", fish)
        if shutil.which("zsh"):
            script = self.file("completion.zsh", self.ok("completion", "zsh").stdout)
            subprocess.run(["zsh", "-n", script], check=True)


if __name__ == "__main__":
    sys.exit(unittest.main())
