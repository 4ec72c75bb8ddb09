"""Forecasts from outside: mixed as the twin mixes them, and used as far as they are good."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.twins.outside_forecast import Mixture

import shoal
from shoal import (
    Conformal,
    Guarded,
    HedgedSharing,
    LabelQuery,
    Learner,
    MultiClass,
    MultitaskPerceptron,
    MultitaskRegressor,
    OutsideForecast,
)


def stream(n: int, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """Features, logits that other models know well and badly, logits, tasks."""
    rng = np.random.default_rng(seed)
    X, task = rng.normal(size=(n, 3)), rng.integers(5, size=n)
    hidden = 2.0 * rng.normal(size=n)
    signal = X[:, 0] * (1 + task) + hidden
    outside = np.column_stack([hidden + 0.5 * rng.normal(size=n), rng.normal(size=n)])
    return X, outside, signal, task


def with_columns(X: Any, outside: Any) -> Any:
    return np.column_stack([X[:, :1], np.nan_to_num(outside[:, 0]), X[:, 1:], np.nan_to_num(outside[:, 1])])


COLUMNS = [1, 4]


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_answers_are_those_of_the_twin(regression: bool, sparse: bool) -> None:
    X, outside, signal, task = stream(500)
    rng = np.random.default_rng(1)
    if regression:
        inner: Learner = MultitaskRegressor(eta=0.05)
        y = 40.0 + 10.0 * signal
        outside = 40.0 + 10.0 * outside
    else:
        inner = MultitaskPerceptron(loss="logistic")
        y = np.where(rng.random(500) < 1 / (1 + np.exp(-signal)), 1, -1)
        outside = 1 / (1 + np.exp(-outside))
        outside[:3, 0] = 1e-300, 1.0, 2.5  # clipped
    outside[rng.random(outside.shape) < 0.2] = np.nan
    alone = inner.test_then_train(np.insert(X, [1, 3], 0.0, axis=1), y, task)
    rows = with_columns(X, outside)
    learner = OutsideForecast(inner, columns=COLUMNS)
    found = learner.test_then_train(sp.csr_matrix(rows) if sparse else rows, y, task)
    twin, expected = Mixture(2, regression=regression), []
    for k, f, g, target in zip(task.tolist(), alone, outside, y, strict=True):
        expected.append(twin.q(k, f, g))
        twin.learn(k, f, g, float(target) if regression else float(target > 0))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(learner.weights_, [twin.own[k] for k in learner.tasks_], rtol=1e-9)
    new = learner.predict(rows[:1], ["new"]) if regression else learner.decision_function(rows[:1], ["new"])
    f = learner.estimator_._values(np.insert(X[:1], [1, 3], 0.0, axis=1), ["new"])[0]
    assert new[0] == pytest.approx(twin.q("new", f, outside[0]), rel=1e-10)


def test_a_good_forecast_helps_and_a_bad_one_hardly_harms() -> None:
    X, outside, signal, task = stream(4_000)
    y = np.where(np.random.default_rng(2).random(4_000) < 1 / (1 + np.exp(-signal)), 1, -1)
    p = 1 / (1 + np.exp(-outside))

    def loss(learner: Any, rows: Any) -> float:
        return float(np.logaddexp(0.0, -y * learner.test_then_train(rows, y, task)).mean())

    inner = MultitaskPerceptron(loss="logistic")
    alone = loss(inner, X)
    good, bad = (loss(OutsideForecast(inner, columns=[3]), np.column_stack([X, p[:, j]])) for j in range(2))
    assert good < 0.9 * min(alone, np.logaddexp(0.0, -y * outside[:, 0]).mean())
    assert bad < alone + 0.01


def test_what_a_forecast_adds_is_a_contribution() -> None:
    X, outside, signal, task = stream(600)
    rows = with_columns(X, outside)
    learner = OutsideForecast(MultitaskRegressor(eta=0.05), columns=COLUMNS).partial_fit(rows, signal, task)
    found = learner.explain_one(rows[0], task[0])
    by_column = {one.feature: one.total for one in found.contributions}
    assert sum(by_column.values()) == pytest.approx(learner.predict_one(rows[0], task[0]))
    without = rows[0].copy()
    without[4] = 0.0
    assert by_column[4] == pytest.approx(found.decision - learner.predict_one(without, task[0]))


def test_a_saved_one_goes_on_inside_intervals_and_around_a_guard(tmp_path: Path) -> None:
    X, outside, signal, task = stream(400)
    rows, y = with_columns(X, 1 / (1 + np.exp(-outside))), np.where(signal > 0, "yes", "no")
    learner: Any = Conformal(OutsideForecast(Guarded(HedgedSharing(memory=1.0)), columns=COLUMNS))
    learner.partial_fit(rows[:200], y[:200], task[:200]).save(tmp_path / "model")
    again = shoal.load(tmp_path / "model")
    for one in (learner, again):
        one.partial_fit(rows[200:], y[200:], task[200:])
    np.testing.assert_array_equal(again.predict_proba(rows, task), learner.predict_proba(rows, task))
    np.testing.assert_array_equal(again.predict_set(rows, task), learner.predict_set(rows, task))


@pytest.mark.parametrize(
    ("learner", "why"),
    [
        (OutsideForecast(MultiClass()), "goes around the learner itself, got a MultiClass"),
        (OutsideForecast(LabelQuery()), "goes around the learner itself, got a LabelQuery"),
        (OutsideForecast("words"), "needs a learner of this library, got str"),
        (OutsideForecast(columns=[-1]), "different columns of X"),
        (OutsideForecast(columns=[1, 1]), "different columns of X"),
        (OutsideForecast().set_params(columns=["price"]), "different columns of X"),
    ],
)
def test_what_it_cannot_go_around_is_refused(learner: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        learner.fit(np.ones((2, 2)), [0, 1])
