"""Mistake bound of the multitask p-norm Perceptron (Cavallanti, Cesa-Bianchi, Gentile 2010, Theorem 6)."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal import relations
from shoal.engine.arrays import FloatArray
from shoal.model.parameters import read
from shoal.online.p_norm_perceptron import ALGORITHM, AUTO
from shoal.relations import Given
from shoal.theory.stream import comparator_matrix, hinge, mistakes


def p_norm_mistake_bound(
    comparator: Any,
    X: Any,
    y: Any,
    task: Any = None,
    *,
    relation: Any = "pairwise",
    p: float | str = "auto",
    variant: str = "printed",
    mistaken: Any,
    tasks: Sequence[Hashable] | None = None,
) -> float:
    """Most mistakes that the multitask p-norm Perceptron can have made (Cavallanti et al., Theorem 6).

    With M the mistaken rows, L = sum_{t in M} [1 - y_t <u_{i_t}, x_t>]_+ and q = p/(p - 1), the number of mistakes m
    of ``PNormPerceptron(relation=..., p=..., variant=...)`` obeys, for every comparator::

        m <= L + H + sqrt(H L),     H = (p - 1) max_{t in M} ||x_t||_p^2 ||B[:, i_t]||_p^2  ||U A||_q^2,     B = A^-1

    with the square roots of A and B for the variant "sqrt". At p = 2 ln max(K, d) and the pairwise relation this is
    at most Theorem 6 as printed, which bounds ||x||_p by sqrt(e) ||x||_inf and ||.||_q by ||.||_1::

        H <= 8 e^2 ln max(K, d)/(K + 1)^2  max_t ||x_t||_inf^2  (sum_i ||u_i + sum_{j != i} (u_i - u_j)||_1)^2

    Parameters
    ----------
    comparator : (K, d) array
        One row of weights a task, in the order of `tasks`.
    X, y, task
        The stream, as the learner got it. All K tasks must have existed from its start (`fit`, `add_tasks`),
        because b/K and an automatic p change with K.
    relation, p, variant
        The learner's.
    mistaken : (n,) bool
        The rows that the learner predicted wrongly.
    tasks : sequence of K ids, optional
        Default: the tasks that the relation names, else the order of appearance, which is that of `tasks_`.

    Returns
    -------
    float
        inf for "pooled", whose B has no inverse.

    Raises
    ------
    ValueError
        If shapes or tasks do not fit each other, p is below 2, or there is no such variant.

    Examples
    --------
    >>> import numpy as np
    >>> X, y, task = np.eye(4)[:2], np.array([1, -1]), ["a", "b"]
    >>> bound = p_norm_mistake_bound(np.zeros((2, 4)), X, y, task, mistaken=np.array([True, True]))
    >>> print(bound)
    2.0
    """
    U, resolved = comparator_matrix(comparator), relations.resolve(relation)
    p = read(ALGORITHM.parameters, {"p": p, "variant": variant}).p
    K, d = U.shape
    order = max(2.0, 2.0 * math.log(max(K, d))) if p == AUTO else float(p)
    U, rows, signs, columns = mistakes(U, resolved, X, y, task, mistaken, tasks)
    if not len(signs):
        return 0.0
    if not isinstance(resolved, Given) and math.isinf(resolved.b):
        return math.inf
    B = resolved.rates(K)
    values, vectors = np.linalg.eigh(B)
    M = (vectors * np.sqrt(values)) @ vectors.T if variant == "sqrt" else B
    sizes = _row_norms(rows, order) * np.linalg.norm(M, order, axis=0)[columns]
    q = order / (order - 1.0)
    H = (order - 1.0) * float(np.max(sizes)) ** 2 * float(np.linalg.norm(np.linalg.solve(M, U).ravel(), q)) ** 2
    L = sum(float(hinge(signs[columns == k], rows[columns == k] @ U[k]).sum()) for k in range(K))
    return L + H + math.sqrt(H) * math.sqrt(L)


def _row_norms(rows: Any, p: float) -> FloatArray:
    """||x||_p of every row; rows are divided by their largest entry, so that no power overflows."""
    rows = abs(sp.csr_matrix(rows))
    top = np.asarray(rows.max(axis=1).todense()).ravel()
    scaled = sp.diags(1.0 / np.where(top > 0, top, 1.0)) @ rows
    return np.asarray(top * np.asarray(scaled.power(p).sum(axis=1)).ravel() ** (1.0 / p))
