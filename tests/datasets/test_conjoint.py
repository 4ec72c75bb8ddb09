"""Simulated choices: their form, and the published difficulty of the problem."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from shoal.datasets import Dataset, make_conjoint


@pytest.fixture(scope="module")
def high() -> tuple[Dataset, Dataset]:
    return make_conjoint("high")


def test_form(high: tuple[Dataset, Dataset]) -> None:
    for data in high:
        assert data.X.shape == (30 * 96, 16)
        assert np.bincount(data.task).tolist() == [96] * 30
        assert data.y.sum() == 0
    assert (high[0].name, high[1].name) == ("conjoint", "conjoint_test")
    assert not np.array_equal(high[0].X, high[1].X)


def test_rows_are_differences_of_two_products_in_both_signs(high: tuple[Dataset, Dataset]) -> None:
    X, y = high[0].X, high[0].y
    assert set(np.unique(X)) == {-1, 0, 1}
    attributes = X.reshape(-1, 4, 4)
    assert (attributes.sum(axis=2) == 0).all()  # each product has one level of each attribute
    assert (np.abs(X).sum(axis=1) > 0).all()  # and two products of a question differ
    np.testing.assert_array_equal(X[0::2], -X[1::2])
    np.testing.assert_array_equal(y[0::2], -y[1::2])


def errors(similarity: Any, noise: Any = "low") -> tuple[float, float]:
    """Test error of one linear SVM for all people and of one for each, mean over three draws."""
    pooled, independent = [], []
    for seed in range(3):
        train, test = make_conjoint(similarity, noise, seed=seed)
        pooled.append(error(train, test, C=0.01))
        people = [(train.subset(train.task == k), test.subset(test.task == k)) for k in range(30)]
        independent += [error(*person, C=1.0) for person in people]
    return float(np.mean(pooled)), float(np.mean(independent))


def error(train: Dataset, test: Dataset, C: float) -> float:
    svm = LinearSVC(C=C, fit_intercept=False, loss="hinge", max_iter=100_000).fit(train.X, train.y)
    return 1 - float(svm.score(test.X, test.y))


def test_difficulty_is_that_of_the_paper() -> None:
    """Published (Srijith and Shevade 2012): pooled 15.6 % and 29.1 %, independent 10.5 % and 10.4 %."""
    np.testing.assert_allclose(errors("high"), (0.156, 0.105), atol=0.025)
    np.testing.assert_allclose(errors("low"), (0.291, 0.104), atol=0.03)


def test_noise_makes_it_harder() -> None:
    assert errors("high", "high")[1] > 2 * errors("high", "low")[1]


def test_seed_and_sizes() -> None:
    train, _ = make_conjoint(n_tasks=2, n_questions=3, seed=5)
    assert (len(train), train.n_tasks) == (36, 2)
    np.testing.assert_array_equal(train.X, make_conjoint(n_tasks=2, n_questions=3, seed=5)[0].X)
    assert not np.array_equal(train.X, make_conjoint(n_tasks=2, n_questions=3, seed=6)[0].X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"similarity": "medium"}, "similarity must be 'high' or 'low', got 'medium'"),
        ({"noise": 0.1}, "noise must be 'high' or 'low', got 0.1"),
        ({"n_questions": 0}, "must be at least 1, got 30 and 0"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_conjoint(**options)
