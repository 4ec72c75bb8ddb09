"""Where files are looked for, and what a download may and may not leave behind."""

from __future__ import annotations

import gzip
import hashlib
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from shoal.datasets.files import Source, find

CONTENT = b"1 3:1\n-1 4:2\n"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("SHOAL_DATA", raising=False)
    return tmp_path / "home"


class Server(HTTPServer):
    """Serves CONTENT at /mails.tf, breaks off at /cut-off.tf, and remembers what was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), Handler)

    def source(self, path: str = "/mails.tf", sha256: str = DIGEST, gzipped: bool = False) -> Source:
        return Source(f"http://127.0.0.1:{self.server_port}{path}", sha256, gzipped)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        found = self.path == "/mails.tf"
        cut_off = self.path == "/cut-off.tf"
        self.send_response(200 if found or cut_off else 404)
        if cut_off:
            self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(CONTENT if found else b"")

    def log_message(self, *args: object) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def put(folder: Path, content: bytes = b"local") -> Path:
    path = folder / "toy" / "part" / "mails.tf"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return path


def everything_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_own_folder_comes_before_the_cache_and_the_cache_before_the_network(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    cached = put(home / ".cache" / "shoal")
    assert find("toy", "part", "mails.tf", source=server.source()) == cached
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path / "own"))
    assert find("toy", "part", "mails.tf", source=server.source()) == cached
    own = put(tmp_path / "own")
    assert find("toy", "part", "mails.tf", source=server.source()) == own
    assert server.asked == []


def test_a_download_is_kept(home: Path, server: Server) -> None:
    first = find("toy", "part", "mails.tf", source=server.source())
    again = find("toy", "part", "mails.tf", source=server.source())
    assert first == again == home / ".cache" / "shoal" / "toy" / "part" / "mails.tf"
    assert first.read_bytes() == CONTENT
    assert server.asked == ["/mails.tf"]
    assert everything_in(home) == [first]


def test_plain_text_is_kept_gzipped_where_our_layout_says_so(home: Path, server: Server) -> None:
    path = find("toy", "mails.tf.gz", source=server.source(gzipped=True))
    assert gzip.decompress(path.read_bytes()) == CONTENT


def test_a_file_of_another_checksum_is_not_kept(home: Path, server: Server) -> None:
    with pytest.raises(ValueError, match=f"does not serve the expected file: its SHA-256 is {DIGEST}"):
        find("toy", "mails.tf", source=server.source(sha256="0" * 64))
    assert everything_in(home) == []


def test_a_dead_address_says_where_the_file_may_be_put(home: Path, server: Server) -> None:
    with pytest.raises(FileNotFoundError, match=r"toy/gone\.tf is neither in .*404.*set SHOAL_DATA"):
        find("toy", "gone.tf", source=server.source("/gone.tf"))
    assert everything_in(home) == []


def test_a_download_that_breaks_off_is_not_kept(home: Path, server: Server) -> None:
    with pytest.raises(FileNotFoundError, match=r"could it be fetched.*IncompleteRead"):
        find("toy", "mails.tf", source=server.source("/cut-off.tf"))
    assert everything_in(home) == []


def test_a_file_without_an_address_says_where_it_is_expected(home: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"the file toy/a/b\.mat, which has no public address.*SHOAL_DATA"):
        find("toy", "a", "b.mat")


def test_a_crash_leaves_no_half_file(home: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*paths: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        find("toy", "mails.tf", source=server.source())
    assert everything_in(home) == []
