"""What a second core gives HedgedSharing, and why its nine experts share one.

`python -m benchmarks.threads`: nanoseconds a row of a first pass, in one thread, and in two, of which one makes rows
ready ahead of the other; and what it would cost to hand every row to other experts. There, two threads of compiled
code take turns, each waiting in a loop for the other, which is the fastest way there is; alone on the machine, and
beside as many busy threads as cores, as in a run where files are read and baselines learn. The mixture needs all
experts' answers before any of them learns: two meetings a row.
"""

from __future__ import annotations

from threading import Thread
from typing import Any
from unittest.mock import patch

import numba
import numpy as np
from numba.core import types
from numba.extending import intrinsic

from benchmarks.data import text_like
from benchmarks.timing import machine, seconds
from shoal import HedgedSharing
from shoal.cores import n_cores
from shoal.datasets import load_flights
from shoal.online import _ahead
from shoal.rounds import IntArray

TURNS = 1_000_000


@intrinsic
def _seen(typing: Any, turn: Any) -> Any:
    """turn[0] as other threads have left it: a plain read may be moved out of the loop."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load_atomic(numbers, "acquire", 8)

    return types.int64(turn), emit


@intrinsic
def _tell(typing: Any, turn: Any, value: Any) -> Any:
    """turn[0] <- value, after all that was written before."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        builder.store_atomic(arguments[1], numbers, "release", 8)
        return context.get_dummy_value()

    return types.void(turn, value), emit


@numba.njit(nogil=True)
def play(turn: IntArray, mine: int, n: int) -> None:
    """Wait for one's turn and give it to the other, n times."""
    for i in range(n):
        while _seen(turn) != 2 * i + mine:
            pass
        _tell(turn, np.int64(2 * i + mine + 1))


@numba.njit(nogil=True)
def be_busy(stop: IntArray) -> None:
    """Until stop[0] is 1."""
    while _seen(stop) == 0:
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


def first_pass(X: Any, y: Any, task: Any) -> list[float]:
    """Nanoseconds a row in one thread, and in two; medians."""
    times = []
    for cores in (1, 2):
        with patch.object(_ahead, "n_cores", return_value=cores):
            times.append(seconds(lambda learner: learner.partial_fit(X, y, task), HedgedSharing) / len(y) * 1e9)
    return times


def main() -> None:
    """Print both tables."""
    print(f"Medians of 5. {machine()}\n")
    print(f"{'HedgedSharing, ns a row':28}{'one thread':>12}{'two threads':>13}")
    flights = load_flights()
    streams = {"flights": (flights.X, flights.y, flights.task)}
    streams |= {f"text-like, {n_tasks:,} tasks": text_like(60_000, n_tasks) for n_tasks in (15, 1_000)}
    for name, stream in streams.items():
        one, two = first_pass(*stream)
        print(f"{name:28}{one:>12,.0f}{two:>13,.0f}")
    busy = n_cores()
    round_trip(1, 1)  # compiles both loops
    print(f"\nfrom thread to thread and back, nothing else running:  {round_trip(0):>9,.0f} ns")
    print(f"from thread to thread and back, {busy} busy threads beside: {round_trip(busy):>9,.0f} ns")


if __name__ == "__main__":
    main()
