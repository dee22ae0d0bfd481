"""Products by instructions on tiles (AMX), which a stand-in executes where the processor has none: as the interpreter computes them."""
import json
import os
import pathlib
import random
import sys
import unittest

from cli import MODELS, ROOT, CliTest

BUILD = pathlib.Path(os.environ.get("HEDDLE_BUILD", ROOT / "build" / "release"))
STAND_IN = BUILD / "libtiles_stand_in.so"
TYPES = {"bf16": ("bf16", "f32"), "u8": ("s8", "s32")}


def convolution(kind, images, height, width, inputs, features, kernel, stride, pads, dilation, groups, labels, constant):
    """HLO text; `pads` before and behind, `labels` of the right side and the result."""
    right, sums = TYPES[kind]
    reach = (kernel - 1) * dilation + 1
    out = [(size + sum(pads) - reach) // stride + 1 for size in (height, width)]
    sides = {"0": kernel, "1": kernel, "i": inputs // groups, "o": features}
    result = {"b": images, "0": out[0], "1": out[1], "f": features}
    right_labels, result_labels = labels
    shape = ",".join(str(sides[c]) for c in right_labels)
    weights = "constant({...})" if constant else "parameter(1)"
    pad = f"{pads[0]}_{pads[1]}"
    return (f"HloModule m\nENTRY e {{\n  a = {kind}[{images},{height},{width},{inputs}] parameter(0)\n"
            f"  w = {right}[{shape}] {weights}\n"
            f"  ROOT d = {sums}[{','.join(str(result[c]) for c in result_labels)}] convolution(a, w), "
            f"window={{size={kernel}x{kernel} stride={stride}x{stride} pad={pad}x{pad} rhs_dilate={dilation}x{dilation}}}, "
            f"dim_labels=b01f_{right_labels}->{result_labels}, feature_group_count={groups}\n}}\n")


def product(kind, batch, rows, columns, k, right_along_k, constant, turned):
    right, sums = TYPES[kind]
    outer = f"{batch}," if batch > 1 else ""
    first = 1 if batch > 1 else 0
    w = f"{outer}{columns},{k}" if right_along_k else f"{outer}{k},{columns}"
    batches = "lhs_batch_dims={0}, rhs_batch_dims={0}, " if batch > 1 else ""
    weights = "constant({...})" if constant else "parameter(1)"
    text = (f"HloModule m\nENTRY e {{\n  a = {kind}[{outer}{rows},{k}] parameter(0)\n  w = {right}[{w}] {weights}\n"
            f"  {'' if turned else 'ROOT '}d = {sums}[{outer}{rows},{columns}] dot(a, w), {batches}"
            f"lhs_contracting_dims={{{first + 1}}}, rhs_contracting_dims={{{first + right_along_k}}}\n")
    if turned:
        order = "0,2,1" if batch > 1 else "1,0"
        text += f"  ROOT t = {sums}[{outer}{columns},{rows}] transpose(d), dimensions={{{order}}}\n"
    return text + "}\n"


class TilesTest(CliTest):
    def setUp(self):
        super().setUp()
        self.features = set(self.json("doctor")["features"])
        # The rest of the code is AVX-512, which nothing stands in for; so is what tiles leave over, in words of either type.
        self.kinds = [kind for kind, feature in (("bf16", "avx512bf16"), ("u8", "avx512vnni")) if feature in self.features]
        if not self.kinds:
            self.skipTest("this processor has no AVX-512 with words")
        self.environment = {} if "amx-tile" in self.features else {"LD_PRELOAD": str(STAND_IN)}
        target = json.loads((ROOT / "src" / "target" / "data" / "spr_amx.json").read_text())
        target["name"] = "tiles"
        target["features"] = [f for f in target["features"] if f in self.features or f.startswith("amx")]
        self.target = self.folder / "tiles.json"
        self.target.write_text(json.dumps(target))

    def check(self, model, *options):
        return self.ok("check", model, "--target", self.target, "--cache", "off", *options, env=self.environment).stdout

    def records(self, model, *options):
        text = self.ok("explain", model, "--target", self.target, *options, env=self.environment).stdout
        return [line for line in text.splitlines() if " tile tdp" in line]

    def check_text(self, text, tiles=True):
        path = self.folder / "m.hlo"
        path.write_text(text)
        with self.subTest(text=text):
            self.assertIn("PASS", self.check(path, "--random-constants"))
            if tiles:
                self.assertTrue(self.records(path, "--random-constants"))

    def test_products(self):
        for kind in self.kinds:
            for shape in [(1, 100, 70, 64), (1, 16, 32, 64), (12, 128, 64, 64), (3, 40, 40, 192), (1, 1500, 33, 64), (1, 17, 100, 3072),
                          (1, 47, 100, 6144), (1, 31, 5, 128)]:
                for right_along_k in (0, 1):
                    self.check_text(product(kind, *shape, right_along_k, False, False))
                if shape[0] == 1:
                    self.check_text(product(kind, *shape, 0, True, False))
                    self.check_text(product(kind, *shape, 0, True, True), tiles=False)

    def test_convolutions(self):
        plain, turned, moved = ("01io", "b01f"), ("01io", "bf01"), ("01oi", "b01f")
        for kind in self.kinds:
            for constant in (True, False):
                for shape in [(1, 14, 14, 64, 96, 3, 1, (1, 1), 1, 1), (2, 7, 7, 128, 64, 3, 1, (1, 1), 1, 1), (1, 28, 28, 64, 64, 3, 2, (1, 1), 1, 1),
                              (1, 20, 30, 64, 32, 5, 1, (2, 2), 1, 1), (1, 28, 28, 64, 40, 3, 1, (2, 2), 2, 1), (1, 14, 14, 128, 128, 3, 1, (1, 1), 1, 2),
                              (1, 9, 40, 64, 33, 3, 1, (0, 1), 1, 1), (2, 4, 8, 64, 16, 2, 1, (1, 1), 1, 1)]:
                    for labels in (plain, turned, moved):
                        self.check_text(convolution(kind, *shape, labels, constant), tiles=constant)
                for shape in [(1, 56, 56, 64, 64, 1, 2, (0, 0), 1, 1), (1, 20, 20, 64, 64, 3, 1, (0, 0), 1, 1), (1, 27, 27, 64, 40, 3, 2, (0, 1), 1, 1),
                              (1, 14, 14, 16, 64, 3, 1, (1, 1), 1, 1)]:
                    self.check_text(convolution(kind, *shape, plain, constant), tiles=False)

    def test_random_convolutions(self):
        draw = random.Random(5)
        for _ in range(40):
            kernel, stride, dilation = draw.choice([1, 2, 3, 5]), draw.choice([1, 1, 2, 3]), draw.choice([1, 1, 2])
            reach = (kernel - 1) * dilation + 1
            text = convolution(draw.choice(self.kinds), draw.choice([1, 2]), reach + draw.randrange(30), reach + draw.randrange(40), 64 * draw.choice([1, 2]),
                               draw.randrange(1, 100), kernel, stride, (draw.randrange(reach), draw.randrange(reach)), dilation, 1,
                               draw.choice([("01io", "b01f"), ("01oi", "bf01"), ("io01", "b01f")]), draw.random() < 0.6)
            self.check_text(text, tiles=False)

    def test_networks_in_bf16(self):
        for name in ["bert", "cnn", "conformer", "gpt2_prefill", "resnet50", "transformer", "unet", "vit"]:
            with self.subTest(model=name):
                self.assertIn("PASS", self.check(MODELS / name / "model.onnx", "--amp", "bf16"))

    def test_training_steps_in_bf16(self):
        for name in ["asr", "bert", "transformer"]:
            with self.subTest(step=name):
                step = ROOT / "tests" / "testdata" / "training" / f"{name}_step"
                out = self.check(f"{step}.hlo", "--inputs", f"{step}.inputs.npz", "--expected", f"{step}.expected.npz", "--amp", "bf16")
                self.assertIn("PASS", out)

    def test_a_program_for_tiles_is_refused_without_them(self):
        path = self.folder / "m.hlo"
        path.write_text(product(self.kinds[0], 1, 32, 32, 64, 0, True, False))
        program = self.folder / "m.heddle"
        self.ok("compile", path, "--random-constants", "--target", self.target, "-o", program, env=self.environment)
        self.assertRegex(self.fails(2, "run", program, env={"HEDDLE_ISA": "avx512"}), "this machine lacks .*amx-tile")


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
