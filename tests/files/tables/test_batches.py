"""Rows keep their lines, and problems their places, however they are regrouped."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal.files.tables.batches import (
    FEWEST,
    FEWEST_LONG,
    FIELDS,
    MOST,
    SIZE,
    Batch,
    join,
    regroup,
    rows_a_batch,
    split,
)


def batch(lines: list[int], problems: list[int]) -> Batch:
    frame = pl.DataFrame({"x": [str(line) for line in lines]})
    return Batch(frame, np.array(lines, np.int64), [(line, "bad") for line in problems])


def test_split_puts_each_problem_before_the_next_row() -> None:
    first, rest = split(batch([2, 3, 6, 8], [4, 5, 7, 9]), 2)
    assert first.lines.tolist() == [2, 3]
    assert [line for line, _ in first.problems] == [4, 5]
    assert rest.lines.tolist() == [6, 8]
    assert [line for line, _ in rest.problems] == [7, 9]
    everything, nothing = split(first, 5)
    assert everything is first
    assert (len(nothing.lines), nothing.problems) == (0, [])


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_regroup_loses_nothing(rows: int) -> None:
    pieces = [batch([2, 4], [3]), batch([], [5, 6]), batch([7, 8, 9, 11], [10]), batch([12], [13])]
    parts = list(regroup(iter(pieces), rows))
    assert all(len(part.lines) == rows for part in parts[:-1])
    whole = join(parts)
    assert whole.lines.tolist() == [2, 4, 7, 8, 9, 11, 12]
    assert whole.frame["x"].to_list() == [str(line) for line in whole.lines]
    assert [line for line, _ in whole.problems] == [3, 5, 6, 10, 13]


@pytest.mark.parametrize(
    ("columns", "row_size", "rows"),
    [
        (0, 0.0, MOST), (1, 0.0, MOST), (FIELDS // MOST, 0.0, MOST), (FIELDS // MOST + 1, 0.0, FIELDS // 21),
        (FIELDS // FEWEST, 0.0, FEWEST), (FIELDS, 0.0, FEWEST), (1, 256.0, MOST), (1, 512.0, SIZE // 512),
        (1, SIZE / 16, 16), (1, SIZE / 8, FEWEST_LONG), (1, 1e12, FEWEST_LONG),
    ],
)  # fmt: skip
def test_rows_a_batch_at_its_limits(columns: int, row_size: float, rows: int) -> None:
    assert rows_a_batch(columns, row_size) == rows
