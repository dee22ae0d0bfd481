"""heddle tune: records that later compilations use, their text form, budgets, bad input."""
import os
import re
import signal
import subprocess
import sys
import unittest

from cli import HEDDLE, MODELS, CliTest, with_values


WIDTHS = with_values("""HloModule net
ENTRY e {
  x = f32[ROWS,96] parameter(0)
  w0 = f32[96,192] constant({...})
  w1 = f32[192,96] constant({...})
  d0 = f32[ROWS,192] dot(x, w0), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t0 = f32[ROWS,192] tanh(d0)
  ROOT d1 = f32[ROWS,96] dot(t0, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
""")


class TuneTest(CliTest):
    def tune(self, *options):
        return self.json("tune", MODELS / "minilm" / "model.onnx", "--dim", "sequence=8",
                         "--threads", "1", "--candidates", "3", *options)

    # By the rules alone, for a machine that need not be here.
    def test_candidates_are_listed(self):
        model = self.file("net.hlo", WIDTHS.replace("ROWS", "128"))
        value = self.json("tune", model, "--list", "--target", "spr", "--fuse", "greedy")
        shapes = {s["key"]: s for s in value["shapes"]}
        self.assertEqual(2, len([key for key in shapes if "128x" in key and "then" not in key]))
        for shape in shapes.values():
            self.assertGreater(shape["candidates"], 1)
            self.assertLessEqual(len(shape["records"]), shape["candidates"])
            self.assertEqual(len(shape["records"]), len(set(shape["records"])))
        few = self.json("tune", model, "--list", "--target", "spr", "--candidates", "3")
        for shape in few["shapes"]:
            self.assertLessEqual(len(shape["records"]), 3)
        text = self.ok("tune", model, "--list", "--target", "spr").stdout
        self.assertIn("(without tuning)", text)
        self.assertIn("CPU", self.fails(2, "tune", model, "--list", "--target", "sm_90"))

    def test_measures_once_and_keeps_records(self):
        first = self.tune("--export", self.folder / "records.txt")
        self.assertGreater(first["shapes"], 0)
        self.assertEqual(first["shapes"], first["measured"])
        self.assertEqual(0, first["left"])
        for task in first["tasks"]:
            self.assertFalse(task["known"])
            self.assertLessEqual(task["ns"], task["untuned_ns"])
            if " then " in task["key"]:  # products in a row
                self.assertIn(task["record"], ["chain", "apart"], task)
            else:
                self.assertTrue(task["record"].startswith("gemm "), task)
        again = self.tune()
        self.assertEqual(again["shapes"], again["known"])
        self.assertEqual(0, again["measured"])
        # The same numbers with records as without.
        self.ok("check", MODELS / "minilm" / "model.onnx", "--dim", "sequence=8")
        text = (self.folder / "records.txt").read_text()
        self.assertEqual(1 + first["shapes"], len(text.splitlines()))

    def test_records_travel_as_text(self):
        self.tune("--export", self.folder / "records.txt")
        elsewhere = ["--cache", self.folder / "elsewhere"]
        taken = self.tune("--import", self.folder / "records.txt", *elsewhere)
        self.assertEqual(taken["shapes"], taken["known"])

    def test_killed_in_between_goes_on(self):
        command = [HEDDLE, "tune", MODELS / "minilm" / "model.onnx", "--dim", "sequence=8",
                   "--threads", "1", "--candidates", "3"]
        environment = {**os.environ, "HEDDLE_CACHE": str(self.folder / "cache")}
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, env=environment)
        line = process.stderr.readline()  # the first task is measured and kept
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.assertTrue(re.match(r"1/\d+ ", line), line)
        again = self.tune()
        self.assertGreaterEqual(again["known"], 1)
        self.assertEqual(again["shapes"], again["known"] + again["measured"])
        self.assertEqual(0, again["left"])

    def test_samples_are_compiled_once(self):
        # Without chains, whose samples depend on what was found best of their products.
        first = self.tune("--fuse", "greedy")
        self.assertGreater(first["compiled"], 0)
        self.assertLessEqual(first["compiled"], first["samples"])
        self.assertGreaterEqual(max(task["candidates"] for task in first["tasks"]), 20)
        again = self.tune("--fuse", "greedy", "--again")
        self.assertEqual(first["samples"], again["samples"])
        self.assertEqual(0, again["compiled"])

    def test_same_widths_compile_nothing(self):
        def tune(rows):
            model = self.file(f"net{rows}.hlo", WIDTHS.replace("ROWS", str(rows)))
            return self.json("tune", model, "--threads", "1", "--candidates", "5", "--fuse", "greedy")
        first = tune(128)
        self.assertEqual(2, first["measured"])
        self.assertGreater(first["compiled"], 0)
        # Tiles that cut 128 rows may divide 192, and are other kernels then.
        whole = tune(192)
        self.assertLess(whole["compiled"], whole["samples"])
        other = tune(200)
        self.assertEqual(2, other["measured"])
        self.assertEqual(0, other["compiled"])
        # And records of rows that never ran themselves give the right numbers.
        self.ok("check", self.folder / "net192.hlo")

    def test_last_line_says_pass(self):
        done = self.ok("tune", MODELS / "minilm" / "model.onnx", "--dim", "sequence=8",
                       "--candidates", "2")
        self.assertTrue(done.stdout.splitlines()[-1].startswith("pass"), done.stdout)

    def test_bad_input(self):
        model = MODELS / "minilm" / "model.onnx"
        bad = self.file("bad.txt", "nothing\n")
        for options, words in [(["--budget", "0"], "at least 1"), (["--cache", "off"], "cache"),
                               (["--candidates", "0"], "1 to 1000"),
                               (["--import", bad], "line 1"),
                               (["--import", self.folder / "none"], "cannot be opened"),
                               (["--device", "interp"], "nothing to tune")]:
            self.assertIn(words, self.fails(2, "tune", model, "--dim", "sequence=8", *options))


if __name__ == "__main__":
    sys.exit(unittest.main())
