"""Does sharing pay? A learner beside one model per task and one model for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.evaluation.result import HIGHER_IS_BETTER, Evaluation, label
from shoal.evaluation.signed_rank import signed_rank_p


@dataclass(frozen=True)
class Comparison:
    """One metric over one group of tasks. `gain` is positive where the learner is better."""

    scope: str  # "all tasks" or "the ten smallest tasks"
    metric: str  # "auc" and "rmse" are means over tasks, "error" is that of all rows of the tasks
    tasks: int  # tasks where the metric is defined for all three
    learner: float
    independent: float
    pooled: float

    def gain(self, against: str) -> float:
        """The learner's advantage over "independent" or "pooled"."""
        difference = self.learner - float(getattr(self, against))
        return difference if self.metric in HIGHER_IS_BETTER else 0.0 - difference  # no "-0"


@dataclass(frozen=True)
class Verdict:
    """Whether sharing pays, with the numbers behind it; `str()` gives the sentences."""

    comparisons: list[Comparison]
    overall: str  # one sentence about all tasks
    smallest: str  # one sentence about the smallest tasks; empty if these are all
    pays: bool  # over all tasks: better than either baseline beyond chance

    def __str__(self) -> str:
        return "\n".join(filter(None, (self.overall, self.smallest)))


def compare(learner: Evaluation, *, independent: Evaluation, pooled: Evaluation, smallest: int = 10) -> Verdict:
    """Say whether sharing pays, over all tasks and for the smallest ones.

    Judged by the macro-AUC (regression: the mean RMSE over tasks). A difference counts as real if Wilcoxon's signed
    rank test, paired by task, tells it from zero (two-sided, 5 %; six tasks at least) and the mean agrees.

    Parameters
    ----------
    learner, independent, pooled : Evaluation
        Of the same stream.
    smallest : int
        How many of the tasks with fewest rows are looked at by themselves, if there are more.

    Raises
    ------
    ValueError
        If the three did not see the same rows, or lack the metrics.
    """
    three = {"learner": learner, "independent": independent, "pooled": pooled}
    rows = {name: {task: values["rows"] for task, values in e.per_task.items()} for name, e in three.items()}
    if not rows["learner"] == rows["independent"] == rows["pooled"]:
        raise ValueError("the evaluations must be of the same stream: they saw different rows or tasks")
    main, other = ("rmse", None) if learner.kind == "regression" else ("auc", "error")
    for metric in filter(None, (main, other)):
        if any(metric not in evaluation.overall for evaluation in three.values()):
            raise ValueError(f"the verdict needs the metric {metric!r} in every evaluation")
    by_size = sorted(learner.per_task, key=lambda task: learner.per_task[task]["rows"])
    scopes = {"all tasks": by_size}
    if len(by_size) > smallest:
        scopes[_name_of(smallest)] = by_size[:smallest]
    comparisons, sentences, judgements = [], [], []
    for scope, tasks in scopes.items():
        table = _per_task(three, main, tasks)
        found = [Comparison(scope, main, table.shape[1], *_means(table))]
        if other is not None:
            found.append(Comparison(scope, other, len(tasks), *_over_rows(three, other, tasks)))
        judgements.append(_judgement(table, 1 if main in HIGHER_IS_BETTER else -1))
        sentences.append(_sentence(scope, tasks, learner, found, judgements[-1]))
        comparisons.extend(found)
    return Verdict(comparisons, sentences[0], "".join(sentences[1:]), judgements[0] == "pays")


def _name_of(n: int) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return "the smallest task" if n == 1 else f"the {words[n] if n < len(words) else n} smallest tasks"


def _per_task(three: dict[str, Evaluation], metric: str, tasks: list[object]) -> np.ndarray:
    """(3, tasks) values of the tasks where all three are defined."""
    table = np.array([[evaluation.per_task[task][metric] for task in tasks] for evaluation in three.values()])
    return table[:, ~np.isnan(table).any(axis=0)]


def _means(table: np.ndarray) -> list[float]:
    return table.mean(axis=1).tolist() if table.shape[1] else [float("nan")] * 3


def _over_rows(three: dict[str, Evaluation], metric: str, tasks: list[object]) -> list[float]:
    """The metric over all rows of the tasks: the tasks' values weighted by their rows."""
    rows = np.array([three["learner"].per_task[task]["rows"] for task in tasks])
    return [
        float(rows @ [evaluation.per_task[task][metric] for task in tasks] / rows.sum())
        for evaluation in three.values()
    ]


def _judgement(table: np.ndarray, sign: int) -> str:
    """Of the learner's differences to the baselines, paired by task."""
    if table.shape[1] < 2:
        return "unknown"
    signs = [_clear_sign(sign * (table[0] - baseline)) for baseline in table[1:]]
    return "pays" if min(signs) > 0 else "costs" if min(signs) < 0 else "unclear"


def _clear_sign(gains: NDArray[np.float64]) -> int:
    """1 or -1 where signed ranks and the mean agree and the ranks are beyond chance, else 0.

    Ranks, as Demsar (JMLR 7, 2006) recommends over tasks: the AUC of a task with ten rows is mostly noise, and a
    t test would weigh it by how far it is out.
    """
    side = 1 if signed_rank_p(gains) < 0.025 else -1 if signed_rank_p(-gains) < 0.025 else 0
    return side if side * gains.mean() > 0 else 0


def _sentence(scope: str, tasks: list[object], learner: Evaluation, found: list[Comparison], judgement: str) -> str:
    opening = {
        "pays": "sharing pays",
        "costs": "sharing does not pay",
        "unclear": "no clear difference",
        "unknown": "too few tasks with a defined score to tell",
    }[judgement]
    main = found[0]
    numbers = f"macro-{label(main.metric)} "
    if main.tasks == 0:
        numbers += "undefined"
    else:
        numbers += (
            f"{main.learner:.4f}, {main.gain('independent'):+.4f} against one model per task "
            f"and {main.gain('pooled'):+.4f} against one model for all"
        )
        if main.tasks < len(tasks):
            numbers += f" (defined in {main.tasks} of {len(tasks)} tasks)"
    for error in found[1:]:
        numbers += f"; error {error.learner:.4f}, against {error.independent:.4f} and {error.pooled:.4f}"
    where = f"{'Over' if scope.startswith('all') else 'In'} {scope} ({_sizes(learner, tasks)})"
    return f"{where} {opening}: {numbers}."


def _sizes(learner: Evaluation, tasks: list[object]) -> str:
    rows = [int(learner.per_task[task]["rows"]) for task in tasks]
    if min(rows) == max(rows):
        return f"{rows[0]:,} rows" + (" each" if len(rows) > 1 else "")
    return f"{min(rows):,} to {max(rows):,} rows each"
