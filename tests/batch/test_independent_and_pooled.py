"""The two extremes: a model a task, one model for all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from tests.batch.test_linear_svm import residual
from tests.streams import assert_close, draw
from tests.twins import batch as twin

from shoal import IndependentTasks, PooledTasks


@pytest.mark.parametrize("mu", [None, 1e-4, 0.1])
def test_the_default_is_the_papers_model(mu: float | None) -> None:
    rows = draw(0, n_rows=80)
    settings = {} if mu is None else {"mu": mu}
    mu = mu or 1e-3
    alone, pooled = (kind(**settings).fit(rows.X, rows.y, rows.task) for kind in (IndependentTasks, PooledTasks))
    ends = []
    parts = [(alone.coef_[k], rows.task == k) for k in range(5)]
    for w, own in [*parts, (pooled.coef_[0], rows.task >= 0)]:
        X, y = rows.X[own], rows.y[own]
        ends.append(0.5 * mu * w @ w + twin.mean_hinge(X, y, w))
        assert residual(X, y, np.full(len(y), 1 / len(y)), mu, w) < 1e-4
    assert alone.objective_[-1] == pytest.approx(sum(ends[:5]), rel=1e-12)
    assert pooled.objective_[-1] == pytest.approx(ends[5], rel=1e-12)
    assert len(alone.objective_) == max(alone.n_iter_) > 1
    assert len(pooled.objective_) == pooled.n_iter_ > 1
    assert (pooled.coef_ == pooled.coef_[0]).all()


def test_a_task_learns_from_its_own_rows_alone() -> None:
    rows = draw(0, n_rows=80)
    together = IndependentTasks().fit(rows.X, rows.y, rows.task)
    for k in range(5):
        own = rows.task == k
        np.testing.assert_array_equal(IndependentTasks().fit(rows.X[own], rows.y[own]).coef_[0], together.coef_[k])


def test_with_one_task_both_are_the_same() -> None:
    rows = draw(0, n_rows=80)
    first, second = (kind().fit(rows.X, rows.y) for kind in (IndependentTasks, PooledTasks))
    np.testing.assert_array_equal(first.coef_, second.coef_)


@pytest.mark.parametrize("estimator", [LogisticRegression(), SVC(), DecisionTreeClassifier(random_state=0), Ridge()])
def test_any_estimator(estimator: Any) -> None:
    regression = isinstance(estimator, Ridge)
    rows = draw(0, n_rows=120, regression=regression)
    y = rows.y if regression else np.where(rows.y > 0, "b", "a")
    alone = IndependentTasks(estimator=estimator).fit(rows.X, y, rows.task)
    pooled = PooledTasks(estimator=estimator).fit(rows.X, y, rows.task)
    assert len(alone.estimators_) == 5
    assert not hasattr(estimator, "n_features_in_")  # clones learn, the estimator given does not
    whole = type(estimator)(**estimator.get_params()).fit(rows.X, y)
    np.testing.assert_array_equal(pooled.predict(rows.X, rows.task), whole.predict(rows.X))
    for k in range(5):
        own = rows.task == k
        part = type(estimator)(**estimator.get_params()).fit(rows.X[own], y[own])
        np.testing.assert_array_equal(alone.predict(rows.X[own], rows.task[own]), part.predict(rows.X[own]))
        if hasattr(part, "decision_function"):
            found = alone.decision_function(rows.X[own], rows.task[own])
            assert_close(found, part.decision_function(rows.X[own]))


def test_an_unseen_task_gets_the_mean_of_all() -> None:
    rows = draw(0, n_rows=120, regression=True)
    learner = IndependentTasks(estimator=Ridge()).fit(rows.X, rows.y, rows.task)
    each = [learner.predict(rows.X, np.full(len(rows.y), k)) for k in range(5)]
    assert_close(learner.predict(rows.X, ["new"] * len(rows.y)), np.mean(each, axis=0))


def test_a_task_of_one_label_always_answers_it() -> None:
    rows = draw(0, n_rows=60)
    y = np.where(rows.task == 2, 1.0, rows.y)
    learner = IndependentTasks(estimator=LogisticRegression()).fit(rows.X, y, rows.task)
    assert (learner.predict(rows.X, np.full(len(y), 2)) == 1.0).all()


def test_what_is_not_an_estimator_or_a_regularisation_is_refused() -> None:
    rows = draw(0)
    for bad in (Ridge, "ridge", 3):
        with pytest.raises(ValueError, match="estimator must be None or a scikit-learn estimator"):
            PooledTasks(estimator=bad).fit(rows.X, rows.y, rows.task)
    for mu in (0.0, -1.0, np.inf):
        with pytest.raises(ValueError, match="mu must be a finite number > 0"):
            IndependentTasks(mu=mu).fit(rows.X, rows.y, rows.task)
