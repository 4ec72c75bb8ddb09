"""Linear experts on the crossed row: the scaled row's entries, bins of numeric features, and products of pairs.

A feature that comes in most rows is numeric. Its bins are between the sixteenths of a sample, which is uniform over all
values so far (a reservoir) and is cut anew whenever the number of values has doubled. An entry's place in a table of
fixed size is a hash of what it is: nothing is looked up, and two entries may share a record.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IndexArray, IntArray, aligned_zeros
from shoal.engine.axes import FEATURE, OTHER, ROW, TASK
from shoal.engine.compile import kernel
from shoal.engine.intrinsics import prefetch
from shoal.engine.random import mixed
from shoal.engine.rounds import Rounds
from shoal.engine.rows import padded
from shoal.online.hedged_sharing.experts import CROSSED, OWN_PART, SHARED_PART
from shoal.online.hedged_sharing.linear import (
    Forecasts,
    Lanes,
    Row,
    collect,
    fill_columns,
    fill_scales,
    part_of,
    plan_of,
)
from shoal.online.hedged_sharing.scaling import ScaledRow

MOST_NUMERIC = 128  # features
SAMPLE = 256  # values of each
N_BINS = 16
FIRST_ROWS = 16  # before which no feature is numeric
FIRST_EDGES = 32  # values
FEWEST_VALUES = 4  # that differ, of a feature with bins
CLOSE = 1e-5  # values that differ by less in relation may be one value, rounded
ABOVE = 1 / 16  # of the way to the next value: where edges are

ROWS, NUMERIC = 0, 1  # positions in `counters`


class Bins(NamedTuple):
    """Samples and bins of features' values; those of numeric ones lie in the order in which they became numeric."""

    occurred: Annotated[IntArray, FEATURE]  # in how many rows
    numeric: Annotated[IntArray, FEATURE]  # 1 + its position below, or 0
    taken: Annotated[IntArray, ROW]  # (128,) values so far
    is_binned: Annotated[IntArray, ROW]  # (128,)
    sample: Annotated[FloatArray, ROW]  # (128, 256)
    edges: Annotated[FloatArray, ROW]  # (128, 15)
    counters: IntArray  # (2,) rows, numeric features


def new_bins(n_features: int, n_numeric: int = MOST_NUMERIC) -> Bins:
    """Nothing seen."""
    occurred, numeric = np.zeros((2, n_features), np.int64)
    taken, is_binned = np.zeros((2, n_numeric), np.int64)
    sample, edges = np.zeros((n_numeric, SAMPLE)), np.zeros((n_numeric, N_BINS - 1))
    return Bins(occurred, numeric, taken, is_binned, sample, edges, np.zeros(2, np.int64))


@kernel(alone=False)
def bin_of(bins: Bins, j: int, value: float) -> int:
    """How many edges lie below, or -1 if the feature has no bins."""
    at = bins.numeric[j] - 1
    if at < 0 or bins.is_binned[at] == 0:
        return -1
    edges, below = bins.edges[at], 0
    for k in range(len(edges)):
        below += int(edges[k] < value)
    return below


@kernel(inline=False, alone=False)
def learn_bins(rounds: Rounds, bounds: tuple[int, int], bins: Bins) -> None:
    """Count the row's features, and take the values of the numeric ones into their samples."""
    first, last = bounds
    bins.counters[ROWS] += 1
    for p in range(first, last):
        if rounds.values[p] == 0.0:
            continue
        j = p - first if rounds.width > 0 else np.int64(rounds.indices[p])
        bins.occurred[j] += 1
        if bins.numeric[j] == 0:
            often = bins.counters[ROWS] >= FIRST_ROWS and 2 * bins.occurred[j] > bins.counters[ROWS]
            if not often or bins.counters[NUMERIC] == MOST_NUMERIC:
                continue
            bins.counters[NUMERIC] += 1
            bins.numeric[j] = bins.counters[NUMERIC]
        _take(rounds.values[p], 2 * bins.occurred[j] > bins.counters[ROWS], bins.numeric[j] - 1, bins)


@kernel(alone=False)
def _take(value: float, often: bool, at: int, bins: Bins) -> None:
    bins.taken[at] += 1
    n = bins.taken[at]
    place = n - 1  # in the reservoir: the n-th value stays with probability 256/n
    if n > SAMPLE:
        place = np.int64(mixed(np.uint64(n)) % np.uint64(n))
    if place < SAMPLE:
        bins.sample[at, place] = value
    if n >= FIRST_EDGES and n & (n - 1) == 0:  # 32, 64, 128, ...
        bins.is_binned[at] = int(often and _cut(bins.sample[at, : min(n, SAMPLE)], bins.edges[at]) >= FEWEST_VALUES)


@kernel(inline=False, allocates=True, alone=False)
def _cut(sample: FloatArray, edges: FloatArray) -> int:
    """Set the edges just above the sixteenths, so that a value has its bin in float32, too; return how many differ."""
    ordered, differ = sample.copy(), 1
    for i in range(1, len(ordered)):  # by insertion: numba's sort would take a second to compile
        value, k = ordered[i], i
        while k > 0 and ordered[k - 1] > value:
            ordered[k] = ordered[k - 1]
            k -= 1
        ordered[k] = value
    for i in range(1, len(ordered)):
        differ += int(ordered[i] != ordered[i - 1])
    for i in range(1, N_BINS):
        at = i * len(ordered) // N_BINS
        value = ordered[at]
        while at < len(ordered) - 1 and ordered[at] - value <= CLOSE * abs(value):
            at += 1
        edges[i - 1] = value + ABOVE * (ordered[at] - value)
    return differ


MOST_PAIRS = 256
ALL_PAIRS = 23  # entries that have no more pairs than that
NOWHERE = 0  # the record of tasks that have none
U = np.uint64
WIDTH = 8


class CrossedRow(NamedTuple):
    """Entries of one row, zeros after them."""

    x: FloatArray
    shared: IntArray  # places of what all tasks share
    own: IntArray  # places of the task's own
    items: IntArray  # scratch: hash of each feature's item, as signed numbers
    values: FloatArray  # scratch: its value


@kernel(entry="too")
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
    i: int, value: float, key: np.uint64, task: np.uint64, shared: FloatArray, own: FloatArray, out: CrossedRow
) -> None:
    """One entry; sizes are powers of two."""
    size, own_size = U(len(shared) - 1), U(len(own) - 1)
    out.x[i] = value
    out.shared[i] = np.int64(U(1) + ((key >> U(32)) & (size - U(1))))
    if task != U(NOWHERE):
        out.own[i] = np.int64(U(1) + ((mixed(key ^ task) >> U(32)) & (own_size - U(1))))
    else:
        out.own[i] = NOWHERE
    prefetch(shared, U(out.shared[i]) * U(WIDTH))
    prefetch(own, U(out.own[i]) * U(WIDTH))


@kernel(inline=False, alone=False)
def crossed_row(
    rounds: Rounds, begin: int, n: int, scaled: ScaledRow, bins: Bins, serial: int, shared: FloatArray, own: FloatArray,
    out: CrossedRow,
) -> int:  # fmt: skip
    """Fill `out` from the n entries of the scaled row, the constant first; return how many entries it has.

    serial : the task's number, from 1; 0 if it has no records
    """
    x, feature = scaled.x, scaled.feature
    task = mixed(U(serial)) | U(1)
    if serial == 0:
        task = U(NOWHERE)
    unit, n_pairs = 1.0 / math.sqrt(n), n - 1
    _put(0, x[0], mixed(~U(0)), task, shared, own, out)
    entry, p = 1, 0 if rounds.width > 0 else begin
    for i in range(1, n):
        j = feature[i] - 1
        if rounds.width > 0:
            raw = rounds.values[begin + j]
        else:
            while rounds.indices[p] != j or rounds.values[p] == 0.0:
                p += 1
            raw = rounds.values[p]
            p += 1
        key, b = _item(j, N_BINS), bin_of(bins, j, raw)
        _put(entry, x[i], key, task, shared, own, out)
        entry += 1
        out.items[i], out.values[i] = np.int64(key), x[i]
        if b >= 0:
            key = _item(j, b)
            _put(entry, unit, key, task, shared, own, out)
            entry += 1
            out.items[i], out.values[i] = np.int64(key), unit
    reach = n_pairs if n_pairs <= ALL_PAIRS else MOST_PAIRS // n_pairs
    for a in range(1, n):
        first, value = U(out.items[a]), out.values[a]
        for c in range(a + 1, min(a + reach + 1, n)):
            key = mixed(first + U(out.items[c]))  # in either order
            _put(entry, value * out.values[c], key, task, shared, own, out)
            entry += 1
    for i in range(entry, padded(entry)):
        out.x[i] = 0.0
    return entry


SERIAL = 4  # the number of a task's record that says whose it is
PLAN = plan_of(CROSSED, WIDTH, WIDTH)
N_COLUMNS = len(PLAN.rule)
products, move = part_of(CROSSED, WIDTH, own=False)
own_products, own_move = part_of(CROSSED, WIDTH, own=True)
MOST_OWN, LEAST_OWN = 2**18, 2**10  # records of tasks; a quarter as many that all share


class Crossed(NamedTuple):
    """Learned records of crossed rows; the first record of each table is zero."""

    bins: Bins
    shared: Annotated[FloatArray, ROW]  # (1 + a power of two, 8)
    own: Annotated[FloatArray, ROW]  # (1 + a power of two, 8)
    serial: Annotated[IntArray, TASK]  # each task's number, from 1, which no other task gets; 0: none yet
    last: IntArray  # (1,) the last such number


class PackedCrossed(NamedTuple):
    """The saved arrays: records that are not zero."""

    bins: Bins
    shared_places: Annotated[IndexArray, ROW]
    shared: Annotated[FloatArray, ROW, OTHER]
    own_places: Annotated[IndexArray, ROW]
    own: Annotated[FloatArray, ROW, OTHER]
    serial: Annotated[IntArray, TASK]
    last: IntArray


def own_size_for(memory: float) -> int:
    """Records of tasks so that both tables take an eighth of the memory, or less."""
    size = MOST_OWN
    while size > LEAST_OWN and size * WIDTH * 8 * 5 / 4 > memory / 8:
        size //= 2
    return size


def new_crossed(n_tasks: int, n_features: int, own_size: int, dtype: Any) -> Crossed:
    """Nothing learned."""
    shared, own = aligned_zeros((1 + own_size // 4, WIDTH), dtype), aligned_zeros((1 + own_size, WIDTH), dtype)
    return Crossed(new_bins(n_features), shared, own, np.zeros(n_tasks, np.int64), np.zeros(1, np.int64))


def resized(crossed: Crossed, n_tasks: int, n_features: int) -> Crossed:
    """Arrays of zeros for this number of tasks and features, with the tables as they are."""
    bins = new_bins(n_features)
    return crossed._replace(bins=bins, serial=np.zeros(n_tasks, np.int64), last=np.zeros(1, np.int64))


@kernel(alone=False)
def crossed_margins(
    n: int, row: CrossedRow, shared: NDArray[np.float64], own: NDArray[np.float64], lanes: Lanes, margins: FloatArray,
    parts: int,
) -> None:  # fmt: skip
    """Fill the margins, and H, G and HF of the entries for `step_crossed`; records of other parts are all zero."""
    room = lanes.columns.shape[1]
    if parts & SHARED_PART:
        products(n, row.x, row.shared, shared, lanes.kept, room, lanes.sums)
    if parts & OWN_PART:
        own_products(n, row.x, row.own, own, lanes.own_kept, room, lanes.own_sums)
    collect(PLAN, lanes, margins)


@kernel(alone=False)
def step_crossed(
    n: int, crossed: CrossedRow, serial: int, row: Row, forecasts: Forecasts, shared: NDArray[np.float64],
    own: NDArray[np.float64], lanes: Lanes, parts: int,
) -> None:  # fmt: skip
    """Move the shared weights, the task's own, or both."""
    fill_columns(n, crossed.x, row, parts, PLAN, lanes)
    fill_scales(WIDTH, WIDTH, row, forecasts, PLAN, lanes, True)
    room = lanes.columns.shape[1]
    if parts & SHARED_PART:
        move(n, crossed.shared, lanes.columns, room, lanes.scales, shared)
    if parts & OWN_PART and serial > 0:
        own_move(n, crossed.own, lanes.columns, room, lanes.own_scales, own)
        for i in range(n):
            own[np.uint64(crossed.own[i]), SERIAL] = serial


def forget(crossed: Crossed, k: int) -> None:
    """Empty a task's records."""
    of_task = crossed.own[:, SERIAL] == crossed.own.dtype.type(crossed.serial[k])
    if crossed.serial[k] > 0:
        crossed.own[of_task] = 0.0


def pack(crossed: Crossed) -> PackedCrossed:
    """The records that are not zero, and the features that are numeric."""
    bins, n = crossed.bins, int(crossed.bins.counters[1])
    used = [np.flatnonzero(table.any(axis=1)).astype(np.int32) for table in (crossed.shared, crossed.own)]
    return PackedCrossed(
        bins._replace(taken=bins.taken[:n], is_binned=bins.is_binned[:n], sample=bins.sample[:n], edges=bins.edges[:n]),
        used[0], crossed.shared[used[0]], used[1], crossed.own[used[1]], crossed.serial, crossed.last,
    )  # fmt: skip


def blank(n_tasks: int, n_features: int, dtype: Any) -> PackedCrossed:
    """An empty `pack`."""
    none, records = np.zeros(0, np.int32), np.zeros((0, WIDTH), dtype)
    ints = np.zeros(n_tasks, np.int64), np.zeros(1, np.int64)
    return PackedCrossed(new_bins(n_features, 0), none, records, none, records, *ints)


def unpack(packed: PackedCrossed, own_size: int) -> Crossed:
    """The inverse of `pack`."""
    bins, n = packed.bins, len(packed.bins.taken)
    found = new_crossed(0, 0, own_size, packed.own.dtype)
    whole = found.bins._replace(occurred=bins.occurred, numeric=bins.numeric, counters=bins.counters)
    for old, new in zip(bins[2:6], whole[2:6], strict=True):
        new[:n] = old
    found.shared[packed.shared_places] = packed.shared
    found.own[packed.own_places] = packed.own
    return found._replace(bins=whole, serial=packed.serial, last=packed.last)


def check(packed: PackedCrossed, own_size: int) -> None:
    """Raise ValueError unless indices and counts are in range."""
    bins, n = packed.bins, len(packed.bins.taken)
    lengths = {len(bins.is_binned), len(bins.sample), len(bins.edges), int(bins.counters[1])}
    if lengths != {n} or (bins.taken < 0).any() or (bins.counters < 0).any():
        raise ValueError("its numeric features are not as many as it says")
    if (bins.numeric < 0).any() or (bins.numeric > n).any() or (bins.occurred < 0).any():
        raise ValueError("its numeric features are out of range")
    for places, records, size in (
        (packed.shared_places, packed.shared, own_size // 4),
        (packed.own_places, packed.own, own_size),
    ):
        if records.shape != (len(places), WIDTH) or (places < 1).any() or (places > size).any():
            raise ValueError("records of its crossed rows are out of place")
    if (packed.serial < 0).any() or (packed.serial > packed.last[0]).any():
        raise ValueError("the numbers of its tasks are out of range")
