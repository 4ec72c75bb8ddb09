"""Picture 3: the relation between tasks as a heat map, related tasks side by side."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import altair as alt
import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.evaluation import Evaluation
from shoal.report.figure import Figure
from shoal.report.style import data

MAX_TASKS = 150
MOST_TASKS = 5_000  # above, the relation of all pairs is not laid out
MAX_WEIGHTS = 20_000_000  # above, the weights of all tasks are not laid out to compare them
SIDE = 720  # pixels


class Relation(NamedTuple):
    """A matrix between tasks and what its entries are."""

    values: FloatArray  # (K, K)
    tasks: list[Any]
    kind: str  # of the entries
    caption: str


def _relation(evaluation: Evaluation) -> Relation | None:
    """The learner's relation; where that is the same for all pairs, how alike the learned models are."""
    learner = evaluation.learner
    tasks = list(getattr(learner, "tasks_", ()))
    if len(tasks) < 3:
        return None
    order = _largest(evaluation, tasks)
    kept = [tasks[k] for k in order]
    relation = getattr(learner, "relation_", None) if len(tasks) <= MOST_TASKS else None
    constant = ""
    if relation is not None:
        values = np.asarray(relation)[np.ix_(order, order)]
        entries = _off_diagonal(values)
        if np.ptp(entries) > 1e-9 * np.abs(entries).max():
            return Relation(
                values,
                kept,
                "relation",
                "Entry (row, column) of the relation in force when the stream ended.",
            )
        constant = f"The relation in force is the same for every pair of tasks ({entries[0]:.3g}). "
    if len(tasks) * int(getattr(learner, "n_features_in_", 0)) > MAX_WEIGHTS or not hasattr(learner, "coef_"):
        return None
    weights = np.asarray(learner.coef_)[order]
    norms = np.linalg.norm(weights, axis=1)
    if (norms == 0).any():
        order = order[norms > 0]
        weights, norms, kept = weights[norms > 0], norms[norms > 0], [tasks[k] for k in order]
    if len(kept) < 3:
        return None
    unit = weights / norms[:, None]
    caption = f"{constant}Shown is the cosine between the weights learned for each pair of tasks."
    return Relation(unit @ unit.T, kept, "cosine of weights", caption)


def _largest(evaluation: Evaluation, tasks: list[Any]) -> IntArray:
    """Columns of the tasks with most rows, at most `MAX_TASKS`."""
    rows = np.array([evaluation.per_task.get(task, {}).get("rows", 0) for task in tasks])
    return np.sort(np.argsort(-rows, kind="stable")[:MAX_TASKS])


def _off_diagonal(values: FloatArray) -> FloatArray:
    return np.asarray(values[~np.eye(len(values), dtype=bool)])


def _by_similarity(values: FloatArray) -> IntArray:
    """An order that puts similar tasks side by side: the leaves of a clustering tree, turned to fit best."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    similarity = (values + values.T) / 2
    distance = similarity.max() - similarity
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    return np.asarray(leaves_list(tree), np.int64)


def _colour(entries: FloatArray, title: str) -> alt.Color:
    """Light to dark; two-sided around zero if the entries have both signs. Outliers do not eat the scale."""
    low, high = np.quantile(entries, [0.01, 0.99]).tolist()
    legend = alt.Legend(title=title, gradientLength=200, gradientThickness=12, format=".2~f", offset=16)
    if low < 0 < high:
        reach = max(-low, high)
        scale = alt.Scale(scheme="blueorange", reverse=True, domain=[-reach, reach], clamp=True)
    else:
        scale = alt.Scale(scheme="yellowgreenblue", domain=[low, high], clamp=True)
    return alt.Color("value:Q", scale=scale, legend=legend)


def _draw(relation: Relation) -> Any:
    names = [str(task) for task in relation.tasks]
    k = len(names)
    records = [
        {"row": names[i], "column": names[j], "value": float(f"{relation.values[i, j]:.4g}")}
        for i in range(k)
        for j in range(k)
        if i != j  # the diagonal says nothing about relations and would take the darkest colour
    ]
    cell = int(np.clip(SIDE / k, 5, 36))  # whole pixels, or seams show between the cells
    font = float(np.clip(0.95 * cell, 5, 11))
    axis: dict[str, Any] = dict.fromkeys(("grid", "ticks", "domain", "labelOverlap"), False)
    axis |= {"title": None, "labelFontSize": font, "labelPadding": 4}
    return (
        alt.Chart(data(records))
        .mark_rect()
        .encode(
            x=alt.X("column:N", sort=names, axis=alt.Axis(labelAngle=-90, **axis)),
            y=alt.Y("row:N", sort=names, axis=alt.Axis(**axis)),
            color=_colour(_off_diagonal(relation.values), relation.kind),
            tooltip=["row:N", "column:N", alt.Tooltip("value:Q", title=relation.kind, format=".4f")],
        )
        .properties(width=cell * k, height=cell * k)
    )


def relation_figure(evaluations: Mapping[str, Evaluation]) -> Figure | None:
    """The learner's relation, tasks ordered by similarity; None for fewer than three tasks or no relation."""
    evaluation = next(iter(evaluations.values()))
    relation = _relation(evaluation)
    if relation is None:
        return None
    order = _by_similarity(relation.values)
    relation = relation._replace(values=relation.values[np.ix_(order, order)], tasks=[relation.tasks[k] for k in order])
    caption = relation.caption
    if evaluation.tasks > len(order):
        caption += f" {len(order)} of {evaluation.tasks:,} tasks are shown, those with most rows."
    return Figure("relation", _title(relation, evaluation), caption, _draw(relation))


def _title(relation: Relation, evaluation: Evaluation) -> str:
    """The closest two of the larger half of tasks: small tasks are alike because they have learned little."""
    rows = np.array([evaluation.per_task.get(task, {}).get("rows", 0) for task in relation.tasks])
    large = rows >= np.median(rows)
    pairs = np.where(np.outer(large, large) & ~np.eye(len(rows), dtype=bool), relation.values, -np.inf)
    i, j = np.unravel_index(np.argmax(pairs), pairs.shape)
    closest = f"of the larger tasks {relation.tasks[i]} and {relation.tasks[j]} are closest ({pairs[i, j]:.2g})"
    if relation.kind == "relation":
        return f"Related tasks side by side; {closest}"
    return f"Models of the tasks, similar ones side by side; {closest}"
