"""Two cores for one learner: while its weights learn one block of rows, another thread prepares the next block.

Preparing rows (scaling them, finding their pairs) needs neither labels nor weights, so nothing is handed back. The
loop is one compiled function that does the first part, the second, or both row by row: all three give the same bits.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from shoal.engine.rounds import Rounds, n_numbers
from shoal.parallel.cores import add_seconds, n_threads

FEWEST = 2**16  # numbers of a chunk that is worth a second thread
START = 2**12  # numbers that one thread learns first: whenever a model outgrows its arrays, threads begin anew
FIRST, MOST = 2**5, 2**12  # rows of a block: few at first, or a thread would wait; then twice as many each time


class Part(NamedTuple):
    """The task of a call of the loop."""

    first: int  # rounds from this one
    last: int  # up to, not with, this one; or -1: all
    prepares: bool
    learns: bool
    block: Any  # where rows wait in between; without room if they need not


def run(step: Callable[[Part], int], whole: Part, rounds: Rounds, two_blocks: Callable[[int], tuple[Any, Any]]) -> int:
    """Learn rounds by `step`, in blocks and two threads if that pays; how many were learned before one did not fit.

    Parameters
    ----------
    step : does a part; returns the round before which it stopped, because the block or the model was full, or the end
    whole : all of it, row by row
    two_blocks : each for at most this many rows, and at least for any single one
    """
    numbers = n_numbers(rounds)
    if numbers < FEWEST:
        return step(whole)
    n, n_rows = len(rounds.starts) - 1, rounds.starts[-1] - rounds.starts[0]
    start = max(1, START * len(rounds.task) // numbers)
    if n <= start or n_rows > n:  # or rounds of several rows
        return step(whole)
    done = step(whole._replace(last=start))
    if done < start:
        return done
    if n_threads() < 2:
        return step(whole._replace(first=start))
    done, seconds = learn_in_blocks(step, start, n, *two_blocks(MOST))
    add_seconds(seconds)
    return done


def learn_in_blocks(run: Callable[[Part], int], first: int, end: int, block: Any, spare: Any) -> tuple[int, float]:
    """Learn rounds in blocks by `run`; where it stopped, and the seconds of both threads.

    Neither thread is the caller's: an interrupt, which the main thread gets, waits until all is learned.
    """
    with ThreadPoolExecutor(2) as pool:
        return pool.submit(_alternate, run, first, end, block, spare, pool).result()


def _alternate(
    run: Callable[[Part], int], first: int, end: int, block: Any, spare: Any, pool: ThreadPoolExecutor
) -> tuple[int, float]:
    """Learn one block while the pool's other thread prepares the next."""
    n_rows = FIRST
    ready = pool.submit(run, Part(first, min(end, first + n_rows), True, False, block)).result()
    while ready > first:
        n_rows = min(2 * n_rows, MOST)
        ahead = pool.submit(run, Part(ready, min(end, ready + n_rows), True, False, spare))
        run(Part(first, ready, False, True, block))
        first, ready, block, spare = ready, ahead.result(), spare, block
    return ready, time.thread_time() + pool.submit(time.thread_time).result()
