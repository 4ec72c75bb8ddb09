"""A weighted linear support vector machine: the model that ITL, STL, SMTL and SHAMO share (liblinear solves it)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from shoal.batch._machines import classification
from shoal.rounds import FloatArray, IntArray

TOLERANCE = 1e-6  # on the optimality conditions, in units of margins
WORK = 1e8  # numbers that liblinear may touch
STEPS = 1_000_000  # that libsvm may make
LARGEST = 4096  # rows whose kernel matrix is small


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
    w, n_iter, converged = _by_liblinear(X, y, weight / mu)
    if not converged and len(y) <= LARGEST:
        # With weak regularisation and few features coordinate descent may stall; steps in two coordinates do not.
        w, n_iter, converged = _by_libsvm(X, y, weight / mu)
    if not converged:
        message = "a linear support vector machine did not converge; scale the features, or raise mu"
        warnings.warn(message, ConvergenceWarning, stacklevel=2)
    return w, n_iter


def _by_liblinear(X: Any, y: FloatArray, box: FloatArray) -> tuple[FloatArray, int, bool]:
    from sklearn.svm import LinearSVC

    most = int(np.clip(WORK / (X.nnz if sp.issparse(X) else X.size), 1_000, 10_000))
    machine = LinearSVC(loss="hinge", dual=True, fit_intercept=False, tol=TOLERANCE, max_iter=most, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X, y, sample_weight=box)
    return np.ascontiguousarray(machine.coef_[0]), int(machine.n_iter_), bool(machine.n_iter_ < most)


def _by_libsvm(X: Any, y: FloatArray, box: FloatArray) -> tuple[FloatArray, int, bool]:
    n = len(y)
    K = np.zeros((n + 2, n + 2))
    K[:n, :n] = (X @ X.T).toarray() if sp.issparse(X) else X @ X.T
    machine = classification(K, y, box, TOLERANCE, STEPS)
    return np.asarray(machine.b @ X), machine.n_iter, machine.converged


def _with_zero_row(X: Any) -> Any:
    if sp.issparse(X):
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
