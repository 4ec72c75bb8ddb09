"""Theorem 8: no stream and no comparator breaks it, and it says something."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.streams import draw
from tests.theory.comparators import comparator_for, kinds, scales

from shoal import SecondOrderPerceptron, relations
from shoal.theory import perceptron_mistake_bound, second_order_mistake_bound

K = 4
RELATIONS: dict[str, Any] = {
    "independent": "independent",
    "pairwise": "pairwise",
    "b": 1.7,
    "graph": [(0, 1, 1.0), (1, 2, 0.5), (2, 3, 3.0)],
    "matrix": relations.matrix(np.eye(K) * 3 + 0.5),
    "rates": relations.rates(np.eye(K) * 3 + 0.5),
    "pooled": "pooled",
}


@pytest.mark.parametrize("form", ["dual", "primal"])
@pytest.mark.parametrize("name", RELATIONS)
@given(
    seed=st.integers(0, 10**6), kind=kinds, scale=scales, length=st.sampled_from([1e-3, 1.0, 100.0]),
    a=st.sampled_from([0.01, 1.0, 20.0]),
)  # fmt: skip
def test_no_stream_breaks_the_bound(
    name: str, form: str, seed: int, kind: str, scale: float, length: float, a: float
) -> None:
    relation = RELATIONS[name]
    stream = draw(seed, K=K, d=4, n_rows=80, protocol="one", scale=length)
    learner = SecondOrderPerceptron(relation=relation, a=a, form=form).add_tasks(range(K))
    mistaken = (learner.test_then_train(stream.X, stream.y, stream.task) >= 0) != (stream.y > 0)
    U = comparator_for(stream, kind, scale / length, seed, K)
    for X in (stream.X, stream.sparse):
        bound = second_order_mistake_bound(
            U, X, stream.y, stream.task, relation=relation, a=a, mistaken=mistaken, tasks=range(K)
        )
        assert mistaken.sum() <= bound
    assert learner.n_updates_ == mistaken.sum()


def test_the_bound_by_hand() -> None:
    """Two mistaken rows of two tasks, eq. 4 with K = 2: B = [[2, 1], [1, 2]]/3, A = [[2, -1], [-1, 2]]."""
    U = np.array([[1.0, 0.0], [0.0, 1.0]])
    X, y, task = np.array([[2.0, 0.0], [1.0, 0.5], [9.0, 9.0]]), np.array([1, 1, 1]), ["a", "b", "b"]
    mistaken, a = np.array([True, True, False]), 0.5
    G = np.array([[2 * 4.0, 2.0], [2.0, 2 * 1.25]]) / 3
    squares = 2.0**2 + 0.5**2
    expected = 0.5 + math.sqrt((a * (1 + 1 + 2) + squares) * math.log(np.linalg.det(np.eye(2) + G / a)))
    assert second_order_mistake_bound(U, X, y, task, a=a, mistaken=mistaken) == pytest.approx(expected)
    swapped = second_order_mistake_bound(U[::-1], X, y, task, a=a, mistaken=mistaken, tasks=["b", "a"])
    assert swapped == pytest.approx(expected)
    named = relations.graph([("b", "a")])  # a clique of two: eq. 4
    by_name = second_order_mistake_bound(U[::-1], X, y, task, relation=named, a=a, mistaken=mistaken)
    assert by_name == pytest.approx(expected)
    assert second_order_mistake_bound(U, X, y, task, mistaken=mistaken & False) == 0.0
    assert second_order_mistake_bound(U, X, y, task, relation="pooled", mistaken=mistaken) == math.inf


def test_the_bound_is_not_vacuous_and_beats_the_first_order_one_on_uneven_features() -> None:
    """One direction of the rows is 20 times as long as the other nine."""
    rng = np.random.default_rng(0)
    w = np.append(0.05, rng.normal(size=9))
    X, task = rng.normal(size=(4000, 10)) * np.append(20.0, np.ones(9)), rng.integers(5, size=4000)
    X = X[np.abs(X @ w) > 0.5]
    task, y = task[: len(X)], np.sign(X @ w)
    mistaken = (SecondOrderPerceptron().add_tasks(range(5)).test_then_train(X, y, task) >= 0) != (y > 0)
    U = np.tile(2 * w, (5, 1))
    bound = second_order_mistake_bound(U, X, y, task, mistaken=mistaken, tasks=range(5))
    assert mistaken.sum() <= bound < 15 * mistaken.sum()
    assert bound < len(y)
    assert bound < perceptron_mistake_bound(U, X, y, task, mistaken=mistaken, tasks=range(5)) / 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"comparator": np.ones(2)}, "the comparator must be a finite"),
        ({"comparator": np.ones((3, 2))}, "one row per task: expected 2, got 3"),
        ({"mistaken": [1, 0]}, "mistaken must hold one bool per row"),
        ({"a": 0.0}, "a must be a finite number > 0"),
        ({"relation": [("a", "b")], "tasks": ["a", "z"]}, "tasks must be those that the relation names"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    good = {"comparator": np.ones((2, 2)), "X": np.eye(2), "y": [1, -1], "task": ["a", "b"], "mistaken": [True, True]}
    with pytest.raises(ValueError, match=message):
        second_order_mistake_bound(**{**good, **arguments})
