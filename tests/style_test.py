"""Checks what no compiler does: length of files, READMEs, leftovers, white space."""
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_LINES = 500
MOST_README_LINES = 30
TABLE = re.compile(r"(\.def|_table\.cc)$")
CODE = {".cc", ".h", ".hpp", ".c", ".def", ".py", ".cmake"}
TEXT = CODE | {".md", ".hlo", ".kernel", ".json", ".txt", ".in", ".sh"}
LEFTOVER = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")


def is_ours(path):
    """Not test data, which may come from other tools, and not what a build makes."""
    inner = path.relative_to(ROOT).parts
    return not {"testdata", "build", ".git", "__pycache__"} & set(inner)


def files(suffixes, *folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file() and is_ours(path):
                yield path


def scripts():
    return [p for p in sorted((ROOT / "script").iterdir()) if p.is_file()]


def all_text():
    """(path, text) of everything written by hand."""
    folders = ["src", "tools", "python", "pjrt", "tests", "bench", "docs", "cmake", ".ci"]
    paths = [*files(TEXT, *folders), *scripts(), ROOT / "CMakeLists.txt", ROOT / "README.md"]
    return [(p.relative_to(ROOT), p.read_text()) for p in paths if p.exists()]


class StyleTest(unittest.TestCase):
    maxDiff = None

    def test_files_are_short(self):
        long = []
        for path in [*files(CODE, "src", "tools", "python", "pjrt", "tests", "bench"), *scripts()]:
            lines = len(path.read_text().splitlines())
            if lines > MOST_LINES and not TABLE.search(path.name):
                long.append(f"{path.relative_to(ROOT)}: {lines} lines, at most {MOST_LINES}")
        self.assertEqual([], long)

    def test_every_folder_has_a_short_readme(self):
        wrong = []
        for folder in sorted({p.parent for p in files({".cc", ".h"}, "src", "tools", "python", "pjrt", "bench")}):
            readme = folder / "README.md"
            name = readme.relative_to(ROOT)
            if not readme.exists():
                wrong.append(f"{name}: missing")
            elif len(readme.read_text().splitlines()) > MOST_README_LINES:
                wrong.append(f"{name}: more than {MOST_README_LINES} lines")
        self.assertEqual([], wrong)

    def test_nothing_is_left_over(self):
        wrong = [f"{name}: {match[0]}" for name, text in all_text()
                 for match in LEFTOVER.finditer(text)]
        self.assertEqual([], wrong)

    def test_white_space(self):
        wrong = []
        for name, text in all_text():
            if "\t" in text:
                wrong.append(f"{name}: a tab")
            if "\r" in text:
                wrong.append(f"{name}: a carriage return")
            if re.search(r"[ ]+$", text, re.MULTILINE):
                wrong.append(f"{name}: space at the end of a line")
            if text and not text.endswith("\n"):
                wrong.append(f"{name}: no newline at the end")
        self.assertEqual([], wrong)

    def test_headers_are_guarded(self):
        wrong = [str(p.relative_to(ROOT)) for p in files({".h", ".hpp"}, "src", "tools", "python", "pjrt", "tests", "bench")
                 if not re.search(r"^#pragma once$|^#ifndef HEDDLE_", p.read_text(), re.MULTILINE)]
        self.assertEqual([], wrong)

    def test_documents_that_comments_name_are_here(self):
        known = {p.name for p in ROOT.rglob("*.md") if is_ours(p)}
        wrong = []
        for path in [*files(CODE, "src", "tools", "python", "pjrt", "tests", "bench"), *scripts()]:
            text = path.read_text()
            for name in re.findall(r"\b([a-z][a-z-]+\.md|CLI\.md)\b", text):
                if name not in known:
                    wrong.append(f"{path.relative_to(ROOT)}: {name}")
            wrong += [f"{path.relative_to(ROOT)}: {match}"
                      for match in re.findall(r"\brows? [FBMPX]\d+\b", text)]
        self.assertEqual([], wrong)


class ScriptTest(unittest.TestCase):
    def test_shell_scripts_parse(self):
        for path in [*scripts(), ROOT / ".ci" / "run"]:
            first = path.read_text().splitlines()[0]
            if "bash" in first or path.suffix == ".sh":
                done = subprocess.run(["bash", "-n", path], capture_output=True, text=True)
                self.assertEqual((0, ""), (done.returncode, done.stderr), path)


if __name__ == "__main__":
    sys.exit(unittest.main())
