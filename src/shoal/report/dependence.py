"""Picture: how forecasts change with one column, over all rows and in each task."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import altair as alt

from shoal.report.figure import Figure
from shoal.report.style import GAIN, QUIET, data
from shoal.tabular.explained import PartialDependence

MOST_TASKS = 30  # thin lines
WIDTH, HEIGHT, ROW = 560, 320, 26  # pixels
ALL = "all rows"


def dependence_figure(found: PartialDependence) -> Figure:
    """Mean forecasts for each value: a line of numbers, points of words; the tasks of most rows behind."""
    records = [
        {"task": str(task), "value": value, "forecast": forecast}
        for task, of_task in islice(found.by_task.items(), MOST_TASKS if len(found.by_task) > 1 else 0)
        for value, forecast in zip(found.grid_values, of_task, strict=True)
    ]
    overall = [
        {"task": ALL, "value": value, "forecast": forecast}
        for value, forecast in zip(found.grid_values, found.average, strict=True)
    ]
    return Figure("dependence", _title(found), _caption(found), _draw(found, overall, records))


def _title(found: PartialDependence) -> str:
    pairs = list(zip(found.average, found.grid_values, strict=True))
    (low, at_low), (high, at_high) = (choose(pairs, key=lambda pair: pair[0]) for choose in (min, max))
    return (
        f"The mean {found.unit} is {high:.3g} where {found.column} is {_written(at_high)}, and {low:.3g} where it is "
        f"{_written(at_low)}"
    )


def _written(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _caption(found: PartialDependence) -> str:
    caption = (
        f"The mean forecast over {found.rows:,} rows, in all of which {found.column} is set to each value, the rest "
        "being as it is: what the model says, which need not be what happens if someone changes it."
    )
    n = len(found.by_task)
    if n > 1:
        caption += (
            f" Behind it the same of {'each task' if n <= MOST_TASKS else f'the {MOST_TASKS} tasks with most rows'}."
        )
    return caption


def _draw(found: PartialDependence, overall: Sequence[dict[str, Any]], of_tasks: Sequence[dict[str, Any]]) -> Any:
    are_numbers = all(isinstance(value, int | float) for value in found.grid_values)
    scale = alt.Scale(zero=False, nice=not are_numbers)
    kind = "Q" if are_numbers else "N"
    tooltip = ["task:N", alt.Tooltip(f"value:{kind}", title=found.column), alt.Tooltip("forecast:Q", format=".4~g")]
    thin, thick = alt.Chart(data(of_tasks)), alt.Chart(data(overall))
    if are_numbers:
        x = alt.X("value:Q", title=found.column, scale=scale)
        y = alt.Y("forecast:Q", title=found.unit, scale=alt.Scale(zero=False))
        behind = thin.mark_line(color=QUIET, opacity=0.35, strokeWidth=1).encode(x=x, y=y, detail="task:N")
        points = thick.mark_line(color=GAIN, strokeWidth=2.5, point={"color": GAIN}).encode(x=x, y=y, tooltip=tooltip)
        return alt.layer(behind.encode(tooltip=tooltip), points).properties(width=WIDTH, height=HEIGHT)
    x = alt.X("forecast:Q", title=found.unit, scale=scale)
    y = alt.Y("value:N", title=None, sort=[*map(str, found.grid_values)], axis=alt.Axis(labelLimit=180))
    behind = thin.mark_tick(color=QUIET, opacity=0.45, thickness=1.5).encode(x=x, y=y, tooltip=tooltip)
    points = thick.mark_circle(color=GAIN, size=110, opacity=1.0).encode(x=x, y=y, tooltip=tooltip)
    return alt.layer(behind, points).properties(width=WIDTH, height=ROW * len(found.grid_values))
