"""Tables and pictures as files for papers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest
from tests.evaluation.test_orders import BETTER, made, one_of

from shoal.report import export
from shoal.report.orders import order_figures


class Row(NamedTuple):
    name: str
    score: float


def test_latex_by_hand(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a_b": ["50 % & more\\", None], "R²": [0.123456, float("nan")], "rows": [12_345, 6]})
    [path] = export(frame, tmp_path / "t.tex")
    assert path.read_text().splitlines() == [
        "\\begin{tabular}{lrr}",
        "\\toprule",
        "a\\_b & R$^2$ & rows \\\\",
        "\\midrule",
        "50 \\% \\& more\\textbackslash{} & 0.1235 & 12345 \\\\",
        "-- & -- & 6 \\\\",
        "\\bottomrule",
        "\\end{tabular}",
    ]


def test_every_table_and_picture_of_a_comparison(tmp_path: Path) -> None:
    """Finding 38: tables and pictures ended in the terminal and in HTML."""
    found = made({"a": BETTER, "b": [x + 0.1 for x in BETTER]})
    written = {path.name for path in export(found, tmp_path / "out")}
    names = ("places", "learners", "orders", "history")
    tables = {f"{name}.{ending}" for name in names for ending in ("tex", "csv", "parquet")}
    assert written == tables | {"curves.svg", "curves.pdf", "ranks.svg", "ranks.pdf"}
    assert pl.read_csv(tmp_path / "out" / "places.csv")["name"].to_list() == ["a", "b"]
    assert pl.read_parquet(tmp_path / "out" / "orders.parquet").shape[0] == 12
    assert (tmp_path / "out" / "ranks.pdf").read_bytes().startswith(b"%PDF")
    assert "mean rank" in (tmp_path / "out" / "ranks.svg").read_text()


def test_evaluations_have_scores_with_error_bars_and_tasks(tmp_path: Path) -> None:
    of_task = {"rows": 3, "updates": 1, "error": 1 / 3}
    one = replace(one_of(1 / 3), per_task={"a": of_task}, standard_errors={"error": 0.01})
    export({"mine": one}, tmp_path)
    assert pl.read_csv(tmp_path / "scores.csv")["error_error_bar"].to_list() == [0.01]
    assert pl.read_csv(tmp_path / "tasks.csv").to_dicts() == [{"learner": "mine", "task": "a", **of_task}]
    assert export([Row("a", 1.0)], tmp_path / "rows.csv")[0].read_text() == "name,score\na,1.0\n"
    export(one, tmp_path / "alone")
    assert pl.read_csv(tmp_path / "alone" / "tasks.csv").drop("learner").to_dicts() == [{"task": "a", **of_task}]
    export([Row("a", 1.0)], tmp_path / "rows")
    assert (tmp_path / "rows" / "table.csv").read_text() == "name,score\na,1.0\n"


def test_what_is_no_table_or_picture(tmp_path: Path) -> None:
    figure = order_figures(made({"a": BETTER, "b": BETTER}))[0]
    for result, name, message in (
        (3, "a.csv", "int has no table"),
        (pl.DataFrame(), "a.svg", "DataFrame is no picture"),
        (figure, "a.xlsx", "must end in .tex"),
    ):
        with pytest.raises(ValueError, match=message):
            export(result, tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("count", [1, 3])
def test_curves_have_a_band_and_ranks_a_difference(count: int) -> None:
    scores: dict[str, Any] = {f"l{i}": [x + 0.1 * i for x in BETTER] for i in range(count)}
    figures = order_figures(made(scores))
    assert [figure.name for figure in figures] == ["curves", "ranks"][: 1 + (count > 1)]
    assert "bands one deviation around" in figures[0].caption
    for figure in figures:
        figure.chart.to_dict()  # a valid chart
