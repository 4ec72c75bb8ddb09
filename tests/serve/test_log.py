"""The log by itself: what plain batches leave in it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from shoal.serve import log as module
from shoal.serve.contract import Unavailable
from shoal.serve.log import Batch, Forgotten, Half, Log, Record, Used, Waiting


def batch(*records: Record, **content: Any) -> Batch:
    empty = Batch([], [], [], [], 0, [], [], {})
    return empty._replace(records=list(records), **content)


def record(position: int, time: float = 0.0, kind: Any = "learn") -> Record:
    return Record(position, time, kind, 2, f"body {position}".encode())


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'log.sqlite'}"


@pytest.fixture
def log(url: str) -> Iterator[Log]:
    found = Log(url, owned=True)
    yield found
    found.close()


def test_a_commit_is_on_the_disk_when_it_returns(log: Log) -> None:
    """No power cut can be made here; what SQLite promises is `full` (2), with a log of its own."""
    for _ in range(2):  # of every connection
        with log._engine.connect() as connection:
            assert connection.exec_driver_sql("pragma synchronous").scalar() == 2
            assert connection.exec_driver_sql("pragma journal_mode").scalar() == "wal"
        log._engine.dispose()


def test_a_fork_of_a_killed_service_may_have_the_lock_for_a_moment(tmp_path: Path) -> None:
    held = module.lock(tmp_path / "lock", "the folder")
    release = threading.Timer(0.1, os.close, [held])
    release.start()
    os.close(module.lock(tmp_path / "lock", "the folder"))
    release.join()


def test_records_are_read_in_order_between_two_positions(log: Log, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE", 3)
    log.commit(batch(*map(record, range(1, 4))))
    log.commit(batch(*map(record, range(4, 8))))
    assert [*log.read()] == [*map(record, range(1, 8))]
    found: list[tuple[int, int | None, list[int]]] = [
        (2, None, [3, 4, 5, 6, 7]),
        (2, 5, [3, 4, 5]),
        (0, 3, [1, 2, 3]),
        (7, None, []),
        (5, 5, []),
    ]
    for after, until, expected in found:
        assert [one.position for one in log.read(after, until)] == expected
    assert log.last == 7
    log.drop_until(6)
    assert [one.position for one in log.read()] == [7]
    log.drop_until(7)
    assert log.last == 7
    again = Log(url)
    assert again.last == 7
    again.close()


def test_positions_by_time_and_of_what_was_forgotten(log: Log) -> None:
    assert (log.position_at(99.0), log.last_forgotten()) == (0, 0)
    log.commit(batch(record(1, 10.0), record(2, 20.0, "forget"), record(3, 20.0)))
    log.commit(batch(record(4, 30.0, "forget"), record(5, 40.0)))
    assert [log.position_at(time) for time in (9.9, 10.0, 19.9, 20.0, 40.0)] == [0, 1, 1, 3, 5]
    assert log.last_forgotten() == 4
    log.drop_until(4)
    assert log.last_forgotten() == 0


def test_keys_outlive_the_rows_that_wait(log: Log) -> None:
    """Three times of their own: none is that of another."""
    receipts = [Used(f"k{i}", 10.0 * i, b"d", [i, 2]) for i in range(4)]
    waiting = [Waiting(f"{i}" * 22, 2, b"w", b"\0\0") for i in range(4)]
    halves = [Half(f"h{i}", 10.0 * i, b"r", None) for i in range(4)]
    log.commit(batch(receipts=receipts, waiting=waiting, halves=halves))
    names, requests, ids = [one.key for one in receipts], [one.request for one in waiting], [one.id for one in halves]
    assert log.used(["k2", "none", "k0"]) == {"k0": receipts[0], "k2": receipts[2]}
    assert log.predictions_waiting == 8
    log.expire("1" * 22, 20.0, 10.0)
    assert [*log.waiting(requests)] == requests[1:]
    assert [*log.halves(ids)] == ids[2:]
    assert [*log.used(names)] == names[1:]
    assert log.predictions_waiting == 6
    log.expire("3" * 22, 0.0, 30.0)
    assert ([*log.waiting(requests)], [*log.halves(ids)], [*log.used(names)]) == (requests[3:], ids[2:], names[3:])
    log.expire("", 0.0, 0.0)
    assert log.predictions_waiting == 2


def test_predictions_that_wait_are_counted_by_row(log: Log, url: str) -> None:
    one, two = Waiting("1" * 22, 3, b"a", b"\0\0\0"), Waiting("2" * 22, 1, b"b", b"\0")
    log.commit(batch(waiting=[one, two]))
    assert log.predictions_waiting == 4
    marked = one._replace(labeled=b"\1\0\1")
    log.commit(batch(record(1), labeled=[marked], n_labels=2))
    assert log.predictions_waiting == marked.open + two.open == 2
    assert log.waiting(["1" * 22, "2" * 22, "3" * 22]) == {"1" * 22: marked, "2" * 22: two}
    again = Log(url)
    assert again.predictions_waiting == 2
    again.close()


def test_a_batch_is_written_whole_or_not_at_all(log: Log) -> None:
    log.commit(batch(record(1), receipts=[Used("a", 1.0, b"", [])]))
    for bad in (batch(record(2), receipts=[Used("a", 1.0, b"", [])]), batch(record(1), offsets={"t/0": 3})):
        with pytest.raises(Unavailable, match="the log cannot be written: "):
            log.commit(bad)
    assert ([one.position for one in log.read()], log.last, log.offsets()) == ([1], 1, {})

    def gone(body: bytes) -> bytes | None:
        return b"gone" if body == b"secret" else None

    rows = [Waiting(f"{i}" * 22, 1, b"secret", b"\0") for i in range(4)]
    found = [Half("h", 1.0, b"secret", None), Half("g", 1.0, None, '"secret"'), Half("later", 9.0, b"secret", None)]
    log.commit(batch(waiting=rows[:3], halves=found))
    task = Forgotten(2, "t", log.newest_waiting(), 5.0)
    log.commit(batch(record(2, kind="forget"), forgotten=[task]))
    log.commit(batch(waiting=rows[3:]))
    steps = log.blank(task, gone, 2)
    next(steps)
    assert [one.body for one in log.waiting([one.request for one in rows]).values()] == [b"gone"] * 2 + [b"secret"] * 2
    assert log.forgotten() == [task]  # a start would begin anew
    assert len(list(log.blank(task, gone, 2))) == 3
    assert log.forgotten() == []
    assert [one.body for one in log.waiting([one.request for one in rows]).values()] == [b"gone"] * 3 + [b"secret"]
    halves = {"h": found[0]._replace(row=b"gone"), "g": found[1], "later": found[2]}
    assert log.halves(["h", "g", "later"]) == halves


def test_offsets_go_on_and_never_back_to_a_snapshot(log: Log) -> None:
    log.begin_at({"t/0": 0, "t/1": 5})
    assert log.offsets() == {"t/0": 0, "t/1": 5}
    log.commit(batch(record(1), offsets={"t/1": 9, "t/2": 1}, halves=[Half("a", 1.0, b"r", None)]))
    log.begin_at({"t/0": 2, "t/1": 8, "t/2": 1, "t/3": 0})  # of an older snapshot, or a newer one
    assert log.offsets() == {"t/0": 2, "t/1": 9, "t/2": 1, "t/3": 0}
    log.commit(batch(record(2), halves=[Half("a", 2.0, None, None)]))  # it replaces the one before
    assert log.halves(["a", "b"]) == {"a": Half("a", 2.0, None, None)}
    log.begin_at({})
    log.ping()
    assert log.size() >= 4096


def test_what_a_commit_writes_is_seen_when_it_has_ended_and_not_before(
    log: Log, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.commit(batch(record(1, 10.0)))
    session, is_sent, may_end = log._session, threading.Event(), threading.Event()
    assert session is not None
    commit = session.commit

    def held() -> None:
        is_sent.set()
        assert may_end.wait(60)
        commit()

    monkeypatch.setattr(session, "commit", held)
    tried = batch(
        record(2, 20.0, "forget"), receipts=[Used("k", 20.0, b"d", [2, 1])], offsets={"t/0": 3},
        waiting=[Waiting("1" * 22, 2, b"w", b"\0\0")], halves=[Half("h", 20.0, b"r", None)],
    )  # fmt: skip

    def seen(one: Log) -> list[object]:
        stored = [[*one.read()], one.used(["k"]), one.offsets(), one.waiting(["1" * 22]), one.halves(["h"])]
        return [*stored, one.position_at(99.0), one.last_forgotten(), one.last, one.predictions_waiting]

    before: list[object] = [[record(1, 10.0)], {}, {}, {}, {}, 1, 0, 1, 0]
    with ThreadPoolExecutor(1) as writer:
        done = writer.submit(log.commit, tried)
        try:
            assert is_sent.wait(60)
            reader = Log(url)
            assert seen(reader) == before
            assert seen(log) == before
            reader.close()
            assert not done.done()
        finally:
            may_end.set()
        done.result(60)
    after = [[record(1, 10.0), *tried.records], {"k": tried.receipts[0]}, {"t/0": 3}, {"1" * 22: tried.waiting[0]}]
    assert seen(log) == [*after, {"h": tried.halves[0]}, 2, 2, 2, 2]
    reader = Log(url)
    assert seen(reader) == seen(log)
    reader.close()
