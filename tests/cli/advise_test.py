"""heddle advise: lines for people, JSON for programs, bad input."""
import sys
import unittest

from cli import MODELS, CliTest


class AdviseTest(CliTest):
    def test_lines_and_json_agree(self):
        model = MODELS / "minilm" / "model.onnx"
        value = self.json("advise", model, "--dim", "sequence=16", "--target", "spr")
        self.assertGreater(value["predicted_ms"], 0)
        self.assertLessEqual(value["product_ms"], value["predicted_ms"])
        text = self.ok("advise", model, "--dim", "sequence=16", "--target", "spr", "--all").stdout
        for advice in value["advice"]:
            self.assertIn(advice["kind"], ["alignment", "activation", "capacity", "deepening"])
            self.assertIn(advice["text"], text)

    def test_a_compiled_program_is_told(self):
        saved = self.folder / "m.heddle"
        self.ok("compile", MODELS / "minilm" / "model.onnx", "--dim", "sequence=8", "-o", saved)
        self.assertIn("needs the model itself", self.fails(2, "advise", saved))


if __name__ == "__main__":
    sys.exit(unittest.main())
