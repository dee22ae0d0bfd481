"""docs/numerics.md states the bounds that the emitter's test demands, and no others."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "script"))

import numerics_table  # noqa: E402


class NumericsTest(unittest.TestCase):
    def test_every_row_of_the_test_was_read(self):
        text = numerics_table.TEST.read_text()
        self.assertEqual(text.count("{Op::"), len(list(numerics_table.rows())))
        self.assertGreater(len(list(numerics_table.rows())), 20)

    def test_the_document_says_what_the_test_demands(self):
        text = numerics_table.DOCUMENT.read_text()
        self.assertEqual(numerics_table.with_table(text), text,
                         "run python3 script/numerics_table.py --write")

    def test_passes_that_change_rounding_are_rewrites_of_the_document(self):
        passes = (ROOT / "src/opt/passes.def").read_text()
        inexact = re.findall(r'HEDDLE_PASS\((\w+), \w+,\s*"[^"]*\(changes rounding\)"\)', passes)
        self.assertEqual(passes.count("(changes rounding)"), len(inexact))
        self.assertGreater(len(inexact), 1)
        document = numerics_table.DOCUMENT.read_text()
        compiler = (ROOT / "src/compiler/options.cc").read_text()
        for name in inexact:
            self.assertIn(f"| `{name}` | O2, not with `--numerics strict` |", document)
            self.assertIn(f'"{name}"', compiler, "strict numerics leave it out")


if __name__ == "__main__":
    sys.exit(unittest.main())
