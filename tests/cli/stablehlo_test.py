"""StableHLO, text and bytecode, through the command: run, opt, check, conform, and files that are wrong."""
import json
import os
import pathlib
import sys
import unittest

from cli import CliTest, read_npz

MODELS = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "stablehlo"
CORPORA = pathlib.Path(os.environ.get("HEDDLE_CORPORA", "/nowhere"))

ADD = """module @add {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<3xf32>) -> (tensor<2x3xf32> {jax.result_info = ""}) {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
}
"""
TEST = """func.func @{name}() {{
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = stablehlo.add %0, %0 : tensor<2xf32>
  check.expect_eq_const %1, dense<[2.0, {want}]> : tensor<2xf32>
  func.return
}}
"""


class StablehloTest(CliTest):
    def test_run_and_names(self):
        model = self.file("add.mlir", ADD)
        done = self.ok("run", model, "--input", "arg0=2x3xf32=1 2 3 4 5 6", "--input", "arg1=3xf32=10 20 30",
                       "--outputs", self.folder / "out.npz")
        self.assertNotIn("assertions", done.stdout)
        self.assertEqual({"out0": ([2, 3], [11, 22, 33, 14, 25, 36])}, read_npz(self.folder / "out.npz"))
        self.ok("check", model)
        self.ok("inspect", model)
        self.ok("explain", model)
        self.ok("compile", model, "-o", self.folder / "add.heddle")
        self.ok("run", self.folder / "add.heddle")

    def test_assertions_decide_the_exit_status(self):
        good = self.file("good.mlir", TEST.format(name="good", want="4.0"))
        done = self.ok("run", good)
        self.assertIn("assertions: 1, all hold", done.stdout)
        self.assertTrue(self.json("run", good)["assertions_hold"])
        bad = self.file("bad.mlir", TEST.format(name="bad", want="5.0"))
        for device in ("cpu", "interp"):
            done = self.run_heddle("run", bad, "--device", device)
            self.assertEqual(1, done.returncode)
            self.assertIn("check.expect_eq_const at 4:3: 1 of 2 elements differ; element 1 is 4, wanted 5",
                          done.stdout)

    def test_several_modules(self):
        both = self.file("both.mlir", TEST.format(name="first", want="4.0") + "\n// -----\n\n" +
                         TEST.format(name="second", want="4.5"))
        self.assertIn("--module NAME: first, second", self.fails(2, "run", both))
        self.ok("run", both, "--module", "first")
        self.assertEqual(1, self.run_heddle("run", both, "--module", "second").returncode)
        printed = self.ok("opt", both).stdout
        self.assertEqual(2, printed.count("HloModule"))
        again = self.file("both.hlo", printed)
        self.assertEqual(printed, self.ok("opt", again).stdout)
        self.assertEqual(1, self.ok("opt", both, "--module", "second").stdout.count("HloModule"))

    def test_models_of_jax(self):
        for name in ("control", "indexing", "network_gradient", "polymorphic", "sharded", "special"):
            self.ok("check", MODELS / f"{name}.mlir", "--inputs", MODELS / f"{name}.inputs.npz",
                    "--expected", MODELS / f"{name}.outputs.npz", "--rtol", "2e-5", "--atol", "1e-5")

    def test_bytecode(self):
        folder = MODELS / "bytecode"
        for name in ("control", "indexing", "network_gradient", "polymorphic", "sharded", "special"):
            for version in ("0.9.0", "1.17.0"):
                file = folder / f"{name}.{version}.mlir.bc"
                self.ok("check", file, "--inputs", MODELS / f"{name}.inputs.npz",
                        "--expected", MODELS / f"{name}.outputs.npz", "--rtol", "2e-5", "--atol", "1e-5")
                self.assertEqual(self.ok("opt", MODELS / f"{name}.mlir").stdout, self.ok("opt", file).stdout)
        self.assertIn("StableHLO bytecode", self.ok("inspect", folder / "control.1.0.0.mlir.bc").stdout)
        self.assertIn("30 runs", self.ok("conform", "stablehlo", folder).stdout)
        damaged = self.file("damaged.mlir.bc", "")
        pathlib.Path(damaged).write_bytes((folder / "control.1.0.0.mlir.bc").read_bytes()[:200])
        self.assertIn(f"error: {damaged}: the file, byte 52: the section of offsets has 154 bytes, 148 are left",
                      self.fails(2, "run", damaged))

    def test_dimensions_are_bound(self):
        model = MODELS / "polymorphic.mlir"
        done = self.ok("run", model, "--shape", "arg0=3x8")
        self.assertIn("out0 f32[9]", done.stdout)
        self.assertIn("'arg0[0]' bound to 1", self.ok("run", model).stdout)
        self.assertIn("Expected value >= 1", self.fails(2, "run", model, "--shape", "arg0=0x8"))

    def test_errors_have_a_place(self):
        broken = self.file("broken.mlir", ADD.replace("stablehlo.add %arg0", "stablehlo.add %arg7"))
        self.assertIn(f"error: {broken}:4:24: value %arg7 is not defined", self.fails(2, "run", broken))
        refused = self.file("refused.mlir", ADD.replace("stablehlo.add %arg0, %0", "stablehlo.frobnicate %arg0"))
        self.assertIn(f"error: {refused}:4:5: stablehlo.frobnicate: this operation is not supported",
                      self.fails(2, "opt", refused))
        self.assertIn("--dim", self.fails(2, "run", MODELS / "polymorphic.mlir", "--dim", "rows=2<=8"))

    def test_board(self):
        self.file("good.mlir", TEST.format(name="good", want="4.0") + "// -----\n" + ADD)
        self.file("broken.mlir", "func.func @f() { oops }\n")
        self.file("refused.mlir", TEST.format(name="r", want="4.0").replace("stablehlo.add", "stablehlo.cholesky"))
        self.file("empty.mlir", "// only this\n")
        self.file("other.txt", "junk")
        done = self.ok("conform", "stablehlo", self.folder)
        self.assertEqual("PASS", done.stdout.splitlines()[-1])
        value = self.json("conform", "stablehlo", self.folder)
        self.assertEqual({"pass": 1, "runs": 1, "unparsable": 1, "refused": 1, "no module": 1}, value["outcomes"])
        self.file("wrong.mlir", TEST.format(name="wrong", want="4.5"))
        done = self.run_heddle("conform", "stablehlo", self.folder)
        self.assertEqual(1, done.returncode)
        self.assertIn("mismatch", done.stdout)
        self.assertEqual("FAIL", done.stdout.splitlines()[-1])

    def test_a_board_of_what_is_disabled(self):
        self.file("wrong.mlir", "// RUN-DISABLED(inaccurate)\n" + TEST.format(name="wrong", want="4.5"))
        self.file("good.mlir", TEST.format(name="good", want="4.0"))
        value = self.json("conform", "stablehlo", self.folder)
        self.assertEqual({"pass": 1, "disabled": 1}, value["outcomes"])

    def board(self, name, *options):
        path = self.folder / "board.json"
        self.run_heddle("conform", "stablehlo", CORPORA / name, "--json", path, "--cache", "off", *options,
                        timeout=850)
        return json.loads(path.read_text())["outcomes"]

    @unittest.skipUnless((CORPORA / "stablehlo-interpret").is_dir(), "HEDDLE_CORPORA has no stablehlo-interpret")
    def test_files_of_the_reference_interpreter(self):
        outcomes = self.board("stablehlo-interpret")
        self.assertGreaterEqual(outcomes["pass"], 513)
        self.assertGreaterEqual(outcomes["pass"] + outcomes["runs"], 521)
        self.assertNotIn("mismatch", outcomes)

    @unittest.skipUnless((CORPORA / "stablehlo-testdata").is_dir(), "HEDDLE_CORPORA has no stablehlo-testdata")
    def test_files_of_jax_operators(self):
        outcomes = self.board("stablehlo-testdata", "--numerics", "strict")
        self.assertGreaterEqual(outcomes["pass"], 1284)
        self.assertGreaterEqual(outcomes["runs"], 181)
        self.assertLessEqual(outcomes["mismatch"], 5)
        self.assertNotIn("crash", outcomes)


if __name__ == "__main__":
    sys.exit(unittest.main())
