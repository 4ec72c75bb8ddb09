"""Mistake bounds of the multitask Perceptron (Cavallanti, Cesa-Bianchi, Gentile 2010, section 3)."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal import relations
from shoal.engine.arrays import FloatArray
from shoal.relations import Constant, Given
from shoal.theory import stream


def task_complexity(comparator: Any, relation: Any = "pairwise") -> float:
    """u^T A u = tr(U A U^T): how large the comparators are and how far apart, as the relation measures it.

    ======================  =====================================================================
    relation                complexity
    ======================  =====================================================================
    "pairwise" (Cor. 3)     sum_i ||u_i||^2 + sum_{i<j} ||u_i - u_j||^2
    number b (Cor. 4)       sum_i ||u_i||^2 + b K VAR[u],  VAR[u] = (1/K) sum_i ||u_i - mean||^2
    graph (Cor. 5)          sum_i ||u_i||^2 + sum_{edges} weight ||u_i - u_j||^2
    matrix A (Thm. 1)       sum_ij A_ij <u_i, u_j>
    "pooled" (b -> inf)     sum_i ||u_i||^2 if all u_i are equal, else inf
    ======================  =====================================================================

    Parameters
    ----------
    comparator : (K, d) array
        One row of weights a task; for a graph or matrix in the order of its tasks.
    relation : as in `shoal.MultitaskPerceptron`

    Raises
    ------
    ValueError
        If the comparator is not a finite matrix or has another number of tasks than the relation.

    Examples
    --------
    >>> import numpy as np
    >>> task_complexity(np.array([[1.0, 0.0], [0.0, 1.0]]), "pairwise")
    4.0
    >>> task_complexity(np.array([[1.0, 0.0], [0.0, 1.0]]), "independent")
    2.0
    """
    U, resolved = stream.comparator_matrix(comparator), relations.resolve(relation)
    size = float(np.sum(U**2))
    if isinstance(resolved, Given):
        stream.refuse_other_count(U, len(resolved.tasks), "tasks of the relation")
        # tr(U A U^T) = sum_i (A 1)_i ||u_i||^2 - sum_{i<j} A_ij ||u_i - u_j||^2; for A = I + L this is eq. 6.
        A = sp.coo_matrix(resolved.interaction)
        pairs = zip(A.row, A.col, A.data, strict=True)
        apart = sum(a * np.sum((U[i] - U[j]) ** 2) for i, j, a in pairs if i < j)
        return float(np.sum(U**2, axis=1) @ np.asarray(A.sum(axis=1)).ravel() - apart)
    if stream.all_equal(U):
        return size
    b = len(U) if resolved.b_is_n_tasks else resolved.b
    return size + b * len(U) * stream.variance(U)


def optimal_sharing(comparator: Any) -> float:
    """The b of eq. 5 with the smallest bound: max(0, sqrt((K - 1) ||mean||^2 / VAR[u]) - 1) (section 3.2).

    It is inf, pooled learning, if all tasks have the same weights.

    Parameters
    ----------
    comparator : (K, d) array
        One row of weights a task.

    Raises
    ------
    ValueError
        If the comparator is not a finite matrix.

    Examples
    --------
    >>> import numpy as np
    >>> optimal_sharing(np.array([[3.0, 1.0], [3.0, -1.0]]))
    2.0
    """
    U = stream.comparator_matrix(comparator)
    norm = (len(U) - 1) * float(np.sum(U.mean(axis=0) ** 2))
    if norm == 0.0:
        return 0.0
    if stream.all_equal(U):
        return math.inf
    return max(0.0, math.sqrt(norm / stream.variance(U)) - 1.0)


def perceptron_mistake_bound(
    comparator: Any,
    X: Any,
    y: Any,
    task: Any = None,
    *,
    relation: Any = "pairwise",
    mistaken: Any,
    tasks: Sequence[Hashable] | None = None,
) -> float:
    """Most mistakes that the multitask Perceptron can have made (Cavallanti et al., Theorem 1).

    With M the mistaken rows, L = sum_{t in M} [1 - y_t <u_{i_t}, x_t>]_+ and the complexity u^T A u of
    `task_complexity`, the number of mistakes m of ``MultitaskPerceptron(relation=...)`` with its own loss and
    a constant step obeys, for every comparator::

        m <= L + D + sqrt(D L),     D = max_{t in M} B[i_t, i_t] ||x_t||^2  u^T A u,     B = A^-1

    The paper takes ||x|| = 1 and max_i B_ii. Its proof needs only the largest ||psi(x_t, i_t)||^2 =
    B[i_t, i_t] ||x_t||^2 among the mistaken rows, which makes the bound hold for rows of any length.

    Parameters
    ----------
    comparator : (K, d) array
        One row of weights a task, in the order of `tasks`.
    X, y, task
        The stream, as the learner got it. All K tasks must have existed from its start (`fit`, `add_tasks`),
        because b/K changes with K.
    relation : as in `shoal.MultitaskPerceptron`
    mistaken : (n,) bool
        The rows that the learner predicted wrongly.
    tasks : sequence of K ids, optional
        Default: the tasks that the relation names, else the order of appearance, which is that of `tasks_`.

    Returns
    -------
    float
        inf for "pooled" and comparators that differ: one model for all has no bound against those.

    Raises
    ------
    ValueError
        If shapes or tasks do not fit each other.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import MultitaskPerceptron
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=10, n_features=20, n_rows=3000, relatedness=0.99, noise=0.0, seed=0)
    >>> weights = MultitaskPerceptron().fit(data.X, data.y, data.task).coef_
    >>> comparator = 3 * weights / np.linalg.norm(weights, axis=1, keepdims=True)
    >>> for relation in ("independent", "pairwise"):
    ...     learner = MultitaskPerceptron(relation=relation).add_tasks(dict.fromkeys(data.task.tolist()))
    ...     mistaken = (learner.test_then_train(data.X, data.y, data.task) >= 0) != (data.y > 0)
    ...     bound = perceptron_mistake_bound(
    ...         comparator, data.X, data.y, data.task, relation=relation, mistaken=mistaken
    ...     )
    ...     print(f"{relation:12} {mistaken.sum()} mistakes, at most {bound:.0f}")
    independent  521 mistakes, at most 659
    pairwise     291 mistakes, at most 325
    """
    U, resolved = stream.comparator_matrix(comparator), relations.resolve(relation)
    U, rows, signs, columns = stream.mistakes(U, resolved, X, y, task, mistaken, tasks)
    if not len(signs):
        return 0.0
    largest = float(np.max(own_rates(resolved, len(U))[columns] * stream.squared_norms(rows)))
    D = largest * task_complexity(U, resolved) if largest > 0 else 0.0
    L = sum(float(stream.hinge(signs[columns == k], rows[columns == k] @ U[k]).sum()) for k in range(len(U)))
    return math.inf if math.isinf(D) else L + D + math.sqrt(D) * math.sqrt(L)


def own_rates(relation: relations.Relation, n_tasks: int) -> FloatArray:
    """The diagonal of B."""
    if isinstance(relation, Constant):
        a = relation.own_share(n_tasks)
        return np.full(n_tasks, a + (1.0 - a) / n_tasks)
    factors, column, own = relation.factors(unit_own_rate=False), np.empty(n_tasks), np.empty(n_tasks)
    for k in range(n_tasks):
        relations.rates_column(factors, k, column)
        own[k] = column[k]
    return own
