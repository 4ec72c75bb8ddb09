"""What is counted of rows, against plain loops; and the same after a crash."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from tests.serve.material import records, rows, write_model

from shoal import OSMTL, HedgedSharing, HedgedSharingRegressor, MultiClass, MultitaskPerceptron
from shoal.files import ReadOptions, open_stream
from shoal.files.labels import Target
from shoal.learner import Learner
from shoal.model_file import Reading, save_model
from shoal.serve.apply import Fold, Group
from shoal.serve.contract import UnknownTask
from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.learner_thread import Rhythm
from shoal.serve.log import Log
from shoal.serve.served_model import Learned, ServedModel, learn
from shoal.serve.statistics import MOST_POINTS, Statistics
from shoal.serve.task_counts import BINS, FEWEST, in_order

NOW = time.time()


def slices(seed: int, n: int) -> list[Learned]:
    rng = np.random.default_rng(seed)
    found = []
    for i in range(n):
        size = int(rng.integers(1, 60))
        tasks = [f"t{k}" for k in rng.integers(0, 30, size)]
        truth = np.where(rng.random(size) < 0.4, "yes", "no")
        decisions, one, other = rng.normal(size=(3, size)) * 3
        times = np.sort(NOW - 600 * (n - i) + rng.uniform(0, 600, size))
        found.append(Learned(times, tasks, truth, decisions, {"independent": one, "pooled": other}))
    return found


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> ServedModel:
    return ServedModel(write_model(tmp_path_factory.mktemp("model")))


def test_all_numbers_are_those_of_plain_loops(served: ServedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW)
    found = Statistics(served)
    assert found.gauges() == {"rows_judged": 0.0}
    errors, losses = [0.0] * 3, [0.0] * 3
    by_task: dict[str, list[float]] = {}
    bins = [[0.0, 0.0, 0.0] for _ in range(20)]
    rows = 0
    hour = [0.0, 0.0]
    for part in slices(0, 600):
        found.learned(part)
        said = [part.decisions, part.shadows["independent"], part.shadows["pooled"]]
        for i, (task, truth) in enumerate(zip(part.tasks, part.truth.tolist(), strict=True)):
            sign = 1.0 if truth == "yes" else -1.0
            for who, decisions in enumerate(said):
                f = float(decisions[i])
                errors[who] += (f >= 0) != (sign > 0)
                losses[who] += math.log1p(math.exp(-abs(f))) + max(-sign * f, 0.0)
            f = float(said[0][i])
            one = by_task.setdefault(str(task), [0.0, 0.0])
            one[0] += 1
            one[1] += (f >= 0) != (sign > 0)
            p = 1 / (1 + math.exp(-f))
            place = bins[min(int(p * 20), 19)]
            place[0], place[1], place[2] = place[0] + 1, place[1] + p, place[2] + (sign > 0)
            rows += 1
            if part.times[i] // 60 > NOW // 60 - 60:
                hour = [hour[0] + 1, hour[1] + ((f >= 0) != (sign > 0))]
    state = found.state()
    assert state["rows"] == rows
    np.testing.assert_allclose(state["errors"], np.array(errors) / rows)
    np.testing.assert_allclose(state["losses"], np.array(losses) / rows)
    np.testing.assert_allclose(np.array(state["calibration"]).T, bins)
    points = np.array(state["points"])
    assert MOST_POINTS // 2 < len(points) <= MOST_POINTS
    assert len(set(points[:-1, 0])) == 1
    np.testing.assert_allclose(points[:, 0].sum(), rows)  # no row is lost where neighbors become one
    np.testing.assert_allclose(points[:, 2::2].sum(axis=0), errors)
    listed, total = found.list_tasks("rows", "T1", 0, 100)
    assert total == sum("t1" in task for task in by_task)
    for one_task in listed:
        count, wrong = by_task[str(one_task["task"])]
        assert (one_task["rows"], one_task["error"]) == (count, pytest.approx(wrong / count))
    worst = max(by_task, key=lambda task: by_task[task][1] / by_task[task][0])
    assert found.list_tasks("error", "", 0, 1)[0][0]["task"] == worst
    gauges = found.gauges()
    assert gauges["error_of_pooled"] == pytest.approx(errors[2] / rows)
    assert gauges["loss_of_independent"] == pytest.approx(losses[1] / rows)
    assert gauges["error_of_worst_task"] == pytest.approx(by_task[worst][1] / by_task[worst][0])
    assert 50 < hour[0] < rows / 50
    assert gauges["error_of_last_hour"] == pytest.approx(hour[1] / hour[0])
    assert gauges["calibration_error"] == pytest.approx(sum(abs(p - y) for _, p, y in bins) / rows)


def test_auc_trend_and_weeks(served: ServedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The AUC is that of ranks but for ties within a bin; a trend has the losses of equal parts, in order."""
    monkeypatch.setattr(time, "time", lambda: NOW)
    found, rng = Statistics(served), np.random.default_rng(5)
    truth, n = rng.random(1_000) < 0.3, np.arange(1_000)
    decisions = np.where(truth, 1.0, -1.0) + rng.normal(size=1_000)
    times = NOW - 86_400 * (9.0 - 9.0 * n / 1_000)
    others = dict.fromkeys(("independent", "pooled"), decisions)
    tasks = np.where(n % 10 == 0, "rare", "usual")
    for i in range(0, 1_000, 37):
        some = slice(i, i + 37)
        labels = np.where(truth, "yes", "no")[some]
        part = {name: one[some] for name, one in others.items()}
        found.learned(Learned(times[some], tasks[some].tolist(), labels, decisions[some], part))
    usual, losses = tasks == "usual", np.logaddexp(0.0, np.where(truth, -decisions, decisions))
    about = found.task("usual")
    assert about["auc"] == pytest.approx(roc_auc_score(truth[usual], decisions[usual]), abs=5e-3)
    assert about["trend"] == pytest.approx([part.mean() for part in np.split(losses[usual], range(128, 900, 128))])
    assert found.gauges()["auc"] == pytest.approx(roc_auc_score(truth, decisions), abs=5e-3)
    assert found.gauges()["error_of_last_week"] != found.gauges()["error_of_week_before"]
    by_auc, by_loss = (found.list_tasks(sort, "", 0, 9)[0] for sort in ("auc", "loss"))
    assert by_auc == sorted(by_auc, key=lambda one: one["auc"])
    assert by_loss == sorted(by_loss, key=lambda one: -one["loss"])


def test_the_worst_come_first_and_those_of_few_rows_last() -> None:
    """Of 100,000 tasks of a row each the page showed the first ones as the worst."""
    rows = np.array([FEWEST - 1, FEWEST, FEWEST - 1, FEWEST + 1, 0])
    sums = np.array([rows, rows * [0.9, 0.1, 0.5, 0.3, 0], rows * [0.5, 0.2, 0.9, 0.1, 0], *np.zeros((3, 5))])
    names: list[str | None] = ["a", "b", "c", "d", "e"]
    assert in_order(names, sums, None, "error", "") == ["d", "b", "a", "c", "e"]
    assert in_order(names, sums, None, "loss", "") == ["b", "d", "c", "a", "e"]
    ranks = np.zeros((5, 2 * BINS), np.uint32)
    ranks[:, [0, BINS + 1]] = 1  # AUC 1
    ranks[3, [0, BINS]], ranks[2, [0, BINS]], ranks[2, BINS + 1] = (0, 1), (0, 2), 0  # one has none, one is 0
    ranks[2, 1] = 1
    assert in_order(names, sums, ranks, "auc", "") == ["b", "d", "c", "a", "e"]


def test_saved_and_forgotten(served: ServedModel, tmp_path: Path) -> None:
    parts = slices(1, 40)
    found = Statistics(served)
    for part in parts[:20]:
        found.learned(part)
    again = Statistics(served, found.to_dict())
    for part in parts[20:]:
        found.learned(part)
        again.learned(part)
    assert again.list_tasks("name", "", 0, 100) == found.list_tasks("name", "", 0, 100)
    assert again.state()["errors"] == found.state()["errors"]
    before = {str(one["task"]): one for one in found.list_tasks("name", "", 0, 100)[0]}
    found.forget("t3")
    with pytest.raises(UnknownTask):
        found.task("t3")
    new = Learned(
        np.array([NOW]), ["t99"], np.array(["yes"]), np.array([-1.0]),
        {name: np.ones(1) for name in ("independent", "pooled")},
    )  # fmt: skip
    found.learned(new)
    after = {str(one["task"]): one for one in found.list_tasks("name", "", 0, 100)[0]}
    assert after.pop("t99") == {
        "task": "t99", "rows": 1, "error": 1.0, "loss": pytest.approx(math.log1p(math.e)),
        "forecast": pytest.approx(1 / (1 + math.e)), "happened": 1.0, "trend": [pytest.approx(math.log1p(math.e))],
    }  # fmt: skip
    before.pop("t3")
    assert after == before
    cut = {"tasks": ["t1"], "sums": "eJw="}
    for damaged in ({**again.to_dict(), "per_task": cut}, {**again.to_dict(), "form": 1}, {}):
        assert Statistics(served, damaged).to_dict() == Statistics(served).to_dict()


def test_rows_that_the_learner_refuses_are_not_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def strict(learner: Learner, chunk: Any) -> Any:
        if "u3" in chunk.task:
            raise ValueError("not this one")
        return learn(learner, chunk)

    monkeypatch.setattr("shoal.serve.apply.learn", strict)
    mails = records(80, 13)
    found = []
    for kept in (mails, [mail for mail in mails if mail["user"] != "u3"]):
        served = ServedModel(write_model(tmp_path))
        statistics = Statistics(served)
        fold = Fold(served, 0, statistics)
        fold.apply(Group(1, np.full(len(kept), NOW), served.check(rows(kept))[0]))
        assert fold.refused == sum(mail["user"] == "u3" for mail in kept)
        found.append(statistics.to_dict())
    assert found[0]["per_task"]["tasks"] == found[1]["per_task"]["tasks"]
    assert found[0]["rows"] == found[1]["rows"] == len(kept)
    assert sum(map(sum, found[0]["bins"])) > len(kept)


def three_folders(n: int, seed: int) -> list[dict[str, Any]]:
    """Mails, to be sorted into folders, a fourth of which comes late."""
    mails = records(n, seed, late_columns=False)
    for i, mail in enumerate(mails):
        kind = ("spam", "lists") if mail["size"] < 0 else ("work", "home" if i > n // 2 else "work")
        mail["folder"] = kind[mail.pop("spam") == "yes"]
    return mails


def model_of_several(folder: Path, learner: Learner) -> Path:
    return model_of(three_folders(400, 9)[:200], "folder", "multiclass", folder, learner)


def model_of(mails: list[dict[str, Any]], label: str, kind: Target, folder: Path, learner: Learner) -> Path:
    rows(mails).frame.write_ndjson(folder / "mails.ndjson")
    contestants = {"learner": learner, **learner.baselines()}
    options = ReadOptions(task="user", label=label, kind=kind, hash_bits=8)
    with open_stream(folder / "mails.ndjson", options) as stream:
        for chunk in stream:
            for one in contestants.values():
                one.partial_fit(chunk.X, chunk.y, chunk.task)
        reading = Reading({"task": ["user"], "label": label, "hash_bits": 8}, stream.to_dict())
    return save_model(folder / "folders.shoal", contestants, reading)


def test_several_labels_are_judged_as_they_were_predicted(tmp_path: Path) -> None:
    """In one go, with a label that comes late, as the learner says it from row to row."""
    served = ServedModel(model_of_several(tmp_path, MultiClass(HedgedSharing(memory=1))), with_shadows=False)
    found, mails = Statistics(served), three_folders(300, 11)
    again: Any = ServedModel(tmp_path / "folders.shoal", with_shadows=False)
    errors, loss, certain = 0, 0.0, 0.0
    for mail in mails:
        chunk = again.encode(again.check(rows([mail]))[0])
        one, truth = again.learner, chunk.y[0]
        if new := chunk.X.shape[1] - one.n_features_in_:
            one.add_features(new)
        said = dict(zip(one.classes_.tolist(), one.predict_proba(chunk.X, chunk.task)[0], strict=True))
        errors += one.predict(chunk.X, chunk.task)[0] != truth
        loss -= math.log(max(said.get(truth, 0.0), 1e-15))
        certain += max(said.values())
        learn(one, chunk)
    fold = Fold(served, 0, found)
    fold.apply(Group(1, np.full(300, NOW), served.check(rows(mails))[0]))
    assert set(served.learner.classes_) == {"spam", "lists", "work", "home"}
    assert found.state()["errors"] == [errors / 300]
    assert found.state()["losses"] == [pytest.approx(loss / 300)]
    assert sum(found.state()["calibration"][1]) == pytest.approx(certain)


def test_one_odd_target_is_not_all_that_a_mean_error_says(tmp_path: Path) -> None:
    """It is clipped, for the learner and its shadows alike; and how rows are cut does not matter."""
    mails = [{**mail, "minutes": 3.0 * mail["size"] + mail.pop("spam").count("y")} for mail in records(900, 3)]
    model = model_of(mails[:300], "minutes", "regression", tmp_path, HedgedSharingRegressor(memory=1))
    found = []
    for odd, cut in ((None, 600), (1e12, 600), (1e12, 37)):
        served = ServedModel(model)
        statistics = Statistics(served)
        fold = Fold(served, 0, statistics)
        judged = [dict(mail) for mail in mails[300:]]
        if odd:
            judged[100]["minutes"] = odd
        for i in range(0, 600, cut):
            part = judged[i : i + cut]
            fold.apply(Group(1, np.full(len(part), NOW), served.check(rows(part))[0]))
        found.append(statistics)
    clean, whole, in_parts = (one.state()["errors"] for one in found)
    deviation = np.std([mail["minutes"] for mail in mails])
    assert (np.subtract(whole, clean) < 30.0 * deviation / 600).all()  # a row of 10 deviations, and what it teaches
    assert whole == in_parts
    assert [one.gauges()["targets_clipped"] for one in found] == [0.0, 1.0, 1.0]
    saved = found[1].to_dict()
    assert Statistics(found[1]._served, saved).to_dict() == saved


def test_decisions_that_are_no_logits_have_no_losses(tmp_path: Path) -> None:
    served = ServedModel(write_model(tmp_path, MultitaskPerceptron()), with_shadows=False)
    found = Statistics(served)
    Fold(served, 0, found).apply(Group(1, np.full(50, NOW), served.check(rows(records(50, 12)))[0]))
    assert (found.state()["has_losses"], found.state()["has_probabilities"]) == (False, False)
    assert not {"loss", "calibration_error"} & found.gauges().keys()
    assert found.task("u1").keys() == {"task", "rows", "error", "trend"}


@pytest.mark.parametrize(
    ("learner", "several"),
    [(HedgedSharing(memory=8), False), (OSMTL(), False), (MultiClass(HedgedSharing(memory=1)), True)],
    ids=["two labels", "rounds", "several labels"],
)
def test_a_crash_changes_no_number(learner: Learner, several: bool, tmp_path: Path) -> None:
    """What was counted live, from record to record, is what is counted when the log is read again."""
    model = model_of_several(tmp_path, learner) if several else write_model(tmp_path, learner)
    mails = three_folders(900, 7) if several else records(900, 7)
    never = EngineSettings(keep_log=True, rhythm=Rhythm(10**9, 1e9))
    with Engine(model, tmp_path / "engine", never) as engine:
        for i in range(0, 300, 30):
            engine.learn(rows(mails[i : i + 30]))
    engine = Engine(None, tmp_path / "engine", never)
    engine._learner._not_before = math.inf  # no snapshot when a task is forgotten
    sizes = np.random.default_rng(3).integers(1, 40, 60)
    for i, size in zip(300 + np.cumsum(sizes), sizes.tolist(), strict=True):
        engine.learn(rows(mails[i : i + size] or mails[:9])).result()
    engine.forget("u3").result()
    engine.learn(rows(mails[:50])).result()
    assert engine.wait_until_learned(timeout=60)
    live, gauges = engine.statistics.to_dict(), engine.statistics.gauges()
    engine.close(snapshot=False)
    with Engine(None, tmp_path / "engine", never) as engine:
        assert engine.statistics.to_dict() == live
        assert engine.statistics.gauges() == gauges
        engine._learner._not_before = math.inf
        engine.close(snapshot=False)
    again = Statistics(ServedModel(model))  # from the first record on, all that is alike in one go
    fold = Fold(again._served, 0, again)
    log = Log(f"sqlite:///{tmp_path / 'engine' / 'log.sqlite'}")
    for _ in fold.replay(log.read()):
        pass
    log.close()
    assert again.to_dict() == live
    assert live["rows"] > 900
