"""Strings on the command line, operators that draw at random, and what inspect --supported says.
Needs the packages onnx and numpy."""
import json
import sys
import unittest

try:
    import numpy as np
    from onnx import TensorProto, ValueInfoProto, helper, save
except ImportError:
    print("the packages numpy and onnx are missing: tests of strings are skipped")
    sys.exit(77)

from cli import CliTest

STRING, FLOAT = TensorProto.STRING, TensorProto.FLOAT


def ml(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, domain="ai.onnx.ml", **attributes)


class OnnxTest(CliTest):
    def model(self, nodes, inputs, outputs, constants=(), opset=20, domains=()):
        graph = helper.make_graph(
            nodes, "g", [helper.make_tensor_value_info(*given) for given in inputs],
            [ValueInfoProto(name=name) for name in outputs], list(constants))
        opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 4),
                  *[helper.make_opsetid(domain, 1) for domain in domains]]
        path = self.folder / "model.onnx"
        save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
        return path

    def outputs(self, model, inputs, *options):
        np.savez(self.folder / "in.npz", **inputs)
        self.ok("run", model, "--inputs", self.folder / "in.npz", "--outputs",
                self.folder / "out.npz", *options)
        return dict(np.load(self.folder / "out.npz"))


class TextTest(OnnxTest):
    def colours(self):
        return self.model(
            [ml("LabelEncoder", ["x"], ["number"], keys_strings=["red", "grün"],
                values_int64s=[5, 7]),
             ml("LabelEncoder", ["number"], ["word"], keys_int64s=[5, 7],
                values_strings=["R", "Ü"], default_string="none"),
             helper.make_node("Equal", ["x", "blue"], ["is_blue"]),
             helper.make_node("Concat", ["x", "word"], ["all"], axis=0)],
            [("x", STRING, ["n"])], ["number", "word", "is_blue", "all"],
            [helper.make_tensor("blue", STRING, [1], [b"blue"])])

    def test_strings_go_in_and_out(self):
        words = ["red", "grün", "", "blue", "never seen", "red"]
        got = self.outputs(self.colours(), {"x": np.array(words)})
        coded = ["R", "Ü", "none", "none", "none", "R"]
        self.assertEqual([5, 7, -1, -1, -1, 5], got["number"].tolist())
        self.assertEqual(coded, got["word"].tolist())
        self.assertEqual([word == "blue" for word in words], got["is_blue"].tolist())
        self.assertEqual(words + coded, got["all"].tolist())

    def test_numbers_for_strings_and_strings_for_numbers(self):
        model, given = self.colours(), self.folder / "in.npz"
        np.savez(given, x=np.arange(3))
        self.assertIn("got numbers, wanted strings", self.fails(2, "run", model, "--inputs", given))
        np.savez(given, x=np.array(["a", "b"]))
        relu = self.model([helper.make_node("Relu", ["x"], ["y"])], [("x", FLOAT, ["n"])], ["y"])
        self.assertIn("got strings, wanted f32[2]", self.fails(2, "run", relu, "--inputs", given))
        relu = self.model([helper.make_node("Relu", ["x"], ["y"])], [("x", STRING, ["n"])], ["y"])
        self.assertIn("(Relu, output 'y'): an input holds strings",
                      self.fails(2, "run", relu, "--inputs", given))

    def test_no_program_in_a_file_has_strings(self):
        error = self.fails(2, "compile", self.colours(), "-o", self.folder / "x.heddle")
        self.assertIn("x has strings", error)

    def test_new_strings_are_made_of_known_ones(self):
        model = self.model([helper.make_node("StringConcat", ["x", "c"], ["y"]),
                            helper.make_node("RegexFullMatch", ["y"], ["z"], pattern="[ab]+c")],
                           [("x", STRING, ["n"])], ["y", "z"],
                           [helper.make_tensor("c", STRING, [1], [b"c"])])
        for options in ([], ["--fix", "x"]):
            got = self.outputs(model, {"x": np.array(["ab", "ü", ""])}, *options)
            self.assertEqual(["abc", "üc", "c"], got["y"].tolist())
            self.assertEqual([True, False, False], got["z"].tolist())

    def test_damaged_patterns(self):
        for pattern in ("(", ")", "[a", "a{3,1}", "*", "\\", "(?i)a", "[[:alpha:]]", "(" * 2000,
                        "(((a{1000}){1000}){1000})", "\\x"):
            model = self.model([helper.make_node("RegexFullMatch", ["c"], ["y"], pattern=pattern)],
                               [], ["y"], [helper.make_tensor("c", STRING, [1], [b"a"])])
            self.assertIn("pattern: ", self.fails(2, "run", model))

    def test_a_pattern_takes_linear_time(self):
        model = self.model(
            [helper.make_node("RegexFullMatch", ["c"], ["y"], pattern="(a*)*(a|aa)+b")], [], ["y"],
            [helper.make_tensor("c", STRING, [1], [b"a" * 20000])])
        self.ok("run", model)


class RandomTest(OnnxTest):
    def test_statistics(self):
        count = 100_000
        node = helper.make_node
        model = self.model(
            [node("RandomUniform", [], ["u"], shape=[count], low=-1.0, high=3.0, seed=1.0),
             node("RandomNormal", [], ["n"], shape=[count], mean=2.0, scale=3.0),
             node("RandomNormalLike", ["p"], ["m"], mean=2.0, scale=3.0, seed=5.0, dtype=11),
             node("RandomUniformLike", ["p"], ["w"], dtype=10),
             node("Bernoulli", ["p"], ["b"], dtype=9),
             node("Multinomial", ["l"], ["c"], sample_size=count // 2, dtype=7),
             node("Dropout", ["ones", "r", "t"], ["d", "kept"])],
            [("p", FLOAT, [count]), ("l", FLOAT, [2, 3]), ("ones", FLOAT, [count])],
            ["u", "n", "m", "w", "b", "c", "d", "kept"],
            [helper.make_tensor("r", FLOAT, [], [0.3]),
             helper.make_tensor("t", TensorProto.BOOL, [], [True])])
        p = np.linspace(0, 1, count).astype(np.float32)
        chances = np.array([[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]])
        inputs = {"p": p, "l": np.log(chances).astype(np.float32),
                  "ones": np.ones(count, np.float32)}
        got = self.outputs(model, inputs)
        near = lambda want, value, error: self.assertLess(abs(value - want), 5 * error)
        root = count ** -0.5
        self.assertTrue(-1 <= got["u"].min() and got["u"].max() <= 3)
        near(1, got["u"].mean(), 4 / 12 ** 0.5 * root)
        near(16 / 12, got["u"].var(), 2 * root)
        for name in ("n", "m"):
            near(2, got[name].mean(), 3 * root)
            near(3, got[name].std(), 3 * root)
            standard = (got[name] - 2) / 3
            near(0, (standard ** 3).mean(), 4 * root)
            near(3, (standard ** 4).mean(), 10 * root)
            near(0, (standard[1:] * standard[:-1]).mean(), root)
        near(0, np.corrcoef(got["n"], got["m"])[0, 1], root)
        self.assertEqual([np.float64, np.float16, np.bool_, np.int64],
                         [got[name].dtype for name in "mwbc"])
        for part in np.split(np.arange(count), 10):
            near(p[part].mean(), got["b"][part].mean(), 0.5 * len(part) ** -0.5)
        for row, chance in zip(got["c"], chances):
            for value in range(3):
                near(chance[value], (row == value).mean(), (count // 2) ** -0.5)
        near(0.7, got["kept"].mean(), root)
        self.assertEqual(got["kept"].tolist(), (got["d"] > 0).tolist())
        near(1, got["d"].mean(), 2 * root)
        # A model opened anew draws the same numbers again; its next run draws others.
        for name, values in self.outputs(model, inputs).items():
            self.assertTrue(np.array_equal(got[name], values), name)
        self.assertLess((self.outputs(model, inputs, "--steps", 2)["u"] == got["u"]).mean(), 0.01)


class SupportedTest(OnnxTest):
    def test_faults_of_several_kinds(self):
        node = helper.make_node
        model = self.model([node("ImageDecoder", ["x"], ["a"], name="decoder"),
                            node("Foo", ["a"], ["b"], domain="com.example", name="one"),
                            node("Foo", ["b"], ["c"], domain="com.example", name="two"),
                            node("Relu", ["c"], ["y"])],
                           [("x", TensorProto.UINT8, ["n"])], ["y"])
        done = self.run_heddle("inspect", model, "--supported")
        self.assertEqual(1, done.returncode)
        self.assertIn("operator ImageDecoder, opset 20, 1 place", done.stdout)
        self.assertIn("node 'one' (com.example.Foo), node 'two' (com.example.Foo)", done.stdout)
        self.assertEqual("not supported", done.stdout.splitlines()[-1])
        value = json.loads(self.run_heddle("inspect", model, "--supported", "--json", "-").stdout)
        self.assertEqual(["ImageDecoder", "com.example.Foo"],
                         [fault["what"] for fault in value["faults"]])
        self.assertEqual([1, 2], [fault["count"] for fault in value["faults"]])
        self.assertTrue(all(fault["way_out"] for fault in value["faults"]))
        self.assertFalse(value["supported"])

    def test_what_the_import_refuses(self):
        model = self.model([helper.make_node("MatMul", ["x", "x"], ["y"])], [("x", FLOAT, [3, 2])], ["y"])
        done = self.run_heddle("inspect", model, "--supported")
        self.assertEqual(1, done.returncode)
        self.assertIn("refused: ", done.stdout)

    def test_what_values_decide(self):
        model = self.model([helper.make_node("NonZero", ["x"], ["y"])], [("x", FLOAT, [3])], ["y"])
        done = self.ok("inspect", model, "--supported")
        self.assertIn("shapes depend on values that a run must provide: node #0 (NonZero", done.stdout)

    def test_a_model_that_is_supported(self):
        model = self.model([helper.make_node("Relu", ["x"], ["y"])], [("x", FLOAT, [3])], ["y"])
        done = self.ok("inspect", model, "--supported")
        self.assertEqual(["supported"], done.stdout.splitlines()[1:])
        self.assertIn("--supported is for ONNX models", self.fails(
            2, "inspect", self.file("a.hlo", "HloModule m\nENTRY e { ROOT x = f32[2] parameter(0) }\n"),
            "--supported"))


if __name__ == "__main__":
    unittest.main()
