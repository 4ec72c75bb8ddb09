"""Two ways to mix forecasts: Bayes weights with a fixed share, and a logistic regression by online Newton steps."""

from __future__ import annotations

import math

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel

N_EXPERTS, N_INPUTS = 9, 12
TURN = 16  # inputs with zeros after them: one turn of a SIMD loop, where the length is not a constant to unroll
INVERSES = (1 / 11, 1 / 10, 1 / 9, 1 / 8, 1 / 7, 1 / 6, 1 / 5, 1 / 4, 1 / 3, 1 / 2, 1.0)
SHARE = 0.01  # of the weights that goes back to the prior after every row, so that any expert can come back
DRIFT = 1e-6  # variance that the regression's weights gain a row, so that it never stops learning
LIMIT = 15.0  # logits are kept within +-15


@kernel
def sigmoid(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-logit))


@kernel
def sigmoids(logits: FloatArray, out: FloatArray) -> None:
    """The same for a whole turn of SIMD: exp(-x) = exp(-x/64)^64 by its series, exact to 1e-14 for |x| <= 15."""
    for i in range(len(logits)):
        t = logits[i] * (-1.0 / 64.0)
        power = 1.0
        for k in INVERSES:
            power = 1.0 + power * (t * k)
        for _ in range(6):
            power *= power
        out[i] = 1.0 / (1.0 + power)


@kernel(sums="exact")
def times(h: float, value: float) -> float:
    """h value, in no other order than this: once is the value to the bit."""
    return h * value


@kernel(inline=False)
def weighted_slope(logit: float, y: float, tau: float, h: float) -> float:
    """What a label that counts h times moves a logit by, over tau: sum_i h_i (y - p_i)/(1 + tau h_i p_i (1 - p_i)).

    The parts h_i = 1, 1, 2, 4, ... of h come one after the other, p_i after those before: a sure mistake has hardly
    any curvature, so that one step for all of h would shoot over by up to h steps.
    """
    done = total = 0.0
    while done < h:
        part, p = min(max(done, 1.0), h - done), sigmoid(logit + tau * total)
        total += part * (y - p) / (1.0 + tau * part * p * (1.0 - p))
        done += part
    return total


@kernel(inline=False)
def sharpen(likelihood: FloatArray, weights: FloatArray, h: float) -> None:
    """Likelihoods of h times the same, up to a factor: the best of an expert with a weight becomes 1."""
    best = 0.0
    for e in range(N_EXPERTS):
        best = max(best, likelihood[e] if weights[e] > 0.0 else 0.0)
    for e in range(N_EXPERTS):
        likelihood[e] = (min(likelihood[e] / best, 1.0) if best > 0.0 else 1.0) ** h


@kernel
def within(limit: float, value: float) -> float:
    return min(limit, max(-limit, value))


@kernel
def logit_of(p: float) -> float:
    return within(LIMIT, math.log(max(p, 1e-300) / max(1.0 - p, 1e-300)))


@kernel
def mixture(weights: FloatArray, p: FloatArray) -> float:
    """Sum of weight times probability."""
    total = 0.0
    for e in range(N_EXPERTS):
        total += weights[e] * p[e]
    return total


@kernel
def inner(weights: FloatArray, z: FloatArray) -> float:
    """The regression's logit."""
    total = 0.0
    for i in range(len(z)):
        total += weights[i] * z[i]
    return total


@kernel
def labels(p: FloatArray, positive: bool) -> None:
    """Probabilities of the larger label become those of what happened."""
    if not positive:
        for e in range(N_EXPERTS):
            p[e] = 1.0 - p[e]


@kernel
def gaussian(forecasts: FloatArray, y: float, variance: float) -> None:
    """Forecasts of a real target become their likelihoods, up to a factor: the best has 1."""
    least = np.inf
    for e in range(N_EXPERTS):
        least = min(least, (y - forecasts[e]) ** 2)
    for e in range(N_EXPERTS):
        forecasts[e] = math.exp(0.5 * (least - (y - forecasts[e]) ** 2) / variance)


@kernel(sums="in order")
def bayes(weights: FloatArray, likelihood: FloatArray, prior: FloatArray) -> None:
    """Weight times likelihood, normalised; then a share of the prior. In order: else each is divided by the total."""
    total = 0.0
    for e in range(N_EXPERTS):
        weights[e] *= likelihood[e]
        total += weights[e]
    kept = (1.0 - SHARE) / total
    for e in range(N_EXPERTS):
        weights[e] = kept * weights[e] + SHARE * prior[e]


@kernel(disjoint=True)
def newton_step(
    weights: FloatArray, covariance: FloatArray, z: FloatArray, error: float, curvature: float, y: float, logit: float,
    times: float, direction: FloatArray,
) -> None:  # fmt: skip
    """One online Newton (Kalman) step of a regression on z; `error` is the loss's slope, `curvature` h its second.

    P <- P + DRIFT I;  w <- w + P z error / (1 + h z'Pz);  P <- P - h P z z'P / (1 + h z'Pz)

    For a label y that does not come once but several `times`, the fraction is `weighted_slope` with tau = z'Pz.
    """
    for j in range(len(direction)):  # columns outside, not rows: P is symmetric, and this way the loop is SIMD
        total = DRIFT * z[j]
        for i in range(N_INPUTS):
            total += covariance[i * TURN + j] * z[i]
        direction[j] = total
    tau = inner(direction, z)
    scale = 1.0 / (1.0 + curvature * tau)
    if times != 1.0:
        error = weighted_slope(logit, y, tau, times) / scale
    pull = curvature * scale
    for j in range(len(direction)):
        for i in range(N_INPUTS):
            covariance[i * TURN + j] -= pull * direction[i] * direction[j]
        weights[j] += direction[j] * error * scale
    for i in range(N_INPUTS):
        covariance[i * (TURN + 1)] += DRIFT
