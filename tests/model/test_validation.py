"""Rows that are checked when their turn comes: as if all had been checked before."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.engine.test_task_weights import allow_dense
from tests.streams import draw

import shoal.learner
from shoal import MultitaskPerceptron, MultitaskRegressor, PassiveAggressive, PassiveAggressiveRegressor
from shoal.learner import Learner, leaves
from shoal.model import features
from shoal.model.features import read_table, unchecked

LEARNERS = {
    "pooled": lambda: MultitaskPerceptron(relation="pooled"),
    "pairwise": lambda: MultitaskPerceptron(relation=1.0),
    "logistic, float32": lambda: MultitaskPerceptron(loss="logistic", eta=0.3, dtype="float32"),
    "matrix": lambda: MultitaskPerceptron(relation=np.eye(4) + 0.1),
    "regressor": lambda: MultitaskRegressor(eta=0.01),
    "passive": PassiveAggressive,
    "passive, pooled": lambda: PassiveAggressive(sharing="pooled"),
    "passive regressor": PassiveAggressiveRegressor,
}
N, D, K = 300, 20, 4


@pytest.fixture(autouse=True, params=["dense weights", "tables"])
def all_are_large(request, monkeypatch):
    if request.param != "dense weights":
        allow_dense(monkeypatch, 0, 0)
    monkeypatch.setattr(features, "LARGE", 1)
    monkeypatch.setattr(shoal.learner, "SMALL", 0)


def rows(seed, sparse):
    stream = draw(seed, n_rows=N, K=K, d=D, protocol="one", density=0.4)
    task = np.arange(N) % K if seed % 2 else np.sort(np.arange(N) % K)  # sorted: new tasks come late
    return sp.csr_matrix(stream.X) if sparse else stream.X, stream.y, task


def bits(learner):
    """All that a model is."""
    arrays = [] if learner._state is None else leaves(learner._state)
    tasks = None if learner._tasks is None else learner._tasks.ids
    labels = None if learner._labels is None else (learner._labels.classes.tolist(), learner._labels.settled)
    columns = (learner._columns.count, learner._columns.names)
    return [a.tobytes() for a in arrays], tasks, labels, columns, learner._capacity, list(map(id, arrays))


def spoil(X, row, how):
    X = X.copy()
    if not sp.issparse(X):
        X[row, 3] = np.nan if how == "nan" else np.inf
        return X
    while X.indptr[row + 1] - X.indptr[row] < 2:
        row -= 1
    first = X.indptr[row]
    if how in ("nan", "infinity"):
        X.data[first] = np.nan if how == "nan" else -np.inf
    elif how == "column":
        X.indices[X.indptr[row + 1] - 1] = D
    elif how == "negative column":
        X.indices[first] = -1
    elif how == "offset":
        X.indptr[row + 1] = X.indptr[row] - 1
    elif how == "far offset":
        X.indptr[row + 1] = X.indptr[-1] + 10**6
    elif how == "negative offset":
        X.indptr[row + 1] = -5
    return X


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("sparse", [False, True])
def test_learns_and_answers_the_same(name, sparse, monkeypatch):
    for seed in (1, 2):
        X, y, task = rows(seed, sparse)
        learner = LEARNERS[name]()
        decisions = learner.test_then_train(X, y, task)
        learner.partial_fit(X, y, task)
        answers = learner._values(X, task)
        again = LEARNERS[name]().fit(X, y, task)
        monkeypatch.setattr(features, "LARGE", 10**9)
        before = LEARNERS[name]()
        np.testing.assert_array_equal(decisions, before.test_then_train(X, y, task))
        before.partial_fit(X, y, task)
        np.testing.assert_array_equal(answers, before._values(X, task))
        assert bits(learner)[:5] == bits(before)[:5]
        assert bits(again)[:5] == bits(LEARNERS[name]().fit(X, y, task))[:5]
        monkeypatch.setattr(features, "LARGE", 1)


def test_rounds_of_several_rows(monkeypatch):
    X, y, task = rows(1, sparse=True)
    rounds = np.arange(N) // K
    learner = MultitaskPerceptron()
    decisions = learner.test_then_train(X, y, task, rounds=rounds)
    bad = spoil(X, 200, "nan")
    was = bits(learner)
    with pytest.raises(ValueError, match="found NaN"):
        learner.partial_fit(bad, y, task, rounds=rounds)
    assert bits(learner) == was
    monkeypatch.setattr(features, "LARGE", 10**9)
    np.testing.assert_array_equal(decisions, MultitaskPerceptron().test_then_train(X, y, task, rounds=rounds))


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("verb", ["fit", "partial_fit", "test_then_train"])
@pytest.mark.parametrize(
    ("how", "message"),
    [("nan", "found NaN"), ("infinity", "found infinity"), ("column", "malformed"), ("negative column", "malformed"),
     ("offset", "malformed"), ("far offset", "malformed"), ("negative offset", "malformed")],
)  # fmt: skip
def test_a_bad_row_leaves_the_model_as_it_was(name, verb, how, message, monkeypatch):
    for sparse in (True,) if message == "malformed" else (True, False):
        for seed, n_before in ((1, 0), (1, 40), (2, 40)):
            X, y, task = rows(seed, sparse)
            learner = LEARNERS[name]()
            if n_before:
                learner.partial_fit(X[:n_before], y[:n_before], task[:n_before])
            was, held = bits(learner), learner._state
            bad = spoil(X, N - 30, how)
            monkeypatch.setattr(features, "LARGE", 10**9)
            with pytest.raises(ValueError, match=message) as careful:
                getattr(learner, verb)(bad, y, task)
            monkeypatch.setattr(features, "LARGE", 1)
            with pytest.raises(ValueError, match=message) as checked:
                getattr(learner, verb)(bad, y, task)
            assert str(checked.value) == str(careful.value)
            assert bits(learner) == was
            assert learner._state is held
            if n_before:
                with pytest.raises(ValueError, match=message):
                    learner._values(bad, task)


def test_rows_before_a_bad_one_are_learnt():
    """And forgotten again: else nothing here would be tested."""
    X, y, task = rows(1, sparse=True)
    learner, seen = PassiveAggressive().partial_fit(X[:50], y[:50], task[:50]), []
    call, was = learner._call, bits(learner)

    def watched(*arguments):
        try:
            return call(*arguments)
        finally:
            seen.append(bits(learner))

    learner._call = watched
    with pytest.raises(ValueError, match="found NaN"):
        learner.partial_fit(spoil(X, 200, "nan"), y, task)
    assert len(seen) == 1
    assert seen[0] != was
    assert bits(learner) == was


@pytest.mark.parametrize("sparse", [False, True])
def test_what_is_wrong_with_X_is_said_first(sparse):
    X, y, task = rows(1, sparse)
    learner = PassiveAggressive().partial_fit(X, y, task)
    was = bits(learner)
    with pytest.raises(ValueError, match="found NaN"):
        learner.partial_fit(spoil(X, 200, "nan"), y[:-1], task)
    with pytest.raises(ValueError, match="one value per row"):
        learner.partial_fit(X, y[:-1], task)
    with pytest.raises(ValueError, match="third"):
        learner.partial_fit(X, np.append(y[:-1], 7.0), task)
    with pytest.raises(ValueError, match="must be hashable"):
        learner.partial_fit(X, y, [[0]] * N)
    with pytest.raises(ValueError, match="features"):
        learner.partial_fit(X[:, :-1], y, task)
    with pytest.raises(ValueError, match="features"):
        learner.decision_function(X[:, :-1], task)
    assert bits(learner) == was


def test_columns_in_any_order_and_twice():
    X, y, task = rows(1, sparse=True)
    turned = X.copy()
    for row in range(100, N):
        a, b = X.indptr[row : row + 2]
        turned.indices[a:b], turned.data[a:b] = X.indices[a:b][::-1], X.data[a:b][::-1]
    learner, expected = (PassiveAggressive().partial_fit(Z, y, task) for Z in (turned, X))
    np.testing.assert_array_equal(learner.coef_, expected.coef_)
    np.testing.assert_array_equal(learner.decision_function(turned, task), expected.decision_function(X, task))


def test_an_interrupt_leaves_the_model_as_it_was():
    X, y, task = rows(1, sparse=True)
    learner = MultitaskPerceptron().partial_fit(X[:50], y[:50], task[:50])
    was, call = bits(learner), learner._call

    def interrupted(*arguments):
        call(*arguments)
        raise KeyboardInterrupt

    learner._call = interrupted
    with pytest.raises(KeyboardInterrupt):
        learner.partial_fit(X, y, task)
    assert bits(learner) == was


def test_which_tables_may_be_learnt_unchecked():
    X = rows(1, sparse=True)[0]
    for good in (X, X.toarray()):
        for one, other in zip(unchecked(good), read_table(good), strict=True):
            np.testing.assert_array_equal(one, other)
    assert unchecked(sp.csr_array(X)) is not None
    dense = X.toarray()
    for other in (sp.coo_array(dense[0]).tocsr(), X.tocsc(), X.astype(complex), dense.tolist(), dense.T, dense[0]):
        assert unchecked(other) is None
    short = X.copy()
    short.data = short.data[:-1]
    assert unchecked(short) is None


def test_a_model_that_is_large_beside_the_table_is_not_copied(monkeypatch):
    X, y, task = rows(1, sparse=True)
    learner = PassiveAggressive().partial_fit(X, y, task)
    monkeypatch.setattr(shoal.learner, "SMALL", 8)
    monkeypatch.setattr(Learner, "_learn_as_checked", lambda *arguments, **options: pytest.fail("was called"))
    learner.partial_fit(X, y, task)
    with pytest.raises(pytest.fail.Exception):
        learner.fit(X, y, task)
