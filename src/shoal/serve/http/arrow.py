"""Arrow streams from strangers: a small body must not become a large table.

It could in two ways. Buffers may be compressed, a thousand times and more: such a stream is refused, as the messages'
metadata (flatbuffers, Message.fbs of Arrow) says before anything is read. And many rows may show one long text (views,
dictionaries): their length is summed before any text is copied.
"""

from __future__ import annotations

import io
import struct
from typing import NamedTuple

import polars as pl

from shoal.serve.contract import Fault, Refused
from shoal.serve.http.problems import Problem

DICTIONARY, RECORDS = 2, 3  # kinds of messages that have buffers
CONTINUES = -1  # stands before the size of a message since Arrow 0.15
MOST_MESSAGES = 10_000  # each takes time, however small it is


def read(body: bytes, most_text: int) -> pl.DataFrame:
    """The table of a stream; of text it may have so many bytes."""
    try:
        compressed = is_compressed(body)
        frame = pl.DataFrame() if compressed else pl.read_ipc_stream(io.BytesIO(body))
    except (Exception, pl.exceptions.PanicException) as error:  # no common class
        raise Problem(400, f"the body is no Arrow stream: {str(error).partition(chr(10))[0][:200]}") from None
    if compressed:
        raise Problem(415, "the Arrow stream is compressed (lz4 or zstd); send it uncompressed")
    for name, kind in frame.schema.items():
        if kind.is_nested() or kind in (pl.Binary, pl.Object, pl.Duration, pl.Null):
            raise Refused(Fault(None, name, f"column {name!r} is of type {kind}, expected numbers, text or dates"))
    if sum(_text_bytes(column) for column in frame) > most_text:
        raise Problem(413, f"the table has more than {most_text:,} bytes of text")
    return frame


def is_compressed(body: bytes) -> bool:
    """Whether a message of the stream has compressed buffers. Raises struct.error or ValueError if it is none."""
    at = 0
    for _ in range(MOST_MESSAGES):
        if at + 4 > len(body):
            return False
        (size,) = struct.unpack_from("<i", body, at)
        at += 4
        if size == CONTINUES:
            (size,) = struct.unpack_from("<i", body, at)
            at += 4
        if size == 0:
            return False
        message = _Table(body, at).root()
        kind, header = message.byte(1), message.table(2)
        n_bytes = message.long(3)
        if size < 0 or n_bytes < 0 or header is None:
            raise ValueError("a message has no size")
        records = header.table(1) if kind == DICTIONARY else header if kind == RECORDS else None
        if records is not None and records.place(3):
            return True
        at += size + n_bytes
    raise ValueError(f"it has more than {MOST_MESSAGES:,} messages")


class _Table(NamedTuple):
    """A table of flatbuffers: its first four bytes lead back to where the places of its fields stand."""

    body: bytes
    at: int

    def place(self, field: int) -> int:
        """Where a field stands; 0 if it is not there."""
        (back,) = struct.unpack_from("<i", self.body, self.at)
        places = self._checked(self.at - back)
        (size,) = struct.unpack_from("<H", self.body, places)
        if 4 + 2 * field >= size:
            return 0
        (offset,) = struct.unpack_from("<H", self.body, places + 4 + 2 * field)
        return self.at + int(offset) if offset else 0

    def root(self) -> _Table:
        """The table that this place leads to."""
        (offset,) = struct.unpack_from("<I", self.body, self.at)
        return _Table(self.body, self._checked(self.at + offset))

    def table(self, field: int) -> _Table | None:
        place = self.place(field)
        return _Table(self.body, place).root() if place else None

    def byte(self, field: int) -> int:
        place = self.place(field)
        return int(self.body[place]) if place else 0

    def long(self, field: int) -> int:
        place = self.place(field)
        return int(struct.unpack_from("<q", self.body, place)[0]) if place else 0

    def _checked(self, at: int) -> int:
        if not 0 <= at < len(self.body):  # from below 0, Python would count from the end
            raise ValueError("a table lies outside of the body")
        return at


def _text_bytes(column: pl.Series) -> int:
    if column.dtype == pl.String:
        return int(column.str.len_bytes().sum() or 0)
    if column.dtype in (pl.Categorical, pl.Enum):
        return int(column.cat.len_bytes().sum() or 0)
    return 0
