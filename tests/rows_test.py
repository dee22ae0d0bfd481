"""The rows that are written by a program are those that the program writes."""
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "bench" / "rows" / "many_tensors.py"


class RowsTest(unittest.TestCase):
    def test_small_rows_of_many_tensors(self):
        for row in ["l7", "l8"]:
            made = subprocess.run([sys.executable, PROGRAM, row, "--small"], capture_output=True,
                                  text=True, check=True).stdout
            kept = (ROOT / "tests" / "testdata" / "rows" / f"{row}.hlo").read_text()
            self.assertEqual(kept, made, f"{row}: write it again with {PROGRAM.name} {row} --small")

    def test_the_full_rows_have_148_tensors(self):
        text = subprocess.run([sys.executable, PROGRAM, "l7"], capture_output=True, text=True,
                              check=True).stdout
        self.assertEqual(4 * 148 + 2, text.split("ENTRY main")[1].count(" parameter("))


if __name__ == "__main__":
    sys.exit(unittest.main())
