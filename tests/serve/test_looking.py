"""Looking at the model, and forgetting a task, hold up no prediction."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.serve.material import predict_one

from shoal import PassiveAggressive
from shoal.engine.task_weights import weights
from shoal.files import ReadOptions, open_stream
from shoal.model.core import Core
from shoal.model_file import Reading, save_model
from shoal.serve.apply import Turns
from shoal.serve.engine import Engine

N_TASKS = 300
ROW = {"shop": "shop 7", "price": 1.5}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("looking")
    price = np.random.default_rng(0).normal(size=2 * N_TASKS).round(3)
    shops = [f"shop {i % N_TASKS}" for i in range(2 * N_TASKS)]
    pl.DataFrame({"shop": shops, "price": price, "sold": price > 0}).write_csv(folder / "shops.csv")
    learner = PassiveAggressive()
    with open_stream(folder / "shops.csv", ReadOptions(task="shop", label="sold")) as stream:
        for chunk in stream:
            learner.partial_fit(chunk.X, chunk.y, chunk.task)
        reading = Reading({"task": ["shop"], "label": "sold"}, stream.to_dict())
    return save_model(folder / "shops.shoal", {"PassiveAggressive": learner}, reading)


def test_predictions_are_answered_while_tasks_are_compared(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few tasks are compared at a time, and the model is free in between."""
    compared, answered = list[int](), list[Any]()
    contributions, looking = Core.contributions, Turns.looking

    def counted(core: Core, tasks: Any, *features: Any) -> Any:
        compared.append(len(tasks))
        return contributions(core, tasks, *features)

    with Engine(model, tmp_path / "live") as engine:

        @contextmanager
        def then_predict(turns: Turns) -> Iterator[None]:
            with looking(turns):
                yield
            monkeypatch.setattr(Turns, "looking", looking)
            answered.append(predict_one(engine, ROW, wait=False))
            monkeypatch.setattr(Turns, "looking", then_predict)

        monkeypatch.setattr(Core, "contributions", counted)
        monkeypatch.setattr(Turns, "looking", then_predict)
        similar = engine.task("shop 7")["similar"]
        monkeypatch.undo()
    assert len(similar) == 5
    assert max(compared) <= 16
    assert len(answered) > 256 // 16
    assert len(set(answered)) == 1


def test_a_task_that_is_forgotten_meanwhile_is_like_no_other(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Engine(model, tmp_path / "live") as engine:
        first = engine.task("shop 7")["similar"][0]["task"]
        contributions = Core.contributions

        def forgetting(core: Core, *asked: Any) -> Any:
            monkeypatch.undo()
            engine._fold.served.learner.forget_task(first)
            return contributions(core, *asked)

        monkeypatch.setattr(Core, "contributions", forgetting)
        similar = engine.task("shop 7")["similar"]
        assert first not in {one["task"] for one in similar}
        assert len(similar) == 5


def test_predictions_are_answered_while_a_task_is_forgotten(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[Any] = []
    remove = weights.remove
    with Engine(model, tmp_path / "live") as engine:
        before = predict_one(engine, ROW, wait=False)

        def asked_meanwhile(*removed: Any) -> None:
            thread = threading.Thread(target=lambda: answers.append(predict_one(engine, ROW, wait=False)), daemon=True)
            thread.start()
            remove(*removed)
            thread.join(10.0)
            answers.append(thread.is_alive())

        monkeypatch.setattr(weights, "remove", asked_meanwhile)
        engine.forget("shop 7").result()
        assert answers == [before, False]
        assert not predict_one(engine, ROW, wait=False).known_task
