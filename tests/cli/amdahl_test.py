"""Mixed precision and memory fusion multiply: products are 60 % of a program and memory-bound operators 40 %, each is
made some four times as fast. By the virtual clock of a target whose bf16 products are four times as fast as f32's:
1.8 times by the one, 1.4 to 1.5 by the other, about 4 by both (Amdahl's law; PAI's published case)."""
import json
import sys
import unittest

from cli import ROOT, CliTest

SIZE = 1024
CHAIN = ["add", "multiply", "xor"]  # of s32, which mixed precision leaves alone


def module(elements, products=True, memory=True):
    lines, results, types, parameters = [], [], [], 0
    if products:
        square = f"f32[{SIZE},{SIZE}]"
        lines += [f"x = {square} parameter(0)", f"w = {square} constant({{...}})", f"v = {square} constant({{...}})"]
        for name, left, right in [("y", "x", "w"), ("z", "y", "v")]:
            lines.append(f"{name} = {square} dot({left}, {right}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")
        results.append("z")
        types.append(square)
        parameters = 1
    if memory:
        array, last = f"s32[{elements}]", "a"
        lines.append(f"a = {array} parameter({parameters})")
        for number, name in enumerate(CHAIN):
            lines += [f"c{number} = s32[] constant({number + 5})",
                      f"b{number} = {array} broadcast(c{number}), dimensions={{}}",
                      f"r{number} = {array} {name}({last}, b{number})"]
            last = f"r{number}"
        results.append(last)
        types.append(array)
    lines.append(f"ROOT t = ({', '.join(types)}) tuple({', '.join(results)})")
    return "HloModule amdahl\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"


class AmdahlTest(CliTest):
    def setUp(self):
        super().setUp()
        target = json.loads((ROOT / "src/target/data/zen5.json").read_text())
        target["mac_rate"]["bf16"] = 4.0
        self.target = self.file("target.json", json.dumps(target))

    def ms(self, text, fuse, amp):
        model = self.file("amdahl.hlo", text)
        return json.loads(self.ok("dryrun", model, "--random-constants", "--device", f"virtual:{self.target}", "--fuse",
                                  fuse, "--amp", amp, "--json", "-").stdout)["predicted_ms"]

    def test_the_two_multiply(self):
        products = self.ms(module(0, memory=False), "off", "off")
        elements = 1 << 22  # as many as take two thirds of the products' time
        for _ in range(3):
            memory = self.ms(module(elements, products=False), "off", "off")
            elements = int(elements * products * 40 / 60 / memory) // 4096 * 4096
        by_type = products / self.ms(module(0, memory=False), "off", "auto")
        by_fusion = memory / self.ms(module(elements, products=False), "stitch", "off")
        self.assertGreater(by_type, 3.5)
        self.assertGreater(by_fusion, 3.0)
        whole = {(fuse, amp): self.ms(module(elements), fuse, amp) for fuse in ["off", "stitch"] for amp in ["off", "auto"]}
        gain = {cell: whole["off", "off"] / time for cell, time in whole.items()}
        print({f"fuse {fuse}, amp {amp}": round(value, 2) for (fuse, amp), value in gain.items()})
        for cell, wanted in {("off", "auto"): 1 / (0.4 + 0.6 / by_type), ("stitch", "off"): 1 / (0.6 + 0.4 / by_fusion),
                             ("stitch", "auto"): 1 / (0.6 / by_type + 0.4 / by_fusion)}.items():
            self.assertAlmostEqual(gain[cell] / wanted, 1, delta=0.06, msg=f"{cell}: {gain[cell]}, wanted {wanted}")
        self.assertGreater(gain["stitch", "auto"], 1.3 * gain["off", "auto"] * gain["stitch", "off"])


if __name__ == "__main__":
    sys.exit(unittest.main())
