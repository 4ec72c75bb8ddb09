"""Whose the log is: one writer owns it, knows its own commits, and goes on only with the log that its model is of."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError
from tests.serve.material import assert_same, fold_in_one_go, predict_one, records, rows, write_model

from shoal.serve.contract import Unavailable
from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.learner_thread import Rhythm
from shoal.serve.log import Batch, InDoubt, Log, Record, Taken, Used, Waiting

MAIL = {"user": "u1", "size": 1.0}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'log.sqlite'}"


@pytest.fixture
def log(url: str) -> Iterator[Log]:
    found = Log(url, owned=True)
    yield found
    found.close()


def batch(*positions: int, key: str = "key", request: str = "") -> Batch:
    """Records, or a row that waits."""
    waits = [Waiting(request, 1, b"row", b"\0")] if request else []
    used = [Used(key, 1.0, b"digest", [1, 1, False])] if positions else []
    return Batch([Record(one, 1.0, "learn", 1, key.encode()) for one in positions], used, waits, [], 0, [], [], {})


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("blub", "no URL"), ("", "no URL"), ("postgresql+psycopg://a:secret@b:port/c", "no URL"),
        ("postgres://a:secret@b/c", "begins with postgres;"), ("postgresql://a/b", "begins with postgresql;"),
        ("mysql://a/b", "begins with mysql;"), ("sqlite://", "in memory"),
    ],
)  # fmt: skip
def test_an_address_that_is_none_says_what_is_expected(wrong: str, words: str) -> None:
    with pytest.raises(ValueError, match=rf"{words}.*expected sqlite:///FILE or postgresql\+psycopg://") as raised:
        Log(wrong, owned=True)
    assert "secret" not in str(raised.value)


def test_a_log_has_one_owner_and_any_number_of_readers(model: Path, log: Log, url: str, tmp_path: Path) -> None:
    log.commit(batch(1))
    (tmp_path / "other.sqlite").symlink_to(tmp_path / "log.sqlite")
    for one in (url, f"sqlite:///{tmp_path / 'other.sqlite'}"):
        with pytest.raises(ValueError, match="the log is in use by another process"):
            Engine(model, tmp_path / "engine", EngineSettings(log=one))
    reader = Log(url)
    assert [record.position for record in reader.read()] == [1]
    reader.close()
    log.close()
    Log(url, owned=True).close()


@pytest.mark.parametrize("tried", [batch(2), batch(request="a" * 22)], ids=["records", "rows that wait"])
@pytest.mark.parametrize("is_written", [False, True], ids=["lost", "written"])
def test_a_commit_in_doubt_is_settled_by_its_own_id(
    tried: Batch, is_written: bool, log: Log, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks before or behind the commit; in between another writer may have come."""
    log.commit(batch(1, key="first"))
    break_off(log, is_written, monkeypatch)
    with pytest.raises(InDoubt, match="broke"):
        log.commit(tried)
    assert log.settle(tried) == is_written
    assert (log.last, log.predictions_waiting) == (1 + is_written * len(tried.records), is_written * len(tried.waiting))
    log.ping()
    log.commit(batch(log.last + 1, key="next"))
    break_off(log, is_written, monkeypatch)
    with pytest.raises(InDoubt, match="broke"):
        log.commit(batch(log.last + 1, key="ours"))
    other = Log(url)  # as if the lock had been lost
    other.commit(batch(other.last + 1, key="theirs"))
    with pytest.raises(Taken, match=f"another writer has the log: the records behind {log.last}"):
        log.settle(batch(log.last + 1, key="ours"))
    other.close()


def break_off(log: Log, is_written: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    session = log._session
    assert session is not None
    commit = session.commit

    def broken() -> None:
        if is_written:
            commit()
        raise OperationalError("commit", None, OSError("the connection broke"))

    monkeypatch.setattr(session, "commit", broken)


def test_nothing_is_written_behind_another_writer(log: Log, url: str) -> None:
    log.commit(batch(1))
    other = Log(url)
    other.commit(batch(2, key="theirs"))
    writes: list[Callable[[], object]] = [
        lambda: log.commit(batch(2, key="ours")), lambda: log.commit(batch(request="b" * 22)), log.ping,
        lambda: log.drop_until(1), lambda: log.expire("c" * 22, 9.0, 9.0), lambda: log.begin_at({"mails/0": 3}),
    ]  # fmt: skip
    for write in writes:
        with pytest.raises(Taken):
            write()
    assert [record.body for record in other.read()] == [b"key", b"theirs"]
    assert set(other.used(["key", "theirs", "ours"])) == {"key", "theirs"}
    assert (other.waiting(["b" * 22]), other.offsets()) == ({}, {})
    other.close()


def test_a_service_whose_log_is_taken_acknowledges_nothing_more(model: Path, url: str, tmp_path: Path) -> None:
    mails = records(40, seed=14)
    settings = EngineSettings(log=url, keep_log=True)
    with Engine(model, tmp_path / "engine", settings) as engine:
        engine.learn(rows(mails[:10]), key="ours").result()
        assert engine.wait_until_learned(timeout=30)
        body = next(iter(engine._log.read())).body
        other = Log(url)
        other.commit(Batch([Record(2, 1.0, "learn", 10, body)], [], [], [], 0, [], [], {}))
        other.close()
        with pytest.raises(Unavailable, match="another writer has the log"):
            engine.learn(rows(mails[10:20])).result()
        with pytest.raises(Unavailable, match="another writer has the log"):
            engine.learn(rows(mails[20:]))
        found = predict_one(engine, MAIL)
        assert found.id is None
        assert "another writer has the log" in str(found.note)
        assert predict_one(engine, MAIL, wait=False)._replace(note=found.note) == found
        assert engine.trouble
        assert engine.wait_until_learned(timeout=30)
        assert engine.describe()["rows"] == 10
        assert engine.gauges()["queue_rows"] == 0
    with Engine(None, tmp_path / "engine", settings) as engine:
        assert engine.describe()["logged"] == 2
        assert_same(engine.export(), fold_in_one_go(model, url, tmp_path / "again.shoal"))


def test_a_start_refuses_a_log_that_does_not_go_on_where_the_model_ends(model: Path, url: str, tmp_path: Path) -> None:
    mails, folder = records(100, seed=15), tmp_path / "engine"
    settings = EngineSettings(log=url, keep=1, rhythm=Rhythm(10**9, 1e9))
    with Engine(model, folder, settings) as engine:
        engine.learn(rows(mails[:10])).result()
    older = shutil.copytree(folder, tmp_path / "older")
    shutil.copy(tmp_path / "log.sqlite", tmp_path / "older.sqlite")
    with Engine(None, folder, settings) as engine:
        engine.learn(rows(mails[10:20])).result()
    new = f"sqlite:///{tmp_path / 'new.sqlite'}"
    for path, log, words in (
        (tmp_path / "lost", url, "the newest snapshot has 0 records, but up to record 2 they were dropped"),
        (older, url, "the newest snapshot has 1 records, but up to record 2 they were dropped"),
        (folder, f"sqlite:///{tmp_path / 'older.sqlite'}", "the log ends at record 1, but the newest snapshot has 2"),
        (folder, new, "this database holds another log"),
        (folder, new, "this database holds another log"),  # it has been made by now
    ):
        with pytest.raises(ValueError, match=rf"{words}.*restore the folder and the database.*--new-log"):
            Engine(model, path, settings._replace(log=log))
    with pytest.raises(ValueError, match="2 records were written"):
        Engine(None, copy_ahead(folder, tmp_path), settings._replace(new_log=True))
    with Engine(None, folder, settings._replace(log=new, new_log=True)) as engine:
        assert engine.learn(rows(mails[20:30])).result().position == 3
        engine.close(snapshot=False)
    for new_log in (False, True):  # the log now belongs to the folder
        with Engine(None, folder, settings._replace(log=new, new_log=new_log)) as engine:
            assert engine.describe()["logged"] == 3


def copy_ahead(folder: Path, target: Path) -> Path:
    """The same with a snapshot that no log has reached."""
    found = shutil.copytree(folder, target / "ahead")
    newest = max((found / "snapshots").glob("*.shoal"))
    newest.rename(newest.with_stem(f"{7:016}"))
    return found


def test_those_who_wait_are_told_at_once_that_the_database_is_away(
    model: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One commit is in doubt; who comes after it does not wait until that is known."""
    with Engine(model, tmp_path / "engine", EngineSettings(log=url)) as engine:
        log = engine._log

        def away(*_: Any) -> Any:
            raise Unavailable("the log cannot be written: gone")

        def in_doubt(*_: Any) -> Any:
            raise InDoubt("the log cannot be written: broken")

        with engine._fold.columns:  # so that these wait for the first
            first = engine.learn(rows(records(5)), key="first")
            monkeypatch.setattr(log, "commit", in_doubt)
            monkeypatch.setattr(log, "settle", away)
            while not engine._fold.accepting.locked():
                pass
            behind: list[Future[Any]] = [engine.predict(rows([MAIL])), engine.learn(rows(records(5)), key="second")]
        with pytest.raises(Unavailable, match="gone"):
            behind[1].result(5)
        with pytest.raises(Unavailable, match="gone"):
            engine.learn(rows(records(1)))
        for found in (behind[0].result(5)[0], engine.predict(rows([MAIL])).result()[0], predict_one(engine, MAIL)):
            assert found.id is None
            assert str(found.note).endswith("no id, as no label can come: the log cannot be written: gone")
        with pytest.raises(Unavailable, match="gone"):
            engine.forget("u1")
        assert "log_bytes" not in engine.gauges()
        assert not first.done()
        monkeypatch.setattr(log, "settle", lambda batch: False)
        with pytest.raises(Unavailable, match="broken"):
            first.result(5)
        monkeypatch.undo()
        while engine.trouble:
            time.sleep(0.01)
        assert engine.learn(rows(records(5)), key="first").result(5).position == 1
        monkeypatch.setattr("shoal.serve.log_writer.PATIENCE", -1.0)
        monkeypatch.setattr(log, "commit", in_doubt)
        monkeypatch.setattr(log, "settle", away)
        with pytest.raises(Unavailable, match="may have been accepted: ask again, with its key"):
            engine.learn(rows(records(5)), key="third").result(5)
        monkeypatch.setattr(log, "settle", lambda batch: True)
