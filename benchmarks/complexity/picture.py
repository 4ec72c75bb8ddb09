"""The curves as small multiples: a row of panels for each class of documented cost, a column for what varies."""

import math
from collections.abc import Mapping
from statistics import median
from typing import Any

import altair as alt

from benchmarks.complexity.cases import CASES, Growth
from benchmarks.complexity.curves import AXES, Measured
from shoal.report.figure import Figure
from shoal.report.style import COLOURS, data, panel_title, spread

VARIES = {"nnz": "non-zeros, nnz", "tasks": "tasks, K", "features": "features, d"}
DASHES = ([1, 0], [5, 3])  # for another turn of the colours
WIDTH, DECADE, LEAST = 250, 46, 120  # pixels: of a panel, of a decade of time, of a panel's height
LINE, NAMES = 16, 190  # of a name beside the panels


def figure(found: Mapping[str, Measured]) -> Figure:
    """All curves of a run."""
    growths = dict.fromkeys(CASES[name].growth for name in found)
    rows = [_row(growth, {name: found[name] for name in found if CASES[name].growth == growth}) for growth in growths]
    return Figure(
        "complexity",
        "What an example costs as its non-zeros, the tasks and the features grow",
        "Microseconds an example; both axes are logarithmic. Grey: as steep as the documented cost allows. A curve that"
        " ends early met a limit of memory or time.",
        alt.vconcat(*rows, spacing=24).resolve_scale(color="independent", strokeDash="independent"),
    )


def _row(growth: Growth, found: Mapping[str, Measured]) -> Any:
    points: list[dict[str, Any]] = [
        {"name": name, "axis": axis, "size": n, "us": 1e6 * s}
        for name, measured in found.items()
        for axis, curve in measured.curves.items()
        for n, s in zip(curve.sizes, curve.seconds, strict=True)
    ]
    us = [point["us"] for point in points]
    low, high = min(us) / 1.6, 1.6 * max(us)
    height = round(max(DECADE * math.log10(high / low), LEAST, LINE * len(found)))
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    marks = [_panel(growth, axis, points, scale).properties(width=WIDTH, height=height) for axis in AXES]
    names = _names(points, low, high, height).properties(width=NAMES, height=height)
    return alt.hconcat(*marks, names, spacing=16).properties(title=panel_title(f"Documented: {growth.name}"))


def _panel(growth: Growth, axis: str, points: list[dict[str, Any]], scale: alt.Scale) -> Any:
    first, last = AXES[axis][0], AXES[axis][-1]
    x_axis = alt.Axis(values=[10**p for p in range(8)], format="~s", title=VARIES[axis])
    x = alt.X("size:Q", axis=x_axis, scale=alt.Scale(type="log", domain=[first, last], nice=False))
    leftmost = axis == next(iter(AXES))
    y_axis = alt.Axis(values=[10.0**p for p in range(-2, 8)], format=",~g", title=None, labels=leftmost, minExtent=40)
    y = alt.Y("us:Q", axis=y_axis, scale=scale)
    mine = [point for point in points if point["axis"] == axis]
    lines = alt.Chart(data(mine)).encode(x=x, y=y, **_style(points))
    slope = alt.Chart(data(_allowed(growth, axis, mine))).encode(x=x, y=y)
    return alt.layer(
        slope.mark_line(color="#dfe3e8", strokeWidth=7, clip=True),
        lines.mark_line(strokeWidth=1.6),
        lines.mark_point(filled=True, size=16, opacity=1),
    )


def _allowed(growth: Growth, axis: str, points: list[dict[str, Any]]) -> list[dict[str, float]]:
    """A line of the documented exponent through the middle of the curves' ends."""
    end = max(point["size"] for point in points)
    us = median(point["us"] for point in points if point["size"] == end)
    return [{"size": n, "us": us * (n / end) ** getattr(growth, axis)} for n in AXES[axis]]


def _style(points: list[dict[str, Any]]) -> dict[str, Any]:
    names = list(dict.fromkeys(point["name"] for point in points))
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(names))]
    dashes = [DASHES[i // len(COLOURS)] for i in range(len(names))]
    return {
        "color": alt.Color("name:N", scale=alt.Scale(domain=names, range=colours), legend=None),
        "strokeDash": alt.StrokeDash("name:N", scale=alt.Scale(domain=names, range=dashes), legend=None),
    }


def _names(points: list[dict[str, Any]], low: float, high: float, height: int) -> Any:
    """Beside the last panel, each as near to the end of its line as the others let it: a stroke and a name."""
    ends = {point["name"]: point["us"] for point in points if point["axis"] == [*AXES][-1]}
    places = spread([height * math.log(us / low) / math.log(high / low) for us in ends.values()], LINE)
    over = max(0.0, max(places) + LINE / 2 - height)
    places = [place - over for place in places]
    labels = [{"name": name, "place": place, "x": 0} for name, place in zip(ends, places, strict=True)]
    y = alt.Y("place:Q", scale=alt.Scale(domain=[0, height], nice=False), axis=None)
    across = alt.Scale(domain=[0, NAMES], nice=False)
    text = alt.Chart(data(labels)).mark_text(align="left", baseline="middle", fontSize=12)
    stroke = [label | {"x": x} for label in labels for x in (0, 22)]
    line = alt.Chart(data(stroke)).mark_line(strokeWidth=1.6)
    style = _style(points)
    return alt.layer(
        line.encode(x=alt.X("x:Q", scale=across, axis=None), y=y, **style),
        text.encode(x=alt.value(28), y=y, text="name:N", color=style["color"]),
    )
