"""A service as one file, taken while it runs, and back: byte for byte, and whole or not at all when it is killed."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from tests.serve.material import assert_same, fold_in_one_go, predict_one, records, rows, write_model

from shoal import PassiveAggressive
from shoal.cli.app import start
from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.learner_thread import Rhythm

KILLS = max(int(os.environ.get("SOAK", 1)) * 2 // 5, 1)
ALL = EngineSettings(keep_log=True, rhythm=Rhythm(rows=60, seconds=1e9), shadows=False)
MAILS = records(600, seed=90, late_columns=False)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model"), PassiveAggressive())


@pytest.fixture
def engine(model: Path, tmp_path: Path) -> Iterator[Engine]:
    with Engine(model, tmp_path / "engine", ALL) as found:
        yield found


def replaced(path: Path, one: bytes, other: bytes) -> None:
    path.write_bytes(path.read_bytes().replace(one, other, 1))


def again_and_again(command: str, source: Path, target: Path, begun: Connection) -> None:
    """What is killed: backups over each other, or restores beside each other."""
    for number in count():
        begun.send(number)
        if command == "backup":
            start(["backup", str(source), "--to", str(target)])
        else:
            start(["restore", str(source), "--into", f"{target} {number}"])


def change(engine: Engine, what: str, file: Path | None = None) -> None:
    engine.change(what, None if file is None else Path(shutil.copy(file, engine.new_file())))


def test_a_backup_of_a_running_service_is_a_moment_of_it(engine: Engine, model: Path, tmp_path: Path) -> None:
    """With its candidate, its replaced models, the rows that wait for labels and the keys that were used."""
    ends, saved, sent = threading.Event(), tmp_path / "backup.tar", 0
    asked = {name: value for name, value in MAILS[0].items() if name != "spam"}
    waits = str(predict_one(engine, asked).id)

    def learn() -> None:
        nonlocal sent
        while not ends.is_set():
            engine.learn(rows([MAILS[sent % 600]] * 5), key=f"request {sent}").result()
            sent += 1

    learning = threading.Thread(target=learn)
    learning.start()
    try:
        change(engine, "swap", model)
        change(engine, "shadow", model)
        for number in range(3):
            start(["backup", str(engine.folder), "--to", str(saved)])
            start(["restore", str(saved), "--into", str(tmp_path / f"restored {number}")])
    finally:
        ends.set()
        learning.join()
    log = f"sqlite:///{engine.folder / 'log.sqlite'}"
    for number in range(3):
        with Engine(None, tmp_path / f"restored {number}", ALL) as other:
            assert other.wait_until_learned(timeout=30)
            about = other.describe()
            then, again = other.export(), tmp_path / "again.shoal"
            assert_same(
                then, fold_in_one_go(model, log, again, shadows=False, folder=engine.folder, until=about["logged"])
            )
            assert (about["replaced"], about["candidate"] is None) == (1, False)
            assert other.learn(rows([MAILS[0]] * 5), key="request 0").result().repeated
            assert other.label([(waits, "yes")]).result().accepted == 1
            change(other, "promote")
            change(other, "rollback")
            change(other, "rollback")
    assert sorted(path.name for path in tmp_path.iterdir() if "." in path.name) == ["again.shoal", "backup.tar"]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: path.write_bytes(b"no archive"), "is no backup"),
        (lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]), "is no backup, or is damaged"),
        (lambda path: replaced(path, b"numeric", b"nothing"), "is damaged: "),
        (
            lambda path: path.write_bytes(path.read_bytes().replace(b'"format": 1', b'"format": 7', 1)),
            "format 1, which",
        ),
        (lambda path: (path.parent / "restored" / "something").mkdir(parents=True), "restored is not empty"),
        (lambda path: path.unlink(), "No such file"),
    ],
    ids=["no archive", "cut", "changed", "another format", "a folder in use", "missing"],
)
def test_what_cannot_be_restored_says_why(
    damage: Callable[[Path], object],
    words: str,
    engine: Engine,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    saved = tmp_path / "backup.tar"
    start(["backup", str(engine.folder), "--to", str(saved)])
    damage(saved)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SystemExit):
        start(["restore", str(saved), "--into", str(tmp_path / "restored")])
    assert words in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.timeout(1200)
def test_killed_in_a_backup_and_in_a_restore(engine: Engine, model: Path, tmp_path: Path) -> None:
    """What is there then is whole: an earlier backup or a new one; a folder, or none. The same command goes on."""
    chance = random.Random(os.environ.get("SOAK_SEED", "seed"))
    saved, folder = tmp_path / "backup.tar", tmp_path / "restored"
    log = f"sqlite:///{engine.folder / 'log.sqlite'}"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.serve.warm"])
    for number in range(KILLS):
        engine.learn(rows(MAILS[number * 9 % 500 :][:80])).result()
        for command, source, target in (("backup", engine.folder, saved), ("restore", saved, folder)):
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=again_and_again, args=(command, source, target, there))
            process.start()
            assert here.poll(300)
            while here.recv() < 1:  # the first is done
                assert here.poll(300)
            time.sleep(chance.uniform(0.0, 0.3))
            os.kill(process.pid or 0, signal.SIGKILL)
            process.join()
        for found in [*tmp_path.glob("restored ?"), *tmp_path.glob("restored ??")]:
            with Engine(None, found, ALL) as other:
                assert other.wait_until_learned(timeout=30)
                until, again = other.describe()["logged"], tmp_path / "again.shoal"
                assert_same(other.export(), fold_in_one_go(model, log, again, shadows=False, until=until))
            shutil.rmtree(found)
    start(["backup", str(engine.folder), "--to", str(saved)])
    for left in tmp_path.glob("restored *"):
        start(["restore", str(saved), "--into", str(tmp_path / left.name.partition(".")[0])])
    assert not list(tmp_path.glob("*.part"))
    assert not list(tmp_path.glob("*.restoring"))
