"""Links of the Markdown pages lead to files and headings that are there, and the site builds without a warning."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

import doc_blocks
from doc_blocks import ROOT

LINK = re.compile(r"(?<!\\)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)(?: \"[^\"]*\")?\)")
OUTSIDE = re.compile(r"^(https?|mailto):")


def prose(text):
    """Without blocks of code and code in lines, which hold no links."""
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "``", doc_blocks.FENCE.sub("", text))


def anchor(heading):
    """As GitHub and the site make it of a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    text = re.sub(r"[^\w\- ]", "", text.strip().lower())
    return text.replace(" ", "-")


def anchors(path):
    text = doc_blocks.FENCE.sub("", path.read_text())
    found, seen = set(), {}
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", text, re.MULTILINE):
        name = anchor(heading)
        number = seen.get(name, 0)
        seen[name] = number + 1
        found.add(f"{name}-{number}" if number else name)
    return found | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


class LinksTest(unittest.TestCase):
    maxDiff = None

    def test_links_lead_somewhere(self):
        wrong, count = [], 0
        results = sorted((ROOT / "bench" / "results").rglob("*.md"))
        for path in [*doc_blocks.pages(), *results]:
            for link in LINK.findall(prose(path.read_text())):
                if OUTSIDE.match(link):
                    continue
                count += 1
                target, _, name = urllib.parse.unquote(link).partition("#")
                there = (path.parent / target).resolve() if target else path
                if not there.exists():
                    wrong.append(f"{path.relative_to(ROOT)}: {link}: no such file")
                elif ROOT not in there.parents and there != ROOT:
                    wrong.append(f"{path.relative_to(ROOT)}: {link}: outside of the repository")
                elif name and there.suffix == ".md" and name not in anchors(there):
                    wrong.append(f"{path.relative_to(ROOT)}: {link}: no such heading")
        self.assertEqual([], wrong)
        self.assertGreater(count, 150)

    def test_the_readme_names_every_page_for_users(self):
        text = (ROOT / "README.md").read_text()
        for page in ["start", "python", "pytorch", "jax", "cpp", "serving", "coming-from", "troubleshooting"]:
            self.assertIn(f"docs/{page}.md", text)


class SiteTest(unittest.TestCase):
    def test_the_site_builds_without_a_warning(self):
        try:
            import material  # noqa: F401
            import mkdocs  # noqa: F401
        except ImportError:
            self.skipTest("mkdocs is not installed: script/bootstrap docs")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", folder], cwd=ROOT,
                                  capture_output=True, text=True, check=False,
                                  env={"NO_MKDOCS_2_WARNING": "1", "PATH": "/usr/bin:/bin"})
            self.assertEqual((0, ""), (done.returncode, done.stdout + done.stderr))
            for page in ["index", "start", "reference/commands", "reference/json", "repository/src/api/heddle.h"]:
                self.assertTrue((pathlib.Path(folder) / f"{page}.html").exists(), page)
            # It works without a network.
            for page in pathlib.Path(folder).rglob("*.html"):
                self.assertEqual([], re.findall(r'<(?:script|img|iframe|link rel="stylesheet")[^>]*(?:src|href)="https?:[^"]*',
                                                page.read_text()), page)


if __name__ == "__main__":
    unittest.main()
