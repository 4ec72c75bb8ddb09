"""The crossed row: all entries of the scaled row, the bins of numeric features, and products of pairs of these.

An entry's place in a table is a hash of what it is: nothing is looked up, memory is fixed, and two entries may share a
record.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel
from shoal.engine.random import mixed
from shoal.engine.rounds import Rounds
from shoal.engine.rows import padded
from shoal.online.hedged_sharing.crossed.bins import MOST_NUMERIC, N_BINS, Bins, bin_of

MOST_PAIRS = 256
ALL_PAIRS = 23  # entries that have no more pairs than that
NOWHERE = 0  # the record of tasks that have none
U = np.uint64


class CrossedRow(NamedTuple):
    """Entries of one row, zeros after them."""

    x: FloatArray
    shared: IntArray  # places of what all tasks share
    own: IntArray  # places of the task's own
    items: IntArray  # scratch: hash of each feature's item, as signed numbers
    values: FloatArray  # scratch: its value


@kernel(entry=True)
def most_entries(n: int) -> int:
    """Of the crossed row of a row with n entries and the constant, whole turns of SIMD loops."""
    pairs = n * (n - 1) // 2 if n <= ALL_PAIRS else MOST_PAIRS
    return padded(1 + n + min(n, MOST_NUMERIC) + pairs)


@kernel(alone=False)
def _item(j: int, b: int) -> Any:
    """The hash of a feature's bin, or (16) of its value."""
    return mixed(U(j * 2 * N_BINS + b))


@kernel(alone=False)
def _put(
    i: int, value: float, key: np.uint64, task: np.uint64, size: np.uint64, own_size: np.uint64, out: CrossedRow
) -> None:
    """One entry; sizes are powers of two."""
    out.x[i] = value
    out.shared[i] = np.int64(U(1) + ((key >> U(32)) & (size - U(1))))
    if task != U(NOWHERE):
        out.own[i] = np.int64(U(1) + ((mixed(key ^ task) >> U(32)) & (own_size - U(1))))
    else:
        out.own[i] = NOWHERE


@kernel(inline=False, alone=False)
def crossed_row(
    rounds: Rounds, row: int, n: int, x: FloatArray, feature: IntArray, bins: Bins, serial: int, size: int,
    own_size: int, out: CrossedRow,
) -> int:  # fmt: skip
    """Fill `out` from the n entries of the scaled row, the constant first; return how many entries it has.

    serial : the task's number, from 1; 0 if it has no records
    """
    task, shared_size, of_task = mixed(U(serial)) | U(1), U(size), U(own_size)
    if serial == 0:
        task = U(NOWHERE)
    unit, n_pairs = 1.0 / math.sqrt(n), n - 1
    _put(0, x[0], mixed(~U(0)), task, shared_size, of_task, out)
    entry, p = 1, 0 if rounds.width > 0 else rounds.indptr[row]
    for i in range(1, n):
        j = feature[i] - 1
        if rounds.width > 0:
            raw = rounds.values[row * rounds.width + j]
        else:
            while rounds.indices[p] != j or rounds.values[p] == 0.0:
                p += 1
            raw = rounds.values[p]
            p += 1
        key, b = _item(j, N_BINS), bin_of(bins, j, raw)
        _put(entry, x[i], key, task, shared_size, of_task, out)
        entry += 1
        out.items[i], out.values[i] = np.int64(key), x[i]
        if b >= 0:
            key = _item(j, b)
            _put(entry, unit, key, task, shared_size, of_task, out)
            entry += 1
            out.items[i], out.values[i] = np.int64(key), unit
    reach = n_pairs if n_pairs <= ALL_PAIRS else MOST_PAIRS // n_pairs
    for a in range(1, n):
        first, value = U(out.items[a]), out.values[a]
        for c in range(a + 1, min(a + reach + 1, n)):
            key = mixed(first + U(out.items[c]))  # in either order
            _put(entry, value * out.values[c], key, task, shared_size, of_task, out)
            entry += 1
    for i in range(entry, padded(entry)):
        out.x[i] = 0.0
    return entry
