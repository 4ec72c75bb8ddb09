"""Does sharing pay? A learner compared with itself without sharing (a model per task) and with one model for all."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.evaluation.comparison import OF_PAIRS, OUTCOMES, UNDECIDED, Comparison, compare_by
from shoal.evaluation.result import Evaluation, label, number

# (metric, whether it is the mean over tasks); the first that can decides, the others say whether they agree
METRICS = {
    "binary": (("auc", True), ("auc", False), ("log_loss", False), ("error", False)),
    "multiclass": (("error", True), ("log_loss", False)),
    "regression": (("rmse", True), ("mae", False)),
}
NEEDED = {"binary": ("auc", "error"), "multiclass": ("error",), "regression": ("rmse",)}
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True)
class Verdict:
    """Whether sharing pays, with the numbers behind it; `str()` gives the sentences."""

    outcome: str  # over all tasks: "share fully", "share partly", "do not share" or "undecided"
    is_clear: bool  # whether the best is ahead of the next beyond chance
    comparisons: list[Comparison]
    overall: str  # about all tasks
    smallest: str  # about the smallest tasks; empty if these are all
    diverged: dict[str, int]  # learner -> the row at which it diverged; it is not compared

    def __str__(self) -> str:
        return "\n".join(filter(None, (self.overall, self.smallest)))


def compare(learner: Evaluation, *, independent: Evaluation, pooled: Evaluation, smallest: int = 10) -> Verdict:
    """Say whether sharing pays, over all tasks and for the smallest ones.

    The macro-AUC decides (several classes: the mean error over tasks; regression: the mean RMSE over tasks): if the
    learner is best, share partly; if one model for all is, share fully; if one model per task is, do not share. The AUC
    of a task counts from 100 rows on; where most rows are in smaller tasks, the log-loss decides, or the error. Where
    another score says otherwise, the verdict says so; the AUC over all rows is among them. A difference counts as clear
    if Wilcoxon's signed rank test, paired by task, tells it from zero (two-sided, 5 %; six tasks at least) and the mean
    agrees. A learner that diverged is named and not compared.

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
    _check(three)
    sound = {name: one for name, one in three.items() if one.diverged is None}
    names = {"learner": _name(learner), "independent": "one model per task", "pooled": "one model for all"}
    by_size = sorted(learner.per_task, key=lambda task: learner.per_task[task]["rows"])
    scopes = {"all tasks": by_size}
    if len(by_size) > smallest:
        scopes[_name_of(smallest)] = by_size[:smallest]
    comparisons: list[Comparison] = []
    sentences, deciders = [], []
    for scope, tasks in scopes.items():
        found = [
            compare_by(sound, metric, macro=macro, scope=scope, tasks=tasks)
            for metric, macro in METRICS[learner.kind]
            if all(metric in one.overall for one in three.values())
            if macro or metric not in OF_PAIRS or tasks == by_size
        ]
        decider = next((one for one in found if _decides(one)), found[0])
        sentences.append(_sentences(found, decider, names, _where(scope, learner, tasks), len(tasks)))
        deciders.append(decider)
        comparisons += found
    diverged = {name: one.diverged for name, one in three.items() if one.diverged is not None}
    for name, row in diverged.items():
        sentences[0] = f"{_capital(names[name])} diverged at row {row:,}: it is not compared.\n{sentences[0]}"
    first = deciders[0]
    return Verdict(first.outcome, first.is_clear, comparisons, sentences[0], "".join(sentences[1:]), diverged)


def _check(three: Mapping[str, Evaluation]) -> None:
    rows = [{task: values["rows"] for task, values in one.per_task.items()} for one in three.values()]
    if not rows[0] == rows[1] == rows[2]:
        raise ValueError("the evaluations must be of the same stream: they saw different rows or tasks")
    for metric in NEEDED[three["learner"].kind]:
        if any(metric not in one.overall for one in three.values()):
            raise ValueError(f"the verdict needs the metric {metric!r} in every evaluation")


def _name(learner: Evaluation) -> str:
    return "the learner" if learner.learner is None else type(learner.learner).__name__


def _name_of(n: int) -> str:
    return "the smallest task" if n == 1 else f"the {WORDS[n] if n < len(WORDS) else n} smallest tasks"


def _where(scope: str, learner: Evaluation, tasks: Sequence[Any]) -> str:
    rows = [int(learner.per_task[task]["rows"]) for task in tasks]
    each = " each" if len(rows) > 1 else ""
    sizes = f"{rows[0]:,} rows{each}" if min(rows) == max(rows) else f"{min(rows):,} to {max(rows):,} rows{each}"
    return f"{'over' if scope.startswith('all') else 'in'} {scope} ({sizes})"


def _decides(one: Comparison) -> bool:
    """Whether it has an outcome, and tasks that tell whether that is chance."""
    return one.outcome != UNDECIDED and (one.macro or one.metric not in OF_PAIRS)


def _sentences(found: list[Comparison], first: Comparison, names: Mapping[str, str], where: str, n_tasks: int) -> str:
    """The outcome by the metric that decides, then the other metrics."""
    others = [one for one in found if one is not first and (one.outcome != UNDECIDED or not one.macro)]
    if first.outcome == UNDECIDED:
        why = "there is one task, and nothing to share" if n_tasks == 1 else "too few tasks have a defined score"
        opening = f"{_capital(where)} no verdict: {why}."
    else:
        opening = f"{_capital(where)} {_opening(first)}: by {_title(first)} {_ranking(first, names)}"
        if first.tasks < n_tasks:
            opening += f" (defined in {first.tasks} of {n_tasks} tasks)"
        if first is not found[0]:
            opening += f" (fewer than half of the rows are in tasks with a {_title(found[0])})"
        opening += "."
    return " ".join([opening, *(f"{_other(first, one, names)}." for one in others if one.best is not None)])


def _opening(found: Comparison) -> str:
    if found.is_clear or found.runner_up is None:
        return found.outcome
    return f"{found.outcome}, or {OUTCOMES[found.runner_up]} (the difference may be chance)"


def _title(found: Comparison) -> str:
    if found.macro:
        return f"macro-{label(found.metric)}"
    return f"{label(found.metric)} over all rows" if found.metric in OF_PAIRS else label(found.metric)


def _ranking(found: Comparison, names: Mapping[str, str]) -> str:
    """`HedgedSharing is best, 0.7710: 0.1180 ± 0.0103 better than one model per task and ...`"""
    assert found.best is not None
    against = [
        f"{number(difference.mean)}{_plus_minus(difference.standard_error)} better than {names[name]}"
        for name, difference in found.differences.items()
    ]
    return f"{names[found.best]} is best, {number(found.scores[found.best])}: {' and '.join(against)}"


def _plus_minus(error: float) -> str:
    return "" if math.isnan(error) else f" ± {number(error)}"


def _other(first: Comparison, found: Comparison, names: Mapping[str, str]) -> str:
    """Another score: the best by it, and the differences."""
    assert found.best is not None
    agrees = first.best in (None, found.best)
    says = "" if agrees else f" ({OUTCOMES[found.best]})"
    against = [_advantage(found, name, names[name]) for name in found.differences]
    opening = f"By {_title(found)} {names[found.best]} is best{says}: {number(found.scores[found.best])}"
    return f"{opening}, {' and '.join(against)}"


def _advantage(found: Comparison, name: str, than: str) -> str:
    assert found.best is not None
    if found.metric == "error":
        return fewer_errors(found.scores[found.best], found.scores[name], than)
    return f"{number(found.differences[name].mean)} better than {than}"


def fewer_errors(ours: float, theirs: float, than: str) -> str:
    """A lower error rate in words.

    Examples
    --------
    >>> fewer_errors(0.18, 0.19, "pooled"), fewer_errors(0.05, 0.2, "pooled"), fewer_errors(0.1, 0.1, "pooled")
    ('one error in 19 less than pooled', '4 times fewer errors than pooled', 'as many errors as pooled')
    """
    if ours == theirs:
        return f"as many errors as {than}"
    if ours == 0.0:
        return f"no errors, unlike {than}"
    if theirs >= 2.0 * ours:
        return f"{theirs / ours:.3g} times fewer errors than {than}"
    return f"one error in {theirs / (theirs - ours):.0f} less than {than}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
