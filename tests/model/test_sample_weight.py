"""Rows of weight 0 and the tasks that they alone would bring."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.model.sample_weight import MOST, read_weights, without_weightless


def in_plain_words(task: list[str], known: list[str], weight: np.ndarray) -> tuple[list[int], list[str]]:
    tasks, columns = list(known), []
    for k, h in zip(task, weight, strict=True):
        if h > 0 and k not in tasks:
            tasks.append(k)
        columns.append(tasks.index(k) if k in tasks else -1)
    return columns, tasks[len(known) :]


@pytest.mark.parametrize("seed", range(50))
def test_a_task_enters_with_its_first_row_that_counts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    known, task = ["x", "y"], rng.choice(["x", "y", "a", "b", "c", "d"], 12).tolist()
    weight = rng.choice([0.0, 1.0, 2.0], 12, p=[0.6, 0.2, 0.2])
    new = [k for k in dict.fromkeys(task) if k not in known]
    columns = np.array([(known + new).index(k) for k in task])
    found, entered = without_weightless(columns, new, 2, weight)
    assert (found.tolist(), entered) == in_plain_words(task, known, weight)


def test_weights_that_are_all_one_are_none() -> None:
    assert len(read_weights(None, 3)) == 0
    assert len(read_weights([1, 1.0, True], 3)) == 0
    given = np.array([0.5, 1.0])
    read = read_weights(given, 2)
    given[0] = 7.0
    assert read.tolist() == [0.5, 1.0]


@pytest.mark.parametrize("weight", [0.0, -0.0, 5e-324, MOST])
def test_weights_at_their_limits(weight: float) -> None:
    assert read_weights([weight], 1).tolist() == [weight]


@pytest.mark.parametrize("weight", [-5e-324, np.nextafter(MOST, np.inf), np.inf, np.nan])
def test_weights_beyond_their_limits(weight: float) -> None:
    with pytest.raises(ValueError, match=r"row 1: sample_weight is .*; expected a number from 0 to 1e\+06"):
        read_weights([1.0, weight, -1.0], 3)
