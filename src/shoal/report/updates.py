"""Picture 4: how often a row of each task led to an update."""

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np

from shoal.evaluation import Evaluation
from shoal.report.figure import Figure
from shoal.report.style import colour, data, drawn_of, few, rows_axis, spread, trend

WIDTH, HEIGHT = 760, 300
LABEL_HEIGHT = 16


def _shares(evaluations: Mapping[str, Evaluation]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "task": str(task),
            "rows": of["rows"],
            "updates": of["updates"],
            "share": of["updates"] / of["rows"],
        }
        for name, evaluation in evaluations.items()
        for task, of in evaluation.per_task.items()
    ]


def _lines(shares: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    lines = []
    for name in names:
        of_learner = [share for share in shares if share["name"] == name]
        rows, values = (np.array([share[key] for share in of_learner], float) for key in ("rows", "share"))
        lines += [{"name": name, "rows": p["rows"], "share": p["value"]} for p in trend(rows, values)]
    return lines


def updates_figure(evaluations: Mapping[str, Evaluation]) -> Figure | None:
    """The share of rows that led to an update, by size of the task; None for a learner that updates on every row
    (once, or once for each class)."""
    names = list(evaluations)
    if evaluations[names[0]].n_updates >= evaluations[names[0]].rows:
        return None
    caption = "Share of a task's rows that led to an update, one point per task; lines are local means."
    caption += drawn_of(evaluations[names[0]].tasks)
    return Figure(
        "updates", _title(names[0], evaluations[names[0]]), caption, _draw_shares(names, _shares(evaluations))
    )


def _draw_shares(names: list[str], shares: list[dict[str, Any]]) -> Any:
    lines = _lines(shares, names)
    top = 1.05 * max(share["share"] for share in shares) or 1.0
    base = {"x": rows_axis([share["rows"] for share in shares], "rows of the task"), "color": colour(names)}
    first = alt.datum.name == names[0]
    y = alt.Y("share:Q", title=None, scale=alt.Scale(domain=[0, top], nice=False), axis=alt.Axis(format="%"))
    tooltip = ["name:N", "task:N", alt.Tooltip("rows:Q", format=","), alt.Tooltip("updates:Q", format=",")]
    drawn = [share for name in names for share in few([share for share in shares if share["name"] == name])]
    points = (
        alt.Chart(data(drawn))
        .mark_circle(size=34)
        .encode(
            **base,
            y=y,
            opacity=alt.condition(first, alt.value(0.6), alt.value(0.3)),
            tooltip=[*tooltip, alt.Tooltip("share:Q", format=".1%")],
        )
    )
    width = alt.condition(first, alt.value(3), alt.value(1.8))
    smooth = alt.Chart(data(lines)).mark_line().encode(**base, y="share:Q", strokeWidth=width)
    ends = list({point["name"]: point for point in lines}.values())
    places = spread([end["share"] for end in ends], LABEL_HEIGHT * top / HEIGHT)
    text = (
        alt.Chart(data(end | {"place": place} for end, place in zip(ends, places, strict=True)))
        .mark_text(align="left", dx=10, fontSize=12, baseline="middle")
        .encode(**base, y="place:Q", text="name:N")
    )
    return alt.layer(points, smooth, text).properties(width=WIDTH, height=HEIGHT)


def _title(name: str, evaluation: Evaluation) -> str:
    by_size = sorted(evaluation.per_task.values(), key=lambda of: of["rows"])
    third = max(len(by_size) // 3, 1)
    small, large = (
        sum(of["updates"] for of in group) / sum(of["rows"] for of in group)
        for group in (by_size[:third], by_size[-third:])
    )
    share = f"{name} made an update on {evaluation.n_updates / evaluation.rows:.0%} of all rows"
    if len(by_size) < 6:
        return share
    return f"{share}: on {small:.0%} in the smallest third of tasks, on {large:.0%} in the largest"
