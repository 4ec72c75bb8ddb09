"""The kinds of pictures that papers draw."""

from collections.abc import Mapping, Sequence
from itertools import chain, islice, repeat
from typing import Any, NamedTuple

import altair as alt
import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.papers.outcome import Outcome
from shoal.report.figure import Figure
from shoal.report.style import COLOURS, INK, QUIET, data, panel_title

WIDTH, HEIGHT = 380, 190
SIZES = {2: (WIDTH, HEIGHT), 3: (234, 150), 4: (170, 112), 6: (90, 78)}  # panels in a row: the size of each
DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2])  # of lines, when the colours have all been used


def beside(outcome: Outcome, n_metrics: int = 1) -> Figure | None:
    """Every learner's decisive metric, or the first ones: ours as a dot with its deviation, the paper's as a ring."""
    metrics = [outcome.experiment.decisive] if n_metrics == 1 else outcome.experiment.metrics[:n_metrics]
    records: list[dict[str, Any]] = []
    for row in outcome.rows():
        if row.metric in metrics:
            values = {"paper": row.paper, "ours": None if np.isnan(row.ours) else row.ours}
            for whose, value in values.items():
                if value is not None:
                    spread = row.deviation if whose == "ours" else row.paper_deviation or 0.0
                    records.append(
                        {
                            "panel": (row.data, row.metric.title),
                            "name": row.entrant,
                            "whose": whose,
                            "value": value,
                            "low": value - spread,
                            "high": value + spread,
                        }
                    )
    if not records:
        return None
    names = [entrant.name for entrant in outcome.main_entrants()]
    panels = [
        _beside(panel[0], [r for r in records if r["panel"] == panel], names, panel[1])
        for panel in dict.fromkeys(r["panel"] for r in records)
    ]
    title, caption = metrics[0].title, "Dots are means over shuffles, lines their deviations."
    if outcome.experiment.published:
        title = f"{title}: ours beside the paper's"
        caption = "Dots are ours, rings the paper's, lines their deviations over shuffles."
    return Figure(_name(outcome), title, caption, _grid(panels))


def _beside(title: str, records: list[dict[str, Any]], names: Sequence[str], axis: str) -> Any:
    room = min(7.5 * max(len(record["name"]) for record in records), 220)  # in the widest font that a reader may have
    base = alt.Chart(data(records)).encode(
        y=alt.Y("name:N", sort=list(names), title=None, axis=alt.Axis(grid=True, labelLimit=220, minExtent=room)),
        color=alt.Color("whose:N", scale=alt.Scale(domain=["ours", "paper"], range=[COLOURS[0], QUIET]), legend=None),
    )
    x = alt.X("value:Q", title=axis, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5, labelFlush=False))
    rule = base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(x=alt.X("low:Q", title=axis), x2="high:Q")
    ours = base.transform_filter("datum.whose == 'ours'").mark_point(filled=True, size=70, opacity=1).encode(x=x)
    paper = base.transform_filter("datum.whose == 'paper'").mark_point(filled=False, size=80, opacity=1).encode(x=x)
    return alt.layer(rule, paper, ours).properties(
        width=WIDTH, height=22 * len({r["name"] for r in records}) + 10, title=panel_title(title)
    )


class Titles(NamedTuple):
    """The words of a picture of curves or points."""

    title: str
    caption: str
    x: str
    y: str


def curves(
    outcome: Outcome,
    panels: Mapping[str, Mapping[str, FloatArray]],
    x: Mapping[str, Sequence[float]],
    titles: Titles,
    *,
    labels: Sequence[str] | None = None,
    rows: Sequence[int] = (),
) -> Figure | None:
    """A panel for each key of `panels`, a line for each learner in it; `x` is a panel's axis.

    `rows` gives the number of panels in each row, else there are two; from four on, axes have no titles.
    """
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    beside = chain.from_iterable([n] * n for n in rows or repeat(2))
    drawn = [
        _curves(
            panel,
            {name: v for name, v in lines.items() if np.isfinite(v).any()},
            x[panel],
            names,
            (titles.x, titles.y) if n < 4 else ("", ""),
            labels,
            SIZES[n],
        )
        for (panel, lines), n in zip(panels.items(), beside, strict=False)
        if lines
    ]
    return Figure(_name(outcome), titles.title, titles.caption, _grid(drawn, rows)) if drawn else None


def _curves(
    panel: str,
    lines: Mapping[str, FloatArray],
    x: Sequence[float],
    names: Sequence[str],
    titles: tuple[str, str],
    labels: Sequence[str] | None,
    size: tuple[int, int],
) -> Any:
    records = [
        {"name": name, "x": at if labels is None else labels[int(at)], "value": float(value)}
        for name, values in lines.items()
        for at, value in zip(x, values, strict=True)
        if np.isfinite(value)
    ]
    kind, look = (
        "x:Q" if labels is None else "x:O",
        alt.Axis(labelAngle=0, tickCount=min(6, size[0] // 40), labelFlush=False),
    )
    axis = alt.X(kind, title=titles[0], sort=None, axis=look)
    drawn = _lines(panel, records, names, axis, titles[1], points=labels is not None)
    return drawn.properties(width=size[0], height=size[1])


def _lines(
    panel: str, records: Sequence[Mapping[str, Any]], names: Sequence[str], axis: alt.X, y_title: str, *, points: bool
) -> Any:
    colours = (*COLOURS, INK)
    scale = alt.Scale(domain=list(names), range=[colours[i % len(colours)] for i in range(len(names))])
    dashes = alt.Scale(domain=list(names), range=[DASHES[i // len(colours)] for i in range(len(names))])
    legend = alt.Legend(
        title=None, symbolType="stroke", symbolSize=300, symbolStrokeWidth=2, orient="bottom", columns=5
    )
    return (
        alt.Chart(data(records))
        .mark_line(point=points, strokeWidth=2)
        .encode(
            x=axis,
            y=alt.Y("value:Q", title=y_title, scale=alt.Scale(zero=False)),
            color=alt.Color("name:N", scale=scale, legend=legend),
            strokeDash=alt.StrokeDash("name:N", scale=dashes, legend=legend),
        )
        .properties(width=WIDTH, height=HEIGHT, title=panel_title(panel))
    )


def matrices(
    outcome: Outcome, values: Mapping[str, FloatArray], names: Sequence[str], *, title: str, caption: str
) -> Figure | None:
    """Heat maps side by side; the diagonal is left out, it says nothing about relations."""
    if not values:
        return None
    panels = [_matrix(name, matrix, names) for name, matrix in values.items()]
    return Figure(_name(outcome), title, caption, _grid(panels).resolve_scale(color="independent"))


def _matrix(title: str, matrix: FloatArray, names: Sequence[str]) -> Any:
    records = [
        {"row": a, "column": b, "value": float(matrix[i, j])}
        for i, a in enumerate(names)
        for j, b in enumerate(names)
        if i != j
    ]
    axis: dict[str, Any] = {"title": None, "grid": False, "ticks": False, "domain": False, "labelFontSize": 10}
    return (
        alt.Chart(data(records))
        .mark_rect()
        .encode(
            x=alt.X("column:N", sort=list(names), axis=alt.Axis(labelAngle=-90, **axis)),
            y=alt.Y("row:N", sort=list(names), axis=alt.Axis(**axis)),
            color=alt.Color("value:Q", scale=alt.Scale(scheme="yellowgreenblue"), legend=alt.Legend(title=None)),
        )
        .properties(width=18 * len(names), height=18 * len(names), title=panel_title(title))
    )


def _grid(panels: Sequence[Any], rows: Sequence[int] = ()) -> Any:
    """Two in a row: more of that size would be shrunk on the page until they cannot be read."""
    rest = iter(panels)
    filled = [list(islice(rest, n)) for n in rows or [2] * -(-len(panels) // 2)]
    return alt.vconcat(*(alt.hconcat(*row) for row in filled if row))


def _name(outcome: Outcome) -> str:
    return outcome.experiment.id.replace("/", "-")


def scatter(
    outcome: Outcome, panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]], titles: Titles
) -> Figure | None:
    """A panel for each key, in it a line with points for each name, every point with its own place."""
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    beside = 3 if len(panels) == 3 else 2
    drawn = []
    for panel, lines in panels.items():
        records = [
            {"name": name, "x": float(x), "value": float(y)} for name, points in lines.items() for x, y in points
        ]
        if records:
            lines_of = _lines(panel, records, names, alt.X("x:Q", title=titles.x), titles.y, points=True)
            drawn.append(lines_of.properties(width=SIZES[beside][0], height=SIZES[beside][1]))
    rows = [beside] * -(-len(drawn) // beside)
    return Figure(_name(outcome), titles.title, titles.caption, _grid(drawn, rows)) if drawn else None
