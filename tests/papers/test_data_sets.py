"""Data sets as the papers have them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from shoal.datasets import Dataset
from shoal.papers import data_sets
from shoal.papers.by_paper.romco import SIZES


def test_four_users_have_the_papers_numbers_of_mails_and_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first mails of a user and kind, in their order; the words of most of them; user 2 is at 19.76 % of spam."""
    n_tasks, n_rows, n_words, largest, smallest = SIZES["spam"]
    rng, task = np.random.default_rng(0), np.repeat(np.arange(1, 7), 6000)
    order = rng.permutation(len(task))
    y = np.where(np.arange(len(task)) % 6000 < 2700, -1.0, 1.0)[order]
    n_all, starts = n_words + 20, np.arange(len(task) + 1) * 4
    columns = rng.integers(0, n_all, (len(task), 4)) ** 2 // n_all  # some words come in more mails than others
    words = csr_matrix((np.ones(columns.size), columns.ravel(), starts), (len(task), n_all))
    words.sum_duplicates()
    names = tuple(f"word {j}" for j in range(n_all))
    mails = Dataset("mails", words, y, task[order], names, "", "binary")
    monkeypatch.setattr(data_sets, "_mails", lambda: mails)

    data = data_sets.enron_of_four("raw")
    users, sizes = np.unique(data.task, return_counts=True)
    assert (len(users), len(data), data.X.shape[1], sizes.max(), sizes.min()) == (
        n_tasks, n_rows, n_words, largest, smallest,
    )  # fmt: skip
    assert sizes.tolist() == [1087, 710, 4129, 1142]
    assert 100 * (data.y[data.task == 2] > 0).mean() == pytest.approx(19.76, abs=0.1)
    kinds = [
        np.flatnonzero((mails.task == user) & (mails.y == label))[:n]
        for user, numbers in data_sets.FOUR_USERS.items()
        for label, n in zip((-1, 1), numbers, strict=True)
    ]
    kept = np.sort(np.concatenate(kinds))
    np.testing.assert_array_equal(data.y, mails.y[kept])
    often = words[kept].getnnz(axis=0)
    inside = np.isin(names, data.feature_names)
    assert often[inside].min() >= often[~inside].max()
