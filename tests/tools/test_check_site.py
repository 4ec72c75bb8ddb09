"""A page with every fault, in Chromium: the check of the site names each, and finds none in a good page."""

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

pytest.importorskip("axe_playwright_python")
playwright = pytest.importorskip("playwright.sync_api")
TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_site.py"
HEAD = """<!doctype html><html lang="en"><head><title>A page</title><meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,"></head><body><main><h1>A page</h1>"""
GOOD = """<style>body { background: Canvas; }
@media (prefers-color-scheme: dark) { :root { color-scheme: dark; } }</style>
<p>text, <a href="#">a link</a></p>"""
FAULTS = {
    "broken picture": '<img src="gone.png" alt="a picture">',
    "is 700 px wide": '<p style="width: 700px; margin: 0 -8px">wide</p>',
    "image-alt": '<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">',
    "narrow: nested-interactive": '<button>a <a href="#">link</a> in a button</button>',
    "dark: color-contrast": "<style>@media (prefers-color-scheme: dark) { i { color: #ddd; } }</style><i>pale</i>",
    "stays light": "",  # as the style of a good page is missing
    "script: gone": "<script>gone()</script>",
    "console: something": "<script>console.error('something')</script>",
    "https://example.org/": '<script>fetch("https://example.org/").catch(() => 0)</script>',
}


def test_every_fault_is_named_and_a_good_page_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if (chromium := shutil.which("chromium")) is None:
        pytest.skip("chromium is not installed")
    spec = importlib.util.spec_from_file_location("check_site", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, tool)
    spec.loader.exec_module(tool)
    monkeypatch.setattr(tool, "WAIT", 300)
    (tmp_path / "good.html").write_text(HEAD + GOOD, encoding="utf-8")
    (tmp_path / "bad.html").write_text(HEAD + "".join(FAULTS.values()), encoding="utf-8")
    with tool.served(tmp_path) as address, playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        good, bad = (tool.check_pages(browser, address, [f"{name}.html"]) for name in ("good", "bad"))
        browser.close()
    assert good == []
    assert [fault for fault in FAULTS if not any(fault in said for said in bad)] == []
