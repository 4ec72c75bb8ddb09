"""Jobs one after the other, side by side, and a few at a time where results come only when all are done."""

from __future__ import annotations

import threading

import pytest
from joblib import parallel_config
from joblib.parallel import ThreadingBackend

from shoal.parallel.jobs import results

JOBS = [(i,) for i in range(20)]


def test_one_at_a_time_is_done_here_when_it_is_asked_for() -> None:
    done: list[tuple[int, int]] = []
    with parallel_config("threading", n_jobs=2):
        found = results(lambda i: done.append((i, threading.get_ident())), JOBS, 1)
        assert done == []
        next(found)
    assert done == [(0, threading.get_ident())]


def test_results_come_in_order_or_as_they_are_done() -> None:
    may_end = threading.Event()

    def first_waits(i: int) -> int:
        assert i > 0 or may_end.wait(20)
        return i

    with parallel_config("threading", n_jobs=2):
        found = results(first_waits, JOBS, in_order=False)
        assert next(found) == 1
        may_end.set()
        assert sorted(found) == [0, *range(2, 20)]
        assert [*results(first_waits, JOBS)] == [*range(20)]


def test_without_generators_four_for_each_process_are_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ThreadingBackend, "supports_return_generator", False)
    done: list[int] = []
    with parallel_config("threading", n_jobs=2):
        found = results(lambda i: done.append(i) or i, JOBS)  # type: ignore[func-returns-value]
        assert next(found) == 0
        assert sorted(done) == [*range(8)]
        assert [*found] == [*range(1, 20)]
