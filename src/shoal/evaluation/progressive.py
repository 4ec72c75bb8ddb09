"""Progressive validation: one pass over the stream in which every row is first predicted, then learned.

One loop serves any number of learners, so that all see the same rows in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from typing import Any, overload

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.evaluation.classes import ClassIndex
from shoal.evaluation.divergence import Divergence
from shoal.evaluation.metrics import choose
from shoal.evaluation.predictions import Predictions, predictions_of
from shoal.evaluation.protocol import Metric
from shoal.evaluation.result import Checkpoint, Evaluation
from shoal.evaluation.rows import as_chunks
from shoal.evaluation.runner import Runner
from shoal.evaluation.scoreboard import Scoreboard, Scores
from shoal.evaluation.stream import Piece, cut_at, whole_rounds
from shoal.learner import Learner
from shoal.model.labels import InOrder, Labels, encode, real_targets
from shoal.model.tasks import TaskIndex
from shoal.parallel.cores import n_cores

FIRST_CHECKPOINT = 1_000
MIN_ROWS_FOR_THREADS = 512  # of a piece: shorter ones are run one learner after the other

Metrics = Sequence[str | Callable[[], Metric]]


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
    on_checkpoint: Callable[[Any], object] | None = None,
    on_rows: Callable[[int], object] | None = None,
    on_predictions: Callable[[Predictions], object] | None = None,
) -> Any:
    """Run learners over a stream, predicting each row before it is learned.

    Learners that ask for labels (`LabelQuery`) are scored on all rows, whether they asked or not; `n_queries` counts.

    Parameters
    ----------
    learners : learner, or dict of name -> learner
        They are trained; one learner gives one `Evaluation`, a dict gives a dict.
    stream : iterable of chunks `(X, y, task[, rounds])`, of rows `(x, y, task)`, or a data set
        Chunks as for `partial_fit` (`shoal.Chunk` or tuples; later chunks may be wider); a row's `x`
        is a dict or a 1-d array. How the stream is chunked does not change the result. The learners learn with a
        chunk's weights (`Chunk.weight`), one that takes none refuses them; scores
        count each row once all the same, because a weight says how much is to be learned from a row (a class made
        heavier to be found, say), and scores of other weights could not be compared with those without.
    metrics : sequence of names, or of classes that keep the `Metric` protocol
        Default: error, auc, f1_positive, f1_negative, and of learners with probabilities log_loss, brier and
        calibration_error; for several classes error and log_loss; for regression mae, rmse, explained_variance.
    window : int
        Rows of the sliding window of the windowed values.
    delay : int
        The label of a row is learned only after this many later rows have been predicted (rounds of several
        rows: after their last row). Exact, so each round costs a call of its own.
    checkpoints : "exponential", int or None
        When to record the scores: after 1,000, 2,000, 4,000, ... rows, every so many rows, or at the end
        only. A checkpoint inside a round waits for the round's end.
    classes : sequence of two labels
        Needed if the stream begins with a single label of unknown kind.
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
    with closing(Race(named, metrics, window, delay, classes)) as race:
        simultaneous = any(runner.simultaneous for runner in race.runners.values())
        pieces = whole_rounds(as_chunks(stream, race.names), race.tasks, simultaneous=simultaneous)
        for piece, at_checkpoint in cut_at(pieces, lambda rows: _next_checkpoint(rows, checkpoints)):
            predictions = race.run(piece)
            if on_predictions is not None:
                on_predictions(race.as_columns(piece, predictions))
            if at_checkpoint:
                _report(race, named is learners, on_checkpoint)
            if on_rows is not None:
                on_rows(race.rows)
        if race.rows == 0:
            raise ValueError("the stream has no rows")
        if race.rows != race.last_checkpoint:
            _report(race, named is learners, on_checkpoint)
        evaluations = race.finish()
    return evaluations if named is learners else evaluations[""]


class Race:
    """Several learners on one stream, with the tasks and labels seen so far."""

    def __init__(
        self, learners: Mapping[str, Any], metrics: Metrics | None, window: int, delay: int, classes: Any
    ) -> None:
        self.names: dict[str, int] = {}
        self.class_index = ClassIndex()
        self._classes = _in_order(learners) if classes is None else classes
        self.runners = {
            name: Runner(learner, delay, self._classes, self.class_index, self.names)
            for name, learner in learners.items()
        }
        kinds = {runner.kind for runner in self.runners.values()}
        if len(kinds) != 1:
            raise ValueError(
                f"learners of one run must be all for two labels, all for several classes or all regressors; "
                f"got {' and '.join(sorted(kinds))}"
            )
        self.kind = kinds.pop()
        self.boards = {
            name: Scoreboard(*choose(metrics, self.kind, has_probabilities=runner.has_probabilities), window)
            for name, runner in self.runners.items()
        }
        self.history: dict[str, list[Checkpoint]] = {name: [] for name in learners}
        self._latest: dict[str, tuple[Scores, Scores]] = {}
        self.divergences = {name: Divergence() for name in learners} if self.kind == "regression" else {}
        self.tasks = TaskIndex()
        self.rows = self.last_checkpoint = 0
        self._labels: Labels | None = None
        n_threads = min(len(learners), n_cores())
        self._threads = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def run(self, piece: Piece) -> dict[str, FloatArray]:
        """Feed a piece to every learner and score it; bad rows are refused before anything is learned."""
        truth = self._truth(piece)
        if (
            self._classes is None and self._labels is not None and self._labels.settled
        ):  # the stream's two labels, whatever a round shows
            for runner in self.runners.values():
                runner.classes = self._labels.classes
        predictions = self._predictions(piece, truth)
        for name, board in self.boards.items():
            board.update(piece.code, truth, predictions[name], len(self.tasks))
        for name, divergence in self.divergences.items():
            divergence.update(truth, predictions[name])
        self.rows += len(piece.code)
        return predictions

    def as_columns(self, piece: Piece, predictions: dict[str, FloatArray]) -> Predictions:
        """What the first learner predicted, for readers."""
        name, runner = next(iter(self.runners.items()))
        return predictions_of(
            piece, predictions[name], runner.learner, self.kind,
            has_probabilities=runner.has_probabilities, classes=self.class_index,
        )  # fmt: skip

    def _predictions(self, piece: Piece, truth: FloatArray) -> dict[str, FloatArray]:
        """Of every learner; they share nothing and compiled code holds no lock, so each core runs one."""
        if self._threads is None or len(piece.code) < MIN_ROWS_FOR_THREADS:
            return {name: runner.run(piece, truth) for name, runner in self.runners.items()}
        futures = {name: self._threads.submit(runner.run, piece, truth) for name, runner in self.runners.items()}
        wait(futures.values())  # if one refuses the rows, the others are not left in the middle of them
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
            point = Checkpoint(
                self.rows, n, total.overall, total.macro, since_last.overall, windowed.overall,
                self.runners[name].wall_seconds,
            )  # fmt: skip
            self.history[name].append(point)
            self._latest[name] = total, windowed
        self.last_checkpoint = self.rows
        return {name: points[-1] for name, points in self.history.items()}

    def close(self) -> None:
        """End the threads."""
        if self._threads is not None:
            self._threads.shutdown()

    def finish(self) -> dict[str, Evaluation]:
        """The evaluations; labels still on their way are learned first."""
        return {name: self._evaluation(name) for name in self.runners}

    def _evaluation(self, name: str) -> Evaluation:
        runner, board = self.runners[name], self.boards[name]
        runner.finish()
        n_updates, task_updates = runner.updates()
        total, windowed = self._latest[name]  # the end is a checkpoint
        updates = [task_updates.get(task, 0) for task in self.tasks.ids]
        return Evaluation(
            kind=self.kind,
            rows=self.rows,
            overall=total.overall,
            macro=total.macro,
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
            notes=board.notes(),
        )

    def _confusion(self, board: Scoreboard) -> dict[tuple[Any, Any], int]:
        """By the labels themselves; None where no class was known yet."""
        label = {number: label for label, number in self.class_index.number.items()}
        return {(label[true], label.get(guess)): rows for (true, guess), rows in board.confusion().items()}

    def _per_task(self, counts: dict[str, Any], scores: Scores) -> dict[Any, dict[str, float]]:
        """One dict per task from one column per value."""
        columns = {name: list(map(int, count)) for name, count in counts.items()}
        columns |= {name: values.tolist() for name, values in scores.per_task.items()}
        rows = zip(*columns.values(), strict=True)
        return {task: dict(zip(columns, row, strict=True)) for task, row in zip(self.tasks.ids, rows, strict=True)}


def _in_order(learners: Mapping[str, Any]) -> InOrder | None:
    """The two labels of the learners that were told which is positive, if it is not the larger one."""
    for learner in learners.values():
        labels = getattr(learner, "classes_", np.zeros(0)).tolist()
        if len(labels) == 2 and labels[1] < labels[0]:
            return InOrder(labels)
    return None


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
