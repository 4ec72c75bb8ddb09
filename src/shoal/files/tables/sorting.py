"""Rows in the order of their times, for files that fit memory."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from shoal.files.messages import unknown_name
from shoal.files.tables.batches import Batch, join
from shoal.files.tables.notation import Notation
from shoal.files.tables.targets import Clock

SHARE = 4  # of the memory, one part in so many, may be taken by the rows


def sorted_batches(batches: Iterator[Batch], time: str, notation: Notation, name: str) -> Iterator[Batch]:
    """One batch of all rows; those of equal times, and those without one at the end, keep their order.

    Raises ValueError if the rows take too much memory.
    """
    held: list[Batch] = []
    size, most = 0.0, memory() // SHARE
    for batch in batches:
        held.append(batch)
        size += batch.frame.estimated_size()
        if size > most:
            raise ValueError(
                f"{name} is too large to be sorted in memory ({size / 1e6:,.0f} MB so far): sort it first, or leave"
                " out sort= if its rows are in order"
            )
    whole = join(held)
    if time not in whole.frame.columns:
        raise ValueError(unknown_name(f"{name} has no column", time, whole.frame.columns))
    column = whole.frame[time]
    times, bad = Clock(time, column, notation).read(column)
    times = times.copy()
    times[[row for row, _ in bad]] = np.inf  # the reader reports them
    order = np.argsort(times, kind="stable")
    yield Batch(whole.frame.clear(), whole.lines[:0], whole.problems)
    yield Batch(whole.frame[order], whole.lines[order], [])


def memory() -> int:
    """Bytes of memory that the machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
