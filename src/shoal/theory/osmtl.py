"""Regret bound of OSMTL (Murugesan, Liu, Carbonell, Yang 2016, Theorem 1 and Corollary 2)."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.engine.rounds import form_rounds
from shoal.model.parameters import read
from shoal.online.osmtl import PARAMETERS
from shoal.theory.stream import comparator_matrix, hinge, squared_norms, stream_table


def osmtl_regret_bound(
    comparator: Any,
    X: Any,
    y: Any,
    task: Any = None,
    *,
    alpha: float | str,
    C: float | str,
    rounds: Any = None,
    tasks: Sequence[Hashable] | None = None,
) -> FloatArray:
    """Most regret that each task's learner in OSMTL can have (Murugesan et al., Theorem 1).

    With l_kj the hinge loss of task k's weights on the row of task j, l* that of the comparator and
    R = max ||x||, ``OSMTL(alpha=alpha, C=C, trigger="margin")`` over T rounds of all tasks obeys::

        sum_t (l_kk - l*_kk)  <=  ||u_k||^2 / (2 C alpha) + C R^2 T / (2 alpha)
                                  + (1 - alpha)/alpha sum_t (l*_kk + max_{j != k} l*_kj)

    for every lam, both attention rules, and every comparator. (The paper prints T l*^(t) for the sum over t.)

    Corollary 2 has alpha = sqrt(T)/(1 + sqrt(T)), C = (1 + sqrt(T))/T for a known T, and regret O(sqrt(T)). For an
    unknown T its proof says "doubling trick", which forgets all weights when T doubles; alpha="auto" and C="auto" keep
    them. Theorem 1's proof, with alpha_t and C_t and with e_t = l*_kk + max_{j != k} l*_kj of round t, gives ::

        l_kk - l*_kk  <=  (d_t^2 - d_{t+1}^2)/(2 C_t alpha_t) + (1 - alpha_t)/alpha_t e_t + C_t R^2/(2 alpha_t)
        d_{t+1}^2     <=  d_t^2 + 2 C_t (alpha_t l*_kk + (1 - alpha_t) e_t) + C_t^2 R^2

    for the distance d_t of w_k from u_k before round t, d_1 = ||u_k||. The first, summed by parts, and what the second
    says of d_t^2 bound the regret by ::

        sum_t [1/(C_t alpha_t) - 1/(C_{t-1} alpha_{t-1})]_+ d_t^2/2 + (1 - alpha_t)/alpha_t e_t + C_t R^2/(2 alpha_t)

    where the bracket of t = 1 is 1/(C_1 alpha_1). This is Theorem 1 if alpha and C are constant. Under "auto"
    C_t alpha_t is 1/sqrt(T), and sum_t C_t^2 grows as log T: keeping the weights costs a factor log T in the term of
    R^2, and a loss of the comparator in round s counts about sqrt(T/s) times, where Corollary 2 counts it 1/sqrt(T)
    times. So this is weaker than Corollary 2, which the learner with this schedule is not known to obey.

    Parameters
    ----------
    comparator : (K, d) array
        One row of weights a task, in the order of `tasks`.
    X, y, task, rounds
        The stream, as the learner got it; every round holds every task.
    alpha, C : float or "auto"
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
        If shapes do not fit, a round lacks a task, alpha is not in [0, 1] or C not above 0, and not "auto".

    Examples
    --------
    >>> import numpy as np
    >>> X, y, task = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1, -1]), ["a", "b"]
    >>> osmtl_regret_bound(np.array([[1.0, -1.0], [1.0, -1.0]]), X, y, task, alpha=0.5, C=1.0)
    array([3., 3.])
    """
    U = comparator_matrix(comparator)
    read(PARAMETERS, {"alpha": alpha, "C": C})
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
    own = np.zeros((len(sizes), len(U)))  # [t, k]: l*_kk
    own[np.repeat(np.arange(len(sizes)), sizes), columns] = losses[each, columns]
    losses[each, columns] = 0.0
    e = own + np.maximum.reduceat(losses, starts[:-1], axis=0)
    R2 = float(np.max(squared_norms(rows)))
    a, c = schedule(alpha, C, len(sizes))
    apart = 2.0 * c * (a * own + (1.0 - a) * e) + c**2 * R2
    distance = np.sum(U**2, axis=1) + np.vstack([np.zeros(len(U)), np.cumsum(apart, axis=0)[:-1]])  # d_t^2, at most
    weight = np.maximum(0.0, np.diff(1.0 / (c * a), axis=0, prepend=0.0))
    return np.asarray((weight * distance / 2.0 + (1.0 - a) / a * e + c * R2 / (2.0 * a)).sum(axis=0))


def schedule(alpha: float | str, C: float | str, n_rounds: int) -> tuple[FloatArray, FloatArray]:
    """(T, 1) alpha_t and C_t; "auto" is that of Corollary 2 for the horizon 2^m in rounds 2^m to 2^(m+1) - 1."""
    t = np.arange(1, n_rounds + 1)
    horizon = 2.0 ** (np.frexp(t)[1] - 1)[:, None]
    root = np.sqrt(horizon)
    a = root / (1.0 + root) if alpha == "auto" else np.full_like(root, alpha)
    c = (1.0 + root) / horizon if C == "auto" else np.full_like(root, C)
    return a, c
