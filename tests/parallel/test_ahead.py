"""Results that another thread computes ahead."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from joblib import parallel_config

from shoal.parallel import ahead
from shoal.parallel.ahead import one_ahead
from shoal.parallel.cores import thread_seconds

ITEMS = list(range(5))


def squares(seen: list[Any]) -> Iterator[int]:
    def square(x: int) -> int:
        seen.append((x, threading.current_thread()))
        return x * x

    return one_ahead(square, ITEMS)


@pytest.mark.parametrize("threads", [1, 2])
def test_results_come_in_order_from_one_thread(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "n_threads", lambda: threads)
    seen: list[Any] = []
    assert list(squares(seen)) == [x * x for x in ITEMS]
    assert [x for x, _ in seen] == ITEMS
    assert {thread is threading.current_thread() for _, thread in seen} == {threads == 1}


def test_one_job_means_no_other_thread() -> None:
    seen: list[Any] = []
    with parallel_config(n_jobs=1):
        list(squares(seen))
    assert {thread for _, thread in seen} == {threading.current_thread()}


def test_no_more_than_one_is_computed_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "n_threads", lambda: 2)
    seen: list[Any] = []
    results = squares(seen)
    for n_used in range(1, 4):
        next(results)
        assert len(seen) <= n_used + 1
    results.close()  # type: ignore[attr-defined]
    assert len(seen) <= 4


def test_what_the_function_raises_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "n_threads", lambda: 2)
    results = one_ahead(lambda x: 1 // x, [1, 0, 1])
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_the_other_threads_seconds_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "n_threads", lambda: 2)
    before, own = thread_seconds(), time.thread_time()
    took = sum(one_ahead(_busy, [0.01, 0.01]))
    assert (thread_seconds() - before) - (time.thread_time() - own) >= took


def _busy(seconds: float) -> float:
    """Work for so many seconds of a processor; how many they were."""
    begin = time.thread_time()
    while time.thread_time() - begin < seconds:
        pass
    return time.thread_time() - begin
