"""Bound on the cumulative shared loss (Dekel, Long, Singer 2007)."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.rounds import form_rounds
from shoal.model.parameters import positive, read
from shoal.online.common.shared_loss_steps import Norm, norm_code, shared_loss, spread
from shoal.theory.stream import comparator_matrix, hinge, squared_norms, stream_table


def cumulative_shared_loss(losses: FloatArray, starts: IntArray, norm: Norm) -> float:
    """sum_t ||l_t|| for the losses of all rows and the offsets of the rounds."""
    return sum(shared_loss(part, norm) for part in np.split(losses, starts[1:-1]))


def shared_loss_bound(
    comparator: Any,
    X: Any,
    y: Any,
    task: Any = None,
    *,
    norm: str | float = "l2",
    C: float,
    r: int = 1,
    rounds: Any = None,
    tasks: Sequence[Hashable] | None = None,
) -> float:
    """Most that ``SharedLoss(norm=norm, C=C, r=r)`` can lose, sum_t ||l_t(W_t)||, on any stream of T rounds.

    For every comparator U, the rules "finite" and "implicit", and rounds with some tasks absent::

        sum_t ||l_t(W_t)||  <=  sum_t ||l_t(U)|| + ||U||_F^2 / (2 C) + T C R^2 rho^2 / 2

    with R = max ||x|| and rho = max ||tau||_2 / ||tau||_*: √K, 1, 1, √r and K^max(0, 1/p - 1/2) for l1, l2, linf, rmax
    and Lp, where K is the size of the largest round (and r at most K). Smallest for C = ||U||_F / (√T R rho).

    Parameters
    ----------
    comparator : (K, d) array
        One row of weights a task, in the order of `tasks`.
    X, y, task, rounds
        The stream, as the learner got it.
    norm, C, r
        The learner's.
    tasks : sequence of K ids, optional
        Default: order of appearance, which is that of `tasks_`.

    Raises
    ------
    ValueError
        If shapes do not fit, there is no such norm, or C is not above 0.

    Examples
    --------
    >>> import numpy as np
    >>> X, y, task = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1, -1]), ["a", "b"]
    >>> shared_loss_bound(np.array([[1.0, 0.0], [0.0, 0.0]]), X, y, task, norm="linf", C=1.0)
    2.0
    """
    U, code = comparator_matrix(comparator), norm_code(norm, r)
    read({"C": positive()}, {"C": C})
    rows, signs, columns = stream_table(X, y, task, len(U), tasks)
    starts = form_rounds(columns, len(U), rounds, simultaneous=True)
    f = np.asarray(rows @ U.T)[np.arange(len(signs)), columns]
    steps = C * float(np.max(squared_norms(rows))) * spread(int(np.diff(starts).max()), code)
    loss = cumulative_shared_loss(hinge(signs, f), starts, code)
    return loss + float(np.sum(U**2)) / (2.0 * C) + (len(starts) - 1) * steps / 2.0
