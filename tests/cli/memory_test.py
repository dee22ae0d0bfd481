"""Memory of temporaries: the numbers that are reported, dynamic memory, the limit."""
import sys
import unittest

from cli import MODELS, CliTest

NETWORKS = ["minilm", "mobilenet", "resnet18", "unet", "densenet", "transformer", "dien", "crnn",
            "deepspeech2", "gpt2_cached"]

ORDER = """HloModule order
ENTRY e {
  x = f32[16384,16384] parameter(0)
  y = f32[16384,16384] parameter(1)
  k1 = f32[16384,16384] reverse(x), dimensions={0}
  k2 = f32[16384,16384] reverse(y), dimensions={0}
  k3 = f32[16384,16384] dot(k1, k2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  k4 = f32[16384,16384] reverse(x), dimensions={1}
  k5 = f32[16384,16384] reverse(y), dimensions={1}
  k6 = f32[16384,16384] dot(k4, k5), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[16384,16384] dot(k3, k6), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


class MemoryTest(CliTest):
    def numbers(self, name, *options):
        return self.json("explain", MODELS / name / "model.onnx", *options)["memory_bytes"]

    def test_plans_of_networks_are_optimal(self):
        for name in NETWORKS:
            with self.subTest(network=name):
                memory = self.numbers(name)
                self.assertTrue(memory["temporaries_optimal"], memory)
                self.assertLessEqual(memory["temporaries_lower_bound"], memory["temporaries"])
                self.assertEqual(memory["temporaries"], memory["temporaries_pool_peak"])
                self.assertLessEqual(memory["temporaries"], memory["temporaries_unshared"])

    def test_dynamic_memory_holds_what_lives(self):
        static, dynamic = self.numbers("minilm"), self.numbers("minilm", "--memory", "dynamic")
        self.assertEqual(dynamic["temporaries"], dynamic["temporaries_pool_peak"])
        self.assertLess(dynamic["temporaries"], dynamic["temporaries_unshared"] // 2)
        # Nothing is made in place there.
        self.assertGreaterEqual(dynamic["temporaries"], static["temporaries"])

    def test_limit_is_kept_or_an_error_before_the_run(self):
        model = MODELS / "minilm" / "model.onnx"
        need = self.numbers("minilm")["temporaries"]
        self.ok("run", model, "--memory-limit", str(need))
        refused = self.fails(3, "run", model, "--memory-limit", str(need // 2))
        self.assertIn("--memory-limit", refused)
        self.assertIn(str(need // 2), refused)
        need = self.numbers("minilm", "--memory", "dynamic")["temporaries"]
        self.ok("run", model, "--memory", "dynamic", "--memory-limit", str(need))
        refused = self.fails(3, "run", model, "--memory", "dynamic", "--memory-limit",
                             str(need - 64))
        self.assertIn("--memory-limit", refused)


    # k1, k2 -> k3 and k4, k5 -> k6, all of 1 GiB, and what reads k3 and k6 at the end.
    def test_order(self):
        model = self.file("order.hlo", ORDER)
        where = ["--device", "virtual:avx2", "--fuse", "off", "--level", "O0"]

        def planned(*options):
            return self.json("dryrun", model, *where, *options)
        peaks = {"bfs": 5, "dfs": 4, "list": 4, "beam": 4, "cheapest": 4, "module": 4}
        for order, gib in peaks.items():
            run = planned("--order", order)
            self.assertEqual(gib << 30, run["memory_bytes"]["temporaries"], order)
            self.assertIn(f"order={order}", run["options"])
            self.assertEqual(["k1", "k2", "k4", "k5", "k3", "k6", "r"] == [
                command["name"] for command in run["commands"]], order == "bfs")
        # A limit is met by another order, unless one was asked for; or it is an error.
        need = 4 << 30
        planned("--memory-limit", str(need))
        refused = self.fails(3, "dryrun", model, *where, "--order", "bfs", "--memory-limit",
                             str(need))
        self.assertIn("leave out --order", refused)
        self.assertNotIn("leave out", self.fails(3, "dryrun", model, *where, "--memory-limit",
                                                 str(need - 1)))


if __name__ == "__main__":
    sys.exit(unittest.main())
