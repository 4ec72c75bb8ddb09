"""Errors by their status, and what an answer says of them."""

from __future__ import annotations

import json

import pytest

from shoal.serve.contract import Busy, Conflict, Fault, LimitExceeded, Refused, Unavailable, UnknownTask
from shoal.serve.http.problems import SHOWN, TITLES, HttpProblem, problem_of, reply_of


@pytest.mark.parametrize(
    ("error", "status", "retry_after"),
    [
        (HttpProblem(415, "no"), 415, None),
        (Refused(Fault(3, "price", "no")), 422, None),
        (Conflict("no"), 409, None),
        (UnknownTask("no"), 404, None),
        (LimitExceeded("no"), 429, None),
        (LimitExceeded("no", 2.5), 429, b"3"),
        (Busy("no", 0.2), 429, b"1"),
        (Unavailable("no"), 503, b"1"),
    ],
)
def test_an_error_has_its_status_and_says_when_to_come_again(
    error: Exception, status: int, retry_after: bytes | None
) -> None:
    reply = reply_of(error)
    body = json.loads(reply.body)
    assert (reply.status, body["status"], body["title"], body["detail"]) == (status, status, TITLES[status], "no")
    assert dict(reply.headers).get(b"retry-after") == retry_after


def test_faults_are_counted_and_the_first_are_shown() -> None:
    problem = problem_of(Refused(*(Fault(i, "price", f"no {i}") for i in range(SHOWN + 5))))
    assert (problem.detail, problem.more["faults"], len(problem.more["errors"])) == ("no 0", SHOWN + 5, SHOWN)
    assert problem.more["errors"][1] == {"row": 1, "column": "price", "detail": "no 1"}
