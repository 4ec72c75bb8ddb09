"""Open every page of the built site in headless Chromium, and say what a reader would stumble over.

On each page: no error in the console, no request to another site, no broken picture, no fault that axe-core calls
serious or critical, light and dark, at 1,200 and at 400 px, where nothing scrolls sideways. Once: the first key tab
reaches the skip link, tab and Ctrl+K reach the search, and the search, offline, finds each learner by its name and
by the words of its papers' titles; no link within the site leads to nowhere. Usage, after `make docs`:

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
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, TimeoutError, ViewportSize, sync_playwright

SITE = Path(__file__).resolve().parents[1] / "build" / "docs"
NARROW, WIDE = ViewportSize(width=400, height=900), ViewportSize(width=1200, height=900)
MARK_LOOKS = """() => {  // the first text of each color, ground, size and weight: contrast takes axe-core long
    const seen = new Set();
    for (const one of document.body.querySelectorAll("*")) {
        const hasText = [...one.childNodes].some(child => child.nodeType == 3 && child.data.trim());
        if (!hasText || !one.checkVisibility()) continue;
        let {color, fontSize, fontWeight, opacity} = getComputedStyle(one), ground = one;
        const under = () => getComputedStyle(ground).backgroundColor;
        while (ground.parentElement && under() == "rgba(0, 0, 0, 0)") ground = ground.parentElement;
        const look = [color, under(), fontSize, fontWeight, opacity].join();
        one.toggleAttribute("data-look", !seen.has(look));
        seen.add(look);
    }
}"""
OF_COLORS = {"runOnly": ["color-contrast", "link-in-text-block"]}  # axe-core's rules
OF_WIDTHS = {"runOnly": ["scrollable-region-focusable", "aria-hidden-focus", "nested-interactive"]}
BUT_CONTRAST = {"rules": {"color-contrast": {"enabled": False}}}
WAIT = 20_000  # milliseconds that a search, or a change of colors, may take
PAPERS = SITE.parents[1] / "src/shoal/cli/commands/references.bib"  # keywords name the learners of a paper


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


def find_faults(page: Page, options: dict[str, Any], part: str = "html") -> list[str]:
    """What axe-core calls serious or critical in a part of the page as it stands."""
    options = {"preload": False, "resultTypes": ["violations"], **options}
    return [
        f"{fault['id']} ({len(nodes)}): {nodes[0]['html'][:140]} {nodes[0].get('failureSummary', '')[:200]}"
        for fault in Axe().run(page, part, options).response["violations"]
        if fault["impact"] in ("serious", "critical") and (nodes := fault["nodes"])
    ]


def find_faults_of_colors(page: Page) -> list[str]:
    """Texts that are hard to read before their ground; of those that look alike one is tried."""
    page.evaluate(MARK_LOOKS)
    return find_faults(page, OF_COLORS, "[data-look]")


def check_page(page: Page, address: str, path: str) -> list[str]:
    """What is wrong with a page: narrow, then wide, then dark."""
    found: list[str] = []
    page.on(
        "console",
        lambda said: found.append(f"console: {said.text} {said.location['url']}") if said.type == "error" else None,
    )
    page.on("pageerror", lambda error: found.append(f"script: {error}"))
    page.on("request", lambda asked: None if asked.url.startswith((address, "data:")) else found.append(asked.url))
    page.goto(f"{address}/{path}", wait_until="load")
    page.add_style_tag(content="*, ::before, ::after { transition: none !important; }")  # colors change at once
    broken = page.evaluate(
        "Promise.all([...document.images].map("
        "i => { i.loading = 'eager'; return i.decode().then(() => '', () => i.src) }))"
    )
    found += [f"broken picture: {name}" for name in broken if name]
    width = page.evaluate("document.documentElement.scrollWidth")
    if width > NARROW["width"]:
        found.append(f"is {width} px wide in a window of {NARROW['width']} px")
    found += [f"narrow: {fault}" for fault in find_faults(page, OF_WIDTHS)]
    page.set_viewport_size(WIDE)
    found += find_faults(page, BUT_CONTRAST) + find_faults_of_colors(page)
    page.emulate_media(color_scheme="dark")
    try:
        page.wait_for_function("getComputedStyle(document.body).colorScheme == 'dark'", timeout=WAIT)
    except TimeoutError:
        found.append("stays light where its reader asks for dark")
    return found + [f"dark: {fault}" for fault in find_faults_of_colors(page)]


def check_pages(browser: Browser, address: str, paths: list[str]) -> list[str]:
    """What is wrong with these pages."""
    found = []
    for path in paths:
        with browser.new_page(color_scheme="light", viewport=NARROW) as page:
            found += [f"{path}: {said}" for said in check_page(page, address, path)]
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


def search(page: Page, words: str) -> list[str]:
    """The first ten pages to which the search page leads."""
    page.evaluate(
        "words => { document.querySelector('#search-results').replaceChildren(); Search.performSearch(words) }", words
    )
    page.wait_for_function(
        "/finished|did not match/.test(document.querySelector('#search-results').innerText)", timeout=WAIT
    )
    links: list[str] = page.eval_on_selector_all("#search-results li a", "all => all.map(a => a.href)")
    return list(dict.fromkeys(urldefrag(link).url for link in links))[:10]


def check_search(page: Page, address: str) -> list[str]:
    """Learners that the search does not find by their names, or by the words of their papers' titles."""
    import shoal

    learners = [name for name in shoal.__all__ if name[0].isupper() and hasattr(getattr(shoal, name), "fit")]
    page.goto(f"{address}/search.html?q=start")
    found = [
        f"search: {name} is not found"
        for name in learners
        if not any(link.endswith(f".{name}.html") for link in search(page, name))
    ]
    papers = re.findall(r"title = \{\{(.*)\}\},\n(?:  .*\n)*?  keywords = \{(.*)\}", PAPERS.read_text("utf-8"))
    for title, names in papers:
        pages = [SITE / urlsplit(link).path.lstrip("/") for link in search(page, " ".join(re.findall(r"\w+", title)))]
        text = "".join(path.read_text("utf-8") for path in pages)
        found += [f"search: “{title}” does not lead to {name}" for name in names.split(", ") if name not in text]
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
