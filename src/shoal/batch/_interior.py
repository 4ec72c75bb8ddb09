"""A weighted linear support vector machine by a primal-dual interior point method.

    min_w (mu/2)||w||² + sum_i c_i [1 - z_i.w]_+      rows of Z: z_i = y_i x_i
    max_a sum_i a_i - (1/(2 mu)) ||Z^T a||²,  0 <= a_i <= c_i

(Ferris, Munson, SIAM J. Optimization 13, 2002: a Newton step is a least squares problem of d unknowns, O(n d²);
predictor and corrector of Mehrotra.) It takes some 20 steps whatever the data, where coordinate descent may stall.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.linalg import qr
from scipy.linalg.lapack import dtrtrs  # what solve_triangular calls, which takes longer than the call for small d

from shoal.engine.arrays import FloatArray

NEARLY = 0.995  # of the way to the boundary
CENTRE = 0.5  # what a step towards the central path aims to leave of the complementarity
ROUGH, PATIENCE = 1e-3, 10  # from this gap on, so many steps without a smaller one mean that rounding errors rule


class Point(NamedTuple):
    """Weights; duals a and the slack c - a above them, with the multipliers of both bounds: these four positive."""

    w: FloatArray
    a: FloatArray
    slack: FloatArray
    low: FloatArray
    high: FloatArray

    def moved(self, by: Point, step: float) -> Point:
        """This point plus step times a direction."""
        return Point(*(here + step * there for here, there in zip(self, by, strict=True)))

    def complementarity(self) -> float:
        """Mean of a low and slack high: 0 at the solution."""
        return float(self.a @ self.low + self.slack @ self.high) / (2 * len(self.a))

    def longest_step(self, by: Point) -> float:
        """The largest step, at most 1, that leaves everything >= 0."""
        here, there = np.concatenate(self[1:]), np.concatenate(by[1:])
        falling = there < 0.0
        return min(1.0, float((-here[falling] / there[falling]).min(initial=np.inf)))


class Solution(NamedTuple):
    """The best weights found, their duality gap relative to the primal objective, and the steps made."""

    w: FloatArray
    gap: float
    n_iter: int
    objective: tuple[float, ...]  # after each step, or at the start if it took none


def solve(Z: FloatArray, c: FloatArray, mu: float, tol: float, max_iter: int) -> Solution:
    """Steps until the relative gap is at most `tol`, or does not shrink any more."""
    if Z.shape[1] > Z.shape[0]:  # the best w is a combination of the rows
        basis, triangle = qr(Z.T)
        found = solve(triangle.T, c, mu, tol, max_iter)
        return found._replace(w=basis @ found.w)
    at = _start(Z, c, mu)
    best, best_at, objective = Solution(at.w, math.inf, 0, ()), 0, []
    for n_iter in range(max_iter + 1):
        primal, dual = _values(at, Z, c, mu)
        objective.append(primal)
        gap = (primal - dual) / primal
        if gap < best.gap:
            best, best_at = Solution(at.w, gap, n_iter, tuple(objective[1:] or objective)), n_iter
        if best.gap <= tol or (best.gap < ROUGH and n_iter - best_at >= PATIENCE):
            break
        at = _step(at, Z, mu)
    return best


def _start(Z: FloatArray, c: FloatArray, mu: float) -> Point:
    """The middle of the box, with multipliers that leave no residual."""
    w = Z.T @ (0.5 * c) / mu
    error = Z @ w - 1.0
    spread = 1.0 + float(np.abs(error).mean())
    return Point(w, 0.5 * c, 0.5 * c, np.maximum(error, 0.0) + spread, np.maximum(-error, 0.0) + spread)


def _values(at: Point, Z: FloatArray, c: FloatArray, mu: float) -> tuple[float, float]:
    """The primal and the dual objective."""
    primal = 0.5 * mu * float(at.w @ at.w) + float(c @ np.maximum(0.0, 1.0 - Z @ at.w))
    pull = Z.T @ at.a
    return primal, float(at.a.sum()) - 0.5 * float(pull @ pull) / mu


def _step(at: Point, Z: FloatArray, mu: float) -> Point:
    """Newton's direction first tells how far it can go; then it is taken again, corrected and towards the centre."""
    newton = _Newton(at, Z, mu)
    guess = newton.direction(at.a * at.low, at.slack * at.high)
    tau = at.complementarity()
    target = tau * (at.moved(guess, at.longest_step(guess)).complementarity() / tau) ** 3
    by = newton.direction(
        at.a * at.low + guess.a * guess.low - target, at.slack * at.high + guess.slack * guess.high - target
    )
    then = at.moved(by, NEARLY * at.longest_step(by))
    if then.complementarity() >= tau:  # with what was to correct the guess, steps may go round in circles
        target = CENTRE * tau
        by = newton.direction(at.a * at.low - target, at.slack * at.high - target)
        then = at.moved(by, NEARLY * at.longest_step(by))
    return then


class _Newton:
    """The linearised optimality conditions at a point.

    With D = low/a + high/slack, what is left after eliminating all but w is the least squares problem
    min ||D^-½ (Z dw - r)||² + mu ||dw - s||², solved by QR: its normal equations would lose what little mu adds.
    """

    def __init__(self, at: Point, Z: FloatArray, mu: float) -> None:
        self.at, self.Z = at, Z
        self.residual = Z @ at.w - 1.0 - at.low + at.high
        self.D = at.low / at.a + at.high / at.slack
        self.root = np.sqrt(self.D)
        self.below = (Z.T @ at.a - mu * at.w) / math.sqrt(mu)
        stacked = np.vstack([Z / self.root[:, None], math.sqrt(mu) * np.eye(Z.shape[1])])
        self.Q, self.R = qr(stacked)

    def direction(self, low: FloatArray, high: FloatArray) -> Point:
        """The residuals to 0, a low down by `low`, slack high by `high`."""
        at = self.at
        r = -self.residual - low / at.a + high / at.slack
        w, _ = dtrtrs(self.R, self.Q.T @ np.concatenate([r / self.root, self.below]))
        a = (r - self.Z @ w) / self.D
        return Point(w, a, -a, -(low + at.low * a) / at.a, -(high - at.high * a) / at.slack)
