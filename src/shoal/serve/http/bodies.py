"""Bodies of requests: read with limits, as JSON, NDJSON or Arrow; and of answers."""

from __future__ import annotations

import io
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import polars as pl

from shoal.serve.contract import Fault, Refused, Rows
from shoal.serve.http import arrow
from shoal.serve.http.problems import Problem
from shoal.serve.http.waiting import within
from shoal.serve.row_codec import from_dicts, refuse_too_many

JSON, NDJSON, ARROW = "application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream"
NAMES = {JSON: JSON, NDJSON: NDJSON, "application/ndjson": NDJSON, "application/jsonl": NDJSON, ARROW: ARROW}
LONGEST_KEY = 180
SORTS = ("rows", "error", "newest", "name")  # of the list of tasks
SLOWEST = 10_000  # bytes a second
PIECE = 1 << 20  # bytes of NDJSON that are one record
NO_ROWS = Fault(None, None, "there are no rows")
NESTED = "a value is nested; expected numbers, text, true, false or null"


class Caps(NamedTuple):
    """What a request may be."""

    body: int = 64 << 20  # bytes; of a stream: of one line
    rows: int = 200_000  # of a body that is no stream
    columns: int = 10_000
    silence: float = 20.0  # seconds without a byte
    patience: float = 60.0  # seconds that a body may take to come, and one more for every SLOWEST bytes


def media_type(value: str | None) -> str:
    """The format that a Content-Type names."""
    name = (value or "").partition(";")[0].strip().lower()
    if name not in NAMES:
        raise Problem(415, f"Content-Type is {name or 'missing'}, expected {JSON}, {NDJSON} or {ARROW}")
    return NAMES[name]


def accepted(asked: str, kind: str) -> str:
    """The format of the answer: what `Accept` names, else that of the request."""
    return next((name for name in (ARROW, NDJSON, JSON) if name in asked), kind)


def checked_key(key: str | None) -> str | None:
    """An Idempotency-Key; cut short, two would be one."""
    if key is not None and not 1 <= len(key) <= LONGEST_KEY:
        raise Problem(400, f"Idempotency-Key has 1 to {LONGEST_KEY} characters")
    return key


class Chunk(NamedTuple):
    """Some bytes of a body."""

    content: bytes
    left: float  # seconds that the rest may still take
    more: bool  # does any come?


async def chunk_of(receive: Any, caps: Caps, left: float) -> Chunk:
    """The next bytes of a request; a client that is silent or slow for too long is cut.

    What is done with the bytes between two of them is not the client's time.
    """
    asked = time.monotonic()
    try:
        message = await within(min(caps.silence, left), receive())
    except TimeoutError:
        slow = f"the body came at less than {SLOWEST:,} bytes a second"
        raise Problem(408, slow if left < caps.silence else f"no byte came for {caps.silence:g} seconds") from None
    if message["type"] == "http.disconnect":
        raise Problem(400, "the connection was closed before the end of the body")
    content = message.get("body", b"")
    left += len(content) / SLOWEST - (time.monotonic() - asked)
    return Chunk(content, left, message.get("more_body", False))


async def whole(receive: Any, caps: Caps) -> bytes:
    """The body in one piece."""
    chunk = await chunk_of(receive, caps, caps.patience)
    parts, size = [chunk.content], len(chunk.content)
    while chunk.more and size <= caps.body:
        chunk = await chunk_of(receive, caps, chunk.left)
        parts.append(chunk.content)
        size += len(chunk.content)
    if size > caps.body:
        raise Problem(413, f"the body has more than {caps.body:,} bytes")
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def pieces(receive: Any, caps: Caps) -> AsyncIterator[bytes]:
    """Whole lines of NDJSON, about a megabyte at a time."""
    held, chunk = bytearray(), Chunk(b"", caps.patience, True)
    while chunk.more:
        chunk = await chunk_of(receive, caps, chunk.left)
        held += chunk.content
        while len(held) >= PIECE:
            end = held.rfind(b"\n", 0, PIECE) + 1
            if end == 0:
                end = held.find(b"\n") + 1
            if end == 0:
                if len(held) > caps.body:
                    raise Problem(413, f"a line has more than {caps.body:,} bytes")
                break
            yield bytes(held[:end])
            del held[:end]
    if held.strip():
        yield bytes(held)


def value_of(body: bytes) -> Any:
    """What JSON says."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise Problem(400, f"the body is not JSON: {error}") from None


def rows_of(body: bytes, kind: str, caps: Caps) -> Rows:
    """The rows of a body in one piece, or of a piece of NDJSON."""
    if kind == ARROW:
        rows = Rows(arrow.read(body, caps.body), strings=False)
    elif kind == NDJSON:
        rows = Rows(_lines(body, caps), strings=True)
    else:
        return rows_of_value(value_of(body), caps)
    return _within(rows, caps, any_number=kind == NDJSON)


def rows_of_value(value: Any, caps: Caps) -> Rows:
    """The rows of what JSON says."""
    found = [value] if isinstance(value, dict) else value
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise Problem(400, "expected a JSON object, or an array of objects")
    for i, row in enumerate(found):
        refuse_nested(row, i)
    return _within(from_dicts(found), caps)


def _within(rows: Rows, caps: Caps, *, any_number: bool = False) -> Rows:
    if rows.frame.height == 0:
        raise Refused(NO_ROWS)
    if not any_number and rows.frame.height > caps.rows:
        raise Problem(
            413, f"{rows.frame.height:,} rows, at most {caps.rows:,} are taken at once; {NDJSON} has no limit"
        )
    refuse_too_wide(rows.frame.width, caps)
    return rows


def refuse_too_wide(columns: int, caps: Caps) -> None:
    """Raise Problem if a request has too many columns."""
    if columns > caps.columns:
        raise Problem(413, f"{columns:,} columns, at most {caps.columns:,} are taken")


def refuse_nested(row: Mapping[str, Any], number: int) -> None:
    """Raise Refused if a value is an array or an object."""
    for name, value in row.items():
        if isinstance(value, dict | list):
            raise Refused(Fault(number, name, f"column {name!r}: {NESTED}"))


_FLAT = msgspec.json.Decoder(dict[str, str | int | float | bool | None])


def flat(body: bytes) -> dict[str, Any] | None:
    """A JSON object of plain values; None if the body is something else."""
    try:
        return _FLAT.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return None


def _lines(body: bytes, caps: Caps) -> pl.DataFrame:
    """Objects, one a line, as columns of strings.

    Their names are looked for here: polars takes a minute for a megabyte in which every row has another one.
    """
    lines = [line for line in body.splitlines() if line.strip()]
    names: dict[str, None] = {}
    for number, line in enumerate(lines):
        row = flat(line)
        if row is None:
            row = value_of(line)
            if not isinstance(row, dict):
                raise Problem(400, f"row {number} is no JSON object", row=number)
            refuse_nested(row, number)
        names.update(dict.fromkeys(row))
    refuse_too_many(len(lines), len(names))
    refuse_too_wide(len(names), caps)
    try:
        frame = pl.read_ndjson(body, schema=dict.fromkeys(names, pl.String))
    except pl.exceptions.PolarsError:
        raise Problem(400, "the body is not NDJSON") from None
    if frame.height != len(lines):
        raise Problem(400, "the body is not NDJSON")
    return frame


def table(found: Sequence[Mapping[str, Any]], kind: str) -> bytes:
    """Answers in the format that is asked for."""
    if kind == NDJSON:
        return b"".join(msgspec.json.encode(one) + b"\n" for one in found)
    if kind == ARROW:
        buffer = io.BytesIO()
        pl.DataFrame(list(found), infer_schema_length=None, strict=False).write_ipc_stream(buffer)
        return buffer.getvalue()
    return msgspec.json.encode(found)
