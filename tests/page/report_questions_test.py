"""Six questions that a report answers, in at most two clicks each."""
import json
import sys
import unittest

from pages import MISSING, PageTest


@unittest.skipIf(MISSING, MISSING)
class Questions(PageTest):
    NAME = "minilm"

    def asked(self, clicks):
        """The page after these clicks, at most two, from its beginning; and the document."""
        self.assertLessEqual(len(clicks), 2)
        page = self.open(self.NAME)
        for click in clicks:
            page.locator(click).first.click()
        return page, json.loads((self.folder / f"{self.NAME}.json").read_text())

    def test_which_layer_is_slowest(self):
        page, document = self.asked([])
        times = [0.0] * len(document["layers"])
        for command in document["commands"]:
            times[command["layer"]] += command["ms"]
        slowest = document["layers"][times.index(max(times))]
        shown = page.inner_text("#slowest-layers button >> nth=0")
        head, _, tail = shown.partition("…")
        self.assertTrue(slowest.startswith(head) and slowest.endswith(tail), (shown, slowest))

    def test_why_are_these_two_apart(self):
        page, document = self.asked(["#tab-fusions", "#fusions-body tr button"])
        told = max((e for e in document["edges"] if "code" in e), key=lambda e: e["price_ns"])
        answer = page.inner_text("#details .answer")
        self.assertIn(told["code"], answer)
        self.assertIn(document["reasons"][told["reason"]], answer)

    def test_what_is_alive_at_the_peak(self):
        page, document = self.asked(["#tab-memory"])
        memory = document["memory"]
        alive = [b for b in memory["buffers"] if b["first"] <= memory["peak_command"] <= b["last"]]
        self.assertEqual(len(alive), page.locator("#memory-list tbody tr").count())
        self.assertIn("Alive at the peak", page.inner_text("#memory-title"))
        self.assertEqual(f"{max(b['bytes'] for b in alive)}", page.evaluate(
            "String(data.memory.buffers[Math.max(0, data.memory.buffers.findIndex(b => b.name === document.querySelector('#memory-list tbody td').textContent))].bytes)"))

    def test_is_it_at_the_roof(self):
        page, document = self.asked(["#tab-roofline"])
        roofs, total = document["roofs"], sum(c["ms"] for c in document["commands"])
        least = max(sum(c[key] * c.get("launches", 1) for c in document["commands"]) / roofs[roof] / 1e6
                    for key, roof in [("flops", "gflops_per_s"), ("bytes", "gbytes_per_s")])
        share = 100 * least / total
        self.assertIn(f"the whole run is at {share:.{1 if share < 10 else 0}f} %", page.inner_text("#roofline-summary"))

    def test_what_changed_numbers(self):
        page, document = self.asked(["#tab-numbers"])
        text = page.inner_text("#numbers")
        for note in document["notes"]:
            self.assertIn(note, text)
        for one in document["passes"]:
            if one["rounds"] and one["changes"] > 0:
                self.assertIn(one["pass"], text)
        self.assertIn("numerics default", text)

    def test_how_do_i_run_this_again(self):
        page, document = self.asked([])
        commands = [e.inner_text() for e in page.locator("#again code").all()]
        self.assertEqual(" ".join(document["command"]), commands[0])
        self.assertIn("heddle bench " + document["model"]["path"] + " --dim sequence=16", commands)
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.locator("#again button").first.click()
        page.wait_for_selector("#again button:text-is('copied')")


if __name__ == "__main__":
    if MISSING:
        print("skipped:", MISSING)
        sys.exit(77)
    sys.exit(unittest.main())
