"""Picture: which way of sharing won in which task, for learners that weigh several."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np

from shoal.evaluation import Evaluation
from shoal.evaluation.result import winners
from shoal.report.figure import Figure
from shoal.report.style import GAIN, data, drawn_of, few, rows_axis

WIDTH, ROW = 760, 34


def sharing_figure(evaluations: Mapping[str, Evaluation]) -> Figure | None:
    """A point per task next to the way of sharing that won there; None where all tasks have the same, or few."""
    name, evaluation = next(iter(evaluations.items()))
    found = {task: winner for task, winner in winners(evaluation).items() if task in evaluation.per_task}
    ways = Counter(winner.way for winner in found.values())
    if len(found) < 3 or len(ways) < 2:
        return None
    jitter = np.random.default_rng(0).uniform(-1, 1, len(found))
    records = [
        {
            "task": str(task),
            "rows": evaluation.per_task[task]["rows"],
            "way": winner.way,
            "weight": winner.weight,
            "jitter": float(shift),
        }
        for (task, winner), shift in zip(found.items(), jitter, strict=True)
    ]
    order = [way for way, _ in ways.most_common()]
    title = f"{name} trusts {order[0]} most in {ways[order[0]]:,} of {len(found):,} tasks"
    caption = (
        "One point per task, next to the expert with the largest weight there at the end: own ones are a model of the"
        " task alone, pooled ones one for all, the others a common model and the task's difference from it."
    )
    return Figure("sharing", title, caption + drawn_of(len(records)), _draw(few(records), order))


def _draw(records: list[dict[str, Any]], order: list[str]) -> Any:
    return (
        alt.Chart(data(records))
        .mark_circle(color=GAIN, opacity=0.6)
        .encode(
            x=rows_axis([record["rows"] for record in records], "rows of the task"),
            y=alt.Y("way:N", title=None, sort=order),
            yOffset=alt.YOffset("jitter:Q", scale=alt.Scale(domain=[-1.6, 1.6])),
            size=alt.Size("weight:Q", scale=alt.Scale(domain=[0, 1], range=[10, 130]), legend=None),
            tooltip=["task:N", "way:N", alt.Tooltip("weight:Q", format=".2f"), alt.Tooltip("rows:Q", format=",")],
        )
        .properties(width=WIDTH, height=ROW * len(order))
    )
