"""TaskLevels against its twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.streams import assert_close, draw, drawn_weights, roughened
from tests.twins.task_levels import Twin, learn

from shoal import TaskLevels, TaskLevelsRegressor


@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("regression", [False, True], ids=["labels", "targets"])
def test_the_twin(regression: bool, sparse: bool, weighted: bool) -> None:
    """With odd targets and an odd value; a feature comes late. Dense rows have values that repeat; one is constant."""
    stream = draw(3, n_rows=400, K=20, d=8, protocol="growing", density=0.3 if sparse else 1.0, regression=regression)
    stream = stream if sparse else roughened(stream)
    stream.X[:100, 4] = 0.0
    stream.X[300, 2] = 1e4
    y = 3.0 + 20.0 * stream.y if regression else (stream.y > 0).astype(float)
    if regression:
        y[[50, 51, 200]] = [1e6, -1e5, 1e3]
    weight = drawn_weights(len(y)) if weighted else np.ones(len(y))
    rows = np.flatnonzero(weight)
    learner: Any = TaskLevelsRegressor() if regression else TaskLevels()
    said = learner.test_then_train(stream.sparse if sparse else stream.X, y, stream.task, sample_weight=weight)
    twin = Twin(regression)
    assert_close(said[rows], learn(stream.X[rows], y[rows], stream.task[rows], twin, weight[rows]), 1e-9)
    state = learner._model.core.state.levels
    assert_close(state.mean[: len(twin.w)], twin.w, 1e-9)
    assert_close(state.levels[: len(twin.levels)], [twin.levels[k] for k in learner.tasks_], 1e-9)


def test_how_levels_differ_and_drift_is_found() -> None:
    rng, K = np.random.default_rng(0), 40
    task = np.tile(np.arange(K), 200)
    X = rng.normal(size=(len(task), 3))
    for drift, least, most in ((0.0, 0.0, 0.0), (1.0, 0.1, 10.0)):
        walks = rng.normal(size=K) + np.cumsum(drift * rng.normal(size=(200, K)), axis=0)
        y = X @ [1.0, -1.0, 0.5] + walks.ravel() + rng.normal(size=len(task))
        learner = TaskLevelsRegressor().partial_fit(X, y, task)
        assert least <= next(iter(learner.shares_))[1] <= most
        assert np.corrcoef(learner.levels_, walks[-1])[0, 1] > 0.8
        np.testing.assert_allclose(learner.coef_shared_, [1.0, -1.0, 0.5], atol=0.1)
        says = {name: other.test_then_train(X, y, task) for name, other in learner.baselines().items()}
        error = np.square(TaskLevelsRegressor().test_then_train(X, y, task) - y).mean()
        assert all(error < np.square(other - y).mean() for other in says.values())
        np.testing.assert_allclose(sum(learner.shares_.values()), 1.0)


def test_rows_of_a_round_are_answered_before_any_is_learned() -> None:
    stream = draw(2, n_rows=60, K=5, d=8, protocol="some", regression=True)
    said = TaskLevelsRegressor().test_then_train(stream.X, stream.y, stream.task, rounds=stream.rounds)
    learner, largest = TaskLevelsRegressor(), 0
    for rows in stream.rows_of_rounds:
        if hasattr(learner, "coef_shared_"):
            assert_close(said[rows], learner.predict(stream.X[rows], stream.task[rows]), 1e-10)
        largest = max(largest, len(rows))
        learner.partial_fit(stream.X[rows], stream.y[rows], stream.task[rows], rounds=stream.rounds[rows])
    assert largest > 2


def test_an_unseen_task_has_no_level() -> None:
    stream = draw(1, n_rows=100, regression=True)
    learner = TaskLevelsRegressor().partial_fit(*stream[:3])
    level = learner.predict(stream.X, stream.task) - learner.predict(stream.X, np.full(len(stream.y), 99))
    assert_close(level, learner.levels_[stream.task], 1e-10)
