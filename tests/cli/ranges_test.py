"""heddle profile --ranges and --grad-histogram, and what --ranges makes of --amp f16."""
import json
import random
import re
import sys
import unittest

from cli import ROOT, CliTest, write_npz

ROWS, WIDE, INNER = 256, 128, 256
TRAINING = ROOT / "tests" / "testdata" / "training"


def network(scale):
    """Two feed-forward layers with norms on both sides; the result of the first is `scale` times as large."""
    lines = []

    def norm(x, p):
        lines.append(f"""  {p}_sq = f32[{ROWS},{WIDE}] multiply({x}, {x})
  {p}_sum = f32[{ROWS}] reduce({p}_sq, zero), dimensions={{1}}, to_apply=sum
  {p}_r = f32[{ROWS}] rsqrt({p}_sum)
  {p}_b = f32[{ROWS},{WIDE}] broadcast({p}_r), dimensions={{0}}
  {p} = f32[{ROWS},{WIDE}] multiply({x}, {p}_b)""")
        return p

    def layer(x, p, scaled):
        read = norm(x, f"{p}_n")
        lines.append(f"""  {p}_u = f32[{WIDE},{INNER}] constant({{...}})
  {p}_v = f32[{INNER},{WIDE}] constant({{...}})
  {p}_h = f32[{ROWS},{INNER}] dot({read}, {p}_u), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  {p}_t = f32[{ROWS},{INNER}] tanh({p}_h)
  {p}_a = f32[{ROWS},{INNER}] multiply({p}_t, {'scales' if scaled else f'{p}_t'})
  {p}_o = f32[{ROWS},{WIDE}] dot({p}_a, {p}_v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}""")
        made = norm(f"{p}_o", f"{p}_m")
        lines.append(f"  {p} = f32[{ROWS},{WIDE}] add({x}, {made})")
        return p

    last = norm(layer(layer("x", "first", True), "second", False), "last")
    return f"""HloModule feed_forward
sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
ENTRY e {{
  x = f32[{ROWS},{WIDE}] parameter(0)
  zero = f32[] constant(0)
  scale = f32[] constant({scale})
  scales = f32[{ROWS},{INNER}] broadcast(scale), dimensions={{}}
""" + "\n".join(lines) + f"\n  ROOT y = f32[{ROWS},{WIDE}] tanh({last})\n}}\n"


class RangesTest(CliTest):
    def setUp(self):
        super().setUp()
        self.calib = str(self.folder / "calib.npz")
        samples, rng = 3, random.Random(1)
        values = [rng.uniform(-2, 2) for _ in range(samples * ROWS * WIDE)]
        write_npz(self.calib, arg0=("f", [samples * ROWS, WIDE], values))

    def model(self, scale):
        return self.file("ffn.hlo", network(scale))

    def seen(self, model, ranges):
        told = self.json("profile", model, "--random-constants", "--calib", self.calib, "--ranges", ranges)
        self.assertEqual((told["samples"], told["random"]), (3, False))
        return {value["value"].split()[0]: value for value in told["values"]}

    def overflowing(self):
        """A model whose value `first_o` is 66,246 at most, as in T5, its records, and their file."""
        ranges = self.folder / "ranges.json"
        most = self.seen(self.model(3), ranges)["first_o"]["most"]
        model = self.model(3 * 66246 / most)
        return model, self.seen(model, ranges), ranges

    def choices(self, model, *options, target="zen5"):
        told = self.json("explain", model, "--random-constants", "--target", target, *options)["mixed_precision"]
        return {choice["name"]: choice for choice in told["choices"] if choice["kind"] == "value"}

    def test_one_value_that_overflows_stays_f32_and_the_others_do_not(self):
        model, seen, ranges = self.overflowing()
        self.assertAlmostEqual(seen["first_o"]["most"], 66246, delta=1)
        self.assertEqual(seen["first_o"]["f16"], "overflows")
        self.assertEqual(seen["first_o"]["elements"], 3 * ROWS * WIDE)
        choices = self.choices(model, "--amp", "f16", "--ranges", ranges)
        self.assertEqual((choices["first_o"]["type"], choices["first_o"]["why"]), ("f32", "range"))
        for name, choice in choices.items():
            if name != "first_o":
                self.assertNotEqual(choice["why"], "range", name)
        self.assertTrue(any(choice["type"] == "f16" for choice in choices.values()), choices)
        without = self.choices(model, "--amp", "f16")
        self.assertFalse(any(choice["type"] == "f16" for choice in without.values()), without)

    def test_auto_goes_by_them_where_f16_is_the_fastest(self):
        """A processor that multiplies f16 faster than bf16."""
        file = json.loads((ROOT / "src" / "target" / "data" / "zen5.json").read_text())
        rates = next(value for value in file.values() if isinstance(value, dict) and "bf16" in value)
        rates["bf16"] = rates["f16"] / 2
        target = self.file("f16.json", json.dumps(file))
        model, _, ranges = self.overflowing()
        why = [self.choices(model, "--amp", "auto", *options, target=target)["second_o"]["why"]
               for options in ([], ["--ranges", ranges])]
        self.assertEqual(why[0], "range")
        self.assertNotEqual(why[1], "range")

    def test_results_are_near_f32(self):
        model, _, ranges = self.overflowing()
        rng = random.Random(2)
        write_npz(self.folder / "in.npz", arg0=("f", [ROWS, WIDE], [rng.uniform(-2, 2) for _ in range(ROWS * WIDE)]))
        check = ["check", model, "--random-constants", "--inputs", self.folder / "in.npz", "--amp", "f16",
                 "--target", "host", "--ranges"]
        out = self.ok(*check, ranges).stdout
        self.assertIn("of 0.9999", out)
        self.assertIn("PASS", out)
        if " 2 values in f16" not in out:
            return  # not every processor gains by the same values
        self.lie(ranges, self.folder / "lie.json")
        self.assertIn("FAIL", self.run_heddle(*check, self.folder / "lie.json").stdout)

    def lie(self, ranges, path):
        """The records without one that overflows."""
        file = json.loads(ranges.read_text())
        for value in file["values"]:
            if value["value"].startswith("first_o "):
                value.update(most=1.0, exponents=[[0, 1]])
        path.write_text(json.dumps(file))

    def test_the_same_samples_give_the_same_bytes(self):
        model = self.model(1)
        texts = []
        for threads in ["1", "2"]:
            path = self.folder / f"{threads}.json"
            self.ok("profile", model, "--random-constants", "--calib", self.calib, "--ranges", path, "--threads",
                    threads)
            texts.append(path.read_bytes())
        self.assertEqual(texts[0], texts[1])
        self.ok("profile", model, "--random-constants", "--calib", self.calib, "--ranges", path, "--samples", "1")
        self.assertEqual(json.loads(path.read_text())["samples"], 1)

    def test_another_file_is_another_program_in_the_cache(self):
        model, _, ranges = self.overflowing()
        compile = ["compile", model, "--random-constants", "--target", "zen5", "--amp", "f16", "--ranges", ranges,
                   "-o", self.folder / "a.heddle"]
        if "lacks" in self.run_heddle(*compile).stderr:
            self.skipTest("this machine cannot load programs for zen5")
        first = self.ok(*compile).stdout
        self.lie(ranges, ranges)
        second = self.ok(*compile).stdout
        numbers = [int(re.search(r"(\d+) values in f16", out)[1]) for out in (first, second)]
        self.assertEqual(numbers[1], numbers[0] + 1)

    def test_a_damaged_file_is_one_error_line(self):
        model, _, ranges = self.overflowing()
        text = ranges.read_text()
        for damaged in ["", "{}", text[:len(text) // 2], text.replace('"elements":', '"elements":-'),
                        text.replace('"schema":1', '"schema":9')]:
            path = self.file("damaged.json", damaged)
            line = self.fails(2, "explain", model, "--random-constants", "--amp", "f16", "--ranges", path)
            self.assertIn("--ranges", line)
            self.assertIn("heddle profile", line)
        self.assertIn("--ranges", self.fails(2, "explain", model, "--random-constants", "--ranges", "nowhere.json"))

    def test_a_file_of_another_model_is_noted(self):
        ranges = self.file("other.json", '{"schema":1,"kind":"ranges","values":[{"value":"q add f32[9]","elements":1,'
                                         '"not_finite":0,"most":1.0,"exponents":[[0,1]]}]}')
        out = self.ok("explain", self.model(1), "--random-constants", "--amp", "f16", "--ranges", ranges)
        self.assertIn("ranges: none of the 1 records is of a value here", out.stdout + out.stderr)

    def test_gradients_have_a_scale_that_suits_them(self):
        step = TRAINING / "transformer_step"
        options = [f"{step}.hlo", "--inputs", f"{step}.inputs.npz", "--grad-histogram"]
        told = self.json("profile", *options)["gradient_histogram"]
        self.assertGreater(len(told["gradients"]), 20)
        for one in told["gradients"]:
            self.assertTrue(one["input"].startswith("arg"))
            self.assertGreaterEqual(65504, one["most"] * one["most_scale"])
            self.assertLess(65504, 2 * one["most"] * one["most_scale"])
        every = told["all"]
        self.assertGreater(every["best_scale"], 1)
        self.assertLessEqual(every["at_best"]["flushed"] + every["at_best"]["small"],
                             every["at_1"]["flushed"] + every["at_1"]["small"])
        self.assertIn("least is lost at scale 2^", self.ok("profile", *options).stdout)

    def test_wrong_uses_are_errors(self):
        model = self.model(1)
        self.assertIn("is not a training step",
                      self.fails(2, "profile", model, "--random-constants", "--grad-histogram"))
        self.assertIn("--calib: only with", self.fails(2, "profile", model, "--calib", self.calib))
        self.assertIn("no time is measured", self.fails(2, "profile", model, "--ranges", self.folder / "r.json",
                                                        "--iterations", "3"))
        self.assertIn("--samples 0", self.fails(2, "profile", model, "--ranges", self.folder / "r.json",
                                                "--samples", "0"))


if __name__ == "__main__":
    sys.exit(unittest.main())
