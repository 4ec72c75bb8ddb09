"""The stories as their README counts them, and tasks that grow together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from shoal.datasets import load_rcv1
from shoal.datasets.rcv1 import _stories, task_topics


def test_tasks_grow_from_nothing_in_common_to_the_same() -> None:
    levels = [{task: set(topics) for task, topics in task_topics(level).items()} for level in range(1, 9)]
    common = [
        [len(sets[task] & sets["corporate"]) / len(sets[task] | sets["corporate"]) for task in list(sets)[1:]]
        for sets in levels
    ]
    assert common[0] == [0, 0, 0]
    assert common[7] == [1, 1, 1]
    assert (np.diff(common, axis=0) > 0).all()
    assert all(sets["corporate"] == levels[0]["corporate"] for sets in levels)
    own = levels[0]
    for task in own:  # level 4: all own topics and all of the first task
        assert levels[3][task] == own[task] | own["corporate"]
    branches = {task: {topic[0] for topic in topics} for task, topics in own.items()}
    assert branches == {"corporate": {"C"}, "economics": {"E"}, "government": {"G"}, "markets": {"M"}}


def test_counts(benchmark_files: Callable[[str], Path]) -> None:
    benchmark_files("rcv1_subsets")
    X, topics, names = _stories()
    assert X.shape == (27_613, 47_236)
    assert topics.shape == (27_613, 101)
    np.testing.assert_allclose(np.sqrt(X.power(2).sum(axis=1)), 1, atol=1e-5)
    data = load_rcv1(1)
    assert len(data) == 27_612
    assert data.task[:5].tolist() == ["corporate", "economics", "government", "markets", "corporate"]
    wanted = [names.index(topic) for topic in task_topics(1)["government"]]
    np.testing.assert_array_equal(data.y[2::4] > 0, topics[2:27_612:4][:, wanted].any(axis=1))
    for task in set(data.task):
        assert 0.13 < (data.y[data.task == task] > 0).mean() < 0.25
    same = load_rcv1(8)
    assert max(abs((same.y[same.task == task] > 0).mean() - 0.217) for task in set(same.task)) < 0.01


def test_unknown_levels_are_refused() -> None:
    with pytest.raises(ValueError, match="level must be an integer from 1"):
        load_rcv1(0)
