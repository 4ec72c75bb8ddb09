"""Rows like the ECML 2006 mails: 100 distinct words of a dictionary of 150,000; and rows with no structure at all."""

from typing import Any

import numpy as np
import scipy.sparse as sp

N_FEATURES = 150_000
NNZ = 100
# The share of mails that hold the word of a rank, read off the 6,000 mails of task B; 37,120 words occur.
RANKS = (1, 10, 100, 1_000, 5_000, 10_000, 20_000, 37_120)
SHARES = (0.85, 0.55, 0.15, 0.025, 0.0047, 0.002, 0.00083, 1 / 6_000)


def text_like(n_rows: int, n_tasks: int, *, uniform: bool = False, seed: int = 0) -> tuple[Any, np.ndarray, np.ndarray]:
    """Unit-norm CSR rows, labels of related tasks, one row of every task in turn (`n_rows` is a multiple).

    A label is the sign of a linear score in which frequent words say most and each task has its own taste; rows
    near the border are left out, so that Perceptrons err about as often as on real mail. `uniform` draws all words
    alike: the worst case for every cache.
    """
    rng = np.random.default_rng(seed)
    ranks = _ranks(rng, 2 * n_rows, uniform=uniform)
    task = np.resize(np.arange(n_tasks), 2 * n_rows)
    common = rng.normal(size=N_FEATURES) / (1 + np.arange(N_FEATURES) / 30)
    own = 0.15 * rng.normal(size=(n_tasks, 50))
    score = common[ranks].sum(axis=1)
    score += np.where(ranks < 50, own[task[:, None], np.minimum(ranks, 49)], 0).sum(axis=1)
    score -= np.median(score)
    by_task = np.argsort(-np.abs(score).reshape(-1, n_tasks), axis=0, kind="stable")[: n_rows // n_tasks]
    rows = (rng.permuted(by_task, axis=0) * n_tasks + np.arange(n_tasks)).ravel()
    indices = _by_first_appearance(ranks[rows].ravel()).astype(np.int32)
    indptr = np.arange(0, n_rows * NNZ + 1, NNZ)
    X = sp.csr_matrix((np.full(n_rows * NNZ, NNZ**-0.5), indices, indptr), shape=(n_rows, N_FEATURES))
    X.sort_indices()
    return X, np.where(score[rows] >= 0, 1.0, -1.0), task[rows]


def _ranks(rng: np.random.Generator, n_rows: int, *, uniform: bool) -> np.ndarray:
    """100 distinct ranks a row, drawn by their shares or evenly."""
    if uniform:
        drawn = rng.integers(N_FEATURES, size=(n_rows, 2 * NNZ))
    else:
        share = np.exp(np.interp(np.log(np.arange(1, RANKS[-1] + 1)), np.log(RANKS), np.log(SHARES)))
        cumulated = np.cumsum(share)
        drawn = np.searchsorted(cumulated, rng.random((n_rows, 3 * NNZ)) * cumulated[-1])
    ranks = np.empty((n_rows, NNZ), np.int64)
    for row in range(n_rows):
        ranks[row] = rng.permutation(np.unique(drawn[row]))[:NNZ]
    return ranks


def _by_first_appearance(words: np.ndarray) -> np.ndarray:
    """Column numbers as a dictionary gives them that grows while it reads."""
    seen, first = np.unique(words, return_index=True)
    column = np.empty(N_FEATURES, np.int64)
    column[seen[np.argsort(first)]] = np.arange(len(seen))
    return np.asarray(column[words])
