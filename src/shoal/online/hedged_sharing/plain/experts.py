"""The linear experts on the scaled row: a record for each feature, and for each (task, feature) that has occurred."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel
from shoal.engine.intrinsics import prefetch
from shoal.online.hedged_sharing.experts import PLAIN
from shoal.online.hedged_sharing.linear import Lanes, Row, collect, fill_columns, fill_scales, part_of, plan_of
from shoal.online.hedged_sharing.sleeping import OWN_PART, SHARED_PART

WIDTH, OWN_WIDTH = 16, 8
PLAN = plan_of(PLAIN, WIDTH, OWN_WIDTH)
N_COLUMNS = len(PLAN.rule)
products, move = part_of(PLAIN, WIDTH, own=False)
own_products, own_move = part_of(PLAIN, OWN_WIDTH, own=True)


@kernel(alone=False)
def plain_margins(
    n: int, x: FloatArray, feature: IntArray, place: IntArray, shared: NDArray[np.float64], own: NDArray[np.float64],
    lanes: Lanes, margins: FloatArray, parts: int,
) -> None:  # fmt: skip
    """Fill the margins, and H and G of the row's features for `step_plain`; records of other parts are all zero."""
    room = lanes.columns.shape[1]
    if parts & OWN_PART:
        for i in range(n):  # comes while the shared ones are multiplied
            prefetch(own, np.uint64(place[i]) * np.uint64(OWN_WIDTH))
    if parts & SHARED_PART:
        products(n, x, feature, shared, lanes.kept, room, lanes.sums)
    if parts & OWN_PART:
        own_products(n, x, place, own, lanes.own_kept, room, lanes.own_sums)
    collect(PLAN, lanes, margins)


@kernel(alone=False)
def step_plain(
    n: int, x: FloatArray, feature: IntArray, place: IntArray, row: Row, margins: FloatArray, chances: FloatArray,
    awake: FloatArray, shared: NDArray[np.float64], own: NDArray[np.float64], lanes: Lanes, parts: int,
) -> None:  # fmt: skip
    """Move what all tasks share, what the task has, or both."""
    fill_columns(n, x, row, parts, PLAN, lanes)
    fill_scales(WIDTH, OWN_WIDTH, row, margins, chances, awake, PLAN, lanes, False)
    room = lanes.columns.shape[1]
    if parts & SHARED_PART:
        move(n, feature, lanes.columns, room, lanes.scales, shared)
    if parts & OWN_PART:
        own_move(n, place, lanes.columns, room, lanes.own_scales, own)
