"""docs/reference is what script/reference.py makes, and has every option, error kind, environment variable and
key of the JSON that the sources have."""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "script"))

import reference  # noqa: E402
import reference_operators  # noqa: E402

HEDDLE = os.environ.get("HEDDLE", str(ROOT / "build" / "release" / "heddle"))
PAGES = ROOT / "docs" / "reference"
# Of the system, and of tools that tests start.
NOT_OURS = {"PATH", "HOME", "PYTHONPATH", "TERM", "LD_LIBRARY_PATH", "LD_DEBUG", "NPROC"}


def sources(suffixes, *folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file() and not {"testdata", "build", "__pycache__"} & set(path.parts):
                yield path


class CommandsTest(unittest.TestCase):
    maxDiff = None

    def test_pages_are_current(self):
        self.assertEqual(0, reference.main(HEDDLE, "--check"), f"run python3 script/reference.py {HEDDLE}")

    def test_every_option_is_there(self):
        page = (PAGES / "commands.md").read_text()
        count = 0
        for command in reference.described(HEDDLE):
            self.assertIn(f"## heddle {command['name']}\n", page)
            for option in command["options"]:
                count += 1
                self.assertIn("`" + ", ".join(option["names"]), page)
        self.assertGreater(count, 300)

    def test_options_that_pages_name_are_there(self):
        known = {name for command in reference.described(HEDDLE) for option in command["options"]
                 for name in option["names"]} | {"--help", "--help-all", "--version", "-h"}
        wrong = []
        for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
            for words in re.findall(r"\bheddle [a-z]+(?: [^`\n]*)?", path.read_text()):
                wrong += [f"{path.name}: {name} in: {words}" for name in re.findall(r"(?<![\w-])--[a-z][a-z-]+", words.split("#")[0])
                          if name not in known and not name.startswith("--xla")]
        self.assertEqual([], wrong)


class NamesTest(unittest.TestCase):
    def test_functions_of_c_that_pages_name_are_there(self):
        headers = "".join(path.read_text() for path in (ROOT / "src/api").glob("heddle*.h"))
        wrong = []
        for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
            wrong += [f"{path.name}: {name}" for name in set(re.findall(r"`(heddle_[a-z_]+[a-z])\b", path.read_text()))
                      if not re.search(rf"\b{name}", headers) and not name.startswith("heddle_installed")]
        self.assertEqual([], wrong)


class ErrorsTest(unittest.TestCase):
    def setUp(self):
        self.page = (PAGES / "errors.md").read_text()

    def test_kinds_and_codes(self):
        header = (ROOT / "src/api/heddle.h").read_text()
        names = re.findall(r"^  (HEDDLE_(?:OK|USER_ERROR|MACHINE_ERROR|CANCELLED|CODE_[A-Z]+)) = \d+", header, re.MULTILINE)
        self.assertGreaterEqual(len(names), 10)
        for name in names:
            self.assertIn(f"`{name}`", self.page)
        kinds = re.findall(r"^  (\w+),", re.search(r"enum class ErrorKind \{(.*?)\};", (ROOT / "src/base/error.h").read_text(),
                                                     re.DOTALL)[1], re.MULTILINE)
        self.assertEqual(8, len(kinds), kinds)
        for kind in kinds:
            self.assertRegex(self.page, rf"\| {kind} \|")
        self.assertEqual({f"HEDDLE_{n}" for n in re.findall(r"`HEDDLE_([A-Z_]+)`", self.page)}, set(names))

    def test_exceptions(self):
        python = re.search(r"__all__ = \[(.*?)\]", (ROOT / "python/heddle/errors.py").read_text(), re.DOTALL)[1]
        for name in re.findall(r'"(\w+)"', python):
            self.assertIn(f"`{name}`", self.page)
        cpp = "".join(p.read_text() for p in (ROOT / "src/api").glob("*.hpp"))
        classes = set(re.findall(r"^(?:class|struct) (\w+) : (?:public )?\w*Error\b", cpp, re.MULTILINE))
        self.assertGreater(len(classes), 4)
        for name in classes:
            self.assertIn(f"`{name}`", self.page)

    def test_each_has_something_to_do(self):
        page = (ROOT / "docs/troubleshooting.md").read_text().lower()
        for word in ["unsupported", "shape", "value", "memory", "device", "machine", "cancelled"]:
            self.assertIn(f"`{word}`", page)
        for name in ["MissingInput", "UnknownName", "InputError"]:
            self.assertIn(f"`{name.lower()}`", page)


class EnvironmentTest(unittest.TestCase):
    maxDiff = None

    def used(self):
        """Variable -> a place that reads it."""
        found = {}
        patterns = {
            (".cc", ".h", ".c", ".hpp"): r'(?:getenv|variable|number_of|from_environment)\(\s*"([A-Z][A-Z_0-9]+)"',
            (".py",): r'environ(?:\.get\(|\[)\s*"([A-Z][A-Z_0-9]+)"|"([A-Z][A-Z_0-9]+)" (?:not )?in os\.environ',
        }
        for suffixes, pattern in patterns.items():
            for path in sources(suffixes, "src", "tools", "python", "pjrt", "script", "tests", "bench", "examples"):
                for match in re.finditer(pattern, path.read_text()):
                    name = next(group for group in match.groups() if group)
                    found.setdefault(name, path.relative_to(ROOT))
        for path in sorted((ROOT / "script").iterdir()):
            if path.is_file() and path.read_text(errors="replace").startswith("#!/usr/bin/env bash"):
                for name in re.findall(r"\$\{?(HEDDLE_[A-Z_]+)", path.read_text()):
                    found.setdefault(name, path.relative_to(ROOT))
        return found

    def test_each_is_there_and_no_other(self):
        page = (PAGES / "environment.md").read_text()
        told = set(re.findall(r"`([A-Z][A-Z_0-9]+)`", page))
        used = self.used()
        self.assertGreater(len(used), 30)
        self.assertEqual([], [f"{name} ({place})" for name, place in used.items() if name not in told | NOT_OURS])
        rows = {name for line in page.splitlines() if line.startswith("| `") for name in re.findall(r"`([A-Z][A-Z_0-9]+)`", line.split("|")[1])}
        self.assertEqual(set(), {name for name in rows if name not in used} - {"JAX_PLATFORMS", "PATH", "HEDDLE_BUILD"})


class OperatorsTest(unittest.TestCase):
    def test_the_tables_were_found(self):
        self.assertGreater(len(reference_operators.onnx_rows()), 250)
        self.assertGreater(len(reference_operators.stablehlo_rows()), 150)
        self.assertGreater(len(reference_operators.hlo_rows()), 100)
        self.assertGreater(len(reference_operators.torch_rows()), 350)
        for name in ["Conv", "com.microsoft.MatMulNBits", "ai.onnx.ml.TreeEnsemble"]:
            self.assertIn(name, reference_operators.onnx_rows())
        self.assertIn("sort.stable", reference_operators.torch_rows())


class KeysTest(unittest.TestCase):
    maxDiff = None
    # Files whose JSON is no --json: requests of targets, traces, pages, tests.
    OTHER = {"explain_page.cc", "page_text.cc", "conform_child.cc", "conform_onnx.cc", "trial.cc"}
    WORDS = {"mixed_text.cc": {"chain", "copied", "cost", "gain", "loop", "range", "scalar", "state", "sums", "unknown", "wide"},
             "quantize.cc": {"kl", "minmax", "mse", "percentile"}, "conform.cc": {"operator"}}

    def test_keys_of_the_sources_are_there(self):
        known = {key for rows in reference.read_keys().values() for key, _, _ in rows}
        wrong = []
        for path in sources((".cc",), "tools"):
            if path.name in self.OTHER or path.name.endswith("_test.cc"):
                continue
            text = path.read_text()
            if "json" not in text:
                continue
            keys = set(re.findall(r'(?:json|one|told|layer|result)\["([a-z0-9_^]+)"\]', text))
            keys |= set(re.findall(r'[{(]\s*\{"([a-z0-9_^]+)", ', text)) | set(re.findall(r'^\s*\{"([a-z0-9_^]+)", ', text, re.MULTILINE))
            wrong += [f"{path.name}: {key}" for key in sorted(keys - self.WORDS.get(path.name, set())) if key not in known]
        self.assertEqual([], wrong)

    def test_every_command_with_json_has_a_schema(self):
        for command in reference.described(HEDDLE):
            if any("--json" in option["names"] for option in command["options"]):
                schema = json.loads((PAGES / "schemas" / f"{command['name']}.json").read_text())
                self.assertIn("schema", schema["required"])
            else:
                self.assertEqual("completion", command["name"])


if __name__ == "__main__":
    if not os.path.exists(HEDDLE):
        print(f"skipped: {HEDDLE} is not built")
        sys.exit(77)
    unittest.main()
