"""Levels of tasks that may drift, over common weights: a filter on dense rows of few columns.

The margin of a row of task k is x'w + b_k. How much levels differ and how fast they drift is not known, so each task
has G = 35 of them, one for each pair of lambda in 0.1, 0.3, 1, 3, 10, 30, 100 and q in 0, 0.01, 0.1, 1, 10, with
variances v_kg in units of the noise's s_g^2. A new task has b = 0, v = 1/lambda. With f_g = x'w + b_kg, scores l_g and
shares a_g = exp(l_g)/sum exp(l), real targets t are answered by sum a_g f_g and learned by

    e = t - f_g,  tau = 1 + v_kg,  l_g <- 0.999 l_g - (log(s_g^2 tau) + e^2/(s_g^2 tau))/2
    b_kg <- b_kg + (v_kg/tau) e,  v_kg <- v_kg/tau + q,  s_g^2: mean of e^2/tau over at most 2,000 rows

and labels, with V = 4 v_kg, by sum a_g f_g/sqrt(1 + pi V/8) and

    p = sigma(f_g),  c = max(p (1 - p), 0.001),  l_g <- 0.999 l_g + log P(y)
    b_kg <- b_kg + V (y - p)/(1 + c V),  v_kg <- (V/(1 + c V) + q)/4

The common weights have a Kalman filter, whose noise is that of the g with the largest share; their P starts at 10 I
and gains 1e-5 I in a row.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray, aligned_zeros
from shoal.engine.axes import OTHER, ROW, TASK
from shoal.engine.compile import kernel
from shoal.model.state import copy_block
from shoal.online.common.dense import add_outer, add_to, inner, product, turns, whole_turns
from shoal.online.common.logistic import NEGLIGIBLE, exp_by_series, log1p_by_series, sigmoid
from shoal.online.common.standardized_targets import UNIT, clipped, from_units, in_units, learn_scale, new_scale
from shoal.online.mixed_effects.effects import LEAST_NOISE, PRIOR

LAMBDAS, DRIFTS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0), (0.0, 0.01, 0.1, 1.0, 10.0)
PRIORS = np.repeat(1.0 / np.array(LAMBDAS), len(DRIFTS))  # of v
DRIFT_OF = np.tile(DRIFTS, len(LAMBDAS))
G = len(PRIORS)
DRIFT = 1e-5  # added to the variance of common weights in a row
KEPT = 0.999  # of scores in a row
NOISE_ROWS = 2000.0
FLAT = 1e-3  # the least curvature of a label
LOGIT = 4.0  # variance of a label's noise, in logits
LEVEL, VARIANCE = range(2)  # positions in `levels`
SCORE, SHARE, NOISE = range(3)  # positions in `grid`


class Levels(NamedTuple):
    """The learned state. Matrices have `side` columns, the first for the constant 1."""

    mean: Annotated[FloatArray, ROW]  # (side,) w
    covariance: Annotated[FloatArray, ROW, ROW]  # (side, side) P
    levels: Annotated[FloatArray, TASK, OTHER, OTHER]  # (tasks, 2, G) b and v
    rows: Annotated[FloatArray, TASK]  # of the task
    grid: FloatArray  # (3, G) l, a, s^2
    scale: FloatArray  # (6,) of real targets: see `standardized_targets`
    weight: FloatArray  # (1,) rows
    columns: IntArray  # (1,) in use


class Scratch(NamedTuple):
    """Scratch of one row."""

    v: FloatArray  # (side,) P x
    levels: FloatArray  # (2, G) of the row's task


class Forecast(NamedTuple):
    """The forecast of a row, on the scale of targets."""

    margin: float
    variance: float  # of the target, or of the logit
    pooled: float  # x'w
    level: float  # sum a_g b_kg
    pooled_variance: float  # x'P x


@kernel(allocates=True, alone=False)
def new_scratch(side: int) -> Scratch:
    """For matrices of this side."""
    return Scratch(np.zeros(side), np.zeros((2, G)))


@kernel(inline=False, alone=False)
def ask(d: int, x: FloatArray, task: int, regression: bool, state: Levels, scratch: Scratch) -> Forecast:
    """The forecast of a row of d entries, the constant 1 first; task -1 is unseen. x has zeros up to a whole turn."""
    n, own, shares = turns(min(d, state.columns[0])), scratch.levels, state.grid[SHARE]
    seen = task >= 0 and state.rows[task] > 0.0
    for g in range(len(shares)):
        own[LEVEL, g] = state.levels[task, LEVEL, g] if seen else 0.0
        own[VARIANCE, g] = state.levels[task, VARIANCE, g] if seen else PRIORS[g]
    m = inner(n, x, state.mean)
    product(n, x, state.covariance, scratch.v)
    spread, best = max(inner(n, x, scratch.v), 0.0), 0
    for g in range(len(shares)):
        best = g if shares[g] > shares[best] else best
    level = inner(len(shares), shares, own[LEVEL])
    if regression:
        return Forecast(m + level, state.grid[NOISE, best] * (1.0 + own[VARIANCE, best]) + spread, m, level, spread)
    margin = 0.0
    for g in range(len(shares)):
        margin += shares[g] * (m + own[LEVEL, g]) / math.sqrt(1.0 + math.pi / 8.0 * LOGIT * own[VARIANCE, g])
    return Forecast(margin, LOGIT * own[VARIANCE, best] + spread, m, level, spread)


@kernel(alone=False)
def answer(f: Forecast, regression: bool, state: Levels) -> float:
    """The logit, or the target as it comes."""
    return from_units(f.margin, state.scale) if regression else f.margin


@kernel(inline=False, alone=False)
def learn(
    d: int,
    x: FloatArray,
    y: float,
    h: float,
    task: int,
    regression: bool,
    f: Forecast,
    state: Levels,
    scratch: Scratch,
) -> None:
    """Learn a row that counts h times; `f` is its forecast in this state, as `scratch` has it.

    y is 0 or 1, or a real target as it comes. There is room for d columns.
    """
    changed = d > state.columns[0]
    for j in range(state.columns[0], d):
        state.covariance[j, j] = PRIOR
    state.columns[0] = max(state.columns[0], d)
    state.weight[0] += h
    ratio, shift = learn_scale(y, h, state.scale) if regression else (1.0, 0.0)
    if ratio != 1.0 or shift != 0.0:
        rescale(ratio, shift, state)
        changed = True
    done = 0.0
    while done < h:  # a label that counts h times is 1, 1, 2, 4, ... labels, one after the other
        if changed or done > 0.0:
            f = ask(d, x, task, regression, state, scratch)
        part = h if regression else min(max(done, 1.0), h - done)
        e, curvature, noise = y, part, 1.0
        if regression:
            noise = f.variance - f.pooled_variance
            e = clipped(in_units(y, state.scale) - f.margin, f.variance, h, state.scale)
            learn_target(f.margin + e, h, f, state, scratch)
        else:
            own = scratch.levels
            learn_label(y, part, f.pooled, own[LEVEL], own[VARIANCE], state.grid[SCORE])
            p = sigmoid(f.pooled + f.level)
            e, curvature = y - p, part * max(p * (1.0 - p), FLAT)
        step = 1.0 / (noise + curvature * f.pooled_variance)
        n = turns(state.columns[0])
        add_to(n, part * step * e, scratch.v, state.mean)
        add_outer(n, -curvature * step, scratch.v, state.covariance)
        for g in range(G):
            state.levels[task, LEVEL, g] = scratch.levels[LEVEL, g]
            state.levels[task, VARIANCE, g] = scratch.levels[VARIANCE, g]
        state.rows[task] += part
        done += part
    for j in range(state.columns[0]):
        state.covariance[j, j] += DRIFT
    unit = 1.0 if regression else 1.0 / LOGIT
    for g in range(G):
        state.levels[task, VARIANCE, g] += unit * DRIFT_OF[g]
    share(state)


@kernel(alone=False)
def learn_target(t: float, h: float, f: Forecast, state: Levels, scratch: Scratch) -> None:
    """Every level of the task, its noise and its score."""
    b, v, score, noise = scratch.levels[LEVEL], scratch.levels[VARIANCE], state.grid[SCORE], state.grid[NOISE]
    rate = h / (min(state.weight[0] - h, NOISE_ROWS - 3.0) + 2.0 + h)
    for g in range(len(b)):
        e, tau = t - f.pooled - b[g], 1.0 + v[g]
        square = e * e / tau
        score[g] -= 0.5 * h * (math.log(noise[g] * tau) + square / noise[g])
        noise[g] = max(noise[g] + rate * (square - noise[g]), LEAST_NOISE)
        gain = v[g] / (1.0 + h * v[g])
        b[g] += h * gain * e
        v[g] = gain


@kernel(disjoint=True, alone=False)
def learn_label(y: float, h: float, pooled: float, b: FloatArray, v: FloatArray, score: FloatArray) -> None:
    """Every level of the task and its score."""
    sign = 1.0 if y > 0.5 else -1.0
    for g in range(len(b)):
        z = -sign * (pooled + b[g])
        rare = exp_by_series(max(-abs(z), NEGLIGIBLE))
        wrong = (1.0 if z > 0.0 else rare) / (1.0 + rare)  # 1 - P(y) = |y - p|
        gain = LOGIT * v[g] / (1.0 + h * max(wrong * (1.0 - wrong), FLAT) * LOGIT * v[g])
        score[g] -= h * (max(z, 0.0) + log1p_by_series(rare))
        b[g] += h * gain * sign * wrong
        v[g] = gain / LOGIT


@kernel(alone=False)
def share(state: Levels) -> None:
    """Scores fade and tell the shares."""
    score, shares = state.grid[SCORE], state.grid[SHARE]
    most = -np.inf
    for g in range(len(score)):
        score[g] *= KEPT
        most = max(most, score[g])
    divide(most, score, shares)


@kernel(disjoint=True, alone=False)
def divide(most: float, score: FloatArray, shares: FloatArray) -> None:
    """Shares by exp(score), the largest of which is `most`."""
    total = 0.0
    for g in range(len(score)):
        shares[g] = exp_by_series(max(score[g] - most, NEGLIGIBLE))
        total += shares[g]
    for g in range(len(score)):
        shares[g] /= total


@kernel(inline=False, alone=False)
def rescale(ratio: float, shift: float, state: Levels) -> None:
    """The scale of targets moves."""
    for j in range(turns(state.columns[0])):
        state.mean[j] *= ratio
    state.mean[0] += shift
    for k in range(len(state.rows)):
        if state.rows[k] > 0.0:
            for g in range(G):
                state.levels[k, LEVEL, g] *= ratio


def new_levels(n_tasks: int, side: int) -> Levels:
    """Nothing learned."""
    grid = np.array([np.zeros(G), np.full(G, 1.0 / G), np.ones(G)])
    return Levels(
        aligned_zeros((side,)),
        aligned_zeros((side, side)),
        np.zeros((n_tasks, 2, G)),
        np.zeros(n_tasks),
        grid,
        new_scale(),
        np.zeros(1),
        np.zeros(1, np.int64),
    )


def with_side(state: Levels, side: int) -> Levels:
    """The same in larger matrices; the same arrays if there is room."""
    if side == len(state.mean):
        return state
    mean, covariance = aligned_zeros((side,)), aligned_zeros((side, side))
    copy_block(state.mean, mean)
    copy_block(state.covariance, covariance)
    return state._replace(mean=mean, covariance=covariance)


def pack(state: Levels) -> Levels:
    """The part in use, to be saved."""
    used = int(state.columns[0])
    return state._replace(mean=state.mean[:used], covariance=state.covariance[:used, :used])


def check(packed: Levels) -> None:
    """Raise ValueError unless sizes and divisors are in range."""
    used = int(packed.columns[0])
    if packed.mean.shape != (used,) or packed.covariance.shape != (used, used):
        raise ValueError("its matrix is of another size than it says")
    variances = (packed.grid[NOISE] > 0.0).all() and (packed.levels[:, VARIANCE] >= 0.0).all()
    if not (variances and (packed.rows >= 0.0).all() and packed.weight[0] >= 0.0 and packed.scale[UNIT] > 0.0):
        raise ValueError("its variances or numbers of rows are out of range")


def unpack(packed: Levels) -> Levels:
    """The inverse of `pack`."""
    return with_side(packed, whole_turns(len(packed.mean)))
