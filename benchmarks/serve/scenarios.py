"""Three loads on a service: `python -m benchmarks.serve.scenarios day|herd|slow [--hours H]`.

`day`: a day of a chain of 200 shops at 100 times its speed. Each row is asked for and stored, its label comes later,
and the rows of the night come at once; `--hours` shortens the day. `herd`: a service is killed under load and started
again while 300 clients repeat what was not answered, all at once. `slow`: another process keeps the log's database
locked for half a second again and again, and once for 15 seconds.

Printed are counts, milliseconds and memory. It ends with 1 if a count is wrong (a request that is not answered, a row
that is acknowledged and not learned, or learned twice), or if a time or the growth of memory is above its bound.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, AsyncExitStack
from itertools import cycle
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.serve.services import Process, alongside, free_port, serving
from benchmarks.timing import machine
from shoal.serve.client import AsyncClient, Client
from shoal.serve.contract import Answer

SHOPS, TRAINED, NIGHT = 200, 20_000, 20_000
SPEED, ROWS_AN_HOUR = 100, 2_000  # of a busy hour, in all shops
LABEL_SECONDS = 20.0  # that a label takes in the mean
HERD, ROUNDS = 300, 3  # clients, and what each asks for
LOCKED, LONG, SLOW_SECONDS = 0.5, 15.0, 40.0
CLIENTS = 8  # each has 100 connections at most
MOST_MS, MOST_BACK, MOST_SLOW = 250.0, 60.0, LONG + 5.0  # p99 of a day; seconds of a herd; of the slowest answer
MOST_GROWTH = 100.0  # megabytes


def sales(rows: int, seed: int) -> pl.DataFrame:
    """Articles of shops in the morning, and whether they are sold out in the evening."""
    rng = np.random.default_rng(seed)
    shop, price, promotion = rng.integers(0, SHOPS, rows), rng.gamma(4.0, 0.8, rows), rng.random(rows) < 0.2
    stock, article, hour = rng.poisson(20, rows), rng.integers(0, 50, rows), rng.integers(8, 20, rows)
    wanted = 1.5 * promotion - 0.4 * price - 0.1 * stock + 0.5 * (article % 5) + 0.3 * (shop % 3) + 1.5
    return pl.DataFrame(
        {
            "shop": [f"shop-{one:03}" for one in shop],
            "price": price.round(2),
            "promotion": promotion.astype(int),
            "stock": stock,
            "article": [f"a{one}" for one in article],
            "hour": hour,
            "sold_out": np.where(rng.random(rows) < 1 / (1 + np.exp(-wanted)), "yes", "no"),
        }
    )


def write_model(folder: Path) -> Path:
    """Learn the first rows by `shoal run`."""
    sales(TRAINED, 0).write_csv(folder / "sales.csv")
    options = ["--task", "shop", "--label", "sold_out", "--save", "sales.shoal", "--quiet", "--no-baselines"]
    subprocess.run([sys.executable, "-m", "shoal", "run", "sales.csv", *options], cwd=folder, check=True)
    return folder / "sales.shoal"


class Counts:
    """What was asked, and what became of it."""

    def __init__(self) -> None:
        self.asked = self.answered = self.without_id = self.labels = self.rows = 0
        self.seconds: list[float] = []
        self.failures: list[str] = []

    async def timed(self, asked: Awaitable[Answer]) -> Answer | None:
        """The answer to a prediction, or None if it failed."""
        begun = time.perf_counter()
        self.asked += 1
        try:
            answer = await asked
        except Exception as error:
            self.failures.append(f"{type(error).__name__}: {error}")
            return None
        self.seconds.append(time.perf_counter() - begun)
        self.answered += 1
        self.without_id += answer.id is None
        return answer

    def print_times(self, title: str) -> tuple[float, float]:
        """One line of milliseconds; returns the 99th percentile and the slowest answer in seconds."""
        times = sorted(self.seconds)
        median, slow = times[len(times) // 2], times[min(int(0.99 * len(times)), len(times) - 1)]
        print(f"{title}: {len(times):,} answers, p50 {1e3 * median:.1f} ms, p99 {1e3 * slow:.1f}", end="")
        print(f", slowest {1e3 * times[-1]:.0f}", flush=True)
        return slow, times[-1]


def resident(service: Process) -> float:
    """Megabytes of a process."""
    status = Path(f"/proc/{service.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1e3


def learned(url: str) -> int:
    """The rows of the model, once all that was accepted is learned."""
    with Client(url) as client:
        while (found := client.model())["learned"] < found["logged"]:
            time.sleep(0.05)
        return found["rows"]


def judged(said: dict[str, tuple[int, int]], bounds: dict[str, tuple[float, float]], failures: list[str]) -> int:
    """Print counts beside what they must be, and the rest beside its bounds; 1 if one is wrong."""
    lines = [(name, found, found == expected, f"{expected:,}") for name, (found, expected) in said.items()]
    lines += [(name, round(found), found <= most, f"<= {most:,.0f}") for name, (found, most) in bounds.items()]
    for name, found, is_right, expected in lines:
        print(f"{name:46}{found:>8,}{expected:>10}{'' if is_right else '  WRONG'}")
    for failure in failures[:5]:
        print(failure)
    return int(not all(is_right for _, _, is_right, _ in lines))


# ---- a day -----------------------------------------------------------------------------------------------------


def rows_an_hour(hour: float) -> float:
    """Few at night, most at noon and in the evening."""
    if not 7 <= hour < 21:
        return 0.02 * ROWS_AN_HOUR
    return ROWS_AN_HOUR * (0.5 + 0.5 * math.exp(-((hour - 12) ** 2) / 2) + 0.5 * math.exp(-((hour - 18) ** 2) / 2))


async def live_through(service: Process, hours: float, counts: Counts) -> None:
    """Ask for rows, send their labels later, learn the night's rows; the day begins in the afternoon."""
    table, chance = sales(50_000, 1), random.Random(0)
    waiting: list[tuple[float, str, str]] = []
    tasks: set[asyncio.Task[None]] = set()
    begun, first = time.monotonic(), 17.0

    async with AsyncClient(service.url) as client:

        async def ask(number: int) -> None:
            row = table.row(number % table.height, named=True)
            label = row.pop("sold_out")
            answer = await counts.timed(client.predict_one(row))
            if answer is not None and answer.id is not None:
                waiting.append((time.monotonic() + chance.expovariate(1 / LABEL_SECONDS), answer.id, label))

        async def send_labels(*, all_of_them: bool) -> None:
            due = [one for one in waiting if all_of_them or one[0] <= time.monotonic()]
            if due:
                waiting[:] = [one for one in waiting if one not in due]
                said = await client.label([(name, label) for _, name, label in due])
                counts.labels += said.accepted

        number, seen, learned_night = 0, -1, False
        while (hour := first + (time.monotonic() - begun) * SPEED / 3600) < first + hours:
            if int(hour) != seen:
                seen = int(hour)
                print(f"{seen % 24:>5} h{number:>10,} rows{resident(service):>8,.0f} MB", flush=True)
            if hour % 24 < 7 and not learned_night:
                learned_night = True
                for at in range(0, NIGHT, 2_000):
                    receipt = await client.learn(sales(NIGHT, 2)[at : at + 2_000])
                    counts.rows += receipt.rows
            await send_labels(all_of_them=False)
            for _ in range(max(1, round(rows_an_hour(hour % 24) * SPEED / 3600 * 0.1))):
                task = asyncio.create_task(ask(number))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                number += 1
            await asyncio.sleep(0.1)
        while tasks:
            await asyncio.sleep(0.05)
        await send_labels(all_of_them=True)


def day(folder: Path, hours: float) -> int:
    """A day of a chain of shops."""
    counts = Counts()
    with serving(write_model(folder), folder / "day") as service:
        before = resident(service)
        asyncio.run(live_through(service, hours, counts))
        slow_ones, _ = counts.print_times("predictions")
        rows, after = learned(service.url), resident(service)
        print(f"memory at the end: {after:,.0f} MB")
    said = {
        "predictions answered, of those asked for": (counts.answered, counts.asked),
        "labels accepted, of the answers": (counts.labels, counts.answered),
        "rows learned, of labels and rows acknowledged": (rows, counts.labels + counts.rows),
    }
    bounds = {
        "p99 of predictions, ms": (1e3 * slow_ones, MOST_MS),
        "growth of memory, MB": (after - before, MOST_GROWTH),
    }
    return judged(said, bounds, counts.failures)


# ---- a herd after a restart ------------------------------------------------------------------------------------


async def herd_at(url: str, counts: Counts, killed: Callable[[], None]) -> None:
    """Each client predicts and learns, again and again until it is answered; the service is killed meanwhile."""
    table = sales(HERD * ROUNDS, 3)

    async def one(number: int) -> None:
        async with AsyncClient(url, retries=12) as client:
            for turn in range(ROUNDS):
                row = table.row(number * ROUNDS + turn, named=True)
                asked = {name: value for name, value in row.items() if name != "sold_out"}
                await counts.timed(client.predict_one(asked))
                try:
                    receipt = await client.learn([row], key=f"client {number}, turn {turn}")
                    counts.rows += receipt.rows
                except Exception as error:
                    counts.failures.append(f"{type(error).__name__}: {error}")

    clients = asyncio.gather(*(one(number) for number in range(HERD)))
    while counts.answered < HERD:
        await asyncio.sleep(0.01)
    killed()
    await clients


def herd(folder: Path, _: float) -> int:
    """Many clients at once, behind a kill."""
    counts, port, restarted = Counts(), free_port(), threading.Event()
    model, live, rows, memory = write_model(folder), folder / "herd", list[int](), list[float]()
    ends = threading.Event()

    def start_again() -> None:
        restarted.wait()
        begun = time.monotonic()
        with serving(model, live, port=port) as service:
            memory.append(resident(service))
            print(f"answers {time.monotonic() - begun:.1f} s after the start, {memory[0]:,.0f} MB", flush=True)
            ends.wait()
            rows.append(learned(service.url))
            memory.append(resident(service))

    again = threading.Thread(target=start_again)
    again.start()
    with serving(model, live, port=port) as service:

        def kill() -> None:
            print(f"killed after {counts.answered:,} answers, {resident(service):,.0f} MB", flush=True)
            os.kill(service.pid, signal.SIGKILL)
            restarted.set()

        begun = time.monotonic()
        asyncio.run(herd_at(service.url, counts, kill))
        seconds = time.monotonic() - begun
        print(f"all are answered {seconds:.1f} s after the first asked")
    ends.set()
    again.join()
    counts.print_times("predictions, with all repeats")
    print(f"memory at the end: {memory[1]:,.0f} MB")
    said = {
        "predictions answered, of those asked for": (counts.answered, HERD * ROUNDS),
        "rows acknowledged, of those sent": (counts.rows, HERD * ROUNDS),
        "rows learned, of those acknowledged": (rows[0], counts.rows),
    }
    bounds = {
        "until all are answered, s": (seconds, MOST_BACK),
        "growth of memory, MB": (memory[1] - memory[0], MOST_GROWTH),
    }
    return judged(said, bounds, counts.failures)


# ---- a slow database -------------------------------------------------------------------------------------------


def locked_often(path: Path) -> AbstractContextManager[None]:
    """Keep the database locked most of the time, and once for long."""

    def lock(ends: threading.Event) -> None:
        database = sqlite3.connect(path, timeout=60, isolation_level=None)
        begun, long_lock = time.monotonic(), False
        while not ends.is_set():
            database.execute("begin immediate")
            is_long = not long_lock and time.monotonic() > begun + SLOW_SECONDS / 3
            long_lock = long_lock or is_long
            ends.wait(LONG if is_long else LOCKED)
            database.execute("rollback")
            ends.wait(0.3)
        database.close()

    return alongside(lock)


async def ask_for(url: str, seconds: float, counts: Counts) -> int:
    """One asks every 50 milliseconds, whether the others are answered or not; four learn. The requests to learn."""
    table, ends = sales(20_000, 4), time.monotonic() + seconds
    sent = 0

    async def predict() -> None:
        async with AsyncExitStack() as opened:
            clients = [await opened.enter_async_context(AsyncClient(url, timeout=120.0)) for _ in range(CLIENTS)]
            tasks = await opened.enter_async_context(asyncio.TaskGroup())
            for row, client in zip(table.drop("sold_out").iter_rows(named=True), cycle(clients), strict=False):
                if time.monotonic() > ends:
                    break
                tasks.create_task(counts.timed(client.predict_one(row)))
                await asyncio.sleep(0.05)

    async def learn(first: int) -> None:
        nonlocal sent
        async with AsyncClient(url, retries=20, timeout=120.0) as client:
            number = first
            while time.monotonic() < ends:
                sent += 1
                try:
                    part = table[number * 5 % 15_000 :][:5].to_dicts()
                    receipt = await client.learn(part, key=f"rows {number}")
                    counts.rows += receipt.rows
                except Exception as error:
                    counts.failures.append(f"{type(error).__name__}: {error}")
                number += 4

    await asyncio.gather(predict(), *(learn(i) for i in range(4)))
    return sent


def slow(folder: Path, _: float) -> int:
    """A database that lets others wait."""
    counts = Counts()
    with serving(write_model(folder), folder / "slow") as service:
        before = resident(service)
        print(f"before: {before:,.0f} MB", flush=True)
        with locked_often(folder / "slow" / "log.sqlite"):
            sent = asyncio.run(ask_for(service.url, SLOW_SECONDS, counts))
        _, slowest = counts.print_times("predictions")
        print(f"{counts.without_id:,} of them without id, while the log did not answer")
        rows, after = learned(service.url), resident(service)
        print(f"memory at the end: {after:,.0f} MB")
    said = {
        "predictions answered, of those asked for": (counts.answered, counts.asked),
        "rows acknowledged, of those sent": (counts.rows, 5 * sent),
        "rows learned, of those acknowledged": (rows, counts.rows),
    }
    bounds = {"slowest answer, s": (slowest, MOST_SLOW), "growth of memory, MB": (after - before, MOST_GROWTH)}
    return judged(said, bounds, counts.failures)


SCENARIOS = {"day": day, "herd": herd, "slow": slow}


def main() -> None:
    """Run one; exit with 1 if a count is wrong or a bound is passed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("scenario", choices=SCENARIOS)
    parser.add_argument("--hours", type=float, default=24.0, help="of the day")
    arguments = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as name:
        sys.exit(SCENARIOS[arguments.scenario](Path(name), arguments.hours))


if __name__ == "__main__":
    main()
