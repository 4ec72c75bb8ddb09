"""Predictions as columns for readers: of a piece of a stream before it is learned, or of rows that are not learned."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from shoal.engine.arrays import FloatArray
from shoal.engine.rounds import Chunk
from shoal.evaluation.metrics.multiclass import ClassIndex
from shoal.evaluation.metrics.regression import nearest_to_median
from shoal.evaluation.stream import Piece
from shoal.learner import logistic, probabilities
from shoal.model.slicing import as_wide


class Predictions(NamedTuple):
    """Columns of equal length; None where the stream or the learner does not have them."""

    task: list[Any] | None
    label: list[Any] | None  # the truth
    predicted: list[Any]
    probability: FloatArray | None  # two labels: of the positive one; several: of the one predicted
    decision: FloatArray | None  # two labels, of learners without probabilities
    is_known: list[bool] | None = None  # whether the model knew the row's task
    interval: FloatArray | None = None  # (n, 2) of real targets, by `Conformal`; infinite before the first 50 rows
    labels: list[list[Any]] | None = None  # those in the set of a `Conformal`
    quantiles: dict[str, FloatArray] | None = None  # by level, where several are answered; one of them is `predicted`


def predictions_of(
    piece: Piece, score: FloatArray, learner: Any, kind: str, classes: ClassIndex, answers: list[Any] | None
) -> Predictions:
    """The columns from the scores that metrics see; `kind` is "binary", "multiclass" or "regression".

    `answers` are those of a `Conformal` before each row: (low, high), or the labels of a set, None before the first.
    """
    task = None if piece.task is None else np.asarray(piece.task).tolist()
    label = np.asarray(piece.y).tolist()
    if kind == "regression":
        interval = None if answers is None else np.array(answers, np.float64).reshape(len(label), 2)
        numbers, quantiles = numbers_of(learner, score)
        return Predictions(task, label, numbers, None, None, None, interval, None, quantiles)
    known = learner.classes_.tolist()
    sets = None if answers is None else [known if labels is None else labels for labels in answers]
    if kind == "multiclass":
        name = {number: label for label, number in classes.number.items()}
        predicted = [name.get(int(guess)) for guess in score[:, 0]]
        return Predictions(task, label, predicted, None, None, None, None, sets)
    predicted = [known[-1] if positive else known[0] for positive in score >= 0.0]
    if not hasattr(learner, "predict_proba"):
        return Predictions(task, label, predicted, None, score)
    return Predictions(task, label, predicted, logistic(score), None, None, None, sets)


def numbers_of(learner: Any, score: FloatArray) -> tuple[list[float], dict[str, FloatArray] | None]:
    """One number a row, and of several quantiles all by their levels; the one is nearest to the median then."""
    if score.ndim == 1:
        return score.tolist(), None
    levels = learner.quantiles
    by_level = {str(level): column for level, column in zip(levels, score.T, strict=True)}
    return nearest_to_median(score, levels).tolist(), by_level


def sets_of(labels: list[Any], inside: NDArray[np.bool_]) -> list[list[Any]]:
    """The labels of each row's set, from (n, n_labels) whether they are in it."""
    return [[label for label, is_in in zip(labels, row, strict=True) if is_in] for row in inside.tolist()]


def predict_chunk(learner: Any, chunk: Chunk) -> Predictions:
    """A learner's predictions for rows that it does not learn."""
    X = as_wide(chunk.X, learner.n_features_in_)
    task = None if chunk.task is None else chunk.task.tolist()
    is_known = None if task is None else [learner.knows_task(one) for one in task]
    if not is_classifier(learner):
        interval = learner.predict_interval(X, chunk.task) if hasattr(learner, "predict_interval") else None
        numbers, quantiles = numbers_of(learner, learner.predict(X, chunk.task))
        return Predictions(task, None, numbers, None, None, is_known, interval, None, quantiles)
    sets = None
    if hasattr(learner, "predict_set"):
        sets = sets_of(learner.classes_.tolist(), learner.predict_set(X, chunk.task))
    has_probabilities = hasattr(learner, "predict_proba")
    if len(learner.classes_) > 2:
        predicted = learner.predict(X, chunk.task).tolist()
        largest = np.asarray(learner.predict_proba(X, chunk.task)).max(axis=1) if has_probabilities else None
        return Predictions(task, None, predicted, largest, None, is_known, None, sets)
    decision = np.asarray(learner.decision_function(X, chunk.task))
    predicted = learner.classes_[(decision >= 0.0).astype(np.int64)].tolist()
    if not has_probabilities:
        return Predictions(task, None, predicted, None, decision, is_known)
    return Predictions(task, None, predicted, probabilities(decision)[:, 1], None, is_known, None, sets)
