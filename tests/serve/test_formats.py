"""What an earlier shoal wrote is read to the bit or refused with a way out; `tests/data` has a model and a service."""

from __future__ import annotations

import gzip
import multiprocessing
import os
import signal
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from tests.serve.material import records, rows, write_model

from shoal import PassiveAggressive
from shoal.model import persistence
from shoal.serve.apply import Fold
from shoal.serve.backup import restore
from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.log import Log
from shoal.serve.served_model import ServedModel

DATA = Path(__file__).parents[1] / "data"
# What the model says of the first mails of `records(4)`; it learned 120 mails of seed 0.
DECISIONS = [0.8704082220066145, 1.6802902239580917, 0.8377628914855619, 0.32621054826575135]

AFTER_40_MORE = [1.5991058407059584, 2.3278155995191665, 1.0504983127189305, 0.9882818417623174]
PREDICTED = "01a21c06d5842512bbb0cb-0"


def test_the_model_files_of_all_formats(tmp_path: Path) -> None:
    """A new format needs a new file: `write_model(folder, PassiveAggressive(), 120)` writes it."""
    found = {int(path.stem.rpartition("-")[2]): path for path in DATA.glob("model-format-*.shoal")}
    assert persistence.FORMAT in found
    for form, path in found.items():
        if form != persistence.FORMAT:
            with pytest.raises(ValueError, match=f"has format {form}; this shoal reads {persistence.FORMAT}: train it"):
                ServedModel(path)
            continue
        model = ServedModel(path)
        chunk = model.rows_of(rows(records(4)), model.readers().table)
        np.testing.assert_allclose(model.learner.decision_function(chunk.X, chunk.task), DECISIONS, rtol=1e-12)
        assert model.save(tmp_path / "again.shoal").read_bytes() == path.read_bytes()


def start_and_die(folder: Path) -> None:
    """Be killed when the first record of the log is learned."""
    Fold.apply = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
    Engine(None, folder)


def test_a_service_of_an_earlier_shoal_goes_on(tmp_path: Path) -> None:
    """A folder, its log and a backup as they were written; the first start is killed. New formats need a new file
    beside this one: the model of 120 rows, 40 learned, one predicted, then `shoal backup`."""
    saved = tmp_path / "backup.tar"
    saved.write_bytes(gzip.decompress((DATA / "service-format-1.tar.gz").read_bytes()))
    restore(saved, tmp_path / "live", None)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.serve.warm"])
    process = context.Process(target=start_and_die, args=(tmp_path / "live",))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    with Engine(None, tmp_path / "live", EngineSettings(label_wait=1e12)) as engine:
        assert engine.wait_until_learned(timeout=30)
        assert engine.describe()["rows"] == 40
        served = engine._fold.served
        chunk = served.rows_of(rows(records(4)), engine._fold.readers.table)
        np.testing.assert_allclose(served.learner.decision_function(chunk.X, chunk.task), AFTER_40_MORE, rtol=1e-12)
        assert engine.label([(PREDICTED, "yes")]).result().accepted == 1
        assert engine.forget("u1").result().position == 3


def test_folders_and_logs_of_another_format_are_refused(tmp_path: Path) -> None:
    model, folder, way_out = (
        write_model(tmp_path, PassiveAggressive()),
        tmp_path / "engine",
        "shoal replay FOLDER --save",
    )
    Engine(model, folder).close()
    form = folder / "format"
    form.write_text("7\n")
    with pytest.raises(ValueError, match=f"engine has format 7, this shoal reads 1: .*{way_out}"):
        Engine(model, folder)
    form.unlink()  # as before folders had one
    with pytest.raises(ValueError, match="engine has format none, this shoal reads 1"):
        Engine(model, folder)
    form.write_text("1\n")
    for change, found in (("update head set format = 9", 9), ("alter table head drop column format", "none")):
        with sqlite3.connect(folder / "log.sqlite") as database:
            database.execute(change)
        database.close()
        for owned in (True, False):
            with pytest.raises(ValueError, match=f"the log has format {found}, this shoal reads 1: .*{way_out}"):
                Log(f"sqlite:///{folder / 'log.sqlite'}", owned=owned)
