"""How all pictures look: fonts, colours, scales, labels at the ends of lines."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
from altair.utils.schemapi import debug_mode

from shoal.engine.arrays import FloatArray

FONT = "Inter, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"
INK, QUIET, RULE, CARD, AXIS = "#1f2933", "#5f6b7a", "#e4e7eb", "#ffffff", "#9aa5b1"
GAIN, LOSS = "#0072b2", "#d55e00"
# Okabe and Ito's colours, told apart by readers of any colour vision; the learner first, then its baselines.
THIRD, FOURTH = "#6b7280", "#009e73"
COLOURS = (GAIN, LOSS, THIRD, FOURTH, "#cc79a7", "#a6761d")
DARK = {  # what a color of a picture becomes on pages in the dark; others stay
    INK: "#e6eaee",
    QUIET: "#a3afbb",
    RULE: "#333d47",
    CARD: "#1c232b",
    AXIS: "#5f6b7a",
    GAIN: "#56b4e9",
    LOSS: "#f0924d",
    THIRD: "#a3afbb",
    FOURTH: "#2fc79b",
}

PAINTED = ("fill", "stroke")  # attributes of a picture's parts

MOST_POINTS = 1_000

CONFIG: dict[str, Any] = {
    "font": FONT,
    "background": CARD,
    "view": {"stroke": None},
    "axis": {
        "labelColor": QUIET,
        "labelFontSize": 12,
        "labelPadding": 6,
        "titleColor": INK,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 10,
        "grid": True,
        "gridColor": RULE,
        "domain": False,
        "ticks": False,
    },
    "axisX": {"grid": False, "domain": True, "domainColor": AXIS, "ticks": True, "tickColor": AXIS},
    "legend": {
        "labelColor": QUIET,
        "labelFontSize": 12,
        "titleColor": INK,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    },
    "header": {"labelColor": INK, "labelFontSize": 13},
    "title": {
        "anchor": "start",
        "color": INK,
        "fontSize": 17,
        "fontWeight": 600,
        "subtitleColor": QUIET,
        "subtitleFontSize": 13,
        "subtitlePadding": 6,
        "offset": 18,
        "lineHeight": 22,
    },
    "concat": {"spacing": 48},
}


def in_the_dark(pictures: str) -> str:
    """Rules of CSS that give SVG pictures, named by a selector, their colors in the dark."""
    rules = (f'[{part}="{light}"] {{ {part}: {dark}; }}' for light, dark in DARK.items() for part in PAINTED)
    return "\n".join(f"{pictures} {rule}" for rule in rules)


def data(records: Iterable[Mapping[str, Any]]) -> alt.InlineData:
    """Records as chart data. (Not a data frame: those are limited in rows.)"""
    with debug_mode(False):  # altair would check each number of each record against the schema, for seconds
        return alt.InlineData(values=[dict(record) for record in records])


def few(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most `MOST_POINTS` of the records, drawn at random: more make no picture clearer, and a page large."""
    if len(records) <= MOST_POINTS:
        return list(records)
    chosen = np.random.default_rng(0).choice(len(records), MOST_POINTS, replace=False)
    return [records[i] for i in np.sort(chosen).tolist()]


def drawn_of(n: int) -> str:
    """The sentence of a caption that says how many of n tasks are drawn, if not all are."""
    return f" {MOST_POINTS:,} of {n:,} tasks are drawn, at random." if n > MOST_POINTS else ""


def colour(names: Sequence[str], *, legend: bool = False) -> alt.Color:
    """One color per evaluation; without a legend where lines carry their names."""
    range_ = [COLOURS[i % len(COLOURS)] for i in range(len(names))]
    return alt.Color(
        "name:N", scale=alt.Scale(domain=list(names), range=range_), legend=alt.Legend(title=None) if legend else None
    )


def span(values: Iterable[float]) -> tuple[float, float]:
    """The ends of a logarithmic scale of the values, with room beside them."""
    values = list(values)
    return min(values) * 0.85, max(values) * 1.15


def logarithmic(values: Iterable[float]) -> tuple[alt.Scale, list[float]]:
    """A scale that spans the values, and its ticks: powers of ten; if few, 1, 2 and 5 times these.

    Where these are fewer than two, the ends of the values, or one of them if they lie close to each other.
    """
    values = list(values)
    low, high = min(values), max(values)
    steps = (1,) if high / low > 50 else (1, 2, 5)
    first, last = span(values)
    ticks = [s * 10**p for p in range(12) for s in steps if first <= s * 10**p <= last]
    scale = alt.Scale(type="log", domain=[first, last], nice=False)
    return scale, ticks if len(ticks) > 1 else [low, high] if high > 1.25 * low else [high]


def rows_axis(values: Iterable[float], title: str) -> alt.X:
    """A logarithmic axis of row counts."""
    scale, ticks = logarithmic(values)
    return alt.X("rows:Q", scale=scale, axis=alt.Axis(values=ticks, format=",", title=title))


def spread(values: Sequence[float], gap: float) -> list[float]:
    """The values moved apart as little as keeps them `gap` from each other: places for labels.

    Examples
    --------
    >>> spread([1.0, 1.0, 5.0], 1.0)
    [0.5, 1.5, 5.0]
    """
    order = np.argsort(values, kind="stable")
    groups: list[list[float]] = []  # of neighbours that touch: [centre, size]
    for value in np.asarray(values, float)[order]:
        groups.append([float(value), 1.0])
        while len(groups) > 1 and groups[-1][0] - groups[-2][0] < gap * (groups[-1][1] + groups[-2][1]) / 2:
            (a, m), (b, n) = groups[-2], groups.pop()
            groups[-1] = [(a * m + b * n) / (m + n), m + n]
    places = [centre + gap * (i - (size - 1) / 2) for centre, size in groups for i in range(int(size))]
    moved = np.empty(len(places))
    moved[order] = places
    return [float(place) for place in moved]


def trend(rows: FloatArray, values: FloatArray, n_points: int = 60) -> list[dict[str, float]]:
    """A smooth line through the points: weighted means of neighbours on the logarithmic axis.

    It is drawn only where at least four points' worth of weight carry it, perhaps nowhere.
    """
    x = np.log(rows)
    width = max(np.ptp(x) / 8, 1e-9)
    grid = np.linspace(x.min(), x.max(), n_points)
    weights = np.exp(-0.5 * ((grid[:, None] - x) / width) ** 2)
    line = weights @ values / weights.sum(axis=1)
    carried = weights.sum(axis=1) ** 2 / (weights**2).sum(axis=1) >= 4
    return [{"rows": float(a), "value": float(b)} for a, b in zip(np.exp(grid[carried]), line[carried], strict=True)]


def panel_title(text: str) -> alt.TitleParams:
    """The title of one panel of several."""
    return alt.TitleParams(text, fontSize=13, offset=10)


def listed(items: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)
