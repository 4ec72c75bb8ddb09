"""Uvicorn's HTTP protocol with limits on the head of a request, which come before any token is checked.

Uvicorn's parser itself keeps a line of a head until it is complete, and any number of lines. The connection also cuts a
client that sends a head and no byte of the body it announces; a body that comes with its head needs no timer.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from shoal.serve.http.problems import HttpProblem, reply_of

HEAD_LINES = 100
HEAD_BYTES = 64 << 10  # of the complete lines, and of one that is not complete
AHEAD = 32  # requests before the first answer
HEAD_SECONDS = 20.0


class Connection(HttpToolsProtocol):
    """The connection of a client. Trailers behind a chunked body count as lines of the head."""

    head_seconds = HEAD_SECONDS

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._lines = self._bytes = 0
        self._unread = 0  # bytes that the parser has not reported yet
        self._refusal = HttpProblem(400, "this is not HTTP")
        self._timer: asyncio.TimerHandle | None = None  # while nothing came of a head, or of a body
        self._has_begun = False

    # ---- callbacks of the event loop -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._came()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._unread += len(data)
        super().data_received(data)
        if self._unread > HEAD_BYTES and not self.transport.is_closing():
            self._refuse_head()
            self.send_400_response("")
        self._wait()

    # ---- callbacks of the parser -----------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._lines = self._bytes = self._unread = 0
        self._has_begun = True

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines += 1
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._unread, self._has_begun = 0, False
        self._came()
        if len(self.pipeline) >= AHEAD:
            self._refusal = HttpProblem(429, f"more than {AHEAD} requests before the first answer")
            raise self._refusal
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        self._came()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._came()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._came()  # nothing of a body that was not asked for
        super().on_response_complete()
        if self.pipeline:  # or else each answer would read a further block of requests
            self.flow.pause_reading()
        self._wait()

    # ---- limits ----------------------------------------------------------------------------------------------

    def _count(self, n: int) -> None:
        self._unread = 0
        self._bytes += n
        if self._bytes > HEAD_BYTES or self._lines > HEAD_LINES:
            self._refuse_head()
            raise self._refusal  # which ends the parser

    def _refuse_head(self) -> None:
        limits = f"{HEAD_LINES} lines and {HEAD_BYTES >> 10} kB"
        self._refusal = HttpProblem(431, f"the head of a request has at most {limits}")

    @property
    def _waits_for_head(self) -> bool:
        """Has every request that came its answer?"""
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        """Start the timer, if the client has to send something: a head, or the first bytes of a body."""
        if self._timer is not None or self.transport.is_closing():
            return
        if self._waits_for_head:
            is_awaited = self.timeout_keep_alive_task is None  # uvicorn closes what is idle
        else:  # requests behind the one that is answered are not read on
            is_awaited = not self.pipeline and self.cycle.more_body and not self.cycle.body
        if is_awaited:
            self._timer = self.loop.call_later(self.head_seconds, self._cut)

    def _came(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cut(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        if self._has_begun:
            self._refuse_silence("the head of the request did not come")
        elif self._waits_for_head:
            self.transport.close()
        else:
            self._refuse_silence("no byte of the body came")

    def _refuse_silence(self, what: str) -> None:
        self._refusal = HttpProblem(408, f"{what} within {self.head_seconds:g} seconds")
        self.send_400_response("")

    def send_400_response(self, msg: str) -> None:
        """Send the problem, unless the client would read it as the answer to another request, or as a part of one."""
        cycle = self.cycle
        is_of_this = cycle is None or cycle.response_complete or (cycle.more_body and not cycle.response_started)
        if is_of_this and not self.pipeline:
            reply = reply_of(self._refusal)
            headers = {**dict(reply.headers), b"content-length": str(len(reply.body)).encode(), b"connection": b"close"}
            lines = [b"%s: %s\r\n" % header for header in headers.items()]
            self.transport.write(b"".join([STATUS_LINE[self._refusal.status], *lines, b"\r\n", reply.body]))
        self.transport.close()
