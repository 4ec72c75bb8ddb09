"""Rows as text gives them: 100 distinct words of 150,000, the word of rank r in a share ~1/r of the documents."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

N_FEATURES = 150_000
NNZ = 100


def text_like(n_rows: int, n_tasks: int, *, seed: int = 0):
    """Unit-norm CSR rows, labels of related tasks, one row of every task in turn (`n_rows` is a multiple).

    Column numbers are shuffled, as hashing or the alphabet do: frequent words are not neighbours. A label is the
    sign of a linear score in which frequent words say most and each task has its own taste; rows near the border
    are left out, so that a Perceptron errs on about one row in twenty, as on real mail.
    """
    rng = np.random.default_rng(seed)
    ranks = _ranks(rng, 2 * n_rows)
    task = np.resize(np.arange(n_tasks), 2 * n_rows)
    common = rng.normal(size=N_FEATURES) / (1 + np.arange(N_FEATURES) / 30)
    own = 0.15 * rng.normal(size=(n_tasks, 50))
    score = common[ranks].sum(axis=1)
    score += np.where(ranks < 50, own[task[:, None], np.minimum(ranks, 49)], 0).sum(axis=1)
    score -= np.median(score)
    by_task = np.argsort(-np.abs(score).reshape(-1, n_tasks), axis=0, kind="stable")[: n_rows // n_tasks]
    rows = (rng.permuted(by_task, axis=0) * n_tasks + np.arange(n_tasks)).ravel()
    indices = rng.permutation(N_FEATURES)[ranks[rows]].ravel().astype(np.int32)
    indptr = np.arange(0, n_rows * NNZ + 1, NNZ)
    X = sp.csr_matrix((np.full(n_rows * NNZ, NNZ**-0.5), indices, indptr), shape=(n_rows, N_FEATURES))
    X.sort_indices()
    return X, np.where(score[rows] >= 0, 1.0, -1.0), task[rows]


def _ranks(rng: np.random.Generator, n_rows: int):
    """100 distinct ranks a row, log-uniform: document frequency ~ 1/rank."""
    drawn = np.exp(rng.random((n_rows, 2 * NNZ)) * np.log(N_FEATURES)).astype(np.int64)
    ranks = np.empty((n_rows, NNZ), np.int64)
    for row in range(n_rows):
        words = np.unique(drawn[row])
        ranks[row] = rng.permutation(words)[:NNZ]
    return ranks
