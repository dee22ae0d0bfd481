"""The page of heddle quantize, in a browser: numbers, sorting, search, and names that look like markup. Needs
Chromium."""
import sys
import unittest

try:
    from onnx import load, save
except ImportError:
    load = None

from browser import BROWSER, driven
from cli import MODELS, CliTest

DRIVER = """
const cells = column => [...document.querySelectorAll('#layers tbody tr')].map(row => row.cells[column].textContent);
const heads = [...document.querySelectorAll('#layers th button')];
got.verdict = by('verdict').textContent;
got.summary = [...document.querySelectorAll('#summary dd')].map(e => e.textContent);
got.notes = document.querySelectorAll('#notes li').length;
got.names = cells(1);
got.bars = document.querySelectorAll('#bars button').length;
got.heights = [...document.querySelectorAll('#bars button')].map(e => parseFloat(e.style.height));
click(heads[8]);
got.least = cells(8);
got.sorted = [...document.querySelectorAll('#layers th')].map(e => e.getAttribute('aria-sort')).indexOf('ascending');
click(heads[8]);
got.most = cells(8);
got.times = [9, 10, 11].map(column => cells(column).filter(text => text !== '').length);
click(document.querySelector('#bar2'));
got.chosen = [...document.querySelectorAll('tr.chosen')].map(e => e.id);
by('search').value = got.names[1];
by('search').dispatchEvent(new Event('input'));
got.found = [...document.querySelectorAll('#layers tbody tr')].filter(row => !row.hidden).map(e => e.cells[1].textContent);
press('/');
got.focus = document.activeElement.id;
got.activations = by('activations').hidden ? 0 : document.querySelectorAll('#ranges tbody tr').length;
got.ranges = [...document.querySelectorAll('#ranges tbody tr')].map(row => [...row.querySelectorAll('.range span')]
  .map(e => parseFloat(e.style.left) + (parseFloat(e.style.width) || 0)));
got.alien = document.querySelectorAll('b, img').length;
"""
HOSTILE = '</script><b>"x"&amp;\' </b><img src=x onerror=alert(1)>\u2028'


@unittest.skipUnless(BROWSER, "no Chromium here")
class QuantizePageTest(CliTest):
    def page(self, model, *more):
        """The report, and what the browser found."""
        page = self.folder / "page.html"
        report = self.json("quantize", model, "-o", self.folder / "out.onnx", "--html", page, *more)
        return report, driven(self, page, DRIVER)

    def test_it_shows_the_report(self):
        report, got = self.page(MODELS / "outliers" / "model.onnx")
        names = [layer["name"] for layer in report["layers"]]
        self.assertEqual(got["names"], names)
        self.assertEqual(got["verdict"], "pass")
        text = "\n".join(got["summary"])
        for part in [f"{report['agreement']['cosine']:.6f}", f"{report['agreement']['sqnr_db']:.1f} dB",
                     f"{report['bytes'] / report['float_bytes']:.3f} of the", "8 random samples, 2 of them held out",
                     "int8, ranges by mse, symmetric", "7 int8", "6 layers smoothed"]:
            self.assertIn(part, text)
        self.assertEqual(got["notes"], len(report["notes"]))
        least = sorted(min(layer["weights_sqnr_db"], layer["input_sqnr_db"]) for layer in report["layers"])
        self.assertEqual(got["least"], [f"{x:.1f} dB" for x in least])
        self.assertEqual(got["most"], got["least"][::-1])
        self.assertEqual(got["sorted"], 8)
        self.assertEqual(got["bars"], 7)
        self.assertEqual(max(got["heights"]), 100)
        timed = [layer["time"] for layer in report["layers"]]
        for column, known in enumerate([sum(t["f32_ms"] > 0 for t in timed), sum(t["ms"] > 0 for t in timed)]):
            self.assertEqual(got["times"][column], known)
        self.assertEqual(got["times"][2], sum(t["f32_ms"] > 0 and t["ms"] > 0 for t in timed))
        self.assertIn("of no layer", text)
        self.assertEqual(got["chosen"], ["row2"])
        self.assertEqual(got["found"], [names[1]])
        self.assertEqual(got["focus"], "search")
        self.assertEqual(got["activations"], 4)  # values, which several layers read
        for ends in got["ranges"]:
            self.assertAlmostEqual(max(ends), 100, delta=0.1)

    def test_four_bits_and_what_stays_float(self):
        _, got = self.page(MODELS / "llama_block" / "model.onnx", "--weights", "int4", "--gptq", "--cosine", "0.9",
                           "--keep", "69")
        self.assertIn("6 by GPTQ", "\n".join(got["summary"]))
        self.assertIn("6 int4", "\n".join(got["summary"]))
        self.assertEqual(got["activations"], 0)
        self.assertEqual(got["least"][-1], "")

    @unittest.skipIf(load is None, "the package onnx is missing")
    def test_names_are_text(self):
        model = load(MODELS / "outliers" / "model.onnx")
        for node in model.graph.node:
            node.name = node.name and HOSTILE + node.name
            for names in [node.input, node.output]:
                for i, name in enumerate(names):
                    names[i] = HOSTILE + name if name == "norm1" else name
        path = self.folder / "<b>hostile<b>.onnx"
        save(model, path)
        report, got = self.page(path)
        self.assertEqual(got["alien"], 0)
        self.assertEqual(got["names"], [layer["name"] for layer in report["layers"]])
        self.assertTrue(got["names"][0].startswith(HOSTILE))


if __name__ == "__main__":
    sys.exit(unittest.main())
