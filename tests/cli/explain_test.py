"""heddle explain: edges with codes and times, the page; fusing as XLA does; target files."""
import json
import sys
import unittest

from cli import MODELS, CliTest

SOFTMAX = """HloModule softmax
larger {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[64,96] parameter(0)
  w = f32[96,96] parameter(1)
  least = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[64] reduce(x, least), dimensions={1}, to_apply=larger
  mm = f32[64,96] broadcast(m), dimensions={0}
  t = f32[64,96] subtract(x, mm)
  p = f32[64,96] exponential(t)
  s = f32[64] reduce(p, zero), dimensions={1}, to_apply=sum
  ss = f32[64,96] broadcast(s), dimensions={0}
  y = f32[64,96] divide(p, ss)
  ROOT o = f32[64,96] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


class ExplainTest(CliTest):
    def model(self):
        path = self.folder / "softmax.hlo"
        path.write_text(SOFTMAX)
        return path

    def document(self, page):
        return json.loads(page.read_text().split('id="data">')[1].split("</script>")[0])

    def test_edges_have_a_code_and_a_cost(self):
        value = self.json("explain", self.model(), "--target", "avx2", "--fuse", "greedy")
        self.assertEqual(len(value["edges"]), 1)
        edge = value["edges"][0]
        self.assertEqual(edge["bytes"], 64 * 96 * 4)
        self.assertTrue(edge["code"] and edge["reason"])
        self.assertGreater(edge["ns"], 0)
        for kernel in value["kernels"]:
            self.assertGreater(kernel["predicted_ns"], 0)

    def test_the_memory_plan_is_drawn(self):
        model, page = MODELS / "minilm" / "model.onnx", self.folder / "page.html"
        text = self.ok("explain", model, "--html", page).stdout
        plan = text[text.index("\nmemory: "):]
        self.assertEqual(12, plan.count("|\n"))  # rows of the map
        self.assertIn("at the peak, command", plan)
        memory = self.json("explain", model)["memory_bytes"]
        plan = self.document(page)["memory"]
        # Each value lies inside of the plan; together they reach its top.
        self.assertGreater(len(plan["buffers"]), 10)
        for value in plan["buffers"]:
            self.assertGreaterEqual(value["offset"], 0)
            self.assertLessEqual(value["first"], value["last"])
        self.assertEqual(plan["bytes"], max(value["offset"] + value["bytes"] for value in plan["buffers"]))
        self.assertLess(memory["temporaries"] - plan["bytes"], 64)  # a whole number of cache lines

    def test_xla_fuses_less(self):
        kernels = {}
        for mode in ["off", "xla", "greedy", "stitch"]:
            kernels[mode] = len(self.json("explain", self.model(), "--fuse", mode)["order"])
            self.ok("check", self.model(), "--fuse", mode)
        self.assertLess(kernels["xla"], kernels["off"])
        self.assertLess(kernels["greedy"], kernels["xla"])
        self.assertLessEqual(kernels["stitch"], kernels["greedy"])

    def test_the_page_stands_alone(self):
        page = self.folder / "page.html"
        times = self.folder / "times.json"
        self.ok("profile", self.model(), "--iterations", "1", "--json", times)
        self.ok("explain", self.model(), "--html", page, "--profile", times)
        text = page.read_text()
        self.assertIn("<svg", text)
        self.assertIn("default-src 'none'", text)
        for outside in ["src=", "href=", "@import", "url("]:
            self.assertNotIn(outside, text)
        commands = self.document(page)["commands"]
        self.assertGreaterEqual(len(commands), 1)
        self.assertTrue(all(command["ms"] > 0 for command in commands))
        self.assertIn("cannot be opened", self.fails(2, "explain", self.model(), "--profile",
                                                     self.folder / "missing.json"))
        for wrong in ["[1", '{"kernels": 1}', '{"kernels": [1]}', '{"kernels": [{"commands": 1}]}',
                      '{"kernels": [{"kernel": "k", "commands": "x", "ms": 1}]}',
                      '{"kernels": [{"kernel": 3, "commands": 1, "ms": 1}]}']:
            self.assertIn("wanted what heddle profile --json writes", self.fails(
                2, "explain", self.model(), "--profile", self.file("wrong.json", wrong)))

    def test_targets_that_are_not_here(self):
        # No code is made for a target by name: neither the machine nor its assembler is needed.
        for target in ["zen5", "sm_90"]:
            value = self.json("explain", self.model(), "--target", target)
            self.assertEqual(target, value["target"])
            self.assertGreaterEqual(value["launches"], 1)
            self.assertNotIn("load", value["steps_ms"])
            for kernel in value["kernels"]:
                self.assertIn(f'target "{target}"', kernel["text"])
                self.assertTrue(kernel["places"])
                self.assertGreater(kernel["predicted_ns"], 0)
            stitched = self.ok("explain", self.model(), "--target", target,
                              "--stop-after", "stitch")
            self.assertIn(value["kernels"][0]["text"], stitched.stdout)
        value = self.json("explain", self.model(), "--device", "virtual:sm_90")
        self.assertEqual("sm_90", value["target"])
        self.assertGreater(value["host"]["copies_to_device"], 0)
        self.assertIn("patterns refused", self.ok("explain", self.model(), "--device",
                                                  "virtual:sm_90", "--all").stdout)

    # Of each kernel: LLVM's text, assembly and object, also where the cache has the program.
    def test_kernels_are_dumped_as_code(self):
        for _ in range(2):
            folder = self.folder / "dump"
            self.ok("run", self.model(), "--dump", folder)
            kernels = sorted(folder.glob("4-*.kernel"))
            self.assertTrue(kernels)
            texts = sorted(folder.glob("4-*.ll"))
            self.assertTrue(texts)
            for text in texts:
                self.assertIn(text.with_suffix(".kernel"), kernels)
                name = text.stem[2:]
                self.assertIn(f"@{name}_p0(", text.read_text())
                self.assertIn(f"{name}_p0:", text.with_suffix(".s").read_text())
                self.assertEqual(b"\x7fELF", text.with_suffix(".o").read_bytes()[:4])
                for made in [text, text.with_suffix(".s"), text.with_suffix(".o")]:
                    made.unlink()

    def test_target_files_are_read(self):
        target = self.json("doctor")["target"]
        target["clock_ghz"] = 1.25
        path = self.folder / "here.json"
        path.write_text(json.dumps(target))
        self.ok("check", MODELS / "minilm" / "model.onnx", "--dim", "sequence=8", "--target", path)
        path.write_text('{"name": "x", "cores": 0}')
        self.assertIn("cores", self.fails(2, "run", self.model(), "--target", path))
        self.assertIn("cannot be read", self.fails(2, "run", self.model(), "--target",
                                                   self.folder / "none.json"))


if __name__ == "__main__":
    sys.exit(unittest.main())
