"""heddle reduce: failures of every kind become small modules that fail in the same way."""
import json
import pathlib
import re
import subprocess
import sys
import unittest

from cli import ADD, CliTest, with_values

# Softmax behind a product, beside what has nothing to do with it.
MODEL = with_values("""HloModule tower, input_output_alias={ {1}: (2, {}, may-alias) }
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
most {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}
twice {
  x = f32[48,64] parameter(0)
  y = f32[48,64] tanh(x)
  ROOT z = f32[48,64] add(y, x)
}
step {
  s = (s32[], f32[48,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[48,64] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  w = f32[48,64] cosine(v)
  ROOT t = (s32[], f32[48,64]) tuple(j, w)
}
goes_on {
  s = (s32[], f32[48,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT p = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[48,32] parameter(0)
  w = f32[32,64] parameter(1)
  old = f32[48,64] parameter(2)
  bias = f32[64] constant({...})
  zero = f32[] constant(0)
  least = f32[] constant(-inf)
  start = s32[] constant(0)
  d = f32[48,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="d"}
  bb = f32[48,64] broadcast(bias), dimensions={1}
  e = f32[48,64] add(d, bb)
  c = f32[48,64] call(e), to_apply=twice
  init = (s32[], f32[48,64]) tuple(start, c)
  loop = (s32[], f32[48,64]) while(init), condition=goes_on, body=step
  l = f32[48,64] get-tuple-element(loop), index=1
  m = f32[48] reduce(l, least), dimensions={1}, to_apply=most
  mb = f32[48,64] broadcast(m), dimensions={0}
  n = f32[48,64] subtract(l, mb)
  p = f32[48,64] exponential(n)
  s = f32[48] reduce(p, zero), dimensions={1}, to_apply=sum
  sb = f32[48,64] broadcast(s), dimensions={0}
  q = f32[48,64] divide(p, sb)
  r = f32[48,64] multiply(old, q)
  ROOT out = (f32[48,64], f32[48,64]) tuple(q, r)
}
""")


def operators(text):
    """Names of the operators that do something."""
    found = re.findall(r"= (?:\([^=]*\)|\S+) ([a-z-]+)\(", text)
    return sorted(set(found) - {"parameter", "constant", "tuple", "get-tuple-element"})


class ReduceTest(CliTest):
    def reduce(self, model, *options):
        out = self.folder / "small.hlo"
        done = self.ok("reduce", model, "-o", out, *options, timeout=100)
        return done, out.read_text()

    def shown_status(self, text):
        """The exit status of the command in the second line of a reduced model."""
        from cli import HEDDLE
        command = text.splitlines()[1].removeprefix("// ")
        command = re.sub("^heddle ", f"{HEDDLE} ", command)
        return subprocess.run(command, shell=True, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                              env={"HEDDLE_CACHE": "off", "PATH": "/usr/bin:/bin"}).returncode

    def test_a_command_of_the_user(self):
        model = self.file("model.hlo", MODEL)
        done, text = self.reduce(model, "--test",
                                 "grep -q 'exponential(' {} && grep -q 'reduce(' {}")
        self.assertEqual({"exponential", "reduce"}, set(operators(text)) - {"add"})
        self.assertEqual(0, self.shown_status(text))
        self.assertIn("grep", done.stdout)
        self.assertIn("operators", done.stderr)  # progress
        self.assertNotIn("while", text)
        self.assertNotIn("op_name", text)
        self.assertNotIn("48", text.split("ENTRY")[1])  # extents shrink
        self.ok("check", self.folder / "small.hlo")  # still a module

    def test_what_stands_in_a_loop_is_found(self):
        model = self.file("model.hlo", MODEL)
        _, text = self.reduce(model, "--test", "grep -q 'cosine(' {}")
        self.assertEqual(["cosine"], operators(text))
        self.assertIn("f32[] cosine(", re.sub(r"\[1(,1)*\]", "[]", text))

    def test_wrong_results(self):
        model = self.file("model.hlo", MODEL)
        done, text = self.reduce(model, "--rtol", "0", "--atol", "0")
        self.assertIn("wrong: out0", done.stdout)
        self.assertLess(len(operators(text)), 5)
        self.assertEqual(1, self.shown_status(text))
        value = self.json("reduce", model, "-o", self.folder / "again.hlo", "--rtol", "0",
                          "--atol", "0")
        self.assertEqual("wrong", value["failure"]["kind"])
        self.assertLess(value["operators"]["after"], value["operators"]["before"])
        self.assertEqual(text.splitlines()[2:],
                         (self.folder / "again.hlo").read_text().splitlines()[2:])  # the same again

    def test_errors_stay_the_same_error(self):
        model = self.file("model.hlo", MODEL)
        done, text = self.reduce(model, "--memory-limit", "64", "--fuse", "off")
        self.assertIn("error: tower: temporaries need", done.stdout)
        self.assertIn("--memory-limit 64", text)
        self.assertIn(self.shown_status(text), [2, 3])
        self.assertLess(len(operators(text)), 6)

    def test_slow(self):
        model = self.file("add.hlo", ADD)
        done, _ = self.reduce(model, "--slower", "0.001", "--than", "--level O0", "--budget", "5")
        self.assertIn("times as long as with --level O0", done.stdout)

    def test_values_that_were_given_stay(self):
        model = self.file("add.hlo", ADD.replace("add(x, y)", "divide(x, y)"))
        given = ["--input", "arg1=2x3xf32=1 2 3 4 5 6", "--test", "grep -q '5, 6' {}"]
        self.assertIn("--random-rest", self.fails(2, "reduce", model, *given))
        done, text = self.reduce(model, "--random-rest", *given)
        self.assertIn("constant({ {1, 2, 3}, {4, 5, 6} })", text)
        self.assertEqual(1, len(operators(text)))  # the plainest that holds it

    def test_nothing_fails(self):
        model = self.file("add.hlo", ADD)
        self.assertIn("does not fail", self.fails(2, "reduce", model))
        self.assertIn("two questions", self.fails(2, "reduce", model, "--test", "true",
                                                  "--slower", "2"))
        self.assertIn("status 127", self.fails(2, "reduce", model, "--test", "no-such-command"))
        self.assertFalse(list(pathlib.Path(".").glob("reduced.hlo*")))

    def test_crashes_and_hangs_of_a_trial_are_no_success(self):
        model = self.file("model.hlo", MODEL)
        done = self.run_heddle("reduce", model, "--test", "sleep 100", "--trial-seconds", "0.2",
                               "-o", self.folder / "x.hlo", timeout=60)
        self.assertEqual(2, done.returncode)
        self.assertIn("does not fail", done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
