"""What looking at a large model costs the predictions: a part of `python -m benchmarks.serve --large`.

A model of 100,000 tasks and 1,000,000 columns of features is served. Each route is called again and again while four
clients predict single rows; likewise a snapshot is written, a task is forgotten, the model grows, ten pages are open.
Printed are the calls, their median milliseconds, and the milliseconds of the predictions meanwhile.
"""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import polars as pl

from benchmarks.serve.services import Process, serving

TASKS, WORDS, ROWS, BITS = 100_000, 1_000_000, 300_000, 20
SECONDS, CLIENTS, PAGES = 5, 4, 10
LONGEST = 60.0  # seconds that a call may take
ARROW = {"content-type": "application/vnd.apache.arrow.stream"}


def table(rows: int, seed: int, new: str = "") -> pl.DataFrame:
    """Rows of stores with four numbers and ten words; `new` makes other tasks and words of them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 4)).round(3)
    words = rng.integers(0, WORDS, (rows, 10))
    return pl.DataFrame(
        {
            "store": [f"{new}store-{task:06d}" for task in rng.integers(0, TASKS, rows)],
            **{name: x[:, j] for j, name in enumerate("abcd")},
            "text": [" ".join(f"{new}w{word}" for word in row) for row in words],
            "y": (x[:, 0] > 0).astype(int),
        }
    )


def write_model(folder: Path) -> Path:
    """Learn the model by `shoal run`."""
    table(ROWS, 0).write_csv(folder / "large.csv")
    options = ["--hash-bits", str(BITS), "--save", "large.shoal", "--quiet", "--no-baselines"]
    command = [sys.executable, "-m", "shoal", "run", "large.csv", "--task", "store", "--label", "y", *options]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "large.shoal"


def calls_of(client: httpx.Client) -> dict[str, Callable[[], Any]]:
    """What is called in a loop, by its name in the printed table."""
    numbers = itertools.count()
    some, stores = table(1_000, 1), sorted(set(table(ROWS, 0)["store"].to_list()))
    unlabeled = some.drop("y")

    def get(path: str) -> Callable[[], Any]:
        return lambda: client.get(path)

    def arrow(path: str, rows: Callable[[], pl.DataFrame]) -> Callable[[], Any]:
        return lambda: client.post(path, content=rows().write_ipc_stream(None).getvalue(), headers=ARROW)

    def labels() -> Any:
        found = client.post("/v1/predict", json=unlabeled[:50].to_dicts()).json()
        return client.post("/v1/labels", json=[{"id": one["id"], "label": 1} for one in found])

    def exported() -> Any:
        with client.stream("GET", "/v1/export") as answer:
            for _ in answer.iter_raw():
                pass
        return answer

    return {
        "nothing": lambda: time.sleep(0.1),
        **{
            f"GET {path}": get(path) for path in ("/health", "/ready", "/", "/v1/openapi.json", "/v1/model", "/metrics")
        },
        **{f"GET /v1/tasks?sort={sort}": get(f"/v1/tasks?sort={sort}") for sort in ("rows", "error", "newest", "name")},
        "GET /v1/tasks?q=9&page=99": get("/v1/tasks?q=9&page=99"),
        "GET /v1/tasks/{task}": lambda: client.get(f"/v1/tasks/{stores[next(numbers)]}"),
        "POST /v1/predict, 1,000 rows": arrow("/v1/predict", lambda: unlabeled),
        "POST /v1/query, 1,000 rows": arrow("/v1/query", lambda: unlabeled),
        "POST /v1/learn, 1,000 rows": arrow("/v1/learn", lambda: table(1_000, next(numbers))),
        "POST /v1/learn, 1,000 new tasks": arrow("/v1/learn", lambda: table(1_000, 7, f"n{next(numbers)}")),
        "POST /v1/labels, 50 rows": labels,
        "DELETE /v1/tasks/{task}": lambda: client.delete(f"/v1/tasks/{stores[-1 - next(numbers)]}"),
        "GET /v1/export": exported,
    }


def learn_all(client: httpx.Client) -> None:
    """Learn a row of every task, as tasks are listed from their first row in the service on."""
    rows = table(ROWS, 3).unique("store")
    for first in range(0, rows.height, 10_000):
        body = rows[first : first + 10_000].write_ipc_stream(None).getvalue()
        client.post("/v1/learn", content=body, headers=ARROW).raise_for_status()
    while (said := client.get("/v1/model").json())["learned"] < said["logged"]:
        time.sleep(0.1)


@contextmanager
def called(call: Callable[[], Any]) -> Iterator[list[float]]:
    """Call again and again in a thread; gives the seconds of the calls."""
    ends, times = threading.Event(), list[float]()

    def loop() -> None:
        while not ends.is_set():
            begun = time.perf_counter()
            answer = call()
            times.append(time.perf_counter() - begun)
            if answer is not None and answer.status_code not in (200, 429):
                print(f"{answer.status_code}: {answer.text[:200]}", file=sys.stderr)
                return

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield times
    finally:
        ends.set()
        thread.join()


def predicted(service: Process, body: Path) -> list[float]:
    """Requests a second, and milliseconds of the median, the slowest hundredth, and the slowest."""
    command = [sys.executable, "-m", "benchmarks.serve.load", f"{service.url}/v1/predict", str(body)]
    return [float(value) for value in subprocess.check_output([*command, str(SECONDS), str(CLIENTS)]).split()]


def print_line(name: str, service: Process, body: Path, times: list[float] | None = None) -> None:
    """Load, then a line of the table; of calls that take longer than the load, the first."""
    begun = len(times or [])
    requests, median, slow, slowest = predicted(service, body)
    ends = time.monotonic() + LONGEST
    while times is not None and len(times) == begun and time.monotonic() < ends:
        time.sleep(0.01)
    calls = (times or [])[begun:]
    print(f"{name:34}", end="")
    print(f"{len(calls):>7,}{1e3 * statistics.median(calls):>10.1f}" if calls else f"{'-':>7}{'-':>10}", end="")
    print(f"{requests:>12,.0f}{median:>8.1f}{slow:>8.1f}{slowest:>8.0f}", flush=True)


def large(folder: Path) -> None:
    """Print the table."""
    model, body = write_model(folder), folder / "one.json"
    body.write_text(json.dumps(table(1, 2).drop("y").row(0, named=True)))
    limits = ["--new-tasks", "1000000", "--snapshot-seconds", "1000000", "--snapshot-rows"]
    print(f"\n{TASKS:,} tasks, 2^{BITS} columns of features, {CLIENTS} clients that predict")
    print(f"{'called in a loop':34}{'calls':>7}{'median ms':>10}{'predict/s':>12}{'p50':>8}{'p99':>8}{'max':>8}")
    with (
        serving(model, folder / "large", *limits, "1000000000") as service,
        httpx.Client(base_url=service.url, timeout=600) as client,
    ):
        learn_all(client)
        predicted(service, body)
        for name, call in calls_of(client).items():
            with called(call) as times:
                print_line(name, service, body, times)
        with ExitStack() as pages:
            for _ in range(PAGES):
                answer = pages.enter_context(client.stream("GET", "/v1/events"))
                pages.enter_context(called(partial_read(answer.iter_raw())))
            print_line(f"{PAGES} open pages", service, body)
    with (
        serving(model, folder / "snapshots", *limits, "1000") as service,
        httpx.Client(base_url=service.url, timeout=600) as client,
        called(calls_of(client)["POST /v1/learn, 1,000 rows"]) as times,
    ):
        print_line("a snapshot every 1,000 rows", service, body, times)


def partial_read(parts: Iterator[bytes]) -> Callable[[], Any]:
    """Read the next part of an answer that does not end."""

    def read() -> None:
        next(parts)

    return read
