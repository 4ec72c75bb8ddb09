"""The linear experts on the crossed row, whose records lie in tables of fixed size."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IndexArray, IntArray, aligned_zeros
from shoal.engine.axes import OTHER, ROW, TASK
from shoal.engine.compile import kernel
from shoal.engine.intrinsics import prefetch
from shoal.online.hedged_sharing.crossed.bins import Bins, new_bins
from shoal.online.hedged_sharing.crossed.row import CrossedRow
from shoal.online.hedged_sharing.experts import CROSSED
from shoal.online.hedged_sharing.linear import Lanes, Row, collect, fill_columns, fill_scales, part_of, plan_of
from shoal.online.hedged_sharing.sleeping import OWN_PART, SHARED_PART

WIDTH = 8
SERIAL = 4  # the number of a task's record that says whose it is
PLAN = plan_of(CROSSED, WIDTH, WIDTH)
N_COLUMNS = len(PLAN.rule)
products, move = part_of(CROSSED, WIDTH, own=False)
own_products, own_move = part_of(CROSSED, WIDTH, own=True)
MOST_OWN, LEAST_OWN = 2**18, 2**10  # records of tasks; a quarter as many that all share


class Crossed(NamedTuple):
    """What is learned of crossed rows; the first record of each table is zero."""

    bins: Bins
    shared: Annotated[FloatArray, ROW]  # (1 + a power of two, 8)
    own: Annotated[FloatArray, ROW]  # (1 + a power of two, 8)
    serial: Annotated[IntArray, TASK]  # each task's number, from 1, which no other task gets; 0: none yet
    last: IntArray  # (1,) the last such number


class PackedCrossed(NamedTuple):
    """What is saved: records that are not zero."""

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
    """Empty, but the tables, for so many tasks and features."""
    bins = new_bins(n_features)
    return crossed._replace(bins=bins, serial=np.zeros(n_tasks, np.int64), last=np.zeros(1, np.int64))


@kernel(alone=False)
def crossed_margins(
    n: int, row: CrossedRow, shared: NDArray[np.float64], own: NDArray[np.float64], lanes: Lanes, margins: FloatArray,
    parts: int,
) -> None:  # fmt: skip
    """Fill the margins, and H, G and HF of the entries for `step_crossed`; records of other parts are all zero."""
    room = lanes.columns.shape[1]
    for i in range(n):
        prefetch(shared, np.uint64(row.shared[i]) * np.uint64(WIDTH))
        prefetch(own, np.uint64(row.own[i]) * np.uint64(WIDTH))
    if parts & SHARED_PART:
        products(n, row.x, row.shared, shared, lanes.kept, room, lanes.sums)
    if parts & OWN_PART:
        own_products(n, row.x, row.own, own, lanes.own_kept, room, lanes.own_sums)
    collect(PLAN, lanes, margins)


@kernel(alone=False)
def step_crossed(
    n: int, crossed: CrossedRow, serial: int, row: Row, margins: FloatArray, chances: FloatArray, awake: FloatArray,
    shared: NDArray[np.float64], own: NDArray[np.float64], lanes: Lanes, parts: int,
) -> None:  # fmt: skip
    """Move what all tasks share, what the task has, or both."""
    fill_columns(n, crossed.x, row, parts, PLAN, lanes)
    fill_scales(WIDTH, WIDTH, row, margins, chances, awake, PLAN, lanes, True)
    room = lanes.columns.shape[1]
    if parts & SHARED_PART:
        move(n, crossed.shared, lanes.columns, room, lanes.scales, shared)
    if parts & OWN_PART and serial > 0:
        own_move(n, crossed.own, lanes.columns, room, lanes.own_scales, own)
        for i in range(n):
            own[np.uint64(crossed.own[i]), SERIAL] = serial


def forget(crossed: Crossed, k: int) -> None:
    """Empty a task's records."""
    mine = crossed.own[:, SERIAL] == crossed.own.dtype.type(crossed.serial[k])
    if crossed.serial[k] > 0:
        crossed.own[mine] = 0.0


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
    """What `pack` gave."""
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
        (packed.shared_places, packed.shared, own_size // 4), (packed.own_places, packed.own, own_size),
    ):  # fmt: skip
        if records.shape != (len(places), WIDTH) or (places < 1).any() or (places > size).any():
            raise ValueError("records of its crossed rows are out of place")
    if (packed.serial < 0).any() or (packed.serial > packed.last[0]).any():
        raise ValueError("the numbers of its tasks are out of range")
