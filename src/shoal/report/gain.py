"""Picture 2: the gain of each task from sharing, by its size."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from shoal.evaluation import Evaluation
from shoal.evaluation.result import higher_is_better, label, main_metric
from shoal.report.figure import Figure
from shoal.report.style import (
    CARD,
    GAIN,
    INK,
    LOSS,
    QUIET,
    data,
    drawn_of,
    few,
    listed,
    panel_title,
    rows_axis,
    span,
    trend,
)

WIDTH, HEIGHT = 400, 320
BASELINES = {"independent": "one model per task", "pooled": "one model for all tasks"}
N_LABELS = 8
MANY = 300  # tasks: smaller, fainter points


def _gains(learner: Evaluation, baseline: Evaluation, metric: str) -> list[dict[str, Any]]:
    """A record per task in which both have the metric."""
    sign = 1 if higher_is_better(metric) else -1
    records = []
    for task, scores in learner.per_task.items():
        reference = baseline.per_task.get(task, {}).get(metric, np.nan)
        gain = sign * (scores[metric] - reference)
        if not np.isnan(gain):
            values = {"learner": scores[metric], "baseline": reference, "gain": gain}
            records.append({"task": str(task), "rows": scores["rows"], **values})
    return records


def _domain(gains: Sequence[float]) -> tuple[float, float]:
    """The span of nearly all gains, zero in it: a tiny task or two must not flatten all others."""
    low, high = np.quantile(gains, [0.02, 0.98]).tolist()
    low, high = min(low, 0.0), max(high, 0.0)
    margin = 0.15 * (high - low or 0.1)
    return low - margin, high + margin


def _placed(records: Iterable[dict[str, Any]], domain: tuple[float, float]) -> list[dict[str, Any]]:
    """With the place on the picture: a point beyond it is drawn at the edge with its value."""
    low, high = domain
    edge = 0.02 * (high - low)
    placed = []
    for record in records:
        gain = record["gain"]
        side = "above" if gain > high else "below" if gain < low else "inside"
        text = record["task"] if side == "inside" else f"{record['task']} {gain:+.2f}"
        y = float(np.clip(gain, low + edge, high - edge))
        beside = side != "inside" or y > high - 5 * edge  # no room for the name above
        placed.append(record | {"y": y, "side": side, "text": text, "beside": beside})
    return placed


def _labelled(records: Sequence[Mapping[str, Any]], domain: tuple[float, float]) -> list[Mapping[str, Any]]:
    """The most telling tasks (far from zero, or large), as many as have room for their names."""
    rows = [record["rows"] for record in records]
    first, last = np.log(span(rows))
    x = WIDTH * (np.log(rows) - first) / (last - first)
    y = HEIGHT * np.array([record["y"] for record in records]) / (domain[1] - domain[0])
    outside = np.array([record["side"] != "inside" for record in records])
    beside = np.array([record["beside"] for record in records])
    half = np.array([3.5 * len(record["text"]) for record in records])  # of the width of the name
    name_x, name_y = x + beside * (8 + half), y + ~beside * 12
    telling = np.abs(y) / HEIGHT + 0.35 * (x / WIDTH) ** 4 + outside
    chosen: list[int] = []
    for i in np.argsort(-telling):
        crowd = (np.abs(x - name_x[i]) < half[i] + 5) & (np.abs(y - name_y[i]) < 11)
        crowd[i] = False
        names = any(
            abs(name_x[j] - name_x[i]) < half[i] + half[j] + 4 and abs(name_y[j] - name_y[i]) < 13 for j in chosen
        )
        if not names and not crowd.any() and len(chosen) < N_LABELS:
            chosen.append(int(i))
    return [records[i] for i in chosen]


def _draw(records: list[dict[str, Any]], domain: tuple[float, float], metric: str, title: str) -> Any:
    rows = [record["rows"] for record in records]
    records, many = _placed(records, domain), len(records) > MANY
    title_of_axis, signed = f"difference in {label(metric)}", "datum.value ? format(datum.value, '+.3~r') : '0'"
    axis = alt.Axis(labelExpr=signed, tickCount=6, title=title_of_axis)
    y = alt.Y("y:Q", scale=alt.Scale(domain=list(domain), nice=False), axis=axis)
    shapes = alt.Scale(domain=["inside", "above", "below"], range=["circle", "triangle-up", "triangle-down"])
    points = (
        alt.Chart(data(records))
        .mark_point(filled=True, opacity=0.4 if many else 0.75, stroke=CARD, strokeWidth=0.6)
        .encode(
            x=rows_axis(rows, "rows of the task"),
            y=y,
            size=alt.Size("rows:Q", scale=alt.Scale(range=[8, 45] if many else [35, 190]), legend=None),
            shape=alt.Shape("side:N", scale=shapes, legend=None),
            color=alt.condition(alt.datum.gain >= 0, alt.value(GAIN), alt.value(LOSS)),
            tooltip=[
                alt.Tooltip("task:N"),
                alt.Tooltip("rows:Q", format=","),
                alt.Tooltip("learner:Q", title=label(metric), format=".4f"),
                alt.Tooltip("baseline:Q", title=title, format=".4f"),
                alt.Tooltip("gain:Q", format="+.4f"),
            ],
        )
    )
    zero = alt.Chart(data([{"y": 0}])).mark_rule(color=INK, strokeWidth=1).encode(y="y:Q")
    line = trend(np.array(rows, float), np.array([record["y"] for record in records]))
    smooth = (
        alt.Chart(data({"rows": p["rows"], "y": p["value"]} for p in line))
        .mark_line(color=INK, strokeWidth=2, opacity=0.85)
        .encode(x="rows:Q", y="y:Q")
    )
    names = alt.Chart(data(_labelled(records, domain))).encode(x="rows:Q", y="y:Q", text="text:N")
    layers = alt.layer(zero, points, smooth, *_written(names))
    return layers.properties(width=WIDTH, height=HEIGHT, title=panel_title(f"against {title}"))


def _written(names: Any) -> list[Any]:
    """Names above or beside their points, on a white rim: the line may run through them."""
    above, beside = names.transform_filter("!datum.beside"), names.transform_filter("datum.beside")
    layers = []
    for style in ({"stroke": CARD, "strokeWidth": 3, "color": CARD}, {"color": QUIET}):
        layers.append(above.mark_text(dy=-12, fontSize=11, **style))
        layers.append(beside.mark_text(align="left", dx=8, fontSize=11, **style))
    return layers


def gain_figure(evaluations: Mapping[str, Evaluation]) -> Figure | None:
    """The difference to each baseline, task by task; None without a baseline."""
    name, learner = next(iter(evaluations.items()))
    metric = main_metric(learner)
    against = {title: evaluations[key] for key, title in BASELINES.items() if key in evaluations and key != name}
    gains = {title: _gains(learner, baseline, metric) for title, baseline in against.items()}
    gains = {title: records for title, records in gains.items() if records}
    if not gains:
        return None
    domain = _domain([record["gain"] for records in gains.values() for record in records])
    drawn = [_draw(few(records), domain, metric, title) for title, records in gains.items()]
    caption = _caption(metric, gains) + drawn_of(max(map(len, gains.values())))
    return Figure("gain", _title(name, metric, gains), caption, alt.hconcat(*drawn))


def _title(name: str, metric: str, gains: Mapping[str, list[dict[str, Any]]]) -> str:
    counts = [
        f"{title} in {sum(record['gain'] > 0 for record in records):,} of {len(records):,} tasks"
        for title, records in gains.items()
    ]
    return f"{name} beats {listed(counts)}, by {label(metric)}"


def _caption(metric: str, gains: Mapping[str, list[dict[str, Any]]]) -> str:
    """How to read it, and what small and large tasks gain."""
    better = "" if higher_is_better(metric) else ", turned so that more is better"
    sentences = [
        f"One point per task{better}; above zero sharing helps. The line is the local mean; "
        "triangles lie beyond the picture."
    ]
    for title, records in gains.items():
        if len(records) < 6:
            continue
        by_size = [record["gain"] for record in sorted(records, key=lambda record: record["rows"])]
        third = len(by_size) // 3
        small, large = np.median(by_size[:third]), np.median(by_size[-third:])
        thirds = f"{small:+.3f} in the smallest third of tasks, {large:+.3f} in the largest"
        sentences.append(f"Median against {title}: {thirds}.")
    return " ".join(sentences)
