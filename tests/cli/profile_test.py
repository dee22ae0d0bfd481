"""heddle profile: kernels, and the run in five numbers."""
import json
import sys
import unittest

from cli import ROOT, CliTest

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

PRODUCTS = """HloModule products
ENTRY e {
  x = f32[768,1024] parameter(0)
  w = f32[1024,1024] parameter(1)
  d = f32[768,1024] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[768,1024] tanh(d)
  ROOT y = f32[768,1024] dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
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

    def test_the_trace_has_named_rows_and_counters(self):
        """A worker that got no core in time has no row: once more, until it has."""
        model = self.folder / "products.hlo"
        model.write_text(PRODUCTS)
        trace = self.folder / "trace.json"
        for _ in range(20):
            self.ok("profile", model, "--iterations", "1", "--threads", "2", "--trace", trace)
            events = json.loads(trace.read_text())["traceEvents"]
            rows = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
            busy = {rows[event["tid"]] for event in events if event["ph"] == "X"}
            if "worker 1" in busy:
                break
        self.assertIn("worker 1", busy)
        self.assertGreaterEqual(len(busy), 2)
        self.assertEqual([event["args"]["name"] for event in events if event["name"] == "process_name"],
                         ["heddle"])
        commands = {event["name"] for event in events
                    if event["ph"] == "X" and rows[event["tid"]] != "worker 1"}
        worked = {event["name"] for event in events
                  if event["ph"] == "X" and rows[event["tid"]] == "worker 1"}
        self.assertLessEqual(worked, commands)
        live = [event["args"]["bytes"] for event in events
                if event["ph"] == "C" and event["name"] == "temporaries"]
        plan = self.json("explain", model, "--threads", "2")["memory_bytes"]["temporaries"]
        self.assertGreater(max(live), 0)
        self.assertLessEqual(max(live), plan)
        constants = {event["args"]["bytes"] for event in events
                     if event["ph"] == "C" and event["name"] == "constants"}
        self.assertEqual(len(constants), 1)

    def test_no_kernel_is_faster_than_its_roof(self):
        """The target promises a tenth of what this machine does."""
        slow = self.folder / "slow.json"
        text = (ROOT / "src" / "target" / "data" / "portable.json").read_text()
        file = json.loads(text)
        file.update(name="slow", clock_ghz=0.1, memory_bandwidth_bytes_per_ns=0.1,
                    memory_bandwidth_all_bytes_per_ns=0.1)
        slow.write_text(json.dumps(file))
        value = self.json("profile", self.model(), "--target", slow, "--iterations", "3")
        self.assertTrue(value["roofs"]["raised"])
        shares = [kernel["roofline"] for kernel in value["kernels"]]
        self.assertLessEqual(max(shares), 1)
        self.assertGreater(max(shares), 0.5)


if __name__ == "__main__":
    sys.exit(unittest.main())
