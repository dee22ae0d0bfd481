"""heddle bench: its JSON, and peers in turn: a peer that is a script, and the real one."""
import os
import stat
import subprocess
import sys
import unittest

from cli import ADD, MODELS, CliTest

TIMES = {"median", "min", "mean", "p90", "p95", "p99", "max", "cv"}

# Speaks as peer.py does, whatever program it is given.
FAKE = """#!/bin/sh
echo "ready abacus 1.0"
while read word count; do
  line=
  i=0
  while [ $i -lt $count ]; do line="$line 1000000"; i=$((i+1)); done
  echo $line
done
"""


class BenchTest(CliTest):
    def script(self, name, text):
        path = self.file(name, text)
        os.chmod(path, stat.S_IRWXU)
        return path

    def check_schema(self, value):
        self.assertEqual(1, value["schema"])
        self.assertEqual(TIMES, set(value["latency_ms"]))
        for key in ["device", "isa", "level", "precision", "model"]:
            self.assertIsInstance(value[key], str, key)
        for key in ["threads", "iterations", "kernels", "launches", "flops", "min_bytes"]:
            self.assertIsInstance(value[key], int, key)
        for key in ["import_ms", "compile_ms", "first_run_ms"]:
            self.assertGreaterEqual(value[key], 0, key)
        self.assertIn(value["cache"], ("cold", "warm"))
        self.assertLessEqual({"constants", "inputs", "outputs", "temporaries",
                              "temporaries_lower_bound", "process_peak"},
                             set(value["memory_bytes"]))
        for time in value["latency_ms"].values():
            self.assertGreaterEqual(time, 0)
        latency = value["latency_ms"]
        ordered = [latency[key] for key in ["min", "median", "p90", "p95", "p99", "max"]]
        self.assertEqual(sorted(ordered), ordered)
        self.assertIsInstance(value["versus"], list)

    def test_schema(self):
        model = MODELS / "minilm" / "model.onnx"
        options = ["--dim", "sequence=8", "--iterations", "7", "--warmup", "1", "--threads", "1"]
        value = self.json("bench", model, *options)
        self.check_schema(value)
        self.assertEqual(7, value["iterations"])
        self.assertEqual(1, value["threads"])
        self.assertEqual("O2", value["level"])
        self.assertEqual("cold", value["cache"])
        self.assertEqual([], value["versus"])
        memory = value["memory_bytes"]
        self.assertGreater(memory["process_peak"], memory["constants"] + memory["temporaries"])
        self.assertGreaterEqual(memory["temporaries"], memory["temporaries_lower_bound"])
        self.assertEqual(2 * 8 * 8, memory["inputs"])
        again = self.json("bench", model, *options)
        self.assertEqual("warm", again["cache"])
        for key in ["kernels", "launches", "flops", "min_bytes"]:
            self.assertEqual(value[key], again[key])
            self.assertGreater(value[key], 0)

    def test_level_changes_the_program(self):
        model = MODELS / "minilm" / "model.onnx"
        o0, o2 = (self.json("bench", model, "--iterations", "2", "--level", level)
                  for level in ["O0", "O2"])
        self.assertGreater(o0["launches"], 2 * o2["launches"])

    def test_interpreter(self):
        value = self.json("bench", self.file("add.hlo", ADD), "--device", "interp",
                          "--iterations", "2")
        self.check_schema(value)
        self.assertEqual(0, value["kernels"])

    def test_text(self):
        done = self.ok("bench", self.file("add.hlo", ADD), "--duration", "0.2")
        for word in ["throughput:", "median", "p99", "kernels: 1, launches: 1", "process peak"]:
            self.assertIn(word, done.stdout)

    def test_a_peer_runs_in_turn(self):
        peer = self.script("abacus", FAKE)
        model = MODELS / "cnn" / "model.onnx"
        for options in [["--peer-python", peer], []]:
            value = self.json("bench", model, "--vs", "onnxruntime", "--duration", "0.2", *options,
                              env={"HEDDLE_PEER_PYTHON": peer})
            self.check_schema(value)
            (versus,) = value["versus"]
            self.assertEqual("abacus 1.0", versus["name"])
            self.assertEqual(TIMES, set(versus["latency_ms"]))
            self.assertEqual(1, versus["latency_ms"]["median"])
            ratio = versus["ratio"]
            self.assertLessEqual(ratio["min"], ratio["median"])
            self.assertLessEqual(ratio["median"], ratio["max"])
            # The peer's time over ours.
            self.assertGreater(ratio["max"] * value["latency_ms"]["max"], 0.9)

    def test_peers_that_fail(self):
        model = MODELS / "cnn" / "model.onnx"
        options = ["bench", model, "--vs", "onnxruntime", "--duration", "0.2", "--peer-python"]
        self.assertIn("cannot start", self.fails(2, *options, "/no/such/python"))
        mute = self.script("mute", "#!/bin/sh\nexit 0\n")
        self.assertIn("ended", self.fails(2, *options, mute))
        sad = self.script("sad", "#!/bin/sh\necho error no such engine\n")
        self.assertIn("no such engine", self.fails(2, *options, sad))
        short = self.script("short", "#!/bin/sh\necho ready x\nread a\necho 1 2 3\nread a\n")
        self.assertIn("answered", self.fails(2, *options, short))
        gone = self.script("gone", "#!/bin/sh\necho ready x\nread a\n")
        self.assertIn("ended", self.fails(2, *options, gone))

    def test_python_without_the_engine(self):
        # -S -I: no packages at all.
        bare = self.script("bare", f"#!/bin/sh\nexec {sys.executable} -S -I \"$@\"\n")
        text = self.fails(2, "bench", MODELS / "cnn" / "model.onnx", "--vs", "onnxruntime",
                          "--peer-python", bare)
        self.assertIn("cannot import", text)


def has_engine(name):
    return subprocess.run([sys.executable, "-c", f"import numpy, {name}"], capture_output=True,
                          check=False).returncode == 0


class EngineTest(CliTest):
    @unittest.skipUnless(has_engine("onnxruntime"), "no onnxruntime in this Python")
    def test_onnxruntime(self):
        self.check("onnxruntime")

    @unittest.skipUnless(has_engine("openvino"), "no openvino in this Python")
    def test_openvino(self):
        self.check("openvino")

    @unittest.skipUnless(has_engine("jax"), "no jax in this Python")
    def test_xla(self):
        self.check("xla", self.file("add.hlo", ADD))

    def check(self, engine, *more):
        models = [MODELS / name / "model.onnx" for name in ["bert", "gpt2_decode"]]
        for model in [*models, *more]:
            value = self.json("bench", model, "--vs", engine, "--duration",
                              "0.3", "--peer-python", sys.executable, "--threads", "1")
            (versus,) = value["versus"]
            self.assertTrue(versus["name"].startswith(engine + " "), versus["name"])
            self.assertGreater(versus["latency_ms"]["median"], 0)
            self.assertGreater(versus["ratio"]["median"], 0)


if __name__ == "__main__":
    sys.exit(unittest.main())
