"""The page of heddle explain, in a browser without anything else: its views, choosing, search. Needs Chromium;
tests/page asks for more."""
import sys
import unittest

from browser import BROWSER, driven
from cli import MODELS, CliTest

DRIVER = """
got.commands = data.commands.length;
got.edges = data.edges.length;
got.views = views.map(view => { click(by('tab-' + view)); return views.filter(other => !by(other).hidden).join(); });
got.keys = ['3', '1'].map(key => { press(key); return state.view; });
click(by('tab-graph'));
unfoldAll();
click(by('graph-unfold'));
got.boxes = +by('graph-drawing').dataset.boxes;
choose('command', 1);
got.title = by('details-title').textContent;
got.label = labelOf(commands[1]);
got.hash = location.hash;
got.names = [...document.querySelectorAll('#details .names')].at(-1).innerText.split('\\n').filter(Boolean);
press('Escape');
got.closed = by('details').hidden;
search(data.commands[0].name);
got.found = state.found.size;
search('');
got.theme = [0, 1, 2].map(() => { press('t'); return by('theme').dataset.theme; });
"""


@unittest.skipUnless(BROWSER, "no Chromium here")
class PageTest(CliTest):
    def test_views_and_what_is_chosen(self):
        page = self.folder / "page.html"
        model = MODELS / "minilm" / "model.onnx"
        self.ok("explain", model, "--html", page)
        got = driven(self, page, DRIVER)
        told = self.json("explain", model)
        self.assertEqual(len(told["commands"]), got["commands"])
        self.assertGreater(got["edges"], 5)
        self.assertEqual(["overview", "graph", "timeline", "memory", "roofline", "commands", "fusions", "passes", "numbers"], got["views"])
        self.assertEqual(["timeline", "overview"], got["keys"])
        self.assertEqual(got["commands"] + 3, got["boxes"])  # two inputs and an output
        self.assertEqual(got["label"], got["title"])
        self.assertEqual("#/graph/command/1", got["hash"])
        self.assertEqual(told["commands"][1]["nodes"], got["names"])
        self.assertTrue(got["closed"])
        self.assertGreater(got["found"], 0)
        self.assertLess(got["found"], got["commands"])
        self.assertEqual(["light", "dark", "auto"], got["theme"])


if __name__ == "__main__":
    sys.exit(unittest.main())
