"""Puts the tool's current output into docs/walkthrough.md: walkthrough.py HEDDLE [--check].

A block of the document is filled from a dump of docs/walkthrough.hlo, compiled for avx2 with --fuse greedy:
    <!-- dump: PATTERN holding "TEXT" from "FIRST" to "LAST" -->
names a file of the dump by a pattern and a text it holds (both where several match), and the first
and last line of the excerpt by texts in them; without `from` and `to` it is the whole file.
"""
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "walkthrough.md"
MODEL = ROOT / "docs" / "walkthrough.hlo"
BLOCK = re.compile(r'(<!-- dump: (\S+)(?: holding "([^"]+)")?(?: from "([^"]+)" to "([^"]+)")? -->\n'
                   r"```text\n)(.*?)(```\n)", re.DOTALL)


def dump(heddle, directory):
    subprocess.run([heddle, "explain", MODEL, "--target", "avx2", "--fuse", "greedy",
                    "--cache", "off", "--dump", directory], check=True, capture_output=True, text=True)


def excerpt(directory, pattern, holding, first, last):
    files = [p for p in sorted(directory.glob(pattern)) if (holding or "") in p.read_text()]
    if len(files) != 1:
        sys.exit(f"{DOCUMENT.name}: {pattern} holding {holding} names {len(files)} files")
    text = files[0].read_text()
    lines = text.rstrip("\n").split("\n")
    if first is None:
        return "\n".join(lines) + "\n"
    begin = next((i for i, line in enumerate(lines) if first in line), None)
    if begin is None:
        sys.exit(f"{DOCUMENT.name}: no line of {files[0].name} holds '{first}'")
    end = next((i for i in range(begin, len(lines)) if last in lines[i]), None)
    if end is None:
        sys.exit(f"{DOCUMENT.name}: no line of {files[0].name} after '{first}' holds '{last}'")
    return "\n".join(lines[begin:end + 1]) + "\n"


def regenerated(text, directory):
    def fill(match):
        return match[1] + excerpt(directory, *match.group(2, 3, 4, 5)) + match[7]

    return BLOCK.sub(fill, text)


def main(heddle, *options):
    old = DOCUMENT.read_text()
    with tempfile.TemporaryDirectory() as name:
        dump(heddle, pathlib.Path(name))
        new = regenerated(old, pathlib.Path(name))
    if "--check" not in options:
        DOCUMENT.write_text(new)
        return 0
    sys.stdout.writelines(difflib.unified_diff(
        old.splitlines(True), new.splitlines(True), "docs/walkthrough.md", "what the tool writes"))
    return 0 if old == new else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
