"""The table of tasks: rows, score, gain, forecast beside truth and a line of the error, sorted and searched.

The page holds at most 2,000 tasks, which keeps it small: of more, those with most rows, those that lose most and those
with the worst scores, and a line for each size of tasks tells of all.
"""

import json
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.evaluation import Evaluation
from shoal.evaluation.result import higher_is_better, label, main_metric, number
from shoal.html_tables import html_table

MOST = 2_000  # tasks in the page
OWN = "independent"  # the evaluation of a model per task


def task_section(evaluations: Mapping[str, Evaluation]) -> str:
    """The section, with the table's data as JSON in it; empty for one task."""
    name, first = next(iter(evaluations.items()))
    if first.tasks < 2:
        return ""
    metric = main_metric(first)
    columns = _columns(first, evaluations.get(OWN) if name != OWN else None, metric)
    shown = _chosen(columns, metric)
    table = {
        "titles": ["task", *columns],
        "rows": [[str(task), *row] for task, row in _rows(list(first.per_task), columns, shown)],
        "trend": [] if first.trends is None else _digits(first.trends.trend(first.tasks), shown),
    }
    data = json.dumps(table, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    return (
        f"<section><h2>{_title(name, columns)}</h2>"
        f'<p class="caption">{escape(_caption(first, columns, metric, len(shown)))}</p>{_sizes(columns, first, metric)}'
        '<p><input id="find-task" type="search" placeholder="Find a task" aria-label="Find a task"></p>'
        '<table id="tasks" class="stack"><thead></thead><tbody></tbody></table><p id="task-pages"></p>'
        f'<script type="application/json" id="task-data">{data}</script></section>'
    )


def _columns(first: Evaluation, own: Evaluation | None, metric: str) -> dict[str, FloatArray]:
    """(n_tasks,) numbers by title."""
    rows = np.array([scores["rows"] for scores in first.per_task.values()], float)
    score = np.array([scores[metric] for scores in first.per_task.values()], float)
    found = {"rows": rows, label(metric): score}
    if own is not None:
        own_score = np.array([own.per_task[task][metric] for task in first.per_task], float)
        found["gain"] = (score - own_score) * (1.0 if higher_is_better(metric) else -1.0)
    if first.trends is not None and first.kind != "multiclass":
        found["forecast"], found["truth"] = first.trends.means(first.tasks).T
    if any(point.coverage is not None for point in first.history):
        known = dict(zip(first.learner.tasks_, first.learner.coverage_.tolist(), strict=True))
        found["coverage"] = np.array([known.get(task, np.nan) for task in first.per_task], float)
    return found


def _chosen(columns: Mapping[str, FloatArray], metric: str) -> IntArray:
    """Numbers of the tasks in the page, those with most rows first."""
    rows, score = columns["rows"], columns[label(metric)]
    largest = np.argsort(-rows, kind="stable")
    if len(rows) <= MOST:
        return largest
    worst = np.argsort(np.nan_to_num(score if higher_is_better(metric) else -score, nan=np.inf), kind="stable")
    losing = np.argsort(np.nan_to_num(columns.get("gain", rows * 0.0), nan=np.inf), kind="stable")
    some = {*largest[: MOST // 2].tolist(), *worst[: MOST // 4].tolist(), *losing[: MOST // 4].tolist()}
    return np.array([task for task in largest.tolist() if task in some])


def _rows(tasks: Sequence[Any], columns: Mapping[str, FloatArray], shown: IntArray) -> list[tuple[Any, list[Any]]]:
    """Name and numbers of each task, with four digits; None where there is none."""
    table = np.array(list(columns.values()))[:, shown].T.tolist()
    return [(tasks[k], [int(row[0]), *map(_short, row[1:])]) for k, row in zip(shown.tolist(), table, strict=True)]


def _short(value: float) -> float | None:
    return None if np.isnan(value) else float(f"{value:.4g}")


def _digits(trend: FloatArray, shown: IntArray) -> list[str]:
    """The errors as digits, 9 the largest of nearly all tasks; a space where there is none."""
    top = float(np.nanquantile(trend, 0.98)) or 1.0
    scaled = np.clip(np.nan_to_num(np.round(9.0 * trend[shown] / top), nan=-1.0), -1, 9).astype(int)
    return ["".join(" " if digit < 0 else str(digit) for digit in row) for row in scaled.tolist()]


def _title(name: str, columns: Mapping[str, FloatArray]) -> str:
    if "gain" not in columns:
        return "The tasks"
    gains = columns["gain"][~np.isnan(columns["gain"])]
    return f"{escape(name)} serves {int((gains > 0).sum()):,} of {len(gains):,} tasks better than a model of their own"


def _caption(first: Evaluation, columns: Mapping[str, FloatArray], metric: str, shown: int) -> str:
    sentences = [f"Each task with its {label(metric)}."]
    if "gain" in columns:
        sentences.append("Gain: how much better it is than that of a model of the task's own.")
    if "truth" in columns:
        sentences.append(
            "Forecast and truth: the mean prediction and the mean of what came."
            if first.kind == "regression"
            else "Forecast and truth: the mean probability of the larger label, and the share of rows that had it."
        )
    if "coverage" in columns:
        sentences.append("Coverage: the share of its targets that were in their intervals or sets.")
    sentences.append("The line is the error in equal parts of the stream, from left to right, higher is worse.")
    if shown < first.tasks:
        sentences.append(
            f"{shown:,} of {first.tasks:,} tasks can be found here: those with most rows, those with the worst score "
            "and those that lose most; --tasks-out writes all."
        )
    return " ".join(sentences)


def _sizes(columns: Mapping[str, FloatArray], first: Evaluation, metric: str) -> str:
    """A row for each size of tasks, if not all tasks are in the page."""
    if first.tasks <= MOST:
        return ""
    size = np.floor(np.log10(columns["rows"])).astype(int)
    lines = []
    for power in np.unique(size).tolist():
        of_size = size == power
        cells = [f"{10**power:,} to {10 ** (power + 1) - 1:,} rows", f"{int(of_size.sum()):,}"]
        for title in (label(metric), "gain"):
            values = columns.get(title, np.zeros(0))[of_size] if title in columns else np.zeros(0)
            values = values[~np.isnan(values)]
            if title in columns:
                cells.append(number(float(values.mean())) if len(values) else "undefined")
        lines.append(cells)
    titles = ["tasks of", "tasks", f"mean {label(metric)}", *(["mean gain"] if "gain" in columns else [])]
    return html_table(titles, lines)
