"""The writer of the log: several commands in one commit, commits that fail, and what they leave behind."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from tests.serve.material import assert_same, fold_in_one_go, predict_one, records, rows, write_model

from shoal.serve import log_writer
from shoal.serve.contract import Conflict, LimitExceeded, Messages, Refused, Unavailable, UnknownTask
from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.http.app import application
from shoal.serve.limits import Caps

MAILS = records(20, seed=20, late_columns=False)
ASKED = {name: value for name, value in MAILS[0].items() if name != "spam"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def engine(model: Path, tmp_path: Path) -> Iterator[Engine]:
    with Engine(model, tmp_path / "engine", EngineSettings(keep_log=True)) as found:
        yield found


@contextmanager
def in_one_commit(engine: Engine) -> Iterator[list[Any]]:
    """A commit is held up; what is asked in the block makes the next one. The batches that were committed."""
    commit, begun, free, batches = engine._log.commit, threading.Event(), threading.Event(), []

    def held(batch: Any) -> None:
        batches.append(batch)
        begun.set()
        assert free.wait(30)
        commit(batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine._log, "commit", held)
        first = engine.predict(rows([ASKED]))
        assert begun.wait(30)
        yield batches
        free.set()
        first.result()
        engine.expire().result()  # all before it has been committed


@contextmanager
def failing(engine: Engine) -> Iterator[None]:
    """Nothing is written."""

    def fail(*_: Any) -> Any:
        raise Unavailable("the log cannot be written: disk full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine._log, "commit", fail)
        patch.setattr(engine._log, "settle", lambda *_: False)
        yield


def until_well(engine: Engine) -> None:
    while engine.trouble:
        time.sleep(0.01)


def ready(engine: Engine) -> tuple[int, dict[str, str]]:
    async def ask() -> httpx.Response:
        app = httpx.ASGITransport(application(engine, []))
        async with httpx.AsyncClient(transport=app, base_url="http://localhost") as client:
            return await client.get("/ready")

    answer = asyncio.run(ask())
    return answer.status_code, answer.json()


def learned(engine: Engine) -> float:
    assert engine.wait_until_learned(timeout=30)
    return engine.gauges()["rows_learned"]


def test_two_labels_for_one_prediction_in_one_commit(engine: Engine) -> None:
    name = str(predict_one(engine, ASKED).id)
    waiting = engine.gauges()["predictions_waiting"]
    with in_one_commit(engine):
        one, two = engine.label([(name, "yes")]), engine.label([(name, "yes")])
        other = engine.learn(rows(MAILS[:3]))
    assert one.result().accepted == 1
    assert (two.result().accepted, two.result().double) == (0, [name])
    assert other.result().rows == 3
    assert learned(engine) == 4
    assert engine.gauges()["predictions_waiting"] == waiting + 1 - 1  # of the one that marks the commit


def test_predictions_do_not_wait_behind_rows_that_are_checked(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """They join the commit of these rows; what was asked before them comes in the next, in its order."""
    check, commit = engine._writer._admit, engine._log.commit
    found, batches = list[Any](), list[Any]()

    def noted(batch: Any) -> None:
        batches.append(batch)
        commit(batch)

    def asked_meanwhile(*given: Any) -> Any:
        monkeypatch.setattr(engine._writer, "_admit", check)
        found.append(engine.learn(rows(MAILS[1:3])))
        found.append(engine.predict(rows([ASKED])))
        found.append(engine.learn(rows(MAILS[3:4])))
        return check(*given)

    monkeypatch.setattr(engine._log, "commit", noted)
    with in_one_commit(engine):
        monkeypatch.setattr(engine._writer, "_admit", asked_meanwhile)
        first = engine.learn(rows(MAILS[:1]))
    assert [one.result().position for one in (first, found[0], found[2])] == [1, 2, 3]
    assert [(len(one.records), len(one.waiting)) for one in batches if any(one)] == [(0, 1), (1, 1), (2, 0)]
    assert learned(engine) == 4
    assert engine.gauges()["queue_rows"] == 0
    name = str(found[1].result()[0].id)
    assert engine.label([(name, "yes")]).result().accepted == 1


def test_one_key_in_one_commit(engine: Engine) -> None:
    name = str(predict_one(engine, ASKED).id)
    with in_one_commit(engine) as batches:
        found = [engine.learn(rows(MAILS[:2]), key="a"), engine.learn(rows(MAILS[:2]), key="a")]
        other, label = engine.learn(rows(MAILS[2:5]), key="a"), engine.label([(name, "no")], key="b")
        again = engine.label([(name, "no")], key="b")
    assert [one.result().repeated for one in found] == [False, True]
    with pytest.raises(Conflict, match="'a'"):
        other.result()
    assert (label.result().accepted, again.result().accepted) == (1, 1)
    assert again.result() == label.result()._replace(repeated=True)
    assert learned(engine) == 3
    assert [len(batch.receipts) for batch in batches if batch.receipts] == [1, 1]


def test_messages_of_one_commit_find_each_other(engine: Engine) -> None:
    """A row and its label, in two polls; and once more, which is one too many."""
    row, label = Messages([], [("x", ASKED)], [], {"m/0": 1}, []), Messages([], [], [("x", "yes")], {"t/0": 1}, [])
    with in_one_commit(engine):
        found = [engine.follow(messages) for messages in (row, label, label._replace(offsets={"t/0": 2}))]
    assert [one.result()[1:3] for one in found] == [(0, 0), (1, 0), (0, 1)]
    assert learned(engine) == 1
    assert engine.offsets() == {"m/0": 1, "t/0": 2}


def test_good_and_bad_requests_in_one_commit_keep_their_order(engine: Engine, model: Path, tmp_path: Path) -> None:
    with in_one_commit(engine):
        good = [engine.learn(rows([mail])) for mail in MAILS[:3]]
        bad = [engine.learn(rows([{**mail, "size": "huge"}])) for mail in MAILS[3:5]]
        forgotten, unknown = engine.forget("u1"), engine.forget("nobody")
        more = [engine.learn(rows([{**mail, "fresh": 1.0}])) for mail in MAILS[5:8]]
        last = engine.forget("u0")
    for one in bad:
        with pytest.raises(Refused, match="huge"):
            one.result()
    with pytest.raises(UnknownTask, match="'nobody'"):
        unknown.result()
    assert [one.result().position for one in (*good, forgotten, *more, last)] == [*range(1, 9)]
    assert learned(engine) == 6
    assert_same(engine.export(), fold_in_one_go(model, f"sqlite:///{engine.folder / 'log.sqlite'}", tmp_path / "again"))


@pytest.mark.parametrize(("most", "n_groups"), [(5, [3]), (4, [2, 1]), (3, [1, 2]), (2, [1, 1, 1])])
def test_requests_are_checked_together_up_to_so_many_rows(
    most: int, n_groups: list[int], engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests of two, two and one row."""
    groups, hand_on = [], engine._writer._hand_on

    def noted(group: Any) -> None:
        groups.append(group)
        hand_on(group)

    monkeypatch.setattr(engine._writer, "_hand_on", noted)
    monkeypatch.setattr(log_writer, "MOST_ROWS", most)
    with in_one_commit(engine):
        found = [engine.learn(rows(MAILS[i : i + 2][:n])) for i, n in ((0, 2), (2, 2), (4, 1))]
    assert [one.result().position for one in found] == [1, 2, 3]
    assert learned(engine) == 5
    ends = [group.last for group in groups if group.rows]
    assert ends == [sum(n_groups[: i + 1]) for i in range(len(n_groups))]


def test_a_commit_that_fails_leaves_no_trace_in_limits(model: Path, tmp_path: Path) -> None:
    caps = Caps(new_tasks_a_minute=1, new_columns_a_minute=1)
    with Engine(model, tmp_path / "engine", EngineSettings(caps=caps)) as engine:
        with failing(engine):
            lost = engine.learn(rows([{**MAILS[0], "user": "n1", "fresh": 1.0}]))
            with pytest.raises(Unavailable, match="disk full"):
                lost.result()
        until_well(engine)
        with pytest.raises(UnknownTask):
            engine.forget("n1").result()
        assert "fresh" not in engine.describe()["columns"]
        engine.learn(rows([{**MAILS[0], "user": "n2", "other": 1.0}])).result()
        for row in ({**MAILS[0], "user": "n3"}, {**MAILS[0], "fresh": 1.0}):
            with pytest.raises(LimitExceeded):
                engine.learn(rows([row])).result()
        engine.forget("n2").result()
        assert learned(engine) == 1
        assert engine.gauges()["queue_rows"] == 0


def test_a_label_whose_commit_fails_may_come_again(engine: Engine) -> None:
    name = str(predict_one(engine, ASKED).id)
    with failing(engine):
        lost = engine.label([(name, "yes")], key="a")
        with pytest.raises(Unavailable):
            lost.result()
    until_well(engine)
    assert engine.gauges()["labels_accepted"] == 0
    found = engine.label([(name, "no")], key="a").result()
    assert (found.accepted, found.repeated, found.position) == (1, False, 1)
    assert engine.gauges()["predictions_waiting"] == 0
    assert learned(engine) == 1


def test_one_line_a_minute_says_that_the_log_cannot_be_written(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [1_000.0]
    monkeypatch.setattr(log_writer, "time", SimpleNamespace(time=time.time, sleep=time.sleep, monotonic=lambda: now[0]))
    for seconds, n_lines in ((0.0, 1), (59.0, 1), (60.0, 2)):
        now[0] = 1_000.0 + seconds
        with failing(engine), pytest.MonkeyPatch.context() as patch:
            patch.setattr(engine._log, "ping", engine._log.commit)  # which fails
            assert predict_one(engine, ASKED).id is None
            with pytest.raises(Unavailable):
                engine.learn(rows(MAILS[:1])).result()
            assert ready(engine) == (503, {"status": "not ready", "why": "the log cannot be written: disk full"})
        until_well(engine)
        assert ready(engine) == (200, {"status": "ready"})
        lines = [one.message for one in caplog.records if one.levelname == "ERROR"]
        assert lines == n_lines * [
            "the log cannot be written: disk full; nothing is learned, and predictions have no ids"
        ]
    assert predict_one(engine, ASKED).id is not None


def test_a_full_disk_stops_no_prediction(model: Path, tmp_path: Path) -> None:
    """On a real one, in a mount of its own: what is accepted waits for room, and `trouble` says so meanwhile."""
    disk = tmp_path / "disk"
    disk.mkdir()
    script = f"mount -t tmpfs -o size=8m tmpfs {disk} && exec {sys.executable} -c '{ON_A_FULL_DISK}' {model} {disk}"
    found = subprocess.run(["unshare", "-m", "bash", "-c", script], capture_output=True, text=True, timeout=300)
    if "unshare" in found.stderr or "mount:" in found.stderr:
        pytest.skip("this process may not mount")
    assert found.returncode == 0, found.stderr
    assert found.stdout.split() == ["None", "in-trouble", "well", "id"]
    assert found.stderr.count("nothing is learned") == 1
    assert found.stderr.count("the log can be written again") == 1


ON_A_FULL_DISK = """
import sys, time
from contextlib import suppress
from pathlib import Path
from tests.serve.material import predict_one, records, rows
from shoal.serve.contract import Unavailable
from shoal.serve.engine import Engine
disk = Path(sys.argv[2])
asked, mails = {"user": "u1", "size": 1.0}, records(200)
with Engine(Path(sys.argv[1]), disk / "engine") as engine:
    before = predict_one(engine, asked)
    with (disk / "rest").open("wb", 0) as rest, suppress(OSError):
        while True:
            rest.write(bytes(4096))
    with suppress(Unavailable):
        for _ in range(20):
            engine.learn(rows(mails)).result()
    found = predict_one(engine, asked)
    assert found.predicted == before.predicted and "disk is full" in found.note, found
    print(found.id)
    time.sleep(1.0)
    assert engine.gauges()["log_in_trouble"] == 1.0 and "disk is full" in engine.trouble
    print("in-trouble")
    (disk / "rest").unlink()
    while engine.trouble:
        time.sleep(0.01)
    print("well")
    engine.learn(rows(mails)).result()
    assert predict_one(engine, asked).id is not None and engine.gauges()["log_in_trouble"] == 0.0
    print("id")
"""
