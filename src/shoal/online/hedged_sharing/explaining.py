"""What features, and pairs of them, add to a decision of hedged sharing.

The answer is a mixture of linear experts, f = q(u_1, ..., u_n), u_e their forecasts. Each expert gets the share

    c_e = ∫ ∂q/∂u_e (t u) dt over 0 <= t <= 1,   so that f = q(0) + Σ_e c_e u_e    (Aumann, Shapley 1974),

its mean slope on the way from no evidence to this row. An entry of the scaled or the crossed row adds Σ_e c_e w_ej x_j:
by the weights s that all tasks share, and by the task's own v. What a feature's value and its bin add is one number. A
Bayes mixture of probabilities has q(0) = 0, for its weights add up to 1; for real targets q is linear and c_e its
slope. Without a row, c_e is the slope at u = 0, and bins and pairs are left out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.task_weights.hash_table import of_task
from shoal.engine.task_weights.record_table import Records
from shoal.model.algorithm import Setup
from shoal.model.explanations import Item, Parts
from shoal.online.hedged_sharing import crossing, linear
from shoal.online.hedged_sharing.algorithm import decide_rows
from shoal.online.hedged_sharing.crossing import ALL_PAIRS, MOST_PAIRS, Bins
from shoal.online.hedged_sharing.experts import (
    ALL_POOLED,
    ALWAYS,
    FEATURES,
    FIRST_CROSSED,
    FIRST_FULL,
    HEAD,
    INDEPENDENT,
    LEANING,
    LEANS_ON,
    LEARNED,
    N_EXPERTS,
    N_INPUTS,
    NARROW,
    OF_ALL,
    OF_TASK,
    ONE,
    is_narrow,
    taking_part,
)
from shoal.online.hedged_sharing.linear import Plan
from shoal.online.hedged_sharing.mixing import LIMIT, doubt, doubted
from shoal.online.hedged_sharing.row import NEAR, constant_input
from shoal.online.hedged_sharing.scaling import (
    BAND,
    CONSTANT,
    COUNT,
    ENTRIES,
    ERROR_ROWS,
    FAR,
    FEW,
    LARGEST,
    MEAN,
    NORMS,
    ROWS,
    SCATTER,
    SQUARES,
    TOO_SMALL,
    noise,
)
from shoal.online.hedged_sharing.scratch import N_CROSSED, N, Settings, Work, workspace
from shoal.online.hedged_sharing.state import State

NONE = np.zeros(0, np.int32)


class Weights(NamedTuple):
    """Of every expert of a group on every entry of a row."""

    shared: FloatArray  # (experts, entries)
    own: FloatArray


def contributions(
    setup: Setup, state: State, tasks: IntArray, features: IndexArray, values: FloatArray | None
) -> Parts:
    """What features add to decisions: in one task's row of these values, or of 1 each in a row of usual length."""
    if values is None:
        return _usual_parts(setup.settings, state, tasks, features)
    return _parts_of_row(setup.settings, state, int(tasks[0]), features, values)


def linear_weights(settings: Settings, state: State, task: int, slots: IntArray) -> Weights:
    """Of all experts on the scaled row; slot 0 is the constant."""
    groups = _plain_weights(settings, state, task, slots), _full_weights(state, task, slots)
    return Weights(*map(np.concatenate, zip(*groups, strict=True)))


def _plain_weights(settings: Settings, state: State, task: int, slots: IntArray) -> Weights:
    own = _records_of(state.own, -1 if settings.sharing == ALL_POOLED else task, slots)
    return _weights(linear.PLAN, state.shared[slots], own)


def _records_of(own: Records, task: int, slots: IntArray) -> FloatArray:
    """(slots, 8) records of a task; zeros where it has none."""
    found = np.zeros((len(slots), linear.OWN_WIDTH))
    keys, places = of_task(own.tables, task) if task >= 0 else (NONE, NONE)
    if len(keys) == 0:
        return found
    keys = keys.astype(np.int64)
    order = np.argsort(keys)
    at = np.minimum(np.searchsorted(keys, slots, sorter=order), len(keys) - 1)
    there = keys[order[at]] == slots
    found[there] = own.records[places[order[at[there]]].astype(np.int64)]
    return found


def _full_weights(state: State, task: int, slots: IntArray) -> Weights:
    """Of the experts with full matrices; a feature without a column has none."""
    full, side = state.full, state.full.pooled.shape[1]
    places = np.where(slots > 0, full.place[slots - 1], 0)
    there = (slots == 0) | (places > 0)
    shared, own = np.zeros((2, len(slots))), np.zeros((2, len(slots)))
    shared[0] = full.pooled[side, places] * there
    if task >= 0 and full.slot[task] > 0:
        own[1] = full.own[full.slot[task] - 1, side, places] * there
    return Weights(shared, own)


def _weights(plan: Plan, shared: NDArray[np.float64], own: NDArray[np.float64]) -> Weights:
    """Of records of entries; a lane beyond the record is none."""
    both = (np.pad(records.astype(np.float64), ((0, 0), (0, 1))) for records in (shared, own))
    lanes = plan.shared_lane, plan.own_lane
    return Weights(*(records[:, lane].T for records, lane in zip(both, lanes, strict=True)))


# ---- one row -----------------------------------------------------------------------------------------------


@kernel(entry=True, allocates=True)
def read_one(rounds: Rounds, settings: Settings, state: State) -> Work:
    """A row as the experts see it, and their margins."""
    work = workspace(rounds, 0, 1, settings, state.shared)
    decide_rows(rounds, 0, 1, settings, state, np.zeros(1), work)
    return work


def _parts_of_row(settings: Settings, state: State, task: int, features: IndexArray, values: FloatArray) -> Parts:
    rounds = Rounds(
        0,
        np.array([0, len(features)]),
        features.astype(np.int32),
        values,
        np.array([task]),
        np.zeros(1),
        np.array([0, 1]),
    )
    work = read_one(rounds, settings, state)
    n, n_crossed = int(work.counts[N]), int(work.counts[N_CROSSED])
    slots, x, cross = work.row.feature[:n], work.row.x[:n], work.crossed
    on_row = linear_weights(settings, state, task, slots)
    margins = np.zeros(len(work.awake))
    margins[:FIRST_CROSSED] = (on_row.shared + on_row.own) @ x
    places, crossed_x = (cross.shared[:n_crossed], cross.own[:n_crossed]), cross.x[:n_crossed]
    on_crossed = _weights(crossing.PLAN, state.crossed.shared[places[0]], state.crossed.own[places[1]])
    margins[FIRST_CROSSED:] = (on_crossed.shared + on_crossed.own) @ crossed_x
    slopes, offset = mixture_of(settings, state, task, work.awake, margins)
    both = []
    for part in range(2):
        found = slopes[:FIRST_CROSSED] @ on_row[part] * x
        both.append((found, slopes[FIRST_CROSSED:] @ on_crossed[part] * crossed_x))
    items, of_entry = _items(state.crossed.bins, features, values)
    pairs = _pairs(n - 1) if n_crossed > 0 else []
    for found, of_crossed in both:
        np.add.at(found, of_entry[: n_crossed - len(pairs)], of_crossed[: n_crossed - len(pairs)])
    (shared, crossed_shared), (own, crossed_own) = both
    shared[0] += offset
    last = n_crossed - len(pairs)
    return Parts(
        shared[None],
        own[None],
        None,
        [(items[a], items[b]) for a, b in pairs],
        crossed_shared[last:],
        crossed_own[last:],
    )


def _items(bins: Bins, features: IndexArray, values: FloatArray) -> tuple[list[Item], IntArray]:
    """What each feature's item is, and to which entry of the row the crossed row's entries before the pairs belong."""
    items, of_entry = [], [0]
    for i, (j, value) in enumerate(zip(features.tolist(), values.tolist(), strict=True)):
        at = int(bins.numeric[j]) - 1
        of_entry.append(1 + i)
        if at < 0 or not bins.is_binned[at]:
            items.append(Item(j))
            continue
        of_entry.append(1 + i)
        edges = [-math.inf, *bins.edges[at].tolist(), math.inf]
        b = int(np.searchsorted(bins.edges[at], value, side="left"))
        items.append(Item(j, edges[b], edges[b + 1]))
    return items, np.array(of_entry)


def _pairs(n: int) -> list[tuple[int, int]]:
    reach = n if n <= ALL_PAIRS else MOST_PAIRS // n
    return [(a, b) for a in range(n) for b in range(a + 1, min(a + reach + 1, n))]


# ---- usual rows --------------------------------------------------------------------------------------------


def _usual_parts(settings: Settings, state: State, tasks: IntArray, features: IndexArray) -> Parts:
    slots = np.concatenate([[0], 1 + features.astype(np.int64)])
    x = _usual(state, features)
    shared, own = np.empty((len(tasks), len(slots))), np.empty((len(tasks), len(slots)))
    for i, task in enumerate(tasks.tolist()):
        slopes, offset = mixture_of(settings, state, task, usual_awake(settings, state, task), None)
        weights = linear_weights(settings, state, task, slots)
        shared[i] = x * (slopes[:FIRST_CROSSED] @ weights.shared)
        own[i] = x * (slopes[:FIRST_CROSSED] @ weights.own)
        shared[i, 0] += offset
    rows = state.scale.sums[ROWS]
    return Parts(shared, own, np.sqrt(state.scale.features[features, 0] / rows) if rows > 0.0 else None)


def _usual(state: State, features: IndexArray) -> FloatArray:
    """(1 + features,) of 1 in each feature, in a row of usual length."""
    scale = state.scale
    squares, counts = scale.features[features].T
    if is_narrow(1, 0, state.seen):
        recent = scale.recent[features]
        squares = np.clip(squares, counts * recent / FAR, counts * recent * FAR)
    sums, factors = scale.sums, np.ones(len(features))
    rms = math.sqrt(sums[SQUARES] / sums[ENTRIES]) if sums[ENTRIES] > 0.0 else 0.0
    known = squares > TOO_SMALL
    inverse = np.sqrt(counts[known] / squares[known])
    factors[known] = np.maximum(rms / BAND * inverse, np.minimum(rms * BAND * inverse, 1.0))
    if sums[NORMS] > 0.0:
        factors /= sums[NORMS] / sums[ROWS]
    return np.concatenate([[CONSTANT], factors])


POINTS, POINT_WEIGHTS = np.polynomial.legendre.leggauss(64)
AT, SHARE = 0.5 * (POINTS + 1.0), 0.5 * POINT_WEIGHTS  # of the integral: exact to rounding for forecasts within LIMIT


class Mixture(NamedTuple):
    """f = offset + Σ_e slopes[e] m_e, m_e the margins of the experts."""

    slopes: FloatArray  # (experts,)
    offset: float


def usual_awake(settings: Settings, state: State, task: int) -> FloatArray:
    """(experts,) who would be awake on a row like those so far."""
    awake, seen = np.empty(N_EXPERTS), state.seen
    taking_part(settings.sharing, settings.interactions, settings.regression, awake)
    narrow = is_narrow(1, 0, seen)
    if not (settings.interactions == ALWAYS or (settings.interactions == NARROW and narrow)):
        awake[FIRST_CROSSED:] = 0.0
    if seen[FEATURES] > settings.full_features:
        awake[FIRST_FULL:FIRST_CROSSED] = 0.0
    if task < 0 or state.full.slot[task] == 0:
        awake[FIRST_FULL + 1] = 0.0
    return awake


def mixture_of(settings: Settings, state: State, task: int, awake: FloatArray, margins: FloatArray | None) -> Mixture:
    """Both mixings (`forecast` in `row`); without margins near no evidence."""
    r, targets = state.regression, state.targets
    rows = int(state.task_rows[task]) if task >= 0 else 0
    lean = _leaning(rows / (rows + settings.young) if settings.sharing == LEARNED else 1.0, awake)
    everybody = _normed(state.weights, awake)
    mine = _normed(state.task_weights[task], awake) if rows > 0 and settings.sharing != ALL_POOLED else everybody
    everybody = mine if settings.sharing == INDEPENDENT else everybody
    if settings.sharing == ALL_POOLED:
        rows = int(state.rows[0])
    trust = rows / (rows + settings.fresh)
    limit = 2.0 * targets[LARGEST] if settings.regression else LIMIT
    kept = awake if margins is None else awake * _kept(limit, margins)
    forecasts = None if margins is None else lean @ (kept * margins)
    unit = math.sqrt(targets[SCATTER] / targets[COUNT]) if targets[COUNT] > 0.0 else 0.0
    pulled = np.zeros(N_EXPERTS)
    if settings.regression:
        if forecasts is not None and margins is not None:
            lean, pulled = _near_the_heaviest(state, awake, lean, forecasts)
            forecasts = lean @ (kept * margins) + pulled
        of_all = everybody
        stack = r[HEAD:N_INPUTS] + r[OF_TASK] * mine + r[OF_ALL] * everybody
        stack, constant = stack if unit > 0.0 else np.zeros(N_EXPERTS), unit * r[ONE] * constant_input(unit, state)
    else:
        of_all, constant = _slopes(everybody, forecasts), r[ONE]
        stack = r[HEAD:N_INPUTS] + r[OF_TASK] * _slopes(mine, forecasts) + r[OF_ALL] * of_all
    whole = constant if forecasts is None else constant + stack @ forecasts
    part = trust * float(_kept(limit, np.array([whole]))[0])
    stretch = 1.0 + (float(state.stretch[task, 0]) if task >= 0 and settings.sharing != ALL_POOLED else 0.0)
    of_forecasts = stretch * (part * stack + (1.0 - trust) * of_all)
    slopes, offset = of_forecasts @ lean * kept, stretch * part * constant + float(of_forecasts @ pulled)
    if settings.regression:
        return Mixture(slopes, offset + targets[MEAN])
    sure = _sure(state, offset if margins is None else offset + slopes @ margins)
    return Mixture(sure * slopes, sure * offset)


def _near_the_heaviest(
    state: State, awake: FloatArray, lean: FloatArray, forecasts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """An expert far from the heaviest counts as that one and a constant (`row.near_the_heaviest`)."""
    heaviest, reach = int(np.argmax(state.weights * awake)), NEAR * math.sqrt(noise(state.errors))
    off = forecasts - forecasts[heaviest]
    far = (np.abs(off) > reach) & (awake > 0.0) & (state.errors[ERROR_ROWS] >= FEW) & (reach > 0.0)
    return np.where(far[:, None], lean[heaviest], lean), np.where(far, np.copysign(reach, off), 0.0)


def _sure(state: State, f: float) -> float:
    """What is left of the logit f, as a factor, since a label may say nothing about its row."""
    eps = doubt(state.surprises)
    return doubted(f, eps) / f if f != 0.0 else 1.0 - eps


def _normed(weights: FloatArray, awake: FloatArray) -> FloatArray:
    return np.asarray(weights * awake / (weights @ awake))


def _leaning(trust: float, awake: FloatArray) -> FloatArray:
    """(experts, experts) a young task's own experts lean on the pooled ones."""
    lean = np.eye(N_EXPERTS)
    for own, pooled in zip(LEANING, LEANS_ON, strict=True):
        lean[own, own], lean[own, pooled] = trust * awake[own], (1.0 - trust) * awake[own]
    return lean


def _kept(limit: float, values: FloatArray) -> FloatArray:
    """What is left of values that are held within a limit, as a factor."""
    sizes = np.abs(values)
    return np.divide(limit, sizes, out=np.ones(len(values)), where=sizes > limit)


def _slopes(weights: FloatArray, forecasts: FloatArray | None) -> FloatArray:
    """(experts,) mean slopes of logit Σ w_e sigmoid(u_e), held within LIMIT, from u = 0 to these forecasts."""
    if forecasts is None:
        return weights
    p = 1.0 / (1.0 + np.exp(-AT[:, None] * forecasts))
    mixed = p @ weights
    slopes = SHARE / (mixed * ((1.0 - p) @ weights)) @ (weights * p * (1.0 - p))
    return np.asarray(slopes * _kept(LIMIT, np.array([slopes @ forecasts])))
