"""Picture: forecasts held against what happened."""

from collections.abc import Mapping
from typing import Any

import altair as alt

from shoal.evaluation import Evaluation
from shoal.report.figure import Figure
from shoal.report.style import QUIET, colour, data, logarithmic, panel_title

WIDTH, HEIGHT = 390, 340
MIN_ROWS = 20  # of a bin that is drawn: the share of fewer rows is mostly chance


def calibration_figure(evaluations: Mapping[str, Evaluation]) -> Figure | None:
    """Share of positives against the forecast, bin by bin; None unless a learner gives probabilities."""
    records: list[dict[str, Any]] = [
        {"name": name, "forecast": found.forecast, "share": found.share, "rows": found.rows}
        for name, evaluation in evaluations.items()
        for found in evaluation.calibration
        if found.rows
    ]
    if max((record["rows"] for record in records), default=0) < MIN_ROWS:
        return None
    names = [name for name, evaluation in evaluations.items() if evaluation.calibration]
    caption = (
        "Left: rows in 20 bins by the probability they were given, and the share of them that had the larger label. On "
        f"the diagonal forecasts are right. Bins of fewer than {MIN_ROWS} rows are left out. Right: rows of each bin."
    )
    return Figure("calibration", _title(names, evaluations), caption, _draw(records, names))


def _title(names: list[str], evaluations: Mapping[str, Evaluation]) -> str:
    first = evaluations[names[0]]
    rows = sum(found.rows for found in first.calibration)
    error = sum(found.rows * abs(found.forecast - found.share) for found in first.calibration) / rows
    return f"Forecasts of {names[0]} are {100 * error:.1f} points off on average"


def _draw(records: list[dict[str, Any]], names: list[str]) -> Any:
    scale, axis = alt.Scale(domain=[0, 1], nice=False), alt.Axis(format="%", tickCount=5)
    forecast = alt.X("forecast:Q", title="probability forecast", scale=scale, axis=axis)
    share = alt.Y("share:Q", title="share of rows that had the label", scale=scale, axis=axis)
    logs, ticks = logarithmic(record["rows"] for record in records)
    count = alt.Y("rows:Q", title="rows", scale=logs, axis=alt.Axis(format="~s", values=ticks))
    diagonal = (
        alt.Chart(data([{"forecast": 0.0, "share": 0.0}, {"forecast": 1.0, "share": 1.0}]))
        .mark_line(color=QUIET, strokeDash=[4, 4], strokeWidth=1)
        .encode(x="forecast:Q", y="share:Q")
    )
    shown = [record for record in records if record["rows"] >= MIN_ROWS]
    calibration = alt.layer(diagonal, *_lines(shown, names, forecast, share))
    histogram = alt.layer(*_lines(records, names, forecast, count))
    return alt.hconcat(
        calibration.properties(width=WIDTH, height=HEIGHT, title=panel_title("what came of forecasts")),
        histogram.properties(width=WIDTH, height=HEIGHT, title=panel_title("how often each was made")),
    )


def _lines(records: list[dict[str, Any]], names: list[str], x: alt.X, y: alt.Y) -> list[Any]:
    """A line with points for each learner, the first one's thicker."""
    base = alt.Chart(data(records)).encode(x=x, y=y, color=colour(names, legend=len(names) > 1))
    width = alt.condition(alt.datum.name == names[0], alt.value(2.5), alt.value(1.2))
    tooltip = [
        alt.Tooltip("name:N", title="learner"),
        alt.Tooltip("forecast:Q", format=".1%"),
        alt.Tooltip("share:Q", format=".1%"),
        alt.Tooltip("rows:Q", format=","),
    ]
    return [
        base.mark_line().encode(strokeWidth=width, detail="name:N"),
        base.mark_circle(opacity=0.85, size=40).encode(tooltip=tooltip),
    ]
