"""Processes to ask: `shoal serve`, and empty routes."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import polars as pl

TRAINED = 40_000  # rows that the model has learned before it is served


class Flights(NamedTuple):
    """A model of the first rows of the flights, and the others to learn and to predict."""

    model: Path
    rows: pl.DataFrame
    one: Path  # a row without its label, as JSON


def make_flights(folder: Path, table: pl.DataFrame) -> Flights:
    """Learn the first rows by `shoal run`, without sharing beside it, too: the shadows."""
    table[:TRAINED].write_csv(folder / "first.csv")
    command = ["run", "first.csv", "--task", "dest", "--label", "late", "--save", "flights.shoal", "--quiet"]
    subprocess.run([sys.executable, "-m", "shoal", *command], cwd=folder, check=True)
    one = folder / "one.json"
    one.write_text(json.dumps(table.drop("late").row(TRAINED, named=True)))
    return Flights(folder / "flights.shoal", table[TRAINED:], one)


class Process(NamedTuple):
    """A server."""

    url: str
    pid: int


@contextmanager
def alongside(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Another thread works during the block, until it sees the event."""
    ends = threading.Event()
    thread = threading.Thread(target=work, args=(ends,))
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


@contextmanager
def serving(model: Path, folder: Path, *more: str, shadows: bool = False, port: int | None = None) -> Iterator[Process]:
    """`shoal serve` with more options, ended as a user ends it."""
    port = port or free_port()
    options = ["--port", str(port), "--folder", str(folder), *([] if shadows else ["--no-shadows"]), *more]
    with _running(["-m", "shoal", "serve", str(model), *options], f"http://127.0.0.1:{port}", "/health") as found:
        yield found


@contextmanager
def empty_routes() -> Iterator[Process]:
    """The framework with nothing behind it, on the same server."""
    port = free_port()
    options = ["--port", str(port), "--no-access-log", "--log-level", "warning", "--loop", "uvloop"]
    command = ["-m", "uvicorn", "benchmarks.serve.empty:app", "--http", "httptools", *options]
    with _running(command, f"http://127.0.0.1:{port}", "/") as found:
        yield found


@contextmanager
def _running(command: list[str], url: str, path: str) -> Iterator[Process]:
    process = subprocess.Popen([sys.executable, *command], stderr=subprocess.DEVNULL)
    try:
        for _ in range(1_200):
            try:
                httpx.get(url + path)
                break
            except httpx.TransportError:
                time.sleep(0.1)
        yield Process(url, process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)


def free_port() -> int:
    """A port that nobody uses."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
