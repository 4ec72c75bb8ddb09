"""What a second core gives one learner, and why HedgedSharing's nine experts share one.

`python -m benchmarks.threads`: nanoseconds a row of a first pass, in one thread, and in two, of which one makes rows
ready ahead of the other (HedgedSharing), or answers ahead with own weights that lie in tables (MultitaskPerceptron of
many tasks). Of HedgedSharing also what making rows ready and learning take by themselves: no division of the work could
take less than half of both. And what it would cost to hand every row to other experts: two threads of compiled code
take turns, each waiting in a loop for the other, which is the fastest way there is; alone on the machine, and beside as
many busy threads as cores, as in a run where files are read and baselines learn. The mixture needs all experts' answers
before any of them learns: two meetings a row.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from threading import Thread
from typing import Any
from unittest.mock import patch

import numba
import numpy as np

from benchmarks.data import text_like
from benchmarks.timing import REPEATS, machine, seconds
from shoal import HedgedSharing, MultitaskPerceptron
from shoal.atomics import seen, tell
from shoal.cores import n_cores
from shoal.datasets import load_flights
from shoal.online import _ahead, _answers, hedged_sharing
from shoal.rounds import IntArray

TURNS = 1_000_000


@numba.njit(nogil=True)
def play(turn: IntArray, mine: int, n: int) -> None:
    """Wait for one's turn and give it to the other, n times."""
    for i in range(n):
        while seen(turn, 0) != 2 * i + mine:
            pass
        tell(turn, 0, np.int64(2 * i + mine + 1))


@numba.njit(nogil=True)
def be_busy(stop: IntArray) -> None:
    """Until stop[0] is 1."""
    while seen(stop, 0) == 0:
        pass


def round_trip(n_busy: int, n: int = TURNS) -> float:
    """Nanoseconds from one thread to another and back; median."""

    def both(_: object) -> None:
        turn = np.zeros(1, np.int64)
        other = Thread(target=play, args=(turn, 1, n))
        other.start()
        play(turn, 0, n)
        other.join()

    stop = np.zeros(1, np.int64)
    busy = [Thread(target=be_busy, args=(stop,)) for _ in range(n_busy)]
    for thread in busy:
        thread.start()
    try:
        return seconds(both) / n * 1e9
    finally:
        stop[0] = 1
        for thread in busy:
            thread.join()


def first_pass(make: Callable[[], Any], X: Any, y: Any, task: Any) -> list[float]:
    """Nanoseconds a row in one thread, and in two; medians."""
    times = []
    for cores in (1, 2):
        with patch.object(_ahead, "n_cores", return_value=cores), patch.object(_answers, "n_cores", return_value=cores):
            times.append(seconds(lambda learner: learner.partial_fit(X, y, task), make) / len(y) * 1e9)
    return times


def parts(X: Any, y: Any, task: Any) -> list[float]:
    """Nanoseconds a row that HedgedSharing takes to make rows ready, and to learn them, by turns; medians."""
    times: list[list[float]] = []

    def by_turns(run: Callable[[_ahead.Part], int], edges: IntArray, block: Any, _: Any) -> tuple[int, float]:
        ready = 0
        for first, last in pairwise(edges.tolist()):
            start = time.perf_counter()
            ready = run(_ahead.Part(first, last, True, False, block))
            middle = time.perf_counter()
            run(_ahead.Part(first, ready, False, True, block))
            times[-1][0] += middle - start
            times[-1][1] += time.perf_counter() - middle
            if ready < last:
                break
        return ready, 0.0

    with patch.object(hedged_sharing, "learn_in_blocks", by_turns):
        for _ in range(REPEATS):
            times.append([0.0, 0.0])
            HedgedSharing().partial_fit(X, y, task)
    return [float(part) for part in np.median(times, axis=0) / len(y) * 1e9]


def main() -> None:
    """Print both tables."""
    print(f"Medians of 5. {machine()}\n")
    print(f"{'ns a row':44}{'one thread':>12}{'two threads':>13}{'making ready':>14}{'learning':>10}")
    flights, few, many = load_flights(), text_like(60_000, 15), text_like(60_000, 1_000)
    cases: dict[str, tuple[Callable[[], Any], Any]] = {
        "HedgedSharing, flights": (HedgedSharing, (flights.X, flights.y, flights.task)),
        "HedgedSharing, text-like, 15 tasks": (HedgedSharing, few),
        "HedgedSharing, text-like, 1,000 tasks": (HedgedSharing, many),
        "MultitaskPerceptron, text-like, 1,000 tasks": (lambda: MultitaskPerceptron(relation=1.0), many),
    }
    for name, (make, stream) in cases.items():
        one, two = first_pass(make, *stream)
        apart = "{:>14,.0f}{:>10,.0f}".format(*parts(*stream)) if make is HedgedSharing else ""
        print(f"{name:44}{one:>12,.0f}{two:>13,.0f}{apart}")
    busy = n_cores()
    round_trip(1, 1)  # compiles both loops
    print(f"\nfrom thread to thread and back, nothing else running:  {round_trip(0):>9,.0f} ns")
    print(f"from thread to thread and back, {busy} busy threads beside: {round_trip(busy):>9,.0f} ns")


if __name__ == "__main__":
    main()
