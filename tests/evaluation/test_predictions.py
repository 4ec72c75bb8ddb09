"""Predictions as columns, of a run and of rows that are not learned: each column is the learner's own answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shoal import Chunk, Conformal, MultiClass, MultitaskPerceptron, MultitaskRegressor, PassiveAggressive
from shoal.evaluation import progressive_validate
from shoal.evaluation.predictions import Predictions, predict_chunk

X = np.random.default_rng(0).normal(size=(120, 3))
TASK = np.array(["a", "b", "c"] * 40)
TWO, THREE = np.where(X[:, 0] > 0, "yes", "no"), np.array(["x", "y", "z"])[np.abs(X).argmax(axis=1)]
LOGISTIC = MultitaskPerceptron(loss="logistic")


def of_run(learner: Any, y: Any, task: Any = TASK) -> Predictions:
    found: list[Predictions] = []
    progressive_validate(learner, (X, y, task), on_predictions=found.append)
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("task", [TASK, None])
def test_columns_of_a_run(task: Any) -> None:
    tasks, again = None if task is None else TASK.tolist(), MultitaskPerceptron(loss="logistic")
    found, decisions = of_run(MultitaskPerceptron(loss="logistic"), TWO, task), again.test_then_train(X, TWO, task)
    assert (found.task, found.label) == (tasks, TWO.tolist())
    assert found.predicted == np.where(decisions >= 0, "yes", "no").tolist()
    assert found.probability is not None
    assert found.probability == pytest.approx(1 / (1 + np.exp(-decisions)))
    assert found[4:] == (None, None, None, None, None)
    plain = of_run(PassiveAggressive(), TWO, task)
    assert (plain.task, plain.label, plain.probability) == (tasks, TWO.tolist(), None)
    assert plain.decision is not None
    assert plain.decision.tolist() == PassiveAggressive().test_then_train(X, TWO, task).tolist()
    many = of_run(MultiClass(PassiveAggressive()), THREE, task)
    assert (many.task, many.label) == (tasks, THREE.tolist())
    assert set(many.predicted[5:]) == {"x", "y", "z"}
    numbers = of_run(MultitaskRegressor(), X[:, 1], task)
    assert (numbers.task, numbers.label) == (tasks, X[:, 1].tolist())
    assert numbers.predicted == MultitaskRegressor().test_then_train(X, X[:, 1], task).tolist()
    assert numbers[3:] == (None, None, None, None, None, None)


def test_columns_of_rows_that_are_not_learned() -> None:
    rows = Chunk(X[:4], None, np.array(["a", "new", "c", "b"]))
    asked, known = (rows.X, rows.task), [True, False, True, True]
    learner = MultitaskPerceptron(loss="logistic").fit(X, TWO, TASK)
    found = predict_chunk(learner, rows)
    assert found[:3] == (["a", "new", "c", "b"], None, learner.predict(*asked).tolist())
    assert found.probability is not None
    assert found.probability.tolist() == learner.predict_proba(*asked)[:, 1].tolist()
    assert found[4:] == (None, known, None, None, None)
    sets = predict_chunk(Conformal(LOGISTIC, coverage=0.6).fit(X, TWO, TASK), rows).labels
    assert sets is not None
    assert {tuple(labels) for labels in sets} <= {(), ("no",), ("yes",), ("no", "yes")}
    plain = PassiveAggressive().fit(X, TWO, TASK)
    found = predict_chunk(plain, rows)
    assert (found.probability, found.is_known) == (None, known)
    assert found.decision is not None
    assert found.decision.tolist() == plain.decision_function(*asked).tolist()
    many = MultiClass(MultitaskPerceptron(loss="logistic")).fit(X, THREE, TASK)
    found = predict_chunk(many, rows)
    assert found.predicted == many.predict(*asked).tolist()
    assert found.probability is not None
    assert found.probability.tolist() == many.predict_proba(*asked).max(axis=1).tolist()
    numbers = Conformal(MultitaskRegressor(eta=0.1)).fit(X, X[:, 1], TASK)
    found = predict_chunk(numbers, rows)
    assert found[:3] == (["a", "new", "c", "b"], None, numbers.predict(*asked).tolist())
    assert found.interval is not None
    assert found.interval.tolist() == numbers.predict_interval(*asked).tolist()
    alone = MultitaskRegressor().fit(X, X[:, 1])
    found = predict_chunk(alone, Chunk(X[:4], None, None))
    assert found == Predictions(None, None, alone.predict(X[:4]).tolist(), None, None)
