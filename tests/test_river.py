"""The river adapter: river's own checks, the task taken from the features, pipelines, clones and copies."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from river import checks, compose, evaluate, metrics, preprocessing

import shoal
from shoal import HedgedSharing, MultitaskPerceptron, MultitaskRegressor, PassiveAggressiveRegressor
from shoal.river import TaskClassifier, TaskRegressor

ESTIMATORS: list[TaskClassifier | TaskRegressor] = [
    TaskClassifier(
        HedgedSharing(interactions=False, dtype="float64")  # records of pairs have places by the order of features
    ),
    TaskClassifier(MultitaskPerceptron(), task="empty_server_form_handler"),  # a feature of river's Phishing rows
    TaskRegressor(MultitaskRegressor()),
    TaskRegressor(PassiveAggressiveRegressor(), task="gallup"),  # a feature of river's TrumpApproval rows
]
CHECKS = [
    pytest.param(estimator, check, id=f"{type(estimator.learner).__name__}-{number}-{check.__name__}")
    for estimator in ESTIMATORS
    for number, check in enumerate(checks.yield_checks(estimator))
]
NAMES = ["a", "b", "c"]
Row = dict[Hashable, Any]


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_river_check(estimator: Any, check: Any) -> None:
    assert not estimator._unit_test_skips()
    check(estimator.clone())


def stream(n_rows: int = 400, *, raw: bool = False) -> list[tuple[Row, bool]]:
    """Rows of four tasks that agree but for their bias; `raw` rows have a feature on another scale."""
    rng = np.random.default_rng(5)
    X, task = rng.normal(size=(n_rows, 3)), rng.integers(4, size=n_rows)
    y = X @ [2.0, -1.0, 0.5] + 0.3 * (task - 1.5) > 0
    if raw:
        X[:, 0] = 4000.0 + 100.0 * X[:, 0]
    values: list[Row] = [dict(zip(NAMES, x, strict=True)) for x in X.tolist()]
    return [({"user": f"u{k}", **x}, bool(label)) for x, k, label in zip(values, task, y, strict=True)]


def test_the_learner_sees_the_task_and_the_row_without_it() -> None:
    adapted, learner = TaskClassifier(MultitaskPerceptron(), task="user"), MultitaskPerceptron()
    for x, y in stream():
        before = dict(x)
        features = {name: x[name] for name in NAMES}
        if learner.__sklearn_is_fitted__():
            assert adapted.predict_one(x) == learner.predict_one(features, x["user"])
        adapted.learn_one(x, y)
        learner.learn_one(features, y, x["user"])
        assert x == before
    assert adapted.model.tasks_ == learner.tasks_
    assert sorted(adapted.model.feature_names_in_) == NAMES
    np.testing.assert_array_equal(adapted.model.coef_, learner.coef_)


def test_memory_is_that_of_what_was_learned() -> None:
    adapted = TaskClassifier(MultitaskPerceptron(), task="user")
    for x, y in stream():
        adapted.learn_one(x, y)
    few = adapted._raw_memory_usage
    assert adapted.model.coef_.nbytes < few < 10_000
    for x, y in stream():
        adapted.learn_one(x | {f"{name}{number}": 1.0 for name in NAMES for number in range(100)}, y)
    assert few + adapted.model.coef_.nbytes < adapted._raw_memory_usage < 100_000


def test_weights_are_those_of_the_learner() -> None:
    adapted, learner = TaskClassifier(MultitaskPerceptron(loss="hinge"), task="user"), MultitaskPerceptron(loss="hinge")
    for w, (x, y) in enumerate(stream()):
        adapted.learn_one(x, y, w=w % 3)
        learner.learn_one({name: x[name] for name in NAMES}, y, x["user"], sample_weight=w % 3)
    np.testing.assert_array_equal(adapted.model.coef_, learner.coef_)
    with pytest.raises(ValueError, match="OSMTL takes no sample_weight"):
        TaskClassifier(shoal.OSMTL()).learn_one({"a": 1.0}, True, w=2.0)
    pipeline = compose.Select("user", *NAMES) | TaskClassifier(MultitaskPerceptron(loss="hinge"), task="user")
    for w, (x, y) in enumerate(stream()):
        pipeline.learn_one(x, y, w=w % 3)
    assert [pipeline.predict_one(x) for x, _ in stream()] == [adapted.predict_one(x) for x, _ in stream()]


def test_probabilities_are_those_of_the_learner() -> None:
    rows = stream()
    model = TaskClassifier(HedgedSharing(), task="user")
    for x, y in rows:
        model.learn_one(x, y)
    X = np.array([[x[name] for name in NAMES] for x, _ in rows])
    expected = model.model.predict_proba(X, [x["user"] for x, _ in rows])
    found = [model.predict_proba_one(x) for x, _ in rows]
    assert all(list(forecast) == [False, True] for forecast in found)
    np.testing.assert_allclose([list(forecast.values()) for forecast in found], expected, rtol=1e-12)


def test_a_learner_without_probabilities_says_so() -> None:
    with pytest.raises(NotImplementedError, match="MultitaskPerceptron gives no probabilities; use predict_one"):
        TaskClassifier(MultitaskPerceptron()).predict_proba_one({"a": 1.0})


def test_in_a_pipeline_the_task_passes_by_the_scaler() -> None:
    scaled = compose.Discard("user") | preprocessing.StandardScaler()
    model = (scaled + compose.Select("user")) | TaskClassifier(MultitaskPerceptron(), task="user")
    plain = TaskClassifier(MultitaskPerceptron(), task="user")
    rows = stream(2000, raw=True)
    with_scaler = evaluate.progressive_val_score(rows, model, metrics.Accuracy()).get()
    without = evaluate.progressive_val_score(rows, plain, metrics.Accuracy()).get()
    assert with_scaler > 0.85 > without
    assert sorted(model["TaskClassifier"].model.tasks_) == ["u0", "u1", "u2", "u3"]


@pytest.mark.parametrize("learner", [HedgedSharing(), MultitaskPerceptron()])
def test_an_unseen_task_is_answered_from_what_is_shared_and_not_created(learner: Any) -> None:
    model = TaskClassifier(learner, task="user")
    for x, y in stream():
        model.learn_one(x, y)
    tasks = list(model.model.tasks_)
    right = sum(model.predict_one(x | {"user": "new"}) == y for x, y in stream())
    assert right > 0.7 * 400
    assert model.predict_one({"a": 1.0}) in (False, True)
    assert model.model.tasks_ == tasks


def test_rows_without_the_task_have_one_of_their_own() -> None:
    model = TaskClassifier(MultitaskPerceptron(relation="independent"), task="user")
    for _ in range(2):
        model.learn_one({"user": "u", "a": 1.0}, True)
        model.learn_one({"a": 1.0}, False)
    assert model.model.tasks_ == ["u", "no task"]
    assert (model.predict_one({"user": "u", "a": 1.0}), model.predict_one({"a": 1.0})) == (True, False)


def test_rows_of_nothing_but_the_task() -> None:
    model = TaskClassifier(HedgedSharing(), task="user")
    for _ in range(20):
        model.learn_one({"user": "u"}, True)
        model.learn_one({"user": "v"}, False)
    assert model.predict_proba_one({"user": "u"})[True] > 0.5 > model.predict_proba_one({"user": "v"})[True]


def test_the_learner_given_stays_as_it_is_and_clones_begin_where_it_stands(tmp_path: Path) -> None:
    rows = stream()
    fresh = TaskClassifier(MultitaskPerceptron(), task="user")
    for x, y in rows[:200]:
        fresh.learn_one(x, y)
    assert not fresh.learner.__sklearn_is_fitted__()
    assert fresh.clone().predict_one(rows[0][0]) is None
    fresh.model.save(tmp_path / "m.shoal")
    resumed = TaskClassifier(shoal.load(tmp_path / "m.shoal"), task="user")
    begun = resumed.clone()
    for x, y in rows[200:]:
        fresh.learn_one(x, y)
        resumed.learn_one(x, y)
        begun.learn_one(x, y)
    np.testing.assert_array_equal(resumed.model.coef_, fresh.model.coef_)
    np.testing.assert_array_equal(begun.model.coef_, fresh.model.coef_)


def test_a_pickled_estimator_goes_on_where_it_was() -> None:
    rows = stream()
    model = TaskClassifier(HedgedSharing(), task="user")
    for x, y in rows[:200]:
        model.learn_one(x, y)
    copied = pickle.loads(pickle.dumps(model))
    for x, y in rows[200:]:
        assert model.predict_proba_one(x) == copied.predict_proba_one(x)
        model.learn_one(x, y)
        copied.learn_one(x, y)


def test_a_bad_row_is_named_and_changes_nothing() -> None:
    model = TaskClassifier(MultitaskPerceptron(), task="user")
    model.learn_one({"user": "u", "a": 1.0}, True)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="feature 'a': expected a finite number, got 'red'"):
        model.learn_one({"user": "v", "a": "red"}, True)
    assert pickle.dumps(model) == before


def test_the_regressor_learns_each_task() -> None:
    pair: list[tuple[Row, float]] = [({"shop": shop, "one": 1.0}, 3.0 if shop == "a" else -1.0) for shop in "ab"]
    rows = pair * 200
    model = TaskRegressor(MultitaskRegressor(), task="shop")
    assert model.predict_one(rows[0][0]) == 0.0
    for x, y in rows:
        model.learn_one(x, y)
    assert model.predict_one({"shop": "a", "one": 1.0}) == pytest.approx(3.0, abs=0.01)
    assert model.predict_one({"shop": "b", "one": 1.0}) == pytest.approx(-1.0, abs=0.01)


@pytest.mark.parametrize("wrong", ["HedgedSharing", preprocessing.StandardScaler(), MultitaskRegressor()])
def test_only_a_classifier_of_shoal_makes_a_classifier(wrong: Any) -> None:
    with pytest.raises(ValueError, match="expected a classifier of shoal, such as HedgedSharing"):
        TaskClassifier(wrong)


@pytest.mark.parametrize("wrong", [None, HedgedSharing()])
def test_only_a_regressor_of_shoal_makes_a_regressor(wrong: Any) -> None:
    with pytest.raises(ValueError, match="expected a regressor of shoal, such as MultitaskRegressor"):
        TaskRegressor(wrong)


def test_shoal_works_without_river() -> None:
    code = """
import sys
sys.modules["river"] = None  # as if it were not installed
import shoal
shoal.MultitaskPerceptron().learn_one({"a": 1.0}, True, "u")
try:
    import shoal.river
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == 'shoal.river needs the package river: pip install "shoal[river]"\n'
