"""How large the rates of a task graph can be (Cavallanti, Cesa-Bianchi, Gentile 2010, section 3.3)."""

from typing import Any

import numpy as np

from shoal import relations
from shoal.engine.arrays import FloatArray


def graph_rate_bound(graph: Any) -> float:
    """Most that the factor c_G of Corollary 5 can be, by how well the graph is connected.

    The multitask Perceptron on a graph with the Laplacian L, A = I + L, makes at most
    ``L + D + sqrt(D L)`` mistakes, ``D = c_G ||x||^2 u^T A u`` (`perceptron_mistake_bound`, `task_complexity`). With
    the eigenvalues 0 = lambda_1 <= lambda_2 <= ... of L and its eigenvectors v_j::

        c_G = max_i B[i, i] = max_i sum_j v_j[i]^2/(1 + lambda_j)  <=  1/K + (1 - 1/K)/(1 + lambda_2)

    lambda_2, the algebraic connectivity, is 0 if the graph falls apart, and K for the graph of all pairs, where
    equality holds: c_G = 2/(K + 1). Weights of edges count in L. Cost O(K^3).

    Parameters
    ----------
    graph : edge list, networkx graph, adjacency matrix, or an object from `shoal.relations.graph`
        As `relation` in `shoal.MultitaskPerceptron`.

    Raises
    ------
    ValueError
        If it is no task graph.

    Examples
    --------
    >>> import networkx as nx
    >>> from shoal.theory import graph_rate_bound
    >>> for name in ("empty_graph", "path_graph", "star_graph", "complete_graph"):
    ...     print(f"{name:14} {graph_rate_bound(getattr(nx, name)(9)):.3f}")
    empty_graph    1.000
    path_graph     0.904
    star_graph     0.550
    complete_graph 0.200
    """
    A = _interaction(graph)
    if len(A) == 1:
        return 1.0
    connectivity = max(0.0, float(np.linalg.eigvalsh(A)[1]) - 1.0)
    return 1.0 / len(A) + (1.0 - 1.0 / len(A)) / (1.0 + connectivity)


def _interaction(graph: Any) -> FloatArray:
    """A = I + L as a dense matrix."""
    resolved = relations.resolve(graph)
    if isinstance(resolved, relations.Given) and resolved.rates_given is None:
        A = relations.interaction(resolved, len(resolved.tasks))
        off_diagonal = A - np.diag(np.diagonal(A))
        if (off_diagonal <= 0.0).all() and np.allclose(A.sum(axis=1), 1.0, rtol=0.0, atol=1e-9 * np.abs(A).max()):
            return A
    raise ValueError(f"expected a task graph, whose A is I + its Laplacian, got {graph!r}")
