"""Linear experts whose weights are numbers of records: how all of a group answer and move at once.

A record holds a weight of every expert of the group that moves it, and at its end H, G and HF. Steps r x are the same
for all experts of one rule and constant, so they are computed once, as a column over the row. The group on the scaled
row has a record for each feature and one for each (task, feature) that has occurred; `crossing` has the other group.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel
from shoal.engine.intrinsics import STAYS, Moves, Products, prefetch, record_moves, record_products
from shoal.engine.rows import padded
from shoal.online.common.logistic import slope
from shoal.online.hedged_sharing.experts import (
    ADAGRAD,
    CONSTANT,
    FORGETTING,
    KEPT,
    NEWTON,
    OWN,
    OWN_PART,
    PLAIN,
    POOLED,
    SHARED_PART,
    SQUARE,
    Expert,
    X,
)
from shoal.online.hedged_sharing.scaling import ScaledRow

H, G, HF = range(3)  # sums of a record, counted from its end
MOST_SUMS = 3
FACTORS = (ADAGRAD, CONSTANT)  # rules whose steps are a times a column


class Plan(NamedTuple):
    """A group's experts as arrays. A lane is a number of a record; none is the one after the last."""

    rule: IntArray  # (columns,)
    a: FloatArray  # (columns,)
    of_own: IntArray  # (columns,) 1 where a column belongs to records of tasks
    shared_lane: IntArray  # (experts,)
    own_lane: IntArray
    shared_column: IntArray  # (experts,)
    own_column: IntArray
    factor: FloatArray  # (experts,) of the column
    undivided: IntArray  # (experts,) of labels


class Part(NamedTuple):
    """How records are read and moved."""

    products: Products
    moves: Moves


def plan_of(experts: tuple[Expert, ...], shared_width: int, own_width: int) -> Plan:
    """The plan of a group whose records have these widths."""
    columns = _columns(experts)

    def lanes(absent: int, width: int) -> list[int]:
        present = [e for e, expert in enumerate(experts) if expert.sharing != absent]
        return [present.index(e) if e in present else width for e in range(len(experts))]

    def columns_of(absent: int, of_own: int) -> list[int]:
        return [
            len(columns) if expert.sharing == absent else columns.index(_column(expert, of_own)) for expert in experts
        ]

    def ints(values: list[int]) -> IntArray:
        return np.array(values, np.int64)

    return Plan(
        ints([rule for rule, _, _ in columns]), np.array([a for _, a, _ in columns]), ints([o for _, _, o in columns]),
        ints(lanes(OWN, shared_width)), ints(lanes(POOLED, own_width)),
        ints(columns_of(OWN, 0)), ints(columns_of(POOLED, 1)),
        np.array([expert.a if expert.rule in FACTORS else 1.0 for expert in experts]),
        ints([not expert.divided for expert in experts]),
    )  # fmt: skip


def part_of(experts: tuple[Expert, ...], width: int, *, own: bool) -> Part:
    """Of the records that all tasks share, or of those of tasks."""
    columns, absent = _columns(experts), POOLED if own else OWN
    pattern = [columns.index(_column(expert, int(own))) for expert in experts if expert.sharing != absent]
    forgets = any(expert.rule == FORGETTING for expert in experts)
    n_sums = HF + 1 if forgets else G + 1
    if len(pattern) + n_sums > width:
        raise ValueError(f"a record of {width} numbers has no room for {len(pattern)} weights and {n_sums} sums")
    pattern += [STAYS] * (width - n_sums - len(pattern)) + [columns.index((SQUARE, 0.0, 0))] * n_sums
    keep = [1.0] * width
    if forgets:
        keep[-1 - HF] = KEPT
    return Part(record_products(width, n_sums), record_moves(tuple(pattern), tuple(keep)))


def _column(expert: Expert, of_own: int) -> tuple[int, float, int]:
    if expert.rule == CONSTANT:
        return (X, 0.0, 0)
    return (expert.rule, 0.0 if expert.rule in FACTORS else expert.a, of_own)


def _columns(experts: tuple[Expert, ...]) -> list[tuple[int, float, int]]:
    """Rule, constant and records of every column; the row itself and its squares come first."""
    found = [(X, 0.0, 0), (SQUARE, 0.0, 0)]
    found += [_column(expert, 0) for expert in experts if expert.sharing != OWN]
    found += [_column(expert, 1) for expert in experts if expert.sharing != POOLED]
    return list(dict.fromkeys(found))


class Lanes(NamedTuple):
    """Scratch of a group."""

    kept: NDArray[Any]  # (3, room) H, G and HF of the row's features, of what all tasks share, as records store them
    own_kept: NDArray[Any]  # (3, room) and of the task
    columns: NDArray[Any]  # (columns, room) in the same type
    tau: FloatArray  # (columns + 1 or more,) sums of r x^2, then 0
    sums: FloatArray  # (17,) of shared records, then 0
    own_sums: FloatArray  # (17,)
    scales: NDArray[Any]  # (17 or more,) that columns are multiplied by, in the same type; the 17th is not used
    own_scales: NDArray[Any]


MOST_NUMBERS = 16  # of a record
FLOAT32 = 4  # bytes


def new_lanes(n_columns: int, room: int, dtype: type[np.floating]) -> Lanes:
    """Room for rows of `room` entries, with records of this type."""
    n = n_columns + 2 * MOST_SUMS
    numbers = np.zeros((n + 2, max(room, 2 * MOST_NUMBERS)), dtype)
    sums = np.zeros((3, max(n_columns, MOST_NUMBERS) + 1))
    kept, own_kept, columns = numbers[:MOST_SUMS], numbers[MOST_SUMS : 2 * MOST_SUMS], numbers[2 * MOST_SUMS : n]
    return Lanes(kept, own_kept, columns, sums[0], sums[1], sums[2], numbers[n], numbers[n + 1])


@kernel(alone=False)
def collect(plan: Plan, lanes: Lanes, margins: FloatArray) -> None:
    """Each expert's margin, from the sums over records."""
    for e in range(len(plan.shared_lane)):
        margins[e] = lanes.sums[plan.shared_lane[e]] + lanes.own_sums[plan.own_lane[e]]


# ---- steps -------------------------------------------------------------------------------------------------


@kernel(alone=False)
def _stored(number: float, records: NDArray[Any]) -> Any:
    """A number as records store it; none is infinite, for 0 times infinity would be NaN."""
    most = 3e38 if records.itemsize == FLOAT32 else 1e308
    return records.dtype.type(min(max(number, -most), most))


@kernel(disjoint=True, alone=False)
def _newton(
    n: int, x: NDArray[Any], squares: NDArray[Any], H: NDArray[Any], c: Any, keep: Any, a: Any, out: NDArray[Any]
) -> float:
    """r x, r = 1/(a + H), H taking the row in first; return tau."""
    tau, one = out.dtype.type(0.0), out.dtype.type(1.0)
    for i in range(n):
        r = one / (a + (keep * H[i] + c * squares[i]))
        tau += r * squares[i]
        out[i] = r * x[i]
    return float(tau)


@kernel(disjoint=True, alone=False)
def _adagrad(
    n: int, x: NDArray[Any], squares: NDArray[Any], G: NDArray[Any], g: Any, unit: Any, tiny: Any, out: NDArray[Any]
) -> float:
    """r x, r = unit/sqrt(G), G taking the row in first; return tau."""
    tau = out.dtype.type(0.0)
    for i in range(n):
        r = unit / np.sqrt(G[i] + g * squares[i] + tiny)
        tau += r * squares[i]
        out[i] = r * x[i]
    return float(tau)


@kernel(disjoint=True, alone=False)
def _itself(n: int, x: FloatArray, out: NDArray[Any], squares: NDArray[Any]) -> float:
    tau = 0.0
    for i in range(n):
        square = x[i] * x[i]
        out[i], squares[i] = x[i], square
        tau += square
    return tau


class Row(NamedTuple):
    """The part that the steps of all experts have in common."""

    y: float  # 0 or 1, or a real target less its mean
    h: float  # how often the row counts
    curvature: float  # h times c at the answer
    squared: float  # h times e^2 at the mixture of all tasks
    unit: float  # one over the mean 1-norm of rows, times the deviation of real targets
    tiny: float
    regression: bool


@kernel(inline=False, alone=False)
def fill_columns(n: int, x: FloatArray, row: Row, parts: int, plan: Plan, lanes: Lanes) -> None:
    """The columns of the row that the parts which learn need, and the sums tau of each.

    All is computed in the type of the records: in float32 twice as many numbers are divided at once.
    """
    whole, of_x, squares = padded(n), lanes.columns[X], lanes.columns[SQUARE]
    c, g = _stored(row.curvature, of_x), _stored(row.squared, of_x)
    unit, tiny = _stored(row.unit, of_x), _stored(row.tiny, of_x)
    for k in range(len(plan.rule)):
        sums, rule, column = lanes.own_kept if plan.of_own[k] else lanes.kept, plan.rule[k], lanes.columns[k]
        if rule != X and parts & (OWN_PART if plan.of_own[k] else SHARED_PART) == 0:
            continue
        if rule == NEWTON:
            a, keep = _stored(plan.a[k], of_x), _stored(1.0, of_x)
            lanes.tau[k] = _newton(whole, of_x, squares, sums[H], c, keep, a, column)
        elif rule == FORGETTING:
            a, keep = _stored(plan.a[k], of_x), _stored(KEPT, of_x)
            lanes.tau[k] = _newton(whole, of_x, squares, sums[HF], c, keep, a, column)
        elif rule == ADAGRAD:
            lanes.tau[k] = _adagrad(whole, of_x, squares, sums[G], g, unit, tiny, column)
        elif rule == X:
            lanes.tau[k] = _itself(whole, x, column, lanes.columns[k + 1])


class Forecasts(NamedTuple):
    """Of a group's experts on a row."""

    margins: FloatArray
    chances: FloatArray  # sigmoids of the margins
    awake: FloatArray  # 1, or 0 for those that sleep


@kernel(alone=False)
def fill_scales(
    width: int, own_width: int, row: Row, forecasts: Forecasts, plan: Plan, lanes: Lanes, forgets: bool
) -> None:
    """The factors of the columns, of each expert and of H, G and, if the group forgets, HF."""
    for e in range(len(plan.factor)):
        tau = plan.factor[e] * (lanes.tau[plan.shared_column[e]] + lanes.tau[plan.own_column[e]])
        m, p = forecasts.margins[e], forecasts.chances[e]
        pull = slope(m, p, row.y, tau, plan.undivided[e] > 0, row.h, row.regression)
        pull *= plan.factor[e] * forecasts.awake[e]
        lanes.scales[plan.shared_lane[e]] = lanes.own_scales[plan.own_lane[e]] = _stored(pull, lanes.scales)
    for sums, last in ((lanes.scales, width - 1), (lanes.own_scales, own_width - 1)):
        sums[last - G] = _stored(row.squared, sums)
        sums[last - H] = row.curvature
        if forgets:
            sums[last - HF] = row.curvature


WIDTH, OWN_WIDTH = 16, 8
PLAN = plan_of(PLAIN, WIDTH, OWN_WIDTH)
N_COLUMNS = len(PLAN.rule)
products, move = part_of(PLAIN, WIDTH, own=False)
own_products, own_move = part_of(PLAIN, OWN_WIDTH, own=True)


@kernel(alone=False)
def plain_margins(
    n: int, scaled: ScaledRow, place: IntArray, shared: NDArray[np.float64], own: NDArray[np.float64], lanes: Lanes,
    margins: FloatArray, parts: int,
) -> None:  # fmt: skip
    """Fill the margins, and H and G of the row's features for `step_plain`; records of other parts are all zero."""
    room = lanes.columns.shape[1]
    if parts & OWN_PART:
        for i in range(n):  # comes while the shared ones are multiplied
            prefetch(own, np.uint64(place[i]) * np.uint64(OWN_WIDTH))
    if parts & SHARED_PART:
        products(n, scaled.x, scaled.feature, shared, lanes.kept, room, lanes.sums)
    if parts & OWN_PART:
        own_products(n, scaled.x, place, own, lanes.own_kept, room, lanes.own_sums)
    collect(PLAN, lanes, margins)


@kernel(alone=False)
def step_plain(
    n: int, scaled: ScaledRow, place: IntArray, row: Row, forecasts: Forecasts, shared: NDArray[np.float64],
    own: NDArray[np.float64], lanes: Lanes, parts: int,
) -> None:  # fmt: skip
    """Move the shared weights, the task's own, or both."""
    fill_columns(n, scaled.x, row, parts, PLAN, lanes)
    fill_scales(WIDTH, OWN_WIDTH, row, forecasts, PLAN, lanes, False)
    room = lanes.columns.shape[1]
    if parts & SHARED_PART:
        move(n, scaled.feature, lanes.columns, room, lanes.scales, shared)
    if parts & OWN_PART:
        own_move(n, place, lanes.columns, room, lanes.own_scales, own)
