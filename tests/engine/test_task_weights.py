"""Own weights in pairs are the dense ones, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.streams import Stream, core_of, draw

from shoal import MultitaskPerceptron, PassiveAggressive, load
from shoal.engine.task_weights import weights as _own
from shoal.model import table, validation

LEARNERS: dict[str, Callable[[], Any]] = {
    "pairwise": MultitaskPerceptron,
    "logistic": lambda: MultitaskPerceptron(relation=1.0, loss="logistic", eta=0.3),
    "independent": lambda: MultitaskPerceptron(relation="independent"),
    "passive": PassiveAggressive,
}


def allow_dense(monkeypatch: pytest.MonkeyPatch, first: int, most: int) -> None:
    """So many weights are dense from the start, and at most."""
    monkeypatch.setattr(_own, "dense_limit", lambda mistake_driven: first)
    monkeypatch.setattr(_own, "DENSE_MOST", most)


def in_tables(learner: Any) -> bool:
    return bool(_own.is_wide(core_of(learner).state.own))


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    allow_dense(monkeypatch, 0, 0)


def stream_of(seed: int, protocol: str = "one", d: int = 40) -> Stream:
    stream = draw(seed, n_rows=400, K=5, d=d, protocol=protocol, density=12 / d)
    return stream._replace(X=sp.csr_matrix(stream.X))


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("protocol", ["one", "all"])
def test_pairs_equal_dense_rows(name: str, protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = stream_of(1, protocol)
    dense = LEARNERS[name]()
    expected = dense.test_then_train(stream.X, stream.y, stream.task, rounds=stream.rounds)
    allow_dense(monkeypatch, 0, 0)
    learner = LEARNERS[name]()
    np.testing.assert_array_equal(
        learner.test_then_train(stream.X, stream.y, stream.task, rounds=stream.rounds), expected
    )
    assert in_tables(learner)
    np.testing.assert_array_equal(learner.coef_, dense.coef_)
    np.testing.assert_array_equal(
        learner.decision_function(stream.X, stream.task), dense.decision_function(stream.X, stream.task)
    )
    X = sp.csr_matrix(stream.X).toarray()
    np.testing.assert_allclose(
        learner.decision_function(X, stream.task), dense.decision_function(X, stream.task), atol=1e-12
    )
    learner.partial_fit(X, stream.y, stream.task)
    np.testing.assert_allclose(learner.coef_, dense.partial_fit(X, stream.y, stream.task).coef_, atol=1e-12)


@pytest.mark.parametrize("name", LEARNERS)
def test_rows_longer_than_what_is_noted_ahead(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short and long ones in turn, often of the same task twice."""
    rng = np.random.default_rng(7)
    rows = [np.sort(rng.choice(900, n, replace=False)) for n in rng.choice([3, 252, 253, 254, 520], 120)]
    indptr = np.cumsum([0, *map(len, rows)])
    X = sp.csr_matrix((rng.normal(size=indptr[-1]), np.concatenate(rows), indptr), shape=(120, 900))
    y, task = rng.choice([-1.0, 1.0], 120), rng.integers(2, size=120)
    dense = LEARNERS[name]()
    expected = dense.test_then_train(X, y, task), dense.decision_function(X, task)
    allow_dense(monkeypatch, 0, 0)
    learner = LEARNERS[name]()
    np.testing.assert_array_equal((learner.test_then_train(X, y, task), learner.decision_function(X, task)), expected)
    assert in_tables(learner)


@pytest.mark.parametrize("name", LEARNERS)
def test_dense_rows_that_caches_do_not_hold(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are fetched a row ahead: also if there is none, or it is not valid, which the block after this one tells."""
    rng, n, d = np.random.default_rng(8), 64, 2**19
    columns = np.concatenate([np.sort(rng.choice(d, 12, replace=False)) for _ in range(n)])
    X = sp.csr_matrix((rng.normal(size=12 * n), columns, np.arange(0, 12 * n + 1, 12)), shape=(n, d))
    y, task = rng.choice([-1.0, 1.0], n), rng.integers(5, size=n)
    dense = LEARNERS[name]()
    expected = dense.test_then_train(X, y, task), dense.decision_function(X, task)
    assert core_of(dense).state.own.dense.nbytes > _own.CACHED
    monkeypatch.setattr(table, "LARGE", 1)
    monkeypatch.setattr(validation, "BLOCK", 12 * 8)
    again = LEARNERS[name]()
    bad = X.copy()
    bad.indptr[33], bad.indices[12 * 48] = 10**6, -5
    with pytest.raises(ValueError, match="malformed"):
        again.partial_fit(bad, y, task)
    allow_dense(monkeypatch, 0, 0)
    for learner in (again, LEARNERS[name]()):
        np.testing.assert_array_equal(learner.test_then_train(X, y, task), expected[0])
        np.testing.assert_array_equal(learner.decision_function(X, task), expected[1])


@pytest.mark.parametrize("name", LEARNERS)
def test_dense_rows_become_pairs_while_learning(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = stream_of(2)
    weights = []
    for most in (2**28, 5 * 40):
        learner = LEARNERS[name]().partial_fit(stream.X[:200], stream.y[:200], stream.task[:200])
        allow_dense(monkeypatch, most, most)
        learner.add_tasks(["new", "newer"]).partial_fit(stream.X[200:], stream.y[200:], stream.task[200:])
        assert in_tables(learner) == (most == 5 * 40)
        weights.append(learner.coef_)
    np.testing.assert_array_equal(*weights)


@pytest.mark.parametrize("name", LEARNERS)
def test_pairs_become_dense_rows_when_most_of_them_occur(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While learning, when they need more room; not by a bit does that change what is learned."""
    stream = stream_of(6, d=300)
    expected = LEARNERS[name]().partial_fit(stream.X, stream.y, stream.task)
    allow_dense(monkeypatch, 0, 2**28)
    learner = LEARNERS[name]().partial_fit(stream.X[:3], stream.y[:3], stream.task[:3])
    assert in_tables(learner)
    learner.partial_fit(stream.X[3:], stream.y[3:], stream.task[3:])
    assert not in_tables(learner)
    np.testing.assert_array_equal(learner.coef_, expected.coef_)


@pytest.mark.parametrize("name", LEARNERS)
def test_saved_pairs_go_on(name: str, wide: None, tmp_path: Path) -> None:
    stream = stream_of(3)
    learner = LEARNERS[name]().partial_fit(stream.X[:200], stream.y[:200], stream.task[:200])
    learner.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    for model in (learner, loaded):
        model.partial_fit(stream.X[200:], stream.y[200:], stream.task[200:])
    np.testing.assert_array_equal(loaded.coef_, learner.coef_)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_forgotten_task_leaves_the_others(name: str, wide: None) -> None:
    stream = stream_of(4)
    learner = LEARNERS[name]().partial_fit(stream.X, stream.y, stream.task)
    before = core_of(learner).state.own
    others = _own.as_matrix(before, 5, 40)[[0, 1, 3, 4]]
    learner.forget_task(learner.tasks_[2])
    np.testing.assert_array_equal(_own.as_matrix(core_of(learner).state.own, 4, 40), others)


def test_memory_goes_by_the_pairs_that_occur() -> None:
    """50,000 tasks x 1,000,000 features: dense rows would need 400 GB."""
    rng = np.random.default_rng(5)
    n, d = 50_000, 1_000_000
    indices = (rng.integers(d // 2, size=(n, 2)) + np.array([0, d // 2])).ravel()
    X = sp.csr_matrix((np.ones(2 * n), indices, np.arange(0, 2 * n + 1, 2)), shape=(n, d))
    y = rng.choice([-1.0, 1.0], n)
    learner = PassiveAggressive().partial_fit(X, y, np.arange(n))
    assert (learner.predict(X, np.arange(n)) == y).all()
    own = core_of(learner).state.own
    assert own.dense.nbytes + sum(array.nbytes for array in own.tables) < 1e8


def test_the_first_tasks_choose_the_kind_though_rows_without_weight_came_before() -> None:
    before = _own.allocate(0, 1000, np.float64, 2**14)
    assert _own.is_wide(_own.grow(before, 100, 1000, 2**14))
    assert not _own.is_wide(_own.grow(before, 10, 1000, 2**14))


@pytest.mark.parametrize("n", [1, 63, 64, 65, 128, 129])
@pytest.mark.parametrize("name", ["pairwise", "passive"])
def test_rows_of_as_many_new_pairs_as_wait_at_once(name: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 wait; every row is of features that its task has not met."""
    rng = np.random.default_rng(n)
    X = sp.csr_matrix((rng.normal(size=6 * n), np.arange(6 * n), np.arange(0, 6 * n + 1, n)), shape=(6, 6 * n))
    X, y, task = sp.vstack([X, X[::-1], X]).tocsr(), rng.choice([-1.0, 1.0], 18), np.arange(18) % 2
    dense = LEARNERS[name]()
    expected = dense.test_then_train(X, y, task)
    allow_dense(monkeypatch, 0, 0)
    learner = LEARNERS[name]()
    np.testing.assert_array_equal(learner.test_then_train(X, y, task), expected)
    assert in_tables(learner)
    np.testing.assert_array_equal(learner.coef_, dense.coef_)
