"""A bad row stops the stream with file and line, or is skipped, counted and without influence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.files.conftest import Whole

from shoal.files import BadRow, open_stream
from shoal.files.messages import FILE, KEPT_MESSAGES, BadRows

GOOD = [f"{i / 7:.3f},{'ab'[i % 2]},{i % 2},t{i % 3}" for i in range(60)]
HEADER = "x,c,y,t"

BAD = {
    "1.5,a,0": "3 fields, expected 4",
    "1.5,a,0,t1,9": "5 fields, expected 4",
    "hello,a,0,t1": "column 'x' has 'hello', expected a finite number",
    "inf,a,0,t1": "column 'x' has 'inf', expected a finite number",
    "1e400,a,0,t1": "column 'x' has '1e400'",
    "1,a,,t1": "no label in column 'y'",
    "1,a,NA,t1": "label 'NA' in column 'y'",
    "1,a,yes,t1": "label 'yes' in column 'y', expected",
    "1,a,2,t1": "label 2 is a third one, expected 0 or 1",
    "1,a,0,": "no task in column 't'",
}


def table(tmp_path: Path, lines: list[str], name: str = "a.csv") -> Path:
    path = tmp_path / name
    path.write_bytes("\n".join([HEADER, *lines]).encode() + b"\n")
    return path


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("chunk_rows", [10, 1_000])
def test_the_line_is_exact(bad: str, chunk_rows: int, tmp_path: Path) -> None:
    lines = [*GOOD[:43], bad, *GOOD[43:], bad]
    stream = open_stream(table(tmp_path, lines), task="t", label="y", chunk_rows=chunk_rows)
    with pytest.raises(BadRow) as caught:
        list(stream)
    assert str(caught.value).startswith(f"{stream.name}, line 45: {BAD[bad]}")
    assert stream.n_rows == (40 if chunk_rows == 10 else 0)


@pytest.mark.parametrize("chunk_rows", [7, 1_000])
def test_skipped_rows_have_no_influence(chunk_rows: int, tmp_path: Path, whole: type[Whole]) -> None:
    lines = list(GOOD)
    for i, bad in enumerate(BAD):
        lines.insert(6 * i + 5, bad)
    options: dict[str, Any] = {"task": "t", "label": "y", "chunk_rows": chunk_rows}
    found = whole(open_stream(table(tmp_path, lines), skip_bad=True, **options))
    found.same(whole(open_stream(table(tmp_path, GOOD, "b.csv"), **options)))
    assert found.stream.skipped == len(BAD) == len(found.stream.bad_rows)
    assert found.stream.n_rows == len(GOOD)
    for i, (message, expected) in enumerate(zip(found.stream.bad_rows, BAD.values(), strict=True)):
        assert f"line {6 * i + 7}: {expected}" in message
    assert f"{len(BAD)} bad rows skipped" in found.stream.notes


def test_lines_count_quoted_line_ends_and_blank_lines(tmp_path: Path) -> None:
    lines = ['1,"a\nb\nc",0,t', "", '2,"say ""so""",1,t', "", "3,a,0", "4,a,1,t"]
    with pytest.raises(BadRow, match="line 8: 3 fields"):
        list(open_stream(table(tmp_path, lines), task="t", label="y"))


def test_stray_quotes_are_read_as_they_stand(tmp_path: Path, whole: type[Whole]) -> None:
    lines = ['1,5" pipe,0,t', '2,the "best",1,t', '3,"quoted",0,t', "4,plain,1,t"]
    names = whole(open_stream(table(tmp_path, lines), task="t", label="y")).stream.feature_names
    assert names[2:] == ['c=5" pipe', 'c=the "best"', "c=quoted", "c=plain"]


def test_a_quote_that_is_never_closed_costs_its_line_only(tmp_path: Path, whole: type[Whole]) -> None:
    lines = [*GOOD[:20], '1,"open,0,t', *GOOD[20:]]
    path = table(tmp_path, lines)
    with pytest.raises(BadRow, match="line 22: a quote that is never closed"):
        list(open_stream(path, task="t", label="y"))
    found = whole(open_stream(path, task="t", label="y", skip_bad=True))
    found.same(whole(open_stream(table(tmp_path, GOOD, "b.csv"), task="t", label="y")))


def test_text_that_is_not_utf8(tmp_path: Path, whole: type[Whole]) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("c,y\né,0\n".encode() + b"a,0\nb,1\n" * 30 + b"\xff,1\n" + b"a,0\n" * 5)
    with pytest.raises(BadRow, match="line 63: byte 0xff is not UTF-8"):
        list(open_stream(path, label="y"))
    assert whole(open_stream(path, label="y", skip_bad=True)).X.shape[0] == 66


def test_line_ends_and_headers_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"c,y\ra,0\rb,1\r")
    with pytest.raises(ValueError, match="end in CR alone"):
        open_stream(path, label="y")
    path.write_text("x,y\n" + "1.5,0\n2.5,1\n" * 600 + "x,y\n")
    with pytest.raises(BadRow, match=r"line 1202: column 'x' has 'x' .a second header"):
        list(open_stream(path, label="y"))


def test_json_lines(tmp_path: Path, whole: type[Whole]) -> None:
    bad = {
        '{"x": 1, "y":': "not JSON",
        "[1, 2]": "a JSON list, expected a JSON object",
        '{"x": 1}': "no label",
        '{"x": "far", "y": 1}': "column 'x' has 'far'",
    }
    lines = [json.dumps({"x": i, "y": i % 2}) for i in range(50)]
    for i, line in enumerate(bad):
        path = tmp_path / f"{i}.ndjson"
        path.write_text("\n".join([*lines[:30], "", line, *lines[30:]]))
        with pytest.raises(BadRow) as caught:
            list(open_stream(path, label="y"))
        assert f"line 32: {bad[line]}" in str(caught.value)
        assert whole(open_stream(path, label="y", skip_bad=True)).X.shape[0] == 50


def test_rows_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    x = [float(i) for i in range(50)]
    x[33] = float("inf")
    pl.DataFrame({"x": x, "y": [0, 1] * 25}).write_parquet(path)
    with pytest.raises(BadRow, match="row 34: column 'x' has inf"):
        list(open_stream(path, label="y", chunk_rows=10))


def test_the_way_out_of_a_text_column_that_began_with_numbers(tmp_path: Path, whole: type[Whole]) -> None:
    lines = [f"{i},a,{i % 2},t" for i in range(1_500)]
    lines[1_400] = "12B,a,0,t"
    path = table(tmp_path, lines)
    with pytest.raises(
        BadRow,
        match=r"line 1402: .*category=\['x'\] takes its values as they are, missing= names words for missing values",
    ):
        list(open_stream(path, task="t", label="y"))
    names = whole(open_stream(path, task="t", label="y", category=["x"])).stream.feature_names
    assert "x=12B" in names or any(name.startswith("x#") for name in names)


def test_given_labels_decide_which_are_good(tmp_path: Path, whole: type[Whole]) -> None:
    path = table(tmp_path, ["1,a,maybe,t", "2,a,yes,t", "3,a,no,t"])
    with pytest.raises(BadRow, match="line 2: label 'maybe' is a third one, expected 'no' or 'yes'"):
        list(open_stream(path, task="t", label="y", labels=("no", "yes")))
    found = whole(open_stream(path, task="t", label="y", labels=("no", "yes"), skip_bad=True))
    assert found.y.tolist() == ["yes", "no"]


def test_only_bad_rows_do_not_pile_up(tmp_path: Path) -> None:
    path = table(tmp_path, ["1,a"] * 5_000 + GOOD)
    stream = open_stream(path, task="t", label="y", skip_bad=True, chunk_rows=30)
    assert [len(chunk.y) for chunk in stream] == [30, 30]
    assert stream.skipped == 5_000
    assert len(stream.bad_rows) == 10


@pytest.mark.parametrize("n", [0, 1, KEPT_MESSAGES - 1, KEPT_MESSAGES, KEPT_MESSAGES + 1])
def test_the_first_messages_are_kept_and_all_are_counted(n: int) -> None:
    rows = BadRows(["a.csv", "b.csv"], skip=True)
    for k in range(n):
        rows.report(FILE + k, "odd")
    assert (rows.count, rows.messages) == (n, [f"b.csv, line {k}: odd" for k in range(min(n, KEPT_MESSAGES))])


def test_the_last_row_of_a_file_and_the_first_of_the_next() -> None:
    rows = BadRows(["a.csv", "b.csv", "c.csv"])
    assert [rows.place(number) for number in (FILE - 1, FILE, 2 * FILE)] == [
        f"a.csv, line {FILE - 1:,}", "b.csv, line 0", "c.csv, line 0",
    ]  # fmt: skip
    assert BadRows(["a.csv"]).place(1_234) == "line 1,234"
    assert rows.name == "a.csv and 2 more"
    with pytest.raises(BadRow, match=r"b\.csv, line 7: odd"):
        rows.report(FILE + 7, "odd")
