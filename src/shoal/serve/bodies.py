"""Rows as bytes of a record: an Arrow stream, with a first byte that says how values are written. A row that was
predicted alone waits for its label as JSON.

JSON values are text, as in the files that `shoal run` reads, so that a row means the same whichever way it comes.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from shoal.files.ids import id_of
from shoal.serve.contract import Fault, Refused, Rows

TYPED, STRINGS, JSON = b"a", b"s", b"j"
LONG = 50  # rows that are worth compressing
MOST_CELLS = 20_000_000  # of a table: rows that have each other columns would take more memory than they have bytes


def pack(rows: Rows) -> bytes:
    """Rows as bytes."""
    buffer = io.BytesIO(STRINGS if rows.strings else TYPED)
    buffer.seek(1)
    rows.frame.write_ipc_stream(buffer, compression="lz4" if rows.frame.height >= LONG else "uncompressed")
    return buffer.getvalue()


def pack_one(row: Mapping[str, Any]) -> bytes:
    """A row of JSON values as bytes, without a frame."""
    return JSON + msgspec.json.encode(row)


def unpack(body: bytes) -> Rows:
    """Rows from `pack` and `pack_one`."""
    if body[:1] == JSON:
        return from_dicts([msgspec.json.decode(body[1:])])
    return Rows(pl.read_ipc_stream(io.BytesIO(body[1:])), body[:1] == STRINGS)


def refuse_too_many(rows: int, columns: int) -> None:
    """Raise Refused if a table of this size would have too many cells."""
    if rows * columns > MOST_CELLS:
        raise Refused(Fault(None, None, f"{rows:,} rows of {columns:,} columns are too many: send fewer at once"))


def from_dicts(rows: Sequence[Mapping[str, Any]]) -> Rows:
    """JSON objects as rows; a key that some lack is missing there. Raises Refused if they are too many."""
    names = dict.fromkeys(name for row in rows for name in row)
    refuse_too_many(len(rows), len(names))
    columns = {name: [id_of(row.get(name)) for row in rows] for name in names}
    return Rows(pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String)), strings=True)


def are_alike(one: Rows, other: Rows) -> bool:
    """Whether the rows of two requests may be read as one table without meaning something else."""
    return one.strings == other.strings and (one.strings or one.frame.schema == other.frame.schema)


def concat(pieces: Sequence[Rows]) -> Rows:
    """Rows of several requests that are alike; a column that some lack is missing there. Raises Refused if they are
    too many."""
    if len(pieces) == 1:
        return pieces[0]
    refuse_too_many(
        sum(piece.frame.height for piece in pieces), len({name for one in pieces for name in one.frame.columns})
    )
    same = all(piece.frame.schema == pieces[0].frame.schema for piece in pieces[1:])
    frame = pl.concat([piece.frame for piece in pieces], how="vertical" if same else "diagonal")
    return Rows(frame, pieces[0].strings)
