"""Interaction matrices, their inverses, and every way to give them."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tests.twins import multitask_perceptron as twin

from shoal import MultitaskPerceptron, relations
from shoal.relations import Constant, Given, rates_column, resolve


def columns_of(factors: relations.Factors, n: int) -> np.ndarray:
    B, column = np.zeros((n, n)), np.zeros(n)
    for k in range(n):
        rates_column(factors, k, column)
        B[:, k] = column
    return B


@given(n=st.integers(1, 9), b=st.floats(0, 50))
def test_constant_relations_are_inverses(n: int, b: float) -> None:
    np.testing.assert_allclose(relations.constant(b).rates(n) @ twin.constant(b)(n), np.eye(n), atol=1e-12)
    np.testing.assert_allclose(resolve("pairwise").rates(n) @ twin.pairwise(n), np.eye(n), atol=1e-12)
    np.testing.assert_allclose(relations.interaction(b, n), twin.constant(b)(n), atol=1e-10)


def test_half_update() -> None:
    """Eq. 4's rates: 2/(K+1) for the own task, 1/(K+1) for the others; not twice that."""
    B = resolve("pairwise").rates(4)
    assert B[0, 0] == pytest.approx(2 / 5)
    assert B[0, 1] == pytest.approx(1 / 5)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 25), density=st.floats(0, 1), unit=st.booleans())
def test_factors_of_graphs_give_the_columns_of_the_inverse(seed: int, n: int, density: float, unit: bool) -> None:
    """Dense and by sparse factors; also for graphs in many pieces."""
    rng = np.random.default_rng(seed)
    edges = [(i, j, float(rng.uniform(0.1, 3))) for i in range(n) for j in range(i) if rng.random() < density]
    graph = relations.graph(edges, tasks=range(n))
    names: list[Any] = list(graph.tasks)
    B = np.linalg.inv(twin.laplacian(edges)(n))[np.ix_(names, names)]
    B = B / B.diagonal().max() if unit else B
    np.testing.assert_allclose(columns_of(graph.factors(unit_own_rate=unit), n), B, atol=1e-12)
    sparse = relations._sparse_factors(graph.interaction)
    B = np.linalg.inv(twin.laplacian(edges)(n))[np.ix_(names, names)]
    np.testing.assert_allclose(columns_of(sparse, n), B, atol=1e-12)


def test_no_dense_inverse_above_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Any) -> None:
        raise AssertionError("a large graph was inverted")

    monkeypatch.setattr(relations, "_inverse", refuse)
    n = relations.DENSE_LIMIT + 1
    graph = relations.graph([(k, k + 1) for k in range(n - 1)])
    factors, column = graph.factors(unit_own_rate=False), np.zeros(n)
    rates_column(factors, 7, column)
    expected = np.zeros(n)
    expected[7] = 1.0
    np.testing.assert_allclose(graph.interaction @ column, expected, atol=1e-12)
    assert len(factors.values) < 20 * n


ADJACENCY = np.array([[0, 1, 0], [1, 0, 2], [0, 2, 0]], float)
WEIGHTED = nx.Graph()
WEIGHTED.add_weighted_edges_from([(0, 1, 1.0), (1, 2, 2.0)])


@pytest.mark.parametrize(
    "graph",
    [
        [(0, 1), (1, 2, 2.0)], ((0, 1), [1, 2, 2.0]), WEIGHTED, ADJACENCY, sp.csr_matrix(ADJACENCY),
        sp.coo_array(ADJACENCY), relations.graph(ADJACENCY), relations.graph([(1, 0), (2, 1, 2)], tasks=[0, 1, 2]),
        relations.graph(ADJACENCY / 4, weight=4.0), relations.graph(WEIGHTED, weight="weight"),
        np.eye(3) + np.diag([1, 3, 2]) - ADJACENCY, sp.csr_matrix(np.eye(3) + np.diag([1, 3, 2]) - ADJACENCY),
    ],
)  # fmt: skip
def test_every_way_to_give_a_graph(graph: Any) -> None:
    resolved = resolve(graph)
    assert isinstance(resolved, Given)
    assert resolved.tasks == (0, 1, 2)
    laplacian = np.diag(ADJACENCY.sum(axis=1)) - ADJACENCY
    np.testing.assert_allclose(relations.interaction(graph, 3), np.eye(3) + laplacian)


def test_names_of_tasks() -> None:
    assert relations.graph([("b", "a")], tasks=["z"]).tasks == ("z", "b", "a")
    assert relations.graph(nx.path_graph(["x", "y"])).tasks == ("x", "y")
    assert relations.matrix(np.eye(2), tasks=["p", "q"]).tasks == ("p", "q")
    assert relations.graph(ADJACENCY, tasks="abc").tasks == ("a", "b", "c")


def test_matrix_and_rates_are_inverses() -> None:
    A = np.array([[2.0, -0.5], [-0.5, 1.0]])
    np.testing.assert_allclose(relations.matrix(A).rates(), np.linalg.inv(A))
    np.testing.assert_allclose(relations.rates(A).rates(), A)
    np.testing.assert_allclose(relations.rates(A).interaction, np.linalg.inv(A))


def test_the_callers_matrix_is_copied() -> None:
    A = np.eye(2)
    given_matrix = relations.matrix(A)
    A[0, 0] = 5.0
    assert given_matrix.interaction[0, 0] == 1.0


@given(seed=st.integers(0, 10**6), n=st.integers(1, 8), depth=st.integers(1, 4))
def test_a_hierarchy_is_its_tree_without_the_groups(seed: int, n: int, depth: int) -> None:
    """The Laplacian of the tree with 1 at the roots, its groups minimised away (a Schur complement)."""
    rng = np.random.default_rng(seed)
    parents = {f"0.{i}": f"1.{rng.integers(3)}" for i in range(n)}
    for level in range(1, depth):
        parents |= {name: f"{level + 1}.{rng.integers(2)}" for name in {*parents.values()} if name[0] == str(level)}
    found = relations.hierarchy(parents)
    groups = sorted({*parents.values()})
    nodes = [*found.tasks, *groups]
    A = np.diag([float(node not in parents) for node in nodes])
    for node, parent in parents.items():
        i, j = nodes.index(node), nodes.index(parent)
        A[[i, j], [i, j]] += 1.0
        A[[i, j], [j, i]] -= 1.0
    schur = A[:n, :n] - A[:n, n:] @ np.linalg.solve(A[n:, n:], A[n:, :n])
    np.testing.assert_allclose(found.interaction @ found.rates(), np.eye(n), atol=1e-9)
    np.testing.assert_allclose(found.interaction, schur, atol=1e-9)


def test_a_task_without_rows_is_answered_as_its_group() -> None:
    parents = {"a": "north", "b": "north", "new": "north", "c": "south"}
    learner = MultitaskPerceptron(relation=relations.hierarchy(parents))
    learner.partial_fit([[1.0, 0.0], [0.0, 1.0], [3.0, 3.0]], [-1, -1, -1], ["a", "b", "c"], classes=[-1, 1])
    weights = dict(zip(learner.tasks_, learner.coef_.tolist(), strict=True))
    assert weights == {"a": [-2, -1], "b": [-1, -2], "new": [-1, -1], "c": [-6, -6]}


def test_names_and_numbers() -> None:
    assert resolve("independent") == resolve(0) == Constant(0.0)
    assert resolve(np.float64(2)) == relations.constant(2) == Constant(2.0)
    assert resolve("pooled") == Constant(np.inf)
    with pytest.raises(ValueError, match="no interaction matrix"):
        relations.interaction("pooled", 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: relations.matrix(np.ones((2, 3))), "must be a square matrix"),
        (lambda: relations.matrix([[1.0, 0.5], [0.0, 1.0]]), "finite and symmetric"),
        (lambda: relations.matrix([[1.0, np.nan], [np.nan, 1.0]]), "finite and symmetric"),
        (lambda: relations.matrix([[1.0, 2.0], [2.0, 1.0]]), "not positive definite"),
        (lambda: relations.rates([[1.0, 1.0], [1.0, 1.0]]), "not positive definite"),
        (lambda: relations.matrix(np.eye(2), tasks=["a"]), "tasks must name 2 different tasks"),
        (lambda: relations.matrix(np.eye(2), tasks=["a", "a"]), "tasks must name 2 different tasks"),
        (lambda: relations.attention(np.ones((2, 3)) / 3), r"attention P must be a square matrix, got shape \(2, 3\)"),
        (lambda: relations.attention([[0.5, 0.5], [1.5, -0.5]]), "attention P must hold finite numbers >= 0, got -0.5"),
        (
            lambda: relations.attention([[0.5, 0.5], [np.nan, 1.0]]),
            "attention P must hold finite numbers >= 0, got nan",
        ),
        (
            lambda: relations.attention([[0.5, 0.5], [0.5, 0.4]], tasks="ab"),
            "must sum to 1; that of task 'b' sums to 0.9",
        ),
        (lambda: relations.attention(np.eye(2), tasks=["a"]), "tasks must name 2 different tasks"),
        (lambda: relations.graph([(0, 0)]), "no loops"),
        (lambda: relations.graph([(0, 1, -1.0)]), "finite and above 0"),
        (lambda: relations.graph([(0, 1, 0.0)]), "finite and above 0"),
        (lambda: relations.graph([(0, 1, np.inf)]), "finite and above 0"),
        (lambda: relations.graph([(0, 1)], weight=-1.0), "finite and above 0"),
        (lambda: relations.graph([(0, 1, 2, 3)]), r"an edge is \(task, task\)"),
        (lambda: relations.graph([0, 1]), r"an edge is \(task, task\)"),
        (lambda: relations.graph([]), "at least one task"),
        (lambda: relations.graph(np.array([[0.0, 1.0], [2.0, 0.0]])), "square and symmetric"),
        (lambda: relations.graph(np.zeros((2, 3))), "square and symmetric"),
        (lambda: relations.hierarchy({}), "needs a task"),
        (lambda: relations.hierarchy({"a": "b", "b": "c", "c": "b"}), "the group 'b' is within itself"),
        (lambda: relations.constant(-0.1), "b must be a number >= 0"),
        (lambda: relations.constant(float("nan")), "b must be a number >= 0"),
        (lambda: resolve("nearest"), "relation must be"),
        (lambda: resolve(True), "relation must be"),
        (lambda: resolve(None), "relation must be"),
    ],
)
def test_bad_relations(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


A_OF_A_FILE = np.array([[2.0, -0.5], [-0.5, 1.0]])


def test_relations_of_a_file() -> None:
    """Sparse or dense, or the inverse: they come back as they were given."""
    for interaction in (A_OF_A_FILE, sp.csc_matrix(A_OF_A_FILE), sp.csr_matrix(A_OF_A_FILE)):
        found = relations.checked(["a", "b"], interaction, None)
        assert found.tasks == ("a", "b")
        assert sp.issparse(found.interaction) == sp.issparse(interaction)
        np.testing.assert_allclose(found.rates() @ A_OF_A_FILE, np.eye(2), atol=1e-12)
    np.testing.assert_array_equal(relations.checked(["a", "b"], None, A_OF_A_FILE).rates(), A_OF_A_FILE)


@pytest.mark.parametrize(
    ("tasks", "forged"),
    [
        ("abc", A_OF_A_FILE),
        ("aa", A_OF_A_FILE),
        ("ab", [[2.0, np.inf], [np.inf, 1.0]]),
        ("ab", [[0.0, 0.0], [0.0, 1.0]]),
        ("ab", [[2.0, 0.5], [-0.5, 1.0]]),
        ("ab", [[2.0, 0.5, 0.0], [0.5, 1.0, 0.0]]),
    ],
)
def test_forged_relations_are_refused(tasks: str, forged: Any) -> None:
    with pytest.raises(ValueError, match="relation"):
        relations.checked(tasks, sp.csc_matrix(forged), None)
