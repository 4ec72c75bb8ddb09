"""Theorem 1 for any kernel, and Corollary 5 by the connectivity of the graph: nothing breaks them."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from tests.streams import draw
from tests.theory.comparators import comparator_for, kinds, scales

from shoal import KernelPerceptron, MultitaskPerceptron, relations
from shoal.theory import graph_rate_bound, kernel_mistake_bound, perceptron_mistake_bound, task_complexity

K = 4
RELATIONS: list[Any] = [
    "independent", "pairwise", 1.7, "pooled", [(0, 1, 1.0), (1, 2, 0.5), (2, 3, 3.0)],
    relations.matrix(np.eye(K) * 3 + 0.5),
]  # fmt: skip


@given(
    seed=st.integers(0, 10**6), relation=st.sampled_from(RELATIONS), kernel=st.sampled_from(["rbf", laplacian_kernel]),
    gamma=st.sampled_from([0.01, 0.3, 3.0]), kind=st.sampled_from(["equal", "random", "best", "learned"]), scale=scales,
)  # fmt: skip
def test_no_stream_breaks_the_bound_of_any_kernel(
    seed: int, relation: Any, kernel: Any, gamma: float, kind: str, scale: float
) -> None:
    stream = draw(seed, K=K, d=4, n_rows=80, protocol="one")
    learner = KernelPerceptron(relation=relation, kernel=kernel, gamma=gamma).add_tasks(range(K))
    mistaken = (learner.test_then_train(stream.X, stream.y, stream.task) >= 0) != (stream.y > 0)
    rng, n = np.random.default_rng(seed), len(stream.y)
    if kind == "best":  # interpolates the labels of each task
        G = rbf_kernel(stream.X, gamma=gamma) if kernel == "rbf" else laplacian_kernel(stream.X)
        ridge = np.linalg.solve(G + 0.1 * np.eye(n), stream.y)
        C = scale * ridge * (stream.task == np.arange(K)[:, None])
    elif kind == "learned":  # the learner's own last functions
        C = np.zeros((K, n))
        kept = learner.support_
        C[:, kept] = scale * learner.relation_[:, stream.task[kept]] * stream.y[kept]
    else:
        C = scale * rng.normal(size=(1 if kind == "equal" else K, n)) / math.sqrt(n) * np.ones((K, 1))
    for X in (stream.X, stream.sparse):
        bound = kernel_mistake_bound(
            C, X, stream.y, stream.task, relation=relation, kernel=kernel, gamma=gamma, mistaken=mistaken,
            tasks=range(K),
        )  # fmt: skip
        assert mistaken.sum() <= bound
    assert math.isinf(bound) == (relation == "pooled" and kind in ("random", "best") and scale > 0)


@pytest.mark.parametrize("relation", [*RELATIONS[:3], RELATIONS[4]])
def test_with_the_linear_kernel_it_is_the_bound_of_weights(relation: Any) -> None:
    stream = draw(0, K=K, d=4, n_rows=80, protocol="one")
    C = np.random.default_rng(1).normal(size=(K, len(stream.y)))
    arguments = {"relation": relation, "mistaken": stream.y > 0, "tasks": range(K)}
    by_weights = perceptron_mistake_bound(C @ stream.X, stream.X, stream.y, stream.task, **arguments)
    found = kernel_mistake_bound(C, stream.X, stream.y, stream.task, kernel="linear", **arguments)
    assert found == pytest.approx(by_weights, rel=1e-9)
    with pytest.raises(ValueError, match="one column per row: expected 80, got 79"):
        kernel_mistake_bound(C[:, 1:], stream.X, stream.y, stream.task, **arguments)
    with pytest.raises(ValueError, match="kernel must be"):
        kernel_mistake_bound(C, stream.X, stream.y, stream.task, kernel="poly", **arguments)


@given(
    seed=st.integers(0, 10**6), count=st.integers(2, 7), density=st.floats(0.0, 1.0), kind=kinds, scale=scales,
    weight=st.floats(0.01, 100.0),
)  # fmt: skip
def test_no_graph_breaks_the_bound_by_connectivity(
    seed: int, count: int, density: float, kind: str, scale: float, weight: float
) -> None:
    rng = np.random.default_rng(seed)
    edges = [(i, j, weight * rng.random() + 1e-3) for i in range(count) for j in range(i) if rng.random() < density]
    graph = relations.graph(edges, tasks=list(range(count)))
    bound = graph_rate_bound(graph)
    assert graph.rates().diagonal().max() <= bound * (1 + 1e-12) <= 1 + 1e-12
    stream = draw(seed, K=count, d=4, n_rows=60, protocol="one")
    stream = stream._replace(X=stream.X / np.linalg.norm(stream.X, axis=1, keepdims=True))
    learner = MultitaskPerceptron(relation=graph).add_tasks(range(count))
    mistaken = (learner.test_then_train(stream.X, stream.y, stream.task) >= 0) != (stream.y > 0)
    U = comparator_for(stream, kind, scale, seed, count)
    f = np.einsum("ij,ij->i", stream.X, U[stream.task])
    L, D = np.maximum(0, 1 - stream.y * f)[mistaken].sum(), bound * task_complexity(U, graph)
    assert mistaken.sum() <= (L + D + math.sqrt(D * L)) * (1 + 1e-12)


def test_the_connectivities_that_the_paper_names() -> None:
    """The clique, where c_G = 2/(K + 1); complete bipartite graphs, where lambda_2 is the smaller side; no edges."""
    assert graph_rate_bound(nx.complete_graph(7)) == pytest.approx(2 / 8)
    assert graph_rate_bound(nx.complete_bipartite_graph(3, 5)) == pytest.approx(1 / 8 + 7 / 8 / 4)
    assert graph_rate_bound(np.array([[0.0, 2.0], [2.0, 0.0]])) == pytest.approx(1 / 2 + 1 / 2 / 5)
    assert graph_rate_bound(nx.empty_graph(3)) == graph_rate_bound(nx.empty_graph(1)) == 1.0
    for other in ("pairwise", 2.0, relations.rates(np.eye(2)), np.eye(2) * 2):
        with pytest.raises(ValueError, match="expected a task graph"):
            graph_rate_bound(other)
