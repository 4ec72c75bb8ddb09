"""Decimal commas, European dates and words for missing values are found, and a saved stream keeps the forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.files import foreign_tables
from tests.files.conftest import Whole

from shoal.files import BadRow, FileStream, open_stream
from shoal.files.tables.column_kinds import decide, hint
from shoal.files.tables.values_in_text import MISSING, Notation

ROLES: dict[str, Any] = {"task": "Filiale", "label": "Ausverkauft"}


def note(stream: FileStream, column: str) -> str:
    return next(one for one in stream.notes if one.startswith(f"{column}: "))


def to_predict(path: Path, state: dict[str, Any]) -> list[Any]:
    return [row for chunk in open_stream(path, labeled=False, state=state) for row in chunk.X.toarray().tolist()]


def features(found: Whole, *, without: str = "missing") -> dict[str, list[float]]:
    dense = found.X.toarray()
    names = found.stream.feature_names
    return {name: dense[:, i].tolist() for i, name in enumerate(names) if without not in name}


@pytest.mark.parametrize("maker", ["german", "excel", "japanese"])
def test_tables_of_other_countries_are_the_english_one(maker: str, tmp_path: Path, whole: type[Whole]) -> None:
    """Values are the same numbers, and days the same weekdays and months, without an option but Shift-JIS."""
    path = getattr(foreign_tables, maker)(tmp_path / "a.csv")
    names = path.read_bytes().decode("cp932", "replace").splitlines()[0].split(",")
    roles = {"task": names[0], "label": names[4], "encoding": "shift_jis"} if maker == "japanese" else ROLES
    found = whole(open_stream(path, **roles))
    expected = whole(open_stream(foreign_tables.english(tmp_path / "b.csv"), **ROLES))
    assert found.stream.classes == (["いいえ", "はい"] if maker == "japanese" else
                                    ["FALSCH", "WAHR"] if maker == "excel" else [0, 1])  # fmt: skip
    if maker == "german":
        assert features(found) == features(expected)
    if maker == "excel":
        assert np.count_nonzero(found.column("Preis=missing")) == len(range(7, foreign_tables.ROWS, 40))
    else:
        assert np.array_equal(found.X.toarray(), expected.X.toarray())


COMMAS = [
    (["1,20", "0,5", "700"], ","),
    (["1,234", "12,345", "17"], None),  # may mark thousands
    (["1,234", "1,5", "17"], ","),
    (["1.5", "2"], ""),
    (["1,2", "3,4", "a", "b"], None),
]


@pytest.mark.parametrize(("values", "form"), COMMAS)
def test_decimal_commas_are_found_unless_they_may_mark_thousands(values: list[str], form: str | None) -> None:
    way = decide(pl.Series("x", values), Notation())
    assert way is not None
    assert way == (("category", "") if form is None else ("numeric", form))
    if values[0] == "1,234" and form is None:
        said = hint(pl.Series("x", values), Notation())
        assert said.endswith("numeric=['x'] would read as thousands, and decimal=',' as decimals")
    assert decide(pl.Series(["1,20 €", "3 €"]), Notation(), "numeric") == ("numeric", ",")


def test_targets_weights_and_times_are_found_too(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x;w;y;t\n1,5;0,5;0,25;30.1.2025 09:00\n2,5;1,5;-3;31.1.2025 08:00\n")
    [chunk] = open_stream(path, label="y", weight="w", time="t", kind="regression")
    assert (chunk.y.tolist(), chunk.weight.tolist()) == ([0.25, -3.0], [0.5, 1.5])
    path.write_text(path.read_text() + "2,5;1,5;-3;31.1.2025 07:59\n")
    with pytest.raises(BadRow, match=r"line 4: t '31\.1\.2025 07:59' is earlier"):
        list(open_stream(path, label="y", weight="w", time="t", kind="regression"))


DATES: list[tuple[list[str], str | None]] = [
    (["31.12.2025", "1.2.2025"], "%d.%m.%Y"),
    (["01.02.2025 17:30", "02.02.2025 08:15"], "%d.%m.%Y %H:%M"),
    (["31.12.25", "01.02.25"], "%d.%m.%y"),
    (["31/12/2025", "01/02/2025"], "%d/%m/%Y"),
    (["12/31/2025 5:30 PM", "01/02/2025 11:15 AM"], "%m/%d/%Y %I:%M %p"),
    (["2025/12/31", "2025/01/02"], "%Y/%m/%d"),
    (["June 30, 2006", "Feb 1, 2006"], "%B %d, %Y"),
    (["31-Dec-2025", "01-Feb-2025"], "%d-%B-%Y"),
    (["31-Dec-25", "01-Feb-25"], "%d-%B-%y"),
    (["2025年12月31日", "2025年2月1日"], "%Y年%m月%d日"),
    (["01/02/2025", "03/04/2025"], None),  # of January or of February
    (["10.2.33", "10.2.34", "192.168.0"], None),
]


@pytest.mark.parametrize(("values", "form"), DATES)
def test_dates_are_found_where_day_and_month_cannot_be_mistaken(values: list[str], form: str | None) -> None:
    for strings in (True, False):
        way = decide(pl.Series("x", values), Notation(strings))
        assert way is not None
        assert way == (("text", "") if form is None else ("date", form))
    if values[0] == "01/02/2025":
        assert hint(pl.Series("x", values), Notation()) == (
            "looks like dates such as '01/02/2025', which date_format= would read, as %d/%m/%Y or %m/%d/%Y"
        )


def test_one_option_says_how_dates_are_written(tmp_path: Path, whole: type[Whole]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("day,other,y\n01/02/2025,a,0\n03/04/2025,b,1\n")
    stream = whole(open_stream(path, label="y", date_format="%d/%m/%Y")).stream
    assert note(stream, "day") == "day: date (%d/%m/%Y), weekday, month and hour one-hot"
    assert {"day.month=2", "day.month=4", "other=a"} <= set(stream.feature_names)


def test_a_saved_stream_goes_on_with_files_of_other_forms(tmp_path: Path, whole: type[Whole]) -> None:
    """Of German rows learned, then English ones, JSON and Parquet; and the other way round."""
    german, english = foreign_tables.german(tmp_path / "de.csv"), foreign_tables.english(tmp_path / "en.csv")
    sales = pl.read_csv(english, try_parse_dates=True, schema_overrides={"Filiale": pl.String})
    sales = sales.with_columns("Größe " + pl.col("Filiale"))
    sales.write_parquet(tmp_path / "a.parquet")
    (tmp_path / "a.ndjson").write_text("\n".join(json.dumps(row, default=str) for row in sales.to_dicts()))
    learned = whole(open_stream(german, **ROLES)).stream
    state = json.loads(json.dumps(learned.to_dict()))
    expected = to_predict(german, state)
    assert note(learned, "Preis").endswith("; its decimal mark is a comma")
    for path in (english, tmp_path / "a.parquet", tmp_path / "a.ndjson"):
        assert to_predict(path, state) == expected, path
    learned = whole(open_stream(english, **ROLES)).stream
    assert to_predict(english, learned.to_dict()) == to_predict(german, learned.to_dict())


def test_the_words_of_pandas_are_missing_values_and_further_ones_by_option(tmp_path: Path, whole: type[Whole]) -> None:
    from pandas._libs.parsers import STR_NA_VALUES  # what `read_csv` takes by default

    assert set(STR_NA_VALUES) <= set(MISSING)
    assert pd.isna(pd.Series([None])).all()
    path = tmp_path / "a.csv"
    path.write_text("x,c,d,y\n" + "".join(f"{w},{w},{w},1\n1.5,a,2025-01-31,0\n" for w in ("#N/A", "<NA>", "NULL")))
    found = whole(open_stream(path, label="y"))
    assert [note.partition(",")[0] for note in found.stream.notes] == ["x: numeric", "c: category", "d: date"]
    assert all(np.count_nonzero(found.column(f"{name}=missing")) == 3 for name in "xcd")
    path.write_text(r"x,c,d,y" + "\n" + "".join(f"{w},{w},{w},1\n1.5,a,2025-01-31,0\n" for w in (r"\N", ".", "-")))
    with pytest.raises(BadRow, match=r"line 2: column 'x' has '\\\\N'"):
        list(open_stream(path, label="y", numeric=["x"]))
    assert found.X.toarray().tolist() == whole(
        open_stream(path, label="y", missing=[r"\N", ".", "-"])
    ).X.toarray().tolist()  # fmt: skip
