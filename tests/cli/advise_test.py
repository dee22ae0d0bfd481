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
            self.assertFalse(advice.get("measured", False))
            for choice in advice.get("choices", []):
                self.assertIn(choice["name"], text)

    # 60 columns take the time of 64: each choice is printed with the gain that is its own.
    def test_every_choice_has_its_own_gain(self):
        model = self.file("odd.hlo", """HloModule odd
ENTRY e {
  x = f32[512,256] parameter(0)
  w = f32[256,60] constant({...})
  d = f32[512,60] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT y = f32[512,60] tanh(d)
}
""")
        value = self.json("advise", model, "--random-constants", "--target", "spr")
        one, = [a for a in value["advice"] if a["kind"] == "alignment"]
        self.assertEqual([("widen to 64", 0)], [(c["name"], c["gain_ms"])
                                                for c in one["choices"][:1]])
        self.assertGreater(one["choices"][1]["gain_ms"], 0)
        text = self.ok("advise", model, "--random-constants", "--target", "spr").stdout
        self.assertRegex(text, r"60 columns cost as much as 64: widen to 64 at no cost, or narrow "
                         r"to 48 to save [0-9.]+ [um]s\n")
        self.assertNotIn("saves", text)
        self.assertRegex(text, r"predicted: ReLU .*, Hardswish .*, SiLU .*, GELU .*, Softplus ")
        here = self.json("advise", model, "--random-constants")
        act, = [a for a in here["advice"] if a["kind"] == "activation"]
        self.assertTrue(act["measured"])
        self.assertEqual(["ReLU", "Hardswish", "SiLU", "GELU", "Softplus"],
                         [c["name"] for c in act["choices"]])
        self.assertIn("measured here: ReLU", self.ok("advise", model, "--random-constants").stdout)

    def test_a_compiled_program_is_told(self):
        saved = self.folder / "m.heddle"
        self.ok("compile", MODELS / "minilm" / "model.onnx", "--dim", "sequence=8", "-o", saved)
        self.assertIn("needs the model itself", self.fails(2, "advise", saved))


if __name__ == "__main__":
    sys.exit(unittest.main())
