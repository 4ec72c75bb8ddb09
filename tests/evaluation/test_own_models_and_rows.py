"""One's own rows as a stream, models of others as competitors, and the ways of `search` that respect time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from river import linear_model, preprocessing
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, StratifiedKFold, TimeSeriesSplit

import shoal
from shoal import (
    HedgedSharing,
    IndependentTasks,
    MultitaskPerceptron,
    PassiveAggressive,
    PooledTasks,
    RegMTL,
    TabularClassifier,
    TaskColumn,
)
from shoal.datasets import Dataset, make_related_tasks
from shoal.evaluation import ModelAdapter, progressive_validate, search
from shoal.evaluation.tuning import GRIDS

ROWS = make_related_tasks(n_tasks=4, n_features=5, n_rows=300, relatedness=0.8, noise=0.1, seed=3)
DATA = (ROWS.X, ROWS.y, ROWS.task)


def test_one_tuple_is_a_stream() -> None:
    expected = progressive_validate(MultitaskPerceptron(), ROWS).overall
    pandas, frame = pd.DataFrame(ROWS.X, columns=list("abcde")), pl.DataFrame(ROWS.X, schema=list("abcde"))
    series = pd.Series(ROWS.y), pd.Series(ROWS.task)
    for rows in (DATA, (pandas, *series), (frame, ROWS.y.tolist(), ROWS.task.tolist()), (ROWS.X.tolist(), *DATA[1:])):
        assert progressive_validate(MultitaskPerceptron(), rows).overall == expected


class Mean:
    """The running mean of each task's label."""

    def __init__(self) -> None:
        self.sums: dict[Any, float] = {}

    def learn_one(self, x: dict[Any, float], y: float, task: Any) -> None:
        self.sums[task] = self.sums.get(task, 0.0) + y

    def predict_one(self, x: dict[Any, float], task: Any) -> int:
        return 1 if self.decision_one(x, task) >= 0 else -1

    def decision_one(self, x: dict[Any, float], task: Any) -> float:
        return self.sums.get(task, 0.0)


def test_models_of_others_compete_as_they_are() -> None:
    river = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    models = {
        "shoal": MultitaskPerceptron(), "mine": Mean(), "river": river,
        "sklearn": SGDClassifier(loss="log_loss", random_state=0),
        "own": ModelAdapter(SGDClassifier(loss="log_loss", random_state=0), per_task=True),
    }  # fmt: skip
    found = progressive_validate(models, ROWS, checkpoints=None)
    model, wrong = Mean(), 0
    for y, task in zip(ROWS.y.tolist(), ROWS.task.tolist(), strict=True):
        wrong += model.predict_one({}, task) != y
        model.learn_one({}, y, task)
    assert found["mine"].overall["error"] == wrong / len(ROWS)
    alone, losses = preprocessing.StandardScaler() | linear_model.LogisticRegression(), []
    for x, y in zip(ROWS.X.tolist(), ROWS.y.tolist(), strict=True):
        p = alone.predict_proba_one(dict(enumerate(x))).get(1.0, 0.5)
        losses.append(log_loss([y], [[1 - p, p]], labels=[-1, 1]))
        alone.learn_one(dict(enumerate(x)), y)
    assert found["river"].overall["log_loss"] == pytest.approx(np.mean(losses), rel=0.05)
    assert found["own"].overall["error"] < 0.5
    assert found["own"].n_updates == len(ROWS)
    assert "log_loss" in found["sklearn"].overall
    assert set(found["own"].learner.model_) == set(ROWS.task.tolist())


def test_regressors_and_rows_with_names_compete_too() -> None:
    y = ROWS.X @ np.arange(5.0)
    rows = [(dict(zip("abcde", x, strict=True)), t, k) for x, t, k in zip(ROWS.X.tolist(), y, ROWS.task, strict=True)]
    river = preprocessing.StandardScaler() | linear_model.LinearRegression()
    models = {"river": river, "sklearn": SGDRegressor(random_state=0)}
    found = progressive_validate(models, rows)
    assert found["sklearn"].overall["rmse"] < y.std()
    assert set(found["river"].learner.model_["LinearRegression"].weights) == set("abcde")
    with pytest.raises(TypeError, match="object has neither learn_one and predict_one nor partial_fit and predict"):
        progressive_validate(object(), ROWS)


def test_learners_of_one_run_see_the_same_rows_in_whichever_order_names_come() -> None:
    """The second learner saw values under the names of others: the first had sorted them in place."""
    rows = [({"a": 1.0, "b": -2.0}, 1, "x"), ({"c": 3.0, "b": 0.5, "a": -4.0}, 0, "y")] * 4
    learners = {"first": PassiveAggressive(), "second": PassiveAggressive()}
    progressive_validate(learners, rows)
    np.testing.assert_array_equal(learners["first"].coef_, learners["second"].coef_)


def test_models_with_the_task_as_a_column_compete_on_frames_of_any_columns() -> None:
    frame = pd.DataFrame(ROWS.X, columns=list("abcde")).assign(
        shop=ROWS.task, offer=np.where(ROWS.X[:, 0] > 1, "x", "y")
    )
    y = np.where(ROWS.y > 0, "yes", "no")
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        found, by_column = (
            progressive_validate(TabularClassifier("shop", PassiveAggressive()), stream)
            for stream in ((table, y, ROWS.task), (table, y))
        )
        assert by_column.per_task == found.per_task
        alone, wrong = TabularClassifier("shop", PassiveAggressive()), 0
        for x, label in zip(frame.to_dict("records"), y.tolist(), strict=True):
            wrong += alone.__sklearn_is_fitted__() and alone.predict_one(x) != label
            alone.learn_one(x, label, classes=["no", "yes"])
        assert found.overall["error"] == pytest.approx(wrong / len(y), abs=1 / len(y))  # the first row has no forecast
        assert len(found.per_task) == 4
    numbers = frame.drop(columns="offer")
    found = progressive_validate(TaskColumn(MultitaskPerceptron(), "shop"), (numbers, ROWS.y, ROWS.task))
    expected = progressive_validate(MultitaskPerceptron(), ROWS)
    assert found.overall["error"] == expected.overall["error"]


def test_a_dataset_of_a_frame_is_the_stream_of_its_table() -> None:
    frame = pd.DataFrame({"shop": ["a", "b", "a", "b"], "price": [1.0, 2, 3, 4], "sold": ["no", "yes", "yes", "no"]})
    for table in (frame, pl.DataFrame(frame), frame.to_dict("records")):
        data = Dataset.from_frame(table, task="shop", label="sold")
        assert (data.y.tolist(), data.task.tolist()) == ([-1, 1, 1, -1], ["a", "b", "a", "b"])
        assert data.feature_names == ("constant", "price")
    assert Dataset.from_frame(frame, task="shop", label="price", kind="regression").y.tolist() == [1, 2, 3, 4]
    with pytest.raises(ValueError, match=r"column 'sold' has the labels \['a', 'b', 'c'\], expected two"):
        Dataset.from_frame(frame.assign(sold=list("abca")), task="shop", label="sold")


def test_wrappers_take_their_estimator_first() -> None:
    model = SGDClassifier(random_state=0)
    assert IndependentTasks(model).estimator is PooledTasks(model).estimator is model


def test_search_is_in_order_of_time_by_default_or_by_any_cv() -> None:
    found = search(MultitaskPerceptron(), *DATA, parameters={"relation": [0.0, 4.0]})
    for trial in found.trials:
        expected = progressive_validate(MultitaskPerceptron(**trial.parameters), ROWS).overall["error"]
        assert trial.scores == (expected,)
    batch = search(RegMTL(), *DATA, parameters={"mu": [1.0]}, n_folds=3)
    splits = search(RegMTL(), *DATA, parameters={"mu": [1.0]}, cv=TimeSeriesSplit(3))
    assert batch.trials[0].scores == splits.trials[0].scores
    assert len(splits.trials[0].scores) == 3
    groups = search(MultitaskPerceptron(), *DATA, parameters={"relation": [4.0]}, cv=GroupKFold(2))
    assert len(groups.trials[0].scores) == 2  # of tasks that were not seen
    three = search(MultitaskPerceptron(), *DATA, parameters={"relation": [4.0]}, cv=3)
    assert (
        three.trials[0].scores
        == search(MultitaskPerceptron(), *DATA, parameters={"relation": [4.0]}, cv=StratifiedKFold(3)).trials[0].scores
    )
    pairs = [(np.arange(200), np.arange(200, 300))]
    [trial] = search(MultitaskPerceptron(), *DATA, parameters={"relation": [4.0]}, cv=pairs).trials
    model = MultitaskPerceptron(relation=4.0).fit(ROWS.X[:200], ROWS.y[:200], ROWS.task[:200])
    assert trial.score == np.mean(model.predict(ROWS.X[200:], ROWS.task[200:]) != ROWS.y[200:])
    with pytest.raises(ValueError, match="gives no rows to learn or to judge"):
        search(MultitaskPerceptron(), *DATA, parameters={"relation": [4.0]}, cv=[([], [1])])


def test_search_has_grids_of_its_own() -> None:
    found = search(MultitaskPerceptron(), *DATA, n_draws=3, random_state=0)
    assert set(found.best_params) == set(GRIDS["MultitaskPerceptron"])
    inner = PooledTasks(LogisticRegression())
    for learner, names in ((HedgedSharing(), "memory, relation"), (inner, "estimator__C,")):
        with pytest.raises(ValueError, match=rf"has no grid of its own, .* such as parameters=\{{'C': .*{names}"):
            search(learner, *DATA)
    batch = {name for name in shoal.__all__ if getattr(shoal, name).__module__.startswith("shoal.batch.")}
    assert batch <= GRIDS.keys()
