"""Planted faults: each is put into a copy of the tree, where the tests named with it must fail.

    script/soak mutants [--list] [--only NAME ...] [--fresh] [--jobs N] [--seconds N]

The faults are listed in tests/mutants.txt. The copy is under build/mutants, with its own build, so
the checkout is never touched; ccache makes the first build short. A fault that was found is not
planted again until its entry, its file or its tests' files change; --fresh forgets that. --only
takes names with * and ?. --jobs: parallel compilations (default: one per core).
--seconds: the limit for one test command (default 300); a test that reaches it has found its
fault. Exit status: 0 all found, 1 not all, 2 wrong use.
"""
import argparse
import dataclasses
import fnmatch
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "mutants.txt"
FIELDS = ("file", "build", "test", "means")
DEFINED = re.compile(r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")


@dataclasses.dataclass
class Mutant:
    name: str
    line: int
    file: str = ""
    build: list = dataclasses.field(default_factory=list)
    test: list = dataclasses.field(default_factory=list)  # commands, each a list of words
    means: str = ""
    old: str = ""
    new: str = ""

    def planted(self, text):
        """The file's text with the fault; None where the old lines do not stand there once."""
        places = [match.start() for match in re.finditer("^" + re.escape(self.old), text, re.M)]
        if not self.old or len(places) != 1:
            return None
        return text[:places[0]] + self.new + text[places[0] + len(self.old):]


class BadList(Exception):
    pass


def parse(text):
    """Entries: `== name`, `field: value` lines, then the hunk of a diff: lines of ' ', '-', '+'."""
    mutants = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("=="):
            mutants.append(Mutant(line[2:].strip(), number))
            continue
        if not line.strip() or (line.startswith("#") and not mutants):
            continue
        if not mutants:
            raise BadList(f"line {number}: before the first entry")
        entry = mutants[-1]
        if line[0] in " -+":
            if line[0] != "+":
                entry.old += line[1:] + "\n"
            if line[0] != "-":
                entry.new += line[1:] + "\n"
            continue
        field, colon, value = line.partition(":")
        if not colon or field not in FIELDS:
            raise BadList(f"line {number}: wanted one of {', '.join(FIELDS)}, got {line!r}")
        value = value.strip()
        if field == "build":
            entry.build += value.split()
        elif field == "test":
            entry.test.append(value.split())
        elif getattr(entry, field):
            raise BadList(f"line {number}: {entry.name} has two lines `{field}:`")
        else:
            setattr(entry, field, value)
    for entry in mutants:
        missing = [field for field in (*FIELDS, "old") if not getattr(entry, field)]
        if missing:
            raise BadList(f"line {entry.line}: {entry.name} has no {', '.join(missing)}")
        if entry.old == entry.new:
            raise BadList(f"line {entry.line}: {entry.name} changes nothing")
    return mutants


def googletests(root=ROOT):
    """Every `Suite.Name` in the tree, and the file it stands in."""
    found = {}
    for folder in ("src", "tests", "tools", "models"):
        for path in (root / folder).rglob("*.cc"):
            text = path.read_text(errors="replace")
            for suite, name in DEFINED.findall(text) if "TEST" in text else ():
                found.setdefault(f"{suite}.{name}", path)
    return found


@functools.cache
def is_of(program, path, root=ROOT):
    """Whether a source is one of a test program's: a program a folder, or a program a file."""
    folder = path.relative_to(root).parent.as_posix()
    if folder in ("tests", "tests/gpu"):  # further sources of a program begin with its name
        return path.stem.startswith(program.removesuffix("_test"))
    return program == folder.removeprefix("src/").replace("/", "_") + "_test"


def matching(program, pattern, tests, root=ROOT):
    """Files of a program's tests that one part of a filter names. What a generated test has before
    its suite, as in Cases/Suite.*, does not stand in the source."""
    return [path for name, path in tests.items() if is_of(program, path, root)
            and any(fnmatch.fnmatchcase(name, one) for one in (pattern, pattern.split("/")[-1]))]


def files_of(command, tests, root=ROOT):
    """The files that a test command takes its tests from; raises BadList where it names none."""
    program, *words = command
    if program == "lit" or program.endswith(".py"):
        files = [root / word for word in (words if program == "lit" else [program])]
        for path in files:
            if not path.is_file():
                raise BadList(f"no file {path.relative_to(root)}")
        return files
    if len(words) != 1 or not program.endswith("_test"):
        raise BadList(f"{' '.join(command)}: wanted a GoogleTest binary and a filter")
    files = []
    for pattern in words[0].split(":"):
        found = matching(program, pattern, tests, root)
        if not found:
            raise BadList(f"{program} has no test {pattern}")
        files += found
    return sorted(set(files))


def in_suite(path):
    """How lit is told a file of the tree: below the folder that its configuration stands in."""
    return f"tests/lit/{path}"


def tree_files(root):
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=root,
                            check=True, capture_output=True).stdout
    return sorted({name for name in listed.decode().split("\0") if name})


def bring_up_to_date(copy):
    """Makes `copy` equal to the checkout; files that are equal keep their times."""
    names = tree_files(ROOT)
    for name in names:
        source, target = ROOT / name, copy / name
        if not source.is_file():  # removed, and the removal not committed
            continue
        data = source.read_bytes()
        if target.is_file() and target.read_bytes() == data:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        shutil.copymode(source, target)
    wanted = {str(name) for name in names if (ROOT / name).is_file()}
    for path in copy.rglob("*"):
        name = path.relative_to(copy)
        if path.is_file() and name.parts[0] != "build" and str(name) not in wanted:
            path.unlink()
    (copy / "build").mkdir(parents=True, exist_ok=True)
    for shared in ("venv", "corpora"):
        if (ROOT / "build" / shared).exists() and not (copy / "build" / shared).exists():
            (copy / "build" / shared).symlink_to((ROOT / "build" / shared).resolve())


class Runner:
    def __init__(self, folder, options):
        self.copy = folder / "tree"
        self.release = self.copy / "build" / "release"
        self.options = options
        self.tests = googletests()
        self.kept_path = folder / "found.json"
        self.log_path = folder / "log.txt"
        self.kept = {}
        self.sound = {}  # by test command: whether it passes without a fault
        self.waiting = {}  # by targets: the test commands of the faults that build just these
        self.configured = False
        folder.mkdir(parents=True, exist_ok=True)
        if self.kept_path.is_file() and not options.fresh:
            self.kept = json.loads(self.kept_path.read_text())

    def digest(self, mutant):
        parts = [repr(mutant.old), repr(mutant.new), repr(mutant.test)]
        files = [ROOT / mutant.file]
        for command in mutant.test:
            files += files_of(command, self.tests)
        parts += [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def run_quietly(self, command, seconds=None):
        """The exit status, None where it ran too long. What it writes goes to the log."""
        environment = dict(os.environ, HEDDLE=str(self.release / "heddle"),
                           HEDDLE_BUILD=str(self.release), CCACHE_BASEDIR=str(self.copy),
                           CCACHE_NOHASHDIR="1")
        with self.log_path.open("a") as log:
            log.write(f"\n$ {' '.join(map(str, command))}\n")
            log.flush()
            process = subprocess.Popen(command, cwd=self.copy, stdout=log, stderr=log,
                                       env=environment, start_new_session=True)
            try:
                return process.wait(seconds)
            except subprocess.TimeoutExpired:
                return None
            finally:  # also where this process is told to end
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()

    def build(self, targets):
        if not self.configured:
            self.configured = self.run_quietly(
                ["cmake", "--preset", "release", "-DHEDDLE_TESTS=ON", "--log-level=WARNING"]) == 0
        return self.configured and self.run_quietly(
            ["cmake", "--build", str(self.release), "-j", str(self.options.jobs), "--target",
             *targets]) == 0

    def test(self, command):
        """True: passes; False: fails; None: runs too long."""
        program, *words = command
        python = self.copy / "build" / "venv" / "bin" / "python"
        if program == "lit":
            words = [str(python.parent / "lit"), "-v",
                     f"--param=heddle={self.release / 'heddle'}", *map(in_suite, words)]
        elif program.endswith(".py"):
            words = [str(python) if python.exists() else sys.executable, program, *words]
        else:
            words = [str(self.release / program), f"--gtest_filter={words[0]}",
                     "--gtest_fail_fast"]
        status = self.run_quietly(words, self.options.seconds)
        return None if status is None else status == 0

    def is_sound(self, mutant):
        """Whether the tests pass without the fault; None where that does not build. The tests of
        the faults that build the same are run with them, so that between two faults of a folder
        nothing is built."""
        keys = [tuple(command) for command in mutant.test]
        if not all(key in self.sound for key in keys):
            if not self.build(mutant.build):
                return None
            for key in dict.fromkeys(keys + self.waiting.get(tuple(mutant.build), [])):
                if key not in self.sound:
                    self.sound[key] = self.test(list(key)) is True
        return all(self.sound[key] for key in keys)

    def verdict(self, mutant):
        path = self.copy / mutant.file
        text = (ROOT / mutant.file).read_text()
        planted = mutant.planted(text)
        if planted is None:
            return "DOES NOT APPLY"
        sound = self.is_sound(mutant)
        if not sound:
            return ("DOES NOT BUILD" if sound is None else "ITS TESTS FAIL") + " WITHOUT THE FAULT"
        path.write_text(planted)
        try:
            if not self.build(mutant.build):
                return "DOES NOT BUILD"
            for command in mutant.test:
                passed = self.test(command)
                if not passed:
                    return "found" + (f" (ran past {self.options.seconds} s)"
                                      if passed is None else "")
            return "NOT FOUND"
        finally:
            path.write_text(text)

    def run(self, mutants):
        bring_up_to_date(self.copy)
        self.log_path.write_text("")
        counts = {}
        digests = {mutant.name: self.digest(mutant) for mutant in mutants}
        for mutant in mutants:
            if self.kept.get(mutant.name) != digests[mutant.name]:
                commands = self.waiting.setdefault(tuple(mutant.build), [])
                commands += map(tuple, mutant.test)
        for mutant in mutants:
            digest = digests[mutant.name]
            begin = time.monotonic()
            if self.kept.get(mutant.name) == digest:
                result = "found before"
            else:
                with self.log_path.open("a") as log:
                    log.write(f"\n== {mutant.name}\n")
                result = self.verdict(mutant)
            print(f"{mutant.name}: {result}  [{time.monotonic() - begin:.0f} s]", flush=True)
            if result.startswith("found"):
                self.kept[mutant.name] = digest
            else:
                self.kept.pop(mutant.name, None)
            self.kept_path.write_text(json.dumps(self.kept, indent=1, sort_keys=True))
            word = "found" if result.startswith("found") else result
            counts[word] = counts.get(word, 0) + 1
        print(f"{len(mutants)} planted faults: " +
              ", ".join(f"{count} {word}" for word, count in sorted(counts.items())))
        return counts.get("found", 0) == len(mutants)


def main(arguments):
    parser = argparse.ArgumentParser(prog="script/soak mutants", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", nargs="+", metavar="NAME", action="extend")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=int, default=300)
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        mutants = parse(LIST.read_text())
    except BadList as error:
        parser.error(f"{LIST.name}: {error}")
    if options.only:
        for pattern in options.only:
            if not any(fnmatch.fnmatchcase(one.name, pattern) for one in mutants):
                parser.error(f"no planted fault is called {pattern}; --list names them")
        mutants = [one for one in mutants
                   if any(fnmatch.fnmatchcase(one.name, pattern) for pattern in options.only)]
    if options.list:
        for one in mutants:
            print(f"{one.name:36} {one.file}: {one.means}")
        return 0
    return 0 if Runner(ROOT / "build" / "mutants", options).run(mutants) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
