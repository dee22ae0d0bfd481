"""The rows of src/compiler/options.def are told where users look: the C header and the command's help."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROW = re.compile(r"^HEDDLE_(CHOICE|OPEN|TEXT|NUMBER|FOLDER|FLAG)\((.*?)\)$", re.MULTILINE | re.DOTALL)


def rows():
    """(form, name, words) of each row."""
    text = (ROOT / "src/compiler/options.def").read_text().split("#ifndef HEDDLE_INNER")[1]
    for form, body in ROW.findall(text):
        strings = re.findall(r'"([^"]*)"', body)
        parts = [part.strip() for part in re.sub(r'"[^"]*"', "", body).split(",")]
        yield form, parts[1 if form in ("OPEN", "FOLDER", "FLAG") else 2], strings


class Options(unittest.TestCase):
    def test_rows_are_found(self):
        names = [name for _, name, _ in rows()]
        self.assertIn("level", names)
        self.assertIn("memory_limit_bytes", names)
        self.assertGreater(len(names), 15)

    def test_the_header_tells_each_with_its_words(self):
        header = (ROOT / "src/api/heddle.h").read_text()
        struct = header[:header.index("} heddle_compile_options;")].split("typedef struct heddle_compile_options")[1]
        for form, name, strings in rows():
            with self.subTest(name):
                told = re.search(rf"\b{name};\s*/\*(.*?)\*/", struct, re.DOTALL)
                self.assertTrue(told or form == "FLAG", f"heddle_compile_options.{name} has no comment")
                if form == "CHOICE":
                    words = next(text for text in strings if "|" in text)
                    for word in words.split("|"):
                        self.assertIn(f'"{word}"', told[1])

    def test_the_help_has_each(self):
        run = subprocess.run([os.environ["HEDDLE"], "compile", "--help-all"], capture_output=True, text=True, check=True)
        for form, name, strings in rows():
            if form == "FLAG":
                continue
            with self.subTest(name):
                self.assertIn("--" + name.removesuffix("_bytes").replace("_", "-"), run.stdout)
                self.assertIn(" ".join(strings[-1].split()[:2]), " ".join(run.stdout.split()))


if __name__ == "__main__":
    if not os.path.exists(os.environ.get("HEDDLE", "")):
        print("the command is not built: set HEDDLE")
        sys.exit(77)
    unittest.main()
