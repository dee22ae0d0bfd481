"""The page of heddle report on six models: it is quiet, quick, accessible, and nothing is cut at any width."""
import json
import sys
import unittest

from pages import HOSTILE, MISSING, VIEWS, PageTest

# Elements that stick out of the window, and are not in what scrolls by itself.
CUT = """() => [...document.querySelectorAll('body *')].filter(e => {
  if (e.closest('.scroll, pre, #tabs, svg, dialog, .hidden, .names, #found, code') || !e.getClientRects().length) return false;
  const box = e.getBoundingClientRect();
  return box.width > 0 && (box.right > innerWidth + 1 || box.left < -1);
}).map(e => e.outerHTML.slice(0, 160))"""


@unittest.skipIf(MISSING, MISSING)
class ReportPage(PageTest):
    def paint_ms(self, page):
        return page.evaluate("""() => new Promise(done => {
          const look = () => { const all = performance.getEntriesByName('first-contentful-paint'); all.length ? done(all[0].startTime) : setTimeout(look, 20); };
          look(); })""")

    def look_everywhere(self, name, page):
        for view in VIEWS:
            page.click(f"#tab-{view}")
            self.assertTrue(page.is_visible(f"#{view}"), view)
            self.assertEqual([view], page.evaluate("[...document.querySelectorAll('.view')].filter(v => !v.hidden).map(v => v.id)"))
            self.assertEqual([], page.evaluate(CUT), (name, view, page.viewport_size))

    def check(self, name, most_ms):
        page = self.open(name)
        self.assertLess(self.paint_ms(page), most_ms)
        self.look_everywhere(name, page)
        self.assert_silent(page)
        for width in (400, 3000):
            other = self.open(name, width=width)
            self.look_everywhere(name, other)
            other.click("#tab-commands")
            other.click("#table-body tr button")
            self.assertTrue(other.is_visible("#details-title"))
            self.assertEqual([], other.evaluate(CUT), (name, width))
            self.assert_silent(other)
        return page

    def check_accessible(self, name):
        for dark in (False, True):
            page = self.open(name, dark=dark)
            rules = ["color-contrast"] if dark else None  # nothing else is another one then
            for view in VIEWS:
                page.click(f"#tab-{view}")
                self.assert_accessible(page, (name, view, dark), rules)
            page.click("#tab-commands")
            page.click("#table-body tr button")
            self.assert_accessible(page, (name, "details", dark), rules)

    def test_a_profiled_network(self):
        self.check("conformer", 1000)
        self.check_accessible("conformer")

    def test_equal_layers(self):
        page = self.check("minilm", 1000)
        document = json.loads((self.folder / "minilm.json").read_text())
        self.assertEqual("heddle", document["command"][0].rsplit("/", 1)[-1])
        self.assertIn(str(document["machine"]["processor"]), page.inner_text("#where"))

    def test_three_hundred_commands(self):
        self.check("bert", 1000)

    def test_five_thousand_commands(self):
        page = self.check("large", 3000)
        document = json.loads((self.folder / "large.json").read_text())
        self.assertGreater(len(document["commands"]), 5000)
        self.assertLess(self.report("large").stat().st_size, 6 << 20)
        # Folded to a few boxes; all of them drawn when they are opened.
        page.click("#tab-graph")
        self.assertLess(int(page.get_attribute("#graph-drawing", "data-boxes")), 40)
        page.click("#graph-unfold")
        self.assertGreater(int(page.get_attribute("#graph-drawing", "data-boxes")), 5000)
        self.assertLess(page.evaluate("document.querySelectorAll('#graph-drawing .node').length"), 700)
        page.click("#graph-fit")
        self.assertGreater(page.evaluate("[...document.querySelectorAll('#graph-drawing .node path')].map(p => p.getAttribute('d').length).reduce((a, b) => a + b)"), 50_000)
        page.click("#tab-commands")
        page.select_option("#table-grouping", "command")
        self.assertEqual(200, page.locator("#table-body tr").count())
        page.click("#table-more")
        self.assertEqual(1200, page.locator("#table-body tr").count())
        self.assert_silent(page)

    def check_hostile(self, name):
        page = self.check(name, 1000)
        for view in VIEWS:
            page.click(f"#tab-{view}")
        self.assertEqual(0, page.evaluate("document.querySelectorAll('img, b').length"))
        self.assertEqual(0, page.evaluate("Object.keys(Object.prototype).length"))
        # Nothing that reorders its neighbours reaches the page.
        self.assertNotRegex(page.evaluate("document.body.innerText"), "[\u202a-\u202e\u2066-\u2069\u200f]")
        return page

    def test_hostile_names_of_onnx(self):
        page = self.check_hostile("hostile_onnx")
        document = json.loads((self.folder / "hostile_onnx.json").read_text())
        self.assertEqual([HOSTILE], [port["name"] for port in document["inputs"]])
        self.assertIn("__proto__", document["nodes"])
        page.fill("#search", "__proto__")
        page.wait_for_selector("#found li[data-command]")
        page.press("#search", "Enter")
        self.assertIn("__proto__", page.inner_text("#details .names >> nth=-1"))
        self.assert_accessible(page, "details")

    def test_hostile_names_of_hlo(self):
        self.check_hostile("hostile_hlo")


if __name__ == "__main__":
    if MISSING:
        print("skipped:", MISSING)
        sys.exit(77)
    sys.exit(unittest.main())
