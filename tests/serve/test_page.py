"""The page in a browser: it shows what was learned, and no name is markup."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
from tests.serve.material import records, rows, write_model
from tests.serve.test_http import served

from shoal.serve.engine import Engine
from shoal.serve.http.access import READ, Token

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NASTY = "<img src=x onerror=alert(1)>"


def shown(url: str, folder: Path) -> str:
    """The page as the browser has it after some seconds of its own time."""
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}"]
    command += ["--virtual-time-budget=3000", "--timeout=20000", "--dump-dom", url]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=90).stdout


def test_nothing_comes_from_elsewhere(tmp_path: Path) -> None:
    """No file of the page names another origin, and the policy would not let it."""
    with Engine(write_model(tmp_path), tmp_path / "engine") as engine, served(engine, []) as url:
        for path in ("/", "/page/app.js", "/page/style.css", "/page/icon.svg"):
            answer = httpx.get(url + path)
            assert answer.status_code == 200
            assert "default-src 'self'" in answer.headers["content-security-policy"]
            named = answer.text.replace("http://www.w3.org/2000/svg", "")
            assert "://" not in named, path
        assert "<script>" not in httpx.get(url).text
        assert httpx.get(f"{url}/page/routes.py").status_code == 404


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here (Debian: apt-get install chromium)")
def test_the_page_shows_what_was_learned(tmp_path: Path) -> None:
    with Engine(write_model(tmp_path), tmp_path / "engine") as engine:
        mails = records(3_000, seed=50)
        for mail in mails[:50]:
            mail["user"] = NASTY
        for i in range(0, 3_000, 100):
            engine.learn(rows(mails[i : i + 100])).result()
        assert engine.wait_until_learned(timeout=60)
        with served(engine, []) as url:
            page = shown(url, tmp_path / "browser")
            assert '<p id="status" role="status" class="">live</p>' in page
            assert "<b>3,000</b>" in page
            assert page.count("<polyline") == 6  # the learner and two shadows, error and log-loss
            assert "&lt;img src=x onerror=alert(1)&gt;" in page
            assert NASTY not in page
        with served(engine, [Token(b"secret", READ)]) as url:
            assert '<form id="door">' in shown(url, tmp_path / "browser")
