"""Text tests: files under src/ and tests/ with RUN lines, checked by FileCheck. Run by ctest as
`text_test`, or by hand: build/venv/bin/lit -v tests/lit --param=heddle=build/release/heddle"""
import os

import lit.formats
import lit.util

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))

config.name = "heddle"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".hlo", ".kernel", ".mlir", ".test"]
config.test_source_root = root
config.test_exec_root = os.path.join(root, "build", "lit")
# Not tests: data that programs read, and what builds make.
config.excludes = ["lit", "testdata", "build", "bench", "docs", "script", ".git", ".ci", "cmake"]

heddle = lit_config.params.get("heddle", os.path.join(root, "build", "release", "heddle"))
llvm_bin = "/usr/lib/llvm-19/bin"
tools = {"heddle": os.path.abspath(heddle)}
for tool in ["FileCheck", "not", "count"]:
    found = lit.util.which(tool, llvm_bin)
    if not found:
        lit_config.fatal(f"{tool} of LLVM 19 is not in {llvm_bin}: run script/bootstrap test")
    tools[tool] = found
for tool, path in tools.items():
    config.substitutions.append((r"(?<![\w./%-])" + tool + r"(?![\w./-])", path))

# Nothing of the user's: the caches of tests are the tests' own.
config.environment["HEDDLE_CACHE"] = "off"
config.environment["XDG_CACHE_HOME"] = os.path.join(config.test_exec_root, "cache")
config.environment["HOME"] = config.test_exec_root
