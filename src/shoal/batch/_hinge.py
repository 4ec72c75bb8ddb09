"""A weighted linear support vector machine: the model that ITL, STL, SMTL and SHAMO share (liblinear solves it)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from shoal.rounds import FloatArray, IntArray

ORDERS = 3  # random orders of the rows that are tried
MAX_ITER = 50_000  # passes over the rows in each


def weighted_hinge(X: Any, y: FloatArray, weight: FloatArray, mu: float, tol: float = 1e-6) -> tuple[FloatArray, int]:
    """The minimiser w of (mu/2)||w||² + sum_i weight_i [1 - y_i w.x_i]_+ and the number of iterations.

    Parameters
    ----------
    X : (n, d) array or CSR matrix
    y : (n,) +1 or -1; one of the two may be missing
    weight : (n,) numbers >= 0, not all 0
    mu : float > 0
    tol : float > 0
        Largest violation of the optimality conditions that is left, in units of margins.
    """
    used = np.flatnonzero(weight)
    X, y, weight = X[used], y[used], weight[used]
    if (y == y[0]).all():  # liblinear asks for two labels; a row of zeros costs the same whatever w is
        X, y, weight = _with_zero_row(X), np.append(y, -y[0]), np.append(weight, weight[0])
    return _liblinear(X, y, weight / mu, tol)


def _liblinear(X: Any, y: FloatArray, box: FloatArray, tol: float) -> tuple[FloatArray, int]:
    """Coordinate descent stalls now and then in a random order of the rows; another order helps."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    for seed in range(ORDERS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine = LinearSVC(
                loss="hinge", dual=True, fit_intercept=False, tol=tol, max_iter=MAX_ITER, random_state=seed
            )
            machine.fit(X, y, sample_weight=box)
        if machine.n_iter_ < MAX_ITER:
            break
    else:
        advice = "scale the features, or raise mu"
        warnings.warn(f"a linear SVM did not converge in {MAX_ITER} passes: {advice}", ConvergenceWarning, stacklevel=2)
    return np.ascontiguousarray(machine.coef_[0]), int(machine.n_iter_)


def _with_zero_row(X: Any) -> Any:
    import scipy.sparse as sp

    if hasattr(X, "tocsr"):
        return sp.vstack([X, sp.csr_matrix((1, X.shape[1]))], format="csr")
    return np.vstack([X, np.zeros((1, X.shape[1]))])


def mean_hinge_by_task(margins: FloatArray, task: IntArray, n_tasks: int) -> FloatArray:
    """(n_tasks, m) L_j of each of m models: mean of [1 - y f]_+ over the rows of task j.

    Parameters
    ----------
    margins : (n, m) y f of each row under each model
    """
    hinge = np.maximum(0.0, 1.0 - margins)
    counts = np.bincount(task, minlength=n_tasks)
    sums = np.stack([np.bincount(task, column, n_tasks) for column in hinge.T], axis=1)
    return np.asarray(sums / counts[:, None])
