"""Ways to mix forecasts: Bayes weights with a fixed share, and logistic regressions by online Newton steps.

Loops over experts end at the length of an array: one with a constant end is unrolled before it could be SIMD.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel
from shoal.online.common.logistic import LIMIT, exp_by_series, weighted_slope, within
from shoal.online.hedged_sharing.experts import FEW, N_INPUTS, N_LOGITS

TURN, LOGITS_TURN = (-(-n // 8) * 8 for n in (N_INPUTS, N_LOGITS))  # with zeros after them: whole turns of SIMD loops
SHARE = 0.005  # of the weights that goes back to the prior after every row, so that any expert can come back
SLOW_SHARE = 1e-4  # of the slow mixture's, and of the third mixing's
# The regressions' weights have a variance at the start, and gain DRIFT/t in row t: steps shrink as 1/sqrt(t).
VARIANCES = (1.0, 0.1)
DRIFTS = (1e-3, 1e-4)
N_STACKS, N_ANSWERS = 2, 3
TRUSTS = (0.45, 0.45, 0.1)  # of the third mixing, before the first row: a slow mixture is slow to see what is rare
LEAST_DRIFT = 1e-6  # without sharing, where the mixing alone follows what changes in all tasks
ROUNDING = 1e-9
ROWS, SURPRISES = range(2)  # positions in `surprises`


@kernel(alone=False)
def sigmoids(logits: FloatArray, few: bool, out: FloatArray) -> None:
    """Sigmoids of all or of the first FEW."""
    for i in range(FEW if few else len(logits)):
        out[i] = 1.0 / (1.0 + exp_by_series(-logits[i]))


@kernel(inline=False, alone=False)
def sharpen(likelihood: FloatArray, weights: FloatArray, awake: FloatArray, h: float) -> None:
    """Likelihoods of h times the same, up to a factor: the best of an expert with a weight becomes 1."""
    best = 0.0
    for e in range(len(awake)):
        best = max(best, likelihood[e] if awake[e] * weights[e] > 0.0 else 0.0)
    for e in range(len(awake)):
        likelihood[e] = (min(likelihood[e] / best, 1.0) if best > 0.0 else 1.0) ** h


@kernel(entry="too")
def doubt(surprises: FloatArray) -> float:
    """The chance eps that a label says nothing about its row: (surprises + 1/2)/(rows + 2), at most 1/2."""
    return float(min((surprises[SURPRISES] + 0.5) / (surprises[ROWS] + 2.0), 0.5))


@kernel(alone=False)
def learn_doubt(happened: float, h: float, surprises: FloatArray) -> None:
    """Count a label, and whether the answer without doubt made it less likely than 1/(rows + 2).

    A calibrated forecaster meets about ln n surprises in n rows. The first forecast is 1/2 but for rounding.
    """
    surprises[SURPRISES] += h if happened * (surprises[ROWS] + 2.0) < 1.0 - ROUNDING else 0.0
    surprises[ROWS] += h


@kernel(alone=False)
def with_doubt(p: float, eps: float) -> float:
    """The label says nothing with chance eps."""
    return (1.0 - eps) * p + 0.5 * eps


@kernel(entry=True)
def doubted(f: float, eps: float) -> float:
    """The logit of (1 - eps) p + eps/2, p = sigmoid(f)."""
    rare = math.exp(-abs(f))  # p is 1/(1 + rare) or rare/(1 + rare)
    both = 0.5 * eps * (1.0 + rare)
    return math.copysign(math.log((1.0 - eps + both) / ((1.0 - eps) * rare + both)), f)


@kernel(alone=False)
def logit_of(p: float) -> float:
    return within(LIMIT, math.log(max(p, 1e-300) / max(1.0 - p, 1e-300)))


@kernel(alone=False)
def inner(weights: FloatArray, z: FloatArray, few: bool) -> float:
    """Of all inputs or of the first FEW."""
    total = 0.0
    for i in range(FEW if few else len(z)):
        total += weights[i] * z[i]
    return total


@kernel(alone=False)
def labels(p: FloatArray, positive: bool, eps: float) -> None:
    """Probabilities of the larger label become those of the label that came, which says nothing with chance eps."""
    for e in range(len(p)):
        p[e] = with_doubt(p[e] if positive else 1.0 - p[e], eps)


@kernel(alone=False)
def gaussian(forecasts: FloatArray, awake: FloatArray, y: float, variance: float) -> None:
    """Forecasts of a real target become their likelihoods, up to a factor: the best of those awake has 1."""
    least = np.inf
    for e in range(len(awake)):
        least = min(least, (y - forecasts[e]) ** 2 if awake[e] > 0.0 else np.inf)
    for e in range(len(awake)):
        forecasts[e] = math.exp(0.5 * (least - (y - forecasts[e]) ** 2) / variance) if awake[e] > 0.0 else 1.0


@kernel(alone=False)
def of_those_awake(weights: FloatArray, values: FloatArray, awake: FloatArray) -> tuple[float, float]:
    """The sum of weight times value, and that of weights."""
    total = mass = 0.0
    for e in range(len(awake)):
        total += awake[e] * weights[e] * values[e]
        mass += awake[e] * weights[e]
    return total, mass


@kernel(alone=False)
def mixture(weights: FloatArray, p: FloatArray, awake: FloatArray) -> float:
    """The forecasts of those awake by their weights."""
    total, mass = of_those_awake(weights, p, awake)
    return total / mass


@kernel(alone=False)
def bayes(weights: FloatArray, likelihood: FloatArray, awake: FloatArray, prior: FloatArray, share: float) -> None:
    """Weight times likelihood over the mixture's; then a share of the prior. Sleepers have the mixture's likelihood.

    So a sleeping expert neither gains nor loses; those after the last of `awake` sleep.
    """
    total, mass = of_those_awake(weights, likelihood, awake)
    _move(weights, likelihood, awake, prior, share, (1.0 - share) * mass / total)


@kernel(sums="in order", alone=False)
def _move(
    weights: FloatArray, likelihood: FloatArray, awake: FloatArray, prior: FloatArray, share: float, kept: float
) -> None:
    """In order: else each weight is divided by the total."""
    asleep = 1.0 - share
    for e in range(len(awake)):
        weights[e] *= awake[e] * (kept * likelihood[e]) + (1.0 - awake[e]) * asleep
        weights[e] += share * prior[e]
    for e in range(len(awake), len(weights)):
        weights[e] = weights[e] * asleep + share * prior[e]


class Regression(NamedTuple):
    """One of the second mixing's, on its inputs z."""

    weights: FloatArray  # (TURN,)
    covariance: FloatArray  # (N_INPUTS * TURN,)
    direction: FloatArray  # (TURN,) scratch


class Observed(NamedTuple):
    """The inputs of a Newton step beside z."""

    error: float  # slope of the loss
    curvature: float
    y: float
    logit: float  # the forecast
    times: float  # how often a label came


@kernel(alone=False)
def newton_step(z: FloatArray, seen: Observed, drift: float, few: bool, regression: Regression) -> None:
    """One online Newton (Kalman) step of a regression on z; e is the loss's slope, h its curvature.

    P <- P + drift I;  w <- w + P z e / (1 + h z'Pz);  P <- P - h P z z'P / (1 + h z'Pz)

    For a label y that does not come once but several `times`, the fraction is `weighted_slope` with tau = z'Pz. If all
    inputs but the first FEW sleep for good, these alone are moved. One that sleeps and may wake is moved, too, by its
    covariances with the others: else P would not stay positive definite.
    """
    if few:  # two copies, whose loops have constant ends
        _step_of(FEW, FEW, z, seen, drift, regression)
    else:
        _step_of(N_INPUTS, TURN, z, seen, drift, regression)


@kernel(disjoint=True, alone=False)
def _step_of(n: int, turn: int, z: FloatArray, seen: Observed, drift: float, regression: Regression) -> None:
    weights, covariance, direction = regression.weights, regression.covariance, regression.direction
    error, tau = seen.error, 0.0
    for j in range(turn):  # columns outside, not rows: P is symmetric, and this way the loop is SIMD
        total = drift * z[j]
        for i in range(n):
            total += covariance[i * TURN + j] * z[i]
        direction[j] = total
        tau += total * z[j]
    scale = 1.0 / (1.0 + seen.curvature * tau)
    if seen.times != 1.0:
        error = weighted_slope(seen.logit, seen.y, tau, False, seen.times) / scale
    pull = seen.curvature * scale
    for j in range(turn):
        for i in range(n):
            covariance[i * TURN + j] -= pull * direction[i] * direction[j]
        weights[j] += direction[j] * error * scale
    for i in range(n):
        covariance[i * (TURN + 1)] += drift
