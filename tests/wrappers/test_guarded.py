"""Guarded sharing: equal to the twin, and no task is harmed on any stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier, is_regressor
from tests.twins.guarded import Guard

import shoal
from shoal import (
    Conformal,
    Guarded,
    HedgedSharing,
    LabelQuery,
    MultiClass,
    MultitaskPerceptron,
    MultitaskRegressor,
    PassiveAggressive,
)


def stream(n: int, n_tasks: int = 6, seed: int = 0) -> tuple[Any, Any, Any]:
    """Some tasks are unlike the others."""
    rng = np.random.default_rng(seed)
    X, task = rng.normal(size=(n, 4)), rng.integers(n_tasks, size=n)
    sign = np.where(task < n_tasks // 3, -1.0, 1.0)
    return X, np.where(sign * X.sum(axis=1) + rng.normal(size=n) > 0, 1, -1), task


def sharing() -> Any:
    return MultitaskPerceptron(relation=1e9, loss="logistic", eta=0.5)


@pytest.mark.parametrize("share", [0.0, 0.02])
@pytest.mark.parametrize("inner", [sharing(), PassiveAggressive(relation="pooled")])
def test_answers_and_trust_are_those_of_the_twin(inner: Any, share: float) -> None:
    X, y, task = stream(600)
    learner = Guarded(inner, prior=0.7, share=share)
    logits = learner.test_then_train(X, y, task)
    both = [one.test_then_train(X, y, task) for one in (clone(inner), inner.baselines()["independent"])]
    twin = Guard(0.7, share, calibrates=isinstance(inner, PassiveAggressive))
    expected = []
    for k, *f, label in zip(task.tolist(), *both, (y > 0).astype(float), strict=True):
        expected.append(twin.q(k, f))
        twin.learn(k, f, label)
    np.testing.assert_allclose(1 / (1 + np.exp(-logits)), expected, rtol=1e-10)
    np.testing.assert_allclose(learner.trust_, [twin.w[k] for k in learner.tasks_], rtol=1e-9)
    harmed = [k for k in learner.tasks_ if twin.losses[k][0] > twin.losses[k][1] + np.log(2)]
    assert learner.harmed_ == harmed
    assert set(harmed) >= {0, 1}
    assert is_classifier(learner)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32), prior=st.floats(0.01, 0.99), flips=st.floats(0.0, 0.5))
def test_no_task_is_harmed_on_any_stream(seed: int, prior: float, flips: float) -> None:
    """Each task's loss is at most either learner's and ln 1/(its prior)."""
    rng = np.random.default_rng(seed)
    X, y, task = stream(200, 4, seed)
    y = np.where(rng.random(200) < flips, -y, y)
    inner = sharing().set_params(eta=float(rng.choice([0.1, 1.0, 30.0])))
    answers = Guarded(inner, prior=prior).test_then_train(X, y, task)
    both = [one.test_then_train(X, y, task) for one in (inner, inner.baselines()["independent"])]
    losses = [-np.log(np.clip(1 / (1 + np.exp(-y * f)), 1e-6, 1 - 1e-6)) for f in (answers, *both)]
    for k in range(4):
        guarded, shared, alone = (loss[task == k].sum() for loss in losses)
        assert guarded <= min(shared - np.log(prior), alone - np.log(1 - prior)) + 1e-6


def test_the_prior_decides_between_two_learners() -> None:
    X, y, task = stream(300)
    inner = sharing()
    for prior, one in ((1 - 1e-15, inner), (1e-300, inner.baselines()["independent"])):
        answers = Guarded(inner, prior=prior).test_then_train(X[:20], y[:20], task[:20])
        np.testing.assert_allclose(answers, one.test_then_train(X[:20], y[:20], task[:20]), atol=1e-6)
    alone = Guarded(MultitaskPerceptron(relation="independent", loss="logistic"), prior=0.3).fit(X, y, task)
    np.testing.assert_allclose(alone.trust_, 0.3, rtol=1e-12)  # equal learners say nothing of sharing
    assert alone.harmed_ == []


def test_numbers_are_mixed_by_gaussian_likelihoods() -> None:
    X, _, task = stream(2_000)
    y = np.where(task < 2, -1.0, 1.0) * X.sum(axis=1) + 0.1 * np.random.default_rng(1).normal(size=2_000)
    pooled = MultitaskRegressor(relation=1e9, eta=0.05)
    learner = Guarded(pooled)
    squares = [((one.test_then_train(X, y, task) - y) ** 2).mean() for one in (learner, pooled)]
    assert squares[0] < 0.5 * squares[1]
    assert set(learner.harmed_) >= {0, 1}
    assert is_regressor(learner)
    assert not hasattr(learner, "predict_proba")
    np.testing.assert_array_equal(learner.predict(X[:1], task[:1]), [learner.predict_one(X[0], task[0])])


def test_both_learners_are_there_and_what_has_no_baseline_is_refused() -> None:
    X, y, task = stream(200)
    learner = Guarded(sharing()).partial_fit(X, y, task)
    inner = sharing()
    np.testing.assert_array_equal(
        learner.estimator_.decision_function(X, task), inner.partial_fit(X, y, task).decision_function(X, task)
    )
    alone = inner.baselines()["independent"].partial_fit(X, y, task)
    np.testing.assert_array_equal(learner.independent_.decision_function(X, task), alone.decision_function(X, task))
    assert set(learner.baselines()) == {"independent", "pooled"}
    for other, why in (
        (MultiClass(), "goes around the learner itself, got a MultiClass"),
        (LabelQuery(), "goes around the learner itself, got a LabelQuery"),
        (Conformal(), "goes around the learner itself, got a Conformal"),
        ("words", "needs a learner of this library, got str"),
    ):
        with pytest.raises(ValueError, match=why):
            Guarded(other).fit(X, y, task)


def test_a_saved_one_goes_on(tmp_path: Path) -> None:
    X, y, task = stream(400)
    learner = Guarded(HedgedSharing(memory=1.0)).partial_fit(X[:200], y[:200], task[:200])
    learner.save(tmp_path / "model")
    again = shoal.load(tmp_path / "model")
    np.testing.assert_array_equal(
        again.test_then_train(X[200:], y[200:], task[200:]), learner.test_then_train(X[200:], y[200:], task[200:])
    )
    np.testing.assert_array_equal(again.trust_, learner.trust_)
