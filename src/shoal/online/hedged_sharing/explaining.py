"""The contributions of features, and of pairs of them, to a decision of hedged sharing.

The answer is a mixture of linear experts, f = q(u_1, ..., u_n), u_e their forecasts. Each expert gets the share

    c_e = ∫ ∂q/∂u_e (t u) dt over 0 <= t <= 1,   so that f = q(0) + Σ_e c_e u_e    (Aumann, Shapley 1974),

its mean slope on the way from no evidence to this row. An entry of the scaled or the crossed row adds Σ_e c_e w_ej x_j:
by the weights s that all tasks share, and by the task's own v. The parts of a feature's value and of its bin are one
number. A Bayes mixture of probabilities has q(0) = 0, for its weights add up to 1; for real targets q is linear and c_e
its slope. Without a row, c_e is the slope at u = 0, and bins and pairs are left out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.compile import call, kernel
from shoal.engine.handles import Handle
from shoal.engine.rounds import Rounds
from shoal.engine.task_weights.hash_table import of_task
from shoal.engine.task_weights.record_table import Records
from shoal.model.algorithm import Setup
from shoal.model.explanations import Item, Parts
from shoal.online import boosted_trees
from shoal.online.boosted_trees import STAGES
from shoal.online.boosted_trees.forest import FIRST_COLUMN
from shoal.online.common.logistic import LIMIT
from shoal.online.common.standardized_targets import CENTER, UNIT
from shoal.online.hedged_sharing import crossing, linear
from shoal.online.hedged_sharing.algorithm import decide
from shoal.online.hedged_sharing.columns import (
    EFFECTS,
    FILTERS,
    FULL_OWN,
    FULL_POOLED,
    IMPLICIT,
    IMPLICIT_TOO,
    LEVELS,
    LOG_LEVELS,
    LOW_RANK,
    MATRICES,
    MOST_TREES,
    N_MARGINS,
    N_OUT,
    TREES,
    groups_for,
)
from shoal.online.hedged_sharing.crossing import ALL_PAIRS, MOST_PAIRS, Bins
from shoal.online.hedged_sharing.dense import ABOVE, LARGEST_LOG, LOG_NOISE, answered, is_in, sleeps
from shoal.online.hedged_sharing.experts import (
    ALL_POOLED,
    ALWAYS,
    FEATURES,
    FIRST_CROSSED,
    FIRST_DENSE,
    HEAD,
    INDEPENDENT,
    LEARNED,
    N_EXPERTS,
    N_INPUTS,
    NARROW,
    OF_ALL,
    OF_TASK,
    ONE,
    SEEN_ROWS,
    SHRUNK,
    TOWARD,
    is_narrow,
    taking_part,
)
from shoal.online.hedged_sharing.linear import Plan
from shoal.online.hedged_sharing.mixing import doubt, doubted
from shoal.online.hedged_sharing.row import (
    N_CROSSED,
    NEAR,
    DenseMargins,
    N,
    Settings,
    Work,
    constant_input,
    longest_row,
    scratch_for,
)
from shoal.online.hedged_sharing.scaling import (
    BAND,
    CONSTANT,
    ENTRIES,
    ERROR_ROWS,
    FAR,
    FEW,
    LARGEST,
    MEAN,
    NORMS,
    ROWS,
    SQUARES,
    TOO_SMALL,
    deviation,
    least_answer,
    noise,
)
from shoal.online.hedged_sharing.state import State
from shoal.online.kalman_filters.low_rank import WEIGHTS
from shoal.online.mixed_effects import effects as mixed_effects
from shoal.online.mixed_effects.effects import Effects
from shoal.online.task_levels import levels as task_levels
from shoal.online.task_levels.levels import Levels

NONE = np.zeros(0, np.int32)


class Weights(NamedTuple):
    """Of every expert of a group on every entry of a row."""

    shared: FloatArray  # (experts, entries)
    own: FloatArray


def contributions(
    setup: Setup, state: State, tasks: IntArray, features: IndexArray, values: FloatArray | None
) -> Parts:
    """Parts that features add to decisions: in a task's row of these values, or of 1 each in a row of usual length."""
    if values is None:
        return _usual_parts(setup.settings, state, tasks, features)
    parts = _parts_of_row(setup, state, int(tasks[0]), features, values)
    found = float(parts.shared.sum() + parts.own.sum() + parts.pairs_shared.sum() + parts.pairs_own.sum())
    parts.shared[0, 0] += max(least_answer(state.targets) - found, 0.0)
    return parts


def linear_weights(settings: Settings, state: State, task: int, slots: IntArray) -> Weights:
    """Of all experts that are linear on the scaled row, zeros of the others on it; slot 0 is the constant."""
    groups = _plain_weights(settings, state, task, slots), _dense_weights(settings, state, task, slots)
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
    known = keys[order[at]] == slots
    found[known] = own.records[places[order[at[known]]].astype(np.int64)]
    return found


def _dense_weights(settings: Settings, state: State, task: int, slots: IntArray) -> Weights:
    """Of experts on dense rows but for trees and log levels; a feature without a column has none."""
    shared, own = np.zeros((2, N_MARGINS, len(slots)))
    if sleeps(state.dense, settings.dense):
        return Weights(shared, own)
    full, low, side = state.dense.columns.full, state.dense.columns.low, state.dense.columns.full.pooled.shape[1]
    places = np.where(slots > 0, full.place[slots - 1], 0)
    has_column = (slots == 0) | (places > 0)
    if is_in(state.dense, settings.dense, LOW_RANK):
        shared[FULL_POOLED] = low.pooled[WEIGHTS, places] * has_column
        if task >= 0 and low.slot[task] > 0:
            own[FULL_OWN] = low.own[low.slot[task] - 1, WEIGHTS, places] * has_column
    if not is_in(state.dense, settings.dense, MATRICES):
        return Weights(shared, own)
    shared[FULL_POOLED] = full.pooled[side, places] * has_column
    if task >= 0 and full.slot[task] > 0:
        own[FULL_OWN] = full.own[full.slot[task] - 1, side, places] * has_column
    groups = groups_for(int(state.seen[FEATURES]), int(state.seen[SEEN_ROWS]), settings.dense)
    mean = state.targets[MEAN] if settings.regression else 0.0
    if groups & FILTERS and len(state.dense.levels.mean) > 0:
        filters = [(LEVELS, _of_levels(settings, state.dense.levels, task))]
        filters.append((EFFECTS, _of_effects(settings, state.dense.effects, task)))
        if groups & IMPLICIT_TOO:
            filters.append((IMPLICIT, _of_effects(settings, state.dense.implicit, task)))
        for e, of in filters:
            shared[e], own[e] = of.shared[places] * has_column, of.own[places] * has_column
            shared[e, slots == 0] += (of.offset - mean) / CONSTANT
    return Weights(shared, own)


class Linear(NamedTuple):
    """A forecast offset + (shared + own)'x by columns."""

    offset: float
    shared: FloatArray
    own: FloatArray


def _of_levels(settings: Settings, levels: Levels, task: int) -> Linear:
    seen = task >= 0 and levels.rows[task] > 0.0
    b, v = levels.levels[task] if seen else np.stack([0.0 * task_levels.PRIORS, task_levels.PRIORS])
    shares, own = levels.grid[task_levels.SHARE], np.zeros(len(levels.mean))
    if settings.regression:
        unit = levels.scale[UNIT]
        own[0] = unit * (shares @ b) / CONSTANT
        return Linear(float(levels.scale[CENTER]), unit * levels.mean, own)
    shares = shares / np.sqrt(1.0 + np.pi / 8.0 * task_levels.LOGIT * v)
    own[0] = shares @ b / CONSTANT
    return Linear(0.0, shares.sum() * levels.mean, own)


def _of_effects(settings: Settings, effects: Effects, task: int) -> Linear:
    """Of labels without the factor kappa, which depends on the row."""
    own, slot = np.zeros(len(effects.mean)), int(effects.slot[task]) - 1 if task >= 0 else -1
    if slot >= 0:
        own = effects.vectors[slot, mixed_effects.MEAN] - effects.own[slot] @ effects.information[slot] @ effects.mean
    unit = effects.scale[UNIT] if settings.regression else 1.0
    return Linear(float(effects.scale[CENTER]) if settings.regression else 0.0, unit * effects.mean, unit * own)


def _weights(plan: Plan, shared: NDArray[np.float64], own: NDArray[np.float64]) -> Weights:
    """Of records of entries; a lane beyond the record is none."""
    both = (np.pad(records.astype(np.float64), ((0, 0), (0, 1))) for records in (shared, own))
    lanes = plan.shared_lane, plan.own_lane
    return Weights(*(records[:, lane].T for records, lane in zip(both, lanes, strict=True)))


# ---- one row -----------------------------------------------------------------------------------------------


@kernel(entry=True)
def explain_trees(d: int, raw: FloatArray, task: int, trees: boosted_trees.State, out: FloatArray) -> None:
    """Of each expert its constant part, and those of columns: the task, its mean, its last value, the row's."""
    for i in range(len(out)):
        out[i, 0] = boosted_trees.explain(d, raw, task, STAGES[i], trees, out[i, 1:])


def _parts_of_row(setup: Setup, state: State, task: int, features: IndexArray, values: FloatArray) -> Parts:
    rounds = Rounds(
        0,
        np.array([0, len(features)]),
        features.astype(np.int32),
        values,
        np.array([task]),
        np.zeros(1),
        np.array([0, 1]),
    )
    of_trees = np.zeros((len(STAGES), 1 + FIRST_COLUMN + MOST_TREES))
    settings, dtype, margins = setup.settings, setup.params.dtype, np.full((1, N_OUT), np.nan)
    scratch = scratch_for(longest_row(rounds), settings, dtype)
    work, handle = scratch.row.of, Handle(state)
    awake = not sleeps(state.dense, settings.dense)
    rows = answered(rounds, settings.dense, handle, margins, scratch.dense) if awake else None
    if rows is not None and not np.isnan(margins[0, TREES]):
        of = 0 if settings.sharing == ALL_POOLED else task
        explain_trees(int(rows.columns[0]) - 1, rows.raw[0], of, state.dense.trees, of_trees)
    call(decide, rounds, settings, handle, np.zeros(1), dtype, DenseMargins(margins, margins), scratch.row)
    n, n_crossed, cross = int(work.counts[N]), int(work.counts[N_CROSSED]), work.crossed
    slots, x = work.row.feature[:n], work.row.x[:n]
    on_row = Weights(*(part * x for part in linear_weights(settings, state, task, slots)))
    if awake:
        _add_nonlinear(settings, state, task, work, of_trees, slots, on_row)
    places, crossed_x = (cross.shared[:n_crossed], cross.own[:n_crossed]), cross.x[:n_crossed]
    on_crossed = _weights(crossing.PLAN, state.crossed.shared[places[0]], state.crossed.own[places[1]])
    on_crossed = Weights(*(part * crossed_x for part in on_crossed))
    margins = np.concatenate([(group.shared + group.own).sum(axis=1) for group in (on_row, on_crossed)])
    slopes, offset = mixture_of(settings, state, task, work.awake, margins)
    both = [(slopes[:FIRST_CROSSED] @ on_row[part], slopes[FIRST_CROSSED:] @ on_crossed[part]) for part in range(2)]
    items, of_entry = _items(state.crossed.bins, features, values)
    pairs = _pairs(n - 1) if n_crossed > 0 else []
    last = n_crossed - len(pairs)
    for found, of_crossed in both:
        np.add.at(found, of_entry[:last], of_crossed[:last])
    (shared, crossed_shared), (own, crossed_own) = both
    shared[0] += offset
    return Parts(
        shared[None],
        own[None],
        None,
        [(items[a], items[b]) for a, b in pairs],
        crossed_shared[last:],
        crossed_own[last:],
    )


def _add_nonlinear(
    settings: Settings, state: State, task: int, work: Work, of_trees: FloatArray, slots: IntArray, found: Weights
) -> None:
    """Parts that entries add to margins that are not linear in the row: effects on labels, log levels and trees."""
    shared, own = (part[FIRST_DENSE:FIRST_CROSSED] for part in found)
    margins, mean = work.of_dense, state.targets[MEAN] if settings.regression else 0.0
    for e in (EFFECTS, IMPLICIT):
        total = float((shared[e] + own[e]).sum())
        if not settings.regression and total != 0.0:
            shared[e] *= margins[e] / total  # kappa
            own[e] *= margins[e] / total
    places = np.where(slots > 0, state.dense.columns.full.place[slots - 1], 0)
    has_column = (slots == 0) | (places > 0)
    if settings.regression and not math.isnan(margins[LOG_LEVELS]):
        of = _of_levels(settings, state.dense.log_levels, task)
        x = work.row.x[: len(slots)] * has_column
        parts = of.shared[places] * x, of.own[places] * x
        total = float(sum(part.sum() for part in parts))
        grown = math.exp(min(of.offset + 0.5 * state.dense.logs[LOG_NOISE], state.dense.logs[LARGEST_LOG] + ABOVE))
        slope = (margins[LOG_LEVELS] + mean - grown) / total if total != 0.0 else 0.0
        shared[LOG_LEVELS], own[LOG_LEVELS] = slope * parts[0], slope * parts[1]
        shared[LOG_LEVELS, 0] += margins[LOG_LEVELS] - slope * total
    for i, columns in enumerate(of_trees):
        if not math.isnan(margins[TREES + i]):
            of_values = columns[1 + FIRST_COLUMN :]
            shared[TREES + i] = np.where(places > 0, of_values[places - 1], 0.0)
            if task >= 0 and settings.sharing != ALL_POOLED:
                own[TREES + i, 0] = columns[1 : 1 + FIRST_COLUMN].sum()
            shared[TREES + i, 0] = margins[TREES + i] - own[TREES + i].sum() - shared[TREES + i, 1:].sum()


def _items(bins: Bins, features: IndexArray, values: FloatArray) -> tuple[list[Item], IntArray]:
    """Each feature's item, and the entry of the row to which the crossed row's entries before the pairs belong."""
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
ONE_POINT = np.zeros(1), np.ones(1)


class Mixture(NamedTuple):
    """f = offset + Σ_e slopes[e] m_e, m_e the margins of the experts."""

    slopes: FloatArray  # (experts,)
    offset: float


def usual_awake(settings: Settings, state: State, task: int) -> FloatArray:
    """(experts,) 1 for those that would be awake on a row like those so far."""
    awake, seen = np.empty(N_EXPERTS), state.seen
    taking_part(settings.sharing, settings.interactions, settings.dense.trees.once >= 0.0, settings.regression, awake)
    narrow = is_narrow(1, 0, seen)
    if not (settings.interactions == ALWAYS or (settings.interactions == NARROW and narrow)):
        awake[FIRST_CROSSED:] = 0.0
    columns, low = state.dense.columns, is_in(state.dense, settings.dense, LOW_RANK)
    linear = [FULL_POOLED] if low or is_in(state.dense, settings.dense, MATRICES) else []
    if linear and task >= 0 and (columns.low if low else columns.full).slot[task] > 0:
        linear.append(FULL_OWN)
    groups = groups_for(int(seen[FEATURES]), int(seen[SEEN_ROWS]), settings.dense)
    if groups & FILTERS:
        linear += [LEVELS, EFFECTS, *([IMPLICIT] if groups & IMPLICIT_TOO else [])]
    asleep = np.setdiff1d(np.arange(N_MARGINS), linear)
    awake[FIRST_DENSE + asleep] = 0.0
    return awake


def mixture_of(settings: Settings, state: State, task: int, awake: FloatArray, margins: FloatArray | None) -> Mixture:
    """All three mixings (`forecast` in `row`); without margins near no evidence."""
    targets, rows = state.targets, int(state.task_rows[task]) if task >= 0 else 0
    shrinkage = _shrinkage(rows / (rows + settings.half_own) if settings.sharing == LEARNED else 1.0, awake)
    by_all = _normed(state.weights, awake)
    by_task = _normed(state.task_weights[task], awake) if rows > 0 and settings.sharing != ALL_POOLED else by_all
    by_all = by_task if settings.sharing == INDEPENDENT else by_all
    if settings.sharing == ALL_POOLED:
        rows = int(state.rows[0])
    limit = 2.0 * targets[LARGEST] if settings.regression else LIMIT
    kept, pulled = awake, np.zeros(N_EXPERTS)
    forecasts = np.zeros(N_EXPERTS)
    if margins is not None:
        kept = awake * _kept(limit, margins)
        forecasts = shrinkage @ (kept * margins)
        if settings.regression:
            shrinkage, pulled = _near_the_heaviest(state, awake, shrinkage, forecasts)
            forecasts = shrinkage @ (kept * margins) + pulled
    mixtures = [
        weights if settings.regression else _kept_slopes(weights, forecasts)
        for weights in (by_task, by_all, _normed(state.slow, awake))
    ]
    answers = _answers(settings, state, rows / (rows + settings.half_stack), limit, forecasts, mixtures)
    offsets, slopes = np.array([a.offset for a in answers]), np.array([a.slopes for a in answers])
    if settings.regression:
        of_answers, offset = state.trusts, float(state.trusts @ offsets)
    else:
        of_answers, offset = _slopes(state.trusts, slopes @ forecasts, offsets)
    of_forecasts = of_answers @ slopes
    slopes, offset = of_forecasts @ shrinkage * kept, offset + float(of_forecasts @ pulled)
    if settings.regression:
        return Mixture(slopes, offset + targets[MEAN])
    sure = _sure(state, offset if margins is None else offset + slopes @ margins)
    return Mixture(sure * slopes, sure * offset)


def _answers(
    settings: Settings, state: State, trust: float, limit: float, forecasts: FloatArray, mixtures: list[FloatArray]
) -> list[Mixture]:
    """The inputs of the third mixing, in the experts' forecasts."""
    by_task, by_all, slow = mixtures
    unit, constant = 1.0, 1.0
    if settings.regression:
        unit = deviation(state.targets)
        constant = unit * constant_input(unit, state.errors)
    found = []
    for r in state.stacks:
        slopes = (r[HEAD:N_INPUTS] + r[OF_TASK] * by_task + r[OF_ALL] * by_all) * (unit > 0.0)
        offset = constant * r[ONE]
        part = trust * float(_kept(limit, np.array([offset + slopes @ forecasts]))[0])
        found.append(Mixture(part * slopes + (1.0 - trust) * by_all, part * offset))
    return [*found, Mixture(slow, 0.0)]


def _near_the_heaviest(
    state: State, awake: FloatArray, shrinkage: FloatArray, forecasts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """An expert far from the heaviest counts as that one and a constant (`row.near_the_heaviest`)."""
    heaviest, reach = int(np.argmax(state.weights * awake)), NEAR * math.sqrt(noise(state.errors))
    off = forecasts - forecasts[heaviest]
    far = (np.abs(off) > reach) & (awake > 0.0) & (state.errors[ERROR_ROWS] >= FEW) & (reach > 0.0)
    return np.where(far[:, None], shrinkage[heaviest], shrinkage), np.where(far, np.copysign(reach, off), 0.0)


def _sure(state: State, f: float) -> float:
    """The factor of the logit f that doubt in labels leaves."""
    eps = doubt(state.surprises)
    return doubted(f, eps) / f if f != 0.0 else 1.0 - eps


def _normed(weights: FloatArray, awake: FloatArray) -> FloatArray:
    return np.asarray(weights * awake / (weights @ awake))


def _shrinkage(trust: float, awake: FloatArray) -> FloatArray:
    """(experts, experts) in a task of few rows its own experts shrink to the pooled ones."""
    shrinkage = np.eye(N_EXPERTS)
    for own, pooled in zip(SHRUNK, TOWARD, strict=True):
        shrinkage[own, own], shrinkage[own, pooled] = trust * awake[own], (1.0 - trust) * awake[own]
    return shrinkage


def _kept(limit: float, values: FloatArray) -> FloatArray:
    """The factor of values that a limit leaves."""
    sizes = np.abs(values)
    return np.divide(limit, sizes, out=np.ones(len(values)), where=sizes > limit)


def _slopes(weights: FloatArray, steps: FloatArray, start: FloatArray) -> tuple[FloatArray, float]:
    """Mean slopes of F(u) = logit Σ w_e sigmoid(u_e) on the way from `start` to `start + steps`, and F(start)."""
    at, share = (AT, SHARE) if steps.any() else ONE_POINT
    p = 1.0 / (1.0 + np.exp(-(start + at[:, None] * steps)))
    mixed = p @ weights
    slopes = share / (mixed * ((1.0 - p) @ weights)) @ (weights * p * (1.0 - p))
    first = float(1.0 / (1.0 + np.exp(-start)) @ weights)
    return slopes, math.log(first / (1.0 - first))


def _kept_slopes(weights: FloatArray, forecasts: FloatArray) -> FloatArray:
    """From no evidence to these forecasts, the whole held within LIMIT."""
    slopes, _ = _slopes(weights, forecasts, np.zeros(len(weights)))
    return np.asarray(slopes * _kept(LIMIT, np.array([slopes @ forecasts])))
