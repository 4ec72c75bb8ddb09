"""Bounds of the 2p-norm matrix Perceptron (Cavallanti, Cesa-Bianchi, Gentile 2010, Theorem 9 and Remark 12)."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.engine.rounds import form_rounds
from shoal.model.parameters import at_least, positive, read
from shoal.online.common.shared_loss_steps import finite_steps, norm_code
from shoal.theory.shared_loss import cumulative_shared_loss
from shoal.theory.stream import comparator_matrix, hinge, mistaken_rows, stream_table


def schatten_mistake_bound(
    comparator: Any,
    X: Any,
    y: Any,
    task: Any = None,
    *,
    p: float,
    mistaken: Any,
    rounds: Any = None,
    tasks: Sequence[Hashable] | None = None,
) -> float:
    """Most mistakes that the 2p-norm matrix Perceptron can have made (Cavallanti et al., Theorem 9).

    With L = sum of [1 - y <u_k, x>]_+ over the mistaken rows, 2q = 2p/(2p - 1), the matrix M_t of a round's mistaken
    rows and M = max_t ||M_t||_{S_2p} / sqrt(mistakes of round t), the number of mistakes mu of
    ``SchattenPerceptron(p=p)`` obeys, for every comparator::

        mu <= L + D + sqrt(D L),     D = (2p - 1) M^2 ||U||_{S_2q}^2

    Parameters
    ----------
    comparator : (K, d) array
        One row of weights a task, in the order of `tasks`.
    X, y, task, rounds
        The stream, as the learner got it.
    p : float >= 1
        The learner's.
    mistaken : (n,) bool
        The rows that the learner predicted wrongly.
    tasks : sequence of K ids, optional
        Default: order of appearance, which is that of `tasks_`.

    Raises
    ------
    ValueError
        If shapes do not fit or p is below 1.

    Examples
    --------
    64 tasks with the same weights, mistaken at once on 64 orthogonal rows (Remark 10).

    >>> import numpy as np
    >>> U, X, y, task = np.ones((64, 64)), np.eye(64), np.ones(64), np.arange(64)
    >>> for p in (1, 2, 4):
    ...     bound = schatten_mistake_bound(U, X, y, task, p=p, mistaken=np.ones(64, dtype=bool))
    ...     print(f"p = {p}: {bound:.0f}")
    p = 1: 4096
    p = 2: 1536
    p = 4: 1267
    """
    U = comparator_matrix(comparator)
    read({"p": at_least(1)}, {"p": p})
    rows, signs, columns = stream_table(X, y, task, len(U), tasks)
    starts = form_rounds(columns, len(U), rounds, simultaneous=True)
    wrong = np.zeros(len(signs))
    wrong[mistaken_rows(mistaken, len(signs))] = 1.0
    sizes = [
        _schatten(rows[a:b][wrong[a:b] > 0], 2.0 * p) / math.sqrt(wrong[a:b].sum())
        for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
        if wrong[a:b].any()
    ]
    if not sizes:
        return 0.0
    f = np.asarray(rows @ U.T)[np.arange(len(signs)), columns]
    L = float(wrong @ hinge(signs, f))
    root = math.sqrt(2.0 * p - 1.0) * max(sizes) * _schatten(U, 2.0 * p / (2.0 * p - 1.0))
    return L + root**2 + root * math.sqrt(L)


def schatten_loss_bound(
    comparator: Any,
    X: Any,
    y: Any,
    task: Any = None,
    *,
    p: float,
    norm: str | float,
    C: float,
    decisions: Any,
    r: int = 1,
    rounds: Any = None,
    tasks: Sequence[Hashable] | None = None,
) -> float:
    """Most that the 2p-norm Perceptron of a shared loss can lose, sum_t ||l_t(W)|| (Cavallanti et al., Remark 12).

    With the steps tau_t of the rounds, the matrices M_t of the rows tau_k y_k x_k, M = max_t ||M_t||_{S_2p} /
    sqrt(||tau_t||_*), and T rounds in which there was a loss, ``SchattenPerceptron(p=p, shared_loss=norm, C=C, r=r)``
    obeys, for every comparator and every norm that it takes::

        sum_t ||l_t(W)||  <=  sum_t ||l_t(U)|| + ||U||_{S_2q}^2 / (2 C) + (2p - 1) T M^2 / 2,     2q = 2p/(2p - 1)

    (The paper prints the last term without 2p - 1, which its proof needs.)

    Parameters
    ----------
    comparator : (K, d) array
        One row of weights a task, in the order of `tasks`.
    X, y, task, rounds
        The stream, as the learner got it.
    p, norm, C, r
        The learner's.
    decisions : (n,) float
        The result of the learner's `test_then_train`; the steps follow from it.
    tasks : sequence of K ids, optional
        Default: order of appearance, which is that of `tasks_`.

    Raises
    ------
    ValueError
        If shapes do not fit, p is below 1, C is not above 0 or there is no such norm.

    Examples
    --------
    >>> import numpy as np
    >>> X, y, task = np.array([[1.0, 0.0], [0.0, 1.0]]), [1, -1], ["a", "b"]
    >>> U, decisions = np.array([[1.0, 0.0], [0.0, -1.0]]), np.zeros(2)
    >>> print(f"{schatten_loss_bound(U, X, y, task, p=1, norm='l1', C=1.0, decisions=decisions):.3f}")
    2.000
    """
    U, code = comparator_matrix(comparator), norm_code(norm, r)
    read({"p": at_least(1)}, {"p": p})
    read({"C": positive()}, {"C": C})
    rows, signs, columns = stream_table(X, y, task, len(U), tasks)
    starts = form_rounds(columns, len(U), rounds, simultaneous=True)
    given = np.asarray(decisions, dtype=np.float64)
    if given.shape != signs.shape:
        raise ValueError(f"decisions must hold one number per row: expected {len(signs)}, got shape {given.shape}")
    suffered, largest, T = hinge(signs, given), 0.0, 0
    for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if suffered[a:b].any():
            tau = np.empty(b - a)
            finite_steps(suffered[a:b], code, C, tau)
            part = rows[a:b].multiply(tau[:, None]).tocsr() if hasattr(rows, "tocsr") else rows[a:b] * tau[:, None]
            largest, T = max(largest, _schatten(part, 2.0 * p)), T + 1
    f = np.asarray(rows @ U.T)[np.arange(len(signs)), columns]
    size = _schatten(U, 2.0 * p / (2.0 * p - 1.0)) ** 2 / (2.0 * C)
    # Every step reaches the ball: ||tau_t||_* = C.
    return cumulative_shared_loss(hinge(signs, f), starts, code) + size + (2.0 * p - 1.0) * T * largest**2 / C / 2.0


def _schatten(rows: Any, order: float) -> float:
    """The norm of the singular values of a matrix given by its rows, from their (n, n) products."""
    gram: FloatArray = np.asarray((rows @ rows.T).toarray() if hasattr(rows, "toarray") else rows @ rows.T)
    values = np.sqrt(np.maximum(np.linalg.eigvalsh(gram), 0.0))
    return float(np.linalg.norm(values, order))
