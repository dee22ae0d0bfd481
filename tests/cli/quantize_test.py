"""heddle quantize: smaller files, outputs that stay near, layers that are repaired, and what it refuses."""
import json
import unittest

try:
    import numpy as np
    from onnx import TensorProto, helper, load, numpy_helper, save
except ImportError:
    helper = None

from cli import MODELS, CliTest, write_npz


class QuantizeTest(CliTest):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "small.onnx"

    def quantize(self, name, *more):
        """The report."""
        return json.loads(self.ok("quantize", MODELS / name / "model.onnx", "-o", self.out, "--json", "-",
                                  *more).stdout)

    def near(self, name, least, *more, **options):
        """The small model's outputs beside those recorded of the float one."""
        folder = MODELS / name
        out = self.ok("check", self.out, "--inputs", folder / "inputs.npz", "--expected",
                      folder / "expected.npz", "--cosine", least, *more, **options).stdout
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

    def test_layers_have_their_time(self):
        report = self.quantize("resnet18", "--calib", MODELS / "resnet18" / "inputs.npz")
        for when in ["f32_ms", "ms"]:
            times = [layer["time"][when] for layer in report["layers"]]
            self.assertTrue(all(time > 0 for time in times), times)
            self.assertAlmostEqual(sum(times) + report["time_of_others"][when], report["time"][when], delta=1e-6)
        text = self.ok("quantize", MODELS / "resnet18" / "model.onnx", "-o", self.out).stdout
        self.assertRegex(text, r"(?m)^ +[\d.]+ [mu]s +[\d.]+ [mu]s  everything else$")
        self.assertRegex(text, r"(?m)^a run takes [\d.]+ [mu]s; [\d.]+ [mu]s before$")

    def test_results_are_the_same_without_instructions_for_words(self):
        for name in ["resnet18", "mobilenet"]:
            self.quantize(name, "--calib", MODELS / name / "inputs.npz")
            for isa in ["avx2", "avx512"]:
                with self.subTest(model=name, isa=isa):
                    self.near(name, "0.98", env={"HEDDLE_ISA": isa})

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

    def test_smoothing_repairs_channels_of_outliers(self):
        # Xiao et al.: channels of an activation that are 50 times as large as the others.
        ill = self.quantize("outliers", "--smooth", "off", "--cosine", "-1")
        self.assertLess(ill["agreement"]["sqnr_db"], 10)
        self.assertEqual((ill["smoothed_layers"], ill["unfoldable_layers"]), (0, 0))
        for more in [[], ["--smooth", "0.5"], ["--smooth", "auto"]]:
            with self.subTest(more=more):
                well = self.quantize("outliers", *more)
                self.assertGreater(well["agreement"]["sqnr_db"], 30)
                # What attention mixes does not come from constants; nor has it outliers.
                self.assertEqual({layer["name"] for layer in well["layers"] if "smoothed" in layer},
                                 {f"{name}_node" for name in ["q", "k", "v", "gate", "up", "down"]})
                self.assertEqual({layer["type"] for layer in well["layers"]}, {"int8"})
        self.quantize("outliers", "--calib", MODELS / "outliers" / "inputs.npz")
        self.near("outliers", "0.999")
        self.assertEqual(self.quantize("outliers", "--no-adjust", "--cosine", "-1")["smoothed_layers"], 0)
        self.assertEqual(self.quantize("outliers", "--no-adjust", "--smooth", "auto")["smoothed_layers"], 6)
        self.assertEqual(self.quantize("resnet18")["smoothed_layers"], 0)

    @unittest.skipIf(helper is None, "the packages numpy and onnx are missing")
    def test_outliers_that_nothing_takes_are_counted(self):
        # The residual branch reads the normalised value too.
        model = load(MODELS / "outliers" / "model.onnx")
        output = helper.make_tensor_value_info("norm1", TensorProto.FLOAT, [1, 16, 32])
        model.graph.output.append(output)
        path = self.folder / "read.onnx"
        save(model, path)
        report = json.loads(self.ok("quantize", path, "-o", self.out, "--json", "-", "--cosine", "-1").stdout)
        self.assertEqual((report["smoothed_layers"], report["unfoldable_layers"]), (3, 3))

    def test_four_bits(self):
        report = self.quantize("llama_block", "--weights", "int4", "--cosine", "0.9")
        kinds = {layer["type"] for layer in report["layers"]}
        self.assertIn("int4", kinds)
        self.near("llama_block", "0.95")
        self.assertIn(b"MatMulNBits", self.out.read_bytes())

    @unittest.skipIf(helper is None, "the packages numpy and onnx are missing")
    def test_gptq_rounds_by_the_inputs(self):
        # What the products read are mixtures of eight numbers.
        random = np.random.default_rng(0)

        def weights(name, rows, columns):
            return numpy_helper.from_array((random.standard_normal((rows, columns)) / np.sqrt(rows))
                                           .astype(np.float32), name)
        nodes = [helper.make_node("MatMul", ["x", "mix"], ["h"], name="mix"),
                 helper.make_node("MatMul", ["h", "a"], ["y"], name="first"),
                 helper.make_node("Gemm", ["h", "b"], ["h_gram"], name="second", transB=1)]
        graph = helper.make_graph(nodes, "mixed", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [64, 8])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [64, 48]),
                                   helper.make_tensor_value_info("h_gram", TensorProto.FLOAT, [64, 40])],
                                  [weights("mix", 8, 96), weights("a", 96, 48), weights("b", 40, 96)])
        model = self.folder / "mixed.onnx"
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8), model)
        options = ["quantize", model, "-o", self.out, "--weights", "int4", "--json", "-"]
        plain, better = [json.loads(self.ok(*options, *more).stdout) for more in [[], ["--gptq"]]]
        self.assertEqual((plain["gptq_layers"], better["gptq_layers"]), (0, 2))
        for layer in better["layers"]:
            self.assertLess(layer["gptq_error_ratio"], 0.4)
        self.assertGreater(better["agreement"]["sqnr_db"], plain["agreement"]["sqnr_db"] + 4)
        again = self.out.read_bytes()
        self.ok(*options, "--gptq")
        self.assertEqual(self.out.read_bytes(), again)
        kept = json.loads(self.ok(*options, "--gptq", "--keep", "first").stdout)
        self.assertEqual(kept["gptq_layers"], 1)

    def test_gptq_of_a_transformer(self):
        plain = self.quantize("llama_block", "--weights", "int4", "--cosine", "0.9")
        better = self.quantize("llama_block", "--weights", "int4", "--cosine", "0.9", "--gptq")
        # A few rows of random numbers: little to go by, and nothing is lost by that either.
        self.assertGreater(better["agreement"]["sqnr_db"], plain["agreement"]["sqnr_db"] - 0.5)
        self.assertTrue(all(layer["gptq_error_ratio"] <= 1 for layer in better["layers"]))
        self.near("llama_block", "0.95")

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

    @unittest.skipIf(helper is None, "the packages numpy and onnx are missing")
    def test_weights_that_several_nodes_read_and_names_that_are_taken(self):
        # One array as a table, and as weights whose rows and whose columns are summed up.
        random = np.random.default_rng(0)
        weights = numpy_helper.from_array(random.standard_normal((512, 64)).astype(np.float32), "w")
        shift = numpy_helper.from_array(np.float32([0.5]), "h_scale")
        nodes = [helper.make_node("Gather", ["w", "ids"], ["x"], name="table"),
                 helper.make_node("Add", ["x", "h_scale"], ["h"], name="shift"),
                 helper.make_node("Gemm", ["h", "w"], ["l"], name="head", transB=1),
                 helper.make_node("MatMul", ["l", "w"], ["y"], name="back"),
                 helper.make_node("Identity", ["h"], ["h_quantized"], name="copy")]
        graph = helper.make_graph(nodes, "tied", [helper.make_tensor_value_info("ids", TensorProto.INT64, [8])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, 64]),
                                   helper.make_tensor_value_info("h_quantized", TensorProto.FLOAT, [8, 64])],
                                  [weights, shift])
        model = self.folder / "tied.onnx"
        save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
        for kind, least in [("int8", 0.999), ("int4", 0.98)]:
            with self.subTest(kind=kind):
                report = json.loads(self.ok("quantize", model, "-o", self.out, "--weights", kind, "--json", "-").stdout)
                self.assertGreater(report["agreement"]["cosine"], least)
                self.assertNotIn("f32", {layer["type"] for layer in report["layers"]})
                # The table and the head have the same rows with the same scales: they are there once.
                large = [one for one in load(self.out).graph.initializer if one.data_type == TensorProto.INT8
                         and list(one.dims) == [512, 64]]
                self.assertEqual(len(large), {"int8": 2, "int4": 1}[kind])
        # The inputs of one layer are not those of the other.
        report = json.loads(self.ok("quantize", model, "-o", self.out, "--weights", "int4", "--gptq", "--json",
                                    "-").stdout)
        self.assertEqual(report["gptq_layers"], 0)

    def test_the_worst_layers_stay_float_where_that_helps(self):
        report = self.quantize("diseased", "--no-adjust", "--cosine", "0.5")
        self.assertTrue(report["pass"], report)
        self.assertEqual({layer["name"]: layer["why"] for layer in report["layers"] if layer["type"] == "f32"},
                         {"conv3": "float: its error is among the largest"})
        # Nothing comes that near: all are quantised, and the status says so.
        out = self.run_heddle("quantize", MODELS / "diseased" / "model.onnx", "-o", self.out, "--no-adjust",
                              "--cosine", "1")
        self.assertEqual(out.returncode, 1, out.stderr)
        self.assertIn("FAIL: the cosine is less than 1 (--cosine)", out.stdout)
        self.assertNotIn("float:", out.stdout)
        failed = self.out.read_bytes()
        self.quantize("diseased", "--no-adjust", "--cosine", "-1")
        self.assertEqual(self.out.read_bytes(), failed)

    def test_statistics_are_kept(self):
        seen = self.folder / "seen"
        first = self.quantize("resnet18", "--statistics", seen)
        before = self.out.read_bytes()
        again = self.quantize("resnet18", "--statistics", seen)
        self.assertEqual(self.out.read_bytes(), before)
        self.assertIn("8 samples were seen before", " ".join(again["notes"]))
        self.assertNotIn("seen before", " ".join(first["notes"]))
        # Smoothing sees the set twice, and both are kept.
        self.quantize("outliers", "--statistics", seen)
        before_smooth = self.out.read_bytes()
        again = self.quantize("outliers", "--statistics", seen)
        self.assertEqual(sum("seen before" in note for note in again["notes"]), 2)
        self.assertEqual(self.out.read_bytes(), before_smooth)
        self.quantize("resnet18", "--statistics", seen)
        # What was seen of other samples, or of another model, is not used.
        for more in [["--seed", "1"], ["--calib", MODELS / "resnet18" / "inputs.npz"], ["--no-adjust"]]:
            with self.subTest(more=more):
                other = self.quantize("resnet18", "--statistics", seen, *more)
                self.assertNotIn("seen before", " ".join(other["notes"]))
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
                 ([model, "-o", new, "--smooth", "some"], "--smooth some"),
                 ([model, "-o", new, "--smooth", "1.5"], "--smooth 1.5"),
                 ([model, "-o", new, "--smooth", "0.5", "--weights", "int4"], "--smooth 0.5: only"),
                 ([model, "-o", new, "--gptq"], "--gptq: only"),
                 ([model, "-o", model], "MODEL"), ([model, "-o", new, "--cosine", "2"], "--cosine 2"),
                 ([MODELS / "cnn_opset9" / "model.onnx", "-o", new], "opset")]
        for words, said in cases:
            with self.subTest(words=words):
                self.assertIn(said, self.fails(2, "quantize", *words))
                self.assertFalse(new.exists())


if __name__ == "__main__":
    unittest.main()
