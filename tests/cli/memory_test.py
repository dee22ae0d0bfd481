"""Memory of temporaries: the numbers that are reported, dynamic memory, the limit."""
import sys
import unittest

from cli import MODELS, CliTest

NETWORKS = ["minilm", "mobilenet", "resnet18", "unet", "densenet", "transformer", "dien", "crnn",
            "deepspeech2", "gpt2_cached"]


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


if __name__ == "__main__":
    sys.exit(unittest.main())
