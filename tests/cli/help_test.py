"""Help, completion from the same declarations, suggestions, --quiet and --verbose."""
import json
import os
import pty
import subprocess
import sys
import unittest

from cli import ADD, HEDDLE, CliTest


class HelpTest(CliTest):
    def test_help_is_short_and_help_all_has_every_option(self):
        described = json.loads(self.ok("completion", "json").stdout)["commands"]
        self.assertGreater(len(described), 15)
        for command in described:
            short = self.ok(command["name"], "--help").stdout
            everything = self.ok(command["name"], "--help-all").stdout
            self.assertTrue(short.startswith(f"heddle {command['name']}: {command['summary']}.\n"), short)
            self.assertLess(max(map(len, everything.splitlines())), 110, command["name"])
            rare = [option for option in command["options"] if option["rare"]]
            for option in command["options"]:
                for name in option["names"]:
                    self.assertIn(name, everything)
            if rare:
                self.assertIn(f"heddle {command['name']} --help-all shows {len(rare)} more options", short)
                self.assertNotIn(f"\n  {rare[-1]['names'][0]} ", short)
                self.assertLess(len(short.splitlines()), 75, command["name"])
            self.assertIn("--quiet", short)

    def test_all_commands_at_once(self):
        text = self.ok("--help-all").stdout
        for name in ["run", "bench", "doctor"]:
            self.assertIn(f"\nheddle {name}: ", text)
        self.assertIn("--keep-memory", text)
        self.assertNotIn("--keep-memory", self.ok("--help").stdout)

    def test_completion_and_manual_have_the_same_options_and_values(self):
        described = json.loads(self.ok("completion", "json").stdout)["commands"]
        pages = {shell: self.ok("completion", shell).stdout for shell in ["bash", "zsh", "fish", "man"]}
        for command in described:
            for option in command["options"]:
                for name in option["names"]:
                    self.assertIn(name, pages["bash"])
                    self.assertIn(name, pages["zsh"])
                    self.assertIn(name.lstrip("-"), pages["fish"])
                    self.assertIn(name.replace("-", "\\-"), pages["man"])
                if option["choices"]:
                    self.assertIn(" ".join(option["choices"]), pages["bash"])

    def test_suggestions(self):
        model = self.file("add.hlo", ADD)
        for arguments, meant in [
                (["rnu"], "run"), (["--hlep"], "--help"), (["run", model, "--thraeds", "2"], "--threads"),
                (["run", model, "--level", "fast"], None), (["run", model, "--fuse", "stich"], "stitch"),
                (["run", model, "--device", "cpuu"], "cpu"), (["run", model, "--device", "cdua"], "cuda"),
                (["run", model, "--precision", "bf61"], "bf16"), (["run", model, "--amp", "atuo"], "auto"),
                (["bench", model, "--vs", "onxruntime"], "onnxruntime"), (["completion", "bahs"], "bash"),
                (["run", model, "--target", "icelak"], "icelake"), (["run", model, "--disable", "algebriac"], "algebraic"),
                (["opt", model, "--passes", "algebriac"], "algebraic"), (["opt", model, "--emit", "stablhlo"], "stablehlo"),
                (["run", model, "--stop-after", "fues"], "fuse"), (["cache", "claer"], "clear"),
                (["conform", "stablhlo", "."], "stablehlo"), (["opt", model, "--disable", "algebriac"], "algebraic")]:
            error = self.fails(2, *arguments)
            if meant:
                self.assertIn(f"did you mean {meant}?", error)
            else:
                self.assertNotIn("did you mean", error)

    def test_types_by_the_names_that_others_use(self):
        model = self.file("add.hlo", ADD)
        for word, ours in [("fp32", "f32"), ("float32", "f32"), ("FP16", "f16"), ("half", "f16"), ("float16", "f16"),
                           ("bfloat16", "bf16")]:
            self.assertEqual(ours, self.json("run", model, "--precision", word)["precision"])
        self.ok("run", model, "--amp", "fp16")
        error = self.fails(2, "run", model, "--precision", "int8")
        self.assertIn("heddle quantize", error)
        self.assertIn("f32, bf16, f16", self.fails(2, "run", model, "--precision", "tf32"))

    def test_sizes(self):
        model = self.file("add.hlo", ADD)
        for size in ["4GiB", "512 MB", "1048576", "1.5gib"]:
            self.ok("run", model, "--memory-limit", size)
        self.assertIn("such as 1048576, 512MiB or 4GiB", self.fails(2, "run", model, "--memory-limit", "4 gallons"))


class MessagesTest(CliTest):
    def test_quiet_and_verbose(self):
        model = self.file("add.hlo", ADD)
        self.assertIn("import ", self.ok("run", model).stderr)
        quiet = self.ok("run", model, "--quiet")
        self.assertEqual("", quiet.stderr)
        self.assertIn("output out0", quiet.stdout)
        self.assertNotIn("note: ", self.ok("bench", model, "--iterations", "3", "--quiet").stdout)
        self.assertIn("log: ", self.ok("run", model, "--verbose").stderr)
        self.assertNotIn("log: ", self.ok("run", model).stderr)
        self.assertIn("choose one", self.fails(2, "run", model, "--quiet", "--verbose"))
        self.assertIn("cannot be opened", self.fails(2, "run", "nowhere.hlo", "--quiet"))

    def on_a_terminal(self, *arguments):
        """What is written to a terminal as standard error."""
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        child = subprocess.Popen([HEDDLE, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs,
                                 env={**os.environ, "HEDDLE_CACHE": str(self.folder / "cache")})
        os.close(theirs)
        text = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # closed
                break
            if not part:
                break
            text += part
        self.assertEqual(0, child.wait(60))
        return text

    def test_progress_of_a_measurement(self):
        model = self.file("add.hlo", ADD)
        self.assertIn(b"\r\x1b[K[", self.on_a_terminal("bench", model, "--duration", "1"))
        self.assertIn(b"\r\x1b[K[", self.on_a_terminal("bench", model, "--duration", "1", "--clients", "2"))
        self.assertIn(b"reference interpreter", self.on_a_terminal("check", model))
        self.assertEqual(b"", self.on_a_terminal("bench", model, "--duration", "0.6", "--quiet"))


class LoadTest(CliTest):
    def test_clients(self):
        load = self.json("bench", self.file("add.hlo", ADD), "--clients", "3", "--threads", "1", "--iterations", "300")["load"]
        self.assertEqual((3, 0, 300), (load["clients"], load["rate"], load["requests"]))
        self.assertAlmostEqual(load["requests"] / load["seconds"], load["throughput"], delta=load["throughput"] * 1e-6)
        self.assertLess(load["queue_ms"]["p90"], 1)

    def test_a_rate(self):
        model = self.file("add.hlo", ADD)
        told = self.json("bench", model, "--rate", "200", "--duration", "1", "--threads", "1")
        load = told["load"]
        self.assertEqual(200, load["rate"])
        self.assertGreater(load["requests"], 120)  # 200, of a Poisson process
        self.assertLess(load["requests"], 290)
        for key in ["median", "p99"]:
            self.assertGreaterEqual(load["total_ms"][key] + 1e-9, load["run_ms"][key])
        self.assertEqual(told["latency_ms"], load["run_ms"])
        text = self.ok("bench", model, "--rate", "500", "--iterations", "50", "--threads", "1").stdout
        self.assertIn("waiting in the queue", text)

    def test_more_than_can_be_served_waits(self):
        slow = self.file("slow.hlo", """HloModule slow
ENTRY main {
  x = f32[256,256] parameter(0)
  a = f32[256,256] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[256,256] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT c = f32[256,256] dot(b, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
""")
        load = self.json("bench", slow, "--rate", "20000", "--duration", "0.5", "--threads", "1")["load"]
        self.assertGreater(load["left"], 100)
        self.assertGreater(load["queue_ms"]["p99"], 10 * load["run_ms"]["median"])

    def test_wrong_numbers(self):
        model = self.file("add.hlo", ADD)
        for wrong in [["--clients", "0"], ["--clients", "1000"], ["--rate", "0"], ["--rate", "-1"], ["--rate", "nan"]]:
            self.assertIn(f"{wrong[0]} {wrong[1]}", self.fails(2, "bench", model, *wrong))


if __name__ == "__main__":
    sys.exit(unittest.main())
