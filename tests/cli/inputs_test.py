"""Values and models that are given: what is missing, what is wrong, and where it stands."""
import sys
import unittest

from cli import ADD, MODELS, CliTest, npy, write_npz

MINILM = MODELS / "minilm" / "model.onnx"
ELIDED = """HloModule elided
ENTRY main {
  x = f32[4] parameter(0)
  w = f32[4] constant({...})
  ROOT z = f32[4] add(x, w)
}
"""


class ValuesTest(CliTest):
    def test_inputs_that_are_missing_are_listed(self):
        some = self.folder / "some.npz"
        write_npz(some, input_ids=("q", [1, 4], [1, 2, 3, 4]))
        for command in ["run", "bench", "check", "profile"]:
            error = self.fails(2, command, MINILM, "--inputs", some)
            self.assertIn("attention_mask s64[1,4]", error)
            self.assertIn("--random-rest", error)
        done = self.ok("run", MINILM, "--inputs", some, "--random-rest")
        self.assertIn("inputs: as given; random, seed 0", done.stdout)
        self.assertNotIn("random inputs", done.stdout.splitlines()[0])

    def test_no_input_at_all_is_told_first(self):
        model = self.file("add.hlo", ADD)
        for command in [["run"], ["check"], ["bench", "--iterations", 2],
                        ["profile", "--iterations", 1]]:
            first = self.ok(command[0], model, *command[1:], "--seed", 5).stdout.splitlines()[0]
            self.assertIn("random inputs, seed 5", first)

    def test_bench_says_what_was_not_bound(self):
        bench = ["bench", MINILM, "--iterations", 2]
        done = self.ok(*bench)
        self.assertRegex(done.stdout.splitlines()[0], r"; batch=1, sequence=1 \(not given\);")
        self.assertIn("warning: not given, so measured at 1: batch, sequence", done.stderr)
        self.assertEqual({"batch": 1, "sequence": 1}, self.json(*bench)["bound_dimensions"])
        value = self.json(*bench, "--dim", "sequence=8")
        self.assertEqual({"batch": 1}, value["bound_dimensions"])
        done = self.ok(*bench, "--dim", "sequence=8", "--dim", "batch=2")
        self.assertNotIn("not given", done.stdout + done.stderr)
        self.assertEqual({"batch": 1}, self.json("bench", MINILM, "--dim", "sequence=1..4:3")
                         ["bound_dimensions"])

    def test_a_fault_names_its_file_and_entry(self):
        wrong = self.folder / "wrong.npz"
        write_npz(wrong, input_ids=("q", [1, 4, 2], [1] * 8), attention_mask=("q", [1, 4], [1] * 4))
        error = self.fails(2, "run", MINILM, "--inputs", wrong)
        self.assertIn(f"--inputs {wrong}, entry input_ids: 3 dimensions, the input has 2", error)
        write_npz(wrong, input_idz=("q", [1, 4], [1] * 4))
        error = self.fails(2, "run", MINILM, "--inputs", wrong)
        self.assertIn(f"--inputs {wrong}, entry input_idz: the model has no such input", error)
        self.assertNotIn("--shape", error)
        error = self.fails(2, "run", MINILM, "--input", "input_ids=4xs64=1")
        self.assertIn("--input input_ids: 1 dimensions", error)
        model = self.file("add.hlo", ADD)
        write_npz(wrong, x=("f", [2, 2], [1] * 4), y=("f", [2, 3], [1] * 6))
        error = self.fails(2, "run", model, "--inputs", wrong)
        self.assertIn(f"--inputs {wrong}, entry x: got f32[2,2], wanted f32[2,3]", error)
        self.assertNotIn("--dim", error)
        self.assertIn("arg1 (y) f32[2,3]",
                      self.fails(2, "run", model, "--input", "x=2x3xf32=1"))
        self.assertIn("or F.npy", self.fails(2, "run", model, "--input", "x=x.npz"))

    def test_files_that_are_none(self):
        model = self.file("add.hlo", ADD)
        empty = self.folder / "empty.npz"
        write_npz(empty)
        self.assertIn("holds no arrays", self.fails(2, "run", model, "--inputs", empty))
        one = self.file("x.npy", npy("f", [2, 3], [1] * 6))
        self.assertIn(f"--input NAME={one}", self.fails(2, "run", model, "--inputs", one))
        self.assertIn("is not an npz file", self.fails(2, "run", model, "--inputs", model))

    def test_one_input_is_given_once(self):
        model = self.file("add.hlo", ADD)
        ones = ["--input", "x=2x3xf32=1", "--input", "y=2x3xf32=1"]
        self.assertIn("--input x: is given twice",
                      self.fails(2, "run", model, *ones, "--input", "x=2x3xf32=2"))
        self.assertIn("the same input",
                      self.fails(2, "run", model, *ones, "--input", "arg0=2x3xf32=2"))
        # --input wins over the file, by either name.
        values = self.folder / "in.npz"
        write_npz(values, x=("f", [2, 3], [5] * 6), y=("f", [2, 3], [5] * 6))
        done = self.ok("run", model, "--inputs", values, "--input", "arg0=2x3xf32=1")
        self.assertIn("6, 6, 6", done.stdout)


class ModelsTest(CliTest):
    def test_long_comments_before_a_model(self):
        model = self.file("commented.hlo", "// a comment\n" * 1000 + "/*" + "x" * 9000 + "*/" + ADD)
        self.assertIn("output out0", self.ok("run", model).stdout)
        self.assertIn("HloModule", self.ok("opt", model).stdout)
        self.assertEqual("HLO text", self.json("inspect", model, "--graph")["format"])
        board = self.json("conform", "hlo", self.folder)
        self.assertEqual({"equal": 1}, board["outcomes"])

    def test_deep_tuples(self):
        deep = "(" * 300 + "f32[]" + ")" * 300
        model = self.file("deep.hlo", f"""HloModule deep
ENTRY main {{
  x = {deep} parameter(0)
  ROOT y = {deep} copy(x)
}}
""")
        self.assertIn("output out0 f32[]", self.ok("run", model, timeout=60).stdout)

    def test_one_reader_for_all_commands(self):
        text = self.file("no_model.hlo", "nothing of the kind\n")
        for command in ["run", "opt", "inspect"]:
            self.assertIn("not a model", self.fails(2, command, text))
        board = self.run_heddle("conform", "hlo", self.folder, "--json", "-").stdout
        self.assertIn("not a model", board)

    def test_constants_without_values(self):
        model = self.file("elided.hlo", ELIDED)
        for command in ["run", "check", "bench", "explain", "inspect"]:
            error = self.fails(2, command, model)
            self.assertIn("constant w", error)
            self.assertIn("--random-constants", error)
        done = self.ok("run", model, "--random-constants")
        self.assertIn("note: constant w: the values are invented", done.stdout)
        self.assertIn("constant({...})", self.ok("opt", model).stdout)

    def test_several_modules_of_a_name(self):
        model = self.file("same.hlo", ADD + "\n// -----\n" + ADD + "\n// -----\n" + ELIDED)
        for command in ["run", "opt"]:
            self.assertIn("2 modules have this name",
                          self.fails(2, command, model, "--module", "addition"))
        self.assertIn("HloModule elided", self.ok("opt", model, "--module", "elided").stdout)

    def test_bounded_parameters_run_at_their_bound(self):
        model = self.file("bounded.hlo", """HloModule bounded
ENTRY main {
  x = f32[<=16,8] parameter(0)
  ROOT z = f32[<=16,8] negate(x)
}
""")
        note = "arg0: dimension 0 is bounded (<=16); it runs at its bound"
        self.assertIn("note: " + note, self.ok("run", model).stdout)
        self.assertIn(note, self.json("run", model)["notes"])
        # By a kernel, also from a file.
        program = self.folder / "bounded.heddle"
        self.assertIn("1 kernels,", self.ok("compile", model, "-o", program).stdout)
        self.ok("run", program)


if __name__ == "__main__":
    sys.exit(unittest.main())
