"""heddle check: results that differ by roundings alone are right, and what was allowed is said."""
import json
import sys
import unittest

from cli import CliTest

SOFTMAX = """HloModule softmax
sum { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = f64[] add(a, b) }
max { a = f64[] parameter(0) b = f64[] parameter(1) ROOT r = f64[] maximum(a, b) }
ENTRY e {
  a = f64[64,96] parameter(0)
  b = f64[96,33] parameter(1)
  d = f64[64,33] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f64[] constant(100)
  cs = f64[64,33] broadcast(c), dimensions={}
  z = f64[64,33] multiply(d, cs)
  low = f64[] constant(-inf)
  m = f64[64] reduce(z, low), dimensions={1}, to_apply=max
  mb = f64[64,33] broadcast(m), dimensions={0}
  s = f64[64,33] subtract(z, mb)
  x = f64[64,33] exponential(s)
  zero = f64[] constant(0)
  t = f64[64] reduce(x, zero), dimensions={1}, to_apply=sum
  tb = f64[64,33] broadcast(t), dimensions={0}
  ROOT y = f64[64,33] divide(x, tb)
}
"""

CANCELS = """HloModule cancels
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }
ENTRY e {
  x = f32[4,48] parameter(0)
  q = f32[4,48] multiply(x, x)
  t = f32[4,48] tanh(q)
  s = f32[4,48] subtract(t, q)
  low = f32[] constant(-inf)
  ROOT m = f32[4] reduce(s, low), dimensions={1}, to_apply=max
}
"""


class CheckTest(CliTest):
    def check(self, text, *options):
        """The lines of the output, over several seeds."""
        model = self.file("model.hlo", text)
        lines = []
        for seed in range(6):
            done = self.ok("check", model, "--seed", seed, *options)
            self.assertTrue(done.stdout.endswith("PASS\n"))
            lines += [line for line in done.stdout.splitlines() if line.startswith("output ")]
        return lines

    def test_f64_that_amplifies_roundings_is_right(self):
        lines = self.check(SOFTMAX)
        widened = [line for line in lines if "widened from" in line]
        self.assertTrue(widened)
        for line in widened:
            self.assertIn("when its roundings change", line)

    def test_what_cancels_to_nothing_is_right(self):
        self.check(CANCELS, "--level", "O0", "--numerics", "strict")

    def test_a_plain_result_is_not_widened(self):
        model = self.file("model.hlo", CANCELS.replace("subtract(t, q)", "add(t, q)"))
        value = self.json("check", model)
        for output in value["outputs"]:
            self.assertNotIn("widened_by", output)


TWO = """HloModule two
ENTRY e {
  x = f32[64,256] parameter(0)
  w = f32[256,64] parameter(1)
  h = f32[64,256] tanh(x), metadata={op_name="first"}
  p = f32[64,64] dot(h, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="second"}
  n = f32[64,64] negate(p), metadata={op_name="third"}
  ROOT r = (f32[64,256], f32[64,64]) tuple(h, n)
}
"""


class LayersTest(CliTest):
    def need_bf16(self, model):
        if "amp: 1 products" not in self.ok("run", model, "--precision", "bf16").stdout:
            self.skipTest("no products of bf16 on this processor")

    def test_the_first_instruction_that_is_wrong_is_named(self):
        # Fewer bits in products are far outside of what f32 may lose.
        model = self.file("two.hlo", TWO)
        self.need_bf16(model)
        done = self.run_heddle("check", model, "--precision", "bf16", "--layers", "--json", self.folder / "told.json")
        self.assertEqual(1, done.returncode, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual("FAIL", lines[-1])
        self.assertRegex(lines[-2], r"^layers: the first that differs is p \(dot, of second\): p f32\[64,64\]: \d+ elements differ")
        told = json.loads((self.folder / "told.json").read_text())["layers"]
        self.assertEqual(["second"], told["first"]["nodes"])
        self.assertFalse(told["first"]["check"]["equal"])

    def test_where_all_are_right_that_is_said(self):
        model = self.file("two.hlo", TWO)
        self.assertNotIn("layers:", self.ok("check", model, "--layers").stdout)
        done = self.run_heddle("check", model, "--layers", "--rtol", "0")
        if done.returncode == 1:  # a last bit differs here
            self.assertIn("all 3 instructions are right where each is a result", done.stdout)
        error = self.fails(2, "check", model, "--layers", "--expected", "out.npz")
        self.assertIn("leave out --expected", error)

    def test_a_tolerance_for_one_output(self):
        model = self.file("two.hlo", TWO)
        self.need_bf16(model)
        strict = ["check", model, "--precision", "bf16"]
        self.assertEqual(1, self.run_heddle(*strict).returncode)
        self.ok(*strict, "--tolerance", "out1=0.1,0.2")
        told = json.loads(self.run_heddle(*strict, "--tolerance", "out0=0", "--json", "-").stdout)
        self.assertEqual([0, 0], [told["outputs"][0]["tolerance"][key] for key in ("absolute", "relative")])
        self.assertGreater(told["outputs"][1]["tolerance"]["relative"], 0)
        self.assertIn("did you mean out1?", self.fails(2, *strict, "--tolerance", "otu1=1"))
        for wrong in ["out1", "out1=", "out1=x", "out1=-1", "out1=1,2,3", "=1"]:
            self.assertIn(f"--tolerance {wrong}", self.fails(2, *strict, "--tolerance", wrong))


if __name__ == "__main__":
    sys.exit(unittest.main())
