"""The same data means the same in every format, from every source, in chunks of any size."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.files.conftest import Whole

from shoal.files import FORMATS, open_stream

TABLES = ["csv", "tsv", "parquet", "ndjson", "arrow"]


def write(table: pl.DataFrame, path: Path) -> Path:
    if path.suffix in (".csv", ".tsv"):
        table.write_csv(path, separator="," if path.suffix == ".csv" else "\t")
    elif path.suffix == ".ndjson":
        table.write_ndjson(path)
    elif path.suffix == ".parquet":
        table.write_parquet(path, row_group_size=700)
    else:
        table.write_ipc(path)
    return path


@pytest.mark.parametrize("format", TABLES[1:])
def test_every_table_format_gives_the_same(
    format: str, table: pl.DataFrame, tmp_path: Path, whole: type[Whole]
) -> None:
    expected = whole(open_stream(write(table, tmp_path / "a.csv"), task="dest", label="late"))
    assert expected.X.shape[0] == 3_000
    found = whole(open_stream(write(table, tmp_path / f"b.{format}"), task="dest", label="late"))
    found.same(expected)


def test_txt_is_a_table_where_columns_are_named(table: pl.DataFrame, tmp_path: Path, whole: type[Whole]) -> None:
    expected = whole(open_stream(write(table, tmp_path / "a.csv"), task="dest", label="late"))
    path = (tmp_path / "a.csv").rename(tmp_path / "a.txt")
    whole(open_stream(path, task="dest", label="late")).same(expected)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(path, "a.txt")
    whole(open_stream(tmp_path / "a.zip", task="dest", label="late")).same(expected)


@pytest.mark.parametrize("chunk_rows", [1, 7, 999, 1_000, 2_000])
@pytest.mark.parametrize("format", ["csv", "ndjson", "parquet"])
def test_chunks_change_no_value(
    format: str,
    chunk_rows: int,
    table: pl.DataFrame,
    tmp_path: Path,
    whole: type[Whole],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if chunk_rows < 10:  # the column that begins at row 2,000 begins in these rows too, after the sample
        table = table.slice(1_900, 180)
        monkeypatch.setattr("shoal.files.tables.reader.SAMPLE", 60)
    path = write(table, tmp_path / f"a.{format}")
    expected = whole(open_stream(path, task="dest", label="late"))
    monkeypatch.setattr("shoal.files.source.BLOCK", 4_096)
    found = whole(open_stream(path, task="dest", label="late", chunk_rows=chunk_rows))
    assert set(found.sizes[:-1]) == {chunk_rows}
    found.same(expected)


@pytest.mark.parametrize(("n_features", "sizes"), [(5, [30_000, 500]), (99, [6_000] * 5 + [500])])
def test_the_wider_a_table_the_fewer_rows_a_chunk(
    n_features: int, sizes: list[int], tmp_path: Path, whole: type[Whole]
) -> None:
    table = pl.DataFrame(np.zeros((30_500, 1 + n_features)), schema=["y", *(f"x{j}" for j in range(n_features))])
    for path in (tmp_path / "a.parquet", tmp_path / "a.csv"):
        assert whole(open_stream(write(table, path), label="y", kind="regression")).sizes == sizes


@pytest.mark.parametrize("format", ["csv", "tsv", "ndjson"])
def test_gzip_and_standard_input_give_the_same(
    format: str, table: pl.DataFrame, tmp_path: Path, whole: type[Whole], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(table, tmp_path / f"a.{format}")
    expected = whole(open_stream(path, task="dest", label="late"))
    assert expected.stream.bytes_read == expected.stream.total_bytes == path.stat().st_size
    packed = tmp_path / f"a.{format}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    from_gzip = whole(open_stream(packed, task="dest", label="late"))
    from_gzip.same(expected)
    assert from_gzip.stream.bytes_read == packed.stat().st_size
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    from_stdin = whole(open_stream("-", task="dest", label="late", format=format))
    from_stdin.same(expected)
    assert from_stdin.stream.total_bytes is None
    assert not sys.stdin.buffer.closed


def test_row_formats_know_their_number_of_rows(table: pl.DataFrame, tmp_path: Path) -> None:
    for format in ("parquet", "arrow"):
        stream = open_stream(write(table, tmp_path / f"a.{format}"), label="late")
        assert stream.rows_total == 3_000
        assert sum(len(chunk.y) for chunk in stream) == stream.n_rows == 3_000


def test_carriage_returns_marks_and_blank_lines(tmp_path: Path, whole: type[Whole]) -> None:
    plain, windows = tmp_path / "a.csv", tmp_path / "b.csv"
    plain.write_bytes(b"a,y,t\n1,0,u\n2,1,v\n3,0,u\n")
    windows.write_bytes(b'\xef\xbb\xbf"a",y,t\r\n1,0,u\r\n\r\n2,1,v\r\n\n3,0,u')
    expected = whole(open_stream(plain, task="t", label="y"))
    whole(open_stream(windows, task="t", label="y")).same(expected)
    assert expected.y.tolist() == [0.0, 1.0, 0.0]


def test_no_task_is_one_task_and_ids_are_strings(tmp_path: Path, whole: type[Whole]) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"user": [7, 8, 7], "x": [1.0, 2.0, 4.0], "y": [True, False, True]}).write_parquet(path)
    assert whole(open_stream(path, label="y", ignore=["user"])).task is None
    found = whole(open_stream(path, label="y", task="user"))
    assert found.task.tolist() == ["7", "8", "7"]
    assert found.y.tolist() == [1.0, 0.0, 1.0]
    assert found.stream.classes == [0, 1]


def test_labels_may_be_text_or_real(tmp_path: Path, whole: type[Whole]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,word,z\n1,no,0.5\n2,yes,-1e3\n3,no,7\n")
    words = whole(open_stream(path, label="word", ignore=["z"]))
    assert words.y.tolist() == ["no", "yes", "no"]
    assert words.stream.classes == ["no", "yes"]
    real = whole(open_stream(path, label="z", kind="regression"))
    assert real.y.dtype == np.float64
    assert real.y.tolist() == [0.5, -1000.0, 7.0]


def test_a_header_alone_gives_no_chunk(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,y\n")
    assert list(open_stream(path, label="y")) == []


@pytest.mark.parametrize(
    ("name", "content", "options", "error", "message"),
    [
        ("a.csv", "", {}, ValueError, "is empty"),
        ("a.ndjson", "\n", {}, ValueError, "is empty"),
        ("a.csv", "x,x,y\n1,2,3\n", {}, ValueError, r"\['x'\] stand there twice"),
        ("a.csv", "x,label\n1,2\n", {}, ValueError, "no column 'y', it has 'x', 'label'$"),
        ("a.csv", "x,y,user\n", {"task": "users"}, ValueError, "no column 'users'.*did you mean 'user'"),
        ("a.csv", "x,y\n", {"ignore": ["z"]}, ValueError, "no column 'z'"),
        (
            "a.csv",
            "x,y\n",
            {"text": ["x"], "numeric": ["x"]},
            ValueError,
            "column 'x' is both in text= and in numeric=",
        ),
        ("a.csv", "x,y\n", {"task": "y"}, ValueError, "both label and task"),
        ("a.csv", "x,y\n", {"label": None}, ValueError, "label= is missing"),
        ("a.csv", "x,y\n", {"kind": "many"}, ValueError, "expected one of 'binary', 'multiclass'"),
        ("a.csv", "x,y\n", {"labels": ("a",)}, ValueError, "expected the two labels"),
        ("a.csv", "x,y\n", {"chunk_rows": 0}, ValueError, "expected at least 1"),
        ("a.xyz", "x,y\n", {}, ValueError, "format= says which it is"),
        ("a.csv", "x,y\n", {"format": "cvs"}, ValueError, "did you mean 'csv'"),
        ("a.parquet", "x,y\n", {}, ValueError, "damaged or not a Parquet file"),
        ("a.feather", "x,y\n", {}, ValueError, "damaged or not an Arrow IPC"),
        ("a.csv.gz", "x,y\n", {}, ValueError, "damaged or not a gzip file"),
        ("a.parquet.gz", "x,y\n", {}, ValueError, "packed in itself"),
        ("a.vw", "1 | a", {}, ValueError, "leave out label"),
        ("a.vw", "1 | a", {"label": None, "labels": ("n", "y")}, ValueError, "expected numbers"),
    ],
)
def test_wrong_files_and_options_are_one_sentence(
    name: str, content: str, options: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(error, match=message) as caught:
        list(open_stream(path, **{"label": "y", **options}))
    assert "\n" not in str(caught.value)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "flights.csv").write_text("x,y\n")
    with pytest.raises(FileNotFoundError, match=r"did you mean .*flights.csv\?"):
        open_stream(tmp_path / "fligths.csv", label="y")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        open_stream(tmp_path / "data" / "a.parquet", label="y")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="empty is a folder without data files"):
        open_stream(tmp_path / "empty", label="y")
    with pytest.raises(FileNotFoundError, match=r"no file matches .*\*\.parquet"):
        open_stream(tmp_path / "*.parquet", label="y")
    with pytest.raises(ValueError, match="give its path"):
        open_stream("-", label="y", format="parquet")


def test_a_column_of_lists_is_refused_unless_ignored(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"x": [[1], [2]], "y": [0, 1]}).write_parquet(path)
    with pytest.raises(ValueError, match="column 'x' is of type List"):
        open_stream(path, label="y")
    assert next(open_stream(path, label="y", ignore=["x"])).X.shape == (2, 1)


def test_a_truncated_gzip_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"x,y\n" + b"1,0\n" * 5_000)[:-9])
    with pytest.raises(ValueError, match=r"a\.csv\.gz is damaged"):
        list(open_stream(path, label="y"))


def test_reading_a_table_loads_no_library_that_it_does_not_need(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,c,y\n1,a,0\n2,b,1\n")
    code = f"import sys; from shoal.files import open_stream; list(open_stream({str(path)!r}, label='y'))"
    code += "; print(*[name for name in ('sklearn', 'pandas', 'narwhals', 'pyarrow') if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


def test_endings_mean_one_format_each() -> None:
    endings = [ending for endings in FORMATS.values() for ending in endings]
    assert len(endings) == len(set(endings))
