"""Makes the pictures of docs/pictures: python pictures.py [MODEL [OPTION...]]. Needs what the tests need.

Without a model: the tests' Transformer in f32, measured."""
import os
import pathlib
import subprocess
import sys
import tempfile

from pages import BROWSER, HEDDLE, MISSING, MODELS, sync_playwright

PICTURES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "pictures"
SIZE = {"width": 1280, "height": 800}


def graph(page):
    page.click("#tab-graph")
    page.locator("#graph-drawing .node.folded").first.click()
    page.locator("#graph-drawing .node.folded").first.click()
    page.click("#details-close")
    page.locator("#graph-drawing .node.product").nth(1).click()


def roofline(page):
    page.click("#tab-roofline")


def memory(page):
    page.click("#tab-memory")


def overview(page):
    page.click("#tab-overview")


def timeline(page):
    page.click("#tab-timeline")


def fusions(page):
    page.click("#tab-fusions")
    page.locator("#fusions-body tr button").first.click()


PICTURED = {"light": (overview, graph, timeline, memory, fusions), "dark": (overview, graph, roofline)}


def main(arguments):
    if MISSING:
        print("skipped:", MISSING)
        return 77
    model, *options = arguments or [MODELS / "transformer" / "model.onnx"]
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        path = pathlib.Path(folder) / "page.html"
        subprocess.run([HEDDLE, "report", model, "-o", path, "--profile", *options], check=True)
        browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        for colours in ("light", "dark"):
            page = browser.new_context(viewport=SIZE, offline=True, color_scheme=colours).new_page()
            page.goto(f"file://{path}")
            for view in PICTURED[colours]:
                page.keyboard.press("Escape")
                view(page)
                picture = PICTURES / f"report-{view.__name__}-{colours}.png"
                page.screenshot(path=picture)
                print(f"{picture.name}: {os.path.getsize(picture) >> 10} KB")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
