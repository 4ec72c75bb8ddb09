"""Two cores for one learner: while its weights learn one block of rows, another thread prepares the next block.

Preparing rows (scaling them, finding their pairs) needs neither labels nor weights, so nothing is handed back. The
loop is one compiled function that does the first part, the second, or both row by row: all three give the same bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from shoal.engine.arrays import IntArray
from shoal.engine.rounds import Rounds
from shoal.parallel.cores import add_seconds, n_threads

ENTRIES = 2**17  # of a block of rows
FEWEST = 2**13  # of a chunk that is worth a second thread
START = 2**8  # rounds that one thread learns first: a new model outgrows its arrays there, and threads begin anew then


class Part(NamedTuple):
    """What a call of the loop has to do."""

    first: int  # rounds from this one
    last: int  # up to, not with, this one; or -1: all
    prepares: bool
    learns: bool
    block: Any  # where rows wait in between; without room if they need not


def blocks(rounds: Rounds, entries: IntArray) -> IntArray | None:
    """The blocks' first rounds and the end of the last; None if there is nothing to share out between threads.

    Parameters
    ----------
    entries : (kinds, rows) places that each row takes in a block
    """
    ends = np.cumsum(entries.sum(axis=0))
    if len(ends) == 0 or ends[-1] < 2 * ENTRIES or len(rounds.starts) - 1 < len(ends):  # rounds of several rows
        return None
    edges = np.unique(np.append(np.searchsorted(ends, np.arange(0, ends[-1], ENTRIES)), [0, len(ends)]))
    return edges if len(edges) > 2 else None  # else one long row


def run(
    step: Callable[[Part], int],
    whole: Part,
    rounds: Rounds,
    entries_of: Callable[[Rounds], IntArray],
    new_block: Callable[..., Any],
) -> int:
    """Learn rounds by `step`, in blocks and two threads if that pays; how many were learned before one did not fit.

    Parameters
    ----------
    whole : all of it, row by row
    entries_of : (kinds, rows) places that each row of rounds takes in a block
    new_block : of so many places of each kind, and rows
    """
    if len(rounds.values) < FEWEST or len(rounds.starts) - 1 <= START or n_threads() < 2:
        return step(whole)
    done = step(whole._replace(last=START))
    if done < START:
        return done
    rest = rounds._replace(starts=rounds.starts[START:])
    entries = entries_of(rest)
    edges = blocks(rest, entries)
    if edges is None:
        return step(whole._replace(first=START))
    sizes = np.add.reduceat(entries, edges[:-1], axis=1).max(axis=1).tolist()
    these, those = (new_block(*sizes, int(np.diff(edges).max())) for _ in range(2))
    done, seconds = learn_in_blocks(step, START + edges, these, those)
    add_seconds(seconds)
    return done


def learn_in_blocks(run: Callable[[Part], int], edges: IntArray, these: Any, those: Any) -> tuple[int, float]:
    """Learn rounds in blocks by `run`; how many were learned if one did not fit, and the seconds of both threads.

    Both are other threads than the caller's: an interrupt, which comes to that one, waits until all is learned.
    """
    with ThreadPoolExecutor(1) as learner:
        return learner.submit(_alternate, run, edges, these, those).result()


def _alternate(run: Callable[[Part], int], edges: IntArray, these: Any, those: Any) -> tuple[int, float]:
    starts, ends = edges[:-1].tolist(), edges[1:].tolist()
    with ThreadPoolExecutor(1) as other:
        ready = other.submit(run, Part(starts[0], ends[0], True, False, these)).result()
        for k, first in enumerate(starts):
            ahead: Any = None
            if ready == ends[k] and k + 1 < len(starts):
                ahead = other.submit(run, Part(starts[k + 1], ends[k + 1], True, False, those))
            run(Part(first, ready, False, True, these))
            if ahead is None:
                break
            ready, these, those = ahead.result(), those, these
        return ready, time.thread_time() + other.submit(time.thread_time).result()
