"""Predictions keep their turn while a model becomes larger."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from tests.serve.material import records, rows, write_model

from shoal import HedgedSharing, MultiClass
from shoal.model.core import Core
from shoal.serve import apply
from shoal.serve.apply import Fold, Group, Turns
from shoal.serve.learner_thread import STOPPED, LearnerThread, Rhythm
from shoal.serve.served_model import ServedModel


def test_answers_are_given_while_the_model_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """New tasks and features make a larger copy of the model; meanwhile the old one answers."""
    fold = Fold(ServedModel(write_model(tmp_path), with_shadows=False))
    frame = rows(records(50, late_columns=False))
    asked = fold.served.rows_of(frame, fold.readers.table)
    before = fold.served.predict(asked).probability
    grows, answered, in_time = threading.Event(), threading.Event(), []
    take = Core._take

    def slowly(core: Core, make: Callable[[], Any]) -> None:
        def make_slowly() -> Any:
            grows.set()
            in_time.append(answered.wait(20))
            return make()

        take(core, make_slowly)

    monkeypatch.setattr(Core, "_take", slowly)
    new = rows([row | {"user": f"new {i}", f"column {i}": 1.0} for i, row in enumerate(records(200))])
    learning = threading.Thread(target=fold.apply, args=(Group(1, np.zeros(200), fold.served.check(new)[0]),))
    learning.start()
    assert grows.wait(20)
    with fold.turns.answering():
        assert_array_equal(fold.served.predict(asked).probability, before)
    answered.set()
    learning.join()
    assert in_time
    assert all(in_time)
    assert "new 199" in fold.served.learner.tasks_


@pytest.mark.parametrize("learner", [None, MultiClass(HedgedSharing(memory=8))], ids=["one model", "a model a class"])
def test_an_answer_never_sees_half_a_row(learner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each class has a model, some have learned a row when another grows: then nobody is answered."""
    fold = Fold(ServedModel(write_model(tmp_path, learner), with_shadows=False))
    held, extended = [], Core._extended

    def noted(core: Core, rounds: Any) -> Any:
        held.append(fold.turns._lock.locked())
        return extended(core, rounds)

    monkeypatch.setattr(Core, "_extended", noted)
    frame = rows([row | {"user": f"new {i}"} for i, row in enumerate(records(2_000, late_columns=False))])
    fold.apply(Group(1, np.zeros(2_000), fold.served.check(frame)[0]))
    assert held
    assert set(held) == {learner is not None}


def test_learning_waits_while_anybody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the last of those who ask, and for so long at most."""
    waits: list[float] = []
    turns = Turns()
    is_free = turns._answering._is_free
    monkeypatch.setattr(is_free, "wait", waits.append)
    outer, inner = turns.answering(), threading.Thread(target=lambda: turns.answering().__enter__())
    with outer:
        assert not is_free.is_set()
        inner.start()  # it waits for the lock, and asks
        ends = time.monotonic() + 5
        while turns._answering._asking < 2 and time.monotonic() < ends:
            time.sleep(0.001)
    inner.join()
    assert (turns._answering._asking, is_free.is_set()) == (1, False)
    outer.__exit__(None, None, None)
    assert (turns._answering._asking, is_free.is_set()) == (0, True)
    with turns.learning():
        assert turns._lock.locked()
    assert waits == [apply.PATIENCE]
    assert not turns._lock.locked()


def test_a_long_look_gives_way_to_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the model anew for each piece; a prediction that came meanwhile has it before the next."""
    monkeypatch.setattr(apply, "A_LOOK", 10.0)
    turns, order = Turns(), list[str]()

    def predict() -> None:
        with turns.answering():
            order.append("prediction")

    with turns.looking():
        waiting = threading.Thread(target=predict)
        waiting.start()
        while not turns._answering._asking:
            time.sleep(0.001)
        order.append("first piece")
    with turns.looking():
        order.append("second piece")
    waiting.join()
    assert order == ["first piece", "prediction", "second piece"]


def test_who_waits_for_groups_is_told_that_learning_stopped() -> None:
    """The one that fails, those behind it, and those that come later."""
    fold: Any = SimpleNamespace(rows=0, position=0, forgotten=0, apply=Mock(side_effect=MemoryError))
    learning = LearnerThread(fold, 0, fold, Rhythm(), fold, print)
    waits: list[Future[None]] = [Future() for _ in range(3)]
    groups = [Group(i, np.empty(0), None, "u1", learned=one) for i, one in enumerate(waits, 1)]
    learning.put(groups[0])
    learning.put(Group(2, np.zeros(1), None))
    learning.put(groups[1])
    learning.start()
    learning.join()
    learning.put(groups[2])
    assert [str(one.exception(timeout=0)) for one in waits] == [STOPPED] * 3
