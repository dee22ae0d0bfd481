"""What mkdocs.yml hooks into the build of the site: a link of a page to a file outside docs/ leads to
a copy of that file, in the site's folder repository/. Markdown files and folders become pages, other
texts pages with one block of code."""
import pathlib
import posixpath
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<!`)\]\(([^)#\s]+)(#[^)\s]*)?\)")
LANGUAGES = {".cc": "cpp", ".h": "c", ".hpp": "cpp", ".py": "python", ".json": "json", ".c": "c"}
LISTED = 200  # names of a folder's page


def target_of(folder, link):
    """The file or folder of the repository that a link of a page in `folder` leads to, or None."""
    if "://" in link or link.startswith(("/", "mailto:")):
        return None
    path = posixpath.normpath(posixpath.join(folder, link))
    return None if path.startswith("..") or not (ROOT / path).exists() else path


def page_of(path):
    """Where a file of the repository is in the site."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if (ROOT / path).is_dir():
        return f"repository/{path}/{'README' if (ROOT / path / 'README.md').exists() else 'folder'}.md"
    return f"repository/{path}" + ("" if path.endswith(".md") else ".md")


def text_of(path):
    """A page's Markdown."""
    file = ROOT / path
    if file.is_dir():
        if (file / "README.md").exists():
            return (file / "README.md").read_text()
        names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in file.iterdir()
                       if not entry.name.startswith((".", "__")))
        return f"# {path}\n\n" + "\n".join(f"- `{name}`" for name in names[:LISTED]) + "\n"
    text = file.read_text(errors="replace")
    if path.endswith(".md"):
        return text
    fence = "`" * 6
    return f"# {path}\n\n{fence}{LANGUAGES.get(file.suffix, 'text')}\n{text}\n{fence}\n"


def folder_of(path):
    return path if (ROOT / path).is_dir() else posixpath.dirname(path)


def linked(path, text):
    for match in LINK.finditer(text):
        found = target_of(folder_of(path), match[1])
        if found is not None:
            yield found


def outside_pages():
    """Repository path -> Markdown of all that the pages of docs/ link to, and what that links to."""
    pages = {}
    wait = [(str(page.relative_to(ROOT)), page.read_text()) for page in (ROOT / "docs").rglob("*.md")]
    while wait:
        path, text = wait.pop()
        for found in linked(path, text):
            if not found.startswith("docs/") and found != "docs" and found not in pages:
                pages[found] = text_of(found)
                if page_of(found).endswith(("README.md", f"/{posixpath.basename(found)}")):
                    wait.append((found, pages[found]))
    return pages


def on_files(files, config):
    for path, text in outside_pages().items():
        if files.get_file_from_path(page_of(path)) is None:
            files.append(File.generated(config, page_of(path), content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    del config, files
    site_path = page.file.src_uri
    source = "docs/" + site_path
    if site_path.startswith("repository/"):
        source = site_path.removeprefix("repository/")
        if not (ROOT / source).exists():
            return markdown  # a text, or a folder's names: no links of ours
    if site_path.endswith(".md") and source.endswith(".md"):
        def relink(match):
            found = target_of(folder_of(source), match[1])
            if found is None:
                return match[0]
            there = posixpath.relpath(page_of(found), posixpath.dirname(site_path))
            return f"]({there}{match[2] or ''})"
        return LINK.sub(relink, markdown)
    return markdown
