"""The contract of batch learners, as named cases: every learner of `cases.BATCH` x every promise."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from tests.batch.cases import AROUND, BATCH, CLASSIFIERS, LEAST_SCORE, REGRESSORS, fitted, rows_for, saved, values
from tests.exclusions import each_of
from tests.streams import Stream, assert_close

import shoal
from shoal.batch.base import BatchLearner, LinearBatchLearner

each = each_of(BATCH)
each_classifier = each_of(CLASSIFIERS)
each_savable = each_of([name for name in BATCH if name not in AROUND])

# Solvers stop within their tolerance of the optimum: another order of the rows or tasks ends elsewhere in that ball.
LOOSE = 2e-2


def test_every_public_estimator_is_in_the_table() -> None:
    public = {getattr(shoal, name) for name in shoal.__all__}
    learners = {kind for kind in public if inspect.isclass(kind) and issubclass(kind, BatchLearner)}
    assert learners == {type(make()) for make in BATCH.values()}


@each
def test_learns_something(name: str) -> None:
    rows = rows_for(name, n_rows=300)
    learner = BATCH[name]().fit(rows.X[:200], rows.y[:200], rows.task[:200])
    assert learner.score(rows.X[200:], rows.y[200:], rows.task[200:]) > LEAST_SCORE[name]
    assert (is_regressor if name in REGRESSORS else is_classifier)(learner)


@each
def test_sparse_is_dense(name: str) -> None:
    rows = rows_for(name, density=0.4)
    dense, sparse = (BATCH[name]().fit(X, rows.y, rows.task) for X in (rows.X, rows.sparse))
    assert_close(values(sparse, rows.X, rows.task), values(dense, rows.sparse, rows.task), 1e-4)


@each
def test_the_same_rows_give_the_same_model(name: str) -> None:
    rows = rows_for(name)
    first, second = (BATCH[name]().fit(rows.X, rows.y, rows.task) for _ in range(2))
    np.testing.assert_array_equal(values(first, rows.X, rows.task), values(second, rows.X, rows.task))
    if name not in AROUND:
        assert saved(first) == saved(second)


@each
def test_fit_forgets(name: str) -> None:
    other = rows_for(name, seed=1, d=4, K=3)
    again = BATCH[name]().fit(other.X, other.y, np.array(list("abc"))[other.task])
    rows = rows_for(name)
    again.fit(rows.X, rows.y, rows.task)
    np.testing.assert_array_equal(values(again, rows.X, rows.task), values(fitted(name), rows.X, rows.task))
    assert again.tasks_ == [0, 1, 2, 3, 4]


def in_another_order(rows: Stream) -> Stream:
    order = np.random.default_rng(1).permutation(len(rows.y))
    return rows._replace(X=rows.X[order], y=rows.y[order], task=rows.task[order])


@each
def test_tasks_are_in_the_order_of_appearance(name: str) -> None:
    rows = in_another_order(rows_for(name))
    assert BATCH[name]().fit(rows.X, rows.y, rows.task).tasks_ == list(dict.fromkeys(rows.task.tolist()))


@each
def test_the_order_of_rows_does_not_matter(name: str) -> None:
    rows = rows_for(name)
    shuffled = in_another_order(rows)
    other = BATCH[name]().fit(shuffled.X, shuffled.y, shuffled.task)
    assert_close(values(other, rows.X, rows.task), values(fitted(name), rows.X, rows.task), LOOSE)


@each
def test_names_of_tasks_do_not_matter(name: str) -> None:
    rows = rows_for(name)
    ids = np.empty(len(rows.y), object)
    ids[:] = [("user", int(k)) for k in rows.task]
    named = BATCH[name]().fit(rows.X, rows.y, ids)
    assert named.tasks_ == [("user", k) for k in range(5)]
    np.testing.assert_array_equal(values(named, rows.X, ids), values(fitted(name), rows.X, rows.task))


@each
def test_data_frames(name: str) -> None:
    rows = rows_for(name)
    columns = [f"f{j}" for j in range(rows.X.shape[1])]
    expected = values(fitted(name), rows.X, rows.task)
    for frame in (pd.DataFrame(rows.X, columns=columns), pl.DataFrame(rows.X, schema=columns)):
        learner = BATCH[name]().fit(frame, pd.Series(rows.y), pl.Series(rows.task))
        assert learner.feature_names_in_.tolist() == columns
        np.testing.assert_array_equal(values(learner, frame, rows.task), expected)
        with pytest.raises(ValueError, match="feature names should match"):
            learner.predict(frame[columns[::-1]], rows.task)


@each
def test_predicting_changes_nothing_and_unseen_tasks_are_answered(name: str) -> None:
    rows = rows_for(name)
    learner = fitted(name)
    before = pickle.dumps(learner)
    unseen = values(learner, rows.X, ["new"] * len(rows.y))
    assert np.isfinite(unseen).all()
    assert np.abs(unseen).max() > 0
    mixed = values(learner, rows.X, ["new" if i % 2 else k for i, k in enumerate(rows.task.tolist())])
    assert_close(mixed[1::2], unseen[1::2])
    assert_close(mixed[::2], values(learner, rows.X, rows.task)[::2])
    assert pickle.dumps(learner) == before
    if isinstance(learner, LinearBatchLearner):
        assert_close(unseen, rows.X @ learner.coef_.mean(axis=0))


@each
def test_values_are_products_with_coef(name: str) -> None:
    learner, rows = fitted(name), rows_for(name)
    assert learner.coef_.shape == (5, 7)
    assert_close(values(learner, rows.X, rows.task), np.einsum("ij,ij->i", rows.X, learner.coef_[rows.task]))


@each_classifier
def test_labels_of_any_kind(name: str) -> None:
    rows, plain = rows_for(name), fitted(name)
    words = np.where(rows.y > 0, "spam", "ham")
    learner = BATCH[name]().fit(rows.X, words, rows.task)
    assert learner.classes_.tolist() == ["ham", "spam"]
    np.testing.assert_array_equal(values(learner, rows.X, rows.task), values(plain, rows.X, rows.task))
    positive = values(learner, rows.X, rows.task) >= 0
    np.testing.assert_array_equal(learner.predict(rows.X, rows.task), np.where(positive, "spam", "ham"))
    assert learner.score(rows.X, words, rows.task) == (learner.predict(rows.X, rows.task) == words).mean()


@each_classifier
def test_tasks_of_one_label(name: str) -> None:
    """Few rows a task are the rule in multi-task learning: some tasks have seen no positive, or one row in all."""
    rows = rows_for(name, n_rows=40)
    y = np.where(rows.task == 1, -1.0, rows.y)
    X, y, task = np.vstack([rows.X, rows.X[:1]]), np.append(y, 1.0), np.append(rows.task, 7)
    learner = BATCH[name]().fit(X, y, task)
    assert np.isfinite(values(learner, X, task)).all()
    only = BATCH[name]().fit(rows.X, np.ones(len(rows.y)), rows.task)
    assert only.classes_.tolist() == [-1, 1]
    assert (only.predict(rows.X, rows.task) == 1).mean() > 0.5


@each_of(REGRESSORS)
def test_regressors_have_no_labels(name: str) -> None:
    learner, rows = fitted(name), rows_for(name)
    assert not hasattr(learner, "decision_function")
    with pytest.raises(AttributeError, match="its targets are real"):
        _ = learner.classes_
    with pytest.raises(ValueError, match="y must hold real numbers"):
        learner.fit(rows.X, np.array(["a"] * len(rows.y)), rows.task)


def changed(array: Any, place: int | tuple[int, int], value: Any) -> np.ndarray:
    copy = np.array(array)
    copy[place] = value
    return copy


BAD: dict[str, tuple[Callable[[Stream], tuple[Any, Any, Any]], str]] = {
    "NaN": (lambda s: (changed(s.X, (3, 2), np.nan), s.y, s.task), "row 3, feature 2: found NaN"),
    "infinity": (lambda s: (changed(s.X, (0, 1), np.inf), s.y, s.task), "row 0, feature 1: found infinity"),
    "nothing": (lambda s: (s.X[:0], s.y[:0], s.task[:0]), "minimum of 1 is required"),
    "one dimension": (lambda s: (s.X[0], s.y, s.task), "Expected 2D array"),
    "y short": (lambda s: (s.X, s.y[:-1], s.task), "expected 60 values, got 59"),
    "y NaN": (lambda s: (s.X, changed(s.y, 2, np.nan), s.task), "row 2: the (label|target) is NaN"),
    "y None": (lambda s: (s.X, None, s.task), "requires y to be passed"),
    "task short": (lambda s: (s.X, s.y, s.task[:-1]), "expected 60 ids, got 59"),
    "task NaN": (lambda s: (s.X, s.y, changed(s.task.astype(float), 2, np.nan)), "row 2: its task id is missing"),
    "task unhashable": (lambda s: (s.X, s.y, [[k] for k in s.task]), "row 0: task ids must be hashable"),
}  # fmt: skip


@pytest.mark.parametrize("bad", BAD)
@each
def test_bad_rows_leave_the_model_as_it_was(name: str, bad: str) -> None:
    rows, learner, fresh = rows_for(name), fitted(name), BATCH[name]()
    before, attributes = pickle.dumps(learner), set(vars(fresh))
    change, message = BAD[bad]
    for candidate in (learner, fresh):
        with pytest.raises(ValueError, match=message):
            candidate.fit(*change(rows))
    assert pickle.dumps(learner) == before
    assert set(vars(fresh)) == attributes
    assert not hasattr(fresh, "n_features_in_")


@each_classifier
def test_a_third_label_is_named(name: str) -> None:
    rows, learner = rows_for(name), fitted(name)
    before = pickle.dumps(learner)
    with pytest.raises(ValueError, match="Row 59: got a third label"):
        learner.fit(rows.X, changed(rows.y, 59, 2.0), rows.task)
    assert pickle.dumps(learner) == before


@each
def test_bad_rows_to_predict(name: str) -> None:
    learner, rows = fitted(name), rows_for(name)
    for X, task, message in [
        (rows.X[:, 1:], rows.task, "X has 6 features, but .* is expecting 7"),
        (changed(rows.X, (1, 0), np.nan), rows.task, "row 1, feature 0"),
        (rows.X, rows.task[1:], "expected 60 ids"),
    ]:
        with pytest.raises(ValueError, match=message):
            learner.predict(X, task)


@each
def test_bad_settings_are_refused_before_anything_changes(name: str) -> None:
    rows, learner = rows_for(name), fitted(name)
    before = values(learner, rows.X, rows.task)
    for parameter, value in learner.get_params(deep=False).items():
        if parameter in ("random_state", "kernel"):
            continue
        bad = object() if parameter == "estimator" else "nonsense" if isinstance(value, str) else -0.5
        learner.set_params(**{parameter: bad})
        with pytest.raises(ValueError, match=parameter):
            learner.fit(rows.X, rows.y, rows.task)
        learner.set_params(**{parameter: value})
        np.testing.assert_array_equal(values(learner, rows.X, rows.task), before)


@each_savable
def test_save_and_load(name: str, tmp_path: Path) -> None:
    rows = rows_for(name)
    ids = np.array([f"task {k}" for k in rows.task])
    y = rows.y if name in REGRESSORS else np.where(rows.y > 0, "yes", "no")
    for X in (rows.X, rows.sparse, pd.DataFrame(rows.X, columns=list("abcdefg"))):
        learner = BATCH[name]().fit(X, y, ids)
        learner.save(tmp_path / "model")
        loaded = shoal.load(tmp_path / "model")
        assert type(loaded) is type(learner)
        assert saved(loaded) == saved(learner)
        assert loaded.get_params() == learner.get_params()
        assert loaded.tasks_ == learner.tasks_
        assert hasattr(loaded, "feature_names_in_") == hasattr(learner, "feature_names_in_")
        for query in (ids, ["new"] * len(ids)):
            np.testing.assert_array_equal(loaded.predict(X, query), learner.predict(X, query))


@each_of(AROUND)
def test_estimators_of_others_are_not_saved(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot save .*estimator"):
        fitted(name).save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


@each
def test_copies(name: str) -> None:
    rows, learner = rows_for(name), fitted(name)
    expected = values(learner, rows.X, rows.task)
    for other in (pickle.loads(pickle.dumps(learner)), copy.deepcopy(learner)):
        np.testing.assert_array_equal(values(other, rows.X, rows.task), expected)
    assert not hasattr(clone(learner), "tasks_")
    with pytest.raises(AttributeError, match="before it is fitted"):
        _ = clone(learner).tasks_


@each
def test_how_the_solver_ended_is_told(name: str) -> None:
    learner = fitted(name)
    if name in AROUND:
        assert not hasattr(learner, "n_iter_")  # the clones tell it themselves
        return
    assert np.all(np.asarray(learner.n_iter_) >= 1)
    assert np.isfinite(learner.objective_).all()
    assert np.ndim(learner.objective_) == 1


@pytest.mark.parametrize("name", ["SparseMTL", "SparseMTL-few", "SparseMTLRegressor"])
def test_sets_that_need_more_sweeps_are_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.batch.sparse_mtl.learner.MOST_SWEEPS", 1)
    rows = rows_for(name)
    with pytest.warns(ConvergenceWarning, match="sweeps left a decrease above inner_tol"):
        learner = BATCH[name]().fit(rows.X, rows.y, rows.task)
    assert np.isfinite(values(learner, rows.X, rows.task)).all()


@pytest.mark.parametrize(
    ("name", "few"),
    [
        ("MTFL", {"max_iter": 1}), ("MTFL-l21", {"max_iter": 1}), ("TraceNorm", {"max_iter": 1}),
        ("MTFL-alternating", {"max_iter": 1, "tol": 1e-9}), ("SMTL", {"max_iter": 1}), ("RegMTL", {"max_iter": 1}),
        ("RegMTLRegressor", {"max_iter": 1}), ("SHAMO", {"max_iter": 1}), ("SMTLRegressor", {"max_iter": 1}),
    ],
)  # fmt: skip
def test_stopping_early_is_told(name: str, few: dict[str, Any]) -> None:
    rows = rows_for(name)
    learner = BATCH[name]().set_params(**few)
    with pytest.warns(ConvergenceWarning):
        learner.fit(rows.X, rows.y, rows.task)
    assert np.isfinite(values(learner, rows.X, rows.task)).all()
