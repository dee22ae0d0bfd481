"""The fenced blocks of the Markdown pages, for the tests that run them.

A block names its language: sh, python, cpp, c and json are run or parsed by the test that TESTS names;
text, hlo and the like are no programs. A block that cannot be run has a line in front of it that says why:
    <!-- not run: needs a GPU -->
"""
import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS = {
    "sh": "tests/doc_blocks_test.py",
    "json": "tests/doc_blocks_test.py",
    "python": "python/tests/docs_test.py",
    "cpp": "tests/cli/cpp_docs_test.py",
    "c": "tests/cli/cpp_docs_test.py",
}
NO_PROGRAMS = {"text", "hlo"}
FENCE = re.compile(r"^(?P<fence>`{3,})(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL)
REASON = re.compile(r"<!-- not run: (.+) -->\n$")


@dataclasses.dataclass
class Block:
    page: str  # "docs/cpp.md"
    line: int  # of the fence
    language: str
    text: str
    reason: str  # why it is not run; empty: it is
    before: str  # the line in front of it

    def __str__(self):
        return f"{self.page}:{self.line}"


def pages():
    """All pages that are written by hand or generated, but for measurements."""
    found = [ROOT / "README.md", ROOT / "CHANGELOG.md"]
    for folder in ["docs", "src", "tools", "python", "pjrt", "examples", "bench", "tests", "script", "cmake"]:
        found += sorted((ROOT / folder).rglob("*.md"))
    return [path for path in found if path.exists() and not {"results", "testdata", "build"} & set(path.relative_to(ROOT).parts)]


def blocks_of(path):
    text = path.read_text()
    for match in FENCE.finditer(text):
        before = text[:match.start()]
        reason = REASON.search(before)
        yield Block(str(path.relative_to(ROOT)), before.count("\n") + 1, match["language"].strip(), match["text"],
                    reason[1] if reason else "", before.splitlines()[-1] if before.strip() else "")


def blocks(language):
    """The blocks of a language that are to be run, page by page."""
    return [block for path in pages() for block in blocks_of(path)
            if block.language == language and not block.reason]
