"""heddle quantize: smaller files, outputs that stay near, layers that are repaired, and what it refuses."""
import json
import unittest

from cli import MODELS, CliTest, write_npz


class QuantizeTest(CliTest):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "small.onnx"

    def quantize(self, name, *more):
        """The report."""
        return json.loads(self.ok("quantize", MODELS / name / "model.onnx", "-o", self.out, "--json", "-",
                                  *more).stdout)

    def near(self, name, least, *more):
        """The small model's outputs beside those recorded of the float one."""
        folder = MODELS / name
        out = self.ok("check", self.out, "--inputs", folder / "inputs.npz", "--expected",
                      folder / "expected.npz", "--cosine", least, *more).stdout
        self.assertIn("PASS", out)

    def test_networks_stay_near(self):
        for name in ["resnet18", "resnet50", "mobilenet", "minilm", "bert", "unet", "vit", "conformer"]:
            with self.subTest(model=name):
                report = self.quantize(name, "--calib", MODELS / name / "inputs.npz")
                self.assertTrue(report["pass"], report)
                self.assertEqual({layer["type"] for layer in report["layers"]} - {"f32"}, {"int8"})
                self.assertGreater(report["agreement"]["cosine"], 0.98)
                self.near(name, "0.98")
                self.assertLess(self.out.stat().st_size, (MODELS / name / "model.onnx").stat().st_size)

    def test_methods(self):
        for more in [["--method", "minmax"], ["--method", "kl"], ["--method", "percentile", "--percentile", "99.9"],
                     ["--asymmetric"], ["--unsigned"], ["--float-outputs"], ["--no-adjust"]]:
            with self.subTest(more=more):
                self.quantize("resnet18", "--calib", MODELS / "resnet18" / "inputs.npz", *more)
                self.near("resnet18", "0.97")

    def test_equalisation_repairs_a_diseased_network(self):
        # Nagel et al.: scales of channels that the next layer undoes.
        ill = self.quantize("diseased", "--no-adjust", "--cosine", "-1")
        well = self.quantize("diseased")
        self.assertLess(ill["agreement"]["sqnr_db"], 6)
        self.assertGreater(well["agreement"]["sqnr_db"], 40)
        self.assertEqual(well["equalised_pairs"], 4)
        self.quantize("diseased", "--calib", MODELS / "diseased" / "inputs.npz")
        self.near("diseased", "0.999")

    def test_four_bits(self):
        report = self.quantize("llama_block", "--weights", "int4", "--cosine", "0.9")
        kinds = {layer["type"] for layer in report["layers"]}
        self.assertIn("int4", kinds)
        self.near("llama_block", "0.95")
        self.assertIn("MatMulNBits", self.ok("inspect", self.out).stdout + self.out.read_bytes().decode("latin1"))

    def test_weights_may_lie_beside_the_model(self):
        self.quantize("llama_block", "--weights", "int4", "--cosine", "0.9", "--external-data")
        beside = self.out.with_name("small.onnx.data")
        self.assertGreater(beside.stat().st_size, 0)
        self.near("llama_block", "0.95")
        apart = self.ok("run", self.out).stdout.splitlines()[1:]
        self.quantize("llama_block", "--weights", "int4", "--cosine", "0.9")
        self.assertEqual(self.ok("run", self.out).stdout.splitlines()[1:], apart)
        self.assertFalse(list(self.folder.glob("*.part*")))

    def test_layers_may_be_kept(self):
        names = [layer["name"] for layer in self.quantize("resnet18")["layers"]]
        report = self.quantize("resnet18", "--keep", names[0])
        self.assertEqual(report["layers"][0]["type"], "f32")
        self.assertIn("--keep", report["layers"][0]["why"])

    def test_the_worst_layers_stay_float_where_that_helps(self):
        done = self.run_heddle("quantize", MODELS / "diseased" / "model.onnx", "-o", self.out, "--no-adjust",
                               "--cosine", "0.9")
        self.assertIn(done.returncode, (0, 1))
        self.assertIn("its error is among the largest" if done.returncode == 0 else "FAIL", done.stdout)

    def test_statistics_are_kept(self):
        seen = self.folder / "seen"
        first = self.quantize("resnet18", "--statistics", seen)
        before = self.out.read_bytes()
        again = self.quantize("resnet18", "--statistics", seen)
        self.assertEqual(self.out.read_bytes(), before)
        self.assertIn("8 samples were seen before", " ".join(again["notes"]))
        self.assertNotIn("seen before", " ".join(first["notes"]))
        seen.write_text("heddle.statistics 1 damaged")
        self.quantize("resnet18", "--statistics", seen)
        self.assertEqual(self.out.read_bytes(), before)

    def test_many_samples_in_one_file_or_in_a_folder(self):
        values = [(i * 37 % 101 - 50) / 25 for i in range(3 * 3 * 16 * 16)]
        whole = self.folder / "set.npz"
        write_npz(whole, x=("f", [3, 3, 16, 16], values))
        report = self.quantize("diseased", "--calib", whole)
        self.assertEqual(report["samples"], 3)
        one = self.out.read_bytes()
        folder = self.folder / "set"
        folder.mkdir()
        for i in range(3):
            write_npz(folder / f"{i}.npz", x=("f", [1, 3, 16, 16], values[i * 768:(i + 1) * 768]))
        self.assertEqual(self.quantize("diseased", "--calib", folder)["samples"], 3)
        self.assertEqual(self.out.read_bytes(), one)

    def test_what_is_refused(self):
        model = MODELS / "resnet18" / "model.onnx"
        self.quantize("resnet18")
        empty = self.folder / "empty"
        empty.mkdir()
        wrong = self.folder / "wrong.npz"
        write_npz(wrong, other=("f", [1], [1.0]))
        shape = self.folder / "shape.npz"
        write_npz(shape, x=("f", [2, 2], [1.0] * 4))
        text = self.folder / "a.hlo"
        text.write_text("HloModule a\nENTRY e { ROOT x = f32[2] parameter(0) }\n")
        new = self.folder / "new.onnx"
        cases = [([model], "no output was named"), ([self.out, "-o", new], "quantised already"),
                 ([text, "-o", new], "wanted ONNX"), ([model, "-o", new, "--block", "33"], "--block 33"),
                 ([model, "-o", new, "--calib", empty], "holds no .npz"),
                 ([model, "-o", new, "--calib", wrong], "no such input"),
                 ([MODELS / "diseased" / "model.onnx", "-o", new, "--calib", shape], "wanted [1,3,16,16]"),
                 ([model, "-o", new, "--keep", "nothing"], "--keep nothing"),
                 ([model, "-o", new, "--percentile", "3"], "--percentile 3"),
                 ([model, "-o", model], "MODEL"), ([model, "-o", new, "--cosine", "2"], "--cosine 2"),
                 ([MODELS / "cnn_opset9" / "model.onnx", "-o", new], "opset")]
        for words, said in cases:
            with self.subTest(words=words):
                self.assertIn(said, self.fails(2, "quantize", *words))
                self.assertFalse(new.exists())


if __name__ == "__main__":
    unittest.main()
