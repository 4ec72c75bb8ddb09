"""Quantiles of HedgedSharingRegressor: against the twin, in order, of counts and amounts, as answers everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import mean_pinball_loss
from tests.streams import assert_close
from tests.twins import residual_quantiles as twin

from shoal import Guarded, HedgedSharingRegressor, OutsideForecast, load
from shoal.evaluation import progressive_validate

LEVELS = [0.1, 0.5, 0.9]


def rows(n: int = 400, K: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tasks and rows differ in spread."""
    rng = np.random.default_rng(seed)
    X, task = rng.normal(size=(n, 4)), np.append(np.arange(K), rng.integers(K, size=n - K))
    y = X[:, 0] + (1 + task) * np.exp(0.5 * X[:, 1]) * rng.normal(size=n)
    return X, y, task


@pytest.mark.parametrize("kind", ["real", "positive", "counts"])
def test_equals_twin(kind: str) -> None:
    X, y, task = rows()
    y = {"real": y, "positive": np.exp(0.3 * y), "counts": np.floor(np.exp(0.3 * y))}[kind]
    means = HedgedSharingRegressor().test_then_train(X, y, task)
    expected = twin.answers(X, y, task, means, LEVELS)
    learner = HedgedSharingRegressor(target=LEVELS)
    found = learner.test_then_train(X, y, task)
    assert_close(found, expected, 1e-10)
    assert (np.diff(found) >= 0.0).all()
    if kind != "real":
        assert found[1:].min() >= (0.0 if kind == "counts" else 0.5 * y.min())
    if kind == "counts":
        np.testing.assert_array_equal(found[1:], np.floor(found[1:]))
    assert_close(HedgedSharingRegressor(target=0.9).test_then_train(X, y, task), _alone(X, y, task, means, 0.9), 1e-10)


def _alone(X: Any, y: Any, task: Any, means: Any, level: float) -> Any:
    return twin.answers(X, y, task, means, [level])[:, 0]


def test_several_quantiles_are_answers_everywhere(tmp_path: Any) -> None:
    X, y, task = rows(1500)
    learner = HedgedSharingRegressor(target=LEVELS).partial_fit(X[:1000], y[:1000], task[:1000])
    answers = learner.predict(X, task)
    assert answers.shape == (1500, 3)
    assert learner.predict_one(X[1], int(task[1])) == pytest.approx(answers[1].tolist())
    assert (y[1000:, None] <= answers[1000:]).mean(axis=0) == pytest.approx(LEVELS, abs=0.05)
    assert learner.score(X[1000:], y[1000:], task[1000:]) > 0.1
    learner.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for each in (learner, again):
        each.partial_fit(X[1000:], y[1000:], task[1000:])
    np.testing.assert_array_equal(again.predict(X, task), learner.predict(X, task))
    median = HedgedSharingRegressor(target="median").partial_fit(X, y, task)
    assert median.predict(X, task).shape == (1500,)


def test_options_that_are_none() -> None:
    X, y, task = rows(20)
    for target in ("mode", 1.5, [0.9, 0.1], [], [0.1, 0.1], None):
        with pytest.raises(ValueError, match="target must be"):
            HedgedSharingRegressor(target=target).fit(X, y, task)
    learner = HedgedSharingRegressor(target="median").fit(X, y, task)
    with pytest.raises(ValueError, match="only change before fit"):
        learner.set_params(target=0.9).partial_fit(X, y, task)
    with pytest.raises(ValueError, match="only change before fit"):
        learner.set_params(target="mean").partial_fit(X, y, task)
    with pytest.raises(ValueError, match="several quantiles"):
        HedgedSharingRegressor(target=LEVELS).fit(X, y, task).explain_one(X[0], 0)
    for target in (0.9, LEVELS):
        for wrapper in (Guarded, OutsideForecast):
            with pytest.raises(ValueError, match="judges numbers by squared errors"):
                wrapper(HedgedSharingRegressor(target=target)).fit(X, y, task)


@pytest.mark.parametrize("delay", [0, 5])
def test_several_quantiles_are_judged_by_the_mean_of_their_losses(delay: int) -> None:
    X, y, task = rows(400)
    learner = HedgedSharingRegressor(target=LEVELS)
    told: list[Any] = []
    found = progressive_validate(
        {"several": learner, "mean": HedgedSharingRegressor()},
        (X, y, task),
        delay=delay,
        on_predictions=told.append,
        metrics=["pinball", "crps"],
    )
    by_level = told[0].quantiles
    assert list(by_level) == [str(level) for level in LEVELS]
    losses = [mean_pinball_loss(y, by_level[str(level)], alpha=level) for level in LEVELS]
    crps = 2 * np.dot([0.3, 0.4, 0.3], losses)  # of what is nearest to 0.1, 0.5 and 0.9
    assert found["several"].overall == {"pinball": pytest.approx(np.mean(losses)), "crps": pytest.approx(crps)}
    assert found["several"].overall["pinball"] < found["mean"].overall["pinball"]
    mine = task == task[0]
    losses = [mean_pinball_loss(y[mine], by_level[str(level)][mine], alpha=level) for level in LEVELS]
    assert found["several"].per_task[task[0]]["pinball"] == pytest.approx(np.mean(losses))
    assert told[0].predicted == by_level["0.5"].tolist()
    with pytest.raises(ValueError, match="metric 'rmse' judges one answer a row"):
        progressive_validate(HedgedSharingRegressor(target=LEVELS), (X, y, task), metrics="rmse")
    with pytest.raises(ValueError, match="must answer the same quantiles"):
        progressive_validate(
            {"a": HedgedSharingRegressor(target=LEVELS), "b": HedgedSharingRegressor(target=0.3)}, (X, y, task)
        )
