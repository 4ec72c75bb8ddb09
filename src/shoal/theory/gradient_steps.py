"""Regret bound of shared gradient steps with any convex loss."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from shoal import relations
from shoal.model.parameters import positive, read
from shoal.relations import Given
from shoal.theory.perceptron import own_rates, task_complexity
from shoal.theory.stream import comparator_matrix, in_order_of, squared_norms, stream_table


def gradient_regret_bound(
    comparator: Any,
    X: Any,
    task: Any = None,
    *,
    relation: Any = "pairwise",
    slopes: Any,
    eta: float,
    tasks: Sequence[Hashable] | None = None,
) -> float:
    """Most that ``MultitaskRegressor(relation=..., eta=eta)`` can lose more than fixed weights, with any convex loss.

    With b = max_k B[k, k], B = A^-1, the slopes g_t = l'(f_t, y_t) at the margins f_t that it answered with, and the
    complexity u^T A u of `task_complexity`, a constant step, one row a round and no weights of rows, for every
    comparator::

        sum_t l(f_t, y_t) - l(<u_{i_t}, x_t>, y_t)
            <=  b u^T A u / (2 eta) + (eta/2) sum_t g_t^2 B[i_t, i_t] ||x_t||^2 / b

    It holds for steps along the gradient and for implicit ones, and for `MultitaskPerceptron` with "hinge",
    "squared_hinge" and "logistic".

    Parameters
    ----------
    comparator : (K, d) array
        One row of weights a task, in the order of `tasks`. All K tasks exist from the start (`add_tasks`), because b/K
        changes with K.
    X, task
        The stream, as the learner got it.
    relation, eta
        The learner's.
    slopes : (n,) numbers
        The derivatives of the loss at the learner's margins.
    tasks : sequence of K ids, optional
        Default: the tasks that the relation names, else the order of appearance, which is that of `tasks_`.

    Returns
    -------
    float
        inf for "pooled" and comparators that differ.

    Raises
    ------
    ValueError
        If shapes or tasks do not fit each other, or eta is not above 0.

    References
    ----------
    Zinkevich. Online Convex Programming and Generalized Infinitesimal Gradient Ascent. ICML 2003, in the norm of A
    (Cavallanti et al., JMLR 11, 2010, eq. 3). Implicit steps: Kulis, Bartlett. Implicit Online Learning. ICML 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import MultitaskRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(2000, 3)), rng.integers(10, size=2000)
    >>> w = np.ones(3) + 0.1 * rng.normal(size=(10, 3))
    >>> y = np.einsum("ij,ij->i", X, w[task]) + rng.normal(size=2000)
    >>> learner = MultitaskRegressor(loss="absolute", eta=0.02).add_tasks(range(10))
    >>> f = learner.test_then_train(X, y, task)
    >>> regret = np.abs(f - y).sum() - np.abs(np.einsum("ij,ij->i", X, w[task]) - y).sum()
    >>> bound = gradient_regret_bound(w, X, task, slopes=np.sign(f - y), eta=0.02, tasks=range(10))
    >>> print(f"regret {regret:.0f}, at most {bound:.0f}")
    regret 133, at most 211
    """
    U, resolved = comparator_matrix(comparator), relations.resolve(relation)
    read({"eta": positive()}, {"eta": eta})
    if isinstance(resolved, Given):
        U, tasks = in_order_of(resolved.tasks, U, tasks), resolved.tasks
    g = np.asarray(slopes, np.float64)
    rows, _, columns = stream_table(X, np.where(g > 0, 1, -1), task, len(U), tasks)
    rates = own_rates(resolved, len(U))
    largest = float(rates.max())
    steps = float(np.sum(g**2 * rates[columns] * squared_norms(rows))) / largest
    return largest * task_complexity(U, resolved) / (2.0 * eta) + eta / 2.0 * steps
