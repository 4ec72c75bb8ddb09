"""Arrow streams, written and read. A small body from a stranger must not become a large table.

Compressed buffers may grow a thousandfold: `read` refuses them, by the messages' metadata (flatbuffers, Arrow's
Message.fbs), before it reads anything. Views and dictionaries may repeat one long text in many rows: `read` sums the
lengths before it copies any text. pyarrow could read the metadata; it is 100 MB more to install.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from shoal.serve.contract import Fault, Refused
from shoal.serve.http.problems import HttpProblem

ARROW = "application/vnd.apache.arrow.stream"
SCHEMA, DICTIONARY, RECORDS = 1, 2, 3  # kinds of messages; the last two have buffers
UNREAD = {11: "Interval", 14: "Union", 22: "RunEndEncoded", 25: "ListView", 26: "LargeListView"}  # of Schema.fbs
CONTINUES = -1  # precedes the size of a message since Arrow 0.15
MOST_MESSAGES = 10_000  # even small ones take time


def write(table: pl.DataFrame) -> bytes:
    """A table as an Arrow stream."""
    buffer = io.BytesIO()
    table.write_ipc_stream(buffer, compression="uncompressed")
    return buffer.getvalue()


def read(body: bytes, most_text: int) -> pl.DataFrame:
    """The table of an Arrow stream, with at most this many bytes of text. Raises HttpProblem or Refused."""
    try:
        compressed = is_compressed(body)
        frame = pl.DataFrame() if compressed else pl.read_ipc_stream(io.BytesIO(body))
    except Refused:
        raise
    except (Exception, pl.exceptions.PanicException) as error:  # no common class
        raise HttpProblem(400, f"the body is no Arrow stream: {str(error).partition(chr(10))[0][:200]}") from None
    if compressed:
        raise HttpProblem(415, "the Arrow stream is compressed (lz4 or zstd); send it uncompressed")
    for name, kind in frame.schema.items():
        if kind.is_nested() or kind in (pl.Binary, pl.Object, pl.Duration, pl.Null):
            raise Refused(Fault(None, name, f"column {name!r} is of type {kind}, expected numbers, text or dates"))
    if sum(_text_bytes(column) for column in frame) > most_text:
        raise HttpProblem(413, f"the table has more than {most_text:,} bytes of text")
    return frame


def is_compressed(body: bytes) -> bool:
    """Whether a message of the stream has compressed buffers. Raises struct.error or ValueError if it is malformed."""
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
        if kind == SCHEMA:
            _refuse_unread(header)
        records = header.table(1) if kind == DICTIONARY else header if kind == RECORDS else None
        if records is not None and records.place(3):
            return True
        at += size + n_bytes
    raise ValueError(f"it has more than {MOST_MESSAGES:,} messages")


def _refuse_unread(schema: _Table) -> None:
    """Raise Refused for columns at which polars panics, as each panic writes many lines into the log."""
    names = set[str]()
    for field in schema.tables(1):
        name = field.text(0)
        if name in names:
            raise Refused(Fault(None, name, f"two columns are called {name!r}"))
        if (kind := field.byte(2)) in UNREAD:
            sentence = f"column {name!r} is of type {UNREAD[kind]}, expected numbers, text or dates"
            raise Refused(Fault(None, name, sentence))
        names.add(name)


class _Table(NamedTuple):
    """A flatbuffers table: its first four bytes are the distance back to the offsets of its fields."""

    body: bytes
    at: int

    def place(self, field: int) -> int:
        """The position of a field; 0 if it is absent."""
        (back,) = struct.unpack_from("<i", self.body, self.at)
        places = self._checked(self.at - back)
        (size,) = struct.unpack_from("<H", self.body, places)
        if 4 + 2 * field >= size:
            return 0
        (offset,) = struct.unpack_from("<H", self.body, places + 4 + 2 * field)
        return self.at + int(offset) if offset else 0

    def root(self) -> _Table:
        """The table at the offset that stands here."""
        return _Table(self.body, self._behind(self.at))

    def table(self, field: int) -> _Table | None:
        place = self.place(field)
        return _Table(self.body, self._behind(place)) if place else None

    def tables(self, field: int) -> Iterator[_Table]:
        """The tables of a vector."""
        if place := self.place(field):
            (n,) = struct.unpack_from("<I", self.body, start := self._behind(place))
            for at in range(start + 4, start + 4 + 4 * n, 4):
                yield _Table(self.body, self._behind(at))

    def text(self, field: int) -> str:
        if not (place := self.place(field)):
            return ""
        (n,) = struct.unpack_from("<I", self.body, start := self._behind(place))
        return self.body[start + 4 : start + 4 + n].decode()

    def _behind(self, place: int) -> int:
        """The target of the offset at a place."""
        (offset,) = struct.unpack_from("<I", self.body, place)
        return self._checked(place + int(offset))

    def byte(self, field: int) -> int:
        place = self.place(field)
        return int(self.body[place]) if place else 0

    def long(self, field: int) -> int:
        place = self.place(field)
        return int(struct.unpack_from("<q", self.body, place)[0]) if place else 0

    def _checked(self, at: int) -> int:
        if not 0 <= at < len(self.body):  # Python would count negative ones from the end
            raise ValueError("a table lies outside of the body")
        return at


def _text_bytes(column: pl.Series) -> int:
    if column.dtype == pl.String:
        return int(column.str.len_bytes().sum() or 0)
    if column.dtype in (pl.Categorical, pl.Enum):
        return int(column.cat.len_bytes().sum() or 0)
    return 0
