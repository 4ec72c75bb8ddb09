"""The jitted scan finds the records that the csv module finds, on the same lines."""

from __future__ import annotations

import csv
import io

from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.files.tables.csv import find_records

# Without \r, which the csv module takes for a line end of its own.
FIELD = st.text(alphabet='ab",; \t\né', max_size=6)


@given(rows=st.lists(st.lists(FIELD, min_size=2, max_size=4), max_size=8), crlf=st.booleans())
@settings(max_examples=300, deadline=None)
def test_scan_agrees_with_csv(rows: list[list[str]], crlf: bool) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n" if crlf else "\n").writerows(rows)
    data = text.getvalue().encode()
    records = find_records(data, ord(","), 1)
    assert records.fields.tolist() == [len(row) for row in rows]
    assert not records.stray.any()
    line = 1
    for i, row in enumerate(rows):
        assert records.lines[i] == line
        assert next(csv.reader(io.StringIO(records.record(i).decode(), newline=""))) == row
        line += records.record(i).count(b"\n")
    assert records.starts[-1] == len(data)


@given(data=st.text(alphabet='ab",\n', max_size=40), cut=st.integers(0, 40))
@settings(max_examples=300, deadline=None)
def test_scan_in_two_pieces_finds_the_same(data: str, cut: int) -> None:
    whole = find_records(data.encode(), ord(","), 1)
    first = find_records(data[:cut].encode(), ord(","), 1)
    rest = data[:cut].encode()[first.starts[-1] :] + data[cut:].encode()
    second = find_records(rest, ord(","), int(first.lines[-1]))
    assert [*first.fields, *second.fields] == whole.fields.tolist()
    assert [*first.lines[:-1], *second.lines] == whole.lines.tolist()
    assert [*first.stray, *second.stray] == whole.stray.tolist()
