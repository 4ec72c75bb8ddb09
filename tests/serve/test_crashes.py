"""Killed at random moments under load: every acknowledged row is in the model, none twice, and the model is the log's.

`make soak` kills fifty times. The log is in SQLite, and in a PostgreSQL server that is stopped and started, too.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from tests.serve.material import assert_same, fold_in_one_go, records, rows, write_model

from shoal.serve.bodies import unpack
from shoal.serve.contract import Unavailable
from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.learning import Rhythm
from shoal.serve.log import Log

KILLS = int(os.environ.get("SOAK", 4))
SETTINGS = EngineSettings(keep_log=True, rhythm=Rhythm(rows=150))
BATCH = 5


def serve(folder: Path, log: str, first: int, acknowledged: Connection) -> None:
    """Learn request after request, several on their way at once, and say which were acknowledged."""
    mails = records(2_000, seed=20)
    with Engine(None, folder, SETTINGS._replace(log=log)) as engine:
        sent = []
        for i in range(first, 10**9):
            start = BATCH * i % 2_000
            batch = [{**mail, "size": float(BATCH * i + j)} for j, mail in enumerate(mails[start : start + BATCH])]
            sent.append((i, engine.learn(rows(batch), key=f"request {i}")))
            if len(sent) > 10:
                done, future = sent.pop(0)
                future.result()
                acknowledged.send(done)


def kill_often(model: Path, folder: Path, log: str, kills: int) -> None:
    """Start, kill, start again; then compare."""
    chance = random.Random(os.environ.get("SOAK_SEED", "seed"))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.serve.warm"])
    Engine(model, folder, SETTINGS._replace(log=log)).close()
    acknowledged: set[int] = set()
    for _ in range(kills):
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=serve, args=(folder, log, max(acknowledged, default=-1) + 1, there))
        process.start()
        there.close()
        assert here.poll(300), "nothing was acknowledged in five minutes"
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
    with Engine(None, folder, SETTINGS._replace(log=log)) as engine:
        assert engine.wait_until_learned(timeout=60)
        exported = engine.export()
    reader = Log(log)
    sizes = [size for record in reader.read() for size in unpack(record.body).frame["size"].cast(float).to_list()]
    reader.close()
    assert len(sizes) == len(set(sizes))
    assert {float(BATCH * i + j) for i in acknowledged for j in range(BATCH)} <= set(sizes)
    assert len(acknowledged) > kills
    assert_same(exported, fold_in_one_go(folder / "snapshots" / f"{0:016}.shoal", log, folder / "again.shoal"))


@pytest.mark.timeout(1200)
def test_killed_under_load(tmp_path: Path) -> None:
    kill_often(write_model(tmp_path), tmp_path / "engine", f"sqlite:///{tmp_path / 'log.sqlite'}", KILLS)


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


class Postgres:
    """A server of its own; root is not allowed to run one, so then the system's user for it does."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._run_as = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        self._binaries, self._data, self._folder = binaries, folder / "data", folder
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self._port = one.getsockname()[1]
        self.url = f"postgresql+psycopg://postgres@127.0.0.1:{self._port}/postgres"
        self._call("initdb", "-A", "trust", "-U", "postgres", "-D", str(self._data))

    def start(self) -> None:
        options = f"-p {self._port} -k {self._folder} -c listen_addresses=127.0.0.1"
        self._call("pg_ctl", "-D", str(self._data), "-w", "-l", str(self._folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        self._call("pg_ctl", "-D", str(self._data), "-w", "-m", "immediate", "stop")

    def _call(self, program: str, *arguments: str) -> None:
        command = [*self._run_as, str(self._binaries / program), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self._folder)


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    binaries = found[-1].parent if found else Path(shutil.which("initdb") or "nowhere/initdb").parent
    if not (binaries / "initdb").exists():
        pytest.skip("there is no PostgreSQL server here (Debian: apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    server = Postgres(binaries, folder)
    server.start()
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


def until(there: Callable[[], bool]) -> None:
    ends = time.monotonic() + 30
    while not there():
        assert time.monotonic() < ends
        time.sleep(0.05)


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
        until(lambda: not engine.is_ready)
        with pytest.raises(Unavailable):
            engine.learn(rows(mails[40:]), key="meanwhile, too")
        assert engine.predict(rows(mails[:3]), wait=False).result()
        postgres.start()
        until(lambda: engine.is_ready)
        assert isinstance(cut_off.exception(30), Unavailable)  # asked again with its key, it is learned once
        assert engine.learn(rows(mails[20:40]), key="meanwhile").result().position == before + 1
        assert engine.learn(rows(mails[:20]), key="before").result().repeated
        assert engine.label([(name, "yes") for name in ids]).result().accepted == 3  # they waited through it
        assert engine.wait_until_learned(timeout=30)
        first = tmp_path / "killed" / "snapshots" / f"{0:016}.shoal"
        assert_same(engine.export(), fold_in_one_go(first, postgres.url, tmp_path / "again.shoal"))
