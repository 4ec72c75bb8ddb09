"""Rows as bytes in the log: a byte for the format, then an Arrow stream, or JSON for a row that was predicted alone.

JSON values become text, as in the files that `shoal run` reads, so that a row means the same in every format.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from shoal.files.ids import id_of
from shoal.serve.contract import Fault, Refused, Rows

TYPED, STRINGS, JSON = b"a", b"s", b"j"
LONG = 50  # rows from which on compression pays
MOST_CELLS = 20_000_000  # of a table: rows with different columns need far more memory than their bytes


def pack(rows: Rows) -> bytes:
    """Rows as bytes."""
    buffer = io.BytesIO(STRINGS if rows.strings else TYPED)
    buffer.seek(1)
    rows.frame.write_ipc_stream(buffer, compression="lz4" if rows.frame.height >= LONG else "uncompressed")
    return buffer.getvalue()


def pack_one(row: Mapping[str, Any]) -> bytes:
    """One row of JSON values as bytes, without making a frame."""
    return JSON + msgspec.json.encode(row)


def unpack(body: bytes) -> Rows:
    """The rows that `pack` or `pack_one` stored."""
    if body[:1] == JSON:
        return from_dicts([msgspec.json.decode(body[1:])])
    return Rows(pl.read_ipc_stream(io.BytesIO(body[1:])), body[:1] == STRINGS)


def refuse_too_many(rows: int, columns: int) -> None:
    """Raise Refused if a table has too many cells."""
    if rows * columns > MOST_CELLS:
        raise Refused(Fault(None, None, f"{rows:,} rows of {columns:,} columns are too many: send fewer at once"))


def from_dicts(rows: Sequence[Mapping[str, Any]]) -> Rows:
    """JSON objects as rows, with missing values for missing keys. Raises Refused if they are too many."""
    names = dict.fromkeys(name for row in rows for name in row)
    refuse_too_many(len(rows), len(names))
    columns = {name: [id_of(row.get(name)) for row in rows] for name in names}
    return Rows(pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String)), strings=True)


def are_alike(one: Rows, other: Rows) -> bool:
    """Whether the rows of two requests have the same meaning in one table."""
    return one.strings == other.strings and (one.strings or one.frame.schema == other.frame.schema)


def concat(pieces: Sequence[Rows]) -> Rows:
    """One table of alike requests, with missing values for missing columns. Raises Refused if it is too large."""
    if len(pieces) == 1:
        return pieces[0]
    refuse_too_many(
        sum(piece.frame.height for piece in pieces), len({name for one in pieces for name in one.frame.columns})
    )
    same = all(piece.frame.schema == pieces[0].frame.schema for piece in pieces[1:])
    frame = pl.concat([piece.frame for piece in pieces], how="vertical" if same else "diagonal")
    return Rows(frame, pieces[0].strings)


def without_task(
    task: str, columns: Sequence[str], task_ids: Callable[[pl.DataFrame], list[str | None]]
) -> Callable[[bytes], bytes | None]:
    """A function that blanks a task's rows in stored rows, or returns None if there are none.

    The rows stay, with all columns missing: ids of predictions count them. A row that was predicted alone is looked at
    without making a frame, as they may be a million.
    """

    def edited(body: bytes) -> bytes | None:
        if body[:1] == JSON and len(columns) == 1:
            row = msgspec.json.decode(body[1:])
            return None if id_of(row.get(columns[0])) != task else pack_one(dict.fromkeys(row))
        rows = unpack(body)
        is_other = pl.Series([one != task for one in task_ids(rows.frame)])
        return None if is_other.all() else pack(Rows(rows.frame.select(pl.when(is_other).then(pl.all())), rows.strings))

    return edited
