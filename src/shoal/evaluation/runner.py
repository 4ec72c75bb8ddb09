"""One learner on the stream: it predicts each row before it learns it, at once or with delayed labels."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.utils import get_tags

from shoal.engine.arrays import FloatArray, IntArray
from shoal.evaluation.classes import ClassIndex
from shoal.evaluation.stream import Piece, cut
from shoal.model.slicing import widened
from shoal.parallel.cores import thread_seconds


class Runner:
    """A learner, its clock, and the rows whose labels are still on their way.

    Parameters
    ----------
    learner : an online learner
    delay : int
        A round is learned once this many rows after its last one have been predicted.
    classes : the two labels, or None
    class_index : ClassIndex
        The numbers of the stream's classes, if there may be more than two.
    names : dict
        Column of each feature name of the stream's dict rows; grows with the stream, empty for arrays.
    """

    def __init__(self, learner: Any, delay: int, classes: Any, class_index: ClassIndex, names: dict[str, int]) -> None:
        self.learner, self.delay, self.classes, self.names = learner, delay, classes, names
        self.class_index = class_index
        self.is_classifier = bool(is_classifier(learner))
        self.kind = _kind(learner)
        self.has_probabilities = hasattr(learner, "predict_proba")
        self._decide = learner.decision_function if self.is_classifier else learner.predict
        self.simultaneous = bool(getattr(learner, "simultaneous", False))
        self.wall_seconds = self.cpu_seconds = 0.0
        self._waiting: deque[tuple[int, Piece]] = deque()  # (rows up to the round's end, round)
        self._predicted = 0
        self._column = np.zeros(0, np.int32)  # the learner's column of each of the stream's names
        self._width = 0
        self._updates_before = self._task_updates() if self._is_fitted() else {}
        self._n_updates_before = int(learner.n_updates_) if self._is_fitted() else 0
        self._n_queries_before = self._n_queries() or 0

    def run(self, piece: Piece, truth: FloatArray) -> FloatArray:
        """What metrics see of the predictions for a piece, each given before its row is learned."""
        wall, cpu = time.perf_counter(), self._cpu()
        predictions = self._round_by_round(piece, truth) if self.delay else self._test_then_train(piece, truth)
        self._clock(wall, cpu)
        return predictions

    def _judged(self, values: Any, truth: FloatArray) -> FloatArray:
        """Decision values or predictions as the metrics take them."""
        if self.kind != "multiclass":
            return np.asarray(values, np.float64)
        return self.class_index.judged(np.asarray(values, np.float64), self.learner.classes_, truth)

    def finish(self) -> None:
        """Learn what is still waiting: late labels arrive too."""
        wall, cpu = time.perf_counter(), self._cpu()
        while self._waiting:
            self._learn(self._waiting.popleft()[1])
        self._clock(wall, cpu)

    def _clock(self, wall: float, cpu: float) -> None:
        self.wall_seconds += time.perf_counter() - wall
        self.cpu_seconds += self._cpu() - cpu

    def _cpu(self) -> float:
        return thread_seconds()

    def _is_fitted(self) -> bool:
        return hasattr(self.learner, "n_features_in_")

    def _admit(self, X: Any) -> Any:
        """Columns may appear as the stream goes: give them to the learner; `X` as the learner's columns."""
        if self.names:
            return self._by_name(X)
        if self._is_fitted() and getattr(X, "shape", (0, 0))[1] > self.learner.n_features_in_:
            self.learner.add_features(X.shape[1] - self.learner.n_features_in_)
        return X

    def _by_name(self, X: Any) -> Any:
        """Dict rows: the learner may know these names in another order, and others."""
        if len(self._column) < len(self.names):
            self.learner.add_features(self.names)
            column = {name: j for j, name in enumerate(self.learner.feature_names_in_)}
            self._column = np.array([column[name] for name in self.names], np.int32)
            self._width = len(column)
        X = sp.csr_matrix((X.data, self._column[X.indices], X.indptr), shape=(X.shape[0], self._width))
        X.sort_indices()
        return X

    def _options(self, piece: Piece) -> dict[str, Any]:
        weights = {} if piece.weight is None else {"sample_weight": piece.weight}
        return {"rounds": piece.rounds} | weights | ({"classes": self.classes} if self.is_classifier else {})

    def _test_then_train(self, piece: Piece, truth: FloatArray) -> FloatArray:
        X = self._admit(piece.X)
        values = self.learner.test_then_train(X, piece.y, piece.task, **self._options(piece))
        return self._judged(values, truth)

    def _round_by_round(self, piece: Piece, truth: FloatArray) -> FloatArray:
        """Labels come late: a call per round."""
        n_rows = len(piece.code)
        predictions = ClassIndex.unknown(n_rows) if self.kind == "multiclass" else np.zeros(n_rows)
        starts = self._starts(piece)
        for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            one_round = cut(piece, first, last)
            if self._is_fitted():  # before the first label arrives every margin is 0
                values = self._decide(self._admit(one_round.X), one_round.task)
                predictions[first:last] = self._judged(values, truth[first:last])
            self._predicted += last - first
            self._waiting.append((self._predicted, one_round))
            while self._waiting and self._waiting[0][0] + self.delay <= self._predicted:
                self._learn(self._waiting.popleft()[1])
        return predictions

    def _starts(self, piece: Piece) -> IntArray:
        if piece.starts is not None and (self.simultaneous or piece.rounds is not None):
            return piece.starts
        return np.arange(len(piece.code) + 1)

    def _learn(self, one_round: Piece) -> None:
        X = self._admit(one_round.X)
        if self._is_fitted() and hasattr(X, "shape"):
            X = widened(X, self.learner.n_features_in_)  # columns may have appeared while the label was on its way
        self.learner.partial_fit(X, one_round.y, one_round.task, **self._options(one_round))

    def _task_updates(self) -> dict[Any, int]:
        return dict(zip(self.learner.tasks_, np.asarray(self.learner.task_updates_).tolist(), strict=True))

    def updates(self) -> tuple[int, dict[Any, int]]:
        """Updates during the run (a learner may come with a past): in all, and by task id."""
        before = self._updates_before
        per_task = {task: count - before.get(task, 0) for task, count in self._task_updates().items()}
        return int(self.learner.n_updates_) - self._n_updates_before, per_task

    def _n_queries(self) -> int | None:
        count = getattr(self.learner, "n_queries_", None)  # only learners that choose their labels have it
        return None if count is None else int(count)

    def queries(self) -> int | None:
        """Labels asked for during the run; None if the learner takes all."""
        count = self._n_queries()
        return None if count is None else count - self._n_queries_before


def _kind(learner: Any) -> str:
    if not is_classifier(learner):
        return "regression"
    tags = get_tags(learner).classifier_tags
    return "multiclass" if tags is not None and tags.multi_class else "binary"
