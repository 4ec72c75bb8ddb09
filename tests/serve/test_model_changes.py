"""Another model in place, a candidate beside it, and a rollback, while the log goes on."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.serve.material import assert_same, fold_in_one_go, predict_one, records, rows, write_model
from tests.serve.test_http import served

from shoal import MultitaskPerceptron, PassiveAggressive
from shoal.cli.app import start
from shoal.cli.commands.serve import begin_shadow, with_file
from shoal.serve.client import Client, ServiceError
from shoal.serve.contract import Conflict, Refused, UnknownTask
from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.learner_thread import Rhythm
from shoal.serve.log import Log
from shoal.serve.model_changes import ModelFolder

DATA = Path(__file__).parents[1] / "data"
ALL = EngineSettings(keep_log=True, rhythm=Rhythm(rows=10**9, seconds=1e9))
MAILS = records(400, seed=80, late_columns=False)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    learners = {"first": MultitaskPerceptron(loss="logistic"), "second": PassiveAggressive()}
    return {name: write_model(tmp_path_factory.mktemp(name), learner) for name, learner in learners.items()}


def change(engine: Engine, what: str, file: Path | None = None) -> int:
    """Change the model as a request does; the position of the record."""
    if file is None:
        return engine.change(what).position
    return engine.change(what, Path(shutil.copy(file, engine.new_file()))).position


def name_of(engine: Engine) -> str:
    return str(engine.describe()["learner"])


def assert_is_fold(engine: Engine, first: Path, target: Path) -> None:
    """The model is what the whole log gives, and what a start from the newest snapshot gives."""
    assert engine.wait_until_learned(timeout=30)
    exported = engine.export()
    log = f"sqlite:///{engine.folder / 'log.sqlite'}"
    assert_same(exported, fold_in_one_go(first, log, target / "again.shoal", folder=engine.folder))
    copy = target / "copy"
    shutil.copytree(engine.folder, copy, ignore=shutil.ignore_patterns("*.lock", "lock"))
    with Engine(None, copy, ALL) as other:
        assert_same(exported, other.export())
        uncounted = {"unknown": None, "absent": None}  # by the process
        assert {**other.describe(), **uncounted} == {**engine.describe(), **uncounted}
    shutil.rmtree(copy)
    exported.unlink()


def test_models_come_and_go_while_rows_are_learned(files: dict[str, Path], tmp_path: Path) -> None:
    """No request is refused meanwhile, and labels find the rows that another model predicted."""
    failed, ends, answered = list[BaseException](), threading.Event(), [0]
    with Engine(files["first"], tmp_path / "engine", ALL) as engine:

        def ask() -> None:
            while not ends.is_set():
                try:
                    mail = {name: value for name, value in MAILS[answered[0] % 400].items() if name != "spam"}
                    answer = predict_one(engine, mail)
                    assert engine.label([(str(answer.id), "yes")]).result().accepted == 1
                    assert engine.learn(rows([MAILS[answered[0] % 400]])).result().rows == 1
                    answered[0] += 1
                except BaseException as error:
                    failed.append(error)
                    return

        asking = [threading.Thread(target=ask) for _ in range(3)]
        for thread in asking:
            thread.start()
        seen = []
        for what, file in (
            ("swap", "second"), ("shadow", "first"), ("swap", "second"), ("promote", None), ("rollback", None),
            ("rollback", None), ("shadow", "second"), ("drop", None),
        ):  # fmt: skip
            change(engine, what, None if file is None else files[file])
            engine.learn(rows(MAILS[:50])).result()
            seen.append(name_of(engine))
        ends.set()
        for thread in asking:
            thread.join()
        assert failed == []
        one, two = "MultitaskPerceptron", "PassiveAggressive"
        assert seen == [two, two, two, one, two, two, two, two]
        assert engine.describe()["replaced"] == 1
        assert_is_fold(engine, files["first"], tmp_path)
        change(engine, "rollback")
        assert name_of(engine) == one
        with pytest.raises(Conflict, match="no model to return to"):
            change(engine, "rollback")
        with pytest.raises(Conflict, match="no candidate"):
            change(engine, "promote")


def test_a_replaced_model_is_back_as_it_was_then(files: dict[str, Path], tmp_path: Path) -> None:
    """It survives an end, and as many are kept as asked for; without a kept log, files go with its records."""
    settings = ALL._replace(keep_log=False, keep=1, keep_models=1)
    with Engine(files["first"], tmp_path / "engine", settings) as engine:
        engine.learn(rows(MAILS[:100])).result()
        before = engine.export() if engine.wait_until_learned(timeout=30) else Path()
        change(engine, "swap", files["second"])
        change(engine, "swap", files["second"])
        at = change(engine, "rollback")
        assert name_of(engine) == "PassiveAggressive"
        assert engine.describe()["replaced"] == 0
        change(engine, "swap", files["first"])
        change(engine, "rollback")
        change(engine, "swap", files["first"])
        engine.learn(rows(MAILS[100:])).result()
    kept = {path.name for path in (tmp_path / "engine" / "models").glob("*.shoal")}
    assert kept == {f"replaced-{at + 3:016}.shoal"}
    with Engine(None, tmp_path / "engine", settings) as engine:
        change(engine, "rollback")
        assert name_of(engine) == "PassiveAggressive"
    with Engine(files["first"], tmp_path / "once", settings) as engine:
        engine.learn(rows(MAILS[:100])).result()
        change(engine, "swap", files["second"])
        engine.learn(rows(MAILS[100:])).result()
        change(engine, "rollback")
        assert_same(before, engine.export())


def test_a_candidate_is_judged_on_the_same_rows_and_answers_nothing(files: dict[str, Path], tmp_path: Path) -> None:
    """Rows that it cannot read count for neither. Promoted, it is what it would be if it had been in place."""
    odd = [{**mail, "size": None} for mail in MAILS[:5]]
    with (
        Engine(files["first"], tmp_path / "engine", ALL) as engine,
        Engine(files["second"], tmp_path / "2", ALL) as two,
    ):
        engine.learn(rows(MAILS[:30])).result()
        since = change(engine, "shadow", files["second"])
        asked = predict_one(engine, MAILS[0], wait=False)
        for part in (MAILS[30:90], odd, MAILS[90:]):
            engine.learn(rows(part)).result()
            two.learn(rows(part)).result()
        assert engine.wait_until_learned(timeout=30)
        assert two.wait_until_learned(timeout=30)
        found = engine.describe()["candidate"]
        assert (found["learner"], found["since"]) == ("PassiveAggressive", since)
        alone = two.statistics.gauges()
        assert found["scores"]["rows"] == found["live"]["rows"] == 375 == alone["rows_judged"]
        assert found["scores"]["error"] == alone["error"] != found["live"]["error"]
        gauges, overview = engine.gauges(), engine.overview()
        assert gauges["trial_candidate_error"] == alone["error"]
        assert gauges["trial_live_loss"] == found["live"]["loss"]
        assert overview["candidate"] == found
        assert asked.probability is not None  # that of the first one
        assert name_of(engine) == "MultitaskPerceptron"
        assert_is_fold(engine, files["first"], tmp_path)
        change(engine, "promote")
        assert engine.describe()["candidate"] is None
        assert_same(engine.export(), two.export())


def test_columns_of_one_model_stay_unknown_to_the_other(tmp_path: Path, files: dict[str, Path]) -> None:
    """A candidate learns its columns though the live model does not know them, which learns as without it."""
    wide = tmp_path / "wide.csv"
    table = rows([{**mail, "urgency": float(i % 7)} for i, mail in enumerate(MAILS)]).frame
    table.drop("sender").write_csv(wide)
    options = ["--task", "user", "--label", "spam", "--learner", "PassiveAggressive", "--quiet"]
    start(["run", str(wide), *options, "--save", str(tmp_path / "wide.shoal")])
    mails = table[:60].to_dicts()
    with Engine(files["first"], tmp_path / "engine", ALL) as engine, Engine(files["first"], tmp_path / "1", ALL) as one:
        change(engine, "shadow", tmp_path / "wide.shoal")
        assert "urgency" in str(engine.learn(rows(mails)).result().note)
        one.learn(rows(mails)).result()
        assert one.wait_until_learned(timeout=30)
        assert engine.wait_until_learned(timeout=30)
        assert_same(engine.export(), one.export())
        assert_is_fold(engine, files["first"], tmp_path)
        change(engine, "promote")
        assert "sender" not in engine.describe()["columns"]
        assert "sender" in str(engine.learn(rows(mails)).result().note)
        assert_is_fold(engine, files["first"], tmp_path)


def test_what_cannot_take_the_place_changes_nothing(files: dict[str, Path], tmp_path: Path) -> None:
    no_model, other_label = tmp_path / "no.shoal", tmp_path / "label.csv"
    no_model.write_bytes(b"no model")
    rows(MAILS[:60]).frame.rename({"spam": "junk"}).write_csv(other_label)
    options = ["--task", "user", "--label", "junk", "--learner", "PassiveAggressive", "--quiet", "--save"]
    start(["run", str(other_label), *options, str(tmp_path / "label.shoal")])
    PassiveAggressive().partial_fit([[0.0], [1.0]], [0, 1]).save(tmp_path / "plain.shoal")
    with Engine(files["first"], tmp_path / "engine", ALL) as engine:
        before = engine.describe()
        for file, words in (
            (no_model, "^the file is not a shoal model"),
            (tmp_path / "label.shoal", "the label column 'junk', this service 'spam'"),
            (tmp_path / "plain.shoal", "the file holds a PassiveAggressive alone"),
        ):  # fmt: skip
            for what in ("swap", "shadow"):
                with pytest.raises(Refused, match=words):
                    change(engine, what, file)
        assert engine.describe() == before
        assert list((engine.folder / "models").iterdir()) == []


def test_forgetting_reaches_the_candidate_and_the_replaced_models(files: dict[str, Path], tmp_path: Path) -> None:
    with Engine(files["first"], tmp_path / "engine", ALL._replace(keep_log=False)) as engine:
        engine.learn(rows([{**MAILS[0], "user": "mr x"}, {**MAILS[1], "user": "ms y"}])).result()
        change(engine, "swap", files["second"])
        change(engine, "shadow", files["first"])
        engine.learn(rows([{**MAILS[2], "user": "ms y"}])).result()
        for task in ("mr x", "ms y"):  # the one in place does not know the first
            engine.forget(task).result()
        with pytest.raises(UnknownTask):
            engine.forget("mr z").result()
        change(engine, "promote")
        assert "ms y" not in engine.tasks()
        change(engine, "rollback")
        assert "ms y" not in engine.tasks()
        change(engine, "rollback")
        assert not {"mr x", "ms y"} & {*engine.tasks()}
        assert name_of(engine) == "MultitaskPerceptron"


def test_over_http_and_by_the_program(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, no_model = tmp_path / "engine", tmp_path / "no.shoal"
    no_model.write_bytes(b"no model")
    with Engine(files["first"], folder, ALL) as engine, served(engine, []) as url:
        start(["swap", url, str(files["second"])])
        assert f"answers from record 1 of {url}" in capsys.readouterr().out
        start(["swap", url, str(files["first"]), "--shadow"])
        with Client(url) as client:
            candidate: Any = client.model()["candidate"]
            assert (candidate["learner"], candidate["live"]["rows"]) == ("MultitaskPerceptron", 0)
            assert client.drop_shadow().position == 3
            client.swap(files["first"], shadow=True)
            assert client.promote().position == 5
            assert client.rollback().position == 6
            assert client.model()["learner"] == "PassiveAggressive"
            with pytest.raises(ServiceError, match="409: there is no candidate"):
                client.promote()
            with pytest.raises(ServiceError, match="422: the file is not a shoal model"):
                client.swap(no_model)
        with pytest.raises(SystemExit):
            start(["swap", url, str(no_model)])
        assert "the file is not a shoal model" in capsys.readouterr().err
        with pytest.raises(SystemExit):
            start(["swap", str(folder), str(no_model)])
        assert "in use by another process" in capsys.readouterr().err
    start(["swap", str(folder), str(files["first"])])  # the service is ended
    start(["log", str(folder), "--records", "7"])
    last = capsys.readouterr().out.splitlines()[-1]
    assert "swap of the model new-" in last
    reader = Log(f"sqlite:///{folder / 'log.sqlite'}")
    assert [record.kind for record in reader.read()] == ["model"] * 7
    reader.close()
    start(["replay", str(folder), "--save", str(tmp_path / "then.shoal"), "--until", "1"])
    assert_same(tmp_path / "then.shoal", files["second"])
    assert ModelFolder(folder).has_taken(ModelFolder(folder).name_of(files["first"]))


def test_a_start_knows_the_files_that_came(files: dict[str, Path], tmp_path: Path) -> None:
    """The same command starts again after any end: a candidate is begun once, and a file that was put in place is no
    other one."""
    model, folder = Path(shutil.copy(files["first"], tmp_path / "m.shoal")), tmp_path / "m.shoal.live"
    assert with_file(model, folder, replace=False) == []
    for turn in range(2):
        with Engine(model, folder, ALL) as engine:
            begin_shadow(engine, files["second"])
            assert (engine.describe()["candidate"] is None) == bool(turn)
            change(engine, "swap" if turn else "drop", files["second"] if turn else None)
    shutil.copy(files["second"], model)
    assert with_file(model, folder, replace=False) == []
    shutil.copy(DATA / "model-format-6.shoal", model)
    assert "another file" in with_file(model, folder, replace=False)[0]
