"""Rows of a stream drawn at random while it passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from shoal import PassiveAggressive
from shoal.evaluation import progressive_validate
from shoal.evaluation.sample import ROWS, WHOLE_ROWS, Sample, Sampler

N = 20_000


def drawn(cuts: list[int], make: Any = np.asarray) -> Sample:
    """Row i has the feature, the truth and the task i, and the forecast -i."""
    sampler = Sampler(numbers=True, whole=True)
    for first, last in zip([0, *cuts], [*cuts, N], strict=True):
        i = np.arange(first, last, dtype=float)
        sampler.update(make(i[:, None]), i.astype(int), i, -i)
    return sampler.sample(lambda X: X)


def test_each_row_is_as_likely_and_cuts_change_nothing() -> None:
    found = drawn([])
    assert found.pairs.shape == (ROWS, 2)
    assert (found.pairs[:, 0] == -found.pairs[:, 1]).all()
    assert len(set(found.pairs[:, 0].tolist())) == ROWS
    fourths = np.histogram(found.pairs[:, 0], 4, (0, N))[0]
    assert abs(fourths - ROWS / 4).max() < 5 * np.sqrt(ROWS * 0.25 * 0.75)
    assert found.X.shape == (WHOLE_ROWS, 1)
    assert found.X.toarray()[:, 0].tolist() == found.task
    frames = drawn([700, 1_000, 1_001, 4_500], lambda X: pl.DataFrame({"a": X[:, 0]}))
    for other in (drawn([1, 500, 4_100]), drawn([300], sp.csr_matrix), frames):
        np.testing.assert_array_equal(other.pairs, found.pairs)
        assert other.task == found.task


def test_of_fewer_rows_all_are_kept_and_what_nobody_asks_for_is_not() -> None:
    sampler = Sampler(numbers=True, whole=False)
    sampler.update(np.eye(3), None, np.arange(3.0), np.ones(3))
    assert sampler.sample(lambda X: X).pairs.tolist() == [[0, 1], [1, 1], [2, 1]]
    assert sampler.sample(lambda X: X).X is None
    sampler = Sampler(numbers=False, whole=True)
    sampler.update(np.eye(3), None, np.arange(3.0), np.ones(3))
    found = sampler.sample(lambda X: 2 * X)
    assert found.pairs.size == 0
    assert found.task is None
    np.testing.assert_array_equal(found.X.toarray(), 2 * np.eye(3))


@pytest.mark.parametrize("delay", [0, 3])
def test_features_stand_in_the_columns_of_the_learner(delay: int) -> None:
    rows = [({"a": 1.0, "b": 2.0}, 1, "x"), ({"c": 3.0, "a": 4.0}, 0, "y")] * 4
    learner = PassiveAggressive()
    learner.learn_one({"c": 1.0}, 1, "x")  # it has the stream's names in another order
    sample = progressive_validate(learner, rows, delay=delay).sample
    assert sample is not None
    assert learner.feature_names_in_.tolist() == ["c", "a", "b"]
    assert sample.X.toarray()[:2].tolist() == [[0, 1, 2], [3, 4, 0]]
    assert sample.task == ["x", "y"] * 4
