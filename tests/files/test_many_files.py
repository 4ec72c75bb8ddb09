"""Several files, patterns, folders, packed files, URLs, and the delimiters of CSV."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import polars as pl
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.files.conftest import Whole

from shoal.files import BadRow, open_stream, open_tables
from shoal.files.tables.csv import find_delimiter


def zipped(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/a.csv", data)
    return buffer.getvalue()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: pyarrow.compress(data, "zstd", asbytes=True),
    "zip": zipped,
}
OPTIONS: dict[str, Any] = {"task": "dest", "label": "late"}


def write(table: pl.DataFrame, path: Path) -> Path:
    endings: dict[str, Callable[[Path], object]] = {
        ".csv": table.write_csv,
        ".parquet": table.write_parquet,
        ".ndjson": table.write_ndjson,
    }
    endings[path.suffix](path)
    return path


@pytest.mark.parametrize("ending", PACKERS)
def test_packed_files_are_read_like_others(
    ending: str, table: pl.DataFrame, tmp_path: Path, whole: type[Whole], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = table.write_csv().replace("\n", "\r\n").encode()
    (tmp_path / "a.csv").write_bytes(text)
    expected = whole(open_stream(tmp_path / "a.csv", **OPTIONS))
    packed = PACKERS[ending](text)
    for name in (f"b.csv.{ending}", "misnamed.csv"):
        (tmp_path / name).write_bytes(packed)
        found = whole(open_stream(tmp_path / name, **OPTIONS))
        found.same(expected)
        assert found.stream.bytes_read == found.stream.total_bytes == len(packed)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(packed)))
    if ending in ("zst", "zip"):
        with pytest.raises(ValueError, match="standard input is"):
            open_stream("-", **OPTIONS)
    else:
        whole(open_stream("-", **OPTIONS)).same(expected)


def test_several_members_of_gzip_follow_each_other(tmp_path: Path, whole: type[Whole]) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"x,y\n1,0\n") + gzip.compress(b"2,1\n"))
    assert whole(open_stream(path, label="y")).y.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("ending", ["csv", "parquet", "ndjson"])
@pytest.mark.parametrize("how", ["list", "pattern", "folder"])
def test_several_files_are_one_stream(
    ending: str, how: str, table: pl.DataFrame, tmp_path: Path, whole: type[Whole]
) -> None:
    expected = whole(open_stream(write(table, tmp_path / f"whole.{ending}"), **OPTIONS))
    folder = tmp_path / "parts"
    (folder / "b").mkdir(parents=True)
    paths = [folder / f"1.{ending}", folder / f"2.{ending}", folder / "b" / f"0.{ending}"]
    for path, (first, n) in zip(paths, [(0, 700), (700, 1), (701, 2_299)], strict=True):
        columns = table.columns if path != paths[1] else table.columns[::-1]
        write(table.slice(first, n).select(columns), path)
    (folder / "_SUCCESS").write_text("")
    ways: dict[str, Any] = {"list": paths, "pattern": f"{folder}/**/*.{ending}", "folder": folder}
    meant = ways[how]
    for options in (dict[str, Any](), {"chunk_rows": 300}):
        found = whole(open_stream(meant, **OPTIONS, **options))
        found.same(expected)
    assert "3 files, read in the order of their names" in found.stream.notes
    if ending == "parquet":
        assert found.stream.rows_total == 3_000
    else:
        assert found.stream.bytes_read == found.stream.total_bytes == sum(path.stat().st_size for path in paths)


@pytest.mark.parametrize("ending", ["csv", "vw", "svm", "parquet"])
def test_bad_rows_say_their_file(ending: str, tmp_path: Path) -> None:
    lines = {"csv": ["x,y", "1,0", "2,1"], "vw": ["1 |f a", "-1 |f b"], "svm": ["1 1:1", "-1 2:1"]}
    bad = {"csv": "3", "vw": "oops", "svm": "1 -1:1"}
    options: dict[str, Any] = {"label": "y"} if ending in ("csv", "parquet") else {}
    for k in range(3):
        path = tmp_path / f"{k}.{ending}"
        if ending == "parquet":
            pl.DataFrame({"x": [1.0, 2.0, float("inf") if k == 1 else 3.0], "y": [0, 1, 0]}).write_parquet(path)
        else:
            path.write_text("\n".join([*lines[ending], *([bad[ending]] if k == 1 else [])]) + "\n")
    where = {"csv": "line 4", "parquet": "row 3"}.get(ending, "line 3")
    with pytest.raises(BadRow, match=rf"1\.{ending}, {where}: "):
        list(open_stream(tmp_path, **options))
    stream = open_stream(tmp_path, skip_bad=True, **options)
    assert sum(chunk.X.shape[0] for chunk in stream) == (8 if ending == "parquet" else 6)
    assert stream.skipped == 1


@pytest.mark.parametrize("ending", ["csv", "parquet", "frames"])
def test_columns_come_and_go_from_file_to_file(ending: str, tmp_path: Path, whole: type[Whole]) -> None:
    rows = [{"t": "ab"[i % 2], "x": i % 7, "size": i % 5, "new": f"v{i % 3}", "y": i % 2} for i in range(90)]
    table, lacks = pl.DataFrame(rows), pl.int_range(90).is_between(30, 59)
    parts = [table[:30].drop("new"), table[30:60].drop("size"), table[60:].select("size", "y", "x", "t")]
    files = [write(part, tmp_path / f"{k}.{ending}") for k, part in enumerate(parts)] if ending != "frames" else parts

    def read(files: Any, **more: Any) -> Any:
        return (open_tables if ending == "frames" else open_stream)(files, task="t", label="y", **more)

    absent = table.with_columns(size=pl.when(lacks).then(None).otherwise("size"))
    found = whole(read(files))
    found.same(whole(open_tables([absent.drop("new")], task="t", label="y")))
    assert found.stream.notes[-2:] == [
        "the model does not know column 'new': not used in 30 rows",
        "there is no column 'size': its values are missing in 30 rows",
    ]
    none = absent.with_columns(new=pl.when(lacks).then("new"))
    learned = whole(read(files, new_columns=1))
    more = {*learned.stream.feature_names} - {*found.stream.feature_names}
    assert more == {"new=v0", "new=v1", "new=v2", "new=missing"}
    again = whole(read(files[::-1], state=learned.stream.to_dict()))  # the first file has fewer columns than the model
    again.same(whole(open_tables([none[60:], none[30:60], none[:30]], state=learned.stream.to_dict())))
    with pytest.raises(ValueError, match="has no column 'size', it has"):
        list(read(files, strict=True))


def test_columns_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    pl.DataFrame({"x": [1.0], "y": [0]}).write_parquet(tmp_path / "1.parquet")
    pl.DataFrame({"x": ["a"], "y": [0]}).write_parquet(tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"2\.parquet: column 'x' is of type String, but Float64 in .*1\.parquet"):
        open_stream(tmp_path, label="y")
    (tmp_path / "1.csv").write_text("x,y\n1,0\n")
    (tmp_path / "2.csv").write_text("x,z\n1,0\n")
    with pytest.raises(ValueError, match=r"2\.csv has no column 'y', it has 'x', 'z'"):
        list(open_stream([tmp_path / "1.csv", tmp_path / "2.csv"], label="y"))
    with pytest.raises(ValueError, match="files of one format"):
        open_stream(tmp_path, label="y")
    with pytest.raises(ValueError, match="standard input cannot be one of several"):
        open_stream(["-", tmp_path / "1.csv"], label="y")


@pytest.mark.parametrize("ending", ["csv", "parquet", "ndjson"])
def test_urls_are_read_by_polars(ending: str, table: pl.DataFrame, tmp_path: Path, whole: type[Whole]) -> None:
    path = write(table, tmp_path / f"a.{ending}")
    whole(open_stream(f"file://{path}", **OPTIONS)).same(whole(open_stream(path, **OPTIONS)))
    with pytest.raises(ValueError, match=f"b.{ending}"):
        open_stream(f"file://{tmp_path}/b.{ending}", **OPTIONS)


def test_sparse_files_go_on_with_each_other(tmp_path: Path, whole: type[Whole]) -> None:
    lines = [f"{1 - 2 * (i % 2)} |t k{i % 3} |f a{i % 7}:0.5 b{i}" for i in range(100)]
    (tmp_path / "all.vw").write_text("\n".join(lines))
    (tmp_path / "parts").mkdir()
    for k in range(4):
        (tmp_path / "parts" / f"{k}.vw").write_text("\n".join(lines[25 * k : 25 * k + 25]))
    expected = whole(open_stream(tmp_path / "all.vw", task="t"))
    for chunk_rows in (7, 1_000):
        whole(open_stream(tmp_path / "parts", task="t", chunk_rows=chunk_rows)).same(expected)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found(delimiter: str, table: pl.DataFrame, tmp_path: Path, whole: type[Whole]) -> None:
    table.write_csv(tmp_path / "a.csv", separator=delimiter)
    table.write_csv(tmp_path / "b.csv")
    found = whole(open_stream(tmp_path / "a.csv", **OPTIONS))
    found.same(whole(open_stream(tmp_path / "b.csv", **OPTIONS)))
    found.same(whole(open_stream(tmp_path / "a.csv", delimiter=delimiter, **OPTIONS)))
    assert (f"fields are separated by {delimiter!r}" in found.stream.notes) == (delimiter != ",")


CELLS = st.text('ab1,;|\t"\n. ', max_size=8)


@given(st.lists(CELLS, min_size=2, max_size=5), st.integers(0, 30), st.sampled_from(",;|\t"), st.randoms())
def test_a_delimiter_is_found_whatever_the_quoted_cells_hold(
    cells: list[str], n: int, delimiter: str, random: Random
) -> None:
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
    lines = [delimiter.join(quoted)] + [delimiter.join(random.sample(quoted, len(quoted))) for _ in range(n)]
    assert find_delimiter("\n".join([*lines, ""]).encode()) == delimiter


def test_a_delimiter_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x:y\n1:0\n2:1\n")
    assert next(open_stream(path, label="y", delimiter=":")).y.tolist() == [0.0, 1.0]
    for wrong in ("", "::", '"'):
        with pytest.raises(ValueError, match="delimiter="):
            open_stream(path, label="y", delimiter=wrong)


def test_states_go_from_file_to_file(table: pl.DataFrame, tmp_path: Path, whole: type[Whole]) -> None:
    paths = [write(table.slice(k, 1_000), tmp_path / f"{k}.csv") for k in (0, 1_000, 2_000)]
    expected = whole(open_stream(paths, **OPTIONS))
    first = open_stream(paths[:2], **OPTIONS)
    list(first)
    state = json.loads(json.dumps(first.to_dict()))
    second = whole(open_stream(paths[2], state=state))
    assert second.stream.feature_names == expected.stream.feature_names
    assert second.X.data.tobytes() == expected.X[2_000:].data.tobytes()
