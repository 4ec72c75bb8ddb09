"""NDJSON in and out at once: each piece of a body is answered while the next one comes, so memory stays bounded.

Served without the framework, whose streamed answers read the request to see whether the client is still there, and so
take the body away from whoever reads it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import msgspec

from shoal.serve.contract import Refused, Rows, Service
from shoal.serve.http import bodies
from shoal.serve.http.asking import in_thread, learned, predictions
from shoal.serve.http.bodies import NDJSON, Caps
from shoal.serve.http.problems import reply_of


async def answers(service: Service, path: str, key: str | None, receive: Any, caps: Caps) -> AsyncIterator[bytes]:
    """Lines for each piece of the body: answers to rows, or the receipt of rows that were learned.

    What is wrong with a piece ends the stream: the status has been sent, so the last line says it. The pieces before
    stand.
    """
    rows_before = number = 0
    try:
        async for piece in bodies.pieces(receive, caps):
            rows = await in_thread(partial(bodies.rows_of, piece, NDJSON, caps))
            found = await _done(service, path, rows, None if key is None else f"{key}/{number}")
            yield b"".join(msgspec.json.encode(one) + b"\n" for one in found)
            number, rows_before = number + 1, rows_before + rows.frame.height
        if number == 0:
            raise Refused(bodies.NO_ROWS)
    except Exception as error:
        problem = msgspec.json.decode(reply_of(_later(error, rows_before)).body)
        yield msgspec.json.encode({"problem": problem, "rows_before": rows_before}) + b"\n"


async def _done(service: Service, path: str, rows: Rows, key: str | None) -> list[dict[str, Any]]:
    return [await learned(service, rows, key)] if path == "/v1/learn" else await predictions(service, rows)


def _later(error: Exception, rows: int) -> Exception:
    """The same of a later piece: its rows are counted from the first of the stream."""
    if not isinstance(error, Refused):
        return error
    return Refused(*(fault._replace(row=None if fault.row is None else fault.row + rows) for fault in error.faults))
