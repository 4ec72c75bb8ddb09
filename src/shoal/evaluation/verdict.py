"""Does sharing pay? A learner compared with itself without sharing (a model per task) and with one model for all."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np

from shoal.evaluation.comparison import OF_PAIRS, UNDECIDED, Comparison, Difference, compare_by
from shoal.evaluation.result import Evaluation, label, number
from shoal.html_tables import html_table
from shoal.wrappers.inner import AroundAnyLearner
from shoal.wrappers.multi_class import MultiClass

# (metric, whether it is the mean over tasks); the first that can decides, the others say whether they agree
METRICS = {
    "binary": (("auc", True), ("auc", False), ("log_loss", False), ("error", False)),
    "multiclass": (("error", True), ("error", False), ("log_loss", False)),
    "regression": (("rmse", True), ("mae", False)),
    "quantiles": (("pinball", True), ("pinball", False)),
}
NEEDED = {"binary": ("auc", "error"), "multiclass": ("error",), "regression": ("rmse",), "quantiles": ("pinball",)}
BEST = {
    "learner": "sharing partly is best",
    "pooled": "one model for all is best",
    "independent": "one model per task is best",
}
NAMES = {"learner": "sharing partly", "pooled": "one model for all", "independent": "a model per task"}
TENTH, FEWEST = 10, 6  # the smallest tenth of the tasks, or six: with fewer no difference is beyond chance
NAMED = 5  # harmed tasks
TITLES = ("", "best", "gain over one per task", "gain over one for all", "tasks that lose")


class Line(NamedTuple):
    """A line of the verdict's table, a score: in words that fit a cell."""

    score: str
    best: str
    over_independent: str  # how much better the learner is than a model per task, with its standard error over tasks
    over_pooled: str
    losing: str  # of how many tasks how many would be served better by a model of their own


class Harm(NamedTuple):
    """The tasks that sharing harms, and their loss with `shoal.Guarded`.

    A task is harmed if the learner's log-loss, summed over its rows, is more than ln 2 nats above that of a model of
    its own. `Guarded` mixes both by Bayes: with losses L1 and L0 its loss is ``ln 2 - ln(exp(-L1) + exp(-L0))``, which
    is at most ``min(L1, L0) + ln 2``.
    """

    nats: dict[Any, float]  # task -> log-loss above that of its own model, in sum over its rows; the worst first
    tasks: int  # in all
    log_loss: float  # of the learner, a row
    guarded_log_loss: float

    def __str__(self) -> str:
        if not self.nats:
            return ""
        named = [f"{task} ({nats:.3g})" for task, nats in list(self.nats.items())[:NAMED]]
        more = [f"{len(self.nats) - NAMED:,} more"] if len(self.nats) > NAMED else []
        loss, guarded = number(self.log_loss), number(self.guarded_log_loss)
        gives = f"keep the log-loss of {loss}"
        if guarded != loss:
            gives = f"have a log-loss of {guarded} instead of {loss}"
        return (
            f"Sharing harms {len(self.nats):,} of {self.tasks:,} tasks, whose log-loss, in sum over their rows, is "
            f"more than ln 2 above that of a model of their own: {', '.join([*named, *more])}. Guarded would harm "
            f"none, and {gives} a row."
        )


@dataclass(frozen=True)
class Verdict:
    """Whether sharing pays, with the numbers behind it; `str()` gives the sentence and the table."""

    outcome: str  # over all tasks: "share fully", "share partly", "do not share" or "undecided"
    is_clear: bool  # whether the best is ahead of the next beyond chance
    comparisons: list[Comparison]
    sentence: str
    name: str  # of the learner
    diverged: dict[str, int]  # learner -> the row at which it diverged; it is not compared
    harm: Harm | None = None  # of classifiers with probabilities

    @property
    def lines(self) -> list[Line]:
        """The table: a line for each score over all tasks."""
        return [_line(one, self.name) for one in self.comparisons if one.scope == ALL and one.best is not None]

    def __str__(self) -> str:
        if not self.lines:
            return self.sentence
        rows = [TITLES, *self.lines]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = [
            "  ".join(
                [cells[0].ljust(widths[0]), cells[1].ljust(widths[1])]
                + [cell.rjust(width) for cell, width in zip(cells[2:], widths[2:], strict=True)]
            ).rstrip()
            for cells in rows
        ]
        harm = str(self.harm or "")
        return "\n".join([self.sentence, "", *table, *(["", harm] if harm else [])])

    def __repr__(self) -> str:
        return f"Verdict({self.outcome!r}: {self.sentence})"

    def _repr_html_(self) -> str:
        harm = str(self.harm or "")
        after = f"<p>{escape(harm)}</p>" if harm else ""
        return f"<p><strong>{escape(self.sentence)}</strong></p>{self.to_html()}{after}"

    def to_html(self) -> str:
        """The table in HTML, without colors; empty if there is no score."""
        return html_table(TITLES, self.lines) if self.lines else ""


ALL = "all tasks"


def compare(learner: Evaluation, *, independent: Evaluation, pooled: Evaluation) -> Verdict:
    """Say whether sharing pays, over all tasks and for the smallest ones.

    The macro-AUC decides (several classes: the mean error over tasks; regression: the mean RMSE over tasks, of
    quantiles the mean pinball loss): if the learner is best, share partly; if one model for all is, share fully; if one
    model per task is, do not share. The AUC of a task counts from 100 rows on; where most rows are in smaller tasks,
    the log-loss decides, or the error. Where another score says otherwise, or the tenth of the tasks with fewest rows
    does, the verdict says so; the AUC over all rows is among the scores. A difference counts as clear if Wilcoxon's
    signed rank test, paired by task, tells it from zero (two-sided, 5 %; six tasks at least) and the mean agrees. A
    learner that diverged is named and not compared.

    Parameters
    ----------
    learner, independent, pooled : Evaluation
        Of the same stream.

    Raises
    ------
    ValueError
        If the three did not see the same rows, or lack the metrics.
    """
    three = {"learner": learner, "independent": independent, "pooled": pooled}
    _check(three)
    sound = {name: one for name, one in three.items() if one.diverged is None}
    by_size = sorted(learner.per_task, key=lambda task: learner.per_task[task]["rows"])
    found = _compared(learner, three, sound, ALL, by_size)
    first = _decider(found)
    small, n_small = [], max(FEWEST, math.ceil(len(by_size) / TENTH))
    if len(by_size) >= 2 * n_small:
        scope = f"the {'six smallest tasks' if n_small == FEWEST else 'smallest tenth of the tasks'}"
        small = _compared(learner, three, sound, scope, by_size[:n_small])
    diverged = {name: one.diverged for name, one in three.items() if one.diverged is not None}
    sentence = _sentence(found, first, small, len(by_size))
    for name, row in diverged.items():
        sentence = f"{_capital(NAMES[name])} diverged at row {row:,} and is not compared. {sentence}"
    harm = harm_of(learner, independent)
    return Verdict(first.outcome, first.is_clear, found + small, sentence, _name(learner), diverged, harm)


def harm_of(learner: Evaluation, independent: Evaluation) -> Harm | None:
    """The tasks that sharing harms; None without probabilities of two labels."""
    if learner.kind != "binary" or not all("log_loss" in one.overall for one in (learner, independent)):
        return None
    tasks = list(learner.per_task)
    rows = np.array([learner.per_task[task]["rows"] for task in tasks], float)
    shared, own = (
        rows * np.array([one.per_task[task]["log_loss"] for task in tasks]) for one in (learner, independent)
    )
    guarded = math.log(2.0) - np.logaddexp(-shared, -own)
    more = shared - own
    worst = [k for k in np.argsort(-more, kind="stable").tolist() if more[k] > math.log(2.0)]
    nats = {tasks[k]: float(more[k]) for k in worst}
    return Harm(nats, len(tasks), float(shared.sum() / rows.sum()), float(guarded.sum() / rows.sum()))


def _compared(
    learner: Evaluation,
    three: Mapping[str, Evaluation],
    sound: Mapping[str, Evaluation],
    scope: str,
    tasks: Sequence[Any],
) -> list[Comparison]:
    """By all metrics that all three have; the AUC over all rows has no part that is of some tasks."""
    return [
        compare_by(sound, metric, macro=macro, scope=scope, tasks=tasks)
        for metric, macro in METRICS[judged_as(learner)]
        if all(metric in one.overall for one in three.values())
        if macro or metric not in OF_PAIRS or scope == ALL
    ]


def judged_as(found: Evaluation) -> str:
    """The key of `METRICS` and `NEEDED`."""
    return "quantiles" if found.quantiles else found.kind


def _check(three: Mapping[str, Evaluation]) -> None:
    rows = [{task: values["rows"] for task, values in one.per_task.items()} for one in three.values()]
    if not rows[0] == rows[1] == rows[2]:
        raise ValueError("the evaluations must be of the same stream: they saw different rows or tasks")
    for metric in NEEDED[judged_as(three["learner"])]:
        if any(metric not in one.overall for one in three.values()):
            raise ValueError(f"the verdict needs the metric {metric!r} in every evaluation")


def _name(learner: Evaluation) -> str:
    found = learner.learner
    while isinstance(found, AroundAnyLearner):
        found = found.plain
    if isinstance(found, MultiClass) and found.estimator is not None:
        found = found.estimator
    return "the learner" if found is None else type(found).__name__


def _decider(found: Sequence[Comparison]) -> Comparison:
    """The first that has an outcome, and tasks that tell whether that is chance."""
    return next((one for one in found if one.outcome != UNDECIDED and not _is_of_pairs(one)), found[0])


def _is_of_pairs(one: Comparison) -> bool:
    return one.metric in OF_PAIRS and not one.macro


# ---- the sentence ------------------------------------------------------------------------------------------


def _sentence(found: list[Comparison], first: Comparison, small: list[Comparison], n_tasks: int) -> str:
    """The outcome and its size; what may be chance; the other scores, and the smallest tasks."""
    if first.best is None or first.outcome == UNDECIDED:
        why = "there is one task, and nothing to share" if n_tasks == 1 else "too few tasks have a defined score"
        return f"No verdict: {why}."
    parts = [f"{_capital(BEST[first.best])}: {_size(found, first)}"]
    if not first.is_clear and first.runner_up is not None:
        parts.append(f"the difference to {NAMES[first.runner_up]} could be chance")
    for best in BEST:
        scores = [_title(one) for one in found if one.best == best and _is_ahead(one, first.best)]
        if scores:
            parts.append(f"by {' and '.join(scores)} {BEST[best]}")
    if small:
        parts += _of_smallest(_decider(small), first)
    return f"{'; '.join(parts)}."


def _is_ahead(found: Comparison, of: str) -> bool:
    """Whether another is better than this one."""
    if found.best is None or (found.macro and found.outcome == UNDECIDED):
        return False
    return found.scores[found.best] != found.scores.get(of)


def _of_smallest(small: Comparison, first: Comparison) -> list[str]:
    """The differences that the smallest tasks show."""
    if small.best is None or small.outcome == UNDECIDED:
        return []
    if small.best != first.best:
        return [f"in {small.scope} {BEST[small.best]}{'' if small.is_clear else ', which could be chance'}"]
    if small.is_clear or small.runner_up is None or not first.is_clear:
        return []
    return [f"in {small.scope} the difference to {NAMES[small.runner_up]} could be chance"]


def _size(found: Sequence[Comparison], first: Comparison) -> str:
    """How far the best is ahead: in errors if they agree, else in the score that decides."""
    errors = [one for one in found if one.metric == "error" and not one.macro and one.best == first.best]
    one = errors[0] if errors else first
    assert one.best is not None
    score, others = one.scores[one.best], {NAMES[name]: one.scores[name] for name in one.differences}
    if one.metric == "error" and not one.macro:
        parts = [fewer_errors(score, other, than) for than, other in others.items()]
        if len(parts) == 2 and all(part.startswith("one error in ") for part in parts):
            parts[1] = parts[1].replace("one error in ", "one in ", 1)
        return ", ".join(parts)
    return f"its {_title(one)} is {' and '.join(_ahead(one, score, others[than], than) for than in others)}"


def _ahead(found: Comparison, score: float, other: float, than: str) -> str:
    if found.metric in OF_PAIRS:
        return f"{number(abs(score - other))} above that of {than}"
    return f"{100.0 * (1.0 - score / other) if other else 0.0:.1f} % below that of {than}"


def fewer_errors(rate: float, other: float, than: str) -> str:
    """A lower error rate in words.

    Examples
    --------
    >>> fewer_errors(0.18, 0.19, "pooled"), fewer_errors(0.05, 0.2, "pooled"), fewer_errors(0.1, 0.1, "pooled")
    ('one error in 19 fewer than pooled', '25 % of the errors of pooled', 'as many errors as pooled')
    """
    if rate == other:
        return f"as many errors as {than}"
    if rate == 0.0:
        return f"no error, unlike {than}"
    if other >= 2.0 * rate:
        return f"{100.0 * rate / other:.3g} % of the errors of {than}"
    return f"one error in {other / (other - rate):.0f} fewer than {than}"


def _title(found: Comparison) -> str:
    if found.macro:
        return f"macro-{label(found.metric)}"
    return f"{label(found.metric)} over all rows" if found.metric in OF_PAIRS else label(found.metric)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# ---- the table ---------------------------------------------------------------------------------------------


def _line(found: Comparison, name: str) -> Line:
    assert found.best is not None
    title = label(found.metric) if _is_of_pairs(found) else _title(found)
    best = name if found.best == "learner" else {"independent": "one per task", "pooled": "one for all"}[found.best]
    losing = "" if found.losing is None else f"{found.losing:,} of {found.tasks:,}"
    own, common = (_gain(found.gains.get(other)) for other in ("independent", "pooled"))
    return Line(title, f"{number(found.scores[found.best])}  {best}", own, common, losing)


def _gain(gain: Difference | None) -> str:
    if gain is None:
        return ""
    sign = "+" if gain.mean >= 0.0 else "-"
    error = "" if math.isnan(gain.standard_error) else f" ± {number(gain.standard_error)}"
    return f"{sign}{number(abs(gain.mean))}{error}"
