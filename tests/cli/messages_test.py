"""What the command says of mistakes, of names with control characters, of waiting and of Ctrl-C."""
import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

from cli import ADD, HEDDLE, MODELS, CliTest

MINILM = MODELS / "minilm" / "model.onnx"


class OptionTest(CliTest):
    def test_faults_name_the_option_what_it_got_and_what_it_wants(self):
        model = self.file("add.hlo", ADD)
        for arguments, said in [
                (["bench", model, "--batch", "4"], "unknown option --batch;"),
                (["bench", model, "--iteratoins", "4"],
                 "unknown option --iteratoins; did you mean --iterations?"),
                (["run", model, "--jsn=-"], "unknown option --jsn; did you mean --json?"),
                (["run", model, "-level", "O2"], "unknown option -level; did you mean --level?"),
                (["compile", model, "-p", "x"], "unknown option -p;"),
                (["run", model, "more", "yet"], "unexpected argument more: heddle run takes MODEL"),
                (["run"], "heddle run: MODEL is missing"),
                (["run", model, "--json"], "--json: wanted F after it, got nothing"),
                (["run", model, "--json", "--threads", "2"],
                 "--json: wanted F after it, got --threads"),
                (["run", model, "--threads", "many"], "--threads many: wanted a whole number"),
                (["check", model, "--rtol", "1e-x"], "--rtol 1e-x: wanted a number"),
                (["run", model, "--memory-limit", "4GiX"],
                 "--memory-limit 4GiX: wanted a number of bytes"),
                (["run", model, "--level", "O9"], "--level O9: wanted one of O0, O1, O2"),
                (["run", model, "--fuse", "stich"], "did you mean stitch?"),
                (["run", model, "--level", "O1", "--level", "O2"], "--level O2: the option is given twice"),
                (["run", model, "--async=yes"], "takes no value"),
                (["benhc", model], "unknown command; did you mean bench?"),
                (["--versoin"], "did you mean --version?"),
                (["conform", "onxn", "x"], "did you mean onnx?"),
                (["tune", model, "--stop-after", "fuse"], "does not produce a program"),
                (["advise", model, "--stop-after", "fuse"], "does not produce a program"),
                (["dryrun", model], "dryrun needs --device virtual:NAME, NAME one of"),
        ]:
            error = self.fails(2, *arguments)
            self.assertIn(said, error, arguments)

    def test_words_are_taken_as_they_are_known(self):
        model = self.file("add.hlo", ADD)
        value = self.json("run", model, "--level", "o1", "--fuse", "OFF", "--precision", "FP32",
                          "--memory-limit", "4GiB")
        self.assertEqual(("O1", "f32"), (value["level"], value["precision"]))
        self.ok("run", model, "--precision", "float32", "--memory-limit", "512 MB")
        self.ok("run", model, "--json=-", "--seed=3")
        done = self.ok("compile", model, "-o" + str(self.folder / "a.heddle"))
        self.assertIn("a.heddle", done.stdout)


class WordsTest(CliTest):
    def test_numbers_say_what_they_are(self):
        shown = self.ok("inspect", MINILM).stdout
        for words in ["launches 1, ", "minimum traffic ", "without reuse "]:
            self.assertIn(words, shown)
        self.assertIn("weight preparation", self.ok("explain", MINILM).stdout)
        shown = self.ok("profile", MINILM, "--breakdown", "--iterations", "1").stdout
        self.assertIn("wall time of one run", shown)
        shown = " ".join(self.ok("run", "--help-all").stdout.split())
        for words in ["limit for temporary buffers", "seed of the random inputs (default: 0)"]:
            self.assertIn(words, shown)

    def test_a_note_says_what_was_done_and_where_it_is_described(self):
        model = self.file("softmax.hlo", """HloModule softmax
larger { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b) }
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY main {
  x = f32[64,256] parameter(0)
  low = f32[] constant(-inf)
  m = f32[64] reduce(x, low), dimensions={1}, to_apply=larger
  mb = f32[64,256] broadcast(m), dimensions={0}
  d = f32[64,256] subtract(x, mb)
  e = f32[64,256] exponential(d)
  zero = f32[] constant(0)
  s = f32[64] reduce(e, zero), dimensions={1}, to_apply=sum
  sb = f32[64,256] broadcast(s), dimensions={0}
  ROOT y = f32[64,256] divide(e, sb)
}
""")
        self.assertIn("note: fast_forms: softmax multiplies by a reciprocal instead of dividing "
                      "(docs/numerics.md#fast-forms)\n", self.ok("run", model).stdout)

    def test_what_no_memory_holds_is_refused_at_once(self):
        model = self.file("large.hlo", """HloModule large
ENTRY main {
  x = f32[] parameter(0)
  ROOT y = f32[1099511627776] broadcast(x), dimensions={}
}
""")
        for command in ["run", "check", "bench"]:
            begin = time.monotonic()
            self.assertIn("out0", self.fails(3, command, model))
            self.assertLess(time.monotonic() - begin, 8)


class PlainTextTest(CliTest):
    def plain(self, done):
        for text in (done.stdout, done.stderr):
            self.assertFalse([c for c in text if c < " " and c not in "\n\t" or c == "\x7f"], text)

    def test_names_of_a_file_do_not_reach_the_terminal_raw(self):
        name = "in\x1b[2J\x07put"
        text = ADD.replace("add(x, y)", f'add(x, y), metadata={{op_name="{name}\x7f"}}')
        model = self.file("evil.hlo", text)
        for command in ["opt", "run", "inspect", "explain"]:
            self.plain(self.ok(command, model))
        self.plain(self.ok("run", model, "--stop-after", "import"))
        once = self.ok("opt", model).stdout
        self.assertIn("in\\033[2J\\007put\\177", once)
        self.assertEqual(once, self.ok("opt", self.file("again.hlo", once)).stdout)
        data = MINILM.read_bytes()
        for old in [b"input_ids", b"embedding"]:
            evil = self.file("evil.onnx", data.replace(old, b"\x1b[2J\x07" + b"x" * (len(old) - 5)))
            for command in [["run"], ["inspect"], ["bench", "--iterations", "1"], ["check"],
                            ["profile", "--iterations", "1"], ["explain"]]:
                self.plain(self.ok(command[0], evil, *command[1:]))
            done = self.run_heddle("run", evil, "--input", "y=f32=1")
            self.assertEqual(2, done.returncode)
            self.plain(done)
            self.json("run", evil)
        custom = ADD.replace("add(x, y)", f'custom-call(x, y), custom_call_target="{name}"')
        done = self.run_heddle("run", self.file("custom.hlo", custom))
        self.assertEqual(2, done.returncode)
        self.plain(done)


class WaitTest(CliTest):
    def test_tuning_records_that_are_no_file(self):
        model, cache = self.file("add.hlo", ADD), self.folder / "c"
        cache.mkdir(mode=0o700)
        os.mkfifo(cache / "tuning.db")
        for command in ["run", "tune"]:
            error = self.fails(3, command, model, "--cache", cache, timeout=20)
            self.assertIn("tuning.db is not a regular file", error)

    def test_pipes_where_files_are_wanted(self):
        model, pipe = self.file("add.hlo", ADD), self.folder / "pipe"
        os.mkfifo(pipe)
        for arguments in [["tune", model, "--import", pipe], ["tune", model, "--import", "/dev/zero"],
                          ["explain", model, "--profile", pipe],
                          ["run", model, "--device", f"plugin:{pipe}"]]:
            self.assertIn("not a regular file", self.fails(2, *arguments, timeout=20))

    def test_locked_tuning_records_are_told(self):
        model, cache = self.file("add.hlo", ADD), self.folder / "c"
        self.ok("tune", model, "--cache", cache)
        lock = sqlite3.connect(cache / "tuning.db", isolation_level=None)
        self.addCleanup(lock.close)
        lock.execute("BEGIN EXCLUSIVE")
        begin = time.monotonic()
        done = self.ok("run", model, "--cache", cache)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertIn("waiting for the tuning records", done.stderr)

    def test_a_cache_folder_with_too_long_a_name(self):
        model = self.file("add.hlo", ADD)
        for name in ["n" * 300, ("n" * 200 + "/") * 30]:
            self.fails(2, "run", model, "--cache", f"{self.folder}/{name}")

    def run_steps(self, *arguments, terminal=None):
        environment = {**os.environ, "HEDDLE_CACHE": str(self.folder / "cache")}
        return subprocess.Popen(
            [HEDDLE, "run", self.file("add.hlo", ADD), "--steps", "99999999999", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=terminal or subprocess.PIPE,
            env=environment, text=True)

    def test_ctrl_c_ends_many_steps(self):
        self.ok("run", self.file("add.hlo", ADD))  # the code is in the cache
        child = self.run_steps("--json", "-")
        said = child.stderr.readline()
        self.assertRegex(said, r"^note: 99999999999 steps take about \d+ (s|hours|days); Ctrl-C ends")
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
        self.assertEqual(0, child.returncode, err)
        self.assertIn("note: interrupted after ", err)
        self.assertGreater(json.loads(out)["steps"], 0)
        self.assertEqual([2, 3], json.loads(out)["outputs"][0]["shape"])

    def test_a_terminal_shows_how_far_it_is(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        child = self.run_steps(terminal=theirs)
        os.close(theirs)
        text, end = b"", time.monotonic() + 60
        while b"/99999999999" not in text and time.monotonic() < end:
            text += os.read(ours, 4096)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
        self.assertIn(b"\r\x1b[K[", text)
        self.assertIn(b"to go", text)


if __name__ == "__main__":
    sys.exit(unittest.main())
