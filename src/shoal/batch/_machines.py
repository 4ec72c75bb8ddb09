"""Support vector machines without a bias, from a kernel matrix, by libsvm, which always fits a bias."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from shoal.rounds import FloatArray


class Machine(NamedTuple):
    """The solution in the dual: f(x) = sum_i b_i K(x_i, x)."""

    b: FloatArray
    n_iter: int
    converged: bool


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
    max_iter : most steps of libsvm; -1: as many as it takes
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import SVR

    n, unit = len(y), float(box.max())
    machine = SVR(kernel="precomputed", C=unit, epsilon=epsilon, tol=tol, max_iter=max_iter, cache_size=500)
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
