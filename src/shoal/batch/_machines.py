"""Support vector machines without a bias, from a kernel matrix: by libsvm, which always fits a bias, or by Newton."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray

MOST_STEPS, STEPS_A_ROW = 10_000_000, 100  # libsvm's own limit: the larger; where rounding errors rule, it never ends
ROUNDING = 1e-15  # an objective that falls by less than this share does not fall any more


class Machine(NamedTuple):
    """The solution in the dual: f(x) = sum_i b_i K(x_i, x)."""

    b: FloatArray
    n_iter: int
    converged: bool
    objective: tuple[float, ...] = ()  # after each iteration, where the solver tells


def regression(
    K: FloatArray, y: FloatArray, box: FloatArray, epsilon: float, tol: float, max_iter: int = -1
) -> Machine:
    """min ½||w||² + sum_i box_i [|y_i - f_i| - epsilon]_+.

    Two rows with a kernel of zero to all, the targets epsilon and -epsilon and a weight that lets neither err pin the
    bias: |epsilon - bias| <= epsilon and |-epsilon - bias| <= epsilon leave 0 alone. In the dual they take up
    sum_i b_i, at no cost, whichever its sign.

    Parameters
    ----------
    K : (n + 2, n + 2) kernel matrix, its last two rows and columns zeros
    box : (n,) numbers > 0
    tol : libsvm's tolerance on the optimality conditions
    max_iter : most steps of libsvm; -1: as many as it takes, up to its own limit
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import SVR

    n, unit = len(y), float(box.max())
    most = max(MOST_STEPS, STEPS_A_ROW * n) if max_iter == -1 else max_iter
    machine = SVR(kernel="precomputed", C=unit, epsilon=epsilon, tol=tol, max_iter=most, cache_size=500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(K, np.append(y, [epsilon, -epsilon]), sample_weight=np.append(box / unit, [n, n]))
    b = np.zeros(n + 2)
    b[machine.support_] = machine.dual_coef_[0]
    return Machine(b[:n], int(machine.n_iter_), machine.fit_status_ == 0)


def classification(K: FloatArray, y: FloatArray, box: FloatArray, tol: float, max_iter: int = -1) -> Machine:
    """min ½||w||² + sum_i box_i [1 - y_i f_i]_+, posed as a regression.

    The hinge is [|y (1 + epsilon) - f| - epsilon]_+ as long as |f| <= 1 + 2 epsilon, which holds at the solution for
    the epsilon here: ½||w||² is at most the objective at 0, sum_i box_i.
    """
    epsilon = float(np.sqrt(0.5 * box.sum() * K.diagonal().max()))
    return regression(K, (1.0 + epsilon) * y, box, epsilon, tol, max_iter)


def least_ridge(K: FloatArray) -> float:
    """What has to be added to the diagonal, so that rounding errors leave the matrix positive definite."""
    return 4.0 * float(np.finfo(float).eps * K.trace())


def squared_hinge(K: FloatArray, y: FloatArray, C: float, max_iter: int) -> Machine:
    """min F(b) = ½ b'K b + C sum_i [1 - y_i f_i]_+², f = K b, by Newton's method on the primal (Chapelle, 2007, (10)).

    Where the rows with a loss are A, the minimum has (K_AA + I/(2C)) b_A = y_A and b = 0 elsewhere. A step goes in that
    direction as far as F falls; F is a parabola between rows that change sides, so where it ends is found exactly. If
    the whole step leaves A as it is, b is the minimum: that happens after a few steps.

    Parameters
    ----------
    K : (n, n) kernel matrix
    C : beyond 1/(2 `least_ridge(K)`) it is taken to be that
    max_iter : most steps; -1: as many as it takes
    """
    from scipy.linalg import cho_factor, cho_solve

    if 2.0 * C * (ridge := least_ridge(K)) > 1.0:
        C = 0.5 / ridge
    b, f, values = np.zeros(len(y)), np.zeros(len(y)), [C * len(y)]
    while len(values) - 1 != max_iter:
        inside = np.flatnonzero(y * f < 1.0)
        target = np.zeros(len(y))
        factor = cho_factor(K[np.ix_(inside, inside)] + np.eye(len(inside)) / (2.0 * C), overwrite_a=True)
        target[inside] = cho_solve(factor, y[inside])
        direction = target - b
        change = K @ direction
        there = np.array_equal(inside, np.flatnonzero(y * (f + change) < 1.0))
        step = 1.0 if there else _exact_step(f, direction, change, y, C)
        then, f = target if there else b + step * direction, f + step * change
        value = 0.5 * max(0.0, float(then @ f)) + C * float((np.maximum(0.0, 1.0 - y * f) ** 2).sum())
        if not value <= values[-1]:  # rounding errors of the system rule
            return Machine(b, len(values), True, (*values[1:], values[-1]))
        b = then
        values.append(value)
        if there or values[-2] - values[-1] <= ROUNDING * values[-1]:
            return Machine(b, len(values) - 1, True, tuple(values[1:]))
    return Machine(b, max_iter, False, tuple(values[1:]))


def _exact_step(f: FloatArray, d: FloatArray, Kd: FloatArray, y: FloatArray, C: float) -> float:
    """The t >= 0 at which the slope of F(b + t d) is zero: it grows from piece to piece."""
    margins, speed = 1.0 - y * f, -y * Kd  # losses [margins + t speed]_+²
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = -margins / speed
    order = np.argsort(np.where((crossing > 0) & np.isfinite(crossing), crossing, np.inf))
    inside = (margins > 0) | ((margins == 0) & (speed > 0))
    constant = float(d @ f) + 2.0 * C * float((margins * speed)[inside].sum())  # slope = constant + t growth
    growth = float(d @ Kd) + 2.0 * C * float((speed**2)[inside].sum())
    for i in order:
        end = crossing[i]
        if not (end > 0 and np.isfinite(end)) or constant + end * growth >= 0:
            break
        sign = -1.0 if inside[i] else 1.0
        constant += sign * 2.0 * C * margins[i] * speed[i]
        growth += sign * 2.0 * C * speed[i] ** 2
    return -constant / growth if growth > 0 else 0.0
