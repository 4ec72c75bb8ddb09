"""What files say beside their rows: folders of partitions, an index, streams, time zones, names that are taken."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc
from sklearn.datasets import dump_svmlight_file
from tests.files.conftest import Whole

from shoal.files import BadRow, open_stream
from shoal.files.opening import saved_feature_names

TABLE = {"t": ["u", "v", "u", "v"], "x": [1.5, 2.5, 3.5, 4.5], "y": [0, 1, 1, 0]}


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_folders_name_a_column(ending: str, tmp_path: Path, whole: type[Whole]) -> None:
    frame = pl.DataFrame(TABLE)
    for year, t in ((1, "u"), (1, "a/b"), (2, "u")):
        folder = tmp_path / "parts" / "run=7" / f"year={year}" / f"t={t.replace('/', '%2F')}"
        folder.mkdir(parents=True)
        part = frame.filter(pl.col("t") == "u").drop("t")
        part.write_parquet(folder / "0.parquet") if ending == "parquet" else part.write_csv(folder / "0.csv")
    found = whole(open_stream(tmp_path / "parts", task="t", label="y"))
    assert found.task.tolist() == ["a/b", "a/b", "u", "u", "u", "u"]
    assert found.stream.feature_names == ["constant", "x", "year"]  # of one run there is nothing to learn
    assert "year, t: from the names of the folders" in found.stream.notes
    one = next((tmp_path / "parts" / "run=7" / "year=2" / "t=u").iterdir())
    again = open_stream(one, state=found.stream.to_dict())
    assert [chunk.task.tolist() for chunk in again] == [["u", "u"]]
    assert again.feature_names == found.stream.feature_names


def test_an_arrow_stream_is_read(tmp_path: Path, whole: type[Whole]) -> None:
    table = pa.table(TABLE)
    with ipc.new_stream(tmp_path / "s.arrow", table.schema) as writer:
        writer.write_table(table)
    with ipc.new_file(tmp_path / "f.arrow", table.schema) as writer:
        writer.write_table(table)
    found = whole(open_stream(tmp_path / "s.arrow", task="t", label="y"))
    found.same(whole(open_stream(tmp_path / "f.arrow", task="t", label="y")))


def test_the_index_that_pandas_saves_is_no_feature(tmp_path: Path) -> None:
    frame = pd.DataFrame(TABLE, index=["p", "q", "r", "s"])
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv")
    for name, column in (("a.parquet", "__index_level_0__"), ("a.csv", "column_1")):
        stream = open_stream(tmp_path / name, task="t", label="y")
        assert [chunk.X.shape for chunk in stream] == [(4, 2)]
        assert stream.feature_names == ["constant", "x"]
        assert any(
            note.startswith(f"{column}: left out, as it is the index that pandas saves") for note in stream.notes
        )
        kept = open_stream(tmp_path / name, task="t", label="y", category=[column])
        assert [chunk.X.shape for chunk in kept] == [(4, 6)]
        assert [chunk.X.shape for chunk in open_stream(tmp_path / name, state=kept.to_dict())] == [(4, 6)]
    frame.rename_axis("shop").to_parquet(tmp_path / "b.parquet")  # an index with a name is a column
    assert next(open_stream(tmp_path / "b.parquet", task="shop", label="y")).task.tolist() == ["p", "q", "r", "s"]


@pytest.mark.parametrize("zone", ["+05:30", "-03:45", "+03:00", "Asia/Kolkata", None])
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_hours_are_those_that_are_written_in_any_time_zone(zone: str | None, ending: str, tmp_path: Path) -> None:
    utc = [dt.datetime(2024, 1, 1, hour, 40) for hour in range(6)]
    table = pa.table({"w": pa.array(utc, pa.timestamp("us", zone)), "y": [0, 1] * 3})
    path = tmp_path / f"a.{ending}"
    pq.write_table(table, path) if ending == "parquet" else pyarrow.feather.write_feather(table, str(path))
    ahead = {"+05:30": 330, "-03:45": -225, "+03:00": 180, "Asia/Kolkata": 330, None: 0}[zone]
    hours = {(moment + dt.timedelta(minutes=ahead)).hour for moment in utc}
    stream = open_stream(path, label="y")
    list(stream)
    assert {name for name in stream.feature_names if ".hour" in name} == {f"w.hour={hour}" for hour in hours}
    assert len(next(open_stream(path, label="y", time="w")).y) == 6


def test_times_of_day_are_their_hour(tmp_path: Path) -> None:
    table = pa.table({"at": pa.array([dt.time(10, 30), None, dt.time(23)], pa.time64("us")), "y": [0, 1, 0]})
    pq.write_table(table, tmp_path / "a.parquet")
    choices: list[dict[str, Any]] = [{}, {"date": ["at"]}]
    for options in choices:
        stream = open_stream(tmp_path / "a.parquet", label="y", **options)
        list(stream)
        assert stream.feature_names == ["constant", "at.hour=10", "at=missing", "at.hour=23"]
    state = stream.to_dict()
    (tmp_path / "a.csv").write_text("at,y\n10:30,0\n23:59:59,1\n")
    [chunk] = open_stream(tmp_path / "a.csv", state=state)
    assert chunk.X.toarray()[:, 1:].tolist() == [[1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("new", [ipc.new_file, ipc.new_stream])
def test_a_panic_of_polars_is_one_line_with_the_column(
    new: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wide = pa.array([1, 2, 3, 4], pa.decimal256(50, 2))  # polars has 38 digits
    odd = {"ends": pa.RunEndEncodedArray.from_arrays([2, 4], ["a", "b"]), "wide": wide}
    for name, column in odd.items():
        table = pa.table({"t": ["u"] * 4, name: column, "y": [0, 1, 0, 1]})
        with new(tmp_path / "a.arrow", table.schema) as writer:
            writer.write_table(table)
        with pytest.raises(ValueError, match=rf"a\.arrow.*: column '{name}' is of type (run_end|[Dd]ecimal)") as caught:
            open_stream(tmp_path / "a.arrow", task="t", label="y")
        assert "\n" not in str(caught.value)
        assert capfd.readouterr().err == ""
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="column 'wide' is of type Decimal"):
        open_stream(tmp_path / "a.parquet", task="t", label="y")
    [chunk] = open_stream(tmp_path / "a.parquet", task="t", label="y", ignore=["wide"])
    assert chunk.X.shape == (4, 1)


@pytest.mark.parametrize("form", ['{{"t":"\\ud83d","a":1,"y":{}}}', '{{"t":"u","\\udc00":1,"y":{}}}'])
def test_half_a_letter_is_a_bad_row(form: str, tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    good = [f'{{"t":"\\ud83d\\ude00","a":1,"y":{i % 2}}}' for i in range(4)]
    path.write_text("\n".join([*good, form.format(0)]))
    with pytest.raises(BadRow, match="line 5: half of a surrogate pair"):
        list(open_stream(path, task="t", label="y"))
    assert next(open_stream(path, task="t", label="y", skip_bad=True)).task.tolist() == ["😀"] * 4


def test_names_of_features_are_their_own(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("constant,a,a=x,a=missing,y\n1.5,x,1,2,0\n2.5,y,3,4,1\n3.5,,5,6,1\n")
    stream = open_stream(path, label="y")
    list(stream)
    assert stream.feature_names == ["constant", "constant (2)", "a=x", "a=x (2)", "a=missing", "a=y", "a=missing (2)"]
    assert saved_feature_names(stream.to_dict()) == stream.feature_names


def test_libsvm_counts_from_0_or_1_and_no_feature_moves(tmp_path: Path, whole: type[Whole]) -> None:
    X, y = np.array([[1.0, 2, 0], [0.5, 0, 3]]), [1, -1]
    dump_svmlight_file(X, y, str(tmp_path / "zero.svm"))  # from 0, as it does by default
    dump_svmlight_file(X, y, str(tmp_path / "one.svm"), zero_based=False)
    zero, one = (whole(open_stream(tmp_path / f"{name}.svm")) for name in ("zero", "one"))
    assert zero.X.toarray().tolist() == one.X.toarray().tolist() == X.tolist()
    assert (zero.stream.feature_names, one.stream.feature_names) == (["0", "1", "2"], ["1", "2", "3"])
    state: Any = one.stream.to_dict()
    then = whole(open_stream(tmp_path / "zero.svm", state=state))  # feature 1 is feature 1 in both
    assert then.stream.feature_names == ["1", "2", "3", "0"] == saved_feature_names(then.stream.to_dict())
    assert then.X.toarray().tolist() == [[2, 0, 0, 1], [0, 3, 0, 0.5]]
    [known] = open_stream(tmp_path / "zero.svm", state=state, labeled=False)
    assert known.X.toarray().tolist() == [[2, 0, 0], [0, 3, 0]]
    (tmp_path / "late.svm").write_text("1 2:5\n-1 9:1 0:7 3:2\n1 0:1 1:1 10:4\n")
    for chunk_rows in (1, 10):
        late = whole(open_stream(tmp_path / "late.svm", chunk_rows=chunk_rows))
        names = late.stream.feature_names
        assert names == ["1", "2", "0", "3", "4", "5", "6", "7", "8", "9", "10"]
        rows = late.X.toarray().tolist()
        assert [{n: v for n, v in zip(names, row, strict=True) if v} for row in rows] == [
            {"2": 5}, {"0": 7, "3": 2, "9": 1}, {"1": 1, "0": 1, "10": 4}
        ]  # fmt: skip
    task = open_stream(tmp_path / "late.svm", task="0")
    assert [chunk.task.tolist() for chunk in task] == [["0", "7", "1"]]
