"""Two ways to mix forecasts: Bayes weights with a fixed share, and a logistic regression by online Newton steps."""

from __future__ import annotations

import math

from shoal.ops import leaf
from shoal.rounds import FloatArray

SHARE = 0.01  # of the weights that goes back to the prior after every row, so that any expert can come back
DRIFT = 1e-6  # variance that the regression's weights gain a row, so that it never stops learning
LIMIT = 15.0  # logits are kept within +-15


@leaf
def sigmoid(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-logit))


@leaf
def clipped(logit: float) -> float:
    return min(LIMIT, max(-LIMIT, logit))


@leaf
def logit_of(p: float) -> float:
    return clipped(math.log(max(p, 1e-300)) - math.log(max(1.0 - p, 1e-300)))


@leaf
def mixture(weights: FloatArray, p: FloatArray) -> float:
    """Sum of weight times probability."""
    total = 0.0
    for e in range(len(p)):
        total += weights[e] * p[e]
    return total


@leaf
def reweigh(weights: FloatArray, p: FloatArray, positive: bool, prior: FloatArray) -> None:
    """Bayes: weight times the probability of what happened, normalised; then a share of the prior."""
    total = 0.0
    for e in range(len(p)):
        weights[e] *= p[e] if positive else 1.0 - p[e]
        total += weights[e]
    for e in range(len(p)):
        weights[e] = (1.0 - SHARE) * weights[e] / total + SHARE * prior[e]


@leaf
def newton_step(
    weights: FloatArray, covariance: FloatArray, z: FloatArray, error: float, curvature: float, direction: FloatArray
) -> None:
    """One online Newton (Kalman) step of a regression on z; `error` is y minus its forecast.

    P <- P + DRIFT I;  w <- w + P z error / (1 + h z'Pz);  P <- P - h P z z'P / (1 + h z'Pz)
    """
    n = len(z)
    spread = 0.0
    for i in range(n):
        covariance[i, i] += DRIFT
        total = 0.0
        for j in range(n):
            total += covariance[i, j] * z[j]
        direction[i] = total
        spread += total * z[i]
    scale = 1.0 / (1.0 + curvature * spread)
    for i in range(n):
        weights[i] += direction[i] * error * scale
        for j in range(n):
            covariance[i, j] -= curvature * scale * direction[i] * direction[j]
