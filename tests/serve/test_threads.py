"""What several threads change together: no lock may be missing.

Threads are switched between any two instructions of the code under test, for between those of `x += 1` CPython does so
once in a long while, if ever.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.serve.material import records, rows, write_model

from shoal.cluster.batched_calls import CallBatcher, when_done
from shoal.serve import snapshots
from shoal.serve.answers import Query
from shoal.serve.apply import Group, Turns
from shoal.serve.commands import Label
from shoal.serve.contract import Conflict, Messages, UnknownTask
from shoal.serve.engine import Engine
from shoal.serve.late_labels import Lags
from shoal.serve.learner_thread import LearnerThread, Rhythm
from shoal.serve.log_writer import LogWriter
from shoal.serve.statistics import Statistics

THREADS = 4


def switching(frame: Any, event: str, _: object) -> Any:
    """Let another thread go on, at every instruction."""
    if "/shoal/" not in frame.f_code.co_filename.replace("\\", "/"):
        return None
    frame.f_trace_opcodes = True
    if event == "opcode":
        time.sleep(0)
    return switching


@pytest.fixture(autouse=True)
def switched_often() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threading.settrace(switching)  # of threads that begin from now on
    yield
    threading.settrace(None)
    sys.setswitchinterval(interval)


def together(work: Callable[[], Any], times: int) -> None:
    """Done so many times by each of the threads, all at once."""
    start, errors = threading.Barrier(THREADS), []

    def run() -> None:
        start.wait()
        try:
            for _ in range(times):
                work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def waits_for(lock: Any, call: Callable[[], Any]) -> bool:
    """Whether a call cannot end while the lock is held."""
    thread = threading.Thread(target=call)
    with lock:
        thread.start()
        thread.join(0.05)
        waits = thread.is_alive()
    thread.join()
    return waits


def test_rows_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted while they are done."""
    nothing: Any = SimpleNamespace(last=0, position=0, forgotten=list)
    writer, command = LogWriter(nothing, nothing, nothing, print, 1.0), Label([("x", 1)], None)
    together(lambda: writer.submit(command), 20)
    assert writer.rows_waiting == THREADS * 20
    monkeypatch.setattr("shoal.serve.log_writer.MOST_COMMANDS", 1)
    monkeypatch.setattr(writer, "_do", lambda commands: [])
    writer.start()
    together(lambda: writer.submit(command), 20)
    writer.stop()
    assert writer.rows_waiting == 0


def test_rows_to_learn() -> None:
    fold: Any = SimpleNamespace(rows=0, position=0, forgotten=0, apply=lambda group: None)
    learning, group = LearnerThread(fold, 0, fold, Rhythm(), fold, print), Group(1, np.zeros(1), None)
    together(lambda: learning.put(group), 20)
    assert learning.backlog == THREADS * 20
    learning.start()
    together(lambda: learning.put(group), 60)
    learning.stop()
    assert (learning.backlog, learning.failure) == (0, None)


def test_labels_worth_asking_for() -> None:
    query = Query(1.0)
    together(lambda: query.wants(0.0), 20)  # a margin of 0 is always asked for
    assert query.asked == THREADS * 20


def test_lags() -> None:
    """Read while they are added to."""
    lags = Lags()

    def add_and_read() -> None:
        lags.add([0.0] * 3)
        lags.median()

    together(add_and_read, 4)
    assert len(lags._lags) == THREADS * 4 * 3


def test_counted_rows() -> None:
    """Rows are counted and tasks forgotten while others look: what they see is of one moment."""
    learner = SimpleNamespace(n_features_in_=1, quantiles=())
    served: Any = SimpleNamespace(labels=SimpleNamespace(kind="regression", classes=[]), learner=learner, shadows={})
    statistics = Statistics(served)

    def look() -> None:
        task = "one"
        found: Any = SimpleNamespace(
            times=np.zeros(2), tasks=[task, "all"], truth=np.ones(2), decisions=np.zeros(2), shadows={}
        )
        statistics.learned(found)
        seen, n_tasks = statistics.list_tasks("rows", "", 0, 100)
        assert len(seen) == n_tasks
        with suppress(UnknownTask):
            assert statistics.task(task)["rows"] > 0
        statistics.forget(task)
        assert statistics.gauges()["error"] == 1.0  # each row is wrong by 1: the sum is the number of rows
        state = statistics.state()
        assert state["errors"] == [1.0]
        assert sum(point[0] for point in state["points"]) == state["rows"]

    together(look, 2)
    for call in (
        statistics.gauges, statistics.state, lambda: statistics.task("all"), lambda: statistics.forget("one"),
        lambda: statistics.list_tasks("name", "", 0, 1),
    ):  # fmt: skip
        assert waits_for(statistics._lock, call)
    assert statistics.rows == THREADS * 2 * 2
    assert statistics.task("all")["rows"] == THREADS * 2


def test_only_one_has_the_model() -> None:
    turns, inside, seen = Turns(), [0], set[int]()

    def enter(turn: Any) -> None:
        with turn:
            inside[0] += 1
            for _ in range(20):
                seen.add(inside[0])
            inside[0] -= 1

    def both() -> None:
        enter(turns.answering())
        enter(turns.answering())
        enter(turns.learning())

    together(both, 10)
    answering = turns._answering
    answering.__enter__()
    assert waits_for(answering._counting, lambda: answering.__exit__())
    assert seen == {1}
    assert turns._answering._asking == 0
    assert turns._answering._is_free.is_set()


def test_the_last_of_several_answers_ends_the_wait() -> None:
    for _ in range(5):
        futures: list[Future[int]] = [Future() for _ in range(40)]
        left = iter([*futures])
        ends: list[list[Future[int]]] = []
        found = when_done(futures, ends.append)
        together(lambda left=left: next(left).set_result(1), len(futures) // THREADS)  # type: ignore[misc]
        assert found.result(10) is None
        assert ends == [futures]


class Actor:
    """Answers each row by itself, one call at a time."""

    def __init__(self) -> None:
        self.calls = self.most = 0
        self.predict_each = self

    def remote(self, rows: list[Any], wait: bool) -> Any:
        self.calls += 1
        self.most = max(self.most, self.calls)
        done: Future[list[Any]] = Future()

        def answer() -> None:
            self.calls -= 1
            done.set_result([row["n"] for row in rows])

        threading.Thread(target=answer).start()
        return SimpleNamespace(future=lambda: done)


def test_rows_of_many_threads_go_in_one_call_at_a_time() -> None:
    actor, number = Actor(), iter(range(10**9))
    asked = CallBatcher(actor)

    def ask() -> None:
        n = next(number)
        assert asked.predict_each([{"n": n}, {"n": -n}], True).result(20) == [n, -n]

    together(ask, 10)
    assert waits_for(asked._lock, ask)
    assert waits_for(asked._lock, asked._send)
    assert actor.most == 1


def test_what_is_checked_learned_and_saved_is_held_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`accepting` from the check of rows to their commit, `columns` while the encoder changes or is saved.

    Models are changed one after the other.
    """
    threading.settrace(None)
    mails, seen = records(4, late_columns=False), dict[str, set[bool]]()
    with Engine(write_model(tmp_path), tmp_path / "engine") as engine:
        fold, served = engine._fold, engine._fold.served
        columns, accepting = [fold.columns], [fold.accepting]
        watched: list[tuple[Any, str, list[Any]]] = [
            (served, "check", columns + accepting), (served, "encode", columns), (served, "readers", columns),
            (snapshots, "begin", [*columns, *accepting, fold.turns._lock]), (engine._log, "commit", accepting),
            *((served.rows_to_learn, name, columns + accepting) for name in ("mark", "rollback")),
        ]  # fmt: skip

        def spy(do: Any, name: str, locks: list[Any], *given: Any) -> Any:
            seen.setdefault(name, set()).add(all(lock.locked() for lock in locks))
            return do(*given)

        for holder, name, locks in watched:
            monkeypatch.setattr(holder, name, partial(spy, getattr(holder, name), name, locks))
        engine.learn(rows(mails)).result()
        bad = engine.learn(rows([{**mails[0], "size": "huge"}]))
        assert bad.exception() is not None
        with monkeypatch.context() as patch:
            patch.setattr(engine._log, "commit", lambda _: 1 / 0)
            assert isinstance(engine.learn(rows(mails)).exception(), ZeroDivisionError)
        engine.check(rows(mails))
        engine.follow(Messages([mails[0]], [], [], {"mails/0": 1}, [("mails/0", 0)])).result()
        assert engine.wait_until_learned(timeout=30)
        engine.export()
        engine._learner.begin().wait()

        def go_back() -> None:
            with suppress(Conflict):  # there is no other model
                engine.change("rollback")

        assert waits_for(engine._changing, go_back)
    assert seen == {name: {True} for _, name, _ in watched}
