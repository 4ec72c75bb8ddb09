"""The engine in one process: rows in, answers out, labels that come later, forgetting, limits, start from snapshots."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sqlalchemy import event
from tests.serve.material import assert_same, fold_in_one_go, predict_one, records, rows, write_model

from shoal import OSMTL, HedgedSharing, HedgedSharingRegressor, MultiClass
from shoal.files import open_stream
from shoal.model_file import Reading, save_model
from shoal.serve.apply import Fold, Group
from shoal.serve.contract import Busy, Conflict, LimitExceeded, Messages, Refused, Rows, Unavailable, UnknownTask
from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.learner_thread import Rhythm
from shoal.serve.limits import Caps
from shoal.serve.log import Log
from shoal.serve.log_writer import LogWriter
from shoal.serve.row_codec import unpack
from shoal.serve.served_model import ServedModel, learn

ALL = EngineSettings(keep_log=True, caps=Caps(new_columns_a_minute=100))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def engine(model: Path, tmp_path: Path) -> Iterator[Engine]:
    with Engine(model, tmp_path / "engine", ALL) as found:
        yield found


def url(engine: Engine) -> str:
    return f"sqlite:///{engine.folder / 'log.sqlite'}"


def positions(engine: Engine) -> list[int]:
    return sorted(int(path.stem) for path in (engine.folder / "snapshots").glob("*.shoal"))


@contextmanager
def full_disk(engine: Engine) -> Iterator[None]:
    """The database may not grow, which gives the error of a disk without room."""
    with engine._log._engine.connect() as connection:
        limit = [connection.exec_driver_sql("pragma page_count").scalar()]
    # The limit is a connection's, and there may be several.
    event.listen(
        engine._log._engine, "begin", lambda one: one.exec_driver_sql(f"pragma max_page_count = {limit[0]}").close()
    )
    yield
    limit[0] = 10**9


def test_what_is_learned_is_what_the_log_holds(model: Path, tmp_path: Path) -> None:
    mails = records(900, seed=1)
    with Engine(model, tmp_path / "engine", ALL) as engine:
        receipts = [engine.learn(rows(mails[i : i + 7])) for i in range(0, 700, 7)]
        receipts += [engine.learn(rows([mail])) for mail in mails[700:]]
        assert [receipt.result().position for receipt in receipts] == list(range(1, 301))
        assert engine.wait_until_learned(timeout=30)
        assert engine.describe()["rows"] == 900
        exported = engine.export()
        assert_same(exported, fold_in_one_go(model, url(engine), tmp_path / "again.shoal"))
    # the same rows by the readers of files, and the learner alone
    served = ServedModel(model)
    checked, faults = served.check(rows(mails))
    assert not faults
    chunk = served.encode(checked)
    for learner in (served.learner, *served.shadows.values()):
        learn(learner, chunk)
    assert_same(exported, served.save(tmp_path / "alone.shoal"))


def test_a_stopped_engine_goes_on_where_it_was(model: Path, tmp_path: Path) -> None:
    mails = records(300, seed=2)
    with Engine(model, tmp_path / "engine", ALL) as engine:
        engine.learn(rows(mails[:200])).result()
    newest = engine.folder / "snapshots" / f"{1:016}.shoal"
    assert newest.exists()
    newest.write_bytes(newest.read_bytes()[:-100])  # damaged: the one before and the log serve
    with Engine(None, tmp_path / "engine", ALL) as engine:
        engine.learn(rows(mails[200:])).result()
        assert engine.wait_until_learned(timeout=30)
        assert_same(engine.export(), fold_in_one_go(model, url(engine), tmp_path / "again.shoal"))
        with pytest.raises(ValueError, match="in use by another process"):
            Engine(None, tmp_path / "engine", ALL)


def test_answers_are_those_of_the_model_file(engine: Engine) -> None:
    mails = [{name: value for name, value in mail.items() if name != "spam"} for mail in records(40, seed=3)]
    mails[0]["user"] = "somebody new"
    found = engine.predict(rows(mails)).result()
    alone = [predict_one(engine, mail) for mail in mails]
    assert [one._replace(id=None, note=None) for one in found] == [one._replace(id=None, note=None) for one in alone]
    [(places, asked)] = engine.predict_each([*mails, {"size": 1.0}, *mails])  # one has no task
    assert places == range(81)
    *each, wrong = asked.result()[:41]
    assert isinstance(wrong, Refused)
    assert [one._replace(id=None) for one in alone] == [one._replace(id=None) for one in each]
    assert found[0].note == alone[-1].note == "the model does not know column 'urgency': not used"
    assert alone[0].note is None
    assert len({one.id for one in [*found, *alone, *each, *asked.result()[41:]]}) == 160
    assert not found[0].known_task
    assert found[1].known_task
    served = ServedModel(engine.export())
    chunk = served.rows_of(rows(mails), served.readers().table)
    X = chunk.X[:, : served.learner.n_features_in_]
    assert [one.predicted for one in found] == served.learner.predict(X, chunk.task).tolist()
    expected = served.learner.predict_proba(X, chunk.task)[:, 1]
    np.testing.assert_array_equal([one.probability for one in found], expected)
    worth = engine.worth(rows(mails * 20))
    assert 0.02 < np.mean([one.ask for one in worth]) < 0.3
    assert engine.gauges()["labels_asked"] == sum(one.ask for one in worth)
    assert np.mean([one.margin for one in worth if one.ask]) < np.mean([one.margin for one in worth])
    with engine._fold.columns:  # held while rows to learn are read: no answer waits for it
        assert engine._answers.of(rows(mails)) == [one._replace(id=None) for one in found]
        assert len(engine.worth(rows(mails))) == 40


def test_labels_complete_the_rows_as_they_were_predicted(model: Path, tmp_path: Path) -> None:
    mails = records(60, seed=4)
    asked = [{name: value for name, value in mail.items() if name != "spam"} for mail in mails]
    with Engine(model, tmp_path / "engine", ALL) as engine:
        many = engine.predict(rows(asked[:30])).result()
        single = [predict_one(engine, mail) for mail in asked[30:]]
        labels = [(str(one.id), mail["spam"]) for one, mail in zip([*many, *single], mails, strict=True)]
        receipt = engine.label(labels[:20], key="first").result()
        assert (receipt.accepted, receipt.repeated) == (20, False)
        again = engine.label(labels[:20], key="first").result()
        assert again == receipt._replace(repeated=True)
        unknown = "0" * 12 + "ab" * 5 + "-0"
        receipt = engine.label([*labels[10:], ("nonsense", "yes"), (many[0].id or "", "no"), (unknown, "no")]).result()
        assert receipt.accepted == 40
        assert receipt.double == [labels[i][0] for i in range(10, 20)] + [many[0].id]
        assert (receipt.unknown, receipt.late) == (["nonsense"], [unknown])
        with pytest.raises(Refused, match="maybe"):
            engine.label([(str(predict_one(engine, asked[0]).id), "maybe")]).result()
        counts = engine.gauges()
        assert (counts["labels_accepted"], counts["labels_double"], counts["labels_late"]) == (60, 11, 1)
        assert counts["predictions_waiting"] == 1
        assert engine.wait_until_learned(timeout=30)
        about = engine.task("u1")
        assert about["rows"] == sum(mail["user"] == "u1" for mail in mails)
        spam = sum((mail["user"], mail["spam"]) == ("u1", "yes") for mail in mails)
        assert about["happened"] == pytest.approx(spam / about["rows"])
        assert sum(way["weight"] for way in about["ways"]) == pytest.approx(1.0)
        assert {other["task"] for other in about["similar"]} == {"u0", "u2", "u3", "u4", "u5"}
        labeled = engine.export()
    with Engine(model, tmp_path / "other", ALL) as other:
        other.learn(rows(mails)).result()
        assert other.wait_until_learned(timeout=30)
        assert_same(labeled, other.export())


def test_rows_wait_no_longer_than_they_should(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mail = {name: value for name, value in records(1)[0].items() if name != "spam"}
    with Engine(model, tmp_path / "engine", EngineSettings(label_wait=100.0)) as engine:
        old = predict_one(engine, mail).id
        moment = time.time()
        monkeypatch.setattr(time, "time", lambda: moment + 101)
        assert engine.label([(str(old), "yes")]).result().late == [old]
        assert "label_lag_seconds" not in engine.gauges()
        new = predict_one(engine, mail).id
        monkeypatch.setattr(time, "time", lambda: moment + 131)
        assert engine.label([(str(new), "yes")]).result().accepted == 1
        assert engine.gauges()["label_lag_seconds"] == pytest.approx(30, abs=0.01)
        assert engine.gauges()["predictions_waiting"] == 1
        engine.close()
    with Engine(None, tmp_path / "engine", EngineSettings(label_wait=100.0)) as engine:
        assert engine.gauges()["predictions_waiting"] == 1
        engine.expire().result()
        assert engine.gauges()["predictions_waiting"] == 0
    with Engine(model, tmp_path / "other", EngineSettings(label_wait=0.0)) as engine:
        assert predict_one(engine, mail).id is None


def test_what_is_refused_leaves_no_trace(model: Path, tmp_path: Path) -> None:
    good, bad = records(20, seed=5), records(20, seed=6)
    with Engine(model, tmp_path / "one", ALL) as clean, Engine(model, tmp_path / "two", ALL) as engine:
        clean.learn(rows(good)).result()
        for change, column, words in (
            ({"size": "huge"}, "size", "expected a finite number"),
            ({"spam": "perhaps"}, "spam", "third"),
            ({"spam": None}, "spam", "no label"),
            ({"user": ""}, "user", "no task"),
            ({"day": "tomorrow", "fresh": 7}, "day", "expected a date"),
        ):
            with pytest.raises(Refused, match=words) as raised:
                engine.learn(rows([*bad[:3], {**bad[3], **change}])).result()
            assert [(fault.row, fault.column) for fault in raised.value.faults] == [(3, column)]
        with pytest.raises(Refused, match="no column 'user'"):
            engine.learn(rows([{"size": 1.0, "spam": "no"}])).result()
        with pytest.raises(Refused, match="huge"):
            engine.predict(rows([{**bad[0], "size": "huge"}]))
        # bad and good requests in one commit
        futures = [engine.learn(rows([{**bad[0], "size": "huge"}])), engine.learn(rows(good))]
        with pytest.raises(Refused):
            futures[0].result()
        futures[1].result()
        with pytest.raises(UnknownTask):
            engine.forget("nobody").result()
        for one in (clean, engine):
            assert one.wait_until_learned(timeout=30)
        assert_same(engine.export(), clean.export())


def test_a_key_is_learned_once(engine: Engine) -> None:
    mails = records(20, seed=7)
    futures = [engine.learn(rows(mails), key="a") for _ in range(5)]
    assert sorted(future.result().repeated for future in futures) == [False, True, True, True, True]
    assert {future.result().position for future in futures} == {1}
    with pytest.raises(Conflict, match="'a'"):
        engine.learn(rows(mails[:3]), key="a").result()
    assert engine.wait_until_learned(timeout=30)
    assert engine.describe()["rows"] == 20


def test_a_forgotten_task_is_gone_from_everything(model: Path, tmp_path: Path) -> None:
    mails = records(200, seed=8)
    settings = EngineSettings(rhythm=Rhythm(rows=50))
    with Engine(model, tmp_path / "engine", settings) as engine:
        for i in range(0, 200, 20):
            engine.learn(rows(mails[i : i + 20])).result()
        asked = [{name: value for name, value in mail.items() if name != "spam"} for mail in mails]
        answers = engine.predict(rows(asked[:20])).result()
        assert "u1" in engine.tasks()
        position = engine.forget("u1").result().position
        assert "u1" not in engine.tasks()
        log = Log(url(engine))
        for _ in range(500):  # the next snapshot is written by another process, then the records go
            if positions(engine) == [position] and not list(log.read()):
                break
            time.sleep(0.02)
        assert positions(engine) == [position]
        assert list(log.read()) == []
        log.close()
        receipt = engine.label([(str(one.id), "yes") for one in answers])
        with pytest.raises(Refused, match="no task"):
            receipt.result()
        others = [str(one.id) for one in answers if one.task != "u1"]
        assert engine.label([(name, "yes") for name in others]).result().accepted == len(others)


def test_a_closed_mode_refuses_columns_by_name(model: Path, tmp_path: Path) -> None:
    [mail] = records(1, late_columns=False)
    asked = {name: value for name, value in mail.items() if name != "spam"}
    with Engine(model, tmp_path / "engine", ALL._replace(strict=True)) as engine:
        assert predict_one(engine, asked).note is None
        for wrong, name in (
            ({**asked, "Size": 1.0}, "'Size'"),
            ({**asked, "sender": "s1"} | {"sendr": "s1"}, "'sendr'"),
        ):
            with pytest.raises(Refused, match=name):
                predict_one(engine, wrong)
            with pytest.raises(Refused, match=name):
                engine.predict(rows([wrong]))
            with pytest.raises(Refused, match=name):
                engine.learn(rows([{**wrong, "spam": "no"}])).result()
        del asked["size"]
        with pytest.raises(Refused, match="'size'"):
            predict_one(engine, asked)
        assert engine.describe()["logged"] == 0


def test_what_waits_when_a_task_is_forgotten_is_blanked(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between commits, which answer others meanwhile; until then no label finds the rows. Those behind it stay."""
    monkeypatch.setattr("shoal.serve.log_writer.LOOKED", 3)
    goes_on, blank = threading.Event(), LogWriter._blank_some
    monkeypatch.setattr(LogWriter, "_blank_some", lambda writer: blank(writer) if goes_on.is_set() else None)
    asked = [{name: value for name, value in mail.items() if name != "spam"} for mail in records(60, seed=14)]
    with Engine(model, tmp_path / "engine", ALL) as engine:
        before = sorted((predict_one(engine, mail) for mail in asked[:40]), key=lambda one: str(one.id))
        engine.follow(Messages([], [("x", {**asked[0], "user": "u1"})], [], {}, [])).result()
        forgotten = engine.forget("u1")
        behind = engine.predict(rows(asked[40:])).result()
        found = engine.follow(Messages([], [], [("x", "yes")], {}, [])).result()
        assert [fault.column for fault in found.refused] == ["user"]
        for one in before[:6]:
            label = engine.label([(str(one.id), "yes")])
            assert (label.exception() is not None) == (one.task == "u1")
        assert not forgotten.done()
        goes_on.set()
        forgotten.result()
        stored = engine._log.waiting(sorted({str(one.id).partition("-")[0] for one in (*before, *behind)}))
        found_tasks = [row for one in sorted(stored.values()) for row in unpack(one.body).frame["user"].to_list()]
    assert found_tasks[:40] == [None if one.task == "u1" else one.task for one in before]
    assert found_tasks[40:] == [one.task for one in behind]
    assert {"u1", None} <= {*found_tasks}


def test_a_stored_row_that_cannot_be_read_ends_no_writer(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task is forgotten all the same, and the next start blanks what waits."""
    with monkeypatch.context() as patch:
        patch.setattr(LogWriter, "_without", Mock(side_effect=ValueError("a byte is wrong")))
        with Engine(model, tmp_path / "engine", ALL) as engine:
            mail = records(1, seed=14)[0]
            asked = predict_one(engine, {name: value for name, value in mail.items() if name != "spam"})
            with pytest.raises(ValueError, match="a byte is wrong"):
                engine.forget(str(asked.task)).result(timeout=10)
            assert engine.learn(rows(records(3, seed=15))).result(timeout=10).position == 2
            assert [gone.task for gone in engine._log.forgotten()] == [asked.task]
    with Engine(model, tmp_path / "engine", ALL) as engine:
        engine.learn(rows(records(1, seed=16))).result(timeout=10)
        [stored] = engine._log.waiting([str(asked.id).partition("-")[0]]).values()
        assert unpack(stored.body).frame["user"].to_list() == [None]


def test_a_task_is_forgotten_whenever_it_crashes(model: Path, tmp_path: Path) -> None:
    """Killed between the forgetting and its snapshot, with a kept log and the last snapshot damaged."""
    mails, folder = records(200, seed=12), tmp_path / "engine"
    with Engine(model, folder, ALL) as engine:
        engine.learn(rows(mails[:100])).result()
    engine = Engine(None, folder, ALL._replace(rhythm=Rhythm(rows=10**9, seconds=1e9)))
    engine._learner._not_before = float("inf")  # no snapshot before the crash
    engine.learn(rows(mails[100:])).result()
    position = engine.forget("u1").result().position
    assert engine.wait_until_learned(timeout=30)
    engine.close(snapshot=False)
    assert positions(engine) == [0, 1]
    newest = folder / "snapshots" / f"{1:016}.shoal"
    newest.write_bytes(newest.read_bytes()[:-9])
    with Engine(None, folder, ALL) as engine:
        assert "u1" not in engine.tasks()
        log = Log(url(engine))
        for _ in range(500):
            if positions(engine) == [position] and not list(log.read()):
                break
            time.sleep(0.02)
        assert (positions(engine), list(log.read())) == ([position], [])
        log.close()
        engine.learn(rows([mail for mail in mails if mail["user"] != "u1"])).result()
    with Engine(None, folder, ALL) as engine:
        assert engine.describe()["logged"] == position + 1
        assert "u1" not in engine.tasks()


def test_limits(model: Path, tmp_path: Path) -> None:
    mails = records(30, seed=9, late_columns=False)
    caps = Caps(new_tasks_a_minute=3, new_columns_a_minute=2, tasks=8)
    with Engine(model, tmp_path / "engine", EngineSettings(caps=caps, most_rows=50)) as engine:
        for user in ("n1", "n2"):  # learned in between: no task counts twice
            engine.learn(rows([{**mails[0], "user": user}])).result()
            assert engine.wait_until_learned(timeout=30)
        with pytest.raises(LimitExceeded, match="8 tasks"):
            engine.learn(rows([{**mails[0], "user": "n3"}])).result()
        with pytest.raises(LimitExceeded, match="new tasks a minute"):
            engine.learn(rows([{**mails[0], "user": f"m{i}"} for i in range(4)])).result()
        with pytest.raises(LimitExceeded, match="new columns a minute"):
            engine.learn(rows([{**mails[0], "a": 1, "b": 2, "c": 3}])).result()
        with engine._fold.columns:
            waiting = [engine.learn(rows(mails)) for _ in range(2)]
            with pytest.raises(Busy, match="wait to be learned"):
                engine.learn(rows(mails))
        assert [future.result().rows for future in waiting] == [30, 30]
        assert engine.wait_until_learned(timeout=30)
        engine.learn(rows(mails)).result()


def test_a_full_disk_refuses_and_harms_nothing(model: Path, tmp_path: Path) -> None:
    mails = records(400, seed=10)
    with Engine(model, tmp_path / "engine", ALL) as engine:
        engine.learn(rows(mails[:50])).result()
        with full_disk(engine):
            futures, errors = [], []
            for mail in mails[50:]:
                try:
                    futures.append(engine.learn(rows([{**mail, "fresh": "x" * 20_000}])))
                except Unavailable as error:  # at once, once one has failed
                    errors.append(error)
            later = [future.exception() for future in futures]
            assert errors or any(later)
            assert {type(error) for error in later} <= {Unavailable, type(None)}
            assert "full" in str(next(error for error in [*errors, *later] if error is not None))
            learned = 50 + later.count(None)
        while engine.trouble:
            time.sleep(0.01)
        engine.learn(rows(mails[50:])).result()
        assert engine.wait_until_learned(timeout=30)
        assert engine.describe()["rows"] == learned + 350
        assert_same(engine.export(), fold_in_one_go(model, url(engine), tmp_path / "again.shoal"))


@pytest.mark.parametrize("learner", [MultiClass(HedgedSharing(memory=8)), OSMTL()], ids=["several labels", "rounds"])
def test_other_learners(learner: Any, tmp_path: Path) -> None:
    model = write_model(tmp_path, learner)
    mails = records(120, seed=11)
    with Engine(model, tmp_path / "engine", ALL) as engine:
        for i in range(0, 120, 12):
            engine.learn(rows(mails[i : i + 12]))
        answers = engine.predict(rows([{"user": "u1", "size": 1.0}])).result()
        assert answers[0].predicted in ("yes", "no")
        assert predict_one(engine, {"user": "u1", "size": 1.0}).predicted == answers[0].predicted
        assert engine.wait_until_learned(timeout=30)
        assert_same(engine.export(), fold_in_one_go(model, url(engine), tmp_path / "again.shoal"))


def test_numbers_have_no_margin(tmp_path: Path) -> None:
    table = tmp_path / "sizes.csv"
    sizes = [i % 7 + 0.5 for i in range(100)]
    pl.DataFrame({"user": ["a", "b"] * 50, "hour": range(100), "size": sizes}).write_csv(table)
    with open_stream(table, task="user", label="size", kind="regression") as stream:
        [chunk] = stream
        learner = HedgedSharingRegressor(memory=8).partial_fit(chunk.X, chunk.y, chunk.task)
        reading = Reading({"task": ["user"], "label": "size"}, stream.to_dict())
    path = save_model(tmp_path / "sizes.shoal", {"HedgedSharingRegressor": learner}, reading)
    with Engine(path, tmp_path / "engine") as engine:
        asked = rows([{"user": "a", "hour": 3}])
        assert predict_one(engine, {"user": "a", "hour": 3}).predicted == engine.predict(asked).result()[0].predicted
        with pytest.raises(Refused, match="predicts numbers"):
            engine.worth(asked)
        engine.learn(rows([{"user": "a", "hour": 3, "size": 2.5}])).result()
        assert engine.wait_until_learned(timeout=30)
        assert engine.statistics.state()["rows"] == 1


@pytest.mark.parametrize(
    ("learner", "seconds", "most"),
    [(None, 0.0001, 8), (None, 0.003, 1), (OSMTL(), 0.0001, 8), (OSMTL(), 0.003, 6)],
    ids=["fast rows", "a row is too slow", "rounds", "a round is too slow"],
)
def test_a_slice_takes_a_millisecond_or_one_row(
    learner: Any, seconds: float, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of six tasks a round has six rows at most. However rows are cut, the same is learned."""
    path, frame = write_model(tmp_path, learner), rows(records(500, late_columns=False))
    now, sizes = [0.0], []

    def slowly(learner: Any, part: Any) -> Any:
        now[0] += seconds * part.X.shape[0]
        sizes.append(part.X.shape[0])
        return learn(learner, part)

    monkeypatch.setattr("shoal.serve.apply.learn", slowly)
    monkeypatch.setattr("shoal.serve.apply.time", SimpleNamespace(perf_counter=lambda: now[0]))
    fold, whole = Fold(ServedModel(path, with_shadows=False)), ServedModel(path, with_shadows=False)
    for last in (1, 2):
        fold.apply(Group(last, np.zeros(500), fold.served.check(frame)[0]))
        learn(whole.learner, whole.encode(whole.check(frame)[0]))
    assert sum(sizes) == 1_000
    assert max(sizes[1:]) <= most < 2 * max(sizes[1:])
    x = fold.served.rows_of(frame, fold.readers.table)
    assert_array_equal(fold.served.learner.decision_function(x.X, x.task), whole.learner.decision_function(x.X, x.task))


def test_typed_rows_are_learned_as_they_are(engine: Engine) -> None:
    frame = pl.DataFrame({"user": ["u1", "u9"], "size": [1.0, None], "spam": ["yes", "no"], "sender": ["NA", "s1"]})
    assert engine.learn(Rows(frame, strings=False)).result().rows == 2
    assert engine.wait_until_learned(timeout=30)
    assert "u9" in engine.tasks()
    with pytest.raises(Refused):
        engine.learn(Rows(frame.with_columns(size=pl.Series([["a"], ["b"]])), strings=False)).result()


def test_rows_without_a_single_feature(engine: Engine) -> None:
    """What is missing everywhere is missing, however many rows there are."""
    bare = [{"user": f"u{i}", "spam": "no"} for i in range(3)]
    assert engine.learn(rows(bare)).result().rows == 3
    with pytest.raises(Refused, match="perhaps"):
        engine.learn(rows([*bare, {"user": "u1", "spam": "perhaps"}])).result()
    assert len(engine.predict(rows(bare)).result()) == 3
    assert engine.wait_until_learned(timeout=30)
