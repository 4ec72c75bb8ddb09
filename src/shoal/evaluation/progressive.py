"""Progressive validation: one pass over the stream in which every row is first predicted, then learned.

`progressive_validate` is the loop. A `Race` feeds each piece of the stream to all learners, so that they see the same
rows in the same order; a `Runner` is one learner in it, which learns at once or with delayed labels.
"""

from __future__ import annotations

import inspect
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, closing
from typing import Any, overload

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.utils import get_tags

from shoal.engine.arrays import FloatArray, IntArray
from shoal.evaluation.metrics.multiclass import ClassIndex
from shoal.evaluation.metrics.registry import choose
from shoal.evaluation.metrics.regression import Divergence, nearest_to_median
from shoal.evaluation.metrics.scoreboard import Scoreboard, Scores
from shoal.evaluation.metrics.trends import TaskTrends
from shoal.evaluation.model_adapter import ModelAdapter
from shoal.evaluation.predictions import Predictions, predictions_of, sets_of
from shoal.evaluation.result import Checkpoint, Coverage, Evaluation, label, number
from shoal.evaluation.sample import Sampler
from shoal.evaluation.stream import ClassWeights, Piece, as_chunks, cut, cut_at, whole_rounds, with_task
from shoal.learner import Learner, weights_for
from shoal.model.labels import InOrder, Labels, encode, real_targets
from shoal.model.slicing import len_of, widened
from shoal.model.tasks import TaskIndex
from shoal.parallel.cores import n_cores, thread_seconds
from shoal.progress import Bar

FIRST_CHECKPOINT = 1_000
MIN_ROWS_FOR_THREADS = 512  # of a piece: shorter ones are run one learner after the other

Metrics = str | Sequence[str | Callable[..., Any]]


@overload
def progressive_validate(  # a learner comes first: its base is untyped, and to a type checker could be a mapping too
    learners: Learner,
    stream: Any,
    *,
    metrics: Metrics | None = ...,
    window: int = ...,
    delay: int = ...,
    checkpoints: str | int | None = ...,
    classes: Any = ...,
    class_weight: Mapping[Any, float] | str | None = ...,
    progress: bool = ...,
    on_checkpoint: Callable[[Checkpoint], object] | None = ...,
    on_rows: Callable[[int], object] | None = ...,
    on_predictions: Callable[[Predictions], object] | None = ...,
) -> Evaluation: ...


@overload
def progressive_validate(
    learners: Mapping[str, Any],
    stream: Any,
    *,
    metrics: Metrics | None = ...,
    window: int = ...,
    delay: int = ...,
    checkpoints: str | int | None = ...,
    classes: Any = ...,
    class_weight: Mapping[Any, float] | str | None = ...,
    progress: bool = ...,
    on_checkpoint: Callable[[dict[str, Checkpoint]], object] | None = ...,
    on_rows: Callable[[int], object] | None = ...,
    on_predictions: Callable[[Predictions], object] | None = ...,
) -> dict[str, Evaluation]: ...


@overload
def progressive_validate(
    learners: Any,
    stream: Any,
    *,
    metrics: Metrics | None = ...,
    window: int = ...,
    delay: int = ...,
    checkpoints: str | int | None = ...,
    classes: Any = ...,
    class_weight: Mapping[Any, float] | str | None = ...,
    progress: bool = ...,
    on_checkpoint: Callable[[Checkpoint], object] | None = ...,
    on_rows: Callable[[int], object] | None = ...,
    on_predictions: Callable[[Predictions], object] | None = ...,
) -> Evaluation: ...


def progressive_validate(
    learners: Any,
    stream: Any,
    *,
    metrics: Metrics | None = None,
    window: int = 1000,
    delay: int = 0,
    checkpoints: str | int | None = "exponential",
    classes: Any = None,
    class_weight: Mapping[Any, float] | str | None = None,
    progress: bool = False,
    on_checkpoint: Callable[[Any], object] | None = None,
    on_rows: Callable[[int], object] | None = None,
    on_predictions: Callable[[Predictions], object] | None = None,
) -> Any:
    """Run learners over a stream, predicting each row before it is learned.

    Learners that ask for labels (`LabelQuery`) are scored on all rows, whether they asked or not; `n_queries` counts.

    Parameters
    ----------
    learners : learner, or dict of name -> learner
        They are trained; one learner gives one `Evaluation`, a dict gives a dict. Models of river, of scikit-learn or
        of one's own are taken as `ModelAdapter` says.
    stream : `(X, y, task)`, iterable of chunks `(X, y, task[, rounds])` or of rows `(x, y, task)`, or a data set
        Chunks as for `partial_fit` (`shoal.Chunk` or tuples; later chunks may be wider); a row's `x`
        is a dict or a 1-d array. How the stream is chunked does not change the result. The learners learn with a
        chunk's weights (`Chunk.weight`), one that takes none refuses them; scores
        count each row once all the same, because a weight says how much is to be learned from a row (a class made
        heavier to be found, say), and scores of other weights could not be compared with those without.
    metrics : name, or sequence of names, scorers, functions of scikit-learn, or makers of a `Metric`
        Default: error, auc, f1_positive, f1_negative, and of learners with probabilities log_loss, brier and
        calibration_error; for several classes error and log_loss; for regression mae, rmse, explained_variance, for
        learners of quantiles pinball, the mean loss over their levels, and of a single one mae; crps is the score of
        the distribution that these levels stand for. Beside these balanced_error, matthews, mape, pinball (pinball:0.9
        for another level than the median's), poisson_deviance, and every scorer (`sklearn.metrics.get_scorer_names()`)
        and function (cohen_kappa_score) of scikit-learn, by name or as such; these keep the rows, 24 bytes
        each, and give a value by task and a mean over tasks for tasks of 100 rows or more. A
        scorer's errors are negative, as everywhere in scikit-learn.
    window : int
        Rows of the sliding window of the windowed values.
    delay : int
        The label of a row is learned only after this many later rows have been predicted (rounds of several
        rows: after their last row). Exact, so each round costs a call of its own.
    checkpoints : "exponential", int or None
        When to record the scores: after 1,000, 2,000, 4,000, ... rows, at an interval of rows, or at the end
        only. A checkpoint inside a round waits for the round's end.
    classes : sequence of two labels
        Needed if the stream begins with a single label of unknown kind.
    class_weight : dict of label -> weight, or "balanced"
        How much more the learners learn from rows of a label, beside a chunk's weights; labels that are not named weigh
        1. "balanced": from a row the inverse of its label's share of the rows so far, as `stream.ClassWeights` says.
    progress : bool
        Show rows a second, the time that is left and the score so far, on a terminal (stderr) or in a notebook; needs
        rich, which `pip install "shoal[cli]"` brings.
    on_checkpoint : function of a `Checkpoint`, or of a dict of them
        Called at each checkpoint.
    on_rows : function of int
        Called with the number of rows done, after each piece of the stream.
    on_predictions : function of `Predictions`
        Called with the first learner's predictions for each piece of the stream.

    Returns
    -------
    Evaluation, or dict of name -> Evaluation

    Raises
    ------
    ValueError
        If an argument or the stream is not as described, or a learner refuses rows.
    """
    named = learners if isinstance(learners, Mapping) else {"": learners}
    _check(named, window, delay, checkpoints)
    if class_weight is not None and not all(map(is_classifier, named.values())):
        raise ValueError("class_weight is for labels, and the learners predict numbers")
    with ExitStack() as stack:
        race = stack.enter_context(closing(Race(named, metrics, window, delay, classes)))
        bar = stack.enter_context(Bar(_size(stream), "rows")) if progress else None
        simultaneous = any(runner.simultaneous for runner in race.runners.values())
        chunks = with_task(as_chunks(stream, race.names), named.values())
        weights = None if class_weight is None else ClassWeights(class_weight)
        chunks = chunks if weights is None else weights.of(chunks)
        pieces = whole_rounds(chunks, race.tasks, simultaneous=simultaneous)
        for piece, at_checkpoint in cut_at(pieces, lambda rows: _next_checkpoint(rows, checkpoints)):
            predictions = race.run(piece)
            if on_predictions is not None:
                on_predictions(race.as_columns(piece, predictions))
            if at_checkpoint:
                _report(race, named is learners, on_checkpoint)
            if on_rows is not None:
                on_rows(race.rows)
            if bar is not None:
                bar.update(race.rows, race.so_far())
        if race.rows == 0:
            raise ValueError("the stream has no rows")
        if race.rows != race.last_checkpoint:
            _report(race, named is learners, on_checkpoint)
        evaluations = race.finish([] if weights is None else weights.notes())
    return evaluations if named is learners else evaluations[""]


def _size(stream: Any) -> int | None:
    """The number of rows, where it is known."""
    y = stream[1] if isinstance(stream, tuple) and len(stream) > 1 else getattr(stream, "y", None)
    return None if y is None else len_of(y)


def _report(race: Race, several: bool, on_checkpoint: Callable[[Any], object] | None) -> None:
    points = race.checkpoint()
    if on_checkpoint is not None:
        on_checkpoint(points if several else points[""])


def _next_checkpoint(rows: int, checkpoints: str | int | None) -> float:
    if checkpoints is None:
        return float("inf")
    if isinstance(checkpoints, int):
        return (rows // checkpoints + 1) * checkpoints
    stop = FIRST_CHECKPOINT
    while stop <= rows:
        stop *= 2
    return stop


def _check(learners: Mapping[str, Any], window: int, delay: int, checkpoints: str | int | None) -> None:
    if not learners:
        raise ValueError("learners is empty; expected at least one learner")
    if window < 1:
        raise ValueError(f"window must be at least 1 row, got {window}")
    if delay < 0:
        raise ValueError(f"delay must be a number of rows, 0 or more, got {delay}")
    if checkpoints not in ("exponential", None) and not (isinstance(checkpoints, int) and checkpoints >= 1):
        raise ValueError(f'checkpoints must be "exponential", a number of rows, or None, got {checkpoints!r}')


class Race:
    """Several learners on one stream, with the tasks and labels seen so far."""

    def __init__(
        self, learners: Mapping[str, Any], metrics: Metrics | None, window: int, delay: int, classes: Any
    ) -> None:
        self.names: dict[str, int] = {}
        self.class_index = ClassIndex()
        self._classes = _in_order(learners) if classes is None else classes
        self.runners = {
            name: Runner(_adapted(learner), delay, self._classes, self.class_index, self.names)
            for name, learner in learners.items()
        }
        kinds = {runner.kind for runner in self.runners.values()}
        if len(kinds) != 1:
            raise ValueError(
                f"learners of one run must be all for two labels, all for several classes or all regressors; "
                f"got {' and '.join(sorted(kinds))}"
            )
        self.kind = kinds.pop()
        self.levels = _common_levels(runner.levels for runner in self.runners.values())
        self.boards = {
            name: Scoreboard(
                *choose(metrics, self.kind, has_probabilities=runner.has_probabilities, levels=self.levels), window
            )
            for name, runner in self.runners.items()
        }
        self.class_index.every = any(board.keeps_rows for board in self.boards.values())
        self.history: dict[str, list[Checkpoint]] = {name: [] for name in learners}
        self._latest: dict[str, tuple[Scores, Scores]] = {}
        self.divergences = {name: Divergence() for name in learners} if self.kind == "regression" else {}
        self._first, first = next(iter(self.runners.items()))
        self.trends = TaskTrends(self.kind, has_probabilities=first.has_probabilities)
        whole = hasattr(first.learner, "deciding_cores")  # what a learner that explains rows shall explain
        self.sampler = Sampler(numbers=self.kind == "regression", whole=whole)
        self.tasks = TaskIndex()
        self.rows = self.last_checkpoint = 0
        self._labels: Labels | None = None
        n_threads = min(len(learners), n_cores())
        self._threads = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def run(self, piece: Piece) -> dict[str, FloatArray]:
        """Feed a piece to every learner and score it; refuse bad rows before anything is learned."""
        truth = self._truth(piece)
        if self._classes is None and self._labels is not None and self._labels.settled:
            for runner in self.runners.values():
                runner.classes = self._labels.classes
        predictions = self._predictions(piece, truth)
        for name, board in self.boards.items():
            board.update(piece.code, truth, predictions[name], len(self.tasks))
        first = self._one_each(predictions[self._first])
        self.trends.update(piece.code, truth, first, len(self.tasks))
        self.sampler.update(piece.X, piece.task, truth, first)
        for name, divergence in self.divergences.items():
            divergence.update(truth, self._one_each(predictions[name]))
        self.rows += len(piece.code)
        return predictions

    def _one_each(self, predictions: FloatArray) -> FloatArray:
        """One prediction a row, as metrics take it; of several quantiles the one nearest to the median."""
        return nearest_to_median(predictions, self.levels) if len(self.levels) > 1 else predictions

    def as_columns(self, piece: Piece, predictions: dict[str, FloatArray]) -> Predictions:
        """The first learner's predictions in the labels' own words."""
        name, runner = next(iter(self.runners.items()))
        return predictions_of(piece, predictions[name], runner.learner, runner.kind, self.class_index, runner.answers)

    def _predictions(self, piece: Piece, truth: FloatArray) -> dict[str, FloatArray]:
        """Run every learner. They share nothing and compiled code holds no lock, so each core runs one."""
        if self._threads is None or len(piece.code) < MIN_ROWS_FOR_THREADS:
            return {name: runner.run(piece, truth) for name, runner in self.runners.items()}
        futures = {name: self._threads.submit(runner.run, piece, truth) for name, runner in self.runners.items()}
        wait(futures.values())  # if one refuses the rows, the others still finish them
        return {name: future.result() for name, future in futures.items()}

    def _truth(self, piece: Piece) -> FloatArray:
        if self.kind == "multiclass":
            return self.class_index.encode(piece.y)
        if self.kind == "regression":
            return real_targets(piece.y, len(piece.code))
        truth, self._labels = encode(piece.y, len(piece.code), self._labels, self._classes)
        return truth

    def checkpoint(self) -> dict[str, Checkpoint]:
        """Record the scores of all learners."""
        n = len(self.tasks)
        for name, board in self.boards.items():
            total, since_last, windowed = board.checkpoint(n)
            seconds = self.runners[name].wall_seconds
            self.history[name].append(
                Checkpoint(
                    self.rows,
                    n,
                    total.overall,
                    total.macro,
                    since_last.overall,
                    windowed.overall,
                    seconds,
                    self.runners[name].coverage(),
                )
            )
            self._latest[name] = total, windowed
        self.last_checkpoint = self.rows
        return {name: points[-1] for name, points in self.history.items()}

    def so_far(self) -> str:
        """The first score of the first learner at the last checkpoint, in words."""
        points = next(iter(self.history.values()))
        return (
            "".join(f"{label(name)} {number(value)}" for name, value in list(points[-1].overall.items())[:1])
            if points
            else ""
        )

    def close(self) -> None:
        """End the threads."""
        if self._threads is not None:
            self._threads.shutdown()

    def finish(self, notes: Sequence[str]) -> dict[str, Evaluation]:
        """The evaluations, after learning the labels that have not arrived yet; with notes on the stream."""
        return {name: self._evaluation(name, notes) for name in self.runners}

    def _evaluation(self, name: str, notes: Sequence[str]) -> Evaluation:
        runner, board = self.runners[name], self.boards[name]
        runner.finish()
        n_updates, task_updates = runner.updates()
        total, windowed = self._latest[name]  # the end is a checkpoint
        updates = [task_updates.get(task, 0) for task in self.tasks.ids]
        return Evaluation(
            kind=self.kind,
            quantiles=self.levels,
            rows=self.rows,
            overall=total.overall,
            macro=total.macro,
            standard_errors=board.errors(),
            per_task=self._per_task({"rows": total.rows, "updates": updates}, total),
            windowed=windowed.overall,
            windowed_macro=windowed.macro,
            windowed_per_task=self._per_task({"rows": windowed.rows}, windowed),
            window=board.window,
            history=self.history[name],
            n_updates=n_updates,
            n_queries=runner.queries(),
            wall_seconds=runner.wall_seconds,
            cpu_seconds=runner.cpu_seconds,
            learner=runner.learner,
            diverged=self.divergences[name].row if name in self.divergences else None,
            calibration=board.bins(),
            confusion=self._confusion(board),
            notes=[*notes, *board.notes()],
            trends=self.trends if name == self._first else None,
            sample=self.sampler.sample(runner.admit) if name == self._first else None,
        )

    def _confusion(self, board: Scoreboard) -> dict[tuple[Any, Any], int]:
        """Confusion counts by label; None stands for a prediction before any class was known."""
        label = {number: label for label, number in self.class_index.number.items()}
        return {(label[true], label.get(guess)): rows for (true, guess), rows in board.confusion().items()}

    def _per_task(self, counts: dict[str, Any], scores: Scores) -> dict[Any, dict[str, float]]:
        """One dict per task from one column per value."""
        columns = {name: list(map(int, count)) for name, count in counts.items()}
        columns |= {name: values.tolist() for name, values in scores.per_task.items()}
        rows = zip(*columns.values(), strict=True)
        return {task: dict(zip(columns, row, strict=True)) for task, row in zip(self.tasks.ids, rows, strict=True)}


def _adapted(learner: Any) -> Any:
    """The learner, or a foreign model as one."""
    own = hasattr(learner, "test_then_train") and "rounds" in inspect.signature(learner.test_then_train).parameters
    return learner if own or hasattr(learner, "solve") else ModelAdapter(learner)


def _in_order(learners: Mapping[str, Any]) -> InOrder | None:
    """The two labels of a learner whose positive label is not the larger one."""
    for learner in learners.values():
        labels = getattr(learner, "classes_", np.zeros(0)).tolist()
        if len(labels) == 2 and labels[1] < labels[0]:
            return InOrder(labels)
    return None


class Runner:
    """One learner, its clock, and the rows whose labels have not arrived yet.

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
        self.levels: tuple[float, ...] = getattr(learner, "quantiles", ())
        self._several = bool(getattr(learner, "answers_several", False))
        self._has_answers = hasattr(learner, "judge_then_train")
        self._decide = learner.decision_function if self.is_classifier else learner.predict
        self.simultaneous = bool(getattr(learner, "simultaneous", False))
        self.answers: list[Any] | None = None  # of a `Conformal`, before each row of the last piece
        self.wall_seconds = self.cpu_seconds = 0.0
        self._waiting: deque[tuple[int, Piece]] = deque()  # (rows up to the round's end, round)
        self._predicted = 0
        self._column = np.zeros(0, np.int32)  # the learner's column of each of the stream's names
        self._width = 0
        self._updates_before = self._task_updates() if self._is_fitted() else {}
        self._n_updates_before = int(learner.n_updates_) if self._is_fitted() else 0
        self._n_queries_before = self._n_queries() or 0
        self._covered_before = self._covered() or Coverage(0, 0)

    def run(self, piece: Piece, truth: FloatArray) -> FloatArray:
        """The predictions for a piece as metrics take them, each given before its row is learned."""
        wall, cpu = time.perf_counter(), thread_seconds()
        predictions = self._round_by_round(piece, truth) if self.delay else self._test_then_train(piece, truth)
        self._clock(wall, cpu)
        return predictions

    def _judged(self, values: Any, truth: FloatArray) -> FloatArray:
        """Decision values or predictions as the metrics take them."""
        if self.kind != "multiclass":
            return np.asarray(values, np.float64)
        return self.class_index.judged(np.asarray(values, np.float64), self.learner.classes_, truth)

    def coverage(self) -> Coverage | None:
        """How many targets were in their intervals or sets, of those that were held against them during the run."""
        found = self._covered()
        return None if found is None else Coverage(*(a - b for a, b in zip(found, self._covered_before, strict=True)))

    def _covered(self) -> Coverage | None:
        if not self._has_answers or not self._is_fitted():
            return None
        judged, share = self.learner.judged_, self.learner.coverage_
        return Coverage(int(judged.sum()), round(float((judged * share)[judged > 0.0].sum())))

    def finish(self) -> None:
        """Learn the rows whose labels are still late."""
        wall, cpu = time.perf_counter(), thread_seconds()
        while self._waiting:
            self._learn(self._waiting.popleft()[1])
        self._clock(wall, cpu)

    def _clock(self, wall: float, cpu: float) -> None:
        self.wall_seconds += time.perf_counter() - wall
        self.cpu_seconds += thread_seconds() - cpu

    def _is_fitted(self) -> bool:
        return hasattr(self.learner, "n_features_in_")

    def admit(self, X: Any) -> Any:
        """Add new columns of the stream to the learner; `X` in the order of the learner's columns."""
        if self.names:
            return self._by_name(X)
        if self._is_fitted() and getattr(X, "shape", (0, 0))[1] > self.learner.n_features_in_:
            self.learner.add_features(X.shape[1] - self.learner.n_features_in_)
        return X

    def _by_name(self, X: Any) -> Any:
        """Dict rows: the learner may have the names in another order, and have others."""
        if len(self._column) < len(self.names):
            self.learner.add_features(self.names)
            column = {name: j for j, name in enumerate(self.learner.feature_names_in_)}
            self._column = np.array([column[name] for name in self.names], np.int32)
            self._width = len(column)
        columns = self._column[X.indices]
        X = sp.csr_matrix((X.data.copy(), columns, X.indptr), shape=(X.shape[0], self._width))
        X.sort_indices()  # in place, and other learners read the same rows
        return X

    def _options(self, piece: Piece) -> dict[str, Any]:
        weights = weights_for(self.learner, piece.weight)
        return {"rounds": piece.rounds} | weights | ({"classes": self.classes} if self.is_classifier else {})

    def _test_then_train(self, piece: Piece, truth: FloatArray) -> FloatArray:
        X = self.admit(piece.X)
        rows, options = (X, piece.y, piece.task), self._options(piece)
        if self._has_answers:
            values, answers = self.learner.judge_then_train(*rows, **options)
            self.answers = self._as_answers(answers)
        else:
            values = self.learner.test_then_train(*rows, **options)
        return self._judged(values, truth)

    def _as_answers(self, found: Any) -> list[Any]:
        """Intervals, or the labels of sets."""
        return sets_of(self.learner.classes_.tolist(), found) if self.is_classifier else found.tolist()

    def _round_by_round(self, piece: Piece, truth: FloatArray) -> FloatArray:
        """Labels come late: a call per round."""
        n_rows = len(piece.code)
        shape = (n_rows, len(self.levels)) if self._several else n_rows
        predictions = ClassIndex.unknown(n_rows) if self.kind == "multiclass" else np.zeros(shape)
        starts = self._starts(piece)
        everything = None if self.is_classifier else (-np.inf, np.inf)
        self.answers = [everything] * n_rows if self._has_answers else None
        for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            one_round = cut(piece, first, last)
            if self._is_fitted():  # before the first label arrives every margin is 0
                X = self.admit(one_round.X)
                predictions[first:last] = self._judged(self._decide(X, one_round.task), truth[first:last])
                if self.answers is not None:
                    answer = self.learner.predict_set if self.is_classifier else self.learner.predict_interval
                    self.answers[first:last] = self._as_answers(answer(X, one_round.task))
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
        X = self.admit(one_round.X)
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


def _common_levels(of_learners: Iterable[tuple[float, ...]]) -> tuple[float, ...]:
    """The levels by which all learners of a run are judged, those of a mean beside quantiles too."""
    found = {levels for levels in of_learners if levels}
    if len(found) > 1:
        raise ValueError(
            f"learners of one run must answer the same quantiles, got {' and '.join(map(str, sorted(found)))}"
        )
    return found.pop() if found else ()


def _kind(learner: Any) -> str:
    if not is_classifier(learner):
        return "regression"
    tags = get_tags(learner).classifier_tags
    return "multiclass" if tags is not None and tags.multi_class else "binary"
