"""Mistake bound of the multitask kernel Perceptron (Cavallanti, Cesa-Bianchi, Gentile 2010, Theorem 1, any kernel)."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from shoal import relations
from shoal.engine import kernel_functions
from shoal.engine.arrays import FloatArray
from shoal.relations import Given
from shoal.theory.perceptron import own_rates, task_complexity
from shoal.theory.stream import all_equal, comparator_matrix, hinge, in_order_of, mistaken_rows, stream_table

BLOCK = 256  # rows at a time where only the values k(x, x) are needed


def kernel_mistake_bound(
    comparator: Any,
    X: Any,
    y: Any,
    task: Any = None,
    *,
    relation: Any = "pairwise",
    kernel: Any = "rbf",
    gamma: float = 1.0,
    mistaken: Any,
    tasks: Sequence[Hashable] | None = None,
) -> float:
    """Most mistakes that the multitask kernel Perceptron can have made (Cavallanti et al., Theorem 1).

    The theorem is that of the kernel Perceptron (its eq. 3), so it holds for functions u_1..u_K of the kernel's space
    in place of weights, with <u_i, u_j> in place of products of weights and k(x, x) in place of ||x||^2. With M the
    mistaken rows and L = sum_{t in M} [1 - y_t u_{i_t}(x_t)]_+, the number of mistakes m of
    ``KernelPerceptron(relation=..., kernel=..., gamma=...)`` without a budget obeys, for all such functions::

        m <= L + D + sqrt(D L),     D = max_{t in M} B[i_t, i_t] k(x_t, x_t)  sum_ij A[i, j] <u_i, u_j>,     B = A^-1

    A comparator is u_k = sum_s c_ks k(x_s, .) over the rows of the stream: a part outside their span
    costs norm and changes no value.

    Parameters
    ----------
    comparator : (K, n) array
        The coefficients c: one row a task, in the order of `tasks`, one column a row of the stream.
    X, y, task
        The stream, as the learner got it. All K tasks must have existed from its start (`fit`, `add_tasks`),
        because b/K changes with K.
    relation, kernel, gamma
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
        If shapes or tasks do not fit each other, or there is no such kernel.

    Examples
    --------
    Discs in rings, larger from task to task, with a gap. The comparator is a support vector machine on all rows.

    >>> import numpy as np
    >>> from shoal import KernelPerceptron, RegMTL
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.uniform(-2, 2, size=(3000, 2)), np.arange(3000) % 10
    >>> outside = np.linalg.norm(X, axis=1) - np.linspace(1.2, 1.3, 10)[task]
    >>> gap = np.abs(outside) < 0.3
    >>> X, y, task = X[~gap], np.where(outside > 0, -1, 1)[~gap], task[~gap]
    >>> machine = RegMTL(kernel="rbf", mu=0.1, C=0.01).fit(X, y, task)
    >>> comparator = np.zeros((10, len(y)))
    >>> comparator[:, machine.support_] = machine.relation_[:, machine.support_task_] * machine.dual_coef_
    >>> for relation in ("independent", "pairwise"):
    ...     learner = KernelPerceptron(relation=relation).add_tasks(range(10))
    ...     mistaken = (learner.test_then_train(X, y, task) >= 0) != (y > 0)
    ...     bound = kernel_mistake_bound(
    ...         comparator, X, y, task, relation=relation, mistaken=mistaken, tasks=range(10)
    ...     )
    ...     print(f"{relation:12} {mistaken.sum():2} mistakes, at most {bound:.0f}")
    independent  90 mistakes, at most 225
    pairwise     17 mistakes, at most 42
    """
    C, resolved = comparator_matrix(comparator), relations.resolve(relation)
    kernel_functions.resolve(kernel, gamma)
    if isinstance(resolved, Given):
        C, tasks = in_order_of(resolved.tasks, C, tasks), resolved.tasks
    rows, signs, columns = stream_table(X, y, task, len(C), tasks)
    if C.shape[1] != len(signs):
        raise ValueError(f"the comparator must have one column per row: expected {len(signs)}, got {C.shape[1]}")
    wrong = mistaken_rows(mistaken, len(signs))
    if not len(wrong):
        return 0.0
    used = np.flatnonzero(C.any(axis=0))
    C, points = C[:, used], rows[used]
    rows, signs, columns = rows[wrong], signs[wrong], columns[wrong]
    u = kernel_functions.matrix(kernel, gamma, rows, points) @ C.T if len(used) else np.zeros((len(wrong), len(C)))
    L = float(hinge(signs, u[np.arange(len(wrong)), columns]).sum())
    vectors = (
        _vectors(C, kernel_functions.matrix(kernel, gamma, points, points)) if len(used) else np.zeros((len(C), 1))
    )
    largest = float(np.max(own_rates(resolved, len(C))[columns] * _squared_norms(kernel, gamma, rows)))
    D = largest * task_complexity(vectors, resolved) if largest > 0 else 0.0
    return math.inf if math.isinf(D) else L + D + math.sqrt(D) * math.sqrt(L)


def _vectors(C: FloatArray, G: FloatArray) -> FloatArray:
    """K vectors with the products of the functions, <u_i, u_j> = (C G Cᵀ)_ij."""
    values, basis = np.linalg.eigh(C @ G @ C.T)
    vectors = basis * np.sqrt(np.maximum(values, 0.0))
    return np.tile(vectors[:1], (len(C), 1)) if all_equal(C) else vectors


def _squared_norms(kernel: Any, gamma: float, rows: Any) -> FloatArray:
    """k(x, x) of every row."""
    blocks = (rows[first : first + BLOCK] for first in range(0, rows.shape[0], BLOCK))
    return np.concatenate([np.diagonal(kernel_functions.matrix(kernel, gamma, block, block)) for block in blocks])
