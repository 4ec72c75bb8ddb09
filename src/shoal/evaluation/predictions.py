"""Predictions of one learner for a piece of the stream, given before it was learned."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.evaluation.classes import ClassIndex
from shoal.evaluation.stream import Piece


class Predictions(NamedTuple):
    """Columns of equal length; None where the stream or the learner does not have them."""

    task: list[Any] | None
    label: list[Any] | None  # the truth
    predicted: list[Any]
    probability: FloatArray | None  # two labels: of the positive one; several: of the one predicted
    decision: FloatArray | None  # two labels, of learners without probabilities
    is_known: list[bool] | None = None  # whether the model knew the row's task


def predictions_of(
    piece: Piece, score: FloatArray, learner: Any, kind: str, *, has_probabilities: bool, classes: ClassIndex
) -> Predictions:
    """The columns from what the metrics see."""
    task = None if piece.task is None else np.asarray(piece.task).tolist()
    label = np.asarray(piece.y).tolist()
    if kind == "regression":
        return Predictions(task, label, score.tolist(), None, None)
    if kind == "multiclass":
        name = {number: label for label, number in classes.number.items()}
        return Predictions(task, label, [name.get(int(guess)) for guess in score[:, 0]], None, None)
    known = learner.classes_.tolist()
    predicted = [known[-1] if positive else known[0] for positive in score >= 0.0]
    if not has_probabilities:
        return Predictions(task, label, predicted, None, score)
    with np.errstate(over="ignore"):
        return Predictions(task, label, predicted, 1.0 / (1.0 + np.exp(-score)), None)
