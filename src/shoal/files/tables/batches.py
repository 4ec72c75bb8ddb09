"""`Batch`: some rows of a table with their lines; batches of any size are regrouped into batches of one size."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

Problem = tuple[int, str]  # the number of a line (or of a row of a frame), and the message
FIELDS, SIZE = 600_000, 1 << 23  # of a batch, in fields and bytes: a dozen of them wait in memory
FEWEST, MOST = 1_000, 30_000  # rows, unless they are long
FEWEST_LONG = 10


def rows_a_batch(n_columns: int, row_size: float = 0.0) -> int:
    """A good number of rows for a batch, by the number of columns and the bytes of a row."""
    rows = min(max(FIELDS // max(n_columns, 1), FEWEST), MOST)
    return max(min(rows, int(SIZE // max(row_size, 1.0))), FEWEST_LONG)


class Batch(NamedTuple):
    """Some rows of a table in file order."""

    frame: pl.DataFrame  # (n, columns); all strings if the format is a text format
    lines: NDArray[np.int64]  # (n,) line number of each row, counted from 1
    problems: list[Problem]  # of the lines that are no rows


def join(batches: Sequence[Batch]) -> Batch:
    """Join batches; columns that a batch lacks are null there."""
    if len(batches) == 1:
        return batches[0]
    frame = pl.concat([batch.frame for batch in batches], how="diagonal_relaxed")
    lines = np.concatenate([batch.lines for batch in batches])
    return Batch(frame, lines, [problem for batch in batches for problem in batch.problems])


def split(batch: Batch, n: int) -> tuple[Batch, Batch]:
    """The first `n` rows with the problems before the next row, and the rest."""
    if n >= len(batch.lines):
        return batch, Batch(batch.frame.clear(), batch.lines[:0], [])
    border = batch.lines[n]
    before = [problem for problem in batch.problems if problem[0] < border]
    after = [problem for problem in batch.problems if problem[0] >= border]
    return (
        Batch(batch.frame.head(n), batch.lines[:n], before),
        Batch(batch.frame.slice(n), batch.lines[n:], after),
    )


def regroup(batches: Iterable[Batch], rows: int, *, apart: bool = False) -> Generator[Batch]:
    """The same rows in batches of `rows`; the last one is shorter, and so is one of mostly problems.

    `apart`: rows of other columns than those before them begin a new batch.
    """
    held: list[Batch] = []
    for batch in batches:
        if apart and held and not same_columns(held[0], batch):
            yield join(held)
            held = []
        held.append(batch)
        n_rows = sum(len(other.lines) for other in held)
        n_problems = sum(len(other.problems) for other in held)
        if n_rows < rows and n_problems < 10 * rows:
            continue
        rest = join(held)
        while len(rest.lines) >= rows or len(rest.problems) >= 10 * rows:
            part, rest = split(rest, rows)
            yield part
        held = [rest]
    if held:
        yield join(held)


def same_columns(one: Batch, other: Batch) -> bool:
    """Whether two batches have the same columns, in any order."""
    return set(one.frame.columns) == set(other.frame.columns)


def parse_good_records(
    parse: Callable[[Sequence[bytes]], pl.DataFrame],
    explain: Callable[[bytes], str],
    records: Sequence[bytes],
    lines: NDArray[np.int64],
) -> Batch:
    """Parse records of which some are malformed: halve them until each malformed one is alone.

    Parameters
    ----------
    parse : function
        Turns records into a frame of one row each; raises a polars error if one is malformed.
    explain : function
        Gives the message for a malformed record.
    """
    try:
        frame = parse(records)
        if frame.height == len(records):
            return Batch(frame, lines, [])
    except pl.exceptions.PolarsError:
        pass
    if len(records) == 1:
        return Batch(parse([]), lines[:0], [(int(lines[0]), explain(records[0]))])
    half = len(records) // 2
    return join(
        [
            parse_good_records(parse, explain, records[:half], lines[:half]),
            parse_good_records(parse, explain, records[half:], lines[half:]),
        ]
    )
