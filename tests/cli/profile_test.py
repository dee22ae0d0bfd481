"""heddle profile: kernels, and the run in five numbers."""
import sys
import unittest

from cli import CliTest

NET = """HloModule net
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[64,96] parameter(0)
  w = f32[96,80] parameter(1)
  zero = f32[] constant(0)
  d = f32[64,80] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[80] reduce(d, zero), dimensions={0}, to_apply=sum
  b = f32[64,80] broadcast(s), dimensions={1}
  y = f32[64,80] divide(d, b)
  ROOT o = f32[64,80] sort(y), dimensions={1}, to_apply=less
}
"""
LESS = """less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}
"""


class ProfileTest(CliTest):
    def model(self):
        path = self.folder / "net.hlo"
        path.write_text(NET.replace("sum {", LESS + "sum {", 1))
        return path

    def test_the_breakdown_adds_up(self):
        value = self.json("profile", self.model(), "--iterations", "3", "--threads", "1")
        parts = value["breakdown"]
        self.assertEqual(list(parts), ["cpu", "math", "mem", "cpy", "e2e"])
        kinds = [kernel["kind"] for kernel in value["kernels"]]
        self.assertEqual(parts["cpu"]["count"], kinds.count("host"))
        self.assertGreaterEqual(parts["math"]["count"], 1)
        self.assertGreaterEqual(parts["mem"]["count"], 1)
        self.assertEqual(sum(part["count"] for name, part in parts.items() if name != "e2e"),
                         parts["e2e"]["count"])
        self.assertEqual(parts["e2e"]["count"], sum(k["commands"] for k in value["kernels"]))
        self.assertGreater(parts["e2e"]["ms"], 0)
        self.assertEqual((value["iterations"], value["warmup_runs"]), (3, 3))

    def test_the_breakdown_is_printed(self):
        lines = self.ok("profile", self.model(), "--iterations", "1", "--breakdown").stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines[3:]], ["CPU", "Math", "Mem", "Cpy", "E2E"])


if __name__ == "__main__":
    sys.exit(unittest.main())
