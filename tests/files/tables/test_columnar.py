"""Parquet and Arrow files by themselves: numbered rows, and what is said of files that break off."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.files.tables.columnar import Columnar, _panics_in_silence

FRAME = pl.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "z"]})


@pytest.fixture
def path(tmp_path: Path) -> str:
    FRAME.write_parquet(tmp_path / "rows.parquet")
    return str(tmp_path / "rows.parquet")


def test_rows_are_numbered_from_1_behind_a_batch_of_none(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.files.tables.columnar.rows_a_batch", lambda n_columns: 2)
    file = Columnar(path, "parquet")
    assert file.n_rows == 3
    file.drop(["b"])
    none, *batches = file.batches()
    assert (none.frame.schema, none.frame.height, len(none.lines)) == (pl.Schema({"a": pl.Float64}), 0, 0)
    assert [row for batch in batches for row in batch.lines.tolist()] == [1, 2, 3]
    assert pl.concat(batch.frame for batch in batches).equals(FRAME.select("a"))


def test_a_file_that_ends_before_its_last_row_breaks_off(path: str) -> None:
    """Polars says nothing if one of its threads fails."""
    file = Columnar(path, "parquet")
    file.n_rows = 4
    with pytest.raises(ValueError, match=r"rows\.parquet is damaged .*: it breaks off after row 3 of 4"):
        [*file.batches()]


def test_no_file_is_opened_here_that_lies_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pl, "scan_ipc", lambda path, glob: FRAME.lazy())
    assert Columnar("https://example.org/rows.arrow", "arrow").n_rows == 3


@pytest.mark.parametrize(
    ("zone", "written"),
    [("+05:30", (5, 35)), ("-03:45", (20, 20)), ("+0100", (1, 5)), ("Nowhere/Town", (0, 5)), ("Asia/Kolkata", (5, 35))],
)
def test_moments_are_as_they_were_written(zone: str, written: tuple[int, int], tmp_path: Path) -> None:
    moment = pa.array([dt.datetime(2024, 1, 2, 0, 5)], pa.timestamp("us", zone))
    pq.write_table(pa.table({"w": moment}), tmp_path / "rows.parquet")
    _, batch = Columnar(str(tmp_path / "rows.parquet"), "parquet").batches()
    [found] = batch.frame["w"]
    assert (found.hour, found.minute) == written


@pytest.mark.parametrize(("message", "said"), [("of two\nlines", "of two"), ("", "ComputeError")])
def test_the_first_line_of_an_error_is_said(
    message: str, said: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: str, glob: bool) -> None:
        raise pl.exceptions.ComputeError(message)

    monkeypatch.setattr(pl, "scan_parquet", fail)
    with pytest.raises(ValueError, match=rf"is damaged or not a Parquet file: {said}$"):
        Columnar(path, "parquet")


def test_what_polars_prints_when_it_panics_is_kept_back(capfd: pytest.CaptureFixture[str]) -> None:
    """All else that is printed comes later."""

    def printed(text: bytes) -> str:
        os.write(2, text)
        return capfd.readouterr().err

    with _panics_in_silence():
        assert printed(b"a warning") == ""
    assert printed(b", and more") == "a warning, and more"

    def panic() -> None:
        with _panics_in_silence():
            assert printed(b"thread panicked at src/lib.rs") == ""
            raise pl.exceptions.PanicException("no such type")

    with pytest.raises(pl.exceptions.PanicException):
        panic()
    assert printed(b"after it") == "after it"
