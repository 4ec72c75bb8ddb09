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

from shoal.engine.arrays import LANES, FloatArray, IntArray
from shoal.engine.rounds import Rounds
from shoal.parallel.cores import add_seconds, n_threads

ENTRIES = 2**16  # of a block of rows


class Block(NamedTuple):
    """Rows that are ready to be learned, one after the other, each filled up to whole turns of SIMD loops."""

    x: FloatArray
    feature: IntArray
    place: IntArray
    n: IntArray  # (rows,) entries of each row
    mean_l1: FloatArray  # (rows,) after the row


class Part(NamedTuple):
    """What a call of the loop has to do."""

    first: int  # rounds from this one
    last: int  # up to, not with, this one; or -1: all
    prepares: bool
    learns: bool
    block: Block  # where rows wait in between; empty if they need not


def new_block(n_entries: int, n_rows: int) -> Block:
    """Room for so much."""
    feature, place = np.zeros((2, n_entries), np.int64)
    return Block(np.zeros(n_entries), feature, place, np.zeros(n_rows, np.int64), np.zeros(n_rows))


WHOLE = Part(0, -1, True, True, new_block(0, 0))  # row by row


def _ends(rounds: Rounds) -> IntArray:
    """(rows,) where each row of the rounds would end if all were in one block."""
    first, last = rounds.starts[0], rounds.starts[-1]
    n = np.full(last - first, rounds.width) if rounds.width > 0 else np.diff(rounds.indptr[first : last + 1])
    return np.cumsum((n + LANES) // LANES * LANES)  # with the constant, `padded`


def blocks(rounds: Rounds) -> tuple[IntArray, Block, Block] | None:
    """The blocks' first rounds and the end of the last, and two blocks; None if another thread would not pay."""
    if len(rounds.values) < 2 * ENTRIES or n_threads() < 2:
        return None
    ends = _ends(rounds)
    if ends[-1] < 2 * ENTRIES or len(rounds.starts) - 1 < len(ends):  # rounds of several rows
        return None
    edges = np.unique(np.append(np.searchsorted(ends, np.arange(0, ends[-1], ENTRIES)), [0, len(ends)]))
    if len(edges) == 2:  # one long row
        return None
    size = int(np.diff(np.append(0, ends)[edges]).max()), int(np.diff(edges).max())
    return edges, new_block(*size), new_block(*size)


def run(step: Callable[[Part], int], rounds: Rounds) -> int:
    """Learn rounds by `step`, in blocks and two threads if that pays; how many were learned before one did not fit."""
    in_blocks = blocks(rounds)
    if in_blocks is None:
        return step(WHOLE)
    done, seconds = learn_in_blocks(step, *in_blocks)
    add_seconds(seconds)
    return done


def learn_in_blocks(run: Callable[[Part], int], edges: IntArray, these: Block, those: Block) -> tuple[int, float]:
    """Learn rounds in blocks by `run`; how many were learned if one did not fit, and the seconds of both threads.

    Both are other threads than the caller's: an interrupt, which comes to that one, waits until all is learned.
    """
    with ThreadPoolExecutor(1) as learner:
        return learner.submit(_alternate, run, edges, these, those).result()


def _alternate(run: Callable[[Part], int], edges: IntArray, these: Block, those: Block) -> tuple[int, float]:
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
