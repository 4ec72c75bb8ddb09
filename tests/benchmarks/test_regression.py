"""Scores of real targets, by hand."""

import numpy as np
import pytest
from benchmarks.regression import score
from benchmarks.scores import Stream


def test_scores_are_of_the_rows_counted_and_of_the_tasks_that_have_some() -> None:
    task, y = np.array([0, 2, 2, 1, 1]), np.array([9.0, 1.0, 3.0, 2.0, 6.0])
    stream = Stream("by hand", np.zeros((5, 1)), y, task)
    found = score(stream, np.array([0.0, 0.0, 4.0, 2.0, 2.0]), 2.0, first=1)  # residuals 1, -1, 0, 4; none of task 0
    assert found.rmse == pytest.approx(np.sqrt(18 / 4))
    assert found.macro_rmse == pytest.approx((1.0 + np.sqrt(8.0)) / 2)
    assert found.explained == pytest.approx(1 - np.var([1, -1, 0, 4]) / np.var([1, 3, 2, 6]))
    assert found.speed == 2.5
