"""No stream and no comparator breaks Theorem 6, in its general and its printed form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.streams import draw
from tests.theory.comparators import comparator_for, kinds, scales
from tests.twins.multitask_perceptron import constant, laplacian, pairwise
from tests.twins.p_norm_perceptron import root

from shoal import PNormPerceptron
from shoal.theory import p_norm_mistake_bound

K = 4
EDGES = [(0, 1, 1.0), (1, 2, 0.5), (2, 3, 3.0)]
RELATIONS = {
    "independent": ("independent", np.eye(K)),
    "pairwise": ("pairwise", pairwise(K)),
    "b": (1.7, constant(1.7)(K)),
    "graph": (EDGES, laplacian(EDGES)(K)),
}


def printed(U: np.ndarray, X: np.ndarray, y: np.ndarray, task: np.ndarray, mistaken: np.ndarray) -> float:
    """Theorem 6 word by word: the pairwise relation, p = 2 ln max(K, d)."""
    K, d = U.shape
    L = sum(max(0.0, 1 - y[t] * (U[task[t]] @ X[t])) for t in np.flatnonzero(mistaken))
    apart = sum(np.abs(U[i] + sum(U[i] - U[j] for j in range(K) if j != i)).sum() for i in range(K))
    largest = np.abs(X[mistaken]).max(initial=0.0)
    H = 8 * math.e**2 * math.log(max(K, d)) / (K + 1) ** 2 * largest**2 * apart**2
    return float(L + H + math.sqrt(2 * H * L))


@pytest.mark.parametrize("name", RELATIONS)
@given(
    seed=st.integers(0, 10**6), kind=kinds, scale=scales, length=st.sampled_from([1e-3, 1.0, 100.0]),
    p=st.sampled_from(["auto", 2, 3.5, 20]), variant=st.sampled_from(["printed", "sqrt"]),
)  # fmt: skip
def test_no_stream_breaks_the_mistake_bound(
    name: str, seed: int, kind: str, scale: float, length: float, p: float | str, variant: str
) -> None:
    relation, _ = RELATIONS[name]
    stream = draw(seed, K=K, d=4, n_rows=80, protocol="one", scale=length)
    learner = PNormPerceptron(relation=relation, p=p, variant=variant).add_tasks(range(K))
    mistaken = (learner.test_then_train(stream.X, stream.y, stream.task) >= 0) != (stream.y > 0)
    U = comparator_for(stream, kind, scale / length, seed, K)
    task = stream.task.tolist()
    for X in (stream.X, stream.sparse):
        bound = p_norm_mistake_bound(
            U, X, stream.y, task, relation=relation, p=p, variant=variant, mistaken=mistaken, tasks=range(K)
        )
        assert mistaken.sum() <= bound * (1 + 1e-12)
    if name == "pairwise" and (p, variant) == ("auto", "printed"):
        assert mistaken.sum() <= bound <= printed(U, stream.X, stream.y, stream.task, mistaken) * (1 + 1e-12)


@pytest.mark.parametrize("variant", ["printed", "sqrt"])
@pytest.mark.parametrize("name", RELATIONS)
def test_the_bound_by_hand(name: str, variant: str) -> None:
    relation, A = RELATIONS[name]
    rng = np.random.default_rng(0)
    U, X, y = rng.normal(size=(K, 3)), rng.normal(size=(K, 3)), np.array([1.0, -1.0, 1.0, 1.0])
    M = np.linalg.inv(A) if variant == "printed" else root(np.linalg.inv(A))
    p, q = 3.0, 1.5
    mistaken = np.array([True, False, True, True])
    size = max(((np.abs(X[t]) ** p).sum() * (np.abs(M[:, t]) ** p).sum()) ** (2 / p) for t in (0, 2, 3))
    H = (p - 1) * size * (np.abs(np.linalg.inv(M) @ U) ** q).sum() ** (2 / q)
    L = sum(max(0.0, 1 - y[t] * (U[t] @ X[t])) for t in (0, 2, 3))
    options: dict[str, Any] = {"relation": relation, "p": p, "variant": variant, "mistaken": mistaken}
    bound = p_norm_mistake_bound(U, X, y, list(range(K)), **options)
    assert bound == pytest.approx(L + H + math.sqrt(H * L), rel=1e-12)
    assert p_norm_mistake_bound(U, X, y, list(range(K)), **{**options, "mistaken": mistaken & False}) == 0.0


def test_the_bound_prefers_a_large_p_for_sparse_comparators() -> None:
    """One of 500 features matters, rows are dense: p = 2 pays with d, the automatic p with ln d."""
    rng = np.random.default_rng(0)
    X, task = rng.choice([-1.0, 1.0], size=(2000, 500)), np.arange(2000) % K
    U = np.zeros((K, 500))
    U[:, 0] = 1.0
    bounds = {}
    orders: tuple[float | str, ...] = (2, "auto")
    for p in orders:
        learner = PNormPerceptron(p=p).add_tasks(range(K))
        mistaken = (learner.test_then_train(X, X[:, 0], task) >= 0) != (X[:, 0] > 0)
        bounds[p] = p_norm_mistake_bound(U, X, X[:, 0], task, p=p, mistaken=mistaken)
        assert mistaken.sum() <= bounds[p]
    assert bounds["auto"] < bounds[2] / 3
    assert bounds["auto"] < len(X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"variant": "new"}, "variant must be"), ({"p": 1.0}, "p must be a finite number >= 2"),
        ({"mistaken": [1, 0]}, "mistaken must hold one bool per row"),
        ({"comparator": np.ones((3, 2))}, "one row per task: expected 2, got 3"),
    ],
)  # fmt: skip
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "comparator": np.ones((2, 2)),
        "X": np.eye(2),
        "y": [1, -1],
        "task": ["a", "b"],
        "mistaken": [True, True],
    }
    with pytest.raises(ValueError, match=message):
        p_norm_mistake_bound(**{**good, **arguments})


def test_pooled_has_no_bound() -> None:
    learner: dict[str, Any] = {
        "X": np.eye(2),
        "y": [1, -1],
        "task": ["a", "b"],
        "mistaken": [True, True],
        "relation": "pooled",
    }
    assert p_norm_mistake_bound(np.ones((2, 2)), **learner) == math.inf
