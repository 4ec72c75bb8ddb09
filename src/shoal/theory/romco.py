"""Regret of ROMCO (Yang, Zhao, Gao 2017): Lemma 3, proximal steps with the Euclidean distance, spelled out."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from shoal.engine.rounds import form_rounds
from shoal.model.parameters import read
from shoal.online.romco import ALGORITHM
from shoal.theory.stream import comparator_matrix, squared_norms, stream_table


def romco_regret_bound(
    common: Any, personal: Any, X: Any, y: Any, task: Any = None, *, eta: float, rho: float, lambda1: float,
    lambda2: float, C: float = 1.0, rounds: Any = None, tasks: Sequence[Hashable] | None = None,
) -> float:  # fmt: skip
    """Most regret that ROMCO can have against weights u*_k + v*_k.

    With l the hinge losses, ``ROMCO(eta=eta, rho=rho, lambda1=lambda1, lambda2=lambda2, C=C)`` over T rounds, of all
    tasks or of some, obeys for every U* and V*::

        C sum (l - l*)  <=  ||U*||_F^2 / (2 eta) + ||V*||_F^2 / (2 rho) + (eta + rho)/2 C^2 sum ||x||^2
                            + T lambda1 ||U*||_* + lambda2 sum_k T_k ||v*_k||

    where T_k counts the rounds of task k. Steps proportional to 1/√T and strengths to η make it O(√T), Theorem 3. It
    holds for the nuclear norm (the log-determinant is not convex) and the trigger "margin".

    Parameters
    ----------
    common, personal : (K, d) arrays
        U* and V*, one row a task in the order of `tasks`, as `coef_low_rank_` and `coef_task_`.
    X, y, task, rounds
        The stream, as the learner got it.
    eta, rho, lambda1, lambda2, C : float
        The learner's.
    tasks : sequence of K ids, optional
        Default: order of appearance, which is that of `tasks_`.

    Returns
    -------
    float
        The right-hand side.

    Raises
    ------
    ValueError
        If shapes do not fit, eta, rho or C is not above 0, or a strength is negative.

    Examples
    --------
    >>> import numpy as np
    >>> X, y, task = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1, -1]), ["a", "b"]
    >>> U = np.array([[1.0, -1.0], [1.0, -1.0]])
    >>> romco_regret_bound(U, 0 * U, X, y, task, eta=1.0, rho=1.0, lambda1=0.5, lambda2=0.5)
    5.0
    """
    U, V = comparator_matrix(common), comparator_matrix(personal)
    if U.shape != V.shape:
        raise ValueError(f"common and personal must have one shape, got {U.shape} and {V.shape}")
    read(ALGORITHM.parameters, {"eta": eta, "rho": rho, "C": C, "lambda1": lambda1, "lambda2": lambda2})
    rows, _, columns = stream_table(X, y, task, len(U), tasks)
    n_rounds = len(form_rounds(columns, len(U), rounds, simultaneous=True)) - 1
    start = np.sum(U**2) / (2.0 * eta) + np.sum(V**2) / (2.0 * rho)
    drift = (eta + rho) / 2.0 * C**2 * np.sum(squared_norms(rows))
    low_rank = n_rounds * lambda1 * np.linalg.norm(U, "nuc")
    group = lambda2 * np.bincount(columns, minlength=len(V)) @ np.linalg.norm(V, axis=1)
    return float(start + drift + low_rank + group)
