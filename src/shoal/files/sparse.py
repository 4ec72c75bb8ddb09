"""What the two sparse text formats share: a line is parsed to a row, good rows become chunks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from shoal.files.bad_rows import BadRows
from shoal.files.source import ByteSource
from shoal.files.targets import Labels
from shoal.rounds import Chunk


class MalformedLine(ValueError):
    """What was found in a line and what was expected; the line's number is added by who reads the file."""


class Row(NamedTuple):
    """One parsed line; the features are indices, or names that get their index when the row is good."""

    label: float
    task: str | None
    features: list[int] | list[str]
    values: list[float]


def number(token: str, what: str) -> float:
    """A finite number, or MalformedLine.

    >>> number("-1.5", "label")
    -1.5
    """
    try:
        value = float(token)
    except ValueError:
        raise MalformedLine(f"{what} {token!r}, expected a number") from None
    if not math.isfinite(value) or "_" in token:
        raise MalformedLine(f"{what} {token!r}, expected a finite number")
    return value


def good_rows(source: ByteSource, parse: Callable[[str], Row | None], labels: Labels, bad: BadRows) -> Iterator[Row]:
    """A row for each good line that is not blank; bad ones are reported."""
    line = 0
    for block in source.lines():
        for record in block:
            line += 1
            try:
                row = parse(record.decode("utf-8"))
                if row is not None and labels.kind == "binary" and labels.refuse([row.label]):
                    raise MalformedLine(labels.third(row.label))
            except UnicodeDecodeError as error:
                bad.report(line, f"byte {record[error.start]:#04x} is not UTF-8 text, expected UTF-8")
                row = None
            except MalformedLine as error:
                bad.report(line, str(error))
                row = None
            if row is not None:
                yield row


def to_chunk(rows: list[Row], indices: list[int], width: int) -> Chunk:
    """Rows as a chunk; `indices` are those of all their features, one after the other. Repeats add up."""
    indptr = np.zeros(len(rows) + 1, np.int32)
    np.cumsum([len(row.features) for row in rows], out=indptr[1:])
    data = np.array([value for row in rows for value in row.values], np.float64)
    matrix = csr_matrix((data, np.array(indices, np.int32), indptr), shape=(len(rows), width))
    matrix.sum_duplicates()
    tasks = np.array([row.task for row in rows], np.object_)
    return Chunk(matrix, np.array([row.label for row in rows]), None if rows[0].task is None else tasks)
