"""Every learner can say why it decided: contributions add up to the decision, whatever the form of the row."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests.cases import CLASSIFIERS, LEARNERS, OPEN, K, as_dict, saved, stream_for, taught, value_one
from tests.exclusions import UNEXPLAINED, each_of


def added(explanation: Any) -> float:
    return float(sum(one.total for one in explanation.contributions))


def values_of(explanation: Any) -> dict[Any, float]:
    """Of the features; pairs of them have none."""
    found = {one.feature: one.value for one in explanation.contributions if not np.isnan(one.value)}
    return {name: value for name, value in found.items() if name != "(intercept)"}


def by_feature(explanation: Any) -> dict[Any, float]:
    return {one.feature: one.total for one in explanation.contributions}


@each_of(LEARNERS)
def test_contributions_add_up_to_the_decision(name: str) -> None:
    stream, learner = stream_for(name, density=0.5), taught(name, density=0.5)
    before = saved(learner)
    for x, task in zip(stream.X[:12], stream.task[:12].tolist(), strict=True):
        found = learner.explain_one(x, task)
        expected = value_one(learner, x, task)
        assert found.decision == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert added(found) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        sizes = [abs(one.total) for one in found.contributions]
        assert sizes == sorted(sizes, reverse=True)
        assert values_of(found) == {j: v for j, v in enumerate(x.tolist()) if v}
        assert found.label == (learner.classes_[-1] if name in CLASSIFIERS else None)
    assert saved(learner) == before


@each_of(OPEN)
def test_an_unseen_task_is_explained_by_what_is_shared(name: str) -> None:
    stream, learner = stream_for(name), taught(name)
    found = learner.explain_one(stream.X[0], "nobody")
    assert found.decision == pytest.approx(value_one(learner, stream.X[0], "nobody"), rel=1e-9, abs=1e-12)
    assert not any(one.own for one in found.contributions)


@each_of(LEARNERS)
def test_dict_rows_are_explained_by_name_and_unseen_names_add_nothing(name: str) -> None:
    stream, learner = stream_for(name, density=0.5), LEARNERS[name]()
    for x, y, task in zip(stream.X, stream.y.tolist(), stream.task.tolist(), strict=True):
        learner.learn_one(as_dict(x), y, task)
    x, task = as_dict(stream.X[-1]), stream.task[-1].item()
    known = learner.explain_one(x, task)
    wider = learner.explain_one({**x, "never seen": 3.0}, task)
    assert by_feature(wider) == {**by_feature(known), "never seen": 0.0}
    assert values_of(known) == x
    assert wider.contributions[-1].feature == "never seen"
    assert wider.decision == pytest.approx(value_one(learner, x, task), rel=1e-9, abs=1e-12)


@each_of(LEARNERS)
def test_threads_explain_at_once(name: str) -> None:
    stream, learner = stream_for(name), taught(name)
    rows = list(zip(stream.X[:8], stream.task[:8].tolist(), strict=True))
    expected = [learner.explain_one(x, task) for x, task in rows]
    with ThreadPoolExecutor(3) as threads:
        for found in threads.map(lambda _: [learner.explain_one(x, task) for x, task in rows], range(3)):
            assert found == expected


@each_of(LEARNERS)
def test_similar_tasks_are_the_other_tasks_in_order(name: str) -> None:
    learner = taught(name)
    for task in learner.tasks_:
        found = learner.similar_tasks(task, n=3)
        assert len(found) <= 3
        assert task not in {other for other, _ in found}
        assert {other for other, _ in found} <= set(learner.tasks_)
        numbers = [similarity for _, similarity in found]
        assert numbers == sorted(numbers, reverse=True)
        assert all(np.abs(numbers) <= 1.0 + 1e-12)
    assert len(learner.similar_tasks(learner.tasks_[0], n=100)) <= K - 1
    with pytest.raises(ValueError, match="no task 'nobody'"):
        learner.similar_tasks("nobody")
    with pytest.raises(ValueError, match="1 or more"):
        learner.similar_tasks(learner.tasks_[0], n=0)


@pytest.mark.parametrize("name", UNEXPLAINED)
def test_learners_of_whole_rows_say_so_in_a_sentence(name: str) -> None:
    stream, learner = stream_for(name), taught(name)
    with pytest.raises(ValueError, match="there are no contributions of single features"):
        learner.explain_one(stream.X[0], stream.task[0])
