"""Retraining never looks ahead, and what it answers before the first model knows the past alone."""

from typing import Any

import numpy as np
from benchmarks.boosting import base_rates, means, retrained, with_task
from scipy.sparse import csr_matrix


def test_each_row_is_answered_by_the_model_of_the_rows_up_to_the_last_twentieth() -> None:
    X, y = np.arange(47.0)[:, None], np.arange(47.0)

    def train(X: Any, y: Any) -> Any:
        assert len(X) == len(y)
        return lambda rows: np.full(len(rows), y[-1])  # the last row that it has seen

    answers = retrained(X, y, train, before=np.full(47, -1.0))
    ends = [47 * part // 20 for part in range(1, 21)]
    assert answers[: ends[0]].tolist() == [-1.0] * ends[0]
    for row in range(ends[0], 47):
        assert answers[row] == max(end for end in ends if end <= row) - 1


def test_before_the_first_model_the_answer_is_the_base_rate_or_the_mean_of_the_rows_before() -> None:
    positive = np.array([True, True, False, True])
    p = 1 / (1 + np.exp(-base_rates(positive)))
    np.testing.assert_allclose(p, [1 / 2, 2 / 3, 3 / 4, 3 / 5])
    np.testing.assert_allclose(means(np.array([4.0, 2.0, 9.0])), [0.0, 4.0, 3.0])


def test_the_task_is_the_last_column_of_narrow_and_of_wide_tables() -> None:
    narrow, wide = csr_matrix(np.eye(3)), csr_matrix((3, 2_000))
    for X in (narrow.toarray(), narrow):
        np.testing.assert_array_equal(with_task(X, [2, 0, 1]), np.column_stack([np.eye(3), [2, 0, 1]]))
    np.testing.assert_array_equal(with_task(wide, [2, 0, 1])[:, [2_000]].toarray(), [[2], [0], [1]])
