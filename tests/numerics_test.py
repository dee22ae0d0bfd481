"""docs/numerics.md states the bounds that the emitter's test demands, and no others."""
import pathlib
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


if __name__ == "__main__":
    sys.exit(unittest.main())
