"""Regret bound of OSMTL (Murugesan, Liu, Carbonell, Yang 2016, Theorem 1)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.engine.rounds import form_rounds
from shoal.theory.stream import comparator_matrix, hinge, squared_norms, stream_table


def osmtl_regret_bound(
    comparator: Any,
    X: Any,
    y: Any,
    task: Any = None,
    *,
    alpha: float,
    C: float,
    rounds: Any = None,
    tasks: Sequence[Hashable] | None = None,
) -> FloatArray:
    """Most regret that each task's learner in OSMTL can have (Murugesan et al., Theorem 1).

    With l_kj the hinge loss of task k's weights on the row of task j, l* that of the comparator and
    R = max ||x||, ``OSMTL(alpha=alpha, C=C, trigger="margin")`` over T rounds of all tasks obeys::

        sum_t (l_kk - l*_kk)  <=  ||u_k||^2 / (2 C alpha) + C R^2 T / (2 alpha)
                                  + (1 - alpha)/alpha sum_t (l*_kk + max_{j != k} l*_kj)

    for every lam, both attention rules, and every comparator. (The paper prints T l*^(t) for the sum over t.)

    Parameters
    ----------
    comparator : (K, d) array
        One row of weights a task, in the order of `tasks`.
    X, y, task, rounds
        The stream, as the learner got it; every round holds every task.
    alpha, C : float
        The learner's.
    tasks : sequence of K ids, optional
        Default: order of appearance, which is that of `tasks_`.

    Returns
    -------
    (K,) float64
        The right-hand side for each task; inf if alpha = 0.

    Raises
    ------
    ValueError
        If shapes do not fit, a round lacks a task, alpha is not in [0, 1] or C not above 0.

    Examples
    --------
    >>> import numpy as np
    >>> X, y, task = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1, -1]), ["a", "b"]
    >>> osmtl_regret_bound(np.array([[1.0, -1.0], [1.0, -1.0]]), X, y, task, alpha=0.5, C=1.0)
    array([3., 3.])
    """
    U = comparator_matrix(comparator)
    if not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha must be in [0, 1], got {alpha}")
    if not (C > 0.0 and math.isfinite(C)):
        raise ValueError(f"C must be a finite number > 0, got {C}")
    rows, signs, columns = stream_table(X, y, task, len(U), tasks)
    starts = form_rounds(columns, len(U), rounds, simultaneous=True)
    sizes = np.diff(starts)
    if (sizes != len(U)).any():
        r = int(np.flatnonzero(sizes != len(U))[0])
        raise ValueError(f"row {starts[r]}: its round has {sizes[r]} of {len(U)} tasks; the bound needs all of them")
    if alpha == 0.0:
        return np.full(len(U), np.inf)
    losses = hinge(signs[:, None], np.asarray(rows @ U.T))  # [row of task j, k]: l*_kj
    each = np.arange(len(signs))
    own = np.bincount(columns, losses[each, columns], minlength=len(U))
    losses[each, columns] = 0.0
    others = np.maximum.reduceat(losses, starts[:-1], axis=0).sum(axis=0)
    drift = C * float(np.max(squared_norms(rows))) * len(sizes) / 2.0
    return np.asarray((np.sum(U**2, axis=1) / (2.0 * C) + (1.0 - alpha) * (own + others) + drift) / alpha)
