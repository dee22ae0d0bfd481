"""Counts what ran: count_tests.py RESULTS_DIRECTORY...

Each directory holds ctest.xml and, for the GoogleTest binaries, gtest/*.xml. Prints the reasons for
skipped tests, the slowest tests, and a last line 'N passed, N failed, N skipped'. Each case of a
GoogleTest binary counts as a test, any other test as one. Exit status 1 when something failed or
nothing ran.
"""
import collections
import pathlib
import sys
import xml.etree.ElementTree as xml

SLOWEST = 8


class Counts:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.reasons = collections.Counter()
        self.seconds = []

    def add(self, passed, failed, skipped):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped


def add_binary(counts, path):
    """The cases of one GoogleTest binary; the number that failed."""
    failed = 0
    for case in xml.parse(path).getroot().iter("testcase"):
        skipped = case.find("skipped")
        if case.find("failure") is not None:
            failed += 1
            counts.add(0, 1, 0)
        elif skipped is not None or case.get("status") == "notrun":
            counts.add(0, 0, 1)
            text = skipped.get("message", "") if skipped is not None else "disabled"
            counts.reasons[(text.strip().splitlines() or ["no reason given"])[-1]] += 1
        else:
            counts.add(1, 0, 0)
    return failed


def is_skipped(case):
    """A test that said so; one that could not be started (no such program) has failed."""
    skipped = case.find("skipped")
    return skipped is not None and skipped.get("message", "").startswith("SKIP")


def reason(case):
    """What a script that skips printed."""
    lines = (case.findtext("system-out") or "").strip().splitlines()
    return lines[-1].removeprefix("skipped: ") if lines else "no reason given"


def add_directory(counts, directory):
    label = directory.parent.name
    for case in xml.parse(directory / "ctest.xml").getroot().iter("testcase"):
        name, status = case.get("name"), case.get("status")
        counts.seconds.append((float(case.get("time", 0)), f"{name} ({label})"))
        binary = directory / "gtest" / f"{name}.xml"
        if status == "run" and binary.exists():
            add_binary(counts, binary)
        elif status == "run":
            counts.add(1, 0, 0)
        elif is_skipped(case):
            counts.add(0, 0, 1)
            counts.reasons[f"{name}: {reason(case)}"] += 1
        else:
            # A binary that fails without a failed case crashed, or a sanitizer stopped it.
            if not (binary.exists() and add_binary(counts, binary)):
                counts.add(0, 1, 0)


def main(directories):
    counts = Counts()
    for directory in directories:
        add_directory(counts, pathlib.Path(directory))
    if counts.reasons:
        print("skipped:")
        for reason, times in sorted(counts.reasons.items()):
            print(f"  {times} x {reason}")
    print("slowest:")
    for seconds, name in sorted(counts.seconds, reverse=True)[:SLOWEST]:
        print(f"  {seconds:.1f} s {name}")
    print(f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped")
    return 1 if counts.failed or not counts.passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
