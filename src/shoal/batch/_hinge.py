"""A weighted linear support vector machine: the model that ITL, STL, SMTL and SHAMO share (liblinear solves it)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from shoal.rounds import FloatArray, IntArray

# liblinear's tolerances, tried in turn, each with another order of the rows: coordinate descent reaches 1e-6 as a rule,
# but now and then it stalls; the objective is then still within about 1e-5 of itself.
TOLERANCES = (1e-6, 1e-4, 1e-3)
WORK = 3e8  # numbers that a try may touch


def weighted_hinge(X: Any, y: FloatArray, weight: FloatArray, mu: float) -> tuple[FloatArray, int]:
    """The minimiser w of (mu/2)||w||² + sum_i weight_i [1 - y_i w.x_i]_+ and the number of iterations.

    Parameters
    ----------
    X : (n, d) array or CSR matrix
    y : (n,) +1 or -1; one of the two may be missing
    weight : (n,) numbers >= 0, not all 0
    mu : float > 0
    """
    used = np.flatnonzero(weight)
    X, y, weight = X[used], y[used], weight[used]
    if (y == y[0]).all():  # liblinear asks for two labels; a row of zeros costs the same whatever w is
        X, y, weight = _with_zero_row(X), np.append(y, -y[0]), np.append(weight, weight[0])
    return _liblinear(X, y, weight / mu)


def _liblinear(X: Any, y: FloatArray, box: FloatArray) -> tuple[FloatArray, int]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    most = int(np.clip(WORK / (X.nnz if hasattr(X, "nnz") else X.size), 1_000, 20_000))
    for order, tol in enumerate(TOLERANCES):
        machine = LinearSVC(loss="hinge", dual=True, fit_intercept=False, tol=tol, max_iter=most, random_state=order)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine.fit(X, y, sample_weight=box)
        if machine.n_iter_ < most:
            break
    else:
        message = f"a linear SVM did not converge in {most} passes; scale the features, or raise mu"
        warnings.warn(message, ConvergenceWarning, stacklevel=2)
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
