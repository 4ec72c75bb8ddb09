"""What a second core gives one learner.

`python -m benchmarks.threads`: nanoseconds a row of a first pass of HedgedSharing in one thread, and in two, of which
one prepares rows ahead of the other; and what preparing rows and learning them take by themselves: no division of the
work could take less than half of both.
"""

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.data import text_like
from benchmarks.timing import REPEATS, machine, seconds
from shoal import HedgedSharing
from shoal.datasets import load_flights
from shoal.engine.arrays import IntArray
from shoal.parallel import cores, pipeline


def first_pass(make: Callable[[], Any], X: Any, y: Any, task: Any) -> list[float]:
    """Nanoseconds a row in one thread, and in two; medians."""
    times = []
    for n in (1, 2):
        with patch.object(cores, "n_cores", return_value=n):
            times.append(seconds(lambda learner: learner.partial_fit(X, y, task), make) / len(y) * 1e9)
    return times


def parts(X: Any, y: Any, task: Any) -> list[float]:
    """Nanoseconds a row that HedgedSharing takes to prepare rows, and to learn them, by turns; medians."""
    times: list[list[float]] = []

    def by_turns(run: Callable[[pipeline.Part], int], edges: IntArray, block: Any, _: Any) -> tuple[int, float]:
        ready = 0
        for first, last in pairwise(edges.tolist()):
            start = time.perf_counter()
            ready = run(pipeline.Part(first, last, True, False, block))
            middle = time.perf_counter()
            run(pipeline.Part(first, ready, False, True, block))
            times[-1][0] += middle - start
            times[-1][1] += time.perf_counter() - middle
            if ready < last:
                break
        return ready, 0.0

    with patch.object(pipeline, "learn_in_blocks", by_turns):
        for _ in range(REPEATS):
            times.append([0.0, 0.0])
            HedgedSharing().partial_fit(X, y, task)
    return [float(part) for part in np.median(times, axis=0) / len(y) * 1e9]


def main() -> None:
    """Print the table."""
    print(f"Medians of 5. {machine()}\n")
    print(f"{'ns a row':44}{'one thread':>12}{'two threads':>13}{'preparing':>14}{'learning':>10}")
    flights, few, many = load_flights(), text_like(60_000, 15), text_like(60_000, 1_000)
    cases: dict[str, tuple[Callable[[], Any], Any]] = {
        "HedgedSharing, flights": (HedgedSharing, (flights.X, flights.y, flights.task)),
        "HedgedSharing, text-like, 15 tasks": (HedgedSharing, few),
        "HedgedSharing, text-like, 1,000 tasks": (HedgedSharing, many),
    }
    for name, (make, stream) in cases.items():
        one, two = first_pass(make, *stream)
        prepare, learn = parts(*stream)
        print(f"{name:44}{one:>12,.0f}{two:>13,.0f}{prepare:>14,.0f}{learn:>10,.0f}")


if __name__ == "__main__":
    main()
