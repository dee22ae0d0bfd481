"""What commands write with --json is what docs/reference/schemas say: no other key, no other type."""
import json
import sys
import unittest

import onnx_bytes
from cli import ADD, ROOT, CliTest

try:
    import jsonschema
except ImportError:
    jsonschema = None

TRAINED = ROOT / "tests" / "testdata" / "trained" / "transformer.onnx"
TRAINING = ROOT / "tests" / "testdata" / "trained" / "cnn_step.hlo"
CHECKS = ROOT / "tests" / "testdata" / "stablehlo" / "checks"


@unittest.skipIf(jsonschema is None, "jsonschema is not installed: script/bootstrap docs")
class SchemaTest(CliTest):
    def setUp(self):
        super().setUp()
        self.model = self.file("model.onnx", onnx_bytes.linear())
        self.add = self.file("add.hlo", ADD)

    def holds(self, *arguments, status=(0,)):
        done = self.run_heddle(*arguments, "--json", "-", timeout=120)
        self.assertIn(done.returncode, status, f"{arguments}: {done.stderr}{done.stdout}")
        told = json.loads(done.stdout)
        schema = json.loads((ROOT / "docs/reference/schemas" / f"{arguments[0]}.json").read_text())
        errors = [f"{'.'.join(map(str, error.absolute_path))}: {error.message}"
                  for error in jsonschema.Draft202012Validator(schema).iter_errors(told)]
        self.assertEqual([], errors, f"{arguments}: change docs/reference/json-keys.txt and run script/reference.py")
        return told

    def test_runs(self):
        self.holds("run", self.model)
        self.holds("run", self.model, "--steps", "3", "--async")
        self.holds("run", self.model, "--dim", "batch=1..3")
        self.holds("run", TRAINING, "--steps", "2", "--amp", "f16", "--loss-scale", "auto")
        self.holds("bench", self.model, "--iterations", "5")
        self.holds("bench", self.model, "--dim", "batch=1..2", "--duration", "0.01")
        self.holds("bench", self.model, "--clients", "2", "--iterations", "20")
        self.holds("bench", self.add, "--rate", "1000", "--iterations", "20")

    def test_comparisons(self):
        self.holds("check", self.model)
        self.holds("check", TRAINED, "--precision", "bf16", "--layers", status=(0, 1))  # by processor
        self.holds("conform", "stablehlo", CHECKS, "--device", "interp")
        self.holds("conform", "hlo", self.folder)

    def test_compilation(self):
        program, cuda = self.folder / "m.heddle", self.folder / "m.cu"
        self.holds("compile", self.model, "-o", program)
        self.holds("compile", self.model, "--emit", "cuda", "--target", "sm_90", "-o", cuda)
        for options in [[], ["--graph"], ["--buffers"]]:
            self.holds("inspect", self.model, *options)
        self.holds("inspect", self.model, "--supported")
        self.holds("inspect", program)
        self.holds("inspect", program, "--header")
        self.holds("explain", self.model, "--all", "--schedules")
        self.holds("explain", TRAINED, "--amp", "bf16")
        self.holds("opt", self.add, "--passes", "O2")
        self.holds("opt", self.add, "-o", self.folder / "out.hlo")
        self.assertGreater(len(self.holds("opt", "--list")["available"]), 40)
        self.assertEqual("", self.ok("opt", self.add, "--json", self.folder / "o.json", "-o", self.folder / "o.hlo").stdout)

    def test_measurements(self):
        self.holds("profile", self.model, "--iterations", "2")
        self.holds("profile", self.model, "--iterations", "2", "--breakdown")
        self.holds("profile", self.model, "--ranges", self.folder / "r.json", "--samples", "2")
        self.holds("profile", TRAINING, "--grad-histogram", "--samples", "1")
        self.holds("tune", self.model, "--budget", "2")
        self.holds("tune", self.model, "--list")
        self.holds("dryrun", self.model, "--device", "virtual:sm_90")
        self.holds("dryrun", self.model, "--device", "virtual:spr")

    def test_reports(self):
        page, check = self.folder / "page.html", self.folder / "check.json"
        self.holds("report", self.model, "-o", page)
        self.ok("check", TRAINED, "--json", check)
        self.holds("report", TRAINED, "-o", page, "--profile", "--check", check, "--amp", "bf16")
        self.holds("report", TRAINING, "-o", page, "--device", "virtual:sm_90")
        self.holds("report", self.model, "-o", page, "--target", "sm_90")

    def test_models(self):
        self.holds("quantize", TRAINED, "-o", self.folder / "q.onnx")
        self.holds("quantize", TRAINED, "-o", self.folder / "q4.onnx", "--weights", "int4", "--gptq")
        self.holds("advise", TRAINED)
        self.holds("reduce", self.add, "-o", self.folder / "small.hlo", "--test", "grep -q add {}", "--budget", "5")

    def test_the_machine(self):
        self.holds("doctor")
        self.holds("cache")
        self.holds("cache", "clear")
        told = json.loads(self.ok("completion", "json").stdout)
        schema = json.loads((ROOT / "docs/reference/schemas/completion.json").read_text())
        jsonschema.Draft202012Validator(schema).validate(told)


if __name__ == "__main__":
    sys.exit(unittest.main())
