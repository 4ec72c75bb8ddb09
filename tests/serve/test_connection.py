"""What a connection may send before it is known who asks: each thing without end, slowly, and up to the limits."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

SERVER = """
from concurrent.futures import Future

from shoal.cli.commands import serve as server
from shoal.cli.commands.serve import listening, serve_until_signal
from shoal.serve.contract import Pending
from shoal.serve.http.access import READ, Token
from shoal.serve.http.connection import Connection
from shoal.serve.http.app import application

class Waiting:
    def overview(self):
        return {}

    def predict_each(self, rows):
        return [Pending(range(len(rows)), Future())]

Connection.head_seconds, server.GRACE_SECONDS = 0.5, 1
with listening("127.0.0.1", 0) as listener:
    listener.listen()
    print(listener.getsockname()[1], flush=True)
    serve_until_signal(application(Waiting(), [Token(b"read" * 5, READ)]), listener)
"""
GET = b"GET /health HTTP/1.1\r\nHost: x\r\n"
POST = b"POST /v1/learn HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n"
MOST = 40 << 20  # bytes that are sent of what has no end
GROWTH = 24 << 20  # of the server's memory, by all of it


class Server(NamedTuple):
    """A process that serves without a model."""

    port: int
    process: int

    @property
    def memory(self) -> int:
        """The most bytes it has had so far: they are free again when a connection ends."""
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{self.process}/status").read_text())
        assert found
        return int(found[1]) << 10

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def ask(self, request: bytes) -> list[int]:
        """The statuses of all answers, until the server closes the connection."""
        with self.connect() as connection:
            connection.sendall(request)
            return rest_of(connection)


def rest_of(connection: socket.socket) -> list[int]:
    answer = b""
    with suppress(ConnectionError):
        while more := connection.recv(1 << 16):
            answer += more
    return [int(status) for status in re.findall(rb"HTTP/1.1 (\d+)", answer)]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as (found, process):
        yield found
        process.terminate()
        process.wait(20)


@contextmanager
def running() -> Iterator[tuple[Server, subprocess.Popen[str]]]:
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield Server(int(process.stdout.readline()), process.pid), process


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's numbers about processes")
def test_what_has_no_end_takes_no_memory(server: Server) -> None:
    assert server.ask(GET + b"Connection: close\r\n\r\n") == [200]
    before, statuses = server.memory, {}
    for name, first, piece in (
        ("lines", GET, b"Y: z\r\n" * 10_000),
        ("line", GET + b"Y: ", b"z" * 65_536),
        ("name", GET, b"Y" * 65_536),
        ("address", b"GET /", b"a" * 65_536),
        ("empty lines", b"", b"\r\n" * 32_768),
        ("requests", b"", (GET + b"\r\n") * 2_000),
        ("trailers", CHUNKED + b"a\r\n0\r\n", b"Y: z\r\n" * 10_000),
        ("trailer", CHUNKED + b"a\r\n0\r\nY: ", b"z" * 65_536),
        ("extension of a chunk", CHUNKED[:-2] + b";", b"e" * 65_536),
        ("body", POST + b"Content-Length: 1000000000000\r\n\r\n", b"z" * 65_536),
    ):
        with server.connect() as connection:
            with suppress(ConnectionError):
                connection.sendall(first)
                for _ in range(MOST // len(piece)):
                    connection.sendall(piece)
            statuses[name] = rest_of(connection)
            assert server.memory < before + GROWTH, name
    for name in ("lines", "line", "name", "address", "empty lines"):
        assert statuses[name] in ([431], []), name  # the answer may be lost, as more was on its way
    assert server.ask(GET + b"Connection: close\r\n\r\n") == [200]


def test_a_head_has_a_hundred_lines_and_64_kb(server: Server) -> None:
    end = b"Connection: close\r\n\r\n"
    assert server.ask(GET + b"Y: z\r\n" * 98 + end) == [200]
    assert server.ask(GET + b"Y: z\r\n" * 99 + end) == [431]
    assert server.ask(GET + b"Y: " + b"z" * 64_000 + b"\r\n" + end) == [200]
    assert server.ask(GET + b"Y: " + b"z" * 66_000 + b"\r\n" + end) == [431]
    assert server.ask(b"GET /" + b"a" * 66_000 + b" HTTP/1.1\r\nHost: x\r\n" + end) == [431]
    assert server.ask(GET + b"Host: y\r\n" + end) == [400]
    assert server.ask(b"nonsense\r\n\r\n") == [400]


def test_requests_that_are_sent_ahead_are_answered_in_their_order(server: Server) -> None:
    last = b"Connection: close\r\n\r\n"
    assert server.ask((GET + b"\r\n") * 30 + b"GET /v1/model HTTP/1.1\r\nHost: x\r\n" + last) == [200] * 30 + [401]
    assert server.ask((GET + b"\r\n") * 3 + GET + b"Y: z\r\n" * 101) == []  # 431 is no answer to the first


def test_a_head_that_comes_slowly_is_cut(server: Server) -> None:
    with server.connect() as silent, server.connect() as slow, server.connect() as between:
        between.sendall(GET + b"\r\n")
        assert between.recv(4_096).startswith(b"HTTP/1.1 200")
        between.sendall(GET[:9])
        with suppress(ConnectionError):
            for byte in GET + b"Y: " + b"z" * 1_000:
                slow.sendall(bytes([byte]))
                time.sleep(0.02)
        assert rest_of(slow) in ([408], [])
        assert rest_of(between) == [408]
        assert rest_of(silent) == []


def test_a_body_of_which_nothing_comes_is_cut(server: Server) -> None:
    """Behind a head alone, behind answered requests, and while one before it is answered; not where no body is read."""
    token, length = b"Authorization: Bearer " + b"read" * 5 + b"\r\n", b"Content-Length: 9\r\n\r\n"
    announced = POST.replace(b"learn", b"predict") + token + length
    assert server.ask(announced) == [408]
    assert server.ask(GET + b"\r\n" + announced) == [200, 408]
    with server.connect() as one:
        one.sendall(announced)
        time.sleep(0.3)
        one.sendall(b"{")
        time.sleep(0.3)
        one.sendall(b'"u": 1}')
        one.settimeout(0.7)
        with pytest.raises(TimeoutError):  # the model is asked, and answers nothing
            one.recv(1)
    with server.connect() as other:
        other.sendall(POST + length)  # without a token
        assert other.recv(4_096).startswith(b"HTTP/1.1 401")


def test_an_end_while_requests_wait_is_quiet() -> None:
    """Such as for a database that is away."""
    token, body = b"Authorization: Bearer " + b"read" * 5 + b"\r\n", b'{"user": "u1"}'
    with running() as (server, process), server.connect() as waiting, server.connect() as page:
        page.sendall(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n" + token + b"\r\n")
        assert b" 200 " in page.recv(1 << 16)
        length = b"Content-Length: %d\r\n\r\n" % len(body)
        waiting.sendall(POST.replace(b"learn", b"predict") + token + length + body)
        time.sleep(0.3)
        process.terminate()
        assert rest_of(waiting) == [503]
        _, said = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "Traceback" not in said, said
