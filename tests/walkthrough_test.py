"""The dumps in docs/walkthrough.md are what the tool writes."""
import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "script"))

import walkthrough  # noqa: E402

HEDDLE = os.environ.get("HEDDLE", str(ROOT / "build" / "release" / "heddle"))


class WalkthroughTest(unittest.TestCase):
    def test_every_box_is_filled_by_the_tool(self):
        text = walkthrough.DOCUMENT.read_text()
        self.assertEqual(text.count("<!-- dump:"), len(walkthrough.BLOCK.findall(text)))
        self.assertGreater(text.count("<!-- dump:"), 5)

    def test_the_document_is_up_to_date(self):
        self.assertEqual(0, walkthrough.main(HEDDLE, "--check"),
                         f"run python3 script/walkthrough.py {HEDDLE}")


if __name__ == "__main__":
    if not os.path.exists(HEDDLE):
        print(f"skipped: {HEDDLE} is not built")
        sys.exit(77)
    sys.exit(unittest.main())
