"""Picture: how many targets were in their intervals or sets, over the stream and in each task."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.evaluation import Evaluation
from shoal.evaluation.result import Coverage
from shoal.report.figure import Figure
from shoal.report.style import GAIN, QUIET, data, drawn_of, few, panel_title, rows_axis, span

WIDTH, HEIGHT = 390, 300
FEWEST = 50  # rows between two points of the line, and of a task that is drawn
CHANCE = 2.0  # standard errors around the coverage that was asked for


def coverage_figure(evaluations: Mapping[str, Evaluation]) -> Figure | None:
    """Coverage between checkpoints, and of each task by its rows; None without intervals or sets."""
    first = next(iter(evaluations.values()))
    counted = [point for point in first.history if point.coverage is not None]
    last = counted[-1].coverage if counted else None
    if last is None or last.judged < FEWEST:
        return None
    learner = first.learner
    nominal, judged, share = float(learner.coverage), learner.judged_, learner.coverage_
    tasks = [
        {"task": str(task), "rows": rows, "coverage": covered}
        for task, rows, covered in zip(learner.tasks_, judged.tolist(), share.tolist(), strict=True)
        if rows >= FEWEST
    ]
    over_time = _over_time([(point.rows, point.coverage) for point in counted if point.coverage is not None])
    what = "sets" if hasattr(learner, "predict_set") else "intervals"
    title = f"The {what} held {last.covered / last.judged:.1%} of the targets; {nominal:.1%} was asked for"
    caption = (
        f"Each target was held against its row's {what[:-1]} before it was learned, from row 51 on. Left: the share "
        "that was in it, between two points of the line."
    )
    panels = [_stream(over_time, nominal)]
    if len(tasks) > 1:
        n_inside = sum(_is_near(one["coverage"], one["rows"], nominal) for one in tasks)
        caption += (
            f" Right: each task of {FEWEST} rows or more; {n_inside:,} of {len(tasks):,} lie within the two lines, "
            f"where chance alone would leave nineteen of twenty.{drawn_of(len(tasks))}"
        )
        panels.append(_of_tasks(few(tasks), nominal))
    return Figure("coverage", title, caption, alt.hconcat(*panels))


def _is_near(coverage: float, rows: float, nominal: float) -> bool:
    return bool(abs(coverage - nominal) <= CHANCE * np.sqrt(nominal * (1.0 - nominal) / rows))


def _over_time(points: Sequence[tuple[int, Coverage]]) -> list[dict[str, Any]]:
    """The coverage between checkpoints that have at least 50 rows between them."""
    chosen = [(0, Coverage(0, 0))]
    for rows, found in points:
        if found.judged - chosen[-1][1].judged >= FEWEST:
            chosen.append((rows, found))
    return [
        {"rows": rows, "coverage": (b.covered - a.covered) / (b.judged - a.judged), "judged": b.judged - a.judged}
        for (_, a), (rows, b) in pairwise(chosen)
    ]


def _line_at(nominal: float, rows: FloatArray) -> Any:
    ends = data([{"rows": float(row), "nominal": nominal} for row in (rows.min(), rows.max())])
    return alt.Chart(ends).mark_line(color=QUIET, strokeDash=[4, 4], strokeWidth=1.2).encode(x="rows:Q", y="nominal:Q")


def _share(values: Sequence[float], nominal: float) -> alt.Y:
    low = min(min(values), nominal - 0.05)
    scale = alt.Scale(domain=[max(0.0, low - 0.02), 1.0], zero=False, nice=False)
    return alt.Y("coverage:Q", title=None, scale=scale, axis=alt.Axis(format="%", tickCount=6))


def _tooltip(first: str, rows: str) -> list[Any]:
    return [alt.Tooltip(first), alt.Tooltip(rows, format=","), alt.Tooltip("coverage:Q", format=".1%")]


def _stream(records: Sequence[dict[str, Any]], nominal: float) -> Any:
    rows = np.array([one["rows"] for one in records], float)
    base = alt.Chart(data(records)).encode(
        x=rows_axis(rows.tolist(), "rows"),
        y=_share([one["coverage"] for one in records], nominal),
        tooltip=_tooltip("rows:Q", "judged:Q"),
    )
    drawn = base.mark_line(color=GAIN, strokeWidth=2.5, point={"color": GAIN, "size": 45})
    return alt.layer(_line_at(nominal, rows), drawn).properties(
        width=WIDTH, height=HEIGHT, title=panel_title("over the stream")
    )


def _of_tasks(tasks: Sequence[dict[str, Any]], nominal: float) -> Any:
    rows = np.array([one["rows"] for one in tasks], float)
    grid = np.geomspace(*span(rows.tolist()), 40)
    error = CHANCE * np.sqrt(nominal * (1.0 - nominal) / grid)
    band = data(
        [
            {"rows": row, "low": max(0.0, nominal - e), "high": min(1.0, nominal + e)}
            for row, e in zip(grid.tolist(), error.tolist(), strict=True)
        ]
    )
    edges = [
        alt.Chart(band).mark_line(color=QUIET, opacity=0.5, strokeWidth=1, clip=True).encode(x="rows:Q", y=f"{side}:Q")
        for side in ("low", "high")
    ]
    points = (
        alt.Chart(data(tasks))
        .mark_circle(color=GAIN, opacity=0.7, size=40)
        .encode(
            x=rows_axis(rows.tolist(), "rows of the task"),
            y=_share([one["coverage"] for one in tasks], nominal),
            tooltip=_tooltip("task:N", "rows:Q"),
        )
    )
    return alt.layer(*edges, _line_at(nominal, grid), points).properties(
        width=WIDTH, height=HEIGHT, title=panel_title("by task")
    )
