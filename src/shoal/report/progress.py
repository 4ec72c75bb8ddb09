"""Picture 1: scores as the stream goes, the learner against its baselines."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import altair as alt
import numpy as np

from shoal.evaluation import Evaluation
from shoal.evaluation.result import higher_is_better, label, main_metric
from shoal.report.figure import Figure
from shoal.report.style import colour, data, listed, panel_title, rows_axis, spread

WIDTH, HEIGHT = 350, 280
LABEL_HEIGHT = 16
MOST_NAMED = 4  # learners that the title compares with


class Panel(NamedTuple):
    """One curve per evaluation."""

    title: str
    metric: str
    macro: bool


def _panels(evaluation: Evaluation) -> list[Panel]:
    main, first = main_metric(evaluation), next(iter(evaluation.overall))
    of_tasks = Panel(f"{label(main)}, mean over tasks", main, True)
    return [Panel(f"{label(first)}, all rows", first, False), of_tasks]


def _curves(evaluations: Mapping[str, Evaluation], panel: Panel) -> list[dict[str, Any]]:
    curves = []
    for name, evaluation in evaluations.items():
        for point in evaluation.history:
            value = (point.macro if panel.macro else point.overall)[panel.metric]
            if not np.isnan(value):
                curves.append({"name": name, "rows": point.rows, "value": value})
    return curves


def _draw(evaluations: Mapping[str, Evaluation], panel: Panel) -> Any:
    curves = _curves(evaluations, panel)
    names = list(evaluations)
    values = [point["value"] for point in curves]
    margin = 0.06 * (max(values) - min(values) or 0.1)
    domain = [min(values) - margin, max(values) + margin]
    ends = list({point["name"]: point for point in curves}.values())
    places = spread([end["value"] for end in ends], LABEL_HEIGHT * (domain[1] - domain[0]) / HEIGHT)
    labels = [
        end | {"place": place, "text": f"{end['name']} {end['value']:.3f}"}
        for end, place in zip(ends, places, strict=True)
    ]
    base = alt.Chart(data(curves)).encode(
        x=rows_axis([point["rows"] for point in curves], "rows"),
        y=alt.Y(
            "value:Q",
            title=None,
            scale=alt.Scale(domain=domain, zero=False, nice=False),
            axis=alt.Axis(tickCount=6),
        ),
        color=colour(names),
        tooltip=[
            alt.Tooltip("name:N", title="learner"),
            alt.Tooltip("rows:Q", format=","),
            alt.Tooltip("value:Q", title=panel.title, format=".4f"),
        ],
    )
    first = alt.datum.name == names[0]
    lines = base.mark_line().encode(
        strokeWidth=alt.condition(first, alt.value(3), alt.value(1.8)),
        order="rows:Q",
        detail="name:N",
    )
    points = base.mark_point(filled=True, opacity=1).encode(size=alt.condition(first, alt.value(45), alt.value(26)))
    text = (
        alt.Chart(data(labels))
        .mark_text(align="left", dx=10, fontSize=12, baseline="middle")
        .encode(x="rows:Q", y="place:Q", text="text:N", color=colour(names))
    )
    return alt.layer(lines, points, text).properties(
        width=WIDTH,
        height=HEIGHT,
        title=panel_title(panel.title),
    )


def progress_figure(evaluations: Mapping[str, Evaluation]) -> Figure | None:
    """Error and main metric against the number of rows; None without a defined value."""
    drawn = [
        _draw(evaluations, panel) for panel in _panels(next(iter(evaluations.values()))) if _curves(evaluations, panel)
    ]
    if not drawn:
        return None
    caption = "Each row is predicted before it is learned; the scores are those of all rows so far."
    return Figure("progress", _title(evaluations), caption, alt.hconcat(*drawn))


def _title(evaluations: Mapping[str, Evaluation]) -> str:
    """The leader, and since when it leads."""
    metric = main_metric(next(iter(evaluations.values())))
    sign = 1 if higher_is_better(metric) else -1
    scores = {name: evaluation.macro[metric] for name, evaluation in evaluations.items()}
    ranked = sorted(scores, key=lambda name: -sign * np.nan_to_num(scores[name], nan=-sign * np.inf))
    best, others = ranked[0], ranked[1:]
    if not others:
        return f"{best}: {label(metric)} {scores[best]:.3f}, mean over tasks"
    lead = _since(evaluations, best, metric, sign)
    shown = others if len(others) <= MOST_NAMED else others[: MOST_NAMED - 1]
    more = [f"{len(others) - len(shown)} others"] if len(shown) < len(others) else []
    against = listed([*(f"{scores[name]:.3f} ({name})" for name in shown), *more])
    return f"{best} leads{lead}: {label(metric)} {scores[best]:.3f} over tasks, against {against}"


def _since(evaluations: Mapping[str, Evaluation], best: str, metric: str, sign: int) -> str:
    """From which checkpoint on the best has been ahead of all others."""
    histories = [evaluation.history for name, evaluation in evaluations.items() if name != best]
    since = 0
    for i, point in enumerate(evaluations[best].history):
        rivals = [sign * history[i].macro[metric] for history in histories]
        if not sign * point.macro[metric] > max(rivals):
            since = i + 1
    history = evaluations[best].history
    if since >= max(len(history) - 1, 1):
        return " in the end"
    return " throughout" if since == 0 else f" from {history[since].rows:,} rows on"
