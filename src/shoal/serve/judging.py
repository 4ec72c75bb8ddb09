"""Rows judged: what was said of each before it was learned, against the truth.

The same however rows are cut into parts. Decision values of two labels are logits where the learner has probabilities.
Of several labels each has its logit against the rest; of one that has not come yet nothing was said, though it may come
in the same part.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.classifier import probabilities
from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel
from shoal.evaluation.metrics.multiclass import SMALLEST
from shoal.online.hedged_sharing.targets import CLIPPED, MEAN, learn_target


class Judged(NamedTuple):
    """A column each."""

    errors: FloatArray  # 0 or 1; of numbers the absolute error
    losses: FloatArray  # log-loss; of numbers the squared error; zeros of learners without probabilities
    forecast: FloatArray  # probability of the positive label, or of the predicted one of several; the predicted number
    happened: FloatArray  # whether that label came; the number that came


@kernel(entry=True)
def clip_targets(truth: FloatArray, targets: FloatArray, clipped: FloatArray) -> None:
    """Real targets, those beyond 10 deviations clipped as the default regressor clips them; `targets` is its state.

    One odd target would else be all that a mean error says, for good.
    """
    for i in range(len(truth)):
        before, mean = targets[CLIPPED], targets[MEAN]
        off = learn_target(truth[i], 1.0, targets)
        clipped[i] = truth[i] if targets[CLIPPED] == before else mean + off


def judge_numbers(predicted: FloatArray, truth: NDArray[np.float64]) -> Judged:
    """Of a regressor."""
    off = truth - predicted
    return Judged(np.abs(off), np.square(off), predicted, truth)


def judge_two(decisions: FloatArray, positive: NDArray[np.bool_], *, has_probabilities: bool) -> Judged:
    """Of a learner of two labels."""
    wrong = ((decisions >= 0.0) != positive).astype(np.float64)
    happened = positive.astype(np.float64)
    if not has_probabilities:
        return Judged(wrong, np.zeros(len(wrong)), np.zeros(len(wrong)), happened)
    losses = np.logaddexp(0.0, np.where(positive, -decisions, decisions))
    return Judged(wrong, losses, probabilities(decisions)[:, 1], happened)


def judge_several(decisions: FloatArray, truth: IntArray, since: IntArray, *, has_probabilities: bool) -> Judged:
    """Of a learner of any number of labels, all of them known after these rows.

    Parameters
    ----------
    decisions : (n, n_labels); with two labels (n,), positive for the second
    truth : (n,) places of the labels that came
    since : (n_labels,) the row before which each was known
    """
    n, n_labels = len(truth), len(since)
    if decisions.ndim == 1:
        decisions = np.column_stack([-decisions, decisions])[:, -n_labels:]
    rows = np.arange(n)
    known = rows[:, None] >= since
    margins = np.where(known, decisions, -np.inf)
    n_known = known.sum(axis=1)
    two = np.flatnonzero(n_known == 2)  # the second decides alone
    first, second = known[two].argmax(axis=1), n_labels - 1 - known[two, ::-1].argmax(axis=1)
    margins[two, first] = -margins[two, second]
    predicted = margins.argmax(axis=1)
    predicted[two] = np.where(margins[two, second] >= 0.0, second, first)
    right = (predicted == truth) & (n_known > 0)
    if not has_probabilities:
        nothing = np.zeros(n)
        return Judged(1.0 - right, nothing, nothing, right.astype(np.float64))
    each = np.where(known, probabilities(margins.ravel())[:, 1].reshape(n, n_labels), 0.0)
    # One after the other, so that a label without probability does not change how the others round.
    each /= np.maximum(np.add.accumulate(each, axis=1)[:, -1:], SMALLEST)
    each[n_known == 1] = known[n_known == 1]
    losses = -np.log(np.maximum(each[rows, truth], SMALLEST))
    return Judged(1.0 - right, losses, each[rows, predicted], right.astype(np.float64))


def known_since(labels: NDArray[np.generic], before: set[object], truth: NDArray[np.generic]) -> IntArray:
    """The row before which each label was known."""
    since = np.zeros(len(labels), np.int64)
    for place, label in enumerate(labels.tolist()):
        if label not in before:
            came = np.flatnonzero(truth == label)
            since[place] = came[0] + 1 if len(came) else len(truth)
    return since
