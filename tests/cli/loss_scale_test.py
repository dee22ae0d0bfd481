"""heddle run --loss-scale: says what the scale is at, and stops where it cannot become smaller."""
import sys
import unittest

from cli import CliTest

STEP = """HloModule step, input_output_alias={ {0}: (0, {}, may-alias) }
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  weights = f32[2,2] parameter(0)
  x = f32[4,2] parameter(1)
  wanted = f32[4,2] parameter(2)
  y = f32[4,2] dot(x, weights), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = f32[4,2] subtract(y, wanted)
  squares = f32[4,2] multiply(d, d)
  zero = f32[] constant(0)
  loss = f32[] reduce(squares, zero), dimensions={0,1}, to_apply=sum
  g = f32[2,2] dot(x, d), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  rate = f32[] constant(0.125)
  rates = f32[2,2] broadcast(rate), dimensions={}
  s = f32[2,2] multiply(g, rates)
  n = f32[2,2] subtract(weights, s)
  ROOT r = (f32[2,2], f32[]) tuple(n, loss)
}
"""
GOOD = "wanted=4x2xf32=1 2 3 4 5 6 7 8"
BAD = "wanted=4x2xf32=1 2 3 inf 5 6 7 8"


class LossScaleTest(CliTest):
    def run_steps(self, values, steps):
        return ["run", self.file("step.hlo", STEP), "--loss-scale", "auto", "--steps", str(steps), "--input", values,
                "--random-rest"]

    def test_what_the_scale_is_at(self):
        good = self.json(*self.run_steps(GOOD, 3))["loss_scale"]
        self.assertEqual(good, {"scale": 32768, "good_steps": 3, "skipped_steps": 0, "skipped_now": 0, "bad_input": ""})
        bad = self.json(*self.run_steps(BAD, 3))["loss_scale"]
        self.assertEqual(bad, {"scale": 4096, "good_steps": 0, "skipped_steps": 3, "skipped_now": 3, "bad_input": "arg0"})
        self.assertIn("loss scale: 4096, 0 good steps since it changed, 3 skipped; not finite: the gradient of arg0",
                      self.ok(*self.run_steps(BAD, 3)).stdout)

    def test_it_stops_at_the_smallest(self):
        self.ok(*self.run_steps(BAD, 24))  # 2^15 to 2^-9
        self.assertIn("loss scale: 25 steps in a row changed nothing, down to the smallest scale, 1/1024; the first gradient "
                      "that is not finite is that of arg0", self.fails(2, *self.run_steps(BAD, 100)))


if __name__ == "__main__":
    sys.exit(unittest.main())
