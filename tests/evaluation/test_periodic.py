"""Periodic: the plain schedule, any chunking, a bounded window, and the verbs of an online learner."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from tests.streams import Stream, assert_close, core_of, draw
from tests.test_estimator_checks import assert_passes_scikit_learns_checks

from shoal import MTFL, IndependentTasks, PooledTasks, RegMTLRegressor, SparseMTL, TraceNorm
from shoal.engine.rounds import Chunk
from shoal.evaluation import Periodic, progressive_validate

ROWS, REAL = draw(0, n_rows=230), draw(0, n_rows=230, regression=True)
KINDS: dict[str, Any] = {
    "classifier": (lambda: TraceNorm(rho=0.05), ROWS),
    "regressor": (lambda: RegMTLRegressor(loss="squared"), REAL),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def values(learner: Any, X: Any, task: Any) -> np.ndarray:
    return np.asarray((learner.decision_function if is_classifier(learner) else learner.predict)(X, task))


def in_plain_words(make: Any, rows: Stream, every: int, window: int | None) -> np.ndarray:
    """Answer each row by the model trained last on the rows before."""
    answers, model = [], None
    for i in range(len(rows.y)):
        if i and i % every == 0:
            past = slice(max(0, i - (window or i)), i)
            model = make().fit(rows.X[past], rows.y[past], rows.task[past])
        answers.append(0.0 if model is None else values(model, rows.X[i : i + 1], rows.task[i : i + 1])[0])
    return np.array(answers)


@pytest.mark.parametrize(("every", "window"), [(50, None), (30, 60), (40, 25), (1000, None)])
@each_kind
def test_the_schedule(kind: str, every: int, window: int | None) -> None:
    make, rows = KINDS[kind]
    learner = Periodic(make(), every=every, window=window)
    found = learner.test_then_train(rows.X, rows.y, rows.task)
    np.testing.assert_allclose(found, in_plain_words(make, rows, every, window), rtol=1e-9, atol=1e-9)
    assert learner.n_trainings_ == len(rows.y) // every


@pytest.mark.parametrize("size", [1, 7, 64])
@pytest.mark.parametrize("sparse", [False, True])
@each_kind
def test_chunks_do_not_matter(kind: str, sparse: bool, size: int) -> None:
    make, rows = KINDS[kind]
    X = rows.sparse if sparse else rows.X
    whole, cut, taught = (Periodic(make(), every=50, window=80) for _ in range(3))
    expected = whole.test_then_train(X, rows.y, rows.task)
    found = []
    for i in range(0, len(rows.y), size):
        part = slice(i, i + size)
        found.append(cut.test_then_train(X[part], rows.y[part], rows.task[part]))
        taught.partial_fit(X[part], rows.y[part], rows.task[part])
    assert_close(np.concatenate(found), expected)  # products with other numbers of rows round differently
    for other in (cut, taught):
        np.testing.assert_array_equal(values(other, X, rows.task), values(whole, X, rows.task))
        assert other.task_updates_.tolist() == whole.task_updates_.tolist()


@each_kind
def test_one_example_at_a_time(kind: str) -> None:
    make, rows = KINDS[kind]
    whole, single = Periodic(make(), every=50), Periodic(make(), every=50)
    expected = whole.test_then_train(rows.X, rows.y, rows.task)
    for i, task in enumerate(rows.task.tolist()):
        if i:
            found = (
                single.decision_one(rows.X[i], task) if kind == "classifier" else single.predict_one(rows.X[i], task)
            )
            assert found == pytest.approx(expected[i], rel=1e-9, abs=1e-12)
        single.learn_one(rows.X[i], rows.y[i], task)
    assert single.n_trainings_ == 4
    named = Periodic(make(), every=20)
    for i, task in enumerate(rows.task.tolist()):
        names = [f"f{j}" for j in range(min(7, 1 + i // 10))]  # columns appear on the way
        named.learn_one(dict(zip(names, rows.X[i].tolist(), strict=False)), rows.y[i], task)
    assert named.n_features_in_ == 7
    assert np.isfinite(named.predict_round({0: {"f0": 1.0, "other": 2.0}})[0])


def test_a_training_waits_for_the_end_of_a_round() -> None:
    seen: list[int] = []

    class Counting(IndependentTasks):
        def fit(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> Any:
            seen.append(len(y))
            return super().fit(X, y, task, sample_weight)

    learner = Periodic(Counting(), every=10)
    decisions = learner.test_then_train(ROWS.X, ROWS.y, ROWS.task, rounds=ROWS.rounds)
    ends = np.cumsum([len(rows) for rows in ROWS.rows_of_rounds])
    expected, last = [], 0
    for end in ends.tolist():
        if end - last >= 10:
            expected.append(end)
            last = end
    assert seen == expected
    assert decisions[: expected[0]].tolist() == [0.0] * expected[0]
    assert (decisions[expected[0] :] != 0).all()


@each_kind
def test_memory_is_bounded_by_the_window(kind: str) -> None:
    make, rows = KINDS[kind]
    learner = Periodic(make(), every=20, window=30)
    for i in range(0, len(rows.y), 3):
        learner.partial_fit(rows.X[i : i + 3], rows.y[i : i + 3], rows.task[i : i + 3])
        core = core_of(learner)
        assert sum(len(block.y) for block in core._kept) == core._n_kept < 30 + 20
        assert len(core._kept) <= 20
        for block in core._kept:
            assert block.X.base is None or len(block.X.base) <= 50  # no view of a longer array


def test_updates_are_rows_in_their_first_training() -> None:
    learner = Periodic(IndependentTasks(), every=100).partial_fit(ROWS.X[:150], ROWS.y[:150], ROWS.task[:150])
    assert learner.n_updates_ == 100
    assert learner.task_updates_.tolist() == np.bincount(ROWS.task[:100], minlength=5).tolist()
    narrow = Periodic(IndependentTasks(), every=50, window=20).partial_fit(ROWS.X[:200], ROWS.y[:200], ROWS.task[:200])
    assert narrow.n_updates_ == 80


@each_kind
def test_fit_trains_once_on_the_last_rows(kind: str) -> None:
    make, rows = KINDS[kind]
    learner = Periodic(make(), every=10, window=120).partial_fit(rows.X, rows.y, rows.task)
    learner.fit(rows.X, rows.y, rows.task)
    assert (learner.n_trainings_, learner.n_updates_) == (1, 120)
    plain = make().fit(rows.X[-120:], rows.y[-120:], rows.task[-120:])
    np.testing.assert_allclose(values(learner, rows.X, rows.task), values(plain, rows.X, rows.task), rtol=1e-9)
    assert (is_classifier if kind == "classifier" else is_regressor)(learner)


def test_labels_and_tasks_of_any_kind() -> None:
    words, ids = np.where(ROWS.y > 0, "spam", "ham"), np.array(list("abcde"))[ROWS.task]
    learner = Periodic(PooledTasks(), every=40)
    decisions = learner.test_then_train(ROWS.X, words, ids, classes=["ham", "spam"])
    plain = Periodic(PooledTasks(), every=40).test_then_train(ROWS.X, ROWS.y, ROWS.task)
    np.testing.assert_array_equal(decisions, plain)
    assert learner.classes_.tolist() == ["ham", "spam"]
    assert set(learner.predict(ROWS.X, ids)) == {"ham", "spam"}
    assert learner.tasks_ == list(dict.fromkeys(ids.tolist()))
    assert learner.score(ROWS.X, words, ids) > 0.7


def test_a_forgotten_task_is_gone() -> None:
    learner = Periodic(IndependentTasks(), every=50).partial_fit(ROWS.X[:120], ROWS.y[:120], ROWS.task[:120])
    learner.forget_task(2)
    unseen = values(learner, ROWS.X, ["new"] * len(ROWS.y))
    np.testing.assert_array_equal(values(learner, ROWS.X, [2] * len(ROWS.y)), unseen)
    assert learner.tasks_ == [k for k in dict.fromkeys(ROWS.task[:120].tolist()) if k != 2]
    learner.partial_fit(ROWS.X[120:], ROWS.y[120:], ROWS.task[120:])
    others = np.flatnonzero((ROWS.task != 2) | (np.arange(len(ROWS.y)) >= 120))
    trained = others[: core_of(learner)._kept[0].y.size]
    expected = IndependentTasks().fit(ROWS.X[trained], ROWS.y[trained], ROWS.task[trained])
    np.testing.assert_allclose(values(learner, ROWS.X, ROWS.task), values(expected, ROWS.X, ROWS.task), rtol=1e-6)


def test_bad_rows_leave_the_learner_as_it_was() -> None:
    learner = Periodic(MTFL(), every=50).partial_fit(ROWS.X, ROWS.y, ROWS.task)
    before = pickle.dumps(learner)
    bad = ROWS.X.copy()
    bad[3, 1] = np.nan
    for X, y, task in [(bad, ROWS.y, ROWS.task), (ROWS.X, ROWS.y[1:], ROWS.task), (ROWS.X[:, 1:], ROWS.y, ROWS.task)]:
        for verb in (learner.partial_fit, learner.test_then_train):
            with pytest.raises(ValueError):
                verb(X, y, task)
    assert pickle.dumps(learner) == before


class Choosy(MTFL):
    """Fails on what another solver may fail on."""

    def fit(self, X: Any, *rest: Any, **weights: Any) -> Any:
        if np.abs(X).max() > 1e6:
            raise ValueError("no convergence")
        return super().fit(X, *rest, **weights)


def test_a_row_that_fails_a_training_does_not_fail_the_later_ones() -> None:
    X = ROWS.X.copy()
    X[77, 1] = 1e9
    learner = Periodic(Choosy(), every=50)
    before, at, after = slice(0, 99), slice(99, 100), slice(100, None)
    learner.partial_fit(X[before], ROWS.y[before], ROWS.task[before])
    with pytest.warns(RuntimeWarning, match=r"Choosy failed \(no convergence\): its 50 new rows are dropped"):
        learner.partial_fit(X[at], ROWS.y[at], ROWS.task[at])
    learner.partial_fit(X[after], ROWS.y[after], ROWS.task[after])
    assert (learner.n_trainings_, learner.n_updates_) == (3, 150)
    kept = np.r_[:50, 100:200]
    expected = MTFL().fit(X[kept], ROWS.y[kept], ROWS.task[kept])
    assert_close(values(learner, ROWS.X, ROWS.task), values(expected, ROWS.X, ROWS.task), 1e-9)
    with pytest.raises(ValueError, match="no convergence"):
        learner.fit(X, ROWS.y, ROWS.task)
    assert learner.n_trainings_ == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"every": 0}, "every must be an integer >= 1"), ({"window": 2.5}, "window must be None or an integer >= 1"),
        ({"estimator": None}, "estimator must be a batch learner"),
        ({"estimator": MTFL(gamma=-1.0)}, "gamma must be a finite number > 0"),
    ],
)  # fmt: skip
def test_bad_settings(change: dict[str, Any], message: str) -> None:
    learner = Periodic(MTFL(), every=50).set_params(**change)
    with pytest.raises(ValueError, match=message):
        learner.partial_fit(ROWS.X, ROWS.y, ROWS.task)
    assert not hasattr(learner, "n_features_in_")


def test_a_classifier_stays_one_once_it_has_learned() -> None:
    learner = Periodic(MTFL(), every=50).set_params(estimator=RegMTLRegressor(loss="squared"))
    assert is_regressor(learner)
    learner.set_params(estimator=MTFL()).partial_fit(ROWS.X, ROWS.y, ROWS.task)
    before = values(learner, ROWS.X, ROWS.task)
    learner.set_params(estimator=RegMTLRegressor(loss="squared"))
    with pytest.raises(ValueError, match="must stay what it was"):
        learner.partial_fit(ROWS.X, ROWS.y, ROWS.task)
    learner.set_params(estimator=MTFL())
    np.testing.assert_array_equal(values(learner, ROWS.X, ROWS.task), before)
    learner.set_params(estimator=TraceNorm(), every=10).partial_fit(ROWS.X[:10], ROWS.y[:10], ROWS.task[:10])
    assert isinstance(learner.estimator_, TraceNorm)


def test_copies_and_files(tmp_path: Any) -> None:
    learner = Periodic(MTFL(), every=50).partial_fit(ROWS.X, ROWS.y, ROWS.task)
    for other in (pickle.loads(pickle.dumps(learner)), copy.deepcopy(learner)):
        np.testing.assert_array_equal(values(other, ROWS.X, ROWS.task), values(learner, ROWS.X, ROWS.task))
        other.partial_fit(ROWS.X, ROWS.y, ROWS.task)
        assert other.n_trainings_ == 9
    assert learner.n_trainings_ == 4
    fresh = clone(learner)
    assert (type(fresh), fresh.n_trainings_) == (type(learner), 0)
    with pytest.raises(ValueError, match="save its estimator_"):
        learner.save(tmp_path / "model")
    learner.estimator_.save(tmp_path / "model")
    number = learner.number_of_task(3)
    assert learner.estimator_.tasks_[number - 1] == number


def test_in_progressive_validation() -> None:
    learners = {"rare": Periodic(SparseMTL(sigma=3.0, random_state=0), every=110), "often": Periodic(MTFL(), every=25)}
    chunks = [Chunk(ROWS.X[i : i + 60], ROWS.y[i : i + 60], ROWS.task[i : i + 60]) for i in range(0, len(ROWS.y), 60)]
    found = progressive_validate(learners, chunks)
    expected = Periodic(MTFL(), every=25).test_then_train(ROWS.X, ROWS.y, ROWS.task)
    assert found["often"].overall["error"] == np.mean((expected >= 0) != (ROWS.y > 0))
    assert found["often"].overall["error"] < found["rare"].overall["error"]
    assert found["rare"].n_updates == 220
    triples = zip(ROWS.X.tolist(), ROWS.y, ROWS.task, strict=True)
    rows = [({f"f{j}": v for j, v in enumerate(x)}, y, t) for x, y, t in triples]
    late = progressive_validate(Periodic(MTFL(), every=25), rows, delay=30)
    assert late.overall["error"] >= found["often"].overall["error"]


def test_columns_that_appear_later_wait_for_the_next_training() -> None:
    learner = Periodic(MTFL(), every=100).partial_fit(ROWS.X[:150, :5], ROWS.y[:150], ROWS.task[:150])
    learner.add_features(2)
    narrow = values(learner, np.hstack([ROWS.X[:, :5], np.zeros((len(ROWS.y), 2))]), ROWS.task)
    np.testing.assert_array_equal(values(learner, ROWS.X, ROWS.task), narrow)
    learner.partial_fit(ROWS.X[150:200], ROWS.y[150:200], ROWS.task[150:200])
    padded = ROWS.X[:200].copy()
    padded[:150, 5:] = 0.0
    expected = MTFL().fit(padded, ROWS.y[:200], ROWS.task[:200])
    np.testing.assert_allclose(values(learner, ROWS.X, ROWS.task), values(expected, ROWS.X, ROWS.task), rtol=1e-9)


@pytest.mark.parametrize(
    "learner", [Periodic(IndependentTasks(), every=20), Periodic(RegMTLRegressor(loss="squared"), window=500)]
)
def test_scikit_learns_checks(learner: Periodic) -> None:
    assert_passes_scikit_learns_checks(learner)
