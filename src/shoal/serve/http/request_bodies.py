"""Bodies of requests, read within limits as JSON, NDJSON or Arrow; and bodies of answers."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars as pl

from shoal.serve.contract import Fault, Refused, Rows
from shoal.serve.http import arrow
from shoal.serve.http.arrow import ARROW
from shoal.serve.http.problems import HttpProblem
from shoal.serve.row_codec import from_dicts, refuse_too_many

JSON, NDJSON = "application/json", "application/x-ndjson"
NAMES = {JSON: JSON, NDJSON: NDJSON, "application/ndjson": NDJSON, "application/jsonl": NDJSON, ARROW: ARROW}
LONGEST_KEY = 180
SLOWEST = 10_000  # bytes a second
PIECE = 1 << 20  # bytes of NDJSON that are one record
NO_ROWS = Fault(None, None, "there are no rows")
NESTED = "a value is nested; expected numbers, text, true, false or null"


class BodyLimits(NamedTuple):
    """The largest and slowest body that is taken."""

    body: int = 64 << 20  # bytes; of a stream, the bytes of a line
    rows: int = 200_000  # without limit in a stream
    columns: int = 10_000
    silence: float = 20.0  # seconds without a byte
    model: int = 64 << 30  # bytes of a model file
    patience: float = 60.0  # seconds for a body, and one more for every SLOWEST bytes


def media_type(value: str | None) -> str:
    """The format that a Content-Type names."""
    name = (value or "").partition(";")[0].strip().lower()
    if name not in NAMES:
        raise HttpProblem(415, f"Content-Type is {name or 'missing'}, expected {JSON}, {NDJSON} or {ARROW}")
    return NAMES[name]


def accepted(accept: str, kind: str) -> str:
    """The format of the answer: the one that `Accept` names, or else that of the request."""
    return next((name for name in (ARROW, NDJSON, JSON) if name in accept), kind)


def checked_key(key: str | None) -> str | None:
    """An Idempotency-Key. A long one is refused, as cutting it could make two keys equal."""
    if key is not None and not 1 <= len(key) <= LONGEST_KEY:
        raise HttpProblem(400, f"Idempotency-Key has 1 to {LONGEST_KEY} characters")
    return key


class BodyPart(NamedTuple):
    """Some bytes of a body."""

    content: bytes
    left: float  # seconds for the rest
    more: bool  # whether there is a rest


async def next_part(receive: Any, limits: BodyLimits, left: float) -> BodyPart:
    """The next bytes of a body. Raises HttpProblem (408) if the client is silent or slow for too long.

    Only the time of waiting for the client counts.
    """
    began = time.monotonic()
    try:
        async with asyncio.timeout(min(limits.silence, left)):
            message = await receive()
    except TimeoutError:
        slow = f"the body came at less than {SLOWEST:,} bytes a second"
        raise HttpProblem(
            408, slow if left < limits.silence else f"no byte came for {limits.silence:g} seconds"
        ) from None
    return part_of(message, left - (time.monotonic() - began))


def part_of(message: Any, left: float) -> BodyPart:
    """The bytes of a message. Raises HttpProblem (400) if the client has gone."""
    if message["type"] == "http.disconnect":
        raise HttpProblem(400, "the connection was closed before the end of the body")
    content = message.get("body", b"")
    return BodyPart(content, left + len(content) / SLOWEST, message.get("more_body", False))


async def whole(receive: Any, limits: BodyLimits) -> bytes:
    """The body in one piece. The connection watches for its first bytes: a small body comes with its head."""
    part = part_of(await receive(), limits.patience)
    parts, size = [part.content], len(part.content)
    while part.more and size <= limits.body:
        part = await next_part(receive, limits, part.left)
        parts.append(part.content)
        size += len(part.content)
    if size > limits.body:
        raise HttpProblem(413, f"the body has more than {limits.body:,} bytes")
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def to_file(receive: Any, limits: BodyLimits, path: Path) -> None:
    """The body as a file."""
    part, size = BodyPart(b"", limits.patience, True), 0
    with path.open("wb") as file:
        while part.more:
            part = await next_part(receive, limits, part.left)
            size += len(part.content)
            if size > limits.model:
                raise HttpProblem(413, f"the file has more than {limits.model:,} bytes")
            file.write(part.content)
        file.flush()
        await asyncio.to_thread(os.fsync, file.fileno())


async def pieces(receive: Any, limits: BodyLimits) -> AsyncIterator[bytes]:
    """Whole lines of NDJSON, about a megabyte at a time."""
    held, part = bytearray(), BodyPart(b"", limits.patience, True)
    while part.more:
        part = await next_part(receive, limits, part.left)
        held += part.content
        while len(held) >= PIECE:
            end = held.rfind(b"\n", 0, PIECE) + 1
            if end == 0:
                end = held.find(b"\n") + 1
            if end == 0:
                if len(held) > limits.body:
                    raise HttpProblem(413, f"a line has more than {limits.body:,} bytes")
                break
            yield bytes(held[:end])
            del held[:end]
    if held.strip():
        yield bytes(held)


def value_of(body: bytes) -> Any:
    """The value of a JSON body."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise HttpProblem(400, f"the body is not JSON: {error}") from None


def rows_of(body: bytes, kind: str, limits: BodyLimits) -> Rows:
    """The rows of a body in one piece, or of a piece of NDJSON."""
    if kind == ARROW:
        rows = Rows(arrow.read(body, limits.body), strings=False)
    elif kind == NDJSON:
        rows = Rows(_lines(body, limits), strings=True)
    else:
        return rows_of_value(value_of(body), limits)
    return _within(rows, limits, any_number=kind == NDJSON)


def rows_of_value(value: Any, limits: BodyLimits) -> Rows:
    """The rows of a JSON value."""
    found = [value] if isinstance(value, dict) else value
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise HttpProblem(400, "expected a JSON object, or an array of objects")
    for i, row in enumerate(found):
        refuse_nested(row, i)
    return _within(from_dicts(found), limits)


def _within(rows: Rows, limits: BodyLimits, *, any_number: bool = False) -> Rows:
    if rows.frame.height == 0:
        raise Refused(NO_ROWS)
    if not any_number and rows.frame.height > limits.rows:
        raise HttpProblem(
            413, f"{rows.frame.height:,} rows, at most {limits.rows:,} are taken at once; {NDJSON} has no limit"
        )
    refuse_too_wide(rows.frame.width, limits)
    return rows


def refuse_too_wide(columns: int, limits: BodyLimits) -> None:
    """Raise HttpProblem if a request has too many columns."""
    if columns > limits.columns:
        raise HttpProblem(413, f"{columns:,} columns, at most {limits.columns:,} are taken")


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


def _lines(body: bytes, limits: BodyLimits) -> pl.DataFrame:
    """Objects, one a line, as columns of strings.

    The names are collected here, as polars needs a minute for a megabyte of rows that all have different ones.
    """
    lines = [line for line in body.splitlines() if line.strip()]
    names: dict[str, None] = {}
    for number, line in enumerate(lines):
        row = flat(line)
        if row is None:
            row = value_of(line)
            if not isinstance(row, dict):
                raise HttpProblem(400, f"row {number} is no JSON object", row=number)
            refuse_nested(row, number)
        names.update(dict.fromkeys(row))
    refuse_too_many(len(lines), len(names))
    refuse_too_wide(len(names), limits)
    try:
        frame = pl.read_ndjson(body, schema=dict.fromkeys(names, pl.String))
    except pl.exceptions.PolarsError:
        raise HttpProblem(400, "the body is not NDJSON") from None
    if frame.height != len(lines):
        raise HttpProblem(400, "the body is not NDJSON")
    return frame


def table(found: Sequence[Mapping[str, Any]], kind: str) -> bytes:
    """Answers in a format."""
    if kind == NDJSON:
        return b"".join(msgspec.json.encode(one) + b"\n" for one in found)
    if kind == ARROW:
        return arrow.write(pl.DataFrame(list(found), infer_schema_length=None, strict=False))
    return msgspec.json.encode(found)
