"""Pages in headless Chromium, driven by a script of the test."""
import html
import json
import re
import shutil
import subprocess

BROWSER = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)

# Runs behind the page's own script; what it puts into `got` is left in the document as JSON.
FRAME = """
<script>
'use strict';
const got = {};
window.addEventListener('error', event => { got.error = event.message; });
function press(key) { document.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true })); }
function click(element) { element.dispatchEvent(new MouseEvent('click', { bubbles: true })); }
%s
got.rules = [...document.styleSheets].map(sheet => sheet.cssRules.length);
got.outside = performance.getEntriesByType('resource').length;
const result = document.createElement('pre');
result.id = 'result';
result.textContent = JSON.stringify(got);
document.body.appendChild(result);
</script>
"""


def styles(text):
    """Rules at the outermost level of a style sheet."""
    depth = count = 0
    for c in text:
        depth += (c == "{") - (c == "}")
        count += c == "{" and depth == 1
    return count


def driven(test, page, driver):
    """What the driver found on the page, which loads nothing and whose style has no wrong rule."""
    text = page.read_text()
    path = test.folder / "driven.html"
    path.write_text(text.replace("</body>", FRAME % driver + "</body>"))
    done = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,800",
         f"--user-data-dir={test.folder / 'browser'}", "--dump-dom", f"file://{path}"],
        capture_output=True, text=True, timeout=120, check=False)
    found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
    test.assertTrue(found, done.stderr[-2000:])
    got = json.loads(html.unescape(found[1]))
    test.assertNotIn("error", got)
    test.assertEqual(0, got["outside"])
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    test.assertEqual([styles(style)], got["rules"])  # none was dropped as wrong
    return got
