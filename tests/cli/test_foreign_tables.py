"""German, Japanese and Excel's tables go from file to predictions in one command; labels by accident are questioned."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.files import foreign_tables

Shoal = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("maker", ["german", "japanese", "excel"])
def test_a_table_goes_to_predictions_in_one_command(maker: str, shoal: Shoal, tmp_path: Path) -> None:
    path, out = getattr(foreign_tables, maker)(tmp_path / "sales.csv"), tmp_path / "out.csv"
    roles: tuple[str, ...] = ("--task", "Filiale", "--label", "Ausverkauft")
    if maker == "japanese":
        roles = ("--task", "店舗", "--label", "売切れ", "--encoding", "shift_jis")
    model = tmp_path / "m.shoal"
    code, _, err = shoal(
        "run", path, *roles, "--no-baselines", "--predictions", out, "--json", tmp_path / "r.json", "--save", model
    )
    assert (code, err) == (0, "")
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["learners"]["HedgedSharing"]["overall"]["auc"] > 0.95
    assert any("date (" in note for note in found["notes"])
    assert pl.read_csv(out).height == foreign_tables.ROWS
    code, predicted, _ = shoal("predict", path, "--model", model)
    assert (code, len(predicted.splitlines())) == (0, foreign_tables.ROWS + 1)
    if maker != "excel":
        assert any(note.startswith("the text of") for note in found["notes"])


def test_many_labels_are_questioned_before_anything_is_learned(shoal: Shoal, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,city\n" + "".join(f"{i % 9},city {chr(65 + i % 26)}{i % 60}\n" for i in range(600)))
    code, out, err = shoal("run", path, "--label", "city")
    assert (code, out) == (2, "")
    assert "city has 600 values in the first rows, and each is a learner of its own: some 600 times the time" in err
    assert "--classify takes each as a label" in err


def test_a_text_in_an_unknown_encoding_is_judged_before_anything_is_printed(shoal: Shoal, tmp_path: Path) -> None:
    path = foreign_tables.japanese(tmp_path / "a.csv")
    code, out, err = shoal("run", path, "--task", "店舗", "--label", "売切れ")
    assert (code, out) == (2, "")
    assert "are not UTF-8 text (--encoding names another, such as shift_jis)" in err
    path.write_text("x,y\n1.5,0\n2.5,1\n3.5,0\n4.5\n")
    code, out, err = shoal("run", path, "--label", "y")
    assert (code, out) == (2, "")
    assert "a.csv, line 5: 1 field, expected 2" in err
