"""A weighted linear support vector machine: the model that ITL, STL, SMTL and SHAMO share.

    min_w (mu/2)||w||² + sum_i c_i [1 - z_i.w]_+      rows of Z: z_i = y_i x_i
    max_a sum_i a_i - (1/(2 mu)) ||Z^T a||²,  0 <= a_i <= c_i

Small problems are solved by a primal-dual interior point method (Ferris, Munson, SIAM J. Optimization 13, 2002: a
Newton step is a least squares problem of d unknowns, O(n d²); predictor and corrector of Mehrotra). It takes some 20
steps whatever the data, where coordinate descent may stall. Large ones go to liblinear.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.linalg import qr, svd
from scipy.linalg.lapack import (
    dtrtrs,
)  # solve_triangular calls it; its own overhead is longer than the call for small d
from sklearn.exceptions import ConvergenceWarning

from shoal.engine.arrays import FloatArray, IntArray

GAP, ENOUGH = 1e-9, 1e-6  # relative duality gap of the interior point method: the aim, and the largest that will do
STEPS = 100  # that it may take; some 20 are usual
SMALL = 2e9  # multiplications in one of its steps: beyond, liblinear is faster
VIOLATION = 1e-6  # of the optimality conditions that liblinear may leave, in units of margins
PASSES = 10_000  # that it may make over the rows
WEAK = 1e-14  # mu of rows of size 1, next to their weights: a smaller one does not hold what the rows leave open
WEAKEST = 1e-25  # a smaller one is lost beside the rows
SMALLEST = 1e-100  # size of rows by whose square 1 can be divided
NOTHING = 1e-15  # a row, or a direction, of this part of the largest weight, or size, changes no digit
NEARLY = 0.995  # of the way to the boundary
CENTRE = 0.5  # share of the complementarity that a step towards the central path aims to leave
ROUGH, PATIENCE = 1e-3, 10  # below this gap, 10 steps without a smaller one mean that rounding errors rule


class Fit(NamedTuple):
    """Weights, iterations, and the objective after each: liblinear tells only the end."""

    w: FloatArray
    n_iter: int
    objective: tuple[float, ...]


def weighted_hinge(X: Any, y: FloatArray, weight: FloatArray, mu: float) -> Fit:
    """Minimise (mu/2)||w||² + sum_i weight_i [1 - y_i w.x_i]_+ over w.

    Parameters
    ----------
    X : (n, d) array or CSR matrix
    y : (n,) +1 or -1; one of the two may be missing
    weight : (n,) numbers >= 0, not all 0
    mu : float > 0
        Next to the weights, below 1e-25 of the squared size of the rows it is taken to be that.
    """
    used = np.flatnonzero(weight > NOTHING * weight.max())
    X, y, weight = X[used], y[used], weight[used]
    small = min(X.shape) * X.shape[0] * X.shape[1] <= SMALL
    fit, converged = (_by_interior_point if small else _by_liblinear)(X, y, weight, mu)
    if not converged:
        message = "a linear support vector machine did not converge; scale the features, or raise mu"
        warnings.warn(message, ConvergenceWarning, stacklevel=3)
    return fit


def _by_interior_point(X: Any, y: FloatArray, weight: FloatArray, mu: float) -> tuple[Fit, bool]:
    """For few features or rows: there, with weak regularisation, coordinate descent stalls (each third Landmine task).

    It is then far from the optimum at times: 0.201 for 0.122. Where mu is lost beside large rows, w stays in their
    span: outside, it would be rounding errors over mu.
    """
    Z = y[:, None] * (X.toarray() if sp.issparse(X) else X)
    largest = max(float(np.abs(Z).max()), SMALLEST * max(1.0, math.sqrt(mu)))
    size = 2.0 ** math.floor(math.log2(largest))  # a power of two: no bit changes
    Z, mu, total = Z / size, mu / size / size, float(weight.sum())
    if mu >= WEAK * total:
        found = interior_point(Z, weight, mu, GAP, STEPS)
        w = found.w
    else:
        _, values, V = svd(Z, full_matrices=False)
        V = V[values >= NOTHING * values[0]]
        found = interior_point(Z @ V.T, weight, max(mu, WEAKEST * total), GAP, STEPS)
        w = found.w @ V
    return Fit(w / size, found.n_iter, found.objective), found.gap <= ENOUGH


def _by_liblinear(X: Any, y: FloatArray, weight: FloatArray, mu: float) -> tuple[Fit, bool]:
    """For many features, such as words, where coordinate descent needs few passes."""
    from sklearn.svm import LinearSVC

    if (y == y[0]).all():  # it asks for two labels; a row of zeros costs the same whatever w is
        zero = np.zeros((1, X.shape[1]))
        X = sp.vstack([X, sp.csr_matrix(zero)], format="csr") if sp.issparse(X) else np.vstack([X, zero])
        y, weight = np.append(y, -y[0]), np.append(weight, weight[0])
    machine = LinearSVC(loss="hinge", dual=True, fit_intercept=False, tol=VIOLATION, max_iter=PASSES, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X, y, sample_weight=weight / mu)
    w = np.ascontiguousarray(machine.coef_[0])
    objective = 0.5 * mu * float(w @ w) + float(weight @ np.maximum(0.0, 1.0 - y * (X @ w)))
    return Fit(w, int(machine.n_iter_), (objective,)), bool(machine.n_iter_ < PASSES)


# ---- losses --------------------------------------------------------------------------------------------------


def mean_hinge_by_task(margins: FloatArray, task: IntArray, n_tasks: int) -> FloatArray:
    """(n_tasks, m) L_j of each of m models: mean of [1 - y f]_+ over the rows of task j.

    Parameters
    ----------
    margins : (n, m) y f of each row under each model
    """
    return mean_by_task(np.maximum(0.0, 1.0 - margins), task, n_tasks)


def mean_by_task(losses: FloatArray, task: IntArray, n_tasks: int) -> FloatArray:
    """(n_tasks, m) means over the rows of each task of the (n, m) losses of m models; 0 of a task without rows."""
    counts = np.maximum(np.bincount(task, minlength=n_tasks), 1)
    sums = np.stack([np.bincount(task, column, n_tasks) for column in losses.T], axis=1)
    return np.asarray(sums / counts[:, None])


# ---- the interior point method -------------------------------------------------------------------------------


class Point(NamedTuple):
    """Weights; duals a and the slack c - a above them, with the multipliers of both bounds: these four positive."""

    w: FloatArray
    a: FloatArray
    slack: FloatArray
    low: FloatArray
    high: FloatArray

    def moved(self, direction: Point, step: float) -> Point:
        """This point plus step times a direction."""
        return Point(*(x + step * dx for x, dx in zip(self, direction, strict=True)))

    def complementarity(self) -> float:
        """Mean of a low and slack high: 0 at the solution."""
        return float(self.a @ self.low + self.slack @ self.high) / (2 * len(self.a))

    def longest_step(self, direction: Point) -> float:
        """The largest step, at most 1, that leaves everything >= 0."""
        x, dx = np.concatenate(self[1:]), np.concatenate(direction[1:])
        falling = dx < 0.0
        return min(1.0, float((-x[falling] / dx[falling]).min(initial=np.inf)))


class Solution(NamedTuple):
    """The best weights found, their duality gap relative to the primal objective, and the steps made."""

    w: FloatArray
    gap: float
    n_iter: int
    objective: tuple[float, ...]  # after each step, or at the start if it took none


def interior_point(Z: FloatArray, c: FloatArray, mu: float, tol: float, max_iter: int) -> Solution:
    """Steps until the relative gap is at most `tol`, or does not shrink any more."""
    if Z.shape[1] > Z.shape[0]:  # the best w is a combination of the rows
        basis, triangle = qr(Z.T)
        found = interior_point(triangle.T, c, mu, tol, max_iter)
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
    direction = newton.direction(
        at.a * at.low + guess.a * guess.low - target, at.slack * at.high + guess.slack * guess.high - target
    )
    then = at.moved(direction, NEARLY * at.longest_step(direction))
    if then.complementarity() >= tau:  # with what was to correct the guess, steps may go round in circles
        target = CENTRE * tau
        direction = newton.direction(at.a * at.low - target, at.slack * at.high - target)
        then = at.moved(direction, NEARLY * at.longest_step(direction))
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
