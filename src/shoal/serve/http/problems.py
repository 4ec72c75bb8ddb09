"""Errors as problem details (RFC 9457): what is wrong, and in which row and column. Internals are never shown."""

import logging
import math
import secrets
from typing import Any, NamedTuple

import msgspec

from shoal.serve.contract import Busy, Conflict, LimitExceeded, Refused, Unavailable, UnknownTask

logger = logging.getLogger("shoal")
PROBLEM = "application/problem+json"


class HttpProblem(Exception):
    """A request is refused: status, detail and further members of the problem details."""

    def __init__(self, status: int, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.more = status, detail, more


class Reply(NamedTuple):
    """Status, headers and body."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


TITLES = {
    400: "malformed request",
    401: "a token is needed",
    403: "the token does not allow this",
    404: "not found",
    405: "method not allowed",
    406: "not acceptable",
    408: "the request came too slowly",
    409: "conflict",
    413: "too large",
    415: "unsupported media type",
    421: "not for this host",
    422: "rows that cannot be taken",
    429: "too many",
    431: "the head is too large",
    500: "internal error",
    503: "unavailable",
}
SHOWN = 20  # faults of one request


def problem_of(error: Exception) -> HttpProblem:
    """The problem details of an error."""
    if isinstance(error, HttpProblem):
        return error
    if isinstance(error, Refused):
        faults = [fault._asdict() for fault in error.faults[:SHOWN]]
        errors = [{"row": fault["row"], "column": fault["column"], "detail": fault["sentence"]} for fault in faults]
        return HttpProblem(422, error.faults[0].sentence, errors=errors, faults=len(error.faults))
    if isinstance(error, Conflict):
        return HttpProblem(409, str(error))
    if isinstance(error, UnknownTask):
        return HttpProblem(404, str(error))
    if isinstance(error, LimitExceeded | Busy):
        return HttpProblem(429, str(error), retry_after=error.retry_after)
    if isinstance(error, Unavailable):
        return HttpProblem(503, str(error), retry_after=1.0)
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and 400 <= status < 500:  # of the framework
        return HttpProblem(status, TITLES.get(status, "malformed request"))
    name = secrets.token_hex(6)
    logger.exception("request failed, id %s", name, exc_info=error)
    return HttpProblem(
        500, f"something went wrong here, not with the request; the server's log has it under {name}", id=name
    )


def reply_of(error: Exception) -> Reply:
    """The response to a request that failed."""
    problem = problem_of(error)
    more = dict(problem.more)
    headers = [(b"content-type", PROBLEM.encode())]
    retry_after = more.pop("retry_after", None)
    if retry_after is not None:
        headers.append((b"retry-after", str(math.ceil(retry_after)).encode()))
    if allow := more.pop("allow", None):
        headers.append((b"allow", ", ".join(allow).encode()))
    if problem.status == 408:
        headers.append((b"connection", b"close"))  # as the rest of the body is not read
    if problem.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    title = TITLES.get(problem.status, "malformed request")
    body = {"type": "about:blank", "title": title, "status": problem.status, "detail": problem.detail, **more}
    return Reply(problem.status, headers, msgspec.json.encode(body))
