"""heddle conform hlo: on made-up folders, and on XLA's own files where they are."""
import json
import os
import pathlib
import sys
import unittest

from cli import ADD, LOOKUP, CliTest

CORPUS = pathlib.Path(os.environ.get("HEDDLE_CORPORA", "/nowhere")) / "xla-hlo"


class ConformTest(CliTest):
    def test_board(self):
        self.file("good.hlo", ADD + "\n// -----\n" + LOOKUP)
        self.file("refused.hlo", ADD.replace("add(x, y)",
                                             'custom-call(x, y), custom_call_target="Gadget"'))
        self.file("invalid.hlo", ADD.replace("ROOT z = f32[2,3]", "ROOT z = f32[2,4]"))
        self.file("broken.hlo", ADD.replace("add(", "plus("))
        self.file("comments.hlo", "// nothing here\n")
        self.file("big.hlo", ADD.replace("[2,3]", "[100000,100000]"))
        self.file("not_read.txt", "junk")
        done = self.ok("conform", "hlo", self.folder)
        self.assertEqual("PASS", done.stdout.splitlines()[-1])
        value = self.json("conform", "hlo", self.folder)
        self.assertEqual(6, value["files"])
        self.assertEqual(1, value["files_equal"])
        self.assertEqual({"equal": 2, "refused": 1, "invalid": 1, "unparsable": 1, "no module": 1,
                          "too big": 1}, value["outcomes"])
        for line in value["lines"]:
            self.assertEqual(line["outcome"] in ("equal", "no module"), not line["reason"], line)

    def test_a_timeout_fails_the_board(self):
        self.file("good.hlo", ADD)
        done = self.run_heddle("conform", "hlo", self.folder, "--timeout", "0.0001")
        self.assertEqual(1, done.returncode)
        self.assertEqual("FAIL", done.stdout.splitlines()[-1])
        self.assertIn("timeout", done.stdout)

    @unittest.skipUnless(CORPUS.is_dir(), "HEDDLE_CORPORA has no xla-hlo")
    def test_files_of_xla(self):
        done = self.run_heddle("conform", "hlo", CORPUS, "--json", self.folder / "board.json",
                               timeout=850)
        value = json.loads((self.folder / "board.json").read_text())
        wrong = [line for line in value["lines"]
                 if line["outcome"] in ("mismatch", "round trip", "crash", "timeout")]
        self.assertEqual([], wrong)
        self.assertEqual(0, done.returncode)
        self.assertEqual(217, value["files"])
        self.assertGreaterEqual(value["files_equal"], 180)


if __name__ == "__main__":
    sys.exit(unittest.main())
