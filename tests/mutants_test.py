"""tests/mutants.txt: every planted fault still applies, and the tests named with it exist; and the
runner's verdicts."""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import mutants

# The folders of src/, and the command, that the list has faults of.
COVERED = {"base", "tensor", "index", "hlo", "pass", "opt", "interp", "import", "schedule", "cost",
           "fuse", "stitch", "lower", "kernel", "emit/llvm", "emit/cuda", "program", "plan",
           "runtime", "cache", "compiler", "api", "tools"}
ENTRY = """== one
file: a.cc
build: a_test
test: a_test Suite.*
means: nothing
   keep
-  old
+  new
"""


class ListTest(unittest.TestCase):
    def setUp(self):
        self.all = mutants.parse(mutants.LIST.read_text())

    def test_every_fault_applies_once(self):
        for one in self.all:
            with self.subTest(one.name):
                path = ROOT / one.file
                self.assertTrue(path.is_file(), one.file)
                self.assertIsNotNone(one.planted(path.read_text()),
                                     f"tests/mutants.txt:{one.line}: the old lines do not stand in "
                                     f"{one.file} exactly once; bring the entry up to date")

    def test_names_are_different_and_tests_exist(self):
        self.assertEqual(len({one.name for one in self.all}), len(self.all))
        tests = mutants.googletests()
        for one in self.all:
            for command in one.test:
                with self.subTest(one.name, command=command):
                    self.assertTrue(mutants.files_of(command, tests))

    def test_what_is_tested_is_built(self):
        layers = re.findall(r"^([\w/]+):", (ROOT / "src" / "LAYERS").read_text(), re.M)
        listed = "".join((ROOT / path).read_text() for path in (
            "tests/CMakeLists.txt", "tests/gpu/CMakeLists.txt", "tools/CMakeLists.txt",
            "CMakeLists.txt", "src/emit/llvm/CMakeLists.txt"))
        known = set(re.findall(r"[\w-]+", listed))
        known |= {layer.replace("/", "_") + "_test" for layer in layers
                  if list((ROOT / "src" / layer).glob("*_test.cc"))}
        for one in self.all:
            with self.subTest(one.name):
                self.assertLessEqual(set(one.build), known)
                for command in one.test:
                    wanted = command[0] if command[0].endswith("_test") else "heddle"
                    self.assertIn(wanted, one.build)

    def test_lit_finds_what_it_is_told(self):
        lit = ROOT / "build" / "venv" / "bin" / "lit"
        if not lit.exists():
            self.skipTest("no lit")
        files = {word for one in self.all for program, *words in one.test if program == "lit"
                 for word in words}
        listed = subprocess.run([lit, "--show-tests", *map(mutants.in_suite, sorted(files))],
                                cwd=ROOT, capture_output=True, text=True)
        self.assertEqual({word for word in listed.stdout.split() if "/" in word}, files,
                         listed.stdout + listed.stderr)

    def test_no_part_of_the_tree_is_left_out(self):
        found = {pathlib.PurePath(one.file.removeprefix("src/")).parent.as_posix()
                 for one in self.all}
        self.assertEqual(COVERED - found, set())
        self.assertGreaterEqual(len(self.all), 40)


class ParseTest(unittest.TestCase):
    def test_hunk(self):
        one, = mutants.parse("# a comment\n\n" + ENTRY)
        self.assertEqual(one.planted("x\n  keep\n  old\ny\n"), "x\n  keep\n  new\ny\n")
        self.assertEqual(one.planted("  keep\n  old\n"), "  keep\n  new\n")
        self.assertIsNone(one.planted("  keep\n  older\n"))
        self.assertIsNone(one.planted("  keep\n  old\n  keep\n  old\n"))

    def test_faults_of_the_list(self):
        for text, said in ((ENTRY.replace("means: nothing\n", ""), "has no means"),
                           (ENTRY.replace("file:", "flie:"), "wanted one of"),
                           (ENTRY.replace("file:", "file: b\nfile:"), "two lines"),
                           (ENTRY.replace("+  new", "+  old"), "changes nothing"),
                           ("file: a.cc\n" + ENTRY, "before the first entry")):
            with self.assertRaisesRegex(mutants.BadList, said):
                mutants.parse(text)

    def test_unknown_tests(self):
        tests = mutants.googletests()
        for command in (["plan_test", "Nothing.*"], ["plan_test"], ["plan_test", "ExprTest.*"],
                        ["tests/no_such_test.py"], ["lit", "tests/text/no_such.hlo"]):
            with self.assertRaises(mutants.BadList):
                mutants.files_of(command, tests)


class FakeRunner(mutants.Runner):
    """Builds and tests are told by what stands in the file."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.done = []

    def build(self, targets):
        self.done.append("build " + self.text().strip())
        return "broken" not in self.text()

    def test(self, command):
        self.done.append(command[-1])
        text = self.text()
        return None if "endless" in text else "unseen" in text or "good" in text

    def text(self):
        return (self.copy / "a.cc").read_text()


class RunnerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="heddle-mutants-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.addCleanup(setattr, mutants, "ROOT", mutants.ROOT)
        mutants.ROOT = self.folder / "checkout"
        (self.folder / "found" / "tree").mkdir(parents=True)
        mutants.ROOT.mkdir()
        self.write("good\n")
        options = argparse.Namespace(fresh=False, jobs=1, seconds=9)
        self.runner = FakeRunner(self.folder / "found", options)

    def write(self, text):
        for path in (mutants.ROOT, self.folder / "found" / "tree"):
            (path / "a.cc").write_text(text)

    def verdict(self, new, old="good\n", test="A.*"):
        one = mutants.Mutant("one", 1, "a.cc", ["a_test"], [["a_test", test]], "", old, new + "\n")
        result = self.runner.verdict(one)
        self.assertEqual(self.runner.text(), (mutants.ROOT / "a.cc").read_text())
        return result

    def test_verdicts(self):
        self.assertEqual(self.verdict("bad"), "found")
        self.assertEqual(self.verdict("unseen"), "NOT FOUND")
        self.assertEqual(self.verdict("broken"), "DOES NOT BUILD")
        self.assertEqual(self.verdict("endless"), "found (ran past 9 s)")
        self.assertEqual(self.verdict("bad", old="gone\n"), "DOES NOT APPLY")

    def test_a_test_that_fails_anyway_finds_nothing(self):
        self.write("wrong\n")
        self.assertEqual(self.verdict("bad", old="wrong\n"), "ITS TESTS FAIL WITHOUT THE FAULT")

    def test_a_tree_that_does_not_build(self):
        self.write("broken\n")
        self.assertEqual(self.verdict("bad", old="broken\n"), "DOES NOT BUILD WITHOUT THE FAULT")

    def test_without_a_fault_what_faults_share_is_built_once(self):
        self.runner.waiting = {("a_test",): [("a_test", "A.*"), ("a_test", "B.*")]}
        self.assertEqual(self.verdict("bad"), "found")
        self.assertEqual(self.verdict("worse", test="B.*"), "found")
        self.assertEqual(self.runner.done, ["build good", "A.*", "B.*", "build bad", "A.*",
                                            "build worse", "B.*"])


if __name__ == "__main__":
    unittest.main()
