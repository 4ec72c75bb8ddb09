"""The same learner shared in three ways, by one metric: which is best, and is that beyond chance?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray
from shoal.evaluation.result import HIGHER_IS_BETTER, Evaluation
from shoal.evaluation.signed_rank import signed_rank_p

OUTCOMES = {"learner": "share partly", "pooled": "share fully", "independent": "do not share"}
UNDECIDED = "undecided"
LEVEL = 0.025  # on each of two sides


@dataclass(frozen=True)
class Difference:
    """How much better the best is than another, over tasks."""

    mean: float  # positive, whichever way the metric points
    standard_error: float  # NaN with fewer than two tasks
    is_clear: bool  # Wilcoxon's signed rank test over tasks tells it from zero (two-sided, 5 %)


@dataclass(frozen=True)
class Comparison:
    """One metric over one group of tasks."""

    scope: str  # "all tasks" or "the ten smallest tasks"
    metric: str
    macro: bool  # whether it is the mean over tasks; else it is that of all rows
    tasks: int  # tasks where all have it
    scores: dict[str, float]  # of "learner", "independent", "pooled"; without those that diverged
    differences: dict[str, Difference]  # of the best to each other

    @property
    def best(self) -> str | None:
        """Who is best; None where nobody has a score, or only one."""
        defined = {name: score for name, score in self.scores.items() if not math.isnan(score)}
        if len(defined) < 2:
            return None
        return max(defined, key=lambda name: _sign(self.metric) * defined[name])

    @property
    def runner_up(self) -> str | None:
        """Who comes next."""
        return min(self.differences, key=lambda name: self.differences[name].mean, default=None)

    @property
    def outcome(self) -> str:
        """What the best stands for: "share fully", "share partly", "do not share"; or "undecided"."""
        return UNDECIDED if self.best is None or self.tasks < 2 else OUTCOMES[self.best]

    @property
    def is_clear(self) -> bool:
        """Whether the best is ahead of the next beyond chance."""
        return self.runner_up is not None and self.differences[self.runner_up].is_clear

    def gain(self, against: str) -> float:
        """The learner's advantage over "independent" or "pooled"; positive is better."""
        return _sign(self.metric) * (self.scores["learner"] - self.scores[against]) + 0.0


def compare_by(
    evaluations: Mapping[str, Evaluation], metric: str, *, macro: bool, scope: str, tasks: Sequence[Any]
) -> Comparison:
    """Compare evaluations by one metric over these tasks."""
    table = np.array([[one.per_task[task][metric] for task in tasks] for one in evaluations.values()], float)
    rows = np.array([next(iter(evaluations.values())).per_task[task]["rows"] for task in tasks], float)
    defined = ~np.isnan(table).any(axis=0)
    table, weights = table[:, defined], np.ones(int(defined.sum())) if macro else rows[defined]
    weights = weights / weights.sum() if len(weights) else weights
    scores = table @ weights if len(weights) else np.full(len(table), np.nan)
    named = dict(zip(evaluations, scores.tolist(), strict=True))
    found = Comparison(scope, metric, macro, len(weights), named, {})
    if found.best is None:
        return found
    by_task = dict(zip(evaluations, _sign(metric) * table, strict=True))
    differences = {
        name: _difference(by_task[found.best] - values, weights)
        for name, values in by_task.items()
        if name != found.best
    }
    return Comparison(scope, metric, macro, len(weights), named, differences)


def _difference(gains: FloatArray, weights: FloatArray) -> Difference:
    """Its mean and standard error over tasks, each with its weight.

    Ranks judge it, as Demsar (JMLR 7, 2006) recommends over tasks: the AUC of a task with ten rows is mostly noise,
    and a t test would weigh it by how far it is out.
    """
    mean = float(weights @ gains)
    n = len(gains)
    error = math.sqrt(n / (n - 1) * float(np.square(weights * (gains - mean)).sum())) if n > 1 else math.nan
    return Difference(mean, error, mean > 0.0 and _is_positive(gains))


def _is_positive(gains: NDArray[np.float64]) -> bool:
    return signed_rank_p(gains) < LEVEL


def _sign(metric: str) -> int:
    return 1 if metric in HIGHER_IS_BETTER else -1
