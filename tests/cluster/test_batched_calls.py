"""Calls of shards as futures, with a shard whose answers the test holds."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from ray.exceptions import ObjectLostError

from shoal.cluster.batched_calls import MOST, CallBatcher, chained, copy_to, joined
from shoal.serve.contract import Unavailable


class Shard:
    """Keeps what it is asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[Any], bool, Future[list[Any]]]] = []
        self.predict_each = SimpleNamespace(remote=self._remote)

    def _remote(self, rows: list[Any], wait: bool) -> Any:
        done: Future[list[Any]] = Future()
        self.calls.append((rows, wait, done))
        return SimpleNamespace(future=lambda: done)


def test_what_comes_during_a_call_goes_with_the_next_up_to_a_size() -> None:
    shard = Shard()
    batcher = CallBatcher(shard)
    numbers = [[0], [*range(1, MOST)], [MOST], [-1, -2], [-3]]
    answers = [batcher.predict_each([{"n": n} for n in some], some != [-3]) for some in numbers]
    for call in range(4):
        rows, _, done = shard.calls[call]
        assert len(shard.calls) == call + 1  # one at a time
        done.set_result([row["n"] for row in rows])
    assert [len(rows) for rows, _, _ in shard.calls] == [1, MOST, 2, 1]
    assert [wait for _, wait, _ in shard.calls] == [True, True, True, False]
    assert [answer.result(0) for answer in answers] == numbers


def test_a_call_that_fails_fails_all_its_requests_and_no_other() -> None:
    shard = Shard()
    batcher = CallBatcher(shard)
    first, *both = [batcher.predict_each([{"n": n}], True) for n in range(3)]
    lost = ObjectLostError("00" * 28, None, "")
    shard.calls[0][2].set_result([0])
    shard.calls[1][2].set_exception(lost)
    later = batcher.predict_each([{"n": 3}], True)
    shard.calls[2][2].set_result([3])
    assert (first.result(0), later.result(0)) == ([0], [3])
    assert [answer.exception(0) for answer in both] == [lost, lost]
    with pytest.raises(Unavailable, match="a shard is down"):
        joined([first, *both], list).result(0)
    assert joined([first, later], list).result(0) == [[0], [3]]
    assert joined([], list).result(0) == []


def test_errors_go_through_chains() -> None:
    first: Future[int] = Future()
    second: Future[int] = Future()
    to: Future[int] = Future()
    ends = [chained(first, lambda found: second), chained(second, lambda found: first)]
    second.add_done_callback(lambda done: copy_to(done, to, lambda found: -found))
    first.set_result(1)
    second.set_result(2)
    assert [end.result(0) for end in ends] == [2, 1]
    assert to.result(0) == -2
    failed: Future[int] = Future()
    failed.set_exception(KeyError("no"))
    copied: Future[int] = Future()
    copy_to(failed, copied)
    for end in (copied, chained(failed, lambda found: first), chained(first, lambda found: failed)):
        assert isinstance(end.exception(0), KeyError)
