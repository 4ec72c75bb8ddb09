"""Killed at random moments under load: every acknowledged row is in the model, none twice, and the model is the log's.

`make soak` kills fifty times.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from tests.serve.material import assert_same, fold_in_one_go, records, rows, write_model

from shoal.serve.bodies import unpack
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
        assert here.poll(60), "nothing was acknowledged in a minute"
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
