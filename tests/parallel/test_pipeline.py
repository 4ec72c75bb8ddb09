"""One learner in two threads: when it pays, and how its blocks are cut."""

from __future__ import annotations

import _thread
import os
import signal
import threading
import time
from unittest.mock import patch

import joblib
import numpy as np
import pytest

from shoal import HedgedSharing
from shoal.engine.rounds import NO_INDICES, NO_INDPTR, Rounds
from shoal.evaluation import progressive_validate
from shoal.parallel import cores, pipeline
from shoal.parallel.cores import thread_seconds


def affinity() -> set[int]:
    """Where this thread may run, if the system says so."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def test_threads_wait_for_no_one_where_they_do_not_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few numbers, rounds of several rows, one core."""
    for name, value in {"FEWEST": 100, "START": 120}.items():
        monkeypatch.setattr(pipeline, name, value)
    wide, y = np.random.default_rng(3).normal(size=(40, 60)), np.ones(40)
    whole = pipeline.Part(0, -1, True, True, None)

    def parts_of(X: np.ndarray, n_rounds: int) -> tuple[list[tuple[int, int]], int]:
        """What one thread learns, and how often there are two."""
        starts = np.linspace(0, len(X), n_rounds + 1).astype(int)
        task, alone = np.zeros(len(X), int), []
        rounds = Rounds(X.shape[1], NO_INDPTR, NO_INDICES, X.ravel(), task, y[: len(X)], starts)

        def step(part: pipeline.Part) -> int:
            alone.append((part.first, part.last))
            return part.last if part.last >= 0 else n_rounds

        with patch.object(pipeline, "learn_in_blocks", return_value=(n_rounds, 0.0)) as spy:
            assert pipeline.run(step, whole, rounds, lambda n_rows: (None, None)) == n_rounds
        return alone, spy.call_count

    monkeypatch.setattr(cores, "n_cores", lambda: 2)
    assert parts_of(wide, 40) == ([(0, 2)], 1)
    assert parts_of(wide, 20) == ([(0, -1)], 0)
    assert parts_of(wide[:1], 1) == ([(0, -1)], 0)
    assert parts_of(wide.reshape(1, -1), 1) == ([(0, -1)], 0)
    monkeypatch.setattr(cores, "n_cores", lambda: 1)
    assert parts_of(wide, 40) == ([(0, 2), (2, -1)], 0)


def test_what_does_not_fit_among_the_first_rounds_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller makes place for the round before which it stopped; nothing behind it may be learned before."""
    for name, value in {"FEWEST": 1, "START": 40}.items():
        monkeypatch.setattr(pipeline, name, value)
    rounds = Rounds(4, NO_INDPTR, NO_INDICES, np.ones(400), np.zeros(100, int), np.ones(100), np.arange(101))
    parts: list[tuple[int, int]] = []

    def step(part: pipeline.Part) -> int:
        parts.append((part.first, part.last))
        return 7

    assert pipeline.run(step, pipeline.Part(0, -1, True, True, None), rounds, lambda n_rows: (None, None)) == 7
    assert parts == [(0, 10)]


def test_blocks_grow_and_end_where_one_is_full() -> None:
    """They have 32 rows, then 64, ...; here 50 fit into one, and the model is full before row 180."""
    done = []

    def run(part: pipeline.Part) -> int:
        done.append((part.first, part.last, part.prepares))
        return min(part.last, part.first + 50, 180) if part.prepares else part.last

    assert pipeline.learn_in_blocks(run, 10, 1000, None, None)[0] == 180
    assert sorted(part[:2] for part in done if not part[2]) == [(10, 42), (42, 92), (92, 142), (142, 180)]
    assert sorted(part[:2] for part in done if part[2]) == [(10, 42), (42, 106), (92, 220), (142, 398), (180, 692)]


def test_the_two_threads_are_not_the_callers_and_run_on_any_core() -> None:
    """A library does not say where the user's process runs."""
    seen: dict[bool, set[int]] = {True: set(), False: set()}
    cores_of: list[set[int]] = []

    def run(part: pipeline.Part) -> int:
        seen[part.learns].add(threading.get_ident())
        cores_of.append(affinity())
        return part.last

    pipeline.learn_in_blocks(run, 0, 150, None, None)
    assert len(seen[True]) == len(seen[False]) == 1
    assert len(seen[True] | seen[False] | {threading.get_ident()}) == 3
    assert all(cores == affinity() for cores in cores_of)


def test_an_interrupt_waits_until_all_is_learned() -> None:
    """What was made ready is learned: the model is that of whole rows."""
    done = []

    def run(part: pipeline.Part) -> int:
        if part.learns and part.first == 0:
            _thread.interrupt_main()
        time.sleep(0.05)
        done.append((part.first, part.last, part.learns))
        return part.last

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            pipeline.learn_in_blocks(run, 0, 150, None, None)
    finally:
        signal.signal(signal.SIGINT, before)
    assert sorted(part[:2] for part in done if part[2]) == [(0, 32), (32, 96), (96, 150)]


def test_threads_are_those_of_joblib_or_one_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "n_cores", lambda: 4)
    assert cores.n_threads() == 4
    for n_jobs, expected in {1: 1, 2: 2, 9: 9, -1: 4, -2: 3, -4: 1, -9: 1}.items():
        with joblib.parallel_config(n_jobs=n_jobs):
            assert cores.n_threads() == expected


def test_the_time_of_both_threads_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "n_cores", lambda: 2)
    rng = np.random.default_rng(3)
    X, y, task = rng.normal(size=(3000, 60)), np.sign(rng.normal(size=3000)), rng.integers(5, size=3000)
    before, own = thread_seconds(), time.thread_time()
    result = progressive_validate(HedgedSharing(), [(X, y, task)])
    beside = (thread_seconds() - before) - (time.thread_time() - own)  # of the threads that are not this one
    assert 0.0 < beside <= result.cpu_seconds
