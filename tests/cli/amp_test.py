"""--amp: results stay near those of f32, no conversion is a kernel, and explain says what was decided."""
import json
import sys
import unittest

from cli import MODELS, ROOT, CliTest

NETWORKS = ["cnn", "conformer", "convnext", "densenet", "efficientnet", "gpt2_prefill", "llama_prefill", "minilm",
            "mobilenet", "repvgg_train", "resnet50", "squeezenet", "swin_static", "transformer", "unet", "vit"]
STEPS = ["asr", "bert", "crnn", "dien", "transformer"]


class AmpTest(CliTest):
    def test_networks_stay_near_f32_under_the_eager_rule(self):
        for name in NETWORKS:
            for rule in ["propagate", "bf16"]:
                with self.subTest(model=name, rule=rule):
                    out = self.ok("check", MODELS / name / "model.onnx", "--amp", rule, "--cache", "off").stdout
                    self.assertIn("PASS", out)

    def test_training_steps_stay_near_f32(self):
        # Of crnn's gradients: where a maximum or a sign rounds to the other side, a pixel's whole gradient goes elsewhere
        # (the interpreter, with operands rounded alike, differs from f32 by as much). Its loss and weights stay near.
        for name in STEPS:
            with self.subTest(step=name):
                step = ROOT / "tests" / "testdata" / "training" / f"{name}_step"
                least = ["--cosine", "0.98"] if name == "crnn" else []
                out = self.ok("check", f"{step}.hlo", "--inputs", f"{step}.inputs.npz", "--expected",
                              f"{step}.expected.npz", "--amp", "auto", *least, "--cache", "off").stdout
                self.assertIn("PASS", out)

    def test_no_conversion_is_a_kernel(self):
        for name in NETWORKS:
            with self.subTest(model=name):
                mixed = json.loads(self.ok("explain", MODELS / name / "model.onnx", "--target", "zen5", "--amp",
                                           "bf16", "--json", "-").stdout)["mixed_precision"]
                self.assertEqual(mixed["casts"]["left"], 0)
                for choice in mixed["choices"]:
                    self.assertEqual(choice["type"] == "f32", bool(choice["why"]))

    def test_16_bits_stay_where_a_whole_run_gains(self):
        # Small products between much that converts: the cut alone would take both.
        for name, chosen in [("cnn", "bf16"), ("mobile", "f32")]:
            with self.subTest(step=name):
                step = ROOT / "tests" / "testdata" / "trained" / f"{name}_step.hlo"
                mixed = json.loads(self.ok("explain", step, "--target", "zen5", "--amp", "auto", "--json",
                                           "-").stdout)["mixed_precision"]
                run = mixed["run"]
                self.assertEqual((run["chosen"], run["by"]), (chosen, "prediction"))
                self.assertEqual(run["mixed_ns"] <= 0.97 * run["f32_ns"], chosen == "bf16")
                self.assertEqual(mixed["products"] > 0, chosen == "bf16")
                self.assertEqual(any(choice["why"] == "gain" for choice in mixed["choices"]), chosen == "f32")

    def test_a_cosine_decides_where_one_is_asked_for(self):
        model = MODELS / "minilm" / "model.onnx"
        self.assertIn("cosine", self.ok("check", model, "--cosine", "0.9").stdout)
        self.assertIn("--cosine 2: wanted -1 to 1", self.fails(2, "check", model, "--cosine", "2"))


if __name__ == "__main__":
    sys.exit(unittest.main())
