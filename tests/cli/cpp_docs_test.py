"""The C++ and C blocks of the pages compile without a warning and run."""
import re
import sys
import unittest

import onnx_bytes
from cli import ROOT
from installed import WARNINGS, PackageTest, prefix

sys.path.insert(0, str(ROOT / "tests"))
import doc_blocks  # noqa: E402  pylint: disable=wrong-import-position

INCLUDES = """#undef NDEBUG
#include <heddle/heddle.hpp>

#include <cassert>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <thread>
"""
BLOCK = """
static void block_{number}() {{
{text}}}
"""
C = """#include <heddle/heddle.h>
#include <stdio.h>

int main(void) {{
{text}return error != NULL;
}}
"""


def blocks(language, expected=False):
    """The texts of the pages' blocks, without #include lines; `expected`: those that say so."""
    return [re.sub(r"^#include .*\n+", "", block.text, flags=re.MULTILINE) for block in doc_blocks.blocks(language)
            if (block.before == "<!-- with HEDDLE_EXPECTED -->") == expected]


class DocsTest(PackageTest):
    def setUp(self):
        super().setUp()
        self.need_build()
        self.file("model.onnx", onnx_bytes.linear())
        self.environment = {"LD_LIBRARY_PATH": str(prefix() / "lib"),
                            "HEDDLE_CACHE": str(self.folder / "cache")}

    def build(self, compiler, standard, sources):
        program = self.folder / f"program-{standard}"
        self.call(compiler, f"-std={standard}", *WARNINGS, f"-I{prefix() / 'include'}", *sources,
                  "-o", program, f"-L{prefix() / 'lib'}", "-lheddle", "-pthread")
        return self.call(program, cwd=self.folder, **self.environment)

    def source(self, name, before, texts):
        """A file with a function `name` that runs all blocks."""
        text = before + INCLUDES
        text += "".join(BLOCK.format(number=i, text=block) for i, block in enumerate(texts))
        text += f"void {name}();\nvoid {name}() {{\n"
        text += "".join(f"  block_{i}();\n" for i in range(len(texts))) + "}\n"
        return self.file(f"{name}.cc", text)

    def test_cpp(self):
        self.assertGreater(len(blocks("cpp")), 8)
        sources = [self.source("all_blocks", "", blocks("cpp")),
                   self.source("expected_blocks", "#define HEDDLE_EXPECTED\n", blocks("cpp", expected=True)),
                   self.file("main.cc", "void all_blocks();\nvoid expected_blocks();\n"
                                        "int main() {\n  all_blocks();\n  expected_blocks();\n}\n")]
        self.call("c++", "-std=c++20", "-fno-exceptions", "-fsyntax-only", *WARNINGS,
                  f"-I{prefix() / 'include'}", sources[1])
        self.assertIn("define HEDDLE_EXPECTED", self.call(
            "c++", "-std=c++20", "-fno-exceptions", "-fsyntax-only", f"-I{prefix() / 'include'}",
            sources[0], status=1))
        for standard in ("c++17", "c++23"):
            told = self.build("c++", standard, sources)
            for expected in ["x: f32[1,3]\n", "opset 17, by a tool 1.2\n", "author = somebody\n",
                             "input x is f32[1,5]; wanted f32[1,3]", "no-such-model.onnx: ",
                             "compiled "]:
                self.assertIn(expected, told)

    def test_c(self):
        texts = blocks("c")
        self.assertEqual(1, len(texts))
        for standard in ("c99", "c17"):
            source = self.file("main.c", C.format(text=texts[0]))
            self.assertEqual("", self.build("cc", standard, [source]))


if __name__ == "__main__":
    sys.exit(unittest.main())
