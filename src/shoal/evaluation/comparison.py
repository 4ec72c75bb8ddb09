"""The same learner shared in three ways, compared by one metric over tasks: which is best, and is that beyond chance?

Chance is judged by Wilcoxon's signed rank test of paired differences (Biometrics Bulletin 1, 1945).
`scipy.stats.wilcoxon` is the same test, and the tests hold this one to it; but every run ends with this test, and
importing `scipy.stats` takes 0.4 s, a quarter of the program's start.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray
from shoal.evaluation.metrics.metric import counted
from shoal.evaluation.result import ENOUGH, Evaluation, higher_is_better, label, number
from shoal.html_tables import html_table

OUTCOMES = {"learner": "share partly", "pooled": "share fully", "independent": "do not share"}
UNDECIDED = "undecided"
OF_PAIRS = ("auc",)  # over all rows it compares rows of several tasks: no mean of what the tasks have
LEVEL = 0.025  # on each of two sides
EXACT = 50  # differences; up to here the distribution is counted out, ties or not


@dataclass(frozen=True)
class Difference:
    """How much better the best is than another, over tasks."""

    mean: float  # positive, whichever way the metric points
    standard_error: float  # NaN with fewer than two tasks
    is_clear: bool  # Wilcoxon's signed rank test over tasks tells it from zero (two-sided, 5 %)


@dataclass(frozen=True)
class Comparison:
    """One metric over one group of tasks."""

    scope: str  # "all tasks" or "the smallest tenth of the tasks"
    metric: str
    macro: bool  # whether it is the mean over tasks; else it is that of all rows
    tasks: int  # tasks where all have it; of the macro-AUC, those of 100 rows or more
    scores: dict[str, float]  # of "learner", "independent", "pooled"; without those that diverged
    differences: dict[str, Difference]  # of the best to each other
    share: float = 1.0  # of the group's rows that are in these tasks
    gains: dict[str, Difference] = field(default_factory=dict)  # of the learner over each other; negative: it is worse
    losing: int | None = None  # tasks that a model of their own serves better than the learner

    @property
    def best(self) -> str | None:
        """The best by the score; None with fewer than two scores."""
        defined = {name: score for name, score in self.scores.items() if not math.isnan(score)}
        if len(defined) < 2:
            return None
        return max(defined, key=lambda name: _sign(self.metric) * defined[name])

    def _repr_html_(self) -> str:
        titles = (self.scope, f"{'macro-' if self.macro else ''}{label(self.metric)}", "behind the best", "±")
        rows = []
        for name, score in self.scores.items():
            behind = self.differences.get(name)
            error = "" if behind is None or math.isnan(behind.standard_error) else number(behind.standard_error)
            cells = ("", "") if behind is None else (number(behind.mean), error)
            rows.append((name, number(score), *cells))
        return html_table(titles, rows)

    @property
    def runner_up(self) -> str | None:
        """The one nearest to the best."""
        return min(self.differences, key=lambda name: self.differences[name].mean, default=None)

    @property
    def outcome(self) -> str:
        """The best as advice: "share fully", "share partly" or "do not share".

        "undecided" with fewer than two tasks, or if most of the group's rows are in other tasks.
        """
        return UNDECIDED if self.best is None or self.tasks < 2 or self.share < ENOUGH else OUTCOMES[self.best]

    @property
    def is_clear(self) -> bool:
        """Whether the best is ahead of the next beyond chance."""
        return self.runner_up is not None and self.differences[self.runner_up].is_clear


def compare_by(
    evaluations: Mapping[str, Evaluation], metric: str, *, macro: bool, scope: str, tasks: Sequence[Any]
) -> Comparison:
    """Compare evaluations by one metric over these tasks; by the AUC over all rows if `tasks` are all tasks."""
    if metric in OF_PAIRS and not macro:
        return _compare_all_rows(evaluations, metric, scope, len(tasks))
    table = np.array([[one.per_task[task][metric] for task in tasks] for one in evaluations.values()], float)
    rows = np.array([next(iter(evaluations.values())).per_task[task]["rows"] for task in tasks], float)
    defined = counted(metric, table, rows) if macro else ~np.isnan(table).any(axis=0)
    share = float(rows[defined].sum() / max(1.0, rows.sum()))
    table, weights = table[:, defined], np.ones(int(defined.sum())) if macro else rows[defined]
    weights = weights / weights.sum() if len(weights) else weights
    scores = table @ weights if len(weights) else np.full(len(table), np.nan)
    named = dict(zip(evaluations, scores.tolist(), strict=True))
    found = Comparison(scope, metric, macro, len(weights), named, {}, share)
    if found.best is None:
        return found
    by_task = dict(zip(evaluations, _sign(metric) * table, strict=True))
    found = replace(
        found,
        differences=_differences(by_task, found.best, weights),
        gains=_differences(by_task, "learner", weights) if "learner" in by_task else {},
    )
    if not {"learner", "independent"} <= by_task.keys():
        return found
    return replace(found, losing=int((by_task["learner"] < by_task["independent"]).sum()))


def _differences(by_task: Mapping[str, FloatArray], one: str, weights: FloatArray) -> dict[str, Difference]:
    return {name: _difference(by_task[one] - values, weights) for name, values in by_task.items() if name != one}


def _compare_all_rows(evaluations: Mapping[str, Evaluation], metric: str, scope: str, n_tasks: int) -> Comparison:
    """By the scores over all rows, whose differences have no standard error over tasks."""
    found = Comparison(
        scope, metric, False, n_tasks, {name: one.overall[metric] for name, one in evaluations.items()}, {}
    )
    if found.best is None:
        return found

    def against(one: str) -> dict[str, Difference]:
        gains = {name: _sign(metric) * (found.scores[one] - score) for name, score in found.scores.items()}
        return {name: Difference(gain + 0.0, math.nan, False) for name, gain in gains.items() if name != one}

    gains = against("learner") if "learner" in found.scores else {}
    return replace(found, differences=against(found.best), gains=gains)


def _difference(gains: FloatArray, weights: FloatArray) -> Difference:
    """Mean and standard error over tasks, each with its weight.

    Ranks judge it, as Demsar (JMLR 7, 2006) recommends over tasks: the AUC of a task with ten rows is mostly noise,
    and a t test would weigh it by how far it is out.
    """
    mean = float(weights @ gains)
    n = len(gains)
    error = math.sqrt(n / (n - 1) * float(np.square(weights * (gains - mean)).sum())) if n > 1 else math.nan
    return Difference(mean, error, mean > 0.0 and signed_rank_p(gains) < LEVEL)


def _sign(metric: str) -> int:
    return 1 if higher_is_better(metric) else -1


def signed_rank_p(differences: NDArray[np.float64]) -> float:
    """P(R+ >= the observed R+) if each sign were a fair coin: small if the differences lie above zero.

    R+ is the sum of the ranks of |difference| over the positive ones; equal ones have their mean rank, zeros do not
    count. Without a difference the answer is 1.
    """
    differences = differences[differences != 0.0]
    _, which, counts = np.unique(np.abs(differences), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks = (2 * last - counts + 1)[which]  # twice the mean rank, a whole number
    observed = int(ranks[differences > 0.0].sum())
    return _exact(ranks, observed) if len(ranks) <= EXACT else _normal(ranks, observed)


def _exact(ranks: NDArray[np.int64], observed: int) -> float:
    """The share of the 2^n choices of signs whose sum is at least as large."""
    ways = np.zeros(1 + ranks.sum())  # to each sum of ranks; whole numbers up to 2^50, so nothing is rounded
    ways[0] = 1.0
    for rank in ranks:
        ways[rank:] = ways[rank:] + ways[: len(ways) - rank]
    return float(ways[observed:].sum() / 2.0 ** len(ranks))


def _normal(ranks: NDArray[np.int64], observed: int) -> float:
    """R+ is nearly normal with mean sum(ranks) / 2 and variance sum(ranks^2) / 4."""
    z = (observed - ranks.sum() / 2) / (math.sqrt(np.square(ranks).sum()) / 2)
    return math.erfc(z / math.sqrt(2.0)) / 2


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction: the smallest of m p-values times m, the next times m - 1, ..., never falling, at most 1.

    Examples
    --------
    >>> holm([0.04, 0.01, 0.02])
    [0.04, 0.03, 0.04]
    """
    found, largest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(np.argsort(p_values, kind="stable").tolist()):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        found[i] = largest
    return found


def critical_difference(k: int, n: int) -> float:
    """Nemenyi's, for k methods on n samples at 5 %.

    Examples
    --------
    The value that Demsar's table gives for four methods: q = 2.569.

    >>> round(critical_difference(4, 14), 3)
    1.254
    """
    from scipy.stats import studentized_range

    q = float(studentized_range.ppf(1.0 - 2.0 * LEVEL, k, np.inf)) / np.sqrt(2)
    return float(q * np.sqrt(k * (k + 1) / (6 * n)))
