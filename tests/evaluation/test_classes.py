"""Progressive validation of more than two classes."""

from __future__ import annotations

import numpy as np
import pytest

from shoal import Chunk, MultiClass, PassiveAggressive
from shoal.evaluation import progressive_validate

NAMES = ["ash", "elm", "fir"]


@pytest.mark.parametrize("delay", [0, 5])
@pytest.mark.parametrize("size", [7, 400])
def test_several_classes_are_judged_on_predictions_given_before_learning(size: int, delay: int) -> None:
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(400, 5)), rng.integers(3, size=400)
    y = np.array(NAMES)[(X @ rng.normal(size=(5, 3))).argmax(axis=1)]
    chunks = [Chunk(X[i : i + size], y[i : i + size], task[i : i + size]) for i in range(0, 400, size)]
    found = progressive_validate(MultiClass(PassiveAggressive()), chunks, delay=delay, classes=NAMES)
    learner, errors = MultiClass(PassiveAggressive()), np.zeros(3)
    for row in range(400):
        if row > delay:
            guess = learner.predict(X[row : row + 1], task[row : row + 1])[0]
        else:  # a learner that knows the classes and no row has equal margins; one that waits for labels has none
            guess = None if delay else NAMES[0]
        errors[task[row]] += guess != y[row]
        late = row - delay
        if late >= 0:
            learner.partial_fit(X[late : late + 1], y[late : late + 1], task[late : late + 1], classes=NAMES)
    assert found.kind == "multiclass"
    assert found.overall["error"] == pytest.approx(errors.sum() / 400)
    assert [found.per_task[k]["error"] for k in range(3)] == pytest.approx((errors / np.bincount(task)).tolist())
    assert sum(found.confusion.values()) == 400
    wrong = sum(rows for (true, guess), rows in found.confusion.items() if true != guess)
    assert wrong == errors.sum()
    assert list(found.overall) == ["error"]  # margins that are no log-odds give no probabilities
