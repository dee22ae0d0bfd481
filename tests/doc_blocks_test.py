"""The blocks of the pages: each says what it is; those of sh and json are run and parsed here. Blocks of one
page run in one folder, in their order."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import doc_blocks
from doc_blocks import ROOT

HEDDLE = pathlib.Path(os.environ.get("HEDDLE", ROOT / "build" / "release" / "heddle"))
DATA = ROOT / "tests" / "testdata"
sys.path[:0] = [str(ROOT / "tests" / "cli"), str(ROOT / "python" / "tests"), str(ROOT / "script")]
SECONDS = 120
ADD = """HloModule addition
ENTRY main {
  x = f32[2,3] parameter(0)
  y = f32[2,3] parameter(1)
  ROOT z = f32[2,3] add(x, y)
}
"""


def fill(folder):
    """What the pages' commands work on."""
    import cli
    import models
    import numpy

    (folder / "model.onnx").write_bytes(models.linear("batch"))
    (folder / "reshaped.onnx").write_bytes(models.reshaped())
    (folder / "add.hlo").write_text(ADD)
    cli.write_npz(folder / "in.npz", x=("f", [2, 3], [1, 2, 3, 4, 5, 6]))
    cli.write_npz(folder / "shaped.npz", x=("f", [6], [1, 2, 3, 4, 5, 6]), shape=("q", [2], [2, 3]))
    shutil.copy(DATA / "trained" / "transformer.onnx", folder / "network.onnx")
    calibration = numpy.load(DATA / "trained" / "transformer.calib.npz")["x"]
    numpy.savez(folder / "calibration.npz", x=calibration.astype(numpy.int64))
    (folder / "samples").mkdir()
    for number in range(8):
        cli.write_npz(folder / "samples" / f"{number}.npz", x=("f", [2, 3], [number - x for x in range(6)]))
    shutil.copy(DATA / "stablehlo" / "control.mlir", folder / "model.mlir")
    shutil.copy(DATA / "stablehlo" / "control.inputs.npz", folder / "model.npz")
    shutil.copytree(DATA / "stablehlo" / "checks", folder / "checks")


class BlocksTest(unittest.TestCase):
    def test_every_block_says_what_it_is(self):
        wrong, count = [], 0
        for path in doc_blocks.pages():
            for block in doc_blocks.blocks_of(path):
                count += 1
                if block.language not in doc_blocks.TESTS and block.language not in doc_blocks.NO_PROGRAMS:
                    wrong.append(f"{block}: language '{block.language}'; wanted one of "
                                 f"{', '.join([*doc_blocks.TESTS, *sorted(doc_blocks.NO_PROGRAMS)])}")
                if "<!-- not run" in block.before and not block.reason:
                    wrong.append(f"{block}: wanted <!-- not run: REASON -->")
            text = path.read_text()
            if len(re.findall(r"^```", text, re.MULTILINE)) % 2 or re.search(r"^ +```|^~~~", text, re.MULTILINE):
                wrong.append(f"{path.relative_to(ROOT)}: a block that this test does not see")
        self.assertEqual([], wrong)
        self.assertGreater(count, 60)

    def test_each_language_has_blocks_and_a_test(self):
        for language, test in doc_blocks.TESTS.items():
            self.assertGreater(len(doc_blocks.blocks(language)), 0, language)
            self.assertIn("doc_blocks", (ROOT / test).read_text())

    def test_json_can_be_parsed_and_has_known_keys(self):
        for block in doc_blocks.blocks("json"):
            value = json.loads(block.text.replace("{…}", "{}").replace("…", "0"))
            if block.page == "docs/CLI.md":
                schema = json.loads((ROOT / "docs/reference/schemas/bench.json").read_text())
                self.assertEqual(set(), set(value) - set(schema["properties"]))


@unittest.skipUnless(HEDDLE.exists(), f"{HEDDLE} is not built")
class ShellTest(unittest.TestCase):
    def test_commands_run(self):
        pages = {}
        for block in doc_blocks.blocks("sh"):
            pages.setdefault(block.page, []).append(block)
        self.assertGreater(sum(map(len, pages.values())), 20)
        with tempfile.TemporaryDirectory(prefix="heddle-docs-") as name:
            environment = {**os.environ, "HEDDLE_CACHE": f"{name}/cache",
                           "PATH": f"{HEDDLE.parent}{os.pathsep}{os.environ['PATH']}"}
            for page, blocks in pages.items():
                folder = pathlib.Path(name) / page.replace("/", "-")
                folder.mkdir()
                fill(folder)
                for block in blocks:
                    with self.subTest(str(block)):
                        done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], cwd=folder, text=True,
                                              stdin=subprocess.DEVNULL, capture_output=True, env=environment,
                                              timeout=SECONDS, check=False)
                        self.assertEqual(0, done.returncode, f"{block}\n{block.text}{done.stdout}{done.stderr}")


if __name__ == "__main__":
    try:
        import numpy  # noqa: F401: the models of the pages are made with it
    except ImportError:
        print("numpy is not installed")
        sys.exit(77)
    unittest.main()
