"""heddle report: the document, what the page has of it, and wrong calls. The page in a browser: tests/page."""
import base64
import json
import os
import re
import sys
import unittest
import zlib

from cli import ADD, MODELS, CliTest

MINILM = MODELS / "minilm" / "model.onnx"


class ReportTest(CliTest):
    def report(self, *arguments, **options):
        """The document, that of the page, and the page's text."""
        page = self.folder / "page.html"
        document = self.json("report", *arguments, "-o", page, **options)
        text = page.read_text()
        return document, json.loads(text.split('id="data">')[1].split("</script>")[0]), text

    def test_the_document(self):
        document, shown, _ = self.report(MINILM, "--dim", "sequence=16", "--profile", "--iterations", "2")
        self.assertEqual(1, document["schema"])
        self.assertEqual(str(MINILM), document["model"]["path"])
        self.assertEqual({"batch": 1}, document["model"]["unbound"])
        self.assertEqual(["--dim", "sequence=16"], document["same_options"])
        self.assertEqual(["input_ids", "attention_mask"], [port["name"] for port in document["inputs"]])
        self.assertEqual(["embedding"], [port["name"] for port in document["outputs"]])
        commands = document["commands"]
        self.assertEqual(len(commands) - 1, document["outputs"][0]["maker"])
        for command in commands:
            self.assertGreater(command["ms"], 0)
            self.assertLess(command["layer"], len(document["layers"]))
            for key, list_name in [("nodes", "nodes"), ("weights", "weights")]:
                self.assertTrue(all(0 <= number < len(document[list_name]) for number in command[key]))
        for edge in document["edges"]:
            self.assertLess(edge["from"], edge["to"])
        # All that is between commands was judged, and every command but the last is read.
        self.assertTrue(all("code" in edge and edge["price_ns"] > 0 for edge in document["edges"]))
        self.assertEqual(set(range(len(commands) - 1)), {edge["from"] for edge in document["edges"]})
        told = self.json("explain", MINILM, "--dim", "sequence=16")
        self.assertEqual([c["name"] for c in told["commands"]], [c["name"] for c in commands])
        self.assertEqual([c["nodes"] for c in told["commands"]], [[document["nodes"][n] for n in c["nodes"]] for c in commands])
        self.assertEqual(2, document["measured"]["runs"])
        self.assertTrue(document["measured"]["spans"])
        self.assertEqual({k: v for k, v in document.items() if k not in ("texts",)},
                         {k: v for k, v in shown.items() if k != "text_pieces"})

    def test_code_and_diffs(self):
        document, shown, text = self.report(MINILM, "--dim", "sequence=16")
        texts = []
        for piece in re.findall(r'class="piece">([^<]*)</script>', text):
            texts += json.loads(zlib.decompress(base64.b64decode(piece)))
        self.assertEqual(document["texts"], texts)
        self.assertEqual(0, shown["text_pieces"][0])
        self.assertNotIn("measured", document)
        for kernel in document["kernels"]:
            self.assertEqual({"schedule", "places", "strategies", "stages", "kernel", "llvm", "assembly"}, set(kernel["code"]), kernel["label"])
            self.assertIn("define ", texts[kernel["code"]["llvm"]])
        # The changes of the passes one behind the other are the module that is compiled.
        changes = document["pass_changes"]
        for before, after in zip(changes, changes[1:]):
            if before["stage"] == after["stage"]:
                self.assertEqual(before["instructions"][1], after["instructions"][0])
        counts = {}
        for change in changes:
            counts[change["pass"]] = counts.get(change["pass"], 0) + 1
        self.assertEqual(counts, {p["pass"]: p["changes"] for p in document["passes"] if p["changes"] > 0})

    def test_equal_layers_are_repeats(self):
        sum_of = "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }"
        lines = ["HloModule layers", sum_of, "ENTRY e {", " x0 = f32[8,16] parameter(0)", " w = f32[16,16] parameter(1)", " zero = f32[] constant(0)"]
        for i in range(6):
            name = f'metadata={{op_name="net/layer.{i}/%s"}}'
            lines += [f" d{i} = f32[8,16] dot(x{i}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, {name % 'dot'}",
                      f" r{i} = f32[8] reduce(d{i}, zero), dimensions={{1}}, to_apply=sum, {name % 'sum'}",
                      f" b{i} = f32[8,16] broadcast(r{i}), dimensions={{0}}, {name % 'sum'}",
                      f" x{i + 1} = f32[8,16] divide(d{i}, b{i}), {name % 'sum'}"]
        model = self.file("layers.hlo", "\n".join([*lines, " ROOT y = f32[8,16] tanh(x6)", "}"]))
        document, _, _ = self.report(model, "--fuse", "greedy", "--disable", "reroll")
        self.assertEqual([f"net/layer.{i}" for i in range(6)], document["layers"][:6])
        self.assertEqual(1, len(document["repeats"]))
        repeat = document["repeats"][0]
        self.assertGreaterEqual(repeat["count"], 5)
        layers = [document["commands"][repeat["first"] + i]["layer"] for i in range(repeat["period"] * repeat["count"])]
        self.assertEqual(repeat["count"], len(set(layers)))

    def test_a_target_that_is_not_here(self):
        document, _, _ = self.report(MINILM, "--target", "zen5")
        self.assertEqual("zen5", document["program"]["target"])
        self.assertGreater(document["roofs"]["gflops_per_s"], 0)
        self.assertIn("nothing is run for target zen5", self.fails(2, "report", MINILM, "-o", self.folder / "p.html", "--target", "zen5", "--profile"))

    def test_times_of_several_programs_are_not_shown_as_those_of_one(self):
        folder = MODELS.parent / "exports" / "speech_traced"
        document, _, _ = self.report(folder / "model.onnx", "--inputs", folder / "inputs_0.npz", "--profile", "--iterations", "1")
        self.assertNotIn("measured", document)
        self.assertIn("a run consists of several programs", document["notes"][-1])

    def test_a_saved_program(self):
        program = self.folder / "m.heddle"
        self.ok("compile", MINILM, "-o", program)
        document, _, _ = self.report(program, "--profile", "--iterations", "1")
        self.assertGreater(len(document["commands"]), 5)
        self.assertEqual([], document["pass_changes"])

    def test_what_check_found(self):
        found = self.folder / "c.json"
        self.ok("check", MINILM, "--json", found)
        document, _, _ = self.report(MINILM, "--check", found)
        told = json.loads(found.read_text())
        self.assertTrue(document["check"]["pass"])
        self.assertEqual([(o["name"], o["cosine"]) for o in told["outputs"]], [(o["name"], o["cosine"]) for o in document["check"]["outputs"]])
        for wrong in ["[1", "{}", '{"pass": 1, "outputs": []}', '{"pass": true, "outputs": [1]}', '{"pass": true, "outputs": [{"name": "y"}]}']:
            self.assertIn("wanted what heddle check --json writes", self.fails(2, "report", MINILM, "-o", self.folder / "p.html", "--check", self.file("wrong.json", wrong)))

    def test_wrong_calls(self):
        model, page = self.file("add.hlo", ADD), self.folder / "p.html"
        self.assertIn("-o F.html", self.fails(2, "report", model))
        self.assertIn("at least 1", self.fails(2, "report", model, "-o", page, "--iterations", "0"))
        self.assertIn("no such peer", self.fails(2, "report", model, "-o", page, "--vs", "nobody"))
        self.assertIn("the peers read ONNX", self.fails(2, "report", model, "-o", page, "--vs", "onnxruntime"))
        self.assertIn("makes no decisions", self.fails(2, "report", model, "-o", page, "--device", "interp"))
        self.assertIn("TMPDIR", self.fails(3, "report", model, "-o", page, env={"TMPDIR": "/no/such/folder"}))
        self.assertFalse(page.exists())

    def test_nothing_is_left_behind(self):
        model = self.file("add.hlo", ADD)
        temporary = self.folder / "tmp"
        temporary.mkdir()
        self.ok("report", model, "-o", self.folder / "p.html", "--profile", env={"TMPDIR": str(temporary)})
        self.ok("explain", model, "--html", self.folder / "e.html", env={"TMPDIR": str(temporary)})
        self.assertEqual([], os.listdir(temporary))
        stages = self.folder / "stages"
        self.ok("report", model, "-o", self.folder / "p.html", "--dump", stages)
        self.assertTrue(list(stages.glob("4-*.kernel")))


if __name__ == "__main__":
    sys.exit(unittest.main())
