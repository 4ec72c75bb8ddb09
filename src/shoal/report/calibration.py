"""Picture: forecasts held against what happened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from shoal.evaluation import Evaluation
from shoal.report.figure import Figure
from shoal.report.style import QUIET, colour, data

SIDE = 340
MIN_ROWS = 20  # of a bin that is drawn: the share of fewer rows is mostly chance


def calibration_figure(evaluations: Mapping[str, Evaluation]) -> Figure | None:
    """Share of positives against the forecast, bin by bin; None unless a learner gives probabilities."""
    records: list[dict[str, Any]] = [
        {"name": name, "forecast": found.forecast, "share": found.share, "rows": found.rows}
        for name, evaluation in evaluations.items()
        for found in evaluation.calibration
        if found.rows >= MIN_ROWS
    ]
    if not records:
        return None
    names = [name for name, evaluation in evaluations.items() if evaluation.calibration]
    caption = (
        "Rows in 20 bins by the probability they were given, and the share of them that had the larger label. On the "
        f"diagonal forecasts are right. Larger points stand for more rows; bins of fewer than {MIN_ROWS} are left out."
    )
    return Figure("calibration", _title(names, evaluations), caption, _draw(records, names))


def _title(names: list[str], evaluations: Mapping[str, Evaluation]) -> str:
    first = evaluations[names[0]]
    rows = sum(found.rows for found in first.calibration)
    error = sum(found.rows * abs(found.forecast - found.share) for found in first.calibration) / rows
    return f"Forecasts of {names[0]} are {100 * error:.1f} points off on average"


def _draw(records: list[dict[str, Any]], names: list[str]) -> Any:
    scale = alt.Scale(domain=[0, 1], nice=False)
    axis = alt.Axis(format="%", tickCount=5)
    diagonal = (
        alt.Chart(data([{"forecast": 0.0, "share": 0.0}, {"forecast": 1.0, "share": 1.0}]))
        .mark_line(color=QUIET, strokeDash=[4, 4], strokeWidth=1)
        .encode(x="forecast:Q", y="share:Q")
    )
    base = alt.Chart(data(records)).encode(
        x=alt.X("forecast:Q", title="probability forecast", scale=scale, axis=axis),
        y=alt.Y("share:Q", title="share of rows that had the label", scale=scale, axis=axis),
        color=colour(names, legend=len(names) > 1),
    )
    first = alt.datum.name == names[0]
    lines = base.mark_line().encode(strokeWidth=alt.condition(first, alt.value(2.5), alt.value(1.2)), detail="name:N")
    points = base.mark_circle(opacity=0.85).encode(
        size=alt.Size("rows:Q", scale=alt.Scale(range=[20, 260]), legend=None),
        tooltip=[
            alt.Tooltip("name:N", title="learner"),
            alt.Tooltip("forecast:Q", format=".1%"),
            alt.Tooltip("share:Q", format=".1%"),
            alt.Tooltip("rows:Q", format=","),
        ],
    )
    return alt.layer(diagonal, lines, points).properties(width=SIDE, height=SIDE)
