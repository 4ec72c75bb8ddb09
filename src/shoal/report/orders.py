"""Pictures of learners over several orders: learning curves with bands, and mean ranks with their difference."""

import altair as alt
import numpy as np

from shoal.evaluation import Orders
from shoal.evaluation.result import label
from shoal.report.figure import Figure
from shoal.report.style import GAIN, INK, colour, data, rows_axis

WIDTH, HEIGHT, ROW = 760, 320, 34


def order_figures(found: Orders) -> list[Figure]:
    """The learning curves, and of two learners or more over two orders or more the ranks."""
    figures = [_curves(found)]
    if not np.isnan(found.critical_difference):
        figures.append(_ranks(found))
    return figures


def _curves(found: Orders) -> Figure:
    records = []
    for name, evaluations in found.evaluations.items():
        for points in zip(*(one.history for one in evaluations), strict=True):
            values = np.array([point.macro[found.metric] for point in points])
            values = values[~np.isnan(values)]
            if len(values):
                mean, deviation = float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0
                band = {"low": mean - deviation, "high": mean + deviation}
                records.append({"name": name, "rows": points[0].rows, "mean": mean, **band})
    scale = alt.Scale(zero=False)
    base = alt.Chart(data(records)).encode(
        x=rows_axis([record["rows"] for record in records] or [1], "rows"),
        color=colour(list(found.evaluations), legend=True),
    )
    tooltip = ["name:N", alt.Tooltip("rows:Q", format=","), alt.Tooltip("mean:Q", format=".4f")]
    title = f"{label(found.metric)}, mean over tasks"
    band = base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q", title=title, scale=scale), y2="high:Q")
    lines = base.mark_line(strokeWidth=2.2).encode(y=alt.Y("mean:Q", scale=scale), tooltip=tooltip)
    points = base.mark_circle(size=34).encode(y=alt.Y("mean:Q", scale=scale), tooltip=tooltip)
    caption = f"Scores of all rows so far; lines are means over {len(found.seeds)} orders, bands one deviation around."
    chart = alt.layer(band, lines, points).properties(width=WIDTH, height=HEIGHT)
    return Figure("curves", f"{found.places[0].name} is best in the mean over orders", caption, chart)


def _ranks(found: Orders) -> Figure:
    half = found.critical_difference / 2
    records = [
        {"name": one.name, "rank": one.mean_rank, "low": one.mean_rank - half, "high": one.mean_rank + half}
        for one in found.places
        if not np.isnan(one.mean_rank)
    ]
    names = [str(record["name"]) for record in records]
    y = alt.Y("name:N", sort=names, title=None, axis=alt.Axis(labelLimit=240, domain=False, ticks=False))
    base = alt.Chart(data(records)).encode(y=y)
    x = alt.X("low:Q", title="mean rank, 1 is best", scale=alt.Scale(zero=False), axis=alt.Axis(tickMinStep=0.5))
    bars = base.mark_rule(color=GAIN, strokeWidth=6, opacity=0.35).encode(x=x, x2="high:Q")
    dots = base.mark_circle(color=INK, size=60, opacity=1).encode(x="rank:Q", tooltip=["name:N", "rank:Q"])
    caption = (
        f"Ranks by {label(found.metric)} over tasks, mean over {len(found.seeds)} orders. Bars are as long as the "
        "critical difference (Nemenyi, 5 %): learners whose bars overlap may differ by the luck of the order."
    )
    chart = alt.layer(bars, dots).properties(width=WIDTH - 120, height=ROW * len(names))
    return Figure("ranks", found.conclusion, caption, chart)
