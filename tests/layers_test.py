"""Checks src/LAYERS: its order, its folders, and every #include of src/ against it."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
GROUND = "base"  # every folder may use it, and it uses none
# Headers that are installed find these beside them, with no path.
INSTALLED = {"api": {"heddle.h", "heddle_check.h", "heddle_device.h", "heddle_info.h", "heddle_shapes.h",
                     "heddle_state.h", "heddle_text.h", "heddle_types.h"},
             "runtime": {"hal.h"}}
FORBIDDEN_NAMES = {"util", "utils", "common", "misc", "core", "service"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)


class Layers:
    """The two tables: folder -> folders it may use, and header prefix -> its only folder."""

    def __init__(self, text):
        self.allowed, self.only, self.errors = {}, {}, []
        for number, line in enumerate(text.splitlines(), 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            if line.startswith("only "):
                self.read_only(number, line)
            else:
                self.read_folder(number, line)

    def read_only(self, number, line):
        words = line.split()
        if len(words) != 3:
            self.errors.append(f"LAYERS:{number}: got '{line}', wanted 'only PREFIX FOLDER'")
            return
        self.only[words[1]] = words[2]
        if words[2] not in self.allowed:
            self.errors.append(f"LAYERS:{number}: no folder '{words[2]}' above")

    def read_folder(self, number, line):
        folder, colon, used = line.partition(":")
        if not colon or not re.fullmatch(r"[a-z]+(/[a-z]+)?", folder):
            self.errors.append(f"LAYERS:{number}: got '{line}', wanted 'folder: folders'")
            return
        if folder in self.allowed:
            self.errors.append(f"LAYERS:{number}: '{folder}' stands here twice")
        for other in used.split():
            if other not in self.allowed:
                self.errors.append(
                    f"LAYERS:{number}: '{folder}' uses '{other}', which does not stand above it")
        self.allowed[folder] = set(used.split())

    def complaint(self, folder, quoted, angled):
        """What is wrong with one #include in `folder`, or None."""
        if quoted is not None and quoted in INSTALLED.get(folder, ()):
            return None
        if quoted is not None:
            target = str(pathlib.PurePosixPath(quoted).parent)
            if target not in self.allowed:
                return f'"{quoted}" is not written from src/, or its folder is not in LAYERS'
            if target not in self.allowed[folder] | {folder, GROUND}:
                return f"'{folder}' may not use '{target}' (\"{quoted}\")"
            return None
        for prefix, owner in self.only.items():
            if angled.startswith(prefix) and folder != owner:
                return f"only '{owner}' may include <{angled}>"
        return None


def sources():
    return sorted(p for pattern in ("*.cc", "*.h", "*.def", "*.in") for p in SOURCE.rglob(pattern))


class LayersTest(unittest.TestCase):
    def setUp(self):
        self.layers = Layers((SOURCE / "LAYERS").read_text())

    def test_table_is_in_dependency_order(self):
        self.assertEqual([], self.layers.errors)
        self.assertEqual(GROUND, next(iter(self.layers.allowed)))

    def test_every_folder_with_sources_is_listed(self):
        folders = {str(p.parent.relative_to(SOURCE)) for p in sources()}
        self.assertGreater(len(folders), 5)
        self.assertEqual(set(), folders - set(self.layers.allowed))

    def test_no_folder_has_a_name_that_means_nothing(self):
        names = {p.name for p in SOURCE.rglob("*") if p.is_dir()}
        self.assertEqual(set(), names & FORBIDDEN_NAMES)

    def test_every_include_is_allowed(self):
        complaints, seen = [], 0
        for path in sources():
            folder = str(path.parent.relative_to(SOURCE))
            if folder not in self.layers.allowed:
                continue  # said above
            for match in INCLUDE.finditer(path.read_text()):
                seen += 1
                wrong = self.layers.complaint(folder, match[1], match[2])
                if wrong:
                    complaints.append(f"{path.relative_to(ROOT)}: {wrong}")
        self.assertGreater(seen, 100)
        self.assertEqual([], complaints)


def units():
    """Unit (x.cc and x.h together, without tests) -> units whose headers it includes."""
    found = {}
    for path in sources():
        if path.suffix not in (".h", ".cc") or path.stem.endswith("_test"):
            continue
        unit = str(path.relative_to(SOURCE).with_suffix(""))
        headers = {m[1] for m in INCLUDE.finditer(path.read_text()) if m[1]}
        found.setdefault(unit, set()).update(
            h.removesuffix(".h") for h in headers if (SOURCE / h).exists() and h.endswith(".h"))
    return {unit: used & set(found) - {unit} for unit, used in found.items()}


def cycles(graph):
    """Sets of at least two that all lead to one another, the largest first."""
    def reached(start, edges):
        seen, work = {start}, [start]
        while work:
            for other in edges[work.pop()] - seen:
                seen.add(other)
                work.append(other)
        return seen
    back = {unit: set() for unit in graph}
    for unit, used in graph.items():
        for other in used:
            back[other].add(unit)
    found, left = [], set(graph)
    while left:
        unit = min(left)
        whole = reached(unit, graph) & reached(unit, back)
        left -= whole
        if len(whole) > 1:
            found.append(sorted(whole))
    return sorted(found, key=len, reverse=True)


class CyclesTest(unittest.TestCase):
    """Units of a folder may include one another in a circle, but not many: types that several need
    stand in a header of their own, apart from the function that uses them all."""
    MOST = 4

    def test_no_circle_of_units_is_large(self):
        graph = units()
        self.assertGreater(len(graph), 300)
        self.assertEqual([], [c for c in cycles(graph) if len(c) > self.MOST])

    def test_circles_are_found(self):
        self.assertEqual([], cycles({"a": {"b"}, "b": {"c"}, "c": set()}))
        self.assertEqual([["a", "b", "c"]],
                         cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}))


class ToolsTest(unittest.TestCase):
    """run, bench, check and profile stand on the C interface and the words of its options, with what they include. What
    profile shows of values, without a time, stands on the classes, as tuning and quantising do, and so does check's search
    for an instruction (--layers). Names of passes and targets are looked up in their tables, for messages."""
    ON_CLASSES = {"value_profile.h", "layer_search.h", "known_names.h"}
    COMMANDS = ["run", "bench", "check", "profile"]
    ALLOWED = re.compile(r"(api/(heddle|second_reference|snapshot)\.h|compiler/options\.def|program/nodes_text\.h|base/.*|tensor/.*)$")

    def test_the_plug_in_stands_on_the_c_interface(self):
        # As the commands do, and on the words of its options.
        folder = ROOT / "pjrt" / "src"
        own = {p.name for p in folder.iterdir()} | {"heddle/heddle.h", "compiler/options.def"}
        wrong = []
        for path in sorted(folder.glob("*.[ch]*")):
            for match in INCLUDE.finditer(path.read_text()):
                if match[1] and match[1] not in own and not match[1].startswith("xla/"):
                    wrong.append(f"pjrt/src/{path.name}: {match[1]}")
        self.assertEqual([], wrong)

    def test_commands_stand_on_the_c_interface(self):
        tools = ROOT / "tools"
        waiting, seen, wrong = [f"{name}.cc" for name in self.COMMANDS], set(), []
        while waiting:
            name = waiting.pop()
            if name in seen | self.ON_CLASSES or not (tools / name).exists():
                continue
            seen.add(name)
            for match in INCLUDE.finditer((tools / name).read_text()):
                if match[1] and "/" not in match[1]:
                    also = [] if match[1] in self.ON_CLASSES else [match[1].removesuffix(".h") + ".cc"]
                    waiting += [match[1], *also]
                elif match[1] and not self.ALLOWED.match(match[1]):
                    wrong.append(f"tools/{name}: {match[1]}")
        self.assertTrue({f"{name}.cc" for name in self.COMMANDS} <= seen)
        self.assertEqual([], wrong)


class LayersFormatTest(unittest.TestCase):
    """The check itself, on tables that are wrong."""

    def test_a_folder_may_only_use_what_stands_above(self):
        self.assertEqual(1, len(Layers("base:\na: b\nb:").errors))
        self.assertEqual(1, len(Layers("base:\na: a").errors))
        self.assertEqual(1, len(Layers("base:\na:\na:").errors))
        self.assertEqual(1, len(Layers("base:\na b c").errors))
        self.assertEqual(1, len(Layers("base:\nonly x.h a").errors))
        self.assertEqual([], Layers("base:\na:\nb: a  # why\nonly x.h a").errors)

    def test_includes(self):
        layers = Layers("base:\na:\nb: a\nd/e: a\nonly llvm/ d/e")
        for folder, quoted in [("b", "a/x.h"), ("b", "b/x.h"), ("a", "base/x.h"), ("d/e", "a/x.h")]:
            self.assertIsNone(layers.complaint(folder, quoted, None))
        for folder, quoted in [("a", "b/x.h"), ("b", "x.h"), ("b", "d/e/x.h"), ("base", "a/x.h")]:
            self.assertIsNotNone(layers.complaint(folder, quoted, None))
        self.assertIsNone(layers.complaint("d/e", None, "llvm/IR/Module.h"))
        self.assertIsNotNone(layers.complaint("b", None, "llvm/IR/Module.h"))
        self.assertIsNone(layers.complaint("b", None, "vector"))

    def test_directives_are_found_however_they_are_spaced(self):
        text = '#include "a/x.h"\n  #  include <llvm/y.h>\n// #include "z.h"\n'
        self.assertEqual([("a/x.h", ""), ("", "llvm/y.h")], INCLUDE.findall(text))


if __name__ == "__main__":
    sys.exit(unittest.main())
