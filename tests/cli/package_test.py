"""How other projects use heddle: the installed package by CMake and by pkg-config, and the source
tree as a folder of another project."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from cli import MODELS, ROOT, CliTest

BUILD = pathlib.Path(os.environ.get("HEDDLE_BUILD", ROOT / "build" / "release"))
EMBED = ROOT / "examples" / "embed"
MODEL = MODELS / "minilm" / "model.onnx"


def version():
    text = (ROOT / "src" / "api" / "heddle.h").read_text()
    return ".".join(re.search(rf"#define HEDDLE_VERSION_{part} (\d+)", text)[1]
                    for part in ("MAJOR", "MINOR", "PATCH"))


class PackageTest(CliTest):
    def call(self, *arguments, status=0, cwd=None, **environment):
        done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True,
                              check=False, cwd=cwd, env={**os.environ, **environment})
        self.assertEqual(status, done.returncode, f"{arguments}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr


class InstalledTest(PackageTest):
    def setUp(self):
        super().setUp()
        if not (BUILD / "libheddle.so").exists():
            self.skipTest(f"{BUILD} has no libheddle.so: build heddle_shared")
        # All of it, without a component, and moved: nothing in it may know where it was put first.
        self.call("cmake", "--install", BUILD, "--prefix", self.folder / "first")
        self.prefix = self.folder / "moved"
        (self.folder / "first").rename(self.prefix)

    def test_find_package_by_version(self):
        work = self.folder / "embed"
        configure = ["cmake", "-G", "Ninja", "-S", EMBED, "-B", work,
                     f"-DCMAKE_PREFIX_PATH={self.prefix}"]
        self.assertIn("find_package(heddle 0.1 REQUIRED)", (EMBED / "CMakeLists.txt").read_text())
        self.call(*configure)
        self.call("cmake", "--build", work)
        text = self.call(work / "embed", MODEL, HEDDLE_CACHE="off")
        self.assertRegex(text, r"^embedding\[0\] = -?\d")
        major, minor, _ = (int(part) for part in version().split("."))
        for wanted, found in [(f"{major}.{minor}", True), (version(), True),
                              (f"{major}.{minor + 1}", False), (f"{major + 1}.0", False),
                              (f"{version()}9", False)]:
            project = self.folder / f"wants-{wanted}"
            project.mkdir()
            (project / "CMakeLists.txt").write_text(
                "cmake_minimum_required(VERSION 3.16)\nproject(wants LANGUAGES NONE)\n"
                f"find_package(heddle {wanted} REQUIRED)\n"
                f"message(STATUS \"found ${{heddle_VERSION}}\")\n")
            text = self.call("cmake", "-S", project, "-B", project / "build",
                             f"-DCMAKE_PREFIX_PATH={self.prefix}", status=0 if found else 1)
            self.assertIn(f"found {version()}" if found else "version", text)

    def test_pkg_config(self):
        if shutil.which("pkg-config") is None:
            self.skipTest("no pkg-config")
        path = {"PKG_CONFIG_PATH": str(self.prefix / "lib" / "pkgconfig")}
        self.assertEqual(version(), self.call("pkg-config", "--modversion", "heddle", **path).strip())
        flags = self.call("pkg-config", "--cflags", "--libs", "heddle", **path).split()
        program = self.folder / "by-pkg-config"
        self.call("cc", EMBED / "main.c", "-o", program, *flags)
        text = self.call(program, MODEL, HEDDLE_CACHE="off",
                         LD_LIBRARY_PATH=str(self.prefix / "lib"))
        self.assertRegex(text, r"^embedding\[0\] = -?\d")

    def test_headers_compile_from_the_prefix(self):
        include = self.prefix / "include"
        for header in sorted((include / "heddle").rglob("*.h")):
            source = self.file("use.cc", f"#include <{header.relative_to(include)}>\n")
            self.call("c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                      f"-I{include}", source)

    def test_quickstart_builds_all_that_is_installed(self):
        asked = re.search(r'script/build" --no-tests release ([a-z_ ]+)',
                          (ROOT / "script" / "quickstart").read_text())[1].split()
        inputs = set(self.call("ninja", "-C", BUILD, "-t", "inputs", *asked).split())
        installed = re.findall(r'FILES "([^"]+)"',
                               (BUILD / "tools" / "cmake_install.cmake").read_text())
        built = {pathlib.Path(path).name for path in installed
                 if pathlib.Path(path).parent == BUILD}
        outputs = {pathlib.Path(path).name for path in inputs} | {"heddle", "libheddle.so.0"}
        self.assertIn("libheddle-llvm.so", built)
        made = subprocess.run(["ninja", "-C", str(BUILD), "-t", "query", *asked],
                              capture_output=True, text=True, check=True).stdout
        outputs |= {pathlib.Path(path).name for path in made.split()}
        self.assertEqual(set(), built - outputs)


class FolderOfAnotherProjectTest(PackageTest):
    PARENT = """cmake_minimum_required(VERSION 3.22)
project(parent LANGUAGES C CXX)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
enable_testing()
add_subdirectory({root} heddle EXCLUDE_FROM_ALL)
add_executable(app main.c other.cc)
target_link_libraries(app PRIVATE heddle::heddle)
add_test(NAME own COMMAND app)
foreach(name CMAKE_RUNTIME_OUTPUT_DIRECTORY CMAKE_LIBRARY_OUTPUT_DIRECTORY CMAKE_CXX_STANDARD
             CMAKE_CXX_COMPILER_LAUNCHER)
  message(STATUS "leak ${{name}}=${{${{name}}}}.")
endforeach()
"""

    def test_flags_folders_and_tests_are_the_parents(self):
        parent, build = self.folder / "parent", self.folder / "build"
        parent.mkdir()
        (parent / "CMakeLists.txt").write_text(self.PARENT.format(root=ROOT))
        shutil.copy(EMBED / "main.c", parent)
        (parent / "other.cc").write_text("#include <heddle/heddle.h>\nint other() { return 0; }\n")
        text = self.call("cmake", "-G", "Ninja", "-S", parent, "-B", build)
        self.assertEqual([], [line for line in text.splitlines()
                              if "leak" in line and not line.endswith("=.")])
        self.assertIn("Total Tests: 1\n", self.call("ctest", "--test-dir", build, "-N"))
        commands = json.loads((build / "compile_commands.json").read_text())
        own = {pathlib.Path(c["file"]).name: c for c in commands if "/app.dir/" in c["command"]}
        self.assertEqual({"main.c", "other.cc"}, set(own))
        for command in own.values():
            for flag in ("-Werror", "-Wall", "-fvisibility", "-ffp-contract", "ccache"):
                self.assertNotIn(flag, command["command"])
            self.call("sh", "-c", command["command"], cwd=command["directory"])
        ours = [c for c in commands if str(ROOT / "src") in c["file"]]
        self.assertGreater(len(ours), 100)
        for command in ours:
            self.assertNotIn("-Werror", command["command"])
            self.assertNotIn("_test.cc", command["file"])
        one = next(c for c in ours if c["file"].endswith("src/base/hash.cc"))
        self.call("sh", "-c", one["command"], cwd=one["directory"])
        # What is built of the parent lies where it says, what is ours beside the code generator.
        outputs = self.call("ninja", "-C", build, "-t", "targets", "all").split()
        self.assertIn("app:", outputs)
        self.assertIn("heddle/libheddle.so.0.1.0:", [o.replace(version(), "0.1.0") for o in outputs])
        self.assertIn("heddle/libheddle-llvm.so:", outputs)
        # Nothing of ours is installed by the parent.
        self.assertNotIn("libheddle", (build / "heddle" / "tools" / "cmake_install.cmake").read_text())


if __name__ == "__main__":
    sys.exit(unittest.main())
