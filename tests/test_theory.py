"""No stream and no comparator breaks the papers' bounds, and the bounds say something."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from tests.streams import Stream, draw
from tests.twins import multitask_perceptron as twin

from shoal import OSMTL, MultitaskPerceptron, relations
from shoal.theory import optimal_sharing, osmtl_regret_bound, perceptron_mistake_bound, task_complexity

K = 4
EDGES = [(0, 1, 1.0), (1, 2, 0.5), (2, 3, 3.0)]
RELATIONS: dict[str, tuple[Any, np.ndarray | None]] = {
    "independent": ("independent", np.eye(K)),
    "pairwise": ("pairwise", twin.pairwise(K)),
    "b": (1.7, twin.constant(1.7)(K)),
    "graph": (EDGES, twin.laplacian(EDGES)(K)),
    "matrix": (relations.matrix(np.eye(K) * 3 + 0.5), np.eye(K) * 3 + 0.5),
    "rates": (relations.rates(np.eye(K) * 3 + 0.5), np.linalg.inv(np.eye(K) * 3 + 0.5)),
    "pooled": ("pooled", None),
}


@pytest.mark.parametrize("name", [name for name, (_, A) in RELATIONS.items() if A is not None])
@given(seed=st.integers(0, 10**6))
def test_closed_forms_are_the_quadratic_form(name: str, seed: int) -> None:
    relation, A = RELATIONS[name]
    assert A is not None
    U = np.random.default_rng(seed).normal(size=(K, 3)) + 2.0
    expected = np.trace(U.T @ A @ U)
    np.testing.assert_allclose(task_complexity(U, relation), expected, rtol=1e-12)


def test_corollaries_word_by_word() -> None:
    U = np.random.default_rng(0).normal(size=(K, 3))
    size = (U**2).sum()
    apart = {(i, j): ((U[i] - U[j]) ** 2).sum() for i in range(K) for j in range(i + 1, K)}
    assert task_complexity(U, "pairwise") == pytest.approx(size + sum(apart.values()))
    variance = np.mean([((u - U.mean(axis=0)) ** 2).sum() for u in U])
    assert task_complexity(U, 2.5) == pytest.approx(size + 2.5 * K * variance)
    graph = nx.path_graph(K)
    edges = size + sum(apart[edge] for edge in graph.edges)
    assert task_complexity(U, graph) == task_complexity(U, sp.csr_matrix(nx.to_numpy_array(graph)))
    assert task_complexity(U, graph) == pytest.approx(edges)
    assert task_complexity(U, "pooled") == math.inf
    assert task_complexity(np.tile(U[0], (K, 1)), "pooled") == pytest.approx(K * (U[0] ** 2).sum())


@given(seed=st.integers(0, 10**6), spread=st.floats(0.01, 3.0), count=st.integers(2, 8))
def test_optimal_sharing_is_optimal(seed: int, spread: float, count: int) -> None:
    rng = np.random.default_rng(seed)
    U = rng.normal(size=3) + spread * rng.normal(size=(count, 3))

    def size_of_bound(b: float) -> float:
        return (b + count) / ((1 + b) * count) * task_complexity(U, b)

    best = optimal_sharing(U)
    others = [0.0, *(best * np.array([0.5, 0.9, 1.1, 2.0])), best + 0.1]
    assert all(size_of_bound(best) <= size_of_bound(b) * (1 + 1e-12) for b in others)


def test_optimal_sharing_at_its_ends() -> None:
    assert optimal_sharing(np.ones((3, 2))) == math.inf
    assert optimal_sharing(np.zeros((3, 2))) == 0.0
    assert optimal_sharing(np.ones((1, 2))) == 0.0
    assert optimal_sharing([[1.0], [-1.0]]) == 0.0


def comparator_for(stream: Stream, kind: str, scale: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if kind == "equal":
        return np.tile(rng.normal(size=stream.X.shape[1]) * scale, (K, 1))
    if kind == "random":
        return rng.normal(size=(K, stream.X.shape[1])) * scale
    return scale * np.stack([  # what fits each task best in hindsight
        np.linalg.lstsq(stream.X[stream.task == k], stream.y[stream.task == k])[0] for k in range(K)
    ])  # fmt: skip


kinds = st.sampled_from(["equal", "random", "best"])
scales = st.sampled_from([0.0, 0.1, 1.0, 3.0, 10.0])


@pytest.mark.parametrize("name", RELATIONS)
@given(seed=st.integers(0, 10**6), kind=kinds, scale=scales, length=st.sampled_from([1e-3, 1.0, 100.0]))
def test_no_stream_breaks_the_mistake_bound(name: str, seed: int, kind: str, scale: float, length: float) -> None:
    """Theorem 1, Corollaries 3-5; rows of any length."""
    relation, _ = RELATIONS[name]
    stream = draw(seed, K=K, d=4, n_rows=80, protocol="one", scale=length)
    learner = MultitaskPerceptron(relation=relation).add_tasks(range(K))
    decisions = learner.test_then_train(stream.X, stream.y, stream.task)
    mistaken = (decisions >= 0) != (stream.y > 0)
    U = comparator_for(stream, kind, scale / length, seed)
    task = stream.task.tolist()
    for X in (stream.X, stream.sparse):
        bound = perceptron_mistake_bound(U, X, stream.y, task, relation=relation, mistaken=mistaken, tasks=range(K))
        assert mistaken.sum() <= bound
    assert learner.n_updates_ == mistaken.sum()


def test_the_mistake_bound_by_hand() -> None:
    """Two mistaken rows of one task, eq. 4 with K = 2: B_ii = 2/3, A = [[2, -1], [-1, 2]]."""
    U = np.array([[1.0, 0.0], [0.0, 1.0]])
    X, y = np.array([[2.0, 0.0], [0.5, 1.0], [9.0, 9.0]]), np.array([1, 1, 1])
    task, mistaken = ["a", "a", "b"], np.array([True, True, False])
    D = 2 / 3 * 4.0 * (1 + 1 + 2)
    L = 0.0 + 0.5
    bound = perceptron_mistake_bound(U, X, y, task, mistaken=mistaken)
    assert bound == pytest.approx(L + D + math.sqrt(L * D))
    swapped = perceptron_mistake_bound(U[::-1], X, y, task, mistaken=mistaken, tasks=["b", "a"])
    assert swapped == pytest.approx(bound)
    named = relations.graph([("b", "a")])  # a clique of two: eq. 4; its own order of tasks
    assert perceptron_mistake_bound(U[::-1], X, y, task, relation=named, mistaken=mistaken) == pytest.approx(bound)
    by_name = perceptron_mistake_bound(U, X, y, task, relation=named, mistaken=mistaken, tasks=["a", "b"])
    assert by_name == pytest.approx(bound)
    assert perceptron_mistake_bound(U, X, y, task, mistaken=mistaken & False) == 0.0
    assert perceptron_mistake_bound(U, X, y, task, relation="pooled", mistaken=mistaken) == math.inf
    perfect = perceptron_mistake_bound(10 * U, X, y, task, relation="pooled", mistaken=np.array([True, False, False]))
    assert perfect == math.inf  # no loss, infinite complexity


def related_stream() -> tuple[Stream, np.ndarray]:
    """20 nearly equal tasks with a margin, and weights that separate them."""
    rng = np.random.default_rng(0)
    n, count, d = 4000, 20, 10
    U = rng.normal(size=d) + 0.02 * rng.normal(size=(count, d))
    X, task = rng.normal(size=(n, d)), np.append(np.arange(count), rng.integers(count, size=n - count))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    f = np.einsum("ij,ij->i", X, U[task])
    keep = (np.abs(f) > 0.3) | (np.arange(n) < count)
    f = np.where(f == 0, 1.0, f)
    return Stream(X[keep], np.sign(f[keep]), task[keep], np.arange(keep.sum())), U / 0.3


def test_the_mistake_bound_is_not_vacuous_and_prefers_sharing() -> None:
    stream, U = related_stream()
    bounds, mistakes = {}, {}
    for b in (0.0, 20.0, optimal_sharing(U)):
        learner = MultitaskPerceptron(relation=b).add_tasks(range(20))
        mistaken = (learner.test_then_train(stream.X, stream.y, stream.task) >= 0) != (stream.y > 0)
        mistakes[b] = mistaken.sum()
        bounds[b] = perceptron_mistake_bound(U, stream.X, stream.y, stream.task, relation=b, mistaken=mistaken)
    best = optimal_sharing(U)
    assert bounds[best] <= bounds[20.0] < bounds[0.0] / 5
    assert mistakes[20.0] < mistakes[0.0]
    assert bounds[20.0] < len(stream.y)  # it is below what anyone could do wrong
    assert all(bounds[b] < 15 * mistakes[b] for b in bounds)


@given(
    seed=st.integers(0, 10**6), kind=kinds, scale=scales, length=st.sampled_from([0.1, 1.0, 30.0]),
    alpha=st.floats(0.05, 1.0) | st.just("auto"), C=st.floats(0.001, 2.0) | st.just("auto"), lam=st.floats(0.05, 20.0),
    attention=st.sampled_from(["exponential", "threshold", "given"]),
)  # fmt: skip
def test_no_stream_breaks_the_regret_bound(
    seed: int, kind: str, scale: float, length: float, alpha: Any, C: Any, lam: float, attention: str
) -> None:
    """Theorem 1 of the OSMTL paper, and its schedule; margin trigger, any lam and attention, rows of any length."""
    stream = draw(seed, K=K, d=4, n_rows=60, protocol="all", scale=length)
    U = comparator_for(stream, kind, scale / length, seed)
    P: Any = np.tril(np.ones((K, K))) / np.arange(1, K + 1)[:, None] if attention == "given" else attention
    learner = OSMTL(alpha=alpha, C=C, lam=lam, attention=P, trigger="margin").add_tasks(range(K))
    f = learner.test_then_train(stream.X, stream.y, stream.task, rounds=stream.rounds)
    best = np.einsum("ij,ij->i", stream.X, U[stream.task])
    regret = np.maximum(0, 1 - stream.y * f) - np.maximum(0, 1 - stream.y * best)
    regret_of_tasks = np.bincount(stream.task, regret, minlength=K)
    for X in (stream.X, stream.sparse):
        bound = osmtl_regret_bound(U, X, stream.y, stream.task, rounds=stream.rounds, alpha=alpha, C=C, tasks=range(K))
        assert (regret_of_tasks <= bound * (1 + 1e-9)).all()


def test_the_regret_bound_by_hand() -> None:
    U = np.array([[1.0, 0.0], [0.0, 2.0]])
    X = np.array([[0.5, 0.0], [0.0, 1.0], [0.0, 3.0], [1.0, 0.0]])  # rounds (a, b), (b, a)
    y, task = np.array([1, 1, 1, -1]), ["a", "b", "b", "a"]
    own = np.array([0.5 + 2.0, 0.0 + 0.0])  # l*_aa, l*_bb
    other = np.array([1.0 + 1.0, 1.0 + 1.0])  # l*_ab, l*_ba
    alpha, C, T, R2 = 0.25, 0.5, 2, 9.0
    expected = (np.array([1.0, 4.0]) / (2 * C) + (1 - alpha) * (own + other) + C * R2 * T / 2) / alpha
    np.testing.assert_allclose(osmtl_regret_bound(U, X, y, task, alpha=alpha, C=C), expected)
    named = osmtl_regret_bound(U[::-1], X, y, task, alpha=alpha, C=C, tasks=["b", "a"], rounds=[0, 0, 1, 1])
    np.testing.assert_allclose(named, expected[::-1])
    assert np.isinf(osmtl_regret_bound(U, X, y, task, alpha=0.0, C=C)).all()


def test_the_regret_bound_is_not_vacuous() -> None:
    """On a separable stream of one task the regret against 0 loss is within a small factor of the bound."""
    rng = np.random.default_rng(0)
    w = np.array([1.0, -1.0, 0.5])
    X = rng.normal(size=(2000, 3))
    X = X[np.abs(X @ w) > 0.5]
    y, C = np.sign(X @ w), 0.02
    f = OSMTL(alpha=1.0, C=C, trigger="margin").test_then_train(X, y)
    loss = np.maximum(0, 1 - y * f).sum()
    [bound] = osmtl_regret_bound(2 * w[None], X, y, alpha=1.0, C=C)
    assert loss < bound < 12 * loss
    assert bound < len(y)  # W = 0 would lose 1 a row
    X, y = np.tile(X, (40, 1)), np.tile(y, 40)  # the horizon doubles 15 times
    f = OSMTL(alpha="auto", C="auto", trigger="margin").test_then_train(X, y)
    [bound] = osmtl_regret_bound(2 * w[None], X, y, alpha="auto", C="auto")
    assert np.maximum(0, 1 - y * f).sum() < bound < len(y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"comparator": np.ones(2)}, "the comparator must be a finite"),
        ({"comparator": [[np.nan, 1.0]] * 2}, "the comparator must be a finite"),
        ({"comparator": np.ones((3, 2))}, "one row per task: expected 2, got 3"),
        ({"tasks": ["a", "z"]}, "task 'b' is not one of the 2 tasks"),
        ({"mistaken": [1, 0]}, "mistaken must hold one bool per row"),
        ({"mistaken": [True]}, "mistaken must hold one bool per row"),
        ({"relation": [("a", "b")], "tasks": ["a", "z"]}, "tasks must be those that the relation names"),
        ({"relation": [("a", "z")]}, "task 'b' is not one of the 2 tasks"),
    ],
)
def test_bad_arguments_of_the_mistake_bound(arguments: dict[str, Any], message: str) -> None:
    good = {"comparator": np.ones((2, 2)), "X": np.eye(2), "y": [1, -1], "task": ["a", "b"], "mistaken": [True, True]}
    with pytest.raises(ValueError, match=message):
        perceptron_mistake_bound(**{**good, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": 1.5}, r"alpha must be a number in \[0, 1\] or 'auto'"),
        ({"C": 0.0}, "C must be a finite number > 0"),
        ({"C": "doubling"}, "C must be a finite number > 0 or 'auto'"),
        ({"rounds": [0, 1, 2, 2]}, "row 0: its round has 1 of 2 tasks"),
        ({"task": ["a", "b", "a", "c"]}, "expected 3, got 2"),
    ],
)
def test_bad_arguments_of_the_regret_bound(arguments: dict[str, Any], message: str) -> None:
    good = {"comparator": np.ones((2, 2)), "X": np.ones((4, 2)), "y": [1, -1, 1, 1], "task": ["a", "b", "b", "a"]}
    with pytest.raises(ValueError, match=message):
        osmtl_regret_bound(**{**good, "alpha": 0.5, "C": 1.0, **arguments})


def test_complexity_needs_the_tasks_of_the_relation() -> None:
    with pytest.raises(ValueError, match=r"expected 4 .*, got 2"):
        task_complexity(np.ones((2, 2)), EDGES)
