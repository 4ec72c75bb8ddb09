"""The result of progressive validation, and how its scores are printed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.evaluation.metrics.calibration import Bin
from shoal.evaluation.metrics.metric import counted
from shoal.evaluation.metrics.trends import TaskTrends
from shoal.evaluation.sample import Sample
from shoal.extras import named_extra
from shoal.files.messages import plural
from shoal.html_tables import html_table

if TYPE_CHECKING:
    import polars as pl

LABELS = {
    "error": "error",
    "auc": "AUC",
    "log_loss": "log-loss",
    "brier": "Brier",
    "calibration_error": "calibr.",
    "f1_positive": "F1 +",
    "f1_negative": "F1 -",
    "mae": "MAE",
    "rmse": "RMSE",
    "explained_variance": "expl. var.",
    "average_precision": "avg. prec.",
    "balanced_error": "bal. error",
    "matthews": "Matthews",
    "r2": "R²",
    "mape": "MAPE",
    "poisson_deviance": "Poisson",
    "crps": "CRPS",
}
MAIN = ("auc", "rmse")  # the mean over tasks of it judges a run; several classes: that of the error
ENOUGH = 0.5  # of the rows must be in tasks that count in a mean over tasks, for it to judge a run
LOWER_IS_BETTER = ("log_loss", "brier", "mae", "rmse", "mape", "pinball", "crps")
LOSSES = ("error", "loss", "deviance")  # endings of scikit-learn's names of metrics to minimize


class Coverage(NamedTuple):
    """How many targets were held against their intervals or sets so far, and how many were in them."""

    judged: int
    covered: int


@dataclass(frozen=True)
class Checkpoint:
    """The state of the evaluation after `rows` rows."""

    rows: int
    tasks: int  # seen so far
    overall: dict[str, float]  # over all rows so far
    macro: dict[str, float]  # mean over the tasks where the metric is defined; the AUC's: of 100 rows or more
    since_last: dict[str, float]  # over the rows since the last checkpoint
    windowed: dict[str, float]  # over the last `window` rows
    seconds: float  # spent in this learner so far
    coverage: Coverage | None = None  # of a `shoal.Conformal`


@dataclass(frozen=True)
class Evaluation:
    """Scores of one learner, every row predicted before it was learned.

    Undefined values (the AUC of a task with one label) are NaN and left out of macro means, and so is the AUC of tasks
    of fewer than 100 rows: it punishes learning a small task's level by the row. `str()` gives the progress table,
    `to_frame()` a polars data frame.

    Examples
    --------
    >>> a, b = {"rows": 2, "updates": 1, "error": 0.5}, {"rows": 1, "updates": 0, "error": 0.0}
    >>> evaluation = Evaluation("binary", 3, {"error": 1 / 3}, {"error": 0.25}, {"a": a, "b": b})
    >>> evaluation.tasks
    2
    >>> evaluation.to_frame()["rows"].to_list()
    [2, 1]
    """

    kind: str  # "binary", "multiclass" or "regression"
    rows: int
    overall: dict[str, float]
    macro: dict[str, float]
    per_task: dict[Any, dict[str, float]]  # task id -> rows, updates and metrics, in order of appearance
    windowed: dict[str, float] = field(default_factory=dict)  # the same three over the last `window` rows
    windowed_macro: dict[str, float] = field(default_factory=dict)
    windowed_per_task: dict[Any, dict[str, float]] = field(default_factory=dict)
    window: int = 0
    standard_errors: dict[str, float] = field(default_factory=dict)  # of `overall`, by `metrics.scoreboard.Blocks`
    history: list[Checkpoint] = field(default_factory=list)
    n_updates: int = 0
    n_queries: int | None = None  # labels asked for, by learners that choose; the scores are over all rows
    wall_seconds: float = 0.0  # spent in this learner, compiling or loading compiled code included
    cpu_seconds: float = 0.0  # of the thread that it ran in and of those it started
    learner: Any = None
    diverged: int | None = None  # the row at which a regressor's predictions left every scale of its targets
    calibration: list[Bin] = field(default_factory=list)  # of learners with probabilities of two labels
    confusion: dict[tuple[Any, Any], int] = field(default_factory=dict)  # several classes: (true, predicted) -> rows
    notes: list[str] = field(default_factory=list)
    trends: TaskTrends | None = field(default=None, compare=False)  # of tasks, for the first learner of a run
    sample: Sample | None = field(default=None, compare=False)  # of rows, likewise
    columns: list[str | None] | None = None  # of a table: the column from which each feature comes
    quantiles: tuple[float, ...] = ()  # the levels at which answers are judged, by pinball; none: they are no quantiles

    @property
    def tasks(self) -> int:
        """Number of tasks seen."""
        return len(self.per_task)

    @property
    def per_class(self) -> dict[Any, dict[str, float]]:
        """Several classes: rows, precision, recall and F1 of each, from `confusion`; NaN where one is undefined."""
        from sklearn.metrics import precision_recall_fscore_support

        labels = list(dict.fromkeys(true for true, _ in self.confusion))
        number = {label: k for k, label in enumerate(labels)}
        pairs = [(number[true], number.get(guess, -1), rows) for (true, guess), rows in self.confusion.items()]
        if not pairs:
            return {}
        true, guess, weight = zip(*pairs, strict=True)
        columns = precision_recall_fscore_support(
            true, guess, labels=range(len(labels)), sample_weight=weight, zero_division=np.nan
        )
        titles = ("precision", "recall", "f1", "rows")
        return {
            label: dict(zip(titles, map(float, values), strict=True))
            for label, values in zip(labels, zip(*columns, strict=True), strict=True)
        }

    @property
    def rows_per_second(self) -> float:
        """Rows predicted and learned per second spent in this learner."""
        return self.rows / self.wall_seconds if self.wall_seconds > 0 else float("nan")

    def to_frame(self, of: str = "tasks") -> pl.DataFrame:
        """The scores as a polars data frame.

        Parameters
        ----------
        of : "tasks" or "history"
            One row per task (task, rows, updates, metrics), or per checkpoint (rows, tasks, seconds, and each
            metric as `name`, `macro_name`, `since_last_name`, `windowed_name`).
        """
        with named_extra("to_frame"):
            import polars as pl

        if of == "tasks":
            ids = list(self.per_task)
            plain = all(type(task) is type(ids[0]) and isinstance(task, str | int) for task in ids)
            return pl.DataFrame(
                [
                    {"task": task if plain else str(task), **values}
                    for task, values in zip(ids, self.per_task.values(), strict=True)
                ],
                infer_schema_length=None,
            )
        if of == "history":
            return pl.DataFrame([_flat(checkpoint) for checkpoint in self.history], infer_schema_length=None)
        raise ValueError(f'of must be "tasks" or "history", got {of!r}')

    def __str__(self) -> str:
        return "\n".join([*self._progress(), "", *self.scores_as_text(), self._summary(), *self.notes])

    def __repr__(self) -> str:
        scores = ", ".join(f"{label(name)} {number(value)}" for name, value in self.overall.items())
        return f"Evaluation({plural(self.rows, 'row')} of {plural(self.tasks, 'task')}: {scores})"

    def _repr_html_(self) -> str:
        titles, rows = self._scores()
        paragraphs = "".join(f"<p>{escape(text)}</p>" for text in (self._summary(), *self.notes))
        return html_table(titles, rows) + paragraphs

    def _summary(self) -> str:
        summary = (
            f"{plural(self.rows, 'row')} of {plural(self.tasks, 'task')}, {plural(self.n_updates, 'update')}, "
            f"{self.wall_seconds:.2f} s ({self.cpu_seconds:.2f} s CPU)"
        )
        if self.n_queries is not None:
            summary += f", {self.n_queries:,} labels asked for ({self.n_queries / self.rows:.1%})"
        return summary

    def _progress(self) -> list[str]:
        """A line per checkpoint: the first metric in all and since the last line, the main one by task."""
        first = next(iter(self.overall))
        main = main_metric(self)
        titles = (label(first), "since last", f"macro-{label(main)}", "rows/s")
        lines = [f"{'rows':>12} {'tasks':>7} " + " ".join(f"{title:>11}" for title in titles)]
        for point in self.history:
            speed = point.rows / point.seconds if point.seconds > 0 else float("nan")
            values = (point.overall[first], point.since_last[first], point.macro[main])
            numbers = " ".join(f"{number(value):>11}" for value in values)
            lines.append(f"{point.rows:>12,} {point.tasks:>7,} {numbers} {speed:>11,.0f}")
        return lines

    def scores_as_text(self) -> list[str]:
        """The lines of a table: over all rows with their standard error, the mean over tasks, the last rows."""
        titles, rows = self._scores()
        wide = [18, *(max(11, len(title) + 2) for title in titles[1:])]
        return [
            "".join(f"{cell:{'>' if i else '<'}{wide[i]}}" for i, cell in enumerate(row)) for row in [titles, *rows]
        ]

    def _scores(self) -> tuple[list[str], list[list[str]]]:
        """Titles and rows of a table of metrics: over all rows, the mean over tasks, the last rows."""
        kinds = [("all rows", self.overall), ("mean over tasks", self.macro)]
        if not all(map(math.isnan, self.standard_errors.values())):
            kinds.insert(1, ("±", self.standard_errors))
        if self.windowed:
            kinds.append((f"last {min(self.window, self.rows):,} rows", self.windowed))
        return ["", *map(label, self.overall)], [[kind, *map(number, values.values())] for kind, values in kinds]


def main_metric(evaluation: Evaluation) -> str:
    """The metric that judges a run by its mean over tasks; two labels where most rows are in small tasks: the log-loss.

    A learner without probabilities is judged by the error then.
    """
    instead = ("log_loss",) if evaluation.kind == "binary" else ()
    known: list[str] = [name for name in (*MAIN, *instead, *evaluation.overall) if name in evaluation.overall]
    return next((name for name in known if share_counted(evaluation, name) >= ENOUGH), known[0])


def share_counted(evaluation: Evaluation, metric: str) -> float:
    """The share of rows that are in tasks which count in the mean over tasks."""
    rows, values = (np.array([one[name] for one in evaluation.per_task.values()], float) for name in ("rows", metric))
    return float(rows[counted(metric, values, rows)].sum() / max(1.0, rows.sum()))


def label(metric: str) -> str:
    """A metric's name for readers."""
    return LABELS.get(metric, metric)


def higher_is_better(metric: str) -> bool:
    """Whether more is better: not of errors and losses, unless a scorer turned them around.

    Examples
    --------
    >>> [higher_is_better(name) for name in ("auc", "error", "pinball:0.9", "neg_log_loss", "cohen_kappa_score")]
    [True, False, False, True, True]
    """
    name = metric.partition(":")[0]
    return name.startswith("neg_") or not (name in LOWER_IS_BETTER or name.endswith(LOSSES))


def number(value: float) -> str:
    """A score with four decimals; from 10,000 on with four digits, so that it fits a column.

    Examples
    --------
    >>> number(0.17823), number(1234.5), number(3e141), number(float("nan"))
    ('0.1782', '1234.5000', '3e+141', 'undefined')
    """
    if math.isnan(value):
        return "undefined"
    return f"{value:.4f}" if abs(value) < 1e4 else f"{value:.4g}"


class Winner(NamedTuple):
    """The expert with the largest weight in a task."""

    way: str
    weight: float


def winners(evaluation: Evaluation) -> dict[Any, Winner]:
    """The way of sharing that won in each task; empty unless the learner has `experts_` and `weights_`."""
    learner = evaluation.learner
    if not hasattr(learner, "experts_") or not hasattr(learner, "weights_"):
        return {}
    weights, names = np.asarray(learner.weights_), list(learner.experts_)
    best = weights.argmax(axis=1)
    found = zip(learner.tasks_, best.tolist(), weights.max(axis=1).tolist(), strict=True)
    return {task: Winner(names[k], weight) for task, k, weight in found}


def _flat(point: Checkpoint) -> dict[str, float]:
    flat: dict[str, float] = {"rows": point.rows, "tasks": point.tasks, "seconds": point.seconds}
    for name in point.overall:
        flat[name] = point.overall[name]
        flat[f"macro_{name}"] = point.macro[name]
        flat[f"since_last_{name}"] = point.since_last[name]
        flat[f"windowed_{name}"] = point.windowed[name]
    return flat
