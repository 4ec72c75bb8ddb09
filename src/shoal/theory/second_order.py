"""Mistake bound of the second-order multitask Perceptron (Cavallanti, Cesa-Bianchi, Gentile 2010, section 4.2)."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from shoal import relations
from shoal.model.parameters import positive, read
from shoal.theory.perceptron import task_complexity
from shoal.theory.stream import comparator_matrix, hinge, mistakes


def second_order_mistake_bound(
    comparator: Any,
    X: Any,
    y: Any,
    task: Any = None,
    *,
    relation: Any = "pairwise",
    a: float = 1.0,
    mistaken: Any,
    tasks: Sequence[Hashable] | None = None,
) -> float:
    """Most mistakes that the second-order multitask Perceptron can have made (Cavallanti et al., Theorem 8).

    With M the mistaken rows, L = sum_{t in M} [1 - y_t <u_{i_t}, x_t>]_+, the complexity u^T A u of
    `task_complexity` and G[s, t] = B[i_s, i_t] <x_s, x_t> over M, B = A^-1, the number of mistakes m of
    ``SecondOrderPerceptron(relation=..., a=a)`` with the linear kernel and no budget obeys, for every comparator::

        m <= L + sqrt( (a u^T A u + sum_{t in M} <u_{i_t}, x_t>^2) ln det(I + G/a) )

    The paper has a = 1; another a is the algorithm on rows divided by sqrt(a), for u multiplied by it.

    Parameters
    ----------
    comparator : (K, d) array
        One row of weights a task, in the order of `tasks`.
    X, y, task
        The stream, as the learner got it. All K tasks must have existed from its start (`fit`, `add_tasks`),
        because b/K changes with K.
    relation : as in `shoal.MultitaskPerceptron`
    a : float > 0
        The learner's.
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
        If shapes or tasks do not fit each other, or a is not a finite number > 0.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import SecondOrderPerceptron
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=10, n_features=20, n_rows=3000, relatedness=0.99, noise=0.0, seed=0)
    >>> comparator = [np.linalg.lstsq(data.X[data.task == k], data.y[data.task == k])[0] for k in range(10)]
    >>> for relation in ("independent", "pairwise"):
    ...     learner = SecondOrderPerceptron(relation=relation).add_tasks(range(10))
    ...     mistaken = (learner.test_then_train(data.X, data.y, data.task) >= 0) != (data.y > 0)
    ...     bound = second_order_mistake_bound(
    ...         comparator, data.X, data.y, data.task, relation=relation, mistaken=mistaken, tasks=range(10)
    ...     )
    ...     print(f"{relation:12} {mistaken.sum()} mistakes, at most {bound:.0f}")
    independent  446 mistakes, at most 538
    pairwise     267 mistakes, at most 303
    """
    U, resolved = comparator_matrix(comparator), relations.resolve(relation)
    read({"a": positive()}, {"a": a})
    U, rows, signs, columns = mistakes(U, resolved, X, y, task, mistaken, tasks)
    products = rows @ rows.T
    G = (products.toarray() if hasattr(products, "toarray") else products) / a
    G *= resolved.rates(len(U))[np.ix_(columns, columns)]
    log_det = float(np.linalg.slogdet(np.eye(len(G)) + G)[1])
    f = np.asarray(rows @ U.T)[np.arange(len(columns)), columns]
    L = float(hinge(signs, f).sum())
    return L + math.sqrt(a * task_complexity(U, resolved) + float(f @ f)) * math.sqrt(log_det) if log_det > 0 else L
