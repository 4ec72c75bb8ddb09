"""Open every page of the built site in headless Chromium, and say what a reader would stumble over.

On each page: no error in the console, no request to another site, no broken picture, no fault that axe-core calls
serious or critical, light and dark; nothing scrolls sideways at 400 px. Once: the first key tab reaches the skip link,
tab and Ctrl+K reach the search, and the search, offline, finds each learner by its name,
and some by words of their papers' titles; no link within the site leads to nowhere. Usage, after `make docs`:

    python tools/check_site.py               all pages
    python tools/check_site.py start learn   those whose path begins so
"""

import functools
import html
import http.server
import re
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urldefrag

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

SITE = Path(__file__).resolve().parents[1] / "build" / "docs"
GENERATED = ("_modules/", "genindex", "py-modindex", "search.html")  # listings without prose
WAIT = 20_000  # milliseconds that a search may take
WORDS = {  # words of the titles of papers, and the pages that tell of them
    "smoothed multi-task learning": "OSMTL",
    "confidence weighted collaborative": "CollaborativeCW",
    "linear algorithms for online multitask classification": "MultitaskPerceptron",
    "robust online multi-task learning correlative personalized": "ROMCO",
    "shared and task specific information": "SparseMTL",
    "shared loss": "SharedLoss",
}


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that writes no log."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of the folder."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def check_page(page: Page, address: str, path: str) -> list[str]:
    """What is wrong with one page, in one color scheme."""
    found: list[str] = []
    page.on(
        "console",
        lambda said: found.append(f"console: {said.text} {said.location['url']}") if said.type == "error" else None,
    )
    page.on("pageerror", lambda error: found.append(f"script: {error}"))
    page.on("request", lambda asked: None if asked.url.startswith((address, "data:")) else found.append(asked.url))
    page.goto(f"{address}/{path}", wait_until="load")
    broken = page.evaluate(
        "Promise.all([...document.images].map("
        "i => { i.loading = 'eager'; return i.decode().then(() => '', () => i.src) }))"
    )
    found += [f"broken picture: {name}" for name in broken if name]
    for fault in Axe().run(page, options={"preload": False}).response["violations"]:
        if fault["impact"] in ("serious", "critical"):
            nodes = fault["nodes"]
            found.append(
                f"{fault['id']} ({len(nodes)}): {nodes[0]['html'][:140]} {nodes[0].get('failureSummary', '')[:200]}"
            )
    page.set_viewport_size({"width": 400, "height": 900})
    width = page.evaluate("document.documentElement.scrollWidth")
    if width > 400:
        found.append(f"is {width} px wide in a window of 400 px")
    return found


def check_pages(browser: Browser, address: str, paths: list[str]) -> list[str]:
    """What is wrong with these pages, light and dark."""
    found = []
    for scheme in ("light", "dark"):
        with browser.new_context(color_scheme=scheme, viewport={"width": 1200, "height": 900}) as context:
            for path in paths:
                page = context.new_page()
                found += [f"{path}, {scheme}: {said}" for said in check_page(page, address, path)]
                page.close()
    return found


def check_links() -> list[str]:
    """Links to pages, files and places of the site that are not there."""

    @functools.cache
    def places(path: Path) -> set[str]:
        return {html.unescape(name) for name in re.findall(r'\bid="([^"]+)"', path.read_text("utf-8"))}

    found = []
    for path in sorted(SITE.rglob("*.html")):
        if path.name == "reproduction.html":  # it stands in the repository, too, and links to its files
            continue
        for link in set(re.findall(r'<a [^>]*?href="([^"]*)"', path.read_text("utf-8"))):
            url, place = urldefrag(html.unescape(link))
            target = (path.parent / unquote(url)).resolve() if url else path
            if re.match(r"\w+:", url):
                continue
            if not target.exists() or (place and target.suffix == ".html" and unquote(place) not in places(target)):
                found.append(f"{path.relative_to(SITE)}: link to nowhere: {link}")
    return found


def search(page: Page, address: str, words: str) -> list[str]:
    """Where the search leads, best first."""
    page.goto(f"{address}/search.html?q={words.replace(' ', '+')}")
    page.wait_for_function(
        "/finished|did not match/.test(document.querySelector('#search-results').innerText)", timeout=WAIT
    )
    links: list[str] = page.eval_on_selector_all("#search-results li a", "all => all.map(a => a.href)")
    return links


def check_search(page: Page, address: str) -> list[str]:
    """Learners that the search does not find by their names, or by their papers' words."""
    import shoal

    learners = [name for name in shoal.__all__ if name[0].isupper() and hasattr(getattr(shoal, name), "fit")]
    found = [
        f"search: {name} is not found"
        for name in learners
        if not any(f".{name}.html" in a for a in search(page, address, name)[:10])
    ]
    for words, name in WORDS.items():
        if not any(name.lower() in link.lower() or "/learn/" in link for link in search(page, address, words)):
            found.append(f"search: “{words}” does not lead to {name}")
    return found


def check_keyboard(page: Page, address: str) -> list[str]:
    """The first tab is the skip link, and the search is reached by tab and by Ctrl+K."""
    page.goto(f"{address}/start.html")
    page.keyboard.press("Tab")
    found, focused = [], "document.activeElement.outerHTML"
    if "skip" not in page.evaluate(focused).lower():
        found.append("keyboard: the first tab is no skip link")
    for _ in range(30):
        page.keyboard.press("Tab")
        if "search" in page.evaluate(focused).lower():
            break
    else:
        found.append("keyboard: no search within 30 tabs")
    page.keyboard.press("Control+k")
    page.wait_for_timeout(300)
    if page.evaluate("document.activeElement.tagName") != "INPUT":
        found.append("keyboard: Ctrl+K opens no search")
    return found


def main() -> None:
    """Check the site; the exit code says whether it is good."""
    paths = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if "_static" not in path.parts)
    paths = [path for path in paths if not path.startswith(GENERATED)]
    if asked := tuple(sys.argv[1:]):
        paths = [path for path in paths if path.startswith(asked)]
    if not paths:
        sys.exit(f"no pages in {SITE}: run `make docs`")
    options = ["--no-sandbox"]  # as root in a container
    with served(SITE) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        found = check_pages(browser, address, paths)
        page = browser.new_page()
        found += check_keyboard(page, address) + check_search(page, address) + check_links()
        browser.close()
    print(*found, sep="\n", end="\n" if found else "")
    print(f"site: {len(paths)} pages, light and dark, and {len(found)} faults")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
