"""Intervals and sets: equal to the twin, and each task's coverage is what it has to be, whatever the scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier, is_regressor
from tests.twins.conformal import Thresholds

import shoal
from shoal import (
    Conformal,
    HedgedSharingRegressor,
    LabelQuery,
    MultiClass,
    MultitaskPerceptron,
    MultitaskRegressor,
    PassiveAggressive,
)
from shoal.evaluation import progressive_validate
from shoal.wrappers.conformal import FIRST, OFFSET, follow, intervals, scores_of_quantiles
from shoal.wrappers.conformal import Thresholds as Learned


def stream(n: int, n_tasks: int = 6, seed: int = 0) -> tuple[Any, Any, Any]:
    """Real targets, whose spread differs by task."""
    rng = np.random.default_rng(seed)
    X, task = rng.normal(size=(n, 4)), rng.integers(n_tasks, size=n)
    return X, X.sum(axis=1) + (1.0 + task) * rng.normal(size=n), task


@pytest.mark.parametrize("least_step", [0.0, 0.05])
@pytest.mark.parametrize("of_labels", [False, True])
def test_thresholds_are_those_of_the_twin(of_labels: bool, least_step: float) -> None:
    X, y, task = stream(700)
    y = np.where(y > 0.0, "yes", "no") if of_labels else y
    inner: Any = MultitaskPerceptron(loss="logistic") if of_labels else MultitaskRegressor(eta=0.05)
    learner, twin = Conformal(inner, coverage=0.8, least_step=least_step), Thresholds(0.8, least_step)
    alone = inner.test_then_train(X, y, task)
    decisions, answers = learner.judge_then_train(X, y, task)
    np.testing.assert_array_equal(decisions, alone)
    sign, before = np.where(y == "yes", 1.0, -1.0) if of_labels else y, []
    for k, s in zip(task.tolist(), 1 / (1 + np.exp(sign * alone)) if of_labels else np.abs(y - alone), strict=True):
        before.append(twin.q(k))
        twin.learn(k, s)
    q = np.array(before)[:, None]
    if of_labels:
        p = 1 / (1 + np.exp(-alone))
        np.testing.assert_array_equal(answers, np.column_stack([p, 1 - p]) <= q)
    else:
        np.testing.assert_allclose(answers, alone[:, None] + q * [-1, 1], rtol=1e-12)
    np.testing.assert_allclose(learner.thresholds_, [twin.q(k) for k in learner.tasks_], rtol=1e-12)
    covered = [1 - twin.misses[k] / twin.c[k] for k in learner.tasks_]
    assert learner.judged_.tolist() == [twin.c[k] for k in learner.tasks_]
    np.testing.assert_allclose(learner.coverage_, covered, rtol=1e-12)


def test_around_quantiles_an_interval_is_as_wide_as_the_row_needs(tmp_path: Path) -> None:
    """As the twin of thresholds says of |y - m|/h; noise grows with a feature."""
    rng = np.random.default_rng(0)
    X, task = rng.uniform(0.2, 3.0, size=(1500, 1)), rng.integers(4, size=1500)
    y = X[:, 0] * rng.normal(size=1500)
    inner, twin = HedgedSharingRegressor(target=[0.2, 0.5, 0.8]), Thresholds(0.9, 0.0)
    learner = Conformal(inner, coverage=0.9)
    quantiles, answers = learner.judge_then_train(X, y, task)
    np.testing.assert_array_equal(quantiles, inner.test_then_train(X, y, task))
    middle, half = (quantiles[:, 0] + quantiles[:, 2]) / 2, (quantiles[:, 2] - quantiles[:, 0]) / 2
    before = []
    for k, s in zip(task.tolist(), np.abs(y - middle) / half, strict=True):
        before.append(twin.q(k))
        twin.learn(k, s)
    np.testing.assert_allclose(answers, middle[:, None] + np.outer(before, [-1, 1]) * half[:, None], rtol=1e-12)
    low, high = learner.predict_interval([[0.5], [2.5]], [1, 1]).T
    assert (high - low)[1] > 2.5 * (high - low)[0]
    assert learner.predict_interval_one([0.5], 1) == (low[0], high[0])
    assert np.mean(learner.coverage_) == pytest.approx(0.9, abs=0.02)
    learner.save(tmp_path / "m.shoal")
    np.testing.assert_array_equal(shoal.load(tmp_path / "m.shoal").predict_interval([[0.5]], [1]), [[low[0], high[0]]])


def test_scores_of_quantiles_without_width() -> None:
    quantiles, y = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 3.0]]), np.array([0.0, 2.0, 2.5])
    np.testing.assert_array_equal(scores_of_quantiles(quantiles, y), [0.0, 1e100, 0.5])
    everything = intervals(quantiles, np.full(3, np.inf))
    np.testing.assert_array_equal(everything, np.tile([-np.inf, np.inf], (3, 1)))


def test_intervals_and_sets_hold_what_scores_at_most_q() -> None:
    X, y, task = stream(400)
    learner = Conformal(MultitaskRegressor(eta=0.05)).partial_fit(X, y, task)
    f, q = learner.predict(X, task), learner.thresholds_[[learner.tasks_.index(k) for k in task]]
    interval = learner.predict_interval(X, task)
    np.testing.assert_array_equal(interval, np.column_stack([f - q, f + q]))
    assert learner.predict_interval_one(X[3], task[3]) == tuple(interval[3])
    low, high = learner.predict_interval_one(X[3], "new")
    t = learner._model.core.shared[0]  # type: ignore[union-attr]
    assert high - low == pytest.approx(2 * np.exp(t))  # what tasks share
    assert is_regressor(learner)
    assert not hasattr(learner, "predict_set")
    labels = np.where(y > 0, "yes", "no")
    classifier = Conformal(MultitaskPerceptron(loss="logistic"), coverage=0.7).partial_fit(X, labels, task)
    sets, p = classifier.predict_set(X, task), classifier.predict_proba(X, task)
    q = classifier.thresholds_[[classifier.tasks_.index(k) for k in task]]
    np.testing.assert_array_equal(sets, 1 - p <= q[:, None])
    assert classifier.predict_set_one(X[0], task[0]) == classifier.classes_[sets[0]].tolist()
    assert is_classifier(classifier)
    assert not hasattr(classifier, "predict_interval")


def test_before_fifty_rows_the_answer_is_everything() -> None:
    X, y, task = stream(FIRST)
    learner = Conformal(MultitaskRegressor(eta=0.05)).partial_fit(X[:-1], y[:-1], task[:-1])
    assert np.isinf(learner.predict_interval(X, task)).all()
    assert np.isnan(learner.coverage_).all()
    learner.partial_fit(X[-1:], y[-1:], task[-1:])
    assert np.isfinite(learner.predict_interval(X, task)).all()


@given(st.data())
def test_coverage_is_as_promised_for_any_scores(data: st.DataObject) -> None:
    """Of each task: a miss more or less than (1 - coverage) n at most 2 B/gamma times, B the largest |u_k|."""
    n, n_tasks, least_step = 400, 3, data.draw(st.sampled_from([0.0, 0.02]))
    seed, alpha = data.draw(st.integers(0, 2**32)), data.draw(st.floats(0.02, 0.5))
    rng = np.random.default_rng(seed)
    task, shared, own, first = rng.integers(n_tasks, size=n), np.zeros(2), np.zeros((n_tasks, 3)), np.zeros(FIRST)
    largest = np.zeros(n_tasks)
    spite = data.draw(st.floats(0.0, 1.0))  # how often a score is just above or below its threshold
    for row in range(n):
        q = np.exp(shared[0] + own[task[row], OFFSET])
        s = q * np.exp(rng.choice([-1e-3, 1e-3])) if rng.random() < spite else np.exp(rng.normal() * rng.choice([1, 5]))
        one, none = (np.array([s]), task[row : row + 1], np.arange(2)), np.zeros(0)
        follow(*one, none, alpha, least_step, Learned(shared, own, first), none)
        largest = np.maximum(largest, np.abs(own[:, OFFSET]))
    _, judged, covered = own.T
    gamma = np.maximum(0.1 / np.sqrt(1 + (judged - 1) / 20), least_step)
    assert (np.abs((judged - covered) - alpha * judged) <= 2 * largest / gamma + 1e-9).all()


def test_it_follows_a_spread_that_changes() -> None:
    X, y, task = stream(12_000)
    y[6_000:] = X[6_000:].sum(axis=1) + 4 * (y[6_000:] - X[6_000:].sum(axis=1))
    learner = Conformal(MultitaskRegressor(eta=0.01), least_step=0.02).partial_fit(X[:9_000], y[:9_000], task[:9_000])
    low, high = learner.predict_interval(X[9_000:], task[9_000:]).T
    inside = (low <= y[9_000:]) & (y[9_000:] <= high)
    assert [inside[task[9_000:] == k].mean() for k in range(6)] == pytest.approx([0.9] * 6, abs=0.06)


def test_sets_of_classes_do_not_depend_on_chunks(tmp_path: Path) -> None:
    """Though a class comes late: then its probability was none. A saved model has the same."""
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(900, 4)), rng.integers(5, size=900)
    y = np.array(["ash", "elm", "fir", "oak"])[(X @ rng.normal(size=(4, 4))).argmax(axis=1)]
    y[:200][y[:200] == "oak"] = "ash"
    learner = Conformal(MultiClass(MultitaskPerceptron(loss="logistic")), coverage=0.8)
    margins = learner.test_then_train(X, y, task)
    np.testing.assert_array_equal(margins, MultiClass(MultitaskPerceptron(loss="logistic")).test_then_train(X, y, task))
    judged = clone(learner)
    again, before = judged.judge_then_train(X, y, task)
    np.testing.assert_array_equal(again, margins)
    assert not before[0].any()  # no class had come
    assert before[10:FIRST, :3].all()
    assert not before[: np.argmax(y == "oak") + 1, 3].any()
    inside = before[np.arange(900), np.searchsorted(learner.classes_, y)]
    assert inside[FIRST:].sum() == (judged.coverage_ * judged.judged_).sum()
    by_parts = Conformal(MultiClass(MultitaskPerceptron(loss="logistic")), coverage=0.8)
    for first in range(0, 900, 150):
        by_parts.partial_fit(X[first : first + 150], y[first : first + 150], task[first : first + 150])
    np.testing.assert_array_equal(by_parts.thresholds_, learner.thresholds_)
    sets = learner.predict_set(X, task)
    assert sets.shape == (900, 4)
    assert learner.predict_set_one(X[0], task[0]) == learner.classes_[sets[0]].tolist()
    assert 0.7 < learner.coverage_.mean() < 0.9
    learner.save(tmp_path / "m.shoal")
    np.testing.assert_array_equal(shoal.load(tmp_path / "m.shoal").predict_set(X, task), sets)


def test_what_it_cannot_judge_is_refused(tmp_path: Path) -> None:
    X, y, task = stream(60)
    for inner, why in (
        (PassiveAggressive(), "a PassiveAggressive has none"),
        (LabelQuery(), "goes around the learner itself"),
        (Conformal(), "goes around the learner itself"),
        (HedgedSharingRegressor(target=[0.5]), "needs two quantiles or more"),
        ("words", "needs a learner of this library, got str"),
    ):
        with pytest.raises(ValueError, match=why):
            Conformal(inner).fit(X, np.sign(y), task)
    for coverage in (0.0, 1.0, 1.2):
        with pytest.raises(ValueError, match="coverage"):
            Conformal(MultitaskRegressor(), coverage=coverage).fit(X, y, task)


def test_a_saved_one_goes_on_and_a_run_judges_it(tmp_path: Path) -> None:
    X, y, task = stream(600)
    learner = Conformal(MultitaskRegressor(eta=0.05)).partial_fit(X[:300], y[:300], task[:300])
    learner.save(tmp_path / "model")
    again = shoal.load(tmp_path / "model")
    for one in (learner, again):
        one.partial_fit(X[300:], y[300:], task[300:])
    np.testing.assert_array_equal(again.predict_interval(X, task), learner.predict_interval(X, task))
    np.testing.assert_array_equal(again.coverage_, learner.coverage_)
    before = learner.thresholds_
    learner.forget_task(learner.tasks_[0])
    np.testing.assert_array_equal(learner.thresholds_, before[1:])
    found: list[Any] = []
    for delay in (0, 3):
        plain = Conformal(MultitaskRegressor(eta=0.05))
        progressive_validate(plain, (X, y, task), on_predictions=found.append, delay=delay)
        intervals = np.concatenate([one.interval for one in found])
        assert np.isinf(intervals[:FIRST]).all()
        inside = (intervals[FIRST:, 0] <= y[FIRST:]) & (y[FIRST:] <= intervals[FIRST:, 1])
        if delay == 0:  # judged on what is written
            assert inside.sum() == pytest.approx((plain.coverage_ * plain.judged_).sum())
        assert 0.85 < inside.mean() < 0.95
        found.clear()
