"""Killed at random moments under load: every acknowledged row is in the model, none twice, and the model is the log's.

`make soak` kills fifty times. The log is in SQLite, and in a PostgreSQL server that is stopped and started, too.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.serve.material import assert_same, fold_in_one_go, records, rows, write_model
from tests.serve.postgres import Postgres, Proxy, server

from shoal import PassiveAggressive
from shoal.serve import log_writer
from shoal.serve.backup import back_up, restore
from shoal.serve.contract import Conflict, Messages, Unavailable
from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.learner_thread import Rhythm
from shoal.serve.log import Batch, Log
from shoal.serve.log_writer import LogWriter
from shoal.serve.row_codec import unpack

KILLS = int(os.environ.get("SOAK", 4))
SETTINGS = EngineSettings(keep_log=True, rhythm=Rhythm(rows=150))
BATCH = 5
CHANGED = -1  # said beside the numbers of acknowledged requests


def change_often(engine: Engine, models: Sequence[Path], changed: Connection) -> None:
    """Put other models in place, let candidates learn, promote or end them, and return to what was replaced."""
    chance = random.Random()
    try:
        while True:
            what = chance.choice(["swap", "shadow", "promote", "rollback", "rollback", "drop"])
            came = what in ("swap", "shadow")
            with suppress(Conflict):
                engine.change(what, Path(shutil.copy(chance.choice(models), engine.new_file())) if came else None)
                changed.send(CHANGED)
    except BaseException:
        changed.send(None)
        raise


def serve(folder: Path, log: str, first: int, acknowledged: Connection, models: Sequence[Path]) -> None:
    """Learn request after request, several on their way at once, and say which were acknowledged; change the model
    meanwhile, if there are others."""
    mails = records(2_000, seed=20)
    with Engine(None, folder, SETTINGS._replace(log=log)) as engine:
        if models:
            threading.Thread(target=change_often, args=(engine, models, acknowledged), daemon=True).start()
        sent = []
        for i in range(first, 10**9):
            start = BATCH * i % 2_000
            batch = [{**mail, "size": float(BATCH * i + j)} for j, mail in enumerate(mails[start : start + BATCH])]
            sent.append((i, engine.learn(rows(batch), key=f"request {i}")))
            if len(sent) > 10:
                done, future = sent.pop(0)
                future.result()
                acknowledged.send(done)


def kill_often(model: Path, folder: Path, log: str, kills: int, models: Sequence[Path] = ()) -> None:
    """Start, kill, start again; then compare."""
    chance = random.Random(os.environ.get("SOAK_SEED", "seed"))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.serve.warm"])
    Engine(model, folder, SETTINGS._replace(log=log)).close()
    acknowledged: set[int] = set()
    for _ in range(kills):
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=serve, args=(folder, log, max(acknowledged, default=-1) + 1, there, models))
        process.start()
        there.close()
        assert here.poll(300), "nothing was acknowledged in five minutes"
        while models and CHANGED not in acknowledged:
            acknowledged.add(here.recv())
        acknowledged.discard(CHANGED)
        ends = time.monotonic() + chance.uniform(0.0, 0.6)
        while time.monotonic() < ends:
            if here.poll(0.01):
                acknowledged.add(here.recv())
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        try:
            while here.poll():
                acknowledged.add(here.recv())
        except EOFError:
            pass
        acknowledged.discard(CHANGED)
    with Engine(None, folder, SETTINGS._replace(log=log)) as engine:
        assert engine.wait_until_learned(timeout=60)
        if engine.describe()["candidate"]:
            engine.change("promote")
        exported = engine.export()
    reader = Log(log)
    learned = [record for record in reader.read() if record.kind == "learn"]
    assert (reader.last - len(learned) >= kills) == bool(models)  # the others change the model
    sizes = [size for record in learned for size in unpack(record.body).frame["size"].cast(float).to_list()]
    reader.close()
    assert len(sizes) == len(set(sizes))
    assert {float(BATCH * i + j) for i in acknowledged for j in range(BATCH)} <= set(sizes)
    assert len(acknowledged) > kills
    first = folder / "snapshots" / f"{0:016}.shoal"
    assert_same(exported, fold_in_one_go(first, log, folder / "again.shoal", folder=folder))


@pytest.mark.timeout(1200)
def test_killed_while_models_change(tmp_path: Path) -> None:
    """The one or the other answers then, never a mixture, and the candidate goes on."""
    (tmp_path / "other").mkdir()
    models = [write_model(tmp_path, PassiveAggressive()), write_model(tmp_path / "other", PassiveAggressive(C=0.1))]
    log = f"sqlite:///{tmp_path / 'log.sqlite'}"
    kill_often(models[0], tmp_path / "engine", log, max(KILLS * 2 // 5, 2), models)


@pytest.mark.timeout(1200)
def test_killed_under_load(tmp_path: Path) -> None:
    kill_often(write_model(tmp_path), tmp_path / "engine", f"sqlite:///{tmp_path / 'log.sqlite'}", KILLS)


def forget_and_die(folder: Path, log: str, blanked: int | None) -> None:
    """Forget a task, and be killed before the commit, or when so many rows are blanked."""
    commit, step = Log.commit, LogWriter._blank_some
    steps = 0

    def killed(self: Log, batch: Batch) -> None:
        if batch.forgotten and blanked is None:
            os.kill(os.getpid(), signal.SIGKILL)
        commit(self, batch)

    def counted(self: LogWriter) -> None:
        nonlocal steps
        step(self)
        steps += 1
        if steps == blanked:
            os.kill(os.getpid(), signal.SIGKILL)

    log_writer.LOOKED = 1
    Log.commit, LogWriter._blank_some = killed, counted  # type: ignore[method-assign]
    with Engine(None, folder, SETTINGS._replace(log=log)) as engine:
        engine.forget("u1").result()


def test_killed_while_a_task_is_forgotten(tmp_path: Path) -> None:
    """If the deletion stands in the log, the next start blanks all that waited; else nothing is blanked."""
    folder, log = tmp_path / "engine", f"sqlite:///{tmp_path / 'log.sqlite'}"
    asked = [{name: value for name, value in mail.items() if name != "spam"} for mail in records(20, seed=15)]
    asked[3]["user"] = asked[15]["user"] = "u1"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.serve.warm"])
    with Engine(write_model(tmp_path, PassiveAggressive()), folder, SETTINGS._replace(log=log)) as engine:
        answers = sorted((engine.predict(rows([mail])).result()[0] for mail in asked), key=lambda one: str(one.id))
        engine.follow(Messages([], [("x", {**asked[0], "user": "u1"})], [], {}, [])).result()

    def tasks_that_wait() -> list[str | None]:
        reader = Log(log)
        found = sorted(reader.waiting([str(one.id).partition("-")[0] for one in answers]).values())
        half = reader.halves(["x"])["x"].row
        reader.close()
        return [unpack(body).frame["user"][0] for body in (*(one.body for one in found), half or b"")]

    all_there = [*(one.task for one in answers), "u1"]
    blank = [None if task == "u1" else task for task in all_there]
    for blanked, expected in ((None, all_there), (9, blank)):
        process = context.Process(target=forget_and_die, args=(folder, log, blanked))
        process.start()
        process.join(120)
        assert process.exitcode == -signal.SIGKILL
        assert tasks_that_wait() == (all_there if blanked is None else [*blank[:9], *all_there[9:]])
        with Engine(None, folder, SETTINGS._replace(log=log)) as engine:
            assert ("u1" in engine.tasks()) == (blanked is None)
            label = engine.label([(str(answers[i].id), "yes") for i in range(10, 20) if all_there[i] != "u1"])
            assert label.result().accepted + len(label.result().double) > 5
        assert tasks_that_wait() == expected


def test_a_log_whose_last_record_is_cut_off_serves_without_it(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    mails, cut = records(120, seed=13), tmp_path / "cut"
    with Engine(model, tmp_path / "engine", SETTINGS._replace(rhythm=Rhythm(rows=10**9, seconds=1e9))) as engine:
        for i in range(0, 120, 12):
            engine.learn(rows(mails[i : i + 12])).result()
        shutil.copytree(engine.folder, cut)  # as a crash leaves it, but
        waiting = next(cut.glob("*-wal"))
        waiting.write_bytes(waiting.read_bytes()[:-100])
    with Engine(None, cut, SETTINGS) as engine:
        assert engine.wait_until_learned(timeout=30)
        assert engine.describe()["rows"] == 108
        engine.learn(rows(mails[108:])).result()
        assert engine.wait_until_learned(timeout=30)
        assert_same(engine.export(), fold_in_one_go(model, f"sqlite:///{cut / 'log.sqlite'}", tmp_path / "again.shoal"))


def until(there: Callable[[], bool]) -> None:
    ends = time.monotonic() + 30
    while not there():
        assert time.monotonic() < ends
        time.sleep(0.05)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with server() as found:
        yield found


@pytest.fixture
def proxy(postgres: Postgres) -> Iterator[Proxy]:
    found = Proxy(postgres.address)
    yield found
    found.close()


@pytest.mark.timeout(1200)
def test_killed_and_cut_off_from_postgresql(postgres: Postgres, tmp_path: Path) -> None:
    model = write_model(tmp_path)
    kill_often(model, tmp_path / "killed", postgres.url, max(KILLS * 2 // 5, 2))
    mails = records(60, seed=21)
    with Engine(None, tmp_path / "killed", SETTINGS._replace(log=postgres.url)) as engine:
        before = engine.learn(rows(mails[:20]), key="before").result().position
        asked = [{name: value for name, value in mail.items() if name != "spam"} for mail in records(3, seed=22)]
        [(_, answers)] = engine.predict_each(asked)
        ids = [answer.id for answer in answers.result()]
        postgres.stop()
        cut_off = engine.learn(rows(mails[20:40]), key="meanwhile")
        until(lambda: engine.trouble != "")
        with pytest.raises(Unavailable):
            engine.learn(rows(mails[40:]), key="meanwhile, too")
        assert [one.id for one in engine.predict(rows(asked)).result()] == [None] * 3
        [(_, answers)] = engine.predict_each(asked)
        assert all("the log cannot be written" in one.note for one in answers.result())
        assert engine.predict(rows(mails[:3]), wait=False).result()
        assert "log_bytes" not in engine.gauges()
        postgres.start()
        until(lambda: not engine.trouble)
        assert isinstance(cut_off.exception(30), Unavailable)  # asked again with its key, it is learned once
        assert engine.learn(rows(mails[20:40]), key="meanwhile").result().position == before + 1
        assert engine.learn(rows(mails[:20]), key="before").result().repeated
        assert engine.label([(name, "yes") for name in ids]).result().accepted == 3  # they waited through it
        assert engine.wait_until_learned(timeout=30)
        first = tmp_path / "killed" / "snapshots" / f"{0:016}.shoal"
        assert_same(engine.export(), fold_in_one_go(first, postgres.url, tmp_path / "again.shoal"))


def test_a_database_has_one_service(postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second one refuses to start. One whose connection is cut refuses all until the log is its own again."""
    postgres.run("create database owned")
    url, mails, model = postgres.url_at(postgres.address[1], "owned"), records(40, seed=23), write_model(tmp_path)
    settings = SETTINGS._replace(log=url)
    with Engine(model, tmp_path / "one", settings) as one:
        one.learn(rows(mails[:10])).result()
        with monkeypatch.context() as patched:
            patched.setattr("shoal.serve.log.FIRST_PATIENCE", 0.1)
            with pytest.raises(ValueError, match="the log is in use by another process"):
                Engine(model, tmp_path / "other", settings)
        reader = Log(url)
        assert len(list(reader.read())) == 1
        reader.close()
        postgres.run("select pg_terminate_backend(pid) from pg_stat_activity where datname = 'owned'")
        with Engine(model, tmp_path / "other", settings) as other:  # all that it has, the log says
            with pytest.raises(Unavailable, match="another process has it"):
                one.learn(rows(mails[10:20])).result()
            assert "another process has it" in str(one.predict(rows(mails[:1])).result()[0].note)
            assert other.learn(rows(mails[10:20])).result().position == 2
        until(lambda: "another writer has the log" in one._writer.trouble)
        with pytest.raises(Unavailable, match="another writer has the log"):
            one.learn(rows(mails[10:20]))
    with Engine(None, tmp_path / "one", settings) as one:
        assert one.describe()["logged"] == 2
        assert_same(one.export(), fold_in_one_go(model, url, tmp_path / "again.shoal"))


def restored_in_spite_of_kills(saved: Path, folder: Path, url: str) -> None:
    """Restore, be killed at some moment, and do it again; one that had ended behind the copy of the log, too."""
    chance, context = random.Random(os.environ.get("SOAK_SEED", "seed")), multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.serve.warm"])
    left: list[list[Path]] = []
    for _ in range(max(KILLS // 4, 1)):
        process = context.Process(target=restore, args=(saved, folder, url))
        process.start()
        process.join(chance.uniform(0.0, 0.4))
        process.kill()
        process.join()
        if folder.exists():
            left.append(sorted(folder.iterdir()))
            shutil.rmtree(folder)
    restore(saved, folder, url)
    assert all(found == sorted(folder.iterdir()) for found in left)  # whole, or not there
    assert not list(folder.parent.glob("*.restoring"))


def test_a_service_is_moved_to_another_database(postgres: Postgres, tmp_path: Path) -> None:
    """From SQLite to PostgreSQL, and from there to another one; a restore that was killed anywhere is done again."""
    postgres.run("create database moved", "create database again")
    urls = [None, *(postgres.url_at(postgres.address[1], name) for name in ("moved", "again"))]
    mails, model = records(90, seed=26), write_model(tmp_path, PassiveAggressive())
    exported = list[Path]()
    for number, url in enumerate(urls):
        folder, saved = tmp_path / f"engine {number}", tmp_path / f"backup {number}"
        with Engine(model if number == 0 else None, folder, SETTINGS._replace(log=url)) as engine:
            assert engine.wait_until_learned(timeout=30)
            exported.append(engine.export())
            engine.learn(rows(mails[number * 30 : number * 30 + 30])).result()
            log = Log(url or f"sqlite:///{folder / 'log.sqlite'}")
            back_up(folder, log, saved)
            log.close()
            assert engine.wait_until_learned(timeout=30)
            exported.append(engine.export())
        for target in urls[number + 1 : number + 2]:
            assert target is not None
            restored_in_spite_of_kills(saved, tmp_path / f"engine {number + 1}", target)
    for one, other in zip(exported[1::2], exported[2::2], strict=False):
        assert_same(one, other)
    with pytest.raises(ValueError, match="the database is not empty"):
        restore(saved, tmp_path / "third", urls[1])


def test_a_commit_that_comes_late_is_known_again(postgres: Postgres, proxy: Proxy, tmp_path: Path) -> None:
    """The network breaks while the commit waits for a standby. It is decided before another one begins."""
    postgres.run("create database late")
    url, mails, model = postgres.url_at(proxy.port, "late"), records(60, seed=24), write_model(tmp_path)
    with Engine(model, tmp_path / "engine", SETTINGS._replace(log=url)) as engine:
        engine.learn(rows(mails[:10])).result()
        engine.expire().result()  # it came with the first rows, and is a commit, too
        postgres.run("alter system set synchronous_standby_names = 'nobody'", "select pg_reload_conf()")
        try:
            until(lambda: commits_wait(postgres))
            late = engine.learn(rows(mails[10:30]), key="late")
            until(lambda: count(postgres, f"{WAITING} and datname = 'late'") == 1)
            proxy.cut()
            until(lambda: engine.trouble != "")
            with pytest.raises(Unavailable):
                engine.learn(rows(mails[30:37]), key="behind")
            assert not late.done()
        finally:
            postgres.run("alter system reset synchronous_standby_names", "select pg_reload_conf()")
        assert late.result(30).position == 2
        until(lambda: not engine.trouble)
        behind = engine.learn(rows(mails[30:37]), key="behind").result()
        assert (behind.position, behind.repeated) == (3, False)
        assert engine.learn(rows(mails[10:30]), key="late").result().repeated
        assert engine.wait_until_learned(timeout=30)
        assert engine.describe()["rows"] == 37
        assert_same(engine.export(), fold_in_one_go(model, url, tmp_path / "again.shoal"))


WAITING = "pg_stat_activity where wait_event = 'SyncRep'"


def commits_wait(postgres: Postgres) -> bool:
    """Whether the server has read its settings again, so that a commit waits for a standby."""
    threading.Thread(target=postgres.run, args=("select pg_logical_emit_message(true, 'probe', '')",)).start()
    time.sleep(0.1)
    return count(postgres, WAITING) > 0


def count(postgres: Postgres, what: str) -> int:
    engine = sa.create_engine(postgres.url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        return int(connection.exec_driver_sql(f"select count(*) from {what}").scalar() or 0)


@pytest.mark.timeout(1200)
def test_cut_off_at_random_moments(postgres: Postgres, proxy: Proxy, tmp_path: Path) -> None:
    """Each request is sent with its key until it is acknowledged, some once more; each is learned once."""
    postgres.run("create database cut")
    url, mails, model = postgres.url_at(proxy.port, "cut"), records(2_000, seed=25), write_model(tmp_path)
    chance = random.Random(os.environ.get("SOAK_SEED", "seed"))
    cuts, sent, is_over = 2 * KILLS, 0, threading.Event()

    def ask() -> None:
        nonlocal sent
        while not is_over.is_set():
            first = sent * BATCH % 2_000
            batch = [{**mail, "size": float(BATCH * sent + j)} for j, mail in enumerate(mails[first : first + BATCH])]
            for _ in range(1 + (sent % 20 == 0)):
                while True:
                    try:
                        engine.learn(rows(batch), key=f"request {sent}").result()
                        break
                    except Unavailable:
                        time.sleep(0.01)
            sent += 1

    with Engine(model, tmp_path / "engine", SETTINGS._replace(log=url)) as engine:
        asking = threading.Thread(target=ask)
        asking.start()
        for _ in range(cuts):
            time.sleep(chance.uniform(0.0, 0.3))
            proxy.cut()
        while sent <= cuts:  # on a busy machine few requests come between two cuts
            time.sleep(0.01)
        is_over.set()
        asking.join(60)
        assert engine.wait_until_learned(timeout=60)
        exported = engine.export()
    reader = Log(url)
    sizes = [size for record in reader.read() for size in unpack(record.body).frame["size"].cast(float).to_list()]
    reader.close()
    assert sorted(sizes) == [float(i) for i in range(BATCH * sent)]
    assert_same(exported, fold_in_one_go(model, url, tmp_path / "again.shoal"))
