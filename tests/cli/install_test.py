"""What is installed works by itself: the command, completion, the C interface from C."""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

import onnx_bytes
from cli import MODELS, ROOT, CliTest
from installed import BUILD, WARNINGS, PackageTest, prefix


class InstallTest(PackageTest):
    def setUp(self):
        super().setUp()
        self.need_build()
        self.prefix = prefix()

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

    def build_example(self, name):
        work = self.folder / name
        self.call("cmake", "-G", "Ninja", "-S", ROOT / "examples" / name, "-B", work,
                  f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_CXX_FLAGS={' '.join(WARNINGS)}")
        self.call("cmake", "--build", work)
        return work / name

    def test_a_cpp_program(self):
        program = self.build_example("embed_cpp")
        told = self.call(program, MODELS / "minilm" / "model.onnx", HEDDLE_CACHE="off")
        self.assertRegex(told, r"^ONNX, opset \d+, by '")
        self.assertRegex(told, r"(?m)^embedding\[0\] = -?\d")
        self.assertRegex(self.call(program, "/no/such/model", status=2), r"^error: /no/such/model")
        foo = self.file("foo.onnx", onnx_bytes.linear().replace(b"MatMul", b"MatFoo"))
        self.assertIn("MatFoo (1 places, first: ", self.call(program, foo, status=2))

    def test_dynamic_shapes(self):
        program = self.build_example("dynamic_shapes")
        model = self.file("model.onnx", onnx_bytes.linear())
        told = self.call(program, model, "batch", "16", HEDDLE_CACHE="off")
        for line in ["batch=16: y f32[16,4]", "batch=1: y f32[1,4]", "batch=9: y f32[9,4]"]:
            self.assertIn(line, told)
        self.assertIn("error: ", self.call(program, model, "width", "16", status=2))

    def test_a_custom_call(self):
        self.assertEqual("0.5 0.5 1 3 \n", self.call(self.build_example("custom_call"),
                                                      HEDDLE_CACHE="off"))

    def test_every_example_is_described(self):
        text = (ROOT / "examples" / "README.md").read_text()
        for folder in (ROOT / "examples").iterdir():
            if folder.is_dir():
                self.assertIn(f"]({folder.name}", text)

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


    def test_the_manual_page(self):
        page = self.prefix / "share" / "man" / "man1" / "heddle.1"
        text = page.read_text()
        for word in [".SS heddle bench", "\\fB\\-\\-threads\\fR", "EXIT STATUS"]:
            self.assertIn(word, text)
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-Kutf8", "-Tutf8", "-ww", page], capture_output=True,
                                  text=True, check=True)
            self.assertEqual("", done.stderr)

    def test_what_is_linked_is_listed(self):
        listed = json.loads((self.prefix / "share/doc/heddle/heddle.spdx.json").read_text())
        self.assertEqual("SPDX-2.3", listed["spdxVersion"])
        names = {p["SPDXID"]: p["name"] for p in listed["packages"]}
        of_files = {"libheddle": "libheddle.so", "libfmt": "fmt", "libzip": "libzip", "libz": "zlib",
                    "libsqlite3": "SQLite", "libLLVM": "LLVM",
                    "libstdc++": "libstdc++", "libgcc_s": "libstdc++", "libc": "glibc", "libm": "glibc", "ld-linux-x86-64": "glibc"}
        for file, name in [("bin/heddle", "heddle"), ("lib/libheddle.so", "libheddle.so"),
                           ("lib/heddle/libheddle-llvm.so", "libheddle-llvm.so")]:
            needed = re.findall(r"NEEDED.*\[(.*?)\.so",
                                self.call("readelf", "-d", self.prefix / file))
            linked = {names[r["relatedSpdxElement"]] for r in listed["relationships"]
                      if r["relationshipType"] == "DYNAMIC_LINK" and
                      names[r["spdxElementId"]] == name}
            self.assertEqual({of_files[one] for one in needed}, linked, file)


class DebTest(PackageTest):
    """What cpack makes, unpacked into a folder and used from there."""

    def test_packages(self):
        self.need_build()
        if shutil.which("dpkg-deb") is None or shutil.which("dpkg-shlibdeps") is None:
            self.skipTest("no dpkg-deb and dpkg-shlibdeps")
        self.call("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", self.folder)
        root = self.folder / "root"
        fields = {}
        for package in self.folder.glob("*.deb"):
            self.call("dpkg-deb", "-x", package, root)
            text = self.call("dpkg-deb", "-f", package)
            found = dict(re.findall(r"^([A-Z][\w-]*): (.*)$", text, re.MULTILINE))
            fields[found["Package"]] = found
        self.assertEqual({"heddle", "libheddle0", "libheddle-dev"}, set(fields))
        same = f"(= {fields['heddle']['Version']})"
        self.assertIn(f"libheddle0 {same}", fields["libheddle-dev"]["Depends"])
        self.assertIn(f"libheddle0 {same}", fields["heddle"]["Depends"])
        self.assertRegex(fields["libheddle0"]["Depends"], r"libllvm\d+.*libsqlite3-0")
        usr = root / "usr"
        self.assertIn("output out", self.call(usr / "bin" / "heddle", "run",
                                              MODELS / "cnn" / "model.onnx", HEDDLE_CACHE="off"))
        for path in ["share/man/man1/heddle.1", "share/bash-completion/completions/heddle",
                     "share/doc/libheddle0/copyright", "lib/libheddle.a"]:
            self.assertTrue((usr / path).exists(), path)
        work = self.folder / "embed"
        self.call("cmake", "-G", "Ninja", "-S", ROOT / "examples" / "embed", "-B", work,
                  f"-DCMAKE_PREFIX_PATH={usr}")
        self.call("cmake", "--build", work)
        self.assertRegex(self.call(work / "embed", MODELS / "minilm" / "model.onnx",
                                   HEDDLE_CACHE="off"), r"^embedding\[0\] = -?\d")


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
