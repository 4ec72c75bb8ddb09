"""Picture: which columns move the forecasts."""

from collections.abc import Mapping
from typing import Any

import altair as alt

from shoal.evaluation import Evaluation
from shoal.model.importances import Importances
from shoal.model.slicing import as_wide
from shoal.report.figure import Figure
from shoal.report.style import GAIN, INK, data

MOST = 12  # columns
ROW, WIDTH, NAME = 28, 560, 180  # pixels


def importance_figure(evaluations: Mapping[str, Evaluation]) -> Figure | None:
    """The contributions of columns to the first learner's forecasts; None if it cannot explain them."""
    first = next(iter(evaluations.values()))
    found = _importances(first)
    if found is None or len(found.overall) < 2:
        return None
    records = [
        {"column": _named(one.column), "share": one.share, "shared": one.shared, "own": one.own}
        for one in found.overall[:MOST]
    ]
    best = records[0]
    title = f"{best['column']} moves the forecasts most: {best['share']:.0%} of what all columns add"
    more = f" {MOST} of {len(found.overall):,} columns are shown." if len(found.overall) > MOST else ""
    caption = (
        f"How much each column adds to the forecasts of {found.rows:,} rows, drawn at random, up or down, by the model "
        f"at the end of the stream.{more}"
    )
    return Figure("importance", title, caption, _draw(records))


def _importances(evaluation: Evaluation) -> Importances | None:
    sample, columns = evaluation.sample, evaluation.columns
    if sample is None or sample.X is None:
        return None
    n = int(evaluation.learner.n_features_in_)
    if columns is not None:
        columns = [*columns[:n], *[None] * (n - len(columns))]
    try:
        found: Importances = evaluation.learner.importances(as_wide(sample.X, n), sample.task, columns=columns)
    except ValueError:  # kernels and mixtures
        return None
    return found


def _named(column: Any) -> str:
    return f"column {column}" if isinstance(column, int) else str(column)


def _draw(records: list[dict[str, Any]]) -> Any:
    axis = alt.Axis(labelLimit=NAME, domain=False, ticks=False)
    y = alt.Y("column:N", sort=[record["column"] for record in records], title=None, axis=axis)
    most = max(record["share"] for record in records)
    scale = alt.Scale(domain=[0, 1.12 * most], nice=False)
    x = alt.X("share:Q", title="share of what all columns add", scale=scale, axis=alt.Axis(format="%", tickCount=5))
    base = alt.Chart(data(records)).encode(x=x, y=y)
    tooltip = [
        "column:N",
        alt.Tooltip("share:Q", format=".1%"),
        alt.Tooltip("shared:Q", title="by what all tasks share", format=".3~g"),
        alt.Tooltip("own:Q", title="by each task's own", format=".3~g"),
    ]
    bars = base.mark_bar(color=GAIN, opacity=0.8, height=16).encode(tooltip=tooltip)
    text = base.mark_text(align="left", dx=6, fontSize=12, color=INK).encode(text=alt.Text("share:Q", format=".0%"))
    return alt.layer(bars, text).properties(width=WIDTH, height=ROW * len(records))
