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

    def test_notes_point_to_sections_that_exist(self):
        headings = {re.sub(r"[^a-z0-9 -]", "", line.lstrip("# ").lower()).strip().replace(" ", "-")
                    for line in numerics_table.DOCUMENT.read_text().splitlines()
                    if line.startswith("#")}
        notes = (ROOT / "src/schedule/fast_forms.cc").read_text()
        anchors = re.findall(r"docs/numerics\.md#([a-z0-9-]+)", notes)
        self.assertEqual(notes.count(" note("), len(anchors))
        self.assertLessEqual(set(anchors), headings)
        for said in re.findall(r'"fast_forms: ([^("]*?) ?(?:\(|")', notes):
            self.assertIn(f"| {said} |", numerics_table.DOCUMENT.read_text())

    def test_passes_that_change_rounding_are_rewrites_of_the_document(self):
        passes = "".join((ROOT / "src" / folder / "passes.def").read_text()
                         for folder in ["opt", "precision"])
        rows = re.findall(r'^HEDDLE_PASS\((\w+), (?:true|false), (true|false),', passes, re.M)
        self.assertEqual(len(re.findall("^HEDDLE_PASS", passes, re.M)), len(rows))
        inexact = [name for name, rounds in rows if rounds == "true"]
        self.assertGreater(len(inexact), 1)
        document = numerics_table.DOCUMENT.read_text()
        for name in inexact:
            self.assertRegex(document, rf"\| `{name}` \| (O1 and )?O2, not with `--numerics strict` \|")
        fusing = (ROOT / "src/fuse/passes.def").read_text()
        for name in re.findall(r"^HEDDLE_\w+\((\w+), (?:true|false), true,", fusing, re.M):
            self.assertIn(f"`{name}`", document)
        self.assertIn("pass->rounds", (ROOT / "src/compiler/options.cc").read_text(),
                      "strict numerics leave them out")


if __name__ == "__main__":
    sys.exit(unittest.main())
