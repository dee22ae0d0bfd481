"""How other projects use heddle: the installed package by CMake and by pkg-config, shared and static,
and the source tree as a folder of another project. Theirs compile without a warning."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import onnx_bytes
from cli import MODELS, ROOT
from installed import BUILD, WARNINGS, PackageTest, prefix

EMBED = ROOT / "examples" / "embed"
MODEL = MODELS / "minilm" / "model.onnx"


def version():
    text = (ROOT / "src" / "api" / "heddle.h").read_text()
    return ".".join(re.search(rf"#define HEDDLE_VERSION_{part} (\d+)", text)[1]
                    for part in ("MAJOR", "MINOR", "PATCH"))


class InstalledTest(PackageTest):
    def setUp(self):
        super().setUp()
        self.need_build()
        self.prefix = prefix()

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
        headers = sorted((include / "heddle").rglob("*.h*"))
        self.assertIn(include / "heddle" / "heddle.hpp", headers)
        for header in headers:
            name = header.relative_to(include)
            source = self.file("use.cc", f"#include <{name}>\nint main() {{}}\n")
            self.call("c++", "-std=c++20", *WARNINGS, "-fsyntax-only", f"-I{include}", source)
            if name.suffix == ".h" and name.parent.name == "heddle":
                source = self.file("use.c", f"#include <{name}>\nint main(void) {{ return 0; }}\n")
                self.call("cc", "-std=c99", *WARNINGS, "-fsyntax-only", f"-I{include}", source)

    def test_quickstart_builds_all_that_is_installed(self):
        asked = re.search(r'script/build" --no-tests release ([a-z_ ]+)',
                          (ROOT / "script" / "quickstart").read_text())[1].split()
        self.assertEqual(["heddle_installed"], asked)
        commands = self.call("ninja", "-C", BUILD, "-t", "commands", *asked)
        # What is linked or archived.
        outputs = {pathlib.Path(path).name for path in
                   re.findall(r"(?:-o|qc) (\S+)", commands)}
        if f"libheddle.so.{version()}" in outputs:
            outputs |= {"libheddle.so", "libheddle.so.0"}
        installed = re.findall(r'FILES "([^"]+)"',
                               (BUILD / "tools" / "cmake_install.cmake").read_text())
        built = {pathlib.Path(path).name for path in installed
                 if pathlib.Path(path).parent == BUILD}
        self.assertTrue({"libheddle-llvm.so", "libheddle.a", "heddle"} <= built)
        self.assertEqual(set(), built - outputs)


APP = """#include <heddle/heddle.hpp>

#include <cstdio>

int main(int, char** arguments) {
  heddle::Model model = heddle::Model::open(arguments[1]);
  heddle::Program program = model.compile();
  heddle::Context context = program.context();
  heddle::Tensors outputs = context.run({{"x", heddle::Tensor::of<float>({1, 3}, {1, 2, 3})}});
  for (float value : outputs.at("y").span<const float>()) std::printf("%g ", value);
  try {
    heddle::Model::open("/no/such/model");
  } catch (const heddle::UserError&) {
    std::puts("caught");
  }
}
"""
CMAKE = """cmake_minimum_required(VERSION 3.16)
project(app LANGUAGES CXX)
add_compile_options({warnings})
{find}
add_executable(app app.cc)
target_link_libraries(app PRIVATE {target})
"""


class ForeignProjectTest(PackageTest):
    """A program of C++ in a project of its own, with warnings that are errors."""

    def setUp(self):
        super().setUp()
        self.need_build()
        self.model = self.file("model.onnx", onnx_bytes.linear())
        self.file("app.cc", APP)
        self.at = {"PKG_CONFIG_PATH": str(prefix() / "lib" / "pkgconfig")}

    def expect_runs(self, program, **environment):
        told = self.call(program, self.model, HEDDLE_CACHE="off", **environment)
        self.assertEqual("8 9.5 11 12.5 caught\n", told)

    def build(self, find, target, *options):
        self.file("CMakeLists.txt", CMAKE.format(find=find, target=target,
                                                 warnings=" ".join(WARNINGS)))
        work = self.folder / "build"
        shutil.rmtree(work, ignore_errors=True)
        self.call("cmake", "-G", "Ninja", "-S", self.folder, "-B", work,
                  f"-DCMAKE_PREFIX_PATH={prefix()}", *options, **self.at)
        self.assertNotIn("warning", self.call("cmake", "--build", work))
        return work / "app"

    def test_find_package(self):
        for find in ["find_package(heddle REQUIRED)",
                     f"find_package(heddle {version()} REQUIRED COMPONENTS shared)"]:
            self.expect_runs(self.build(find, "heddle::heddle"))

    def test_standards(self):
        for standard in (17, 20, 23):
            self.expect_runs(self.build("find_package(heddle REQUIRED)", "heddle::heddle",
                                        f"-DCMAKE_CXX_STANDARD={standard}"))

    def test_pkg_config_in_cmake(self):
        self.expect_runs(self.build(
            "find_package(PkgConfig REQUIRED)\n"
            "pkg_check_modules(heddle REQUIRED IMPORTED_TARGET heddle)", "PkgConfig::heddle"))

    def expect_static(self, program):
        needed = self.call("readelf", "-d", program)
        self.assertNotIn("libheddle", needed)
        done = subprocess.run([program, self.model], capture_output=True, text=True, check=False,
                              env={"HEDDLE_CACHE": "off"})
        self.assertIn("HEDDLE_CODE_GENERATOR", done.stderr)
        self.expect_runs(program, HEDDLE_CODE_GENERATOR=str(
            prefix() / "lib" / "heddle" / "libheddle-llvm.so"))

    def test_static(self):
        self.expect_static(self.build("find_package(heddle REQUIRED COMPONENTS static)",
                                      "heddle::heddle_static"))
        flags = self.call("pkg-config", "--cflags", "--libs", "heddle-static", **self.at).split()
        program = self.folder / "by-pkg-config"
        self.call("c++", "-std=c++20", *WARNINGS, self.folder / "app.cc", "-o", program, *flags)
        self.expect_static(program)

    def test_a_static_program_beside_the_code_generator_finds_it(self):
        program = self.build("find_package(heddle REQUIRED)", "heddle::heddle_static")
        folder = self.folder / "there" / "bin"
        folder.mkdir(parents=True)
        shutil.copy(program, folder)
        shutil.copytree(prefix() / "lib" / "heddle", folder.parent / "lib" / "heddle")
        self.expect_runs(folder / "app")

    def test_a_component_that_is_not_there(self):
        self.file("CMakeLists.txt", CMAKE.format(find="find_package(heddle REQUIRED COMPONENTS gpu)",
                                                 target="heddle::heddle", warnings=""))
        told = self.call("cmake", "-S", self.folder, "-B", self.folder / "build",
                         f"-DCMAKE_PREFIX_PATH={prefix()}", status=1)
        self.assertIn("no component gpu", told)


class FolderOfAnotherProjectTest(PackageTest):
    PARENT = """cmake_minimum_required(VERSION 3.22)
project(parent LANGUAGES C CXX)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
enable_testing()
{add}
add_executable(app main.c other.cc)
target_link_libraries(app PRIVATE heddle::heddle)
add_test(NAME own COMMAND app)
foreach(name CMAKE_RUNTIME_OUTPUT_DIRECTORY CMAKE_LIBRARY_OUTPUT_DIRECTORY CMAKE_CXX_STANDARD
             CMAKE_CXX_COMPILER_LAUNCHER)
  message(STATUS "leak ${{name}}=${{${{name}}}}.")
endforeach()
"""

    def test_a_subdirectory(self):
        self.expect_flags_folders_and_tests_are_the_parents(
            f"add_subdirectory({ROOT} heddle EXCLUDE_FROM_ALL)", "heddle")

    def test_fetched_content(self):
        self.expect_flags_folders_and_tests_are_the_parents(
            f"include(FetchContent)\nFetchContent_Declare(heddle SOURCE_DIR {ROOT})\n"
            "FetchContent_MakeAvailable(heddle)", "_deps/heddle-build")

    def expect_flags_folders_and_tests_are_the_parents(self, add, folder):
        parent, build = self.folder / "parent", self.folder / "build"
        parent.mkdir()
        (parent / "CMakeLists.txt").write_text(self.PARENT.format(add=add))
        shutil.copy(EMBED / "main.c", parent)
        (parent / "other.cc").write_text("#include <heddle/heddle.hpp>\nint other() { return 0; }\n")
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
        options = dict(re.findall(r"^(HEDDLE_[A-Z]+):BOOL=(\w+)$",
                                  (build / "CMakeCache.txt").read_text(), re.MULTILINE))
        self.assertEqual({"HEDDLE_LLVM"}, {name for name, on in options.items() if on == "ON"})
        ours = [c for c in commands if str(ROOT / "src") in c["file"]]
        self.assertGreater(len(ours), 100)
        for command in ours:
            self.assertIn(" -w ", command["command"])
            self.assertNotIn("-Werror", command["command"])
            self.assertNotIn("_test.cc", command["file"])
        one = next(c for c in ours if c["file"].endswith("src/base/hash.cc"))
        self.call("sh", "-c", one["command"], cwd=one["directory"])
        # What is built of the parent lies where it says, what is ours beside the code generator.
        outputs = self.call("ninja", "-C", build, "-t", "targets", "all").split()
        self.assertIn("app:", outputs)
        for name in [f"libheddle.so.{version()}", "libheddle.a", "libheddle-llvm.so"]:
            self.assertIn(f"{folder}/{name}:", outputs)
        # Nothing of ours is installed by the parent.
        self.assertNotIn("libheddle", (build / folder / "tools" / "cmake_install.cmake").read_text())


class StaticDependenciesTest(PackageTest):
    """HEDDLE_STATIC_DEPENDENCIES, what packages are built with (script/wheel builds and checks one)."""

    def linked(self, name):
        return self.call("ninja", "-C", self.folder, "-t", "commands", name).splitlines()[-1].split()

    def test_what_is_linked(self):
        self.call("cmake", "-G", "Ninja", "-S", ROOT, "-B", self.folder, "-DCMAKE_BUILD_TYPE=Release",
                  "-DHEDDLE_TESTS=OFF", "-DHEDDLE_STATIC_DEPENDENCIES=ON")
        generator = [pathlib.Path(word).name for word in self.linked("libheddle-llvm.so")]
        self.assertTrue({"libLLVMX86CodeGen.a", "libLLVMCore.a", "libzstd.a", "libheddle_fmt.a",
                         "-Wl,--gc-sections"} <= set(generator))
        self.assertEqual([], [word for word in generator if "AArch64" in word or "AMDGPU" in word])
        library = [pathlib.Path(word).name for word in self.linked(f"libheddle.so.{version()}")]
        self.assertTrue({"libsqlite3.a", "libheddle_fmt.a", "main.cc.o"} <= set(library))
        command = [pathlib.Path(word).name for word in self.linked("heddle")]
        self.assertIn(f"libheddle.so.{version()}", command)
        self.assertNotIn("libheddle_tools.a", command)
        # libzip.a is made by script/bootstrap package, which tests do not need.
        shared = {word.partition(".so")[0] for word in generator + library + command
                  if word.startswith("lib") and ".so" in word}
        self.assertEqual(set(), shared - {"libheddle", "libheddle-llvm", "libzip"})

    def test_the_code_of_fmt_compiles(self):
        self.call("cmake", "-G", "Ninja", "-S", ROOT, "-B", self.folder, "-DCMAKE_BUILD_TYPE=Release",
                  "-DHEDDLE_TESTS=OFF", "-DHEDDLE_STATIC_DEPENDENCIES=ON")
        self.call("cmake", "--build", self.folder, "--target", "heddle_fmt")
        source = self.file("use.cc", """#include <fmt/format.h>
int main() { fmt::print("{} {:.3} {:>5} {:L}\\n", 0.1f, 2.0 / 3, "a", 1234567); }
""")
        program = self.folder / "use"
        self.call("c++", "-std=c++20", source, "-o", program, self.folder / "libheddle_fmt.a")
        self.assertEqual("0.1 0.667     a 1234567\n", self.call(program))
        self.assertNotIn("libfmt", self.call("readelf", "-d", program))


if __name__ == "__main__":
    sys.exit(unittest.main())
