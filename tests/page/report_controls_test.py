"""Every control of the report's page has its effect, by mouse and by keys."""
import json
import sys
import unittest

from pages import MISSING, VIEWS, PageTest


@unittest.skipIf(MISSING, MISSING)
class Controls(PageTest):
    def document(self, name="stack"):
        self.report(name)
        return json.loads((self.folder / f"{name}.json").read_text())

    def on(self, view, name="stack", **options):
        page = self.open(name, at=f"#/{view}", **options)
        self.addCleanup(self.assert_silent, page)
        self.assertEqual("true", page.get_attribute(f"#tab-{view}", "aria-selected"))
        return page

    def chosen(self, page):
        return page.evaluate("location.hash").split("/")[2:]

    def test_tabs(self):
        page = self.on("overview")
        for number, view in enumerate(VIEWS):
            page.keyboard.press(str(number + 1))
            self.assertTrue(page.is_visible(f"#{view}"))
        page.focus("#tab-numbers")
        page.keyboard.press("ArrowRight")
        self.assertTrue(page.is_visible("#overview"))
        page.keyboard.press("ArrowLeft")
        self.assertTrue(page.is_visible("#numbers"))

    def test_theme(self):
        page = self.on("overview")
        paper = lambda: page.evaluate("getComputedStyle(document.body).backgroundColor")
        before = paper()
        for theme, same in [("light", True), ("dark", False), ("auto", True)]:
            page.click("#theme")
            self.assertEqual(theme, page.get_attribute("#theme", "data-theme"))
            self.assertEqual(same, paper() == before, theme)
        page.keyboard.press("t")
        self.assertEqual("light", page.get_attribute("#theme", "data-theme"))
        self.assertNotEqual(before, self.on("overview", dark=True).evaluate("getComputedStyle(document.body).backgroundColor"))

    def test_help(self):
        page = self.on("overview")
        page.click("#help-open")
        self.assertTrue(page.is_visible("#help"))
        page.click("#help-close")
        self.assertFalse(page.is_visible("#help"))
        page.keyboard.press("?")
        self.assertTrue(page.is_visible("#help"))
        page.keyboard.press("Escape")
        self.assertFalse(page.is_visible("#help"))

    def test_search(self):
        page, document = self.on("commands"), self.document()
        wanted = document["commands"][3]["name"]
        page.keyboard.press("/")
        page.keyboard.type(wanted)
        page.wait_for_selector("#found li[data-command]")
        found = page.locator("#found li[data-command]").count()
        self.assertLess(found, len(document["commands"]))
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        self.assertEqual("command", self.chosen(page)[0])
        self.assertFalse(page.is_visible("#found"))
        page.select_option("#table-grouping", "command")
        self.assertEqual(page.inner_text("#table-count"), f"{page.locator('#table-body tr').count()} row" + ("s" if found != 1 else ""))
        page.click("#tab-graph")
        page.click("#graph-unfold")
        self.assertGreater(page.locator(".node.faded").count(), 0)
        page.fill("#search", "nothing has this name")
        page.wait_for_selector("#found li.count:text-is('nothing')")
        page.press("#search", "Escape")
        page.locator(".node.faded").first.wait_for(state="detached")

    def test_graph(self):
        page, document = self.on("graph"), self.document()
        scale = lambda: float(page.get_attribute("#graph-drawing", "data-scale"))
        boxes = lambda: int(page.get_attribute("#graph-drawing", "data-boxes"))
        sight = lambda: page.get_attribute("#graph-drawing", "viewBox")
        folded = boxes()
        page.click("#graph-unfold")
        page.click("#graph-fit")
        ports = len(document["inputs"]) + len(document["outputs"])
        self.assertEqual(len(document["commands"]) + ports, boxes())
        self.assertGreater(boxes(), folded)
        for text in [document["inputs"][0]["name"], document["outputs"][0]["name"]]:
            self.assertEqual(1, page.locator(f"#graph-drawing .node text:text-is('{text}')").count())
        page.click("#graph-fold")
        self.assertEqual(folded, boxes())
        before = scale()
        page.click("#graph-in")
        self.assertGreater(scale(), before)
        page.click("#graph-out")
        self.assertAlmostEqual(before, scale(), delta=before * 0.01)
        page.click("#graph-fit")
        fitted = sight()
        page.focus("#graph-box")
        page.keyboard.press("+")
        self.assertNotEqual(fitted, sight())
        page.keyboard.press("-")
        page.keyboard.press("0")
        self.assertEqual(fitted, sight())
        box = page.locator("#graph-box").bounding_box()
        x, y = box["x"] + 20, box["y"] + box["height"] - 20
        page.mouse.move(x, y)
        page.mouse.wheel(0, 120)
        self.assertNotEqual(fitted, sight())
        before = sight()
        page.mouse.down()
        page.mouse.move(x + 90, y - 60, steps=4)
        page.mouse.up()
        self.assertNotEqual(before, sight())
        self.assertEqual([], self.chosen(page))  # dragging chooses nothing

    def test_weights(self):
        page, document = self.on("graph", "minilm"), self.document("minilm")
        under = lambda: page.evaluate("[...document.querySelectorAll('#graph-drawing .node:not(.input):not(.output) text.under')].map(e => e.textContent)")
        page.click("#graph-fit")
        before = under()
        page.click("#graph-weights")
        self.assertEqual("true", page.get_attribute("#graph-weights", "aria-pressed"))
        told = [text for text in under() if "KiB" in text or "bytes" in text or text == "no weights"]
        self.assertEqual(len(document["commands"]), len(told))
        self.assertEqual(sum(not c["weights"] for c in document["commands"]), told.count("no weights"))
        page.click("#graph-weights")
        self.assertEqual(before, under())

    def test_graph_opens_and_follows(self):
        page = self.on("graph")
        before = int(page.get_attribute("#graph-drawing", "data-boxes"))
        page.locator("#graph-drawing .node.folded").first.click()
        self.assertEqual("repeat", self.chosen(page)[0])
        self.assertGreater(int(page.get_attribute("#graph-drawing", "data-boxes")), before)
        page.click("#graph-unfold")
        page.locator("#graph-drawing .node.product").first.click()
        kind, number = self.chosen(page)
        self.assertEqual("command", kind)
        self.assertEqual(1, page.locator("#graph-drawing .node.chosen").count())
        self.assertGreater(page.locator("#graph-drawing .node.near").count(), 0)
        page.keyboard.press("n")
        self.assertEqual(str(int(number) + 1), self.chosen(page)[1])
        page.keyboard.press("p")
        self.assertEqual(number, self.chosen(page)[1])
        page.focus("#graph-box")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        self.assertNotEqual(["command", number], self.chosen(page))
        self.assertNotEqual("", page.inner_text("#said"))
        page.focus("#graph-box")
        page.keyboard.press("Escape")
        self.assertEqual([], self.chosen(page))
        self.assertFalse(page.is_visible("#details"))
        # A line is a value: why the two are apart.
        page.locator("#graph-drawing .hit").first.dispatch_event("click")
        self.assertEqual("edge", self.chosen(page)[0])
        self.assertTrue(page.is_visible("#details .answer"))
        page.click("#details-close")
        self.assertFalse(page.is_visible("#details"))

    def test_timeline(self):
        page, document = self.on("timeline"), self.document()
        extent = lambda: [float(page.get_attribute("#timeline-drawing", "data-" + end)) for end in ("from", "to")]
        whole = extent()
        self.assertGreaterEqual(len(document["measured"]["threads"]), 1)
        self.assertEqual(1 + len(document["measured"]["threads"]) + 1, page.locator("#timeline-drawing text.title").count())
        page.click("#timeline-in")
        self.assertLess(extent()[1] - extent()[0], whole[1] - whole[0])
        page.focus("#timeline-box")
        before = extent()
        page.keyboard.press("ArrowRight")
        self.assertGreater(extent()[0], before[0])
        page.keyboard.press("ArrowLeft")
        self.assertAlmostEqual(extent()[0], before[0], places=6)
        page.keyboard.press("-")
        page.click("#timeline-out")
        self.assertEqual(whole, extent())
        page.keyboard.press("+")
        page.click("#timeline-fit")
        self.assertEqual(whole, extent())
        page.locator("#timeline-drawing .node").first.click()
        self.assertEqual("command", self.chosen(page)[0])
        self.assertGreaterEqual(page.locator("#timeline-drawing .node.chosen").count(), 1)

    def test_memory(self):
        page, document = self.on("memory"), self.document()
        memory = document["memory"]
        self.assertEqual(len(memory["buffers"]), page.locator("#memory-drawing rect").count())
        alive = lambda at: sum(b["first"] <= at <= b["last"] for b in memory["buffers"])
        rows = lambda: page.locator("#memory-list tbody tr").count()
        self.assertEqual(alive(memory["peak_command"]), rows())
        other = next(at for at in range(len(document["commands"])) if alive(at) != alive(memory["peak_command"]))
        page.evaluate("at => { const e = document.getElementById('memory-moment'); e.value = at; e.dispatchEvent(new Event('input')); }", other)
        self.assertEqual(alive(other), rows())
        page.click("#memory-peak")
        self.assertEqual(alive(memory["peak_command"]), rows())
        page.locator("#memory-drawing rect").nth(1).dispatch_event("click")
        self.assertEqual(["buffer", "1"], self.chosen(page))
        page.locator("#memory-list tbody tr button").first.click()
        self.assertEqual("buffer", self.chosen(page)[0])
        self.assertIn("alive", page.inner_text("#details"))

    def test_roofline(self):
        page, document = self.on("roofline"), self.document()
        kernels = {c["kernel"] for c in document["commands"] if c.get("flops", 0) > 0 and c.get("ms", 0) > 0 and "kernel" in c}
        points = page.locator("#roofline-drawing circle")
        self.assertEqual(len(kernels), points.count())
        page.select_option("#roofline-each", "command")
        self.assertEqual(sum(c.get("flops", 0) > 0 and c.get("ms", 0) > 0 for c in document["commands"]), points.count())
        points.first.dispatch_event("click")
        self.assertEqual("command", self.chosen(page)[0])
        self.assertEqual(1, page.locator("#roofline-drawing .chosen").count())
        page.locator("#roofline-list tbody tr button").last.click()
        self.assertEqual("command", self.chosen(page)[0])

    def test_table(self):
        page, document = self.on("commands"), self.document()
        for grouping, count in [("command", len(document["commands"])), ("layer", len(document["layers"])),
                                ("kernel", len({c["kernel"] for c in document["commands"] if "kernel" in c})),
                                ("operators", len({c["operators"] for c in document["commands"]}))]:
            page.select_option("#table-grouping", grouping)
            self.assertEqual(count, page.locator("#table-body tr").count(), grouping)
        page.select_option("#table-grouping", "command")
        order = lambda: page.evaluate("[...document.querySelectorAll('#table-body tr')].map(tr => +tr.dataset.command)")
        ms = [c["ms"] for c in document["commands"]]
        self.assertEqual(sorted(ms, reverse=True), [ms[i] for i in order()])  # at first by time
        page.click("#table-head th:nth-child(3) button")
        self.assertEqual("ascending", page.get_attribute("#table-head th:nth-child(3)", "aria-sort"))
        self.assertEqual(sorted(ms), [ms[i] for i in order()])
        page.click("#table-head th:nth-child(1) button")
        page.click("#table-head th:nth-child(1) button")
        self.assertEqual(list(range(len(ms))), order())
        page.locator("#table-body tr").nth(4).click(position={"x": 200, "y": 8})
        self.assertEqual(["command", "4"], self.chosen(page))

    def test_fusions(self):
        page, document = self.on("fusions", "minilm"), self.document("minilm")
        told = [e for e in document["edges"] if "code" in e]
        self.assertGreater(len(told), 0)
        self.assertEqual(len(told), page.locator("#fusions-body tr").count())
        code = told[0]["code"]
        page.select_option("#fusions-code", code)
        self.assertEqual(sum(e["code"] == code for e in told), page.locator("#fusions-body tr").count())
        page.locator("#fusions-body tr button").first.click()
        self.assertEqual("edge", self.chosen(page)[0])
        self.assertIn(code, page.inner_text("#details .answer"))
        page.locator("#fusions-taken tbody tr button").first.click()
        self.assertEqual("command", self.chosen(page)[0])
        refused = page.locator("#fusions details").first
        refused.locator("summary").click()
        page.wait_for_selector("#fusions details tbody tr")
        self.assertGreater(refused.locator("tbody tr").count(), 0)

    def test_passes(self):
        page, document = self.on("passes", "minilm"), self.document("minilm")
        self.assertEqual(len(document["pass_changes"]), page.locator("#passes-body tr").count())
        number = next(i for i, c in enumerate(document["pass_changes"]) if c["gone"] > 0 and c["come"] > 0)
        change = document["pass_changes"][number]
        page.locator("#passes-body tr button").nth(number).click()
        page.wait_for_selector("#passes-diff pre")
        self.assertIn(change["pass"], page.inner_text("#passes-title"))
        self.assertEqual(change["gone"], page.locator("#passes-diff .gone").count())
        self.assertEqual(change["come"], page.locator("#passes-diff .come").count())
        self.assertEqual(document["texts"][change["diff"]].strip(), page.inner_text("#passes-diff pre").strip())

    def test_code(self):
        page, document = self.on("commands", "minilm"), self.document("minilm")
        number = next(i for i, c in enumerate(document["commands"]) if c["kind"] == "product")
        code = document["kernels"][document["commands"][number]["kernel"]]["code"]
        page.goto(page.url.split("#")[0] + "#/other")
        page.said.clear()
        page.goto(page.url.split("#")[0] + f"?#/commands/command/{number}")
        for button, key in [("schedule", "schedule"), ("kernel", "kernel"), ("LLVM IR", "llvm"), ("assembly", "assembly")]:
            page.click(f"#details button[data-code='{button}']")
            page.wait_for_selector("#details .code pre")
            self.assertEqual(document["texts"][code[key]].split(), page.inner_text("#details .code pre").split(), key)
        page.click("#details button[data-code='assembly']")
        self.assertEqual(0, page.locator("#details .code pre").count())

    def test_print(self):
        page = self.on("overview")
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        for view in VIEWS:
            self.assertTrue(page.is_visible(f"#{view}"), view)
        self.assertFalse(page.is_visible("#tabs"))
        self.assertGreater(len(page.pdf()), 20_000)
        page.emulate_media(media="screen")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        self.assertFalse(page.is_visible("#graph"))


if __name__ == "__main__":
    if MISSING:
        print("skipped:", MISSING)
        sys.exit(77)
    sys.exit(unittest.main())
