"""Archives of several files are read as the same rows in one plain file."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.files.conftest import Whole

from shoal.files import open_stream

OPTIONS: dict[str, Any] = {"task": "dest", "label": "late"}


def archive(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in files.items():
            made.writestr(name, content)
    return path


def test_the_files_of_an_archive_are_one_table(table: pl.DataFrame, tmp_path: Path, whole: type[Whole]) -> None:
    table.write_csv(tmp_path / "whole.csv")
    expected = whole(open_stream(tmp_path / "whole.csv", **OPTIONS))
    first, second = table.slice(0, 700), table.slice(700).select(table.columns[::-1])
    files = {
        "b/2.csv": second.write_csv().encode(),
        "1.csv": first.write_csv().encode(),
        "__MACOSX/1.csv": b"\x00",
    }
    for name in ("parts.zip", "parts.csv.zip", "misnamed.csv"):
        path = archive(tmp_path / name, files)
        found = whole(open_stream(path, **OPTIONS))
        found.same(expected)
        assert "2 files, read in the order of their names" in found.stream.notes
        assert found.stream.bytes_read == found.stream.total_bytes
    alone = archive(tmp_path / "alone.zip", {"rows.csv": table.write_csv().encode()})
    whole(open_stream(alone, **OPTIONS)).same(expected)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"1.csv": b"x,y\n1,0\n2,1\n", "2.csv": b"x,z\n1,0\n"}, "a.zip/2.csv has no column 'y'"),
        ({"1.csv": b"x,y\n1,0\n2,1\n", "2.csv": b"x,y\n1,zero\n"}, "a.zip/2.csv, line 2: label 'zero'"),
        ({"1.csv": b"x,y\n1,0\n", "2.vw": b"1 |f a\n"}, "a.zip/1.csv is csv and .*a.zip/2.vw is vw"),
        ({"1.csv": b"x,y\n1,0\n", "2.csv.gz": b"\x1f\x8b\x08"}, "a.zip/2.csv.gz is packed, in a packed file"),
        ({"1.parquet": b"PAR1"}, "a.zip: only text is read packed"),
        ({}, "a.zip does not end in"),
    ],
)
def test_an_archive_that_is_no_table_names_its_file(files: dict[str, bytes], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        list(open_stream(archive(tmp_path / "a.zip", files), label="y"))


def test_a_damaged_file_of_an_archive_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as made:
        for name in ("1.csv", "2.csv"):
            made.writestr(name, "x,y\n1,0\n2,1\n")
    data = path.read_bytes()
    at = data.index(b"2,1", data.index(b"2.csv"))
    path.write_bytes(data[:at] + b"7" + data[at + 1 :])
    with pytest.raises(ValueError, match=r"a.zip/2.csv is damaged or not a zip file: Bad CRC"):
        list(open_stream(path, label="y"))
