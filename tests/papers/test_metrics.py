"""Numbers that are a task's own, and numbers of which what is missing to a whole is compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shoal.datasets import make_related_tasks
from shoal.papers import Data, Entrant, Experiment, Metric
from shoal.papers.learners import Spec
from shoal.papers.outcome import Outcome
from shoal.papers.page import tables
from shoal.papers.protocols import progressive
from shoal.papers.table_similarity import shape

F1 = Metric("f1", "F1 %", +1, ".2f", scale=100, whole=100)
SECOND = Metric("error, task 2", "error", -1, place=("errors", 1), group="task 2", only="many")
EXPERIMENT = Experiment(
    id="made/metrics",
    title="Two learners",
    source="nobody",
    protocol="as published",
    data=(Data("few", make_related_tasks), Data("many", make_related_tasks)),  # never loaded: the runs are given
    entrants=(Entrant("alone", "PassiveAggressive"), Entrant("shared", "PassiveAggressive")),
    metrics=(SECOND, Metric("error", "error", -1), F1),
    measure=progressive,
    seeds=1,
    seconds=1,
    reference=lambda entrant, data, metric: [("alone", data, metric)],
)
RUNS = {
    (name, data): [(Spec("", {}), {"error": error, "errors": [0.0, error], "f1": 1 - error})]
    for name, error in (("alone", 0.04), ("shared", 0.03))
    for data in ("few", "many")
}


def test_a_data_set_may_have_numbers_of_its_own() -> None:
    """They have a heading of their own, and decide nothing."""
    (wide,) = tables(Outcome(EXPERIMENT, RUNS, {}, quick=False))
    assert wide.groups == [("few", 2), ("task 2", 1), ("many", 2)]
    (_, alone), (_, shared) = wide.lines
    assert [cell.ours for cell in (alone[2], shared[2]) if cell is not None] == [0.04, 0.03]
    assert EXPERIMENT.decisive.name == "error"


@pytest.mark.parametrize(
    ("missing", "verdict"), [(7.5, "reproduced"), (7.5 / 1.2, "worse"), (7.5 * 1.2, "better")], ids=str
)
def test_of_a_number_with_a_whole_what_is_missing_is_compared(missing: float, verdict: str) -> None:
    """Ours lack 3 where the reference lacks 4; as they stand, all of these numbers are within a tenth."""
    printed = {("alone", "few", "f1"): (90.0, None), ("shared", "few", "f1"): (100 - missing, None)}
    rows = Outcome(replace(EXPERIMENT, published=printed), RUNS, {}, quick=False).rows()
    assert [row.verdict for row in rows if row.paper is not None] == ["reference", verdict]


def test_shapes_are_compared_block_by_block() -> None:
    """Numbers that are compared with the mean of their block: their ranks in it, and the correlation of all."""
    levels = tuple(Data(f"D{level}", make_related_tasks) for level in range(1, 5))
    ours = dict(zip(("D1", "D2", "D3", "D4"), (0.1, 0.2, 0.4, 0.3), strict=True))
    printed = {("alone", data.name, "error"): (float(i), None) for i, data in enumerate(levels)}
    runs = {("alone", name): [(Spec("", {}), {"error": error, "f1": error})] for name, error in ours.items()}
    one = replace(
        EXPERIMENT, data=levels, entrants=EXPERIMENT.entrants[:1], metrics=EXPERIMENT.metrics[1:], published=printed,
        reference=lambda entrant, data, metric: [(entrant, level.name, metric) for level in levels],
    )  # fmt: skip
    found = shape(Outcome(one, runs, {}, quick=False))
    assert found is not None
    assert [name for name, _ in found.blocks] == ["D1 to D4, error"]
    assert [found.n, found.correlation, found.blocks[0][1]] == pytest.approx([4, 0.8, 0.8])
    assert shape(Outcome(replace(one, reference=EXPERIMENT.reference), runs, {}, quick=False)) is None
    for n, name in ((3, "D1 to D3, error"), (2, None)):  # fewer than three have no shape
        few = replace(
            one, data=levels[:n], published=dict(list(printed.items())[:n]),
            reference=lambda entrant, _, metric: [(entrant, level.name, metric) for level in levels[:n]],  # noqa: B023
        )  # fmt: skip
        found = shape(Outcome(few, {key: runs[key] for key in list(runs)[:n]}, {}, quick=False))
        assert (None if found is None else found.blocks[0][0]) == name
