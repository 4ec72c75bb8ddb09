"""Several learners on one stream, ranked by their scores over tasks: is the best ahead beyond chance?"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.evaluation.comparison import compare_by, holm, signed_rank_p
from shoal.evaluation.metrics.metric import counted
from shoal.evaluation.result import Evaluation, higher_is_better, main_metric

LEVEL = 0.05


@dataclass(frozen=True)
class Standing:
    """One learner's rank, score and distance from the best."""

    name: str
    rank: int | None  # by the score, 1 is best; None for one that diverged or has no score
    metric: str  # the score is the mean over tasks of it
    score: float
    mean_rank: float  # over tasks; equal ones share the mean of their ranks
    behind: float  # distance from the best, positive whichever way the metric points; 0 for the best
    standard_error: float  # of the distance, over tasks
    p_value: float  # Wilcoxon's signed rank test against the best, two-sided, after Holm's correction; 1 for the best
    n_tasks: int  # over which ranks and test are
    diverged: int | None  # the row at which it diverged

    @property
    def is_clear(self) -> bool:
        """Whether the best is ahead of it beyond chance (5 %)."""
        return self.p_value < LEVEL


def standings(evaluations: Mapping[str, Evaluation]) -> list[Standing]:
    """Rank learners by the metric that judges a run (macro-AUC; macro-RMSE; of several classes the macro-error).

    The AUC of a task counts from 100 rows on; where most rows are in smaller tasks, the mean log-loss over tasks ranks,
    or the mean error if a learner has no probabilities.

    Ranks over tasks and signed rank tests as Demsar (JMLR 7, 2006) has them, over the tasks where all have the metric.

    Parameters
    ----------
    evaluations : dict of name -> Evaluation
        Of one stream.

    Returns
    -------
    list of Standing
        The best first; those that diverged last.

    Raises
    ------
    ValueError
        If there is none, or they did not see the same rows.
    """
    if not evaluations:
        raise ValueError("evaluations is empty; expected at least one")
    first = next(iter(evaluations.values()))
    rows = {task: values["rows"] for task, values in first.per_task.items()}
    if any({task: v["rows"] for task, v in one.per_task.items()} != rows for one in evaluations.values()):
        raise ValueError("the evaluations must be of the same stream: they saw different rows or tasks")
    judges = {main_metric(one) for one in evaluations.values() if one.diverged is None} or {main_metric(first)}
    metric = judges.pop() if len(judges) == 1 else next(iter(first.overall))
    sign = 1.0 if higher_is_better(metric) else -1.0
    sound = {name: one for name, one in evaluations.items() if one.diverged is None and metric in one.overall}
    found = compare_by(sound, metric, macro=True, scope="all tasks", tasks=list(rows)) if sound else None
    scores = {} if found is None else {n: s for n, s in found.scores.items() if not np.isnan(s)}
    order = sorted(scores, key=lambda name: -sign * scores[name])
    table = sign * np.array([[sound[name].per_task[task][metric] for task in rows] for name in order], float)
    table = table[:, counted(metric, table, [*rows.values()])] if order else table
    ranks = mean_ranks(table) if order else np.zeros(0)
    p_values = [1.0, *holm([min(1.0, 2.0 * signed_rank_p(table[0] - other)) for other in table[1:]])]
    placed = []
    for i, name in enumerate(order):
        behind, error = sign * (scores[order[0]] - scores[name]), _standard_error(table[0] - table[i])
        numbers = scores[name], float(ranks[i]), float(behind), error, p_values[i], table.shape[1]
        placed.append(Standing(name, 1 + i, metric, *numbers, None))
    nan = float("nan")
    unranked = [name for name in evaluations if name not in scores]
    return placed + [Standing(n, None, metric, nan, nan, nan, nan, nan, 0, evaluations[n].diverged) for n in unranked]


def mean_ranks(table: FloatArray) -> FloatArray:
    """(learners,) mean over tasks of the ranks in each column, 1 for the largest; equal ones share theirs."""
    above = (table[:, None, :] < table[None, :, :]).sum(axis=1)
    alike = (table[:, None, :] == table[None, :, :]).sum(axis=1)
    return np.asarray((above + 0.5 * (alike + 1)).mean(axis=1))


def fewest_pairs(n_learners: int) -> int:
    """How many pairs the signed rank tests of the best against the others need, after Holm's correction, to tell any.

    The least p of K learners, 2 or more, is 2 (K - 1) / 2^n: all n differences of one sign.

    >>> [fewest_pairs(n) for n in (2, 3, 10)]
    [6, 7, 9]
    """
    return math.floor(math.log2(2 * (n_learners - 1) / LEVEL)) + 1


def conclusion(placed: Sequence[Standing]) -> str:
    """A sentence that names the best learner and those that it may have beaten by chance."""
    ranked = [(one.name, one.is_clear) for one in placed if one.rank is not None]
    return conclusion_of(ranked, placed[0].n_tasks if placed else 0, "tasks")


def conclusion_of(ranked: Sequence[tuple[str, bool]], n: int, pairs: str) -> str:
    """The same of names, the best first, and whether the best is clearly ahead of each over n tasks, or orders."""
    if len(ranked) < 2:
        return "there are no two learners to compare"
    (best, _), *others = ranked
    if n < (fewest := fewest_pairs(len(ranked))):
        return (
            f"{best} is best; {n} {pairs} are too few for the signed rank test (5 %) to tell its lead over any other "
            f"from chance: {len(ranked)} learners need {fewest} or more."
        )
    test = f"signed rank test over {n} {pairs}, 5 %"
    unsure = [name for name, is_clear in others if not is_clear]
    if not unsure:
        return f"{best} is best, and clearly ahead of all others ({test})."
    if len(unsure) == len(others):
        return f"{best} is best, but its lead over any other may be chance ({test})."
    return f"{best} is best; its lead over {', '.join(unsure)} may be chance ({test})."


def _standard_error(differences: FloatArray) -> float:
    n = len(differences)
    return float(differences.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
