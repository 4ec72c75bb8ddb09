"""A million tasks on one machine: `python -m benchmarks.cluster.many_tasks [--tasks N] [--rows N] [--shards N]`.

Memory of the shards' processes while rows come: it grows with the tasks that have come, and not with their rows.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import ray

from benchmarks.cluster.__main__ import CHUNK, FREE, log_losses
from benchmarks.timing import machine
from shoal import HedgedSharing
from shoal.cluster import Cluster
from shoal.datasets import make_related_tasks


def resident(cluster: Any) -> float:
    """GB of the shards' own memory, without what they share with Ray's store of objects."""
    found = 0
    for handle in cluster._handles:
        number = ray.get(handle.actor.__ray_call__.remote(lambda _: os.getpid()))
        lines = Path(f"/proc/{number}/status").read_text().splitlines()
        found += next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))
    return found * 1024 / 1e9


def main() -> None:
    """Print a line for each part of the stream."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--features", type=int, default=5)
    parser.add_argument("--shards", type=int, default=2)
    given = parser.parse_args()
    made = make_related_tasks(
        n_tasks=given.tasks, n_features=given.features, n_rows=given.rows, relatedness=0.5, seed=1
    )  # fmt: skip
    X, y, task = np.asarray(made.X), np.asarray(made.y), np.asarray(made.task)
    print(machine())
    print(f"{given.features} features, {given.shards} shards of HedgedSharing(), no exchange")
    print(f"{'rows':>12}{'tasks':>12}{'rows/s':>12}{'GB':>8}{'bytes a task':>14}{'log-loss':>10}")
    with Cluster(HedgedSharing(), shards=given.shards, exchange_every=None, options=FREE) as cluster:
        at, part = 1_000, max(given.rows // 8, CHUNK)
        cluster.partial_fit(X[:at], y[:at], task[:at])  # loads what is compiled
        cluster.nbytes()
        begun, losses = time.perf_counter(), np.zeros(0)
        while at < len(y):
            rows = slice(at, at + CHUNK)
            decisions = cluster.test_then_train(X[rows], y[rows], task[rows])
            losses = np.append(losses, log_losses(decisions, y[rows]))
            at += CHUNK
            if at % part < CHUNK or at >= len(y):
                n, seconds = len(cluster.tasks_), time.perf_counter() - begun
                size, state = resident(cluster), float(sum(cluster.nbytes()))
                rate = len(losses) / seconds
                print(f"{at:>12,}{n:>12,}{rate:>12,.0f}{size:>8.2f}{state / n:>14,.0f}{losses.mean():>10.4f}")
                begun, losses = time.perf_counter(), np.zeros(0)


if __name__ == "__main__":
    main()
