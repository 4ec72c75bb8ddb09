"""What the service costs, beside what cannot be done without: `python -m benchmarks.serve [--minutes M]`.

One row predicted by a request, its row in the log when the answer comes, beside an empty route of the same framework;
the same while 500 rows a second are learned; rows learned in Arrow batches of 1,000, durable, beside `partial_fit`;
NDJSON over HTTP; and memory over M minutes of all of it together. Load comes from the same machine, 32 clients. Medians
of rounds in turns.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import httpx
import polars as pl

from benchmarks.serve.large import large
from benchmarks.serve.services import Flights, Process, alongside, empty_routes, make_flights, serving
from benchmarks.tables import flights as flights_table
from benchmarks.timing import machine
from shoal.serve.client import Client
from shoal.serve.contract import Rows
from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.served_model import ServedModel

ROUNDS, SECONDS, CLIENTS = 5, 3, 32
ROWS_A_SECOND = 500  # that are learned meanwhile
BATCH = 1_000
BATCHES = 60
LINES = 100_000  # of NDJSON


class Load(NamedTuple):
    """What 32 clients saw."""

    requests: float  # a second
    median: float  # milliseconds
    slow: float  # the slowest hundredth


def ask(url: str, body: Path, seconds: float = SECONDS) -> Load:
    """Run the clients in a process of their own."""
    command = [sys.executable, "-m", "benchmarks.serve.load", url, str(body), str(seconds), str(CLIENTS)]
    return Load(*map(float, subprocess.check_output(command, text=True).split()[:3]))


def learning(service: Process, rows: pl.DataFrame, a_second: int = ROWS_A_SECOND) -> AbstractContextManager[None]:
    """Send rows meanwhile, ten requests a second."""

    def send(ends: threading.Event) -> None:
        n = a_second // 10
        with Client(service.url) as client:
            for first in range(0, rows.height, n):
                begun = time.perf_counter()
                client.learn(rows[first : first + n])
                if ends.wait(max(0.1 - (time.perf_counter() - begun), 0.0)):
                    return

    return alongside(send)


def predict_one(data: Flights, folder: Path) -> None:
    """Requests a second of one row each."""
    found: dict[str, list[Load]] = {}
    with empty_routes() as empty, serving(data.model, folder / "one") as service:
        ask(f"{service.url}/v1/predict", data.one, 1)
        for number in range(ROUNDS):
            for name, url in (("plain", f"{empty.url}/plain"), ("least", f"{empty.url}/least")):
                found.setdefault(name, []).append(ask(url, data.one))
            found.setdefault("predict", []).append(ask(f"{service.url}/v1/predict", data.one))
            first = number * ROWS_A_SECOND * 2 * SECONDS
            with learning(service, data.rows[first : first + ROWS_A_SECOND * 2 * SECONDS]):
                found.setdefault("learning", []).append(ask(f"{service.url}/v1/predict", data.one))
    names = {
        "plain": "an empty route, arguments and answer by the framework",
        "least": "an empty route, body read and written by hand",
        "predict": "predict one row",
        "learning": f"the same while {ROWS_A_SECOND} rows a second are learned",
    }
    print(
        f"\n{'one row a request, ' + str(CLIENTS) + ' clients':58}{'requests/s':>11}{'p50 ms':>8}{'p99 ms':>8}", end=""
    )
    print(f"{'/ empty':>9}{'/ by hand':>10}")
    for name, title in names.items():
        load = Load(*(statistics.median(values) for values in zip(*found[name], strict=True)))
        print(f"{title:58}{load.requests:>11,.0f}{load.median:>8.1f}{load.slow:>8.1f}", end="")
        for beside, wide in (("plain", 9), ("least", 10)):
            ratios = [one.requests / other.requests for one, other in zip(found[name], found[beside], strict=True)]
            print(f"{statistics.median(ratios):>{wide}.2f}", end="")
        print(flush=True)


def learn_batches(data: Flights, folder: Path) -> None:
    """Rows a second, acknowledged and learned, beside what the learner takes for rows that are encoded already."""
    batches = [data.rows[first : first + BATCH] for first in range(0, BATCH * (BATCHES + 1), BATCH)]
    ours, alone = [], []
    for number in range(ROUNDS):
        served = ServedModel(data.model, with_shadows=False)
        chunks = [served.encode(served.check(Rows(batch, False))[0]) for batch in batches]
        learner = served.learner
        learner.add_features(max(chunks[-1].X.shape[1] - learner.n_features_in_, 0))
        wide = [chunk.X.copy() for chunk in chunks]
        for X in wide:
            X.resize(X.shape[0], learner.n_features_in_)
        learner.partial_fit(wide[0], chunks[0].y, chunks[0].task)
        begun = time.perf_counter()
        for X, chunk in zip(wide[1:], chunks[1:], strict=True):
            learner.partial_fit(X, chunk.y, chunk.task)
        alone.append(BATCH * BATCHES / (time.perf_counter() - begun))
        with Engine(data.model, folder / f"batches {number}", EngineSettings(shadows=False)) as engine:
            engine.learn(Rows(batches[0], False)).result()
            engine.wait_until_learned()
            begun = time.perf_counter()
            for done in [engine.learn(Rows(batch, False)) for batch in batches[1:]]:
                done.result()
            engine.wait_until_learned()
            ours.append(BATCH * BATCHES / (time.perf_counter() - begun))
    ratio = statistics.median(one / other for one, other in zip(ours, alone, strict=True))
    print(f"\nlearn, Arrow batches of {BATCH:,}, durable: {statistics.median(ours):,.0f} rows/s", end="")
    print(f"; partial_fit on encoded rows {statistics.median(alone):,.0f}; ratio {ratio:.2f}", flush=True)


def learn_lines(data: Flights, folder: Path) -> None:
    """NDJSON in one request, until all is in the log, and until all is learned."""
    body = data.rows[:LINES].write_ndjson().encode()
    for shadows in (False, True):
        accepted, learned = [], []
        for number in range(3):
            with serving(data.model, folder / f"lines {shadows} {number}", shadows=shadows) as service:
                begun = time.perf_counter()
                answer = httpx.post(
                    f"{service.url}/v1/learn",
                    content=body,
                    headers={"content-type": "application/x-ndjson"},
                    timeout=600,
                )
                accepted.append(LINES / (time.perf_counter() - begun))
                if b"problem" in answer.content:
                    sys.exit(answer.text)
                with Client(service.url) as client:
                    while client.model()["learned"] < client.model()["logged"]:
                        time.sleep(0.01)
                learned.append(LINES / (time.perf_counter() - begun))
        name = "with two shadows" if shadows else "without shadows"
        print(f"NDJSON of {LINES:,} rows, {name}: {statistics.median(accepted):,.0f} rows/s in the log", end="")
        print(f", {statistics.median(learned):,.0f} learned", flush=True)


def memory(data: Flights, folder: Path, minutes: float) -> None:
    """Resident memory while rows are predicted, learned and labeled."""
    rows = data.rows.sample(fraction=1.0, shuffle=True, seed=0)
    rows = pl.concat([rows] * (1 + int(minutes * 60 * ROWS_A_SECOND) // rows.height))
    print(f"\nmemory over {minutes:g} minutes: predictions of 32 clients, {ROWS_A_SECOND} rows a second to learn")
    with serving(data.model, folder / "memory") as service, learning(service, rows):
        ends = time.monotonic() + 60 * minutes
        while time.monotonic() < ends:
            load = ask(f"{service.url}/v1/predict", data.one, 20)
            status = Path(f"/proc/{service.pid}/status").read_text()
            resident = int(status.partition("VmRSS:")[2].split()[0]) / 1e3
            with Client(service.url) as client:
                learned = client.model()["rows"]
            print(f"{learned:>10,} rows learned{load.requests:>10,.0f} requests/s{resident:>10,.0f} MB", flush=True)


def main() -> None:
    """Print it all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--large", action="store_true", help="what each route of a large model costs the predictions")
    arguments = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.large:
            large(folder)
            return
        data = make_flights(folder, flights_table().drop("delay"))
        predict_one(data, folder)
        learn_batches(data, folder)
        learn_lines(data, folder)
        memory(data, folder, arguments.minutes)


if __name__ == "__main__":
    main()
