"""What features add to a decision of hedged sharing.

The answer is a mixture of linear experts, f = q(u_1, ..., u_9), u_e their forecasts. Each expert gets the share

    c_e = ∫ ∂q/∂u_e (t u) dt over 0 <= t <= 1,   so that f = q(0) + Σ_e c_e u_e    (Aumann, Shapley 1974),

its mean slope on the way from no evidence to this row. A feature adds Σ_e c_e w_ej x_j, x the scaled row: by the
weights s that all tasks share, and by the task's own v. A Bayes mixture of probabilities has q(0) = 0, for its weights
add up to 1; for real targets q is linear and c_e its slope. Without a row, c_e is the slope at u = 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.task_weights.hash_table import of_task
from shoal.engine.task_weights.record_table import Records
from shoal.model.algorithm import Setup
from shoal.model.explanations import Parts
from shoal.online.hedged_sharing.algorithm import COUNT, LARGEST, MEAN, SCATTER, State
from shoal.online.hedged_sharing.experts import INDEPENDENT, LEARNED, NUMBERS, POOLED, RULES, Settings, awake_of
from shoal.online.hedged_sharing.mixing import LIMIT, N_EXPERTS
from shoal.online.hedged_sharing.scaling import (
    BAND,
    CONSTANT,
    ENTRIES,
    NORMS,
    ROWS,
    SQUARES,
    TOO_SMALL,
    Scale,
    ScaledRow,
    scaled_row,
)

POINTS, POINT_WEIGHTS = np.polynomial.legendre.leggauss(64)
AT, SHARE = 0.5 * (POINTS + 1.0), 0.5 * POINT_WEIGHTS  # of the integral: exact to rounding for forecasts within LIMIT


class Mixture(NamedTuple):
    """f = offset + Σ_e slopes[e] m_e, m_e the margins of the experts."""

    slopes: FloatArray  # (9,)
    offset: float


def contributions(
    setup: Setup, state: State, tasks: IntArray, features: IndexArray, values: FloatArray | None
) -> Parts:
    """What features add to decisions: in a row of these values, or of 1 each in a row of usual length."""
    settings: Settings = setup.settings
    slots = np.concatenate([[0], 1 + features.astype(np.int64)])
    x = _usual(state.scale, features) if values is None else _scaled(state.scale, features, values, settings)
    s = state.shared[slots].astype(np.float64)
    shared, own = np.empty((len(tasks), len(slots))), np.empty((len(tasks), len(slots)))
    for i, task in enumerate(tasks.tolist()):
        v = np.zeros((len(slots), NUMBERS)) if settings.sharing == POOLED else records_of(state.own, task, slots)
        weights = [_experts(s, v, rule) for rule in RULES]
        margins = None if values is None else np.array([w @ x for rule in weights for w in rule])
        slopes, offset = _mixture(settings, state, task, margins)
        pooled, together, mine = slopes[0::3], slopes[1::3], slopes[2::3]
        shared[i] = x * sum(a * s[:, r] + b * s[:, r + 1] for a, b, r in zip(pooled, together, RULES, strict=True))
        own[i] = x * sum(b * v[:, r] + c * v[:, r + 1] for b, c, r in zip(together, mine, RULES, strict=True))
        shared[i, 0] += offset
    rows = state.scale.sums[ROWS]
    return Parts(shared, own, np.sqrt(state.scale.features[features, 0] / rows) if rows > 0.0 else None)


def _experts(s: FloatArray, v: FloatArray, rule: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The weights of the pooled expert of a rule, of the one that does both, and of the task's own."""
    return s[:, rule], s[:, rule + 1] + v[:, rule], v[:, rule + 1]


def records_of(own: Records, task: int, slots: IntArray) -> FloatArray:
    """(slots, 8) records of a task; zeros where it has none."""
    found = np.zeros((len(slots), NUMBERS))
    if task < 0:
        return found
    keys, places = of_task(own.tables, task)
    if len(keys) == 0:
        return found
    keys = keys.astype(np.int64)
    order = np.argsort(keys)
    at = np.minimum(np.searchsorted(keys, slots, sorter=order), len(keys) - 1)
    there = keys[order[at]] == slots
    found[there] = own.records[places[order[at[there]]].astype(np.int64)]
    return found


# ---- the row as the experts see it -------------------------------------------------------------------------


@kernel(entry=True, allocates=True)
def one_scaled(rounds: Rounds, scale: Scale, shorten: bool, out: ScaledRow) -> int:
    return scaled_row(rounds, 0, scale, shorten, out)


def _scaled(scale: Scale, features: IndexArray, values: FloatArray, settings: Settings) -> FloatArray:
    """(1 + features,) of one row, none of whose values is 0."""
    n, room = len(features), 1 + len(features) + 64
    indptr, zero = np.array([0, n]), np.zeros(1, np.int64)
    rounds = Rounds(0, indptr, features.astype(np.int32), values, zero, np.zeros(1), np.array([0, 1]))
    out = ScaledRow(np.zeros(room), np.zeros(room, np.int64), np.zeros(room), np.zeros(room), np.zeros(2))
    return out.x[: one_scaled(rounds, scale, not settings.regression, out)]


def _usual(scale: Scale, features: IndexArray) -> FloatArray:
    """(1 + features,) of 1 in each feature, in a row of usual length."""
    squares, counts = scale.features[features].T
    sums, factors = scale.sums, np.ones(len(features))
    rms = math.sqrt(sums[SQUARES] / sums[ENTRIES]) if sums[ENTRIES] > 0.0 else 0.0
    known = squares > TOO_SMALL
    inverse = np.sqrt(counts[known] / squares[known])
    factors[known] = np.maximum(rms / BAND * inverse, np.minimum(rms * BAND * inverse, 1.0))
    if sums[NORMS] > 0.0:
        factors /= sums[NORMS] / sums[ROWS]
    return np.concatenate([[CONSTANT], factors])


# ---- the mixture, linear in the margins --------------------------------------------------------------------


def _mixture(settings: Settings, state: State, task: int, margins: FloatArray | None) -> Mixture:
    """Both mixings (`forecast` in `algorithm`) as one sum over the experts; without margins near no evidence."""
    awake, r, targets = awake_of(settings), state.regression, state.targets
    rows = int(state.task_rows[task]) if task >= 0 else 0
    lean = _leaning(rows / (rows + settings.young) if settings.sharing == LEARNED else 1.0)
    everybody = state.weights
    mine = state.task_weights[task] if rows > 0 and settings.sharing != POOLED else everybody
    everybody = mine if settings.sharing == INDEPENDENT else everybody
    limit = 2.0 * targets[LARGEST] if settings.regression else LIMIT
    kept = awake if margins is None else awake * _kept(limit, margins)
    forecasts = None if margins is None else lean @ (kept * margins)
    if settings.regression:
        unit = math.sqrt(targets[SCATTER] / targets[COUNT]) if targets[COUNT] > 0.0 else 0.0
        of_forecasts = r[:N_EXPERTS] + r[9] * mine + r[10] * everybody if unit > 0.0 else np.zeros(N_EXPERTS)
        constant = unit * r[11]
    else:
        of_forecasts = r[:N_EXPERTS] + r[9] * _slopes(mine, forecasts) + r[10] * _slopes(everybody, forecasts)
        constant = r[11]
    slopes = of_forecasts @ lean * kept
    answer = constant if margins is None else constant + slopes @ margins
    whole = float(_kept(limit, np.array([answer]))[0])
    return Mixture(whole * slopes, whole * constant + targets[MEAN])


def _leaning(trust: float) -> FloatArray:
    """(9, 9) a young task's own experts lean on the pooled ones."""
    lean = np.eye(N_EXPERTS)
    for own in range(2, N_EXPERTS, 3):
        lean[own, own], lean[own, own - 2] = trust, 1.0 - trust
    return lean


def _kept(limit: float, values: FloatArray) -> FloatArray:
    """What is left of values that are held within a limit, as a factor."""
    sizes = np.abs(values)
    return np.divide(limit, sizes, out=np.ones(len(values)), where=sizes > limit)


def _slopes(weights: FloatArray, forecasts: FloatArray | None) -> FloatArray:
    """(9,) mean slopes of logit Σ w_e sigmoid(u_e), held within LIMIT, from u = 0 to these forecasts."""
    if forecasts is None:
        return weights
    p = 1.0 / (1.0 + np.exp(-AT[:, None] * forecasts))
    mixed = p @ weights
    slopes = SHARE / (mixed * ((1.0 - p) @ weights)) @ (weights * p * (1.0 - p))
    return np.asarray(slopes * _kept(LIMIT, np.array([slopes @ forecasts])))
