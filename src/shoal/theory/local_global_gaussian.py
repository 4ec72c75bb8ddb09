"""Regret bound of the local and global Gaussians (Yang, Li 2020, supplement, Theorem 1, corrected)."""

import math
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.engine.losses import is_mistake
from shoal.engine.rounds import form_rounds
from shoal.online.local_global_gaussian.learner import LocalGlobalGaussian
from shoal.theory.stream import comparator_matrix, squared_norms, stream_table


def gaussian_regret_bound(
    comparator: Any,
    X: Any,
    y: Any,
    task: Any = None,
    *,
    lam: float,
    eps: float,
    shared: Any = None,
    rounds: Any = None,
    tasks: Sequence[Hashable] | None = None,
) -> float:
    """Most regret that the local and global Gaussians can have on their mistakes (Yang, Li, Theorem 1).

    With l the hinge loss of the learner's margins before each round and l* that of the comparator w_k = v_0 + v_k,
    ``LocalGlobalGaussian(loss="hinge", lam=lam, eps=eps)`` with lam <= 2 eps obeys, for every comparator and every
    v_0, over its mistaken rows M (M_k those of task k, m the most in one round)::

        sum_M (l - l*)  <=  lam/(4 eps) [m ln det S_0^-1 + sum_k ln det S_k^-1]
                            + eps sum_{k = 0, 1..K} D_k^2 (1 + sum_{M_k} ||x||^2/lam),    M_0 = M

    D_k is the largest distance of mu_k from v_k before a mistake of its own: like the paper's, this bound knows the
    learner's path, which the function follows. The paper prints ln(1 + KT) for the determinants, which lacks their
    dimension (orthogonal rows exceed it), one row a round in the global term (m = 1), and a trace in D's place
    whose identity part counts once, not once a dimension. lam <= 2 eps makes every step that of the proof, 1/(2 eps).

    Parameters
    ----------
    comparator : (K, d) array
        One row of weights w_k a task, in the order of `tasks`.
    X, y, task, rounds
        The stream, as the learner got it; all K tasks must have existed from its start (`fit`, `add_tasks`).
    lam, eps : float
        The learner's.
    shared : (d,) array, optional
        v_0. Default: sum_k w_k/(K + 1), for which ||v_0||^2 + sum_k ||v_k||^2 is smallest.
    tasks : sequence of K ids, optional
        Default: order of appearance, which is that of `tasks_`.

    Raises
    ------
    ValueError
        If shapes do not fit, or lam is above 2 eps.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=4, n_features=5, n_rows=400, relatedness=0.9, noise=0.0, seed=0)
    >>> learner = LocalGlobalGaussian(loss="hinge", eps=2.0).add_tasks(dict.fromkeys(data.task.tolist()))
    >>> f = learner.test_then_train(data.X, data.y, data.task)
    >>> y, w = np.where(data.y > 0, 1, -1), learner.coef_[[learner.tasks_.index(k) for k in data.task]]
    >>> losses = np.maximum(0, 1 - y * f) - np.maximum(0, 1 - y * (w * data.X).sum(axis=1))
    >>> regret = losses[(f >= 0) != (y > 0)].sum()
    >>> bound = gaussian_regret_bound(learner.coef_, data.X, data.y, data.task, lam=1.0, eps=2.0)
    >>> print(f"regret {regret:.0f}, at most {bound:.0f}")
    regret 5, at most 22
    """
    W = comparator_matrix(comparator)
    learner = LocalGlobalGaussian(loss="hinge", lam=lam, eps=eps)
    learner.new_core()  # raises if a hyper-parameter is out of its range
    if lam > 2.0 * eps:
        raise ValueError(f"the theorem is for lam <= 2 eps, got lam={lam}, eps={eps}")
    v0 = W.sum(axis=0) / (len(W) + 1) if shared is None else np.asarray(shared, np.float64)
    if v0.shape != W.shape[1:]:
        raise ValueError(f"shared must have the comparator's {W.shape[1]} features, got shape {v0.shape}")
    rows, signs, columns = stream_table(X, y, task, len(W), tasks)
    starts = form_rounds(columns, len(W), rounds, simultaneous=True)
    V, largest = np.vstack([v0, W - v0]), np.zeros(len(W) + 1)
    mistaken, most = np.zeros(len(signs), bool), 0
    learner.add_tasks(range(len(W)))
    mu = np.zeros_like(V)
    for first, last in pairwise(starts):
        piece = slice(first, last)
        f = learner.test_then_train(
            rows[piece], signs[piece], columns[piece], rounds=np.zeros(last - first, int), classes=[-1, 1]
        )
        wrong = np.array([is_mistake(*pair) for pair in zip(f, signs[piece], strict=True)])
        mistaken[piece], most = wrong, max(most, int(wrong.sum()))
        moving = [0, *(columns[piece][wrong] + 1)] if wrong.any() else []
        distances = np.sum((mu[moving] - V[moving]) ** 2, axis=1)
        largest[moving] = np.maximum(largest[moving], distances)
        mu = np.vstack([learner.coef_shared_, learner.coef_task_])
    bound = 0.0
    for k in range(len(V)):
        taken = rows[mistaken & ((columns == k - 1) | (k == 0))]
        weight = most if k == 0 else 1
        bound += lam / (4.0 * eps) * weight * log_determinant(taken, lam)
        bound += eps * float(largest[k]) * (1.0 + float(np.sum(squared_norms(taken))) / lam)
    return bound if math.isfinite(bound) else math.inf


def log_determinant(rows: Any, lam: float) -> float:
    """ln det(I + sum x xᵀ/lambda), through the smaller of the two Gram matrices."""
    n, d = rows.shape
    gram = rows @ rows.T if n <= d else rows.T @ rows
    dense: FloatArray = gram.toarray() if hasattr(gram, "toarray") else gram
    return float(np.linalg.slogdet(np.eye(len(dense)) + dense / lam)[1])
