"""The contract of all learners about tasks: they come, go, are predicted for, and travel when copies merge."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import numpy as np
import pytest
from tests.cases import LEARNERS, OPEN, K, saved, stream_for, taught, value_one, values, weights
from tests.exclusions import each_of
from tests.streams import assert_close

from shoal.engine.axes import TASK
from shoal.model.algorithm import Size
from shoal.model.growth import stepping_aside
from shoal.model.state import described

each_learner = each_of(LEARNERS)
each_open_learner = each_of(OPEN)


@each_open_learner
def test_tasks_appear_at_any_time(name: str) -> None:
    stream = stream_for(name, K=70, n_rows=200, protocol="growing")
    learner = LEARNERS[name]()
    for rows in stream.rows_of_rounds:
        learner.partial_fit(stream.X[rows], stream.y[rows], stream.task[rows], rounds=stream.rounds[rows])
        assert learner.tasks_ == list(range(stream.task[: rows[-1] + 1].max() + 1))
    assert len(learner.tasks_) > 40
    assert weights(learner).shape == (len(learner.tasks_), stream.X.shape[1])


@each_open_learner
def test_declared_tasks_and_fit(name: str) -> None:
    """`fit` declares all tasks of its data and forgets everything before."""
    stream = stream_for(name, protocol="growing")
    declared = LEARNERS[name]().add_tasks(range(K)).add_tasks([1, 2])
    assert declared.tasks_ == list(range(K))
    declared.partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    refitted = taught(name, seed=3).fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    assert saved(declared) == saved(refitted)


@each_open_learner
def test_forget_task(name: str) -> None:
    stream = stream_for(name)
    learner = taught(name)
    order = learner.tasks_
    updates = dict(zip(order, learner.task_updates_, strict=True))
    others, seen = stream.task != 2, list[bytes]()

    def answers() -> bytes:
        return values(learner, stream.X[others], stream.task[others]).tobytes()

    @contextmanager
    def looking() -> Iterator[None]:
        """As a service predicts while a model forgets."""
        seen.append(answers())
        yield

    before = answers()
    with stepping_aside(looking):
        learner.forget_task(2)
    assert seen
    assert {*seen} <= {before, answers()}
    assert learner.tasks_ == [k for k in order if k != 2]
    assert {k: u for k, u in updates.items() if k != 2} == dict(zip(learner.tasks_, learner.task_updates_, strict=True))
    unseen = np.full(len(stream.y), 2)
    np.testing.assert_array_equal(
        values(learner, stream.X, unseen), values(learner, stream.X, np.full(len(stream.y), "nobody"))
    )
    if learner.relation_ is not None:
        assert learner.relation_.shape == (K - 1, K - 1)
    # It learns on as a model that never had room for the task.
    copied = pickle.loads(pickle.dumps(learner))
    more = stream_for(name, seed=1)
    for model in (learner, copied):
        model.partial_fit(more.X, more.y, more.task, rounds=more.rounds)
    assert saved(learner) == saved(copied)
    assert sorted(learner.tasks_) == list(range(K))
    with pytest.raises(ValueError, match="no task 'nobody'"):
        learner.forget_task("nobody")


@each_open_learner
def test_forgetting_a_task_leaves_the_weights_of_the_others(name: str) -> None:
    learner = taught(name)
    before, order = weights(learner), learner.tasks_
    learner.forget_task(2)
    np.testing.assert_array_equal(weights(learner), before[[k for k in range(K) if order[k] != 2]])


@each_open_learner
def test_all_tasks_can_be_forgotten(name: str) -> None:
    learner = taught(name)
    for task in learner.tasks_:
        learner.forget_task(task)
    assert learner.tasks_ == []
    stream = stream_for(name, seed=2)
    assert np.isfinite(values(learner, stream.X, stream.task)).all()
    learner.partial_fit(stream.X, stream.y, stream.task, rounds=stream.rounds)
    assert np.isfinite(weights(learner)).all()


@each_learner
def test_predicting_changes_nothing(name: str) -> None:
    learner = taught(name, n_rows=30)
    stream = stream_for(name, seed=1)
    before, tasks = saved(learner), learner.tasks_
    nobody = np.full(len(stream.y), "nobody")
    for task in (stream.task, nobody):
        learner.predict(stream.X, task)
        learner.score(stream.X, stream.y, task)
        values(learner, stream.sparse, task)
    learner.predict_one(stream.X[0], 0)
    learner.predict_one(stream.X[0], "nobody")
    learner.predict_round({0: stream.X[0], "nobody": stream.X[1]})
    assert learner.relation_ is None or learner.relation_.shape == (len(tasks), len(tasks))
    assert saved(learner) == before
    assert learner.tasks_ == tasks


@each_learner
def test_several_threads_predict_with_one_model(name: str) -> None:
    """Each compares every answer with what one thread got."""
    learner, stream = taught(name), stream_for(name, seed=1, n_rows=40)
    task = stream.task.tolist()
    expected = [value_one(learner, x, k) for x, k in zip(stream.X, task, strict=True)]
    together = values(learner, stream.X, stream.task)
    wrong: list[Any] = []

    def ask(start: int) -> None:
        for turn in range(start, start + 120):
            row = turn % len(task)
            if not np.array_equal(value_one(learner, stream.X[row], task[row]), expected[row]):
                wrong.append(row)
            if turn % 40 == 0 and not np.array_equal(values(learner, stream.X, stream.task), together):
                wrong.append("table")

    threads = [Thread(target=ask, args=(start,)) for start in (0, 13, 26)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


@each_learner
def test_a_task_must_be_named_where_tasks_have_names(name: str) -> None:
    learner, stream = taught(name), stream_for(name, seed=1)
    for ask in (learner.predict, lambda X: learner.score(X, stream.y)):
        with pytest.raises(ValueError, match="say which task the rows belong to"):
            ask(stream.X)
    with pytest.raises(ValueError, match="say which task the rows belong to"):
        learner.predict_one(stream.X[0])


@each_learner
def test_every_array_says_what_happens_when_copies_merge(name: str) -> None:
    """A cluster may merge copies that learned different tasks: what belongs to a task travels with it."""
    core: Any = LEARNERS[name]().new_core()
    while not hasattr(core, "algorithm"):
        core = getattr(core, "inner", None) or getattr(core, "rest", None) or core.cores[0]
    exchange = core.algorithm.exchange
    if isinstance(exchange, str):
        assert len(exchange.split()) > 5
        return
    leaves = described(type(core.algorithm.allocate(core.setup, Size(2, 3))))
    shared = {leaf.name for leaf in leaves if TASK not in leaf.axes and leaf.name.split(".")[0] != "own"}
    named = [*exchange.mean, *exchange.sum, *exchange.local]
    assert len(named) == len(set(named))
    assert set(named) == shared


@each_learner
def test_unseen_tasks_are_answered_finitely(name: str) -> None:
    learner = taught(name)
    stream = stream_for(name, seed=1)
    unseen = values(learner, stream.X, np.full(len(stream.y), "nobody"))
    assert np.isfinite(unseen).all()
    for row in range(3):
        one = value_one(learner, stream.X[row], "nobody")
        assert_close(one, unseen[row], 1e-11)
