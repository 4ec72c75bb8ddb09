"""Rows that are validated in blocks while they are learned: as if all had been validated before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never

import numpy as np
import pytest
import scipy.sparse as sp
from tests.engine.test_task_weights import allow_dense
from tests.streams import core_of, draw

from shoal import Learner, MultitaskPerceptron, MultitaskRegressor, PassiveAggressive, PassiveAggressiveRegressor
from shoal.model import model, table, validation
from shoal.model.state import leaves

LEARNERS: dict[str, Callable[[], Learner]] = {
    "pooled": lambda: MultitaskPerceptron(relation="pooled"),
    "pairwise": lambda: MultitaskPerceptron(relation=1.0),
    "logistic, float32": lambda: MultitaskPerceptron(loss="logistic", eta=0.3, dtype="float32"),
    "matrix": lambda: MultitaskPerceptron(relation=np.eye(4) + 0.1),
    "regressor": lambda: MultitaskRegressor(eta=0.01),
    "passive": PassiveAggressive,
    "passive, pooled": lambda: PassiveAggressive(relation="pooled"),
    "passive regressor": PassiveAggressiveRegressor,
}
N, D, K = 300, 20, 4


@pytest.fixture(autouse=True, params=["dense weights", "tables"])
def all_are_large(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "dense weights":
        allow_dense(monkeypatch, 0, 0)
    monkeypatch.setattr(table, "LARGE", 1)
    monkeypatch.setattr(model, "COPY_PAYS", 0)
    monkeypatch.setattr(validation, "BLOCK", 100)


def rows(seed: int, sparse: bool) -> Any:
    stream = draw(seed, n_rows=N, K=K, d=D, protocol="one", density=0.4)
    task = np.arange(N) % K if seed % 2 else np.sort(np.arange(N) % K)  # sorted: new tasks come late
    return sp.csr_matrix(stream.X) if sparse else stream.X, stream.y, task


def bits(learner: Any) -> Any:
    """All that a model is."""
    model = learner._model
    if model is None:
        return None
    arrays = [a.tobytes() for a in leaves(model.core.state)]
    return arrays, model.tasks.ids, model.labels.classes.tolist() if model.labels else None, (
        model.features.count, model.features.names, model.core.size
    )  # fmt: skip


def spoil(X: Any, row: int, how: str) -> Any:
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
def test_learns_and_answers_the_same(name: str, sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in (1, 2):
        X, y, task = rows(seed, sparse)
        learner = LEARNERS[name]()
        decisions = learner.test_then_train(X, y, task)
        learner.partial_fit(X, y, task)
        answers = learner._values(X, task)
        again = LEARNERS[name]().fit(X, y, task)
        monkeypatch.setattr(table, "LARGE", 10**9)
        before = LEARNERS[name]()
        np.testing.assert_array_equal(decisions, before.test_then_train(X, y, task))
        before.partial_fit(X, y, task)
        np.testing.assert_array_equal(answers, before._values(X, task))
        assert bits(learner) == bits(before)
        assert bits(again) == bits(LEARNERS[name]().fit(X, y, task))
        monkeypatch.setattr(table, "LARGE", 1)


def test_rounds_of_several_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, task = rows(1, sparse=True)
    rounds = np.arange(N) // K
    learner = MultitaskPerceptron()
    decisions = learner.test_then_train(X, y, task, rounds=rounds)
    bad = spoil(X, 200, "nan")
    was = bits(learner)
    with pytest.raises(ValueError, match="found NaN"):
        learner.partial_fit(bad, y, task, rounds=rounds)
    assert bits(learner) == was
    monkeypatch.setattr(table, "LARGE", 10**9)
    np.testing.assert_array_equal(decisions, MultitaskPerceptron().test_then_train(X, y, task, rounds=rounds))


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("verb", ["fit", "partial_fit", "test_then_train"])
@pytest.mark.parametrize(
    ("how", "message"),
    [("nan", "found NaN"), ("infinity", "found infinity"), ("column", "malformed"), ("negative column", "malformed"),
     ("offset", "malformed"), ("far offset", "malformed"), ("negative offset", "malformed")],
)  # fmt: skip
def test_a_bad_row_leaves_the_model_as_it_was(
    name: str, verb: str, how: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for sparse in (True,) if message == "malformed" else (True, False):
        for seed, n_before in ((1, 0), (1, 40), (2, 40)):
            X, y, task = rows(seed, sparse)
            learner = LEARNERS[name]()
            if n_before:
                learner.partial_fit(X[:n_before], y[:n_before], task[:n_before])
            was = bits(learner)
            bad = spoil(X, N - 30, how)
            monkeypatch.setattr(table, "LARGE", 10**9)
            with pytest.raises(ValueError, match=message) as careful:
                getattr(learner, verb)(bad, y, task)
            monkeypatch.setattr(table, "LARGE", 1)
            with pytest.raises(ValueError, match=message) as checked:
                getattr(learner, verb)(bad, y, task)
            assert str(checked.value) == str(careful.value)
            assert bits(learner) == was
            if n_before:
                with pytest.raises(ValueError, match=message):
                    learner._values(bad, task)


def watch(learner: Any, monkeypatch: pytest.MonkeyPatch, after: Callable[[], None]) -> None:
    """Call `after` whenever the core has learned a block."""
    core = core_of(learner)
    learn = core.learn

    def watched(rounds: Any, out: Any) -> None:
        learn(rounds, out)
        after()

    monkeypatch.setattr(core, "learn", watched)


def test_blocks_before_a_bad_row_are_learned_and_rolled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, task = rows(1, sparse=True)
    learner = PassiveAggressive().partial_fit(X[:50], y[:50], task[:50])
    seen: list[Any] = []
    was = bits(learner)
    watch(learner, monkeypatch, lambda: seen.append(bits(learner)))
    with pytest.raises(ValueError, match="found NaN"):
        learner.partial_fit(spoil(X, 200, "nan"), y, task)
    assert len(seen) > 2
    assert seen[-1] != was
    assert bits(learner) == was


@pytest.mark.parametrize("sparse", [False, True])
def test_what_is_wrong_with_X_is_said_first(sparse: bool) -> None:
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


def test_columns_in_any_order_and_twice() -> None:
    X, y, task = rows(1, sparse=True)
    turned = X.copy()
    for row in range(100, N):
        a, b = X.indptr[row : row + 2]
        turned.indices[a:b], turned.data[a:b] = X.indices[a:b][::-1], X.data[a:b][::-1]
    learner, expected = (PassiveAggressive().partial_fit(Z, y, task) for Z in (turned, X))
    np.testing.assert_array_equal(learner.coef_, expected.coef_)
    np.testing.assert_array_equal(learner.decision_function(turned, task), expected.decision_function(X, task))


def test_an_interrupt_leaves_the_model_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, task = rows(1, sparse=True)
    learner = MultitaskPerceptron().partial_fit(X[:50], y[:50], task[:50])
    was = bits(learner)

    def interrupt() -> Never:
        raise KeyboardInterrupt

    watch(learner, monkeypatch, interrupt)
    with pytest.raises(KeyboardInterrupt):
        learner.partial_fit(X, y, task)
    assert bits(learner) == was


def test_a_model_that_is_large_next_to_the_table_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, task = rows(1, sparse=True)
    learner = PassiveAggressive().partial_fit(X, y, task)
    copies: list[Any] = []
    monkeypatch.setattr(model, "COPY_PAYS", 8)
    snapshot = core_of(learner).snapshot

    def noted() -> Any:
        copies.append(1)
        return snapshot()

    monkeypatch.setattr(core_of(learner), "snapshot", noted)
    learner.partial_fit(X, y, task)
    assert copies == []
    with pytest.raises(ValueError, match="found NaN"):
        learner.partial_fit(spoil(X, 200, "nan"), y, task)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([["2026-01-01"]], "datetime64[D]"), "datetime64"),
        (np.ma.masked_array([[1.0, 2.0]], [[False, True]]), "row 0, feature 1: the cell is masked"),
        (np.array([[1e160]]), "row 0, feature 0: found 1e\\+160"),
        ([[10**400]], "too large"),
    ],
    ids=["dates", "masked", "huge", "overflow"],
)
def test_what_is_no_number(X: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PassiveAggressive().partial_fit(X, [1])


def test_targets_that_are_no_numbers() -> None:
    for y in ([1j], [10**400], [1e160], np.array(["2026-01-01"], "datetime64[D]")):
        with pytest.raises(ValueError, match=r"expected a number|must hold real numbers|[Cc]omplex"):
            PassiveAggressiveRegressor().partial_fit([[1.0]], y)
    no_number: Any = float("nan")
    with pytest.raises(ValueError, match="expected names of features or their number"):
        PassiveAggressive().add_features(no_number)


@pytest.mark.parametrize("n", [1, 2, 7, 64, 65])
def test_the_first_number_that_is_out_of_range(n: int) -> None:
    """The largest one is in range; no position is left out."""
    largest, beyond = validation.LARGEST, float(np.nextafter(validation.LARGEST, np.inf))
    for sign in (-1.0, 1.0):
        values = np.full(n, sign * largest)
        assert validation.first_out_of_range(values) == -1
        for bad in (sign * beyond, sign * np.inf, np.nan):
            for p in {0, n // 2, n - 1}:
                spoiled = values.copy()
                spoiled[p:] = bad
                assert validation.first_out_of_range(spoiled) == p
    assert validation.first_out_of_range(np.zeros(0)) == -1
