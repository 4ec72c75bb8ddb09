"""What a second core gives one learner.

`python -m benchmarks.threads`: nanoseconds a row of a first pass of HedgedSharing in one thread, and in two; and what
its three parts take one after the other. Groups of experts on dense rows go a piece ahead, and rows of a block are
prepared while those of the block before are learned: no division of the work could take less than half of the sum.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.data import text_like
from benchmarks.timing import REPEATS, machine, seconds
from shoal import HedgedSharing
from shoal.datasets import load_flights
from shoal.online.hedged_sharing import algorithm, dense
from shoal.parallel import cores, pipeline

RUN = pipeline.run


def first_pass(make: Callable[[], Any], X: Any, y: Any, task: Any) -> list[float]:
    """Nanoseconds a row in one thread, and in two; medians."""
    times = []
    for n in (1, 2):
        with patch.object(cores, "n_cores", return_value=n):
            times.append(seconds(lambda learner: learner.partial_fit(X, y, task), make) / len(y) * 1e9)
    return times


class Clock:
    """The seconds of each part, which do their work in one thread and by turns."""

    def __init__(self) -> None:
        self.groups = self.preparing = self.learning = 0.0

    def learned(self, *arguments: Any) -> Any:
        """`algorithm.learned`, with its time."""
        start = time.perf_counter()
        answer = dense.learned(*arguments)
        self.groups += time.perf_counter() - start
        return answer

    def run(self, *arguments: Any) -> Any:
        """`pipeline.run`, with its time but for that of preparing rows; few numbers are read as they are learned."""
        start, prepared = time.perf_counter(), self.preparing
        answer = RUN(*arguments)
        self.learning += time.perf_counter() - start - (self.preparing - prepared)
        return answer

    def learn_in_blocks(
        self, run: Callable[[pipeline.Part], int], first: int, end: int, block: Any, _: Any
    ) -> tuple[int, float]:
        """`pipeline.learn_in_blocks`, with the time of preparing rows."""
        while first < end:
            start = time.perf_counter()
            ready = run(pipeline.Part(first, end, True, False, block))
            self.preparing += time.perf_counter() - start
            if ready == first:  # the model is full
                break
            run(pipeline.Part(first, ready, False, True, block))
            first = ready
        return first, 0.0


def parts(X: Any, y: Any, task: Any) -> list[float]:
    """Nanoseconds a row of groups, of preparing rows and of learning them; medians."""
    times = []
    for _ in range(REPEATS):
        clock = Clock()
        with ExitStack() as patches:
            patches.enter_context(patch.object(algorithm, "learned", clock.learned))
            patches.enter_context(patch.object(algorithm, "n_threads", lambda: 1))  # no piece ahead
            patches.enter_context(patch.object(pipeline, "run", clock.run))
            patches.enter_context(patch.object(pipeline, "learn_in_blocks", clock.learn_in_blocks))
            HedgedSharing().partial_fit(X, y, task)
        times.append((clock.groups, clock.preparing, clock.learning))
    return [float(part) for part in np.median(times, axis=0) / len(y) * 1e9]


def main() -> None:
    """Print the table."""
    print(f"Medians of 5. {machine()}\n")
    print(f"{'ns a row':44}{'one thread':>12}{'two threads':>13}{'groups':>12}{'preparing':>11}{'learning':>10}")
    flights, few, many = load_flights(), text_like(60_000, 15), text_like(60_000, 1_000)
    cases: dict[str, tuple[Callable[[], Any], Any]] = {
        "HedgedSharing, flights": (HedgedSharing, (flights.X, flights.y, flights.task)),
        "HedgedSharing, text-like, 15 tasks": (HedgedSharing, few),
        "HedgedSharing, text-like, 1,000 tasks": (HedgedSharing, many),
    }
    for name, (make, stream) in cases.items():
        one, two = first_pass(make, *stream)
        groups, prepare, learn = parts(*stream)
        print(f"{name:44}{one:>12,.0f}{two:>13,.0f}{groups:>12,.0f}{prepare:>11,.0f}{learn:>10,.0f}")


if __name__ == "__main__":
    main()
