"""The page of heddle explain, in a browser: every control has its effect. Needs Chromium."""
import sys
import unittest

from browser import BROWSER, driven
from cli import MODELS, CliTest

DRIVER = """
const by = id => document.getElementById(id);
const width = () => +document.querySelector('#graph svg').getAttribute('width');
const memoryBefore = document.querySelector('#memory svg').getAttribute('height');
got.nodes = data.nodes.length;
got.boxes = document.querySelectorAll('#graph .node').length;
got.lines = document.querySelectorAll('#graph path').length;
got.edges = data.edges.length;
got.overviewRows = document.querySelectorAll('#panel tr[data-number]').length;
got.widths = [width()];
for (const id of ['in', 'out', 'out', 'all']) { click(by(id)); got.widths.push(width()); }
got.fits = document.querySelector('#graph svg').getAttribute('height') <= by('graph').clientHeight + 1;
for (const key of ['+', '-']) { press(key); got.widths.push(width()); }
got.memoryUnchanged = memoryBefore === document.querySelector('#memory svg').getAttribute('height');
got.memoryOpen = [by('memory').open];
click(document.querySelector('#memory summary'));
got.memoryOpen.push(by('memory').open);
click(document.querySelector('#n1'));
got.chosen = [...document.querySelectorAll('.node.chosen')].map(e => e.id);
got.title = panel.querySelector('h2').textContent;
got.name = data.nodes[1].name;
got.hash = location.hash;
got.names = [...panel.querySelectorAll('ul.names li')].map(e => e.textContent);
const neighbour = panel.querySelector('tr[data-number]');
got.neighbour = neighbour ? +neighbour.dataset.number : -1;
if (neighbour) click(neighbour);
got.followed = [...document.querySelectorAll('.node.chosen')].map(e => e.id);
click(by('overview'));
got.afterOverview = document.querySelectorAll('.node.chosen').length;
click(document.querySelector('#panel tr[data-number]'));
got.fromTable = document.querySelectorAll('.node.chosen').length;
press('Escape');
got.afterEscape = document.querySelectorAll('.node.chosen').length;
by('search').value = data.nodes[0].name;
by('search').dispatchEvent(new Event('input'));
got.faded = document.querySelectorAll('.node.faded').length;
by('search').value = '';
by('search').dispatchEvent(new Event('input'));
got.unfaded = document.querySelectorAll('.node.faded').length;
by('n0').dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
got.byKeyboard = [...document.querySelectorAll('.node.chosen')].map(e => e.id);
"""


@unittest.skipUnless(BROWSER, "no Chromium here")
class PageTest(CliTest):
    def test_every_control_has_its_effect(self):
        page = self.folder / "page.html"
        model = MODELS / "minilm" / "model.onnx"
        self.ok("explain", model, "--html", page)
        got = driven(self, page, DRIVER)
        self.assertGreater(got["nodes"], 5)
        self.assertEqual(got["nodes"], got["boxes"])
        self.assertEqual(got["edges"], got["lines"])
        self.assertEqual(min(got["nodes"], 25), got["overviewRows"])
        first, larger, same, smaller, fit, plus, minus = got["widths"]
        self.assertGreater(larger, first)
        self.assertAlmostEqual(same, first, delta=1)
        self.assertLess(smaller, first)
        self.assertNotEqual(fit, smaller)
        self.assertTrue(got["fits"])
        self.assertGreater(plus, fit)
        self.assertAlmostEqual(minus, fit, delta=1)
        self.assertTrue(got["memoryUnchanged"])
        self.assertEqual([False, True], got["memoryOpen"])
        self.assertEqual(["n1"], got["chosen"])
        self.assertEqual(got["name"], got["title"])
        self.assertEqual("#1", got["hash"])
        self.assertEqual(list(self.json("explain", model)["commands"][1]["nodes"]), got["names"])
        self.assertGreaterEqual(got["neighbour"], 0)
        self.assertEqual([f"n{got['neighbour']}"], got["followed"])
        self.assertEqual(0, got["afterOverview"])
        self.assertEqual(1, got["fromTable"])
        self.assertEqual(0, got["afterEscape"])
        self.assertGreater(got["faded"], 0)
        self.assertLess(got["faded"], got["nodes"])
        self.assertEqual(0, got["unfaded"])
        self.assertEqual(["n0"], got["byKeyboard"])


if __name__ == "__main__":
    sys.exit(unittest.main())
