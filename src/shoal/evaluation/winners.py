"""Which way of sharing won in which task, for learners that weigh several."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from shoal.evaluation.result import Evaluation


class Winner(NamedTuple):
    """The way of sharing with the largest weight in a task."""

    way: str
    weight: float


def winners(evaluation: Evaluation) -> dict[Any, Winner]:
    """The winner of each task; empty unless the learner has `experts_` and `weights_`."""
    learner = evaluation.learner
    if not hasattr(learner, "experts_") or not hasattr(learner, "weights_"):
        return {}
    weights, names = np.asarray(learner.weights_), list(learner.experts_)
    best = weights.argmax(axis=1)
    found = zip(learner.tasks_, best.tolist(), weights.max(axis=1).tolist(), strict=True)
    return {task: Winner(names[k], weight) for task, k, weight in found}
