"""What the tests of the report's page share: models, reports of them, and a browser without a network.

Needs Chromium and the Python packages playwright and axe-playwright-python (script/bootstrap develop); without them
the tests are skipped."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from browser import BROWSER
from cli import HEDDLE, MODELS

try:
    from playwright.sync_api import sync_playwright
except ImportError:
    sync_playwright = None
try:
    import axe_playwright_python
    AXE = pathlib.Path(axe_playwright_python.__file__).parent / "axe.min.js"
except ImportError:
    AXE = None

MISSING = next((reason for missing, reason in [
    (not BROWSER, "no Chromium here"), (sync_playwright is None, "the package playwright is missing"),
    (AXE is None, "the package axe-playwright-python is missing"), (not os.path.exists(HEDDLE), "the command is not built")] if missing), None)

VIEWS = ["overview", "graph", "timeline", "memory", "roofline", "commands", "fusions", "passes", "numbers"]
HOSTILE = "</script><img src=x onerror=alert(1)>\"'`&amp;\u202e\u200f\u2028🧵__proto__"


def stack(steps):
    """HLO text: a product and a normalisation of rows for each of so many steps, with names of blocks."""
    lines = ["HloModule stack", "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }", "ENTRY main {",
             "  x0 = f32[16,32] parameter(0)", "  w = f32[32,32] parameter(1)", "  zero = f32[] constant(0)"]
    for i in range(steps):
        name = f'metadata={{op_name="block.{i // 3}/step.{i % 3}/%s"}}'
        lines += [
            f"  d{i} = f32[16,32] dot(x{i}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, {name % 'product'}",
            f"  q{i} = f32[16,32] multiply(d{i}, d{i}), {name % 'norm'}",
            f"  r{i} = f32[16] reduce(q{i}, zero), dimensions={{1}}, to_apply=sum, {name % 'norm'}",
            f"  b{i} = f32[16,32] broadcast(r{i}), dimensions={{0}}, {name % 'norm'}",
            f"  x{i + 1} = f32[16,32] divide(d{i}, b{i}), {name % 'norm'}"]
    return "\n".join([*lines, f"  ROOT out = f32[16,32] tanh(x{steps})", "}"])


def hostile_onnx(path):
    """A model whose nodes, inputs, weights and outputs have names that look like markup, and one of 10 KB."""
    from onnx import TensorProto, helper, save
    value = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
    weight = helper.make_tensor("w" + HOSTILE, TensorProto.FLOAT, [8, 8], [0.1] * 64)
    nodes = [
        helper.make_node("MatMul", [HOSTILE, "w" + HOSTILE], ["__proto__"], name="constructor/" + HOSTILE),
        helper.make_node("Softmax", ["__proto__"], ["toString"], name="x" * 10_000),
        helper.make_node("MatMul", ["toString", "w" + HOSTILE], ["y" * 10_000], name="\u202e" * 50),
        helper.make_node("Relu", ["y" * 10_000], ["out" + HOSTILE], name="__proto__")]
    graph = helper.make_graph(nodes, HOSTILE, [value(HOSTILE, [4, 8])], [value("out" + HOSTILE, [4, 8])], [weight])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def hostile_hlo(path):
    path.write_text(stack(3).replace("block.", "__proto__/<b>&amp;</b>/'`$%{x}'.").replace("stack", "constructor"))


# name: (model, options of the report)
MODELS_OF_TESTS = {
    "conformer": (MODELS / "conformer" / "model.onnx", ["--profile", "--iterations", "3", "--level", "O2"]),
    "minilm": (MODELS / "minilm" / "model.onnx", ["--dim", "sequence=16", "--profile", "--iterations", "3"]),
    "stack": (lambda folder: (folder / "stack.hlo").write_text(stack(12)), ["--fuse", "greedy", "--disable", "reroll", "--profile", "--iterations", "3"]),
    "bert": (MODELS / "bert" / "model.onnx", ["--fuse", "off"]),
    "large": (lambda folder: (folder / "large.hlo").write_text(stack(1000)), ["--fuse", "off", "--disable", "reroll"]),
    "hostile_hlo": (lambda folder: hostile_hlo(folder / "hostile_hlo.hlo"), ["--disable", "reroll"]),
    "hostile_onnx": (lambda folder: hostile_onnx(folder / "hostile_onnx.onnx"), ["--profile", "--iterations", "2"]),
}


class PageTest(unittest.TestCase):
    """Reports are made once for each class, in a folder of its own."""
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory(prefix="heddle-page-")
        cls.addClassCleanup(holder.cleanup)
        cls.folder = pathlib.Path(holder.name)
        cls.reports = {}
        driver = sync_playwright().start()
        cls.addClassCleanup(driver.stop)
        cls.browser = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        cls.addClassCleanup(cls.browser.close)

    @classmethod
    def report(cls, name):
        """The page of one of MODELS_OF_TESTS."""
        if name not in cls.reports:
            model, options = MODELS_OF_TESTS[name]
            if callable(model):
                model(cls.folder)
                model = next(path for path in cls.folder.glob(name + ".*") if path.suffix in (".hlo", ".onnx"))
            page = cls.folder / f"{name}.html"
            done = subprocess.run([HEDDLE, "report", model, "-o", page, "--json", cls.folder / f"{name}.json", *options],
                                  env={**os.environ, "HEDDLE_CACHE": str(cls.folder / "cache")}, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise AssertionError(f"heddle report {model}: {done.stderr}")
            cls.reports[name] = page
        return cls.reports[name]

    def open(self, name, width=1280, height=860, dark=False, at=""):
        """A page without a network. What it says on the console or asks for is kept."""
        context = self.browser.new_context(viewport={"width": width, "height": height}, offline=True,
                                           color_scheme="dark" if dark else "light", reduced_motion="reduce")
        self.addCleanup(context.close)
        page = context.new_page()
        page.set_default_timeout(20_000)
        said = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: said.append(request.url))
        page.goto(f"file://{self.report(name)}{at}")
        page.said = said
        return page

    def assert_silent(self, page):
        """No message, no error, and no request but that for the page itself."""
        self.assertEqual(1, len(page.said), page.said)
        self.assertTrue(page.said[0].startswith("file://"))

    def assert_accessible(self, page, where, rules=None):
        """axe-core finds nothing serious, by all of its rules or by these."""
        if not page.evaluate("Boolean(window.axe)"):
            page.evaluate(AXE.read_text())
        found = page.evaluate("""async rules => (await axe.run(rules ? { runOnly: rules } : {})).violations.filter(v => ['serious', 'critical'].includes(v.impact))
            .map(v => [v.id, v.help, ...v.nodes.slice(0, 4).map(n => n.html.slice(0, 200) + ' | ' + n.failureSummary.slice(0, 300))])""", rules)
        self.assertEqual([], found, where)
