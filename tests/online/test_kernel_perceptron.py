"""The kernel Perceptron against its twin; kernels by name and as functions; the budget."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, rbf_kernel
from tests.streams import Stream, assert_close, core_of, draw
from tests.twins import multitask_perceptron as matrices
from tests.twins import second_order as twin

from shoal import KernelPerceptron, MultitaskPerceptron, load

K = 5
EDGES = [(0, 1, 1.0), (1, 2, 0.5), (0, 3, 2.0), (3, 4, 1.0)]
_root = np.random.default_rng(0).normal(size=(K, K))
MATRIX = _root @ _root.T + np.eye(K)
CONSTANT = {
    "independent": ("independent", matrices.inverse_of(matrices.constant(0.0))),
    "pairwise": ("pairwise", matrices.inverse_of(matrices.pairwise)),
    "b=0.7": (0.7, matrices.inverse_of(matrices.constant(0.7))),
    "pooled": ("pooled", matrices.pooled),
}
GIVEN = {
    "graph": (EDGES, matrices.inverse_of(matrices.laplacian(EDGES))),
    "matrix": (MATRIX, lambda K: np.linalg.inv(MATRIX)),
}
ALL = CONSTANT | GIVEN
KERNELS: dict[str, tuple[dict[str, Any], Any]] = {
    "linear": ({"kernel": "linear"}, twin.linear),
    "rbf": ({"kernel": "rbf", "gamma": 0.3}, twin.rbf(0.3)),
    "function": ({"kernel": laplacian_kernel}, laplacian_kernel),
}


def compare(learner: Any, stream: Stream, B: Any, k: Any, *, sparse: bool = False, n_declared: int = 0) -> None:
    X = stream.sparse if sparse else stream.X
    decisions = learner.test_then_train(X, stream.y, stream.task, rounds=stream.rounds)
    expected, kept = twin.run(
        stream.X, stream.y, stream.task, stream.rows_of_rounds, B=B, kernel=k, a=getattr(learner, "a", None),
        budget=learner.budget, n_declared=n_declared,
    )  # fmt: skip
    assert_close(decisions, expected)
    np.testing.assert_array_equal(learner.support_, kept)
    np.testing.assert_array_equal(learner.support_vectors_, stream.X[kept])
    assert learner.n_updates_ > 5


@pytest.mark.parametrize("budget", [None, 1, 9])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("protocol", ["one", "some", "all", "growing"])
@pytest.mark.parametrize("relation", CONSTANT)
def test_equals_twin_on_every_protocol(relation: str, protocol: str, sparse: bool, budget: int | None) -> None:
    value, B = CONSTANT[relation]
    stream = draw(1, K=K, protocol=protocol, density=0.5 if sparse else 1.0)
    options, k = KERNELS["rbf"]
    compare(KernelPerceptron(relation=value, budget=budget, **options), stream, B, k, sparse=sparse)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("relation", ["pairwise", "graph", "matrix"])
def test_equals_twin_for_every_kernel(relation: str, kernel: str, sparse: bool) -> None:
    value, B = ALL[relation]
    options, k = KERNELS[kernel]
    stream = draw(2, K=K, density=0.5 if sparse else 1.0)
    learner = KernelPerceptron(relation=value, **options)
    compare(learner, stream, B, k, sparse=sparse, n_declared=K if relation in GIVEN else 0)


@pytest.mark.parametrize("relation", ALL)
def test_the_linear_kernel_is_the_multitask_perceptron(relation: str) -> None:
    """Eq. 3; unseen tasks included."""
    stream = draw(3, K=K, protocol="growing")
    plain, kernel = MultitaskPerceptron(relation=ALL[relation][0]), KernelPerceptron(relation=ALL[relation][0])
    kernel.set_params(kernel="linear")
    for learner in (plain, kernel):
        if relation in CONSTANT:
            learner.partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
        else:
            learner.fit(stream.X, stream.y, stream.task)
    for task in (stream.task, np.full(len(stream.y), "nobody")):
        expected = plain.decision_function(stream.X, task)
        assert_close(kernel.decision_function(stream.X, task), expected)
    assert kernel.n_updates_ == plain.n_updates_
    assert_close(kernel.relation_, plain.relation_)


@pytest.mark.parametrize("budget", [None, 9])
def test_functions_equal_names_and_chunks_do_not_matter(budget: int | None) -> None:
    stream = draw(4, K=K, protocol="growing")
    for name, function in (("linear", linear_kernel), ("rbf", lambda X, Z: rbf_kernel(X, Z, gamma=1.0))):
        by_name, whole, chunked = (KernelPerceptron(kernel=k, budget=budget) for k in (name, function, function))
        expected = by_name.test_then_train(stream.X, stream.y, stream.task, rounds=stream.rounds)
        decisions = whole.test_then_train(stream.X, stream.y, stream.task, rounds=stream.rounds)
        assert_close(decisions, expected)
        pieces = [
            chunked.test_then_train(stream.sparse[rows], stream.y[rows], stream.task[rows], rounds=stream.rounds[rows])
            for rows in stream.rows_of_rounds
        ]
        np.testing.assert_array_equal(np.concatenate(pieces), decisions)
        assert_close(whole.decision_function(stream.X, stream.task), by_name.decision_function(stream.X, stream.task))


def test_dense_and_sparse_rows_mix() -> None:
    stream = draw(5, K=K, n_rows=200, protocol="one", density=0.5)
    dense, mixed = KernelPerceptron(), KernelPerceptron()
    for first in range(0, 200, 20):
        rows = slice(first, first + 20)
        X = stream.sparse if first % 40 else stream.X
        expected = dense.test_then_train(stream.X[rows], stream.y[rows], stream.task[rows])
        assert_close(mixed.test_then_train(X[rows], stream.y[rows], stream.task[rows]), expected)
    np.testing.assert_array_equal(mixed.support_vectors_, dense.support_vectors_)


@given(seed=st.integers(0, 10**6), budget=st.integers(1, 12))
def test_a_budget_bounds_what_is_kept(seed: int, budget: int) -> None:
    stream = draw(seed, n_rows=80, protocol="one")
    learner = KernelPerceptron(budget=budget).partial_fit(stream.X, stream.y, stream.task)
    free = KernelPerceptron().partial_fit(stream.X, stream.y, stream.task)
    assert len(learner.support_) == min(budget, learner.n_updates_)
    assert (np.diff(learner.support_) > 0).all()
    if free.n_updates_ <= budget:
        np.testing.assert_array_equal(learner.support_, free.support_)


def test_memory_with_a_budget_does_not_grow_with_the_stream() -> None:
    stream = draw(0, n_rows=4000, protocol="one", density=0.5)
    learner, sizes = KernelPerceptron(budget=20), []
    for first in range(0, 4000, 500):
        rows = slice(first, first + 500)
        learner.partial_fit(stream.sparse[rows], stream.y[rows], stream.task[rows])
        sizes.append(sum(array.nbytes for array in core_of(learner).state.support))
    assert len(set(sizes[1:])) == 1


def test_a_smaller_budget_and_another_kernel_may_come_later() -> None:
    stream = draw(6, n_rows=100, protocol="one")
    learner = KernelPerceptron().fit(stream.X, stream.y, stream.task)
    kept = len(learner.support_)
    linear = learner.decision_function(stream.X, stream.task)
    learner.set_params(kernel="linear")
    assert np.abs(learner.decision_function(stream.X, stream.task) - linear).max() > 0.1
    learner.set_params(budget=4).fit(stream.X, stream.y, stream.task)
    assert len(learner.support_) == 4 < kept


@pytest.mark.parametrize("relation", ["independent", "pairwise", "pooled"])
def test_forgetting_a_task(relation: str) -> None:
    """Independent tasks' rows go; else they stay, and their share in the others with them."""
    stream = draw(7, K=K, n_rows=120, protocol="one")
    learner = KernelPerceptron(relation=relation).add_tasks(range(K)).partial_fit(stream.X, stream.y, stream.task)
    rows = learner.support_
    learner.forget_task(2).forget_task(0)
    own = {"independent": 1.0, "pairwise": 1 / (K - 2 + 1), "pooled": 0.0}[relation]
    shared = (1.0 - own) / (K - 2)
    gone = np.isin(stream.task[rows], [0, 2])
    np.testing.assert_array_equal(learner.support_, rows[~gone] if relation == "independent" else rows)
    same = stream.task[rows][:, None] == stream.task[None, :]
    rates = np.where(same & ~gone[:, None], own + shared, shared)
    expected = stream.y[rows] @ (rates * twin.rbf(1.0)(stream.X[rows], stream.X))
    others = ~np.isin(stream.task, [0, 2])
    decisions = learner.decision_function(stream.X, stream.task)
    assert_close(decisions[others], expected[others])
    unseen = stream.y[rows] @ (shared * twin.rbf(1.0)(stream.X[rows], stream.X))
    assert_close(decisions[~others], unseen[~others])


def test_a_function_cannot_be_saved_but_copied(tmp_path: Path) -> None:
    stream = draw(8, n_rows=60)
    learner = KernelPerceptron(kernel=laplacian_kernel).fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    with pytest.raises(ValueError, match=r"cannot save parameter\.kernel: a function has no plain form"):
        learner.save(tmp_path / "model")
    other = pickle.loads(pickle.dumps(learner))
    np.testing.assert_array_equal(
        other.decision_function(stream.X, stream.task), learner.decision_function(stream.X, stream.task)
    )
    learner.set_params(kernel="rbf").save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").support_, learner.support_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "poly"}, "kernel must be 'linear', 'rbf' or a function"),
        ({"kernel": None}, "kernel must be 'linear', 'rbf' or a function"),
        ({"gamma": 0.0}, "gamma must be a finite number > 0"),
        ({"gamma": float("nan")}, "gamma must be a finite number > 0"),
        ({"budget": 0}, "budget must be None or a whole number >= 1"),
        ({"budget": 2.5}, "budget must be None or a whole number >= 1"),
        ({"budget": True}, "budget must be None or a whole number >= 1"),
        ({"relation": "close"}, "relation must be"),
        ({"kernel": lambda X, Z: np.zeros(3)}, r"must return finite numbers of shape \(1, 1\)"),
        ({"kernel": lambda X, Z: np.full((len(X), len(Z)), np.nan)}, "must return finite numbers"),
    ],
)
def test_bad_hyper_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KernelPerceptron(**options).partial_fit([[1.0]], [1])
