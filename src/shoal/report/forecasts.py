"""Picture: forecasts of numbers held against what came, and how far off they are."""

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.evaluation import Evaluation
from shoal.evaluation.sample import ROWS
from shoal.report.figure import Figure
from shoal.report.style import GAIN, QUIET, data, panel_title

WIDTH, HEIGHT = 390, 320
PARTS, LEAST_ROWS = 20, 10  # equal parts of the rows by their forecast, at most; rows of one
BARS, OUTSIDE = 40, 0.01  # of the residuals; the share of the rows that lies beyond them on each side


def forecasts_figure(evaluations: Mapping[str, Evaluation]) -> Figure | None:
    """Truth against forecast, and residuals, of the first learner; None but for numbers that vary."""
    name, first = next(iter(evaluations.items()))
    pairs = np.zeros((0, 2)) if first.sample is None else first.sample.pairs
    pairs = pairs[np.isfinite(pairs).all(axis=1)]
    if len(pairs) < 4 * LEAST_ROWS or np.ptp(pairs[:, 0]) == 0.0 or np.ptp(pairs[:, 1]) == 0.0:
        return None
    half, most = np.quantile(np.abs(pairs[:, 0] - pairs[:, 1]), [0.5, 0.9]).tolist()
    title = f"Half of the forecasts of {name} are at most {half:.3g} off, nine in ten at most {most:.3g}"
    drawn = f" Drawn from {ROWS:,} rows, taken at random." if first.rows > ROWS else ""
    caption = (
        "Left: rows in equal parts by their forecast. The line is the mean truth of each part, and the band holds "
        "eight rows of ten; on the diagonal forecasts are right. Right: truth less forecast; right of zero forecasts "
        f"were too low; one row in a hundred lies beyond each side.{drawn}"
    )
    return Figure("forecasts", title, caption, alt.hconcat(_against_truth(pairs), _residuals(pairs)))


def parts_of(pairs: FloatArray) -> list[dict[str, Any]]:
    """Mean forecast, mean truth and its middle eight tenths of equal parts of the rows by forecast."""
    order = np.argsort(pairs[:, 1], kind="stable")
    parts = np.array_split(pairs[order], min(PARTS, len(pairs) // LEAST_ROWS))
    return [
        {
            "forecast": float(forecast.mean()),
            "truth": float(truth.mean()),
            "low": float(np.quantile(truth, 0.1)),
            "high": float(np.quantile(truth, 0.9)),
        }
        for truth, forecast in (part.T for part in parts)
    ]


def _against_truth(pairs: FloatArray) -> Any:
    parts = parts_of(pairs)
    values = [value for part in parts for value in part.values()]
    low, high = min(values), max(values)
    scale, axis = alt.Scale(domain=[low, high], nice=False, zero=False), alt.Axis(tickCount=5, format="~s")
    x = alt.X("forecast:Q", title="forecast", scale=scale, axis=axis)
    ends = [{"forecast": low, "truth": low}, {"forecast": high, "truth": high}]
    diagonal = alt.Chart(data(ends)).mark_line(color=QUIET, strokeDash=[4, 4], strokeWidth=1)
    base = alt.Chart(data(parts)).encode(x=x)
    y = alt.Y("truth:Q", title="truth", scale=scale, axis=axis)
    band = base.mark_area(color=GAIN, opacity=0.2).encode(y=alt.Y("low:Q", title="truth", scale=scale), y2="high:Q")
    line = base.mark_line(color=GAIN, strokeWidth=2.5).encode(y=y)
    tooltip = [alt.Tooltip(f"{name}:Q", format=".4~g") for name in ("forecast", "truth", "low", "high")]
    points = base.mark_circle(color=GAIN, size=40, opacity=1).encode(y=y, tooltip=tooltip)
    layers = alt.layer(diagonal.encode(x=x, y=y), band, line, points)
    return layers.properties(width=WIDTH, height=HEIGHT, title=panel_title("what came of forecasts"))


def _residuals(pairs: FloatArray) -> Any:
    residuals = pairs[:, 0] - pairs[:, 1]
    low, high = np.quantile(residuals, [OUTSIDE, 1.0 - OUTSIDE]).tolist()
    counts, edges = np.histogram(residuals, BARS, (low, high) if high > low else None)
    bars = [
        {"from": start, "to": end, "share": count / len(residuals), "none": 0.0}
        for count, start, end in zip(counts.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]
    scale = alt.Scale(domain=[edges[0].item(), edges[-1].item()], nice=False, zero=False)
    x = alt.X("from:Q", title="truth less forecast", scale=scale, axis=alt.Axis(tickCount=5, format="~s"))
    share = alt.Y("share:Q", title="share of rows", axis=alt.Axis(format="%", tickCount=5))
    tooltip = [
        alt.Tooltip("from:Q", format=".4~g"),
        alt.Tooltip("to:Q", format=".4~g"),
        alt.Tooltip("share:Q", format=".1%"),
    ]
    drawn = (
        alt.Chart(data(bars))
        .mark_rect(color=GAIN, opacity=0.7)
        .encode(x=x, x2="to:Q", y=share, y2="none:Q", tooltip=tooltip)
    )
    zero = alt.Chart(data([{"from": 0.0}] if edges[0] <= 0.0 <= edges[-1] else [])).mark_rule(
        color=QUIET, strokeDash=[4, 4]
    )
    layers = alt.layer(drawn, zero.encode(x="from:Q"))
    return layers.properties(width=WIDTH, height=HEIGHT, title=panel_title("how far off they are"))
