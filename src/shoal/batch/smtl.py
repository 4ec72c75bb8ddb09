"""SMTL, batch (Murugesan, Liu, Carbonell, Yang, NIPS 2016, algorithm 1): whose data should a task learn from?

Task k learns from the data of task j with weight R[k, j],  R = alpha I + (1 - alpha) P,  and P, a row of attention a
task, goes to the tasks whose data its own model already fits:

    min_{W, P}  sum_k (mu/2)||w_k||² + sum_j R[k, j] L_j(w_k) - lam H(p_k),   L_j(w) = mean hinge of w on task j.

Alternate: every w_k is a weighted support vector machine, every p_k has a closed form (eq. 6). A given P stays as it
is, which is eq. 1 with a fixed eta = R; nothing alternates then.

With real targets L_j is half the mean squared error, and every w_k a weighted ridge regression. This is our reading:
the paper says that its methods apply to regression (section 2.1) and gives no loss.
"""

import math
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.linalg import qr
from scipy.linalg import solve_triangular

from shoal.batch.base import LinearBatchLearner, Rows
from shoal.batch.linear_svm import WEAKEST, mean_by_task, weighted_hinge
from shoal.engine.arrays import FloatArray
from shoal.model.parameters import Readers, between, from_keywords, one_of, positive, read, whole
from shoal.relations import Attention, resolve_attention


@from_keywords
class _SMTL(LinearBatchLearner):
    """The base of the classifier and the regressor."""

    alpha: float = 0.5
    lam: float = 1.0
    mu: float = 1e-3
    attention: Any = "exponential"
    tol: float = 1e-4
    max_iter: int = 50

    parameters: ClassVar[Readers] = dict.fromkeys(("lam", "mu", "tol"), positive()) | {
        "alpha": between(0, 1),
        "max_iter": whole(1),
    }

    def check_parameters(self) -> None:
        super().check_parameters()
        if self._given() is None:
            read({"attention": one_of(("exponential", "threshold"))}, {"attention": self.attention})

    def minimiser(self, rows: Rows, weight: FloatArray) -> FloatArray:
        """(d,) argmin (mu/2)||w||² + sum_i weight_i loss_i(w)."""
        raise NotImplementedError

    def losses(self, f: FloatArray, y: FloatArray) -> FloatArray:
        """The loss of each prediction."""
        raise NotImplementedError

    def named_tasks(self) -> list[Any]:
        given = self._given()
        return [] if given is None else list(given.tasks)

    def solve(self, rows: Rows) -> dict[str, Any]:
        K, counts, given = rows.n_tasks, np.bincount(rows.task), self._given()
        P = np.full((K, K), 1.0 / K) if given is None else given.P.copy()
        objective: list[float] = []
        change = math.inf
        while change > self.tol and len(objective) < self.max_iter:
            R = self._relation(P)
            weights = R[:, rows.task] / counts[rows.task]  # of row i in the problem of task k
            W = np.array([self._fitted(rows, weight) for weight in weights])
            L = mean_by_task(self.losses(rows.X @ W.T, rows.y[:, None]), rows.task, K).T  # L[k, j] = L_j(w_k)
            P = self._attend(L, P) if given is None else P
            objective.append(self._objective(W, P, L))
            if given is not None:  # the same P would give the same W
                change = 0.0
            elif len(objective) > 1:
                change = abs(objective[-2] - objective[-1]) / max(abs(objective[-2]), np.finfo(float).tiny)
        if change > self.tol:
            self._warn_not_converged(f"the objective still changes by {change:.1e}; raise max_iter or tol")
        return {
            "coef_": W,
            "attention_": P,
            "relation_": self._relation(P),
            "objective_": np.array(objective),
            "n_iter_": len(objective),
        }

    def _given(self) -> Attention | None:
        attention = resolve_attention(self.attention)
        return attention if isinstance(attention, Attention) else None

    def _fitted(self, rows: Rows, weight: FloatArray) -> FloatArray:
        """w_k; 0 if a given attention goes to tasks without rows alone."""
        return self.minimiser(rows, weight) if weight.any() else np.zeros(rows.X.shape[1])

    def _relation(self, P: FloatArray) -> FloatArray:
        return np.asarray(self.alpha * np.eye(len(P)) + (1.0 - self.alpha) * P)  # eq. 3

    def _attend(self, L: FloatArray, P: FloatArray) -> FloatArray:
        if self.attention == "exponential":  # eq. 6
            logits = -(1.0 - self.alpha) * L / self.lam
            scores = np.exp(logits - logits.max(axis=1, keepdims=True))
        else:
            scores = np.maximum(0.0, self.lam - L)
        total = scores.sum(axis=1, keepdims=True)
        return np.where(total > 0.0, scores / np.where(total > 0.0, total, 1.0), P)

    def _objective(self, W: FloatArray, P: FloatArray, L: FloatArray) -> float:
        value = 0.5 * self.mu * float((W * W).sum()) + float((self._relation(P) * L).sum())
        if isinstance(self.attention, str) and self.attention == "exponential":
            present = P[P > 0.0]
            value += self.lam * float((present * np.log(present)).sum())  # -lam H(p_k)
        return value


def ridge(X: Any, y: FloatArray, weight: FloatArray, mu: float) -> FloatArray:
    """(d,) argmin (mu/2)||w||² + ½ sum_i weight_i (y_i - w.x_i)².

    By QR: the normal equations square the condition of dense rows, and lose what little mu adds. Sparse ones they keep
    small.
    """
    if sp.issparse(X):
        from sklearn.linear_model import ridge_regression

        return np.asarray(ridge_regression(X, y, mu, sample_weight=weight, solver="cholesky"))
    root = np.sqrt(weight)
    A, b = root[:, None] * X, root * y
    wide = A.shape[1] > A.shape[0]  # then the best w is a combination of the rows
    basis, A = qr(A.T) if wide else (None, A)
    least = WEAKEST * float(np.square(A).sum())  # a smaller mu is lost beside the rows
    Q, R = qr(np.vstack([A.T if wide else A, math.sqrt(max(mu, least)) * np.eye(min(A.shape))]))
    w = solve_triangular(R, Q[: len(b)].T @ b)
    return np.asarray(basis @ w if wide else w)


class SMTL(_SMTL):
    """Smoothed multi-task learning: each task learns from the tasks whose data its model fits (batch).

    Alternates ``w_k <- argmin (mu/2)||w||² + sum_j R[k, j] L_j(w)`` with ``P[k, j] ∝ exp(-(1 - alpha) L_j(w_k)/lam)``
    (eq. 6) or ``P[k, j] ∝ [lam - L_j(w_k)]_+``, R = alpha I + (1 - alpha) P, from P = 1/K. `OSMTL` is the online
    version. Cost an iteration: K support vector machines on all N rows, each O(N d²) for few
    features, and O(N K d).

    Parameters
    ----------
    alpha : float in [0, 1]
        Weight of a task's own data. 1: independent tasks.
    lam : float > 0
        Temperature of the attention: the larger, the more evenly it spreads. "threshold" ignores tasks with
        L_j(w_k) >= lam; a row that would have none left stays as it was.
    mu : float > 0
        Strength of (mu/2)||w_k||². The paper has none, which leaves w_k undetermined. Below 1e-25 of the rows' squared
        size it is taken to be that.
    attention : {"exponential", "threshold"} or (K, K) matrix
        SMTL-e or SMTL-t. A matrix, or `shoal.relations.attention(P, tasks=[...])`, is P itself: rows sum to 1, no entry
        is negative. It names all tasks (default 0..K-1), in the order of `tasks_`, and stays as it is, so `lam`
        changes nothing. With ``alpha=0`` this is the domain adaptation of the paper (section 2.3). A task that it
        names may be without rows: it learns from the others' alone.
    tol : float > 0
        Stop when the objective changes by at most this part of it.
    max_iter : int >= 1
        Most alternations.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) weights
    attention_ : (n_tasks, n_tasks) P, rows sum to 1
    relation_ : (n_tasks, n_tasks) R (the paper's eta): row k says how much task k listens to each task's data
    objective_ : (n_iter_,) objective after each iteration; with "exponential" it never rises. With "threshold", which
        is the normalised minimiser of another objective, it is the same without the entropy and may rise. With a
        given P it is without the entropy, too, and there is one.
    n_iter_ : alternations
    tasks_, classes_, n_features_in_, feature_names_in_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, or a task that a given attention does not name.

    Warns
    -----
    ConvergenceWarning
        If the objective still changed by more than `tol` after `max_iter` iterations.

    Notes
    -----
    An unseen task is answered by the mean of all tasks' weights.

    References
    ----------
    Murugesan, Liu, Carbonell, Yang. Adaptive Smoothed Online Multi-Task Learning. NIPS 2016: algorithm 1, eqs. 1-6.

    Examples
    --------
    Two groups of tasks that learn opposite rules.

    >>> import numpy as np
    >>> from shoal import SMTL, IndependentTasks, PooledTasks
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(1200, 10)), np.arange(1200) % 10
    >>> w = rng.normal(size=10)
    >>> y = np.where((X @ w + rng.normal(size=1200)) * np.where(task < 5, 1, -1) > 0, 1, -1)
    >>> train, test = slice(0, 200), slice(200, None)
    >>> for learner in (IndependentTasks(), PooledTasks(), SMTL(alpha=0.1, lam=0.3)):
    ...     _ = learner.fit(X[train], y[train], task[train])
    ...     print(f"{type(learner).__name__:16} error {1 - learner.score(X[test], y[test], task[test]):.3f}")
    IndependentTasks error 0.244
    PooledTasks      error 0.500
    SMTL             error 0.197
    >>> attention = learner.attention_
    >>> print(f"attention to the own group {attention[:5, :5].sum(axis=1).mean():.2f}")
    attention to the own group 1.00
    """

    def minimiser(self, rows: Rows, weight: FloatArray) -> FloatArray:
        return weighted_hinge(rows.X, rows.y, weight, self.mu).w

    def losses(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.maximum(0.0, 1.0 - y * f)


class SMTLRegressor(_SMTL):
    """Smoothed multi-task regression: each task learns from the tasks whose data its model fits (batch).

    `SMTL` with L_j(w) = ½ mean (y_i - <w, x_i>)² over the rows of task j: alternates the weighted ridge regression
    ``w_k <- argmin (mu/2)||w||² + sum_j R[k, j] L_j(w)`` with ``P[k, j] ∝ exp(-(1 - alpha) L_j(w_k)/lam)`` (eq. 6) or
    ``P[k, j] ∝ [lam - L_j(w_k)]_+``, R = alpha I + (1 - alpha) P, from P = 1/K. Both steps are exact. `OSMTLRegressor`
    is the online version, with another loss. Cost an iteration: O(N K d²) for few features, O(N² K (N + d)) for few
    rows.

    Parameters
    ----------
    alpha : float in [0, 1]
        Weight of a task's own data. 1: independent tasks.
    lam : float > 0
        Temperature of the attention, on the scale of the squared targets; see `SMTL`.
    mu : float > 0
        Strength of (mu/2)||w_k||²; below 1e-25 of the rows' squared size it is taken to be that.
    attention : {"exponential", "threshold"} or (K, K) matrix
        How P is found, or P itself, as in `SMTL`.
    tol : float > 0
        Stop when the objective changes by at most this part of it.
    max_iter : int >= 1
        Most alternations.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) weights
    attention_, relation_, objective_, n_iter_ : as in `SMTL`
    tasks_, n_features_in_, feature_names_in_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, or a task that a given attention does not name.

    Warns
    -----
    ConvergenceWarning
        If the objective still changed by more than `tol` after `max_iter` iterations.

    Notes
    -----
    This is our reading: the paper says that its methods "are also applicable to regression tasks" (section 2.1) and
    gives no loss. The square has a closed form where the ε-insensitive loss would need a solver. There is no bias:
    centre the targets, or put a constant among the features. An unseen task is answered by the mean of all tasks'
    weights.

    References
    ----------
    Murugesan, Liu, Carbonell, Yang. Adaptive Smoothed Online Multi-Task Learning. NIPS 2016: algorithm 1, eqs. 1-6.

    Examples
    --------
    Two groups of tasks with opposite weights.

    >>> import numpy as np
    >>> from shoal import SMTLRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(1200, 10)), np.arange(1200) % 10
    >>> y = X @ rng.normal(size=10) * np.where(task < 5, 1, -1) + rng.normal(size=1200)
    >>> train, test = slice(0, 200), slice(200, None)
    >>> for alpha, lam in (1.0, 1.0), (0.1, 1e9), (0.1, 0.3):
    ...     learner = SMTLRegressor(alpha=alpha, lam=lam).fit(X[train], y[train], task[train])
    ...     print(f"alpha {alpha} lam {lam:g} R2 {learner.score(X[test], y[test], task[test]):.3f}")
    alpha 1.0 lam 1 R2 0.811
    alpha 0.1 lam 1e+09 R2 0.132
    alpha 0.1 lam 0.3 R2 0.901
    >>> print(f"attention to the own group {learner.attention_[:5, :5].sum(axis=1).mean():.2f}")
    attention to the own group 1.00
    """

    def classifies(self) -> bool:
        return False

    def minimiser(self, rows: Rows, weight: FloatArray) -> FloatArray:
        return ridge(rows.X, rows.y, weight, self.mu)

    def losses(self, f: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(0.5 * (y - f) ** 2)
