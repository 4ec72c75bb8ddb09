"""Scores of forecasts, and the difference between two systems' scores with its standard error.

A score is a mean over rows (the macro-RMSE: over tasks) or near to one: each row contributes to it so much, and the
standard error of a difference comes from the differences of these contributions. Blocks of 20 rows in a row are taken
as independent, since neighbors that share a task or a year err together.

What a row contributes to the AUC: DeLong, DeLong and Clarke-Pearson, Biometrics 44, 1988.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from benchmarks.paired import Gap
from benchmarks.scores import Stream, errors, log_losses

CLASSIFICATION = ("AUC", "error", "log-loss")
REGRESSION = ("RMSE", "macro-RMSE", "MAE")
LARGER_IS_BETTER = ("AUC",)
BLOCK = 20  # rows


class Score(NamedTuple):
    """A score, and how much more than the mean each row, or task, contributes to it."""

    value: float
    contributions: Any


def score(stream: Stream, column: str, forecasts: Any) -> Score:
    """Of logits or real targets."""
    if column == "AUC":
        return _auc(stream.y > 0, forecasts)
    if column == "error":
        return _mean(errors(stream, forecasts))
    if column == "log-loss":
        return _mean(log_losses(stream, forecasts))
    residuals = stream.y - forecasts
    if column == "MAE":
        return _mean(np.abs(residuals))
    if column == "macro-RMSE":
        rows = np.bincount(stream.task)
        return _mean(np.sqrt(np.bincount(stream.task, residuals**2)[rows > 0] / rows[rows > 0]))
    squared = _mean(residuals**2)
    root = math.sqrt(squared.value)
    return Score(root, squared.contributions / (2.0 * root or 1.0))


def ahead(column: str, ours: Score, theirs: Score) -> Gap:
    """How much better the first score is: positive where it is, whichever way the column goes."""
    sign = 1.0 if column in LARGER_IS_BETTER else -1.0
    differences = ours.contributions - theirs.contributions
    n = len(differences)
    block = np.arange(n) // (1 if column == "macro-RMSE" else BLOCK)
    sums = np.bincount(block, differences)
    error = math.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1)) / n if len(sums) > 1 else math.nan
    return Gap(sign * (ours.value - theirs.value), error)


def best(column: str, values: list[float]) -> float:
    """The best of them."""
    return max(values) if column in LARGER_IS_BETTER else min(values)


def _mean(by_row: Any) -> Score:
    mean = float(by_row.mean())
    return Score(mean, by_row - mean)


def _auc(positive: Any, logits: Any) -> Score:
    """The share of pairs of a positive and a negative row that the larger logit wins; of equal ones each gets half."""
    rank, n = rankdata(logits), len(logits)
    won, own = np.empty(n), np.empty(n)  # the row's share of pairs won, and the rows of its label
    for label in (positive, ~positive):
        own[label] = label.sum()
        won[label] = (rank[label] - rankdata(logits[label])) / max(1, n - label.sum())
    won[~positive] = 1.0 - won[~positive]
    auc = float(won[positive].mean())
    return Score(auc, (won - auc) * n / own)
