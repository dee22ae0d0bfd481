"""heddle conform: hlo on made-up folders, and on XLA's own files where they are; onnx on our own
models, and on ONNX's backend tests where they are (HEDDLE_ONNX_TESTS names their folder)."""
import json
import os
import pathlib
import shutil
import sys
import unittest

from cli import ADD, LOOKUP, CliTest

OPERATORS = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "onnx_operators"
CONTRIB = OPERATORS.parent / "onnx_contrib"
ML = OPERATORS.parent / "onnx_ml"
ONNX_TESTS = pathlib.Path(os.environ.get("HEDDLE_ONNX_TESTS", "/nowhere"))
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
                 if line["outcome"] in ("mismatch", "error", "round trip", "crash",
                                     "timeout")]
        self.assertEqual([], wrong)
        self.assertEqual(0, done.returncode)
        self.assertEqual(217, value["files"])
        self.assertGreaterEqual(value["files_equal"], 180)

    # All of them in every way is script/conform_virtual.
    @unittest.skipUnless(CORPUS.is_dir(), "HEDDLE_CORPORA has no xla-hlo")
    def test_control_flow_and_aliases_on_virtual(self):
        wanted = ("if_conditional", "composite_call", "cholesky_expander", "rng_bit_generator_expander",
                  "host_offload", "vectorize_x4", "vectorize_x1_too_small", "strided",
                  "jax.issue.33666.linx.frag_0428.module_0002")
        for file in sorted(CORPUS.rglob("*.hlo")):
            if file.stem in wanted:
                shutil.copy(file, self.folder / file.name)
        for i, how in enumerate(("O0 dynamic", "O1 dynamic", "O1 static", "O2 static")):
            level, memory = how.split()
            value = self.json("conform", "hlo", self.folder, "--level", level, "--memory", memory,
                              "--device", f"virtual:host,streams={1 + i % 2 * 2},seed={i}")
            self.assertEqual({"equal": 26}, value["outcomes"], value["lines"])

    def test_onnx_operators(self):
        for device in ("cpu", "interp"):
            board = self.folder / "board.json"
            done = self.run_heddle("conform", "onnx", OPERATORS, "--device", device, "--json", board)
            value = json.loads(board.read_text())
            self.assertEqual([], [line for line in value["lines"] if line["outcome"] != "pass"])
            self.assertEqual("PASS", done.stdout.splitlines()[-1])
            self.assertEqual(0, done.returncode)
            self.assertGreaterEqual(value["tests"], 50)
            # Only of operators whose result's shape depends on values.
            late = {line["test"] for line in value["lines"] if line["late"]}
            self.assertEqual({"compress", "non_max_suppression", "non_zero", "shape_as_input",
                              "unique"}, late)

    def test_operators_of_onnx_runtime(self):
        board = self.folder / "board.json"
        done = self.run_heddle("conform", "onnx", CONTRIB, "--json", board)
        value = json.loads(board.read_text())
        self.assertEqual([], [line for line in value["lines"] if line["outcome"] != "pass"])
        self.assertEqual(0, done.returncode)
        self.assertGreaterEqual(value["tests"], 25)

    def test_trees_linear_models_and_strings(self):
        for device in ("cpu", "interp"):
            value = self.json("conform", "onnx", ML, "--device", device)
            self.assertEqual([], [line for line in value["lines"] if line["outcome"] != "pass"])
            self.assertGreaterEqual(value["tests"], 50)
            self.assertEqual([], [line["test"] for line in value["lines"] if line["late"]])

    def test_onnx_faults_are_lines_of_the_board(self):
        for name in ("hardmax", "det", "compress"):
            shutil.copytree(OPERATORS / name, self.folder / name)
        (self.folder / "det" / "model.onnx").write_bytes(b"\x08")
        model = self.folder / "compress" / "model.onnx"
        model.write_bytes(model.read_bytes().replace(b"Compress", b"Compriss"))
        data = self.folder / "hardmax" / "test_data_set_0"
        shutil.copy(data / "input_0.pb", data / "output_0.pb")
        board = self.folder / "board.json"
        done = self.run_heddle("conform", "onnx", self.folder, "--json", board)
        self.assertEqual(1, done.returncode)
        self.assertEqual("FAIL", done.stdout.splitlines()[-1])
        outcomes = {line["test"]: line["outcome"] for line in json.loads(board.read_text())["lines"]}
        self.assertEqual({"compress": "refused", "det": "unreadable", "hardmax": "mismatch"},
                         outcomes)

    @unittest.skipUnless(ONNX_TESTS.is_dir(), "HEDDLE_ONNX_TESTS is not set")
    def test_backend_tests_of_onnx(self):
        board = self.folder / "board.json"
        self.run_heddle("conform", "onnx", ONNX_TESTS, "--json", board, timeout=850)
        value = json.loads(board.read_text())
        hard = [line for line in value["lines"] if line["outcome"] in ("crash", "timeout")]
        self.assertEqual([], hard)
        self.assertGreaterEqual(value["tests_passed"], 0.95 * value["tests"])


if __name__ == "__main__":
    sys.exit(unittest.main())
