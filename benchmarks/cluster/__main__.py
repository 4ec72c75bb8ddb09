"""What sharding costs in loss and in time: `python -m benchmarks.cluster [--rows N] [--tasks N] [--features N]`.

Loss of the second half of made data with many tasks on 1 and 4 shards, and of the flights, which have few, on 2;
rows a second of 1 and 2 shards, and of one core that routes; milliseconds of an exchange by the number of features;
bytes a task; and on paper what ten million tasks would take.
"""

import argparse
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal import HedgedSharing
from shoal.cluster import Cluster
from shoal.cluster.merge_state import merged
from shoal.cluster.placement import RoutingPlan, split
from shoal.datasets import load_flights, make_related_tasks
from shoal.engine.rounds import NO_INDICES, NO_INDPTR, Rounds
from shoal.model.algorithm import Exchange

CHUNK, ROUNDS = 100_000, 5
FREE = {"num_cpus": 0}  # this program needs no place for the shards: the machine has what it has


def late_loss(decisions: np.ndarray, y: np.ndarray) -> float:
    """Log-loss of the second half."""
    return float(log_losses(decisions, y)[len(y) // 2 :].mean())


def log_losses(decisions: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of each row."""
    losses: np.ndarray = np.logaddexp(0.0, -np.where(y == y.max(), 1.0, -1.0) * decisions)
    return losses


def streamed(learner: Any, data: Any) -> tuple[np.ndarray, float]:
    """Decisions before learning, and seconds."""
    start, task = time.perf_counter(), np.asarray(data.task)
    X = data.X.tocsr() if hasattr(data.X, "tocsr") else data.X
    found = [
        learner.test_then_train(X[a : a + CHUNK], data.y[a : a + CHUNK], task[a : a + CHUNK])
        for a in range(0, len(data.y), CHUNK)
    ]
    return np.concatenate(found), time.perf_counter() - start


def losses(name: str, data: Any, shards: int) -> float:
    """One process, and shards with and without exchange; bytes a task."""
    print(f"{name}: {len(data.y):,} rows, {len(set(np.asarray(data.task).tolist())):,} tasks")
    HedgedSharing().partial_fit(data.X[:CHUNK], data.y[:CHUNK], data.task[:CHUNK])  # compiles
    decisions, seconds = streamed(HedgedSharing(), data)
    print(f"  one process                     log-loss {late_loss(decisions, data.y):.4f}  {seconds:7.1f} s")
    for every in (20_000, None):
        with Cluster(HedgedSharing(), shards=shards, exchange_every=every, options=FREE) as cluster:
            decisions, seconds = streamed(cluster, data)
            n_bytes = float(sum(cluster.nbytes()) / len(cluster.tasks_))
        said = f"exchange every {every:,}" if every else "no exchange"
        loss = late_loss(decisions, data.y)
        print(f"  {shards} shards, {said:21} log-loss {loss:.4f}  {seconds:7.1f} s  {n_bytes:,.0f} bytes a task")
    return n_bytes


def speed(data: Any) -> float:
    """Rows a second of shards that have a core each, rows read from Parquet; those of one."""
    n_features = data.X.shape[1]
    names = [f"x{j}" for j in range(n_features)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        frame = pl.DataFrame(np.asarray(data.X), schema=names)
        frame.with_columns(task=pl.Series(data.task), y=pl.Series(data.y)).write_parquet(path, row_group_size=CHUNK)

        def read(cluster: Cluster) -> float:
            begun = time.perf_counter()
            for first in range(0, len(data.y), CHUNK):
                part = pl.scan_parquet(path).slice(first, CHUNK).collect()
                cluster.partial_fit(
                    part.select(names).to_numpy(order="c"), part["y"].to_numpy(), part["task"].to_numpy()
                )
            cluster.nbytes()  # asked after all that was sent
            return len(data.y) / (time.perf_counter() - begun)

        found: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(ROUNDS):
            for shards, rates in found.items():
                with Cluster(HedgedSharing(), shards=shards, exchange_every=None, options=FREE) as cluster:
                    few = slice(0, CHUNK)
                    cluster.partial_fit(data.X[few], data.y[few], np.asarray(data.task)[few])  # loads what is compiled
                    cluster.nbytes()
                    rates.append(read(cluster))
    one, two = (statistics.median(rates) for rates in found.values())
    ratio = statistics.median(b / a for a, b in zip(*found.values(), strict=True))
    print(f"rows from Parquet: 1 shard {one:,.0f} rows/s, 2 shards {two:,.0f}; ratio {ratio:.2f}")
    return one


def routing(n_rows: int, n_tasks: int) -> float:
    """Rows a second that one core splits, by shards; bytes a row."""
    rng = np.random.default_rng(0)
    task, X, y = rng.integers(n_tasks, size=n_rows), rng.standard_normal((n_rows, 20)), np.ones(n_rows)
    rounds = Rounds(20, NO_INDPTR, NO_INDICES, X.ravel(), task, y, np.arange(n_rows + 1))
    start = time.perf_counter()
    RoutingPlan(16).shards_of(range(n_tasks))
    print(f"routing: {(time.perf_counter() - start) / n_tasks * 1e6:.1f} µs a new task, once")
    for n_shards in (1, 4, 16, 64):
        shard = RoutingPlan(n_shards).shards_of(range(n_tasks))[task]
        start = time.perf_counter()
        sent = sum(sum(array.nbytes for array in part.rounds[1:]) for part in split(rounds, 0, n_rows, shard, task))
        seconds = time.perf_counter() - start
        print(f"  {n_shards:3} shards  {n_rows / seconds / 1e6:6.2f} M rows/s  {sent / n_rows:.0f} bytes a row")
    return sent / n_rows


def exchanges(most: int) -> tuple[float, float]:
    """Milliseconds of merging records of 16 numbers, by features; of the most the seconds and bytes a copy."""
    kinds, rng = Exchange(mean=("shared",), sums_within=(("shared", (-1, -2)),)), np.random.default_rng(0)
    print("merging 4 copies, all entries moved:")
    for n_features in (most // 100, most // 10, most):
        copies = [{"shared": rng.random((n_features, 16), np.float32)} for _ in range(5)]
        start = time.perf_counter()
        merged(kinds, copies[0], copies[1:])
        milliseconds = (time.perf_counter() - start) * 1e3
        print(f"  {n_features:9,} features  {milliseconds:8.1f} ms  {copies[0]['shared'].nbytes / 1e6:8.1f} MB a copy")
    return milliseconds / 4e3, float(copies[0]["shared"].nbytes)


def on_paper(rate: float, bytes_a_task: float, bytes_a_row: float, merging: tuple[float, float], every: int) -> None:
    """Ten million tasks and a billion rows a day, by what was measured above."""
    rows = 1e9 / 86_400
    seconds, size = merging
    print(f"on paper: 10,000,000 tasks, {rows:,.0f} rows/s, exchange every {every:,} rows = {every / rows:.0f} s")
    print("  shards  GB of tasks a shard  cores busy of a shard  MB/s of rows  MB/s of exchanges  s to merge")
    for n in (1, 4, 16, 64):
        exchanged, merge = (2 * n * size / (every / rows) / 1e6, n * seconds) if n > 1 else (0.0, 0.0)
        busy = rows / n / rate
        print(f"  {n:6}{bytes_a_task * 1e7 / n / 1e9:21.1f}{busy:23.4f}{rows * bytes_a_row / 1e6:14.1f}", end="")
        print(f"{exchanged:19.1f}{merge:12.1f}")


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=1_000_000, help="of the largest exchange")
    parser.add_argument("--flights", type=int, default=0, help="their first so many rows; 0: all")
    given = parser.parse_args()
    made = make_related_tasks(n_tasks=given.tasks, n_features=20, n_rows=given.rows, relatedness=0.5, seed=1)
    rate = speed(made)
    bytes_a_task = losses("made data", made, 4)
    flights = load_flights()
    if given.flights:
        n = given.flights
        flights = replace(flights, X=flights.X[:n], y=flights.y[:n], task=flights.task[:n])
    losses("flights", flights, 2)
    bytes_a_row = routing(min(given.rows, 500_000), given.tasks)
    on_paper(rate, bytes_a_task, bytes_a_row, exchanges(given.features), 200_000)


if __name__ == "__main__":
    main()
