"""A weighted linear support vector machine: the model that ITL, STL, SMTL and SHAMO share."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.linalg import svd
from sklearn.exceptions import ConvergenceWarning

from shoal.batch._interior import solve
from shoal.engine.arrays import FloatArray, IntArray

GAP, ENOUGH = 1e-9, 1e-6  # relative duality gap of the interior point method: its aim, and what counts as converged
STEPS = 100  # that it may take; some 20 are usual
SMALL = 2e9  # multiplications in one of its steps: beyond, liblinear is faster
VIOLATION = 1e-6  # of the optimality conditions that liblinear may leave, in units of margins
PASSES = 10_000  # that it may make over the rows
WEAK = 1e-14  # mu of rows of size 1, next to their weights: a smaller one does not hold what the rows leave open
WEAKEST = 1e-25  # a smaller one is lost beside the rows
SMALLEST = 1e-100  # size of rows by whose square 1 can be divided
NOTHING = 1e-15  # a row, or a direction, of this part of the largest weight, or size, changes no digit


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
        found = solve(Z, weight, mu, GAP, STEPS)
        w = found.w
    else:
        _, values, V = svd(Z, full_matrices=False)
        V = V[values >= NOTHING * values[0]]
        found = solve(Z @ V.T, weight, max(mu, WEAKEST * total), GAP, STEPS)
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
