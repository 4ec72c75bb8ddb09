"""A batch learner as an online baseline: trained anew every so many rows, its last model answers in between.

So the ROMCO paper runs MTFL and trace-norm learning (Yang, Zhao, Gao, TKDE 2017: retrained after every 100 samples).
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.rounds import Rounds
from shoal.engine.rows import ROUNDS
from shoal.learner import Classifier, Learner, Regressor
from shoal.model.features import Columns, Table
from shoal.model.slicing import widened


class Settings(NamedTuple):
    """Hyper-parameters."""

    every: int
    window: int | None


class State(NamedTuple):
    """What is known of each task; its rows and the model are kept beside."""

    updates: IntArray  # (tasks,) rows that went into a training
    number: IntArray  # (tasks,) under which the batch learner knows the task: 1, 2, ...; 0 if it has none yet
    clock: IntArray  # (2,) tasks, rounds


class Kept(NamedTuple):
    """Rows kept for the next training."""

    X: Any
    y: FloatArray
    task: IntArray  # numbers as in `State.number`
    fresh: NDArray[np.bool_]  # not yet in a training


class Periodic(Learner):
    """A batch learner that is trained anew every so many rows of a stream: an online learner with all verbs.

    Between two trainings the last model answers; before the first every decision value is 0. Cost: a training every
    `every` rows, each on the last `window` rows.

    Parameters
    ----------
    batch_learner : batch learner
        An estimator with `fit(X, y, task)`, such as those of `shoal.batch`; it stays as it is, copies are trained.
    every : int >= 1
        Rows from one training to the next, over all tasks; a round of several rows is finished first.
    window : int >= 1 or None
        Train on this many last rows, which bounds memory to `window` + `every` rows; None: on all rows.

    Attributes
    ----------
    batch_learner_ : the model in force, None before the first training; its tasks are numbers, see `number_of_task`
    n_trainings_ : trainings so far
    tasks_, n_features_in_, feature_names_in_, n_updates_, task_updates_ : as of all online learners; an update is a
        row's first training
    classes_ : of classifiers

    Raises
    ------
    ValueError
        On bad input or hyper-parameters.

    Notes
    -----
    `Periodic(...)` makes a `PeriodicClassifier` or a `PeriodicRegressor`, as the batch learner is. `fit` trains once,
    on the last `window` rows. Columns that appeared after the last training are left out of the answers until the
    next. Such a learner cannot be saved; its `batch_learner_` can.

    References
    ----------
    Yang, Zhao, Gao. Robust Online Multi-Task Learning with Correlative and Personalized Structures. TKDE 29, 2017:
    section 5.

    Examples
    --------
    >>> from shoal import MTFL
    >>> from shoal.datasets import make_related_tasks
    >>> from shoal.evaluation import Periodic, progressive_validate
    >>> data = make_related_tasks(n_tasks=10, n_features=20, n_rows=1500, relatedness=0.9, noise=0.0, seed=1)
    >>> learners = {f"every {n}": Periodic(MTFL(gamma=0.1), every=n) for n in (100, 500)}
    >>> for name, found in progressive_validate(learners, data).items():
    ...     print(f"{name:9}  error {found.overall['error']:.3f}, {found.learner.n_trainings_:2} trainings")
    every 100  error 0.126, 15 trainings
    every 500  error 0.245,  3 trainings
    """

    batch_learner: Any
    every: int
    window: int | None

    batch_learner_: Any = None
    n_trainings_: int = 0
    _kept: deque[Kept] | None = None  # in the order of arrival
    _n_kept: int = 0
    _since: int = 0  # rows since the last training
    _highest: int = 0  # number given to a task

    def __new__(cls, batch_learner: Any = None, every: int = 100, window: int | None = None) -> Periodic:
        if cls is Periodic:
            cls = PeriodicClassifier if is_classifier(batch_learner) else PeriodicRegressor
        made: Periodic = super().__new__(cls)
        return made

    def __init__(self, batch_learner: Any, every: int = 100, window: int | None = None) -> None:
        self.batch_learner = batch_learner
        self.every = every
        self.window = window

    # ---- what the base asks for --------------------------------------------------------------------------

    def _settings(self) -> Settings:
        learner = self.batch_learner
        if not (hasattr(learner, "fit") and hasattr(learner, "get_params")):
            raise ValueError(f"batch_learner must be an estimator with fit(X, y, task), got {learner!r}")
        if is_classifier(learner) != is_classifier(self):
            raise ValueError(f"batch_learner must stay what it was, a classifier or a regressor, got {learner!r}")
        for name, value in (("every", self.every), ("window", self.window)):
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 1
            if not (whole or (name == "window" and value is None)):
                raise ValueError(f"{name} must be an integer >= 1{' or None' * (name == 'window')}, got {value!r}")
        if hasattr(learner, "_check_settings"):
            learner._check_settings()
        return Settings(self.every, self.window)

    def _allocate(self, n_tasks: int, n_features: int) -> State:
        return State(np.zeros(n_tasks, np.int64), np.zeros(n_tasks, np.int64), np.zeros(2, np.int64))

    def _loops(self) -> tuple[Any, ...]:
        return ()

    def _advance(
        self, table: Table, y: Any, task: Any, rounds: Any, classes: Any, decisions: FloatArray,
        *, fresh: bool = False, columns: Columns | None = None,
    ) -> None:  # fmt: skip
        admitted = self._admit(table, y, task, rounds, classes, fresh=fresh, columns=columns)
        if fresh:
            self.batch_learner_, self.n_trainings_ = None, 0
            self._kept, self._since, self._highest = None, 0, 0
        self._learn(admitted, decisions, every=len(admitted.y) if fresh else self.every)

    def _call(self, loop: int, rounds: Rounds, decisions: FloatArray) -> None:
        self._current()
        if loop == 0:
            self._learn(rounds, decisions, self.every)
        else:
            decisions[:] = self._answers(_matrix(rounds, self._columns.count), rounds.task)

    def _leave(self, state: State, k: int, n_tasks: int) -> None:
        """A forgotten task's rows are dropped; the model in force is not asked about it any more."""
        others = [_some(block, block.task != state.number[k]) for block in self._kept or ()]
        self._kept, self._n_kept = deque(others), sum(len(block.y) for block in others)

    # ---- rows and trainings ------------------------------------------------------------------------------

    def _learn(self, rounds: Rounds, decisions: FloatArray, every: int) -> None:
        """Keep the rows, and train at the round ends where it is due."""
        X = _matrix(rounds, self._columns.count)
        self._number_tasks()
        first, n = 0, len(rounds.y)
        while first < n:
            due = first + max(every - self._since, 1)
            last = n if due >= n else int(rounds.starts[np.searchsorted(rounds.starts, due)])
            if len(decisions):
                decisions[first:last] = self._answers(X[first:last], rounds.task[first:last])
            task = self._state.number[rounds.task[first:last]]
            self._keep_rows(Kept(X[first:last].copy(), rounds.y[first:last].copy(), task, np.ones(len(task), bool)))
            if self._since >= every:
                self._train()
            first = last
        self._state.clock[ROUNDS] += len(rounds.starts) - 1

    def _number_tasks(self) -> None:
        """Numbers for new tasks; they rise with the tasks' columns and none is given twice."""
        number = self._state.number[: len(self.tasks_)]
        new = np.flatnonzero(number == 0)
        number[new] = self._highest + 1 + np.arange(len(new))
        self._highest += len(new)

    def _keep_rows(self, rows: Kept) -> None:
        """Keep the rows for the next training, and forget blocks that are out of the window."""
        if self._kept is None:
            self._kept, self._n_kept = deque(), 0
        self._kept.append(rows)
        self._n_kept += len(rows.y)
        self._since += len(rows.y)
        while self.window is not None and self._n_kept - len(self._kept[0].y) >= self.window:
            self._n_kept -= len(self._kept.popleft().y)

    def _train(self) -> None:
        rows = _stacked(self._kept or deque(), self._columns.count)
        rows = _some(rows, slice(max(0, len(rows.y) - (self.window or len(rows.y))), None))
        self._kept, self._n_kept = deque([rows._replace(fresh=np.zeros(len(rows.y), bool))]), len(rows.y)
        self.batch_learner_ = clone(self.batch_learner).fit(rows.X, rows.y, rows.task)
        self.n_trainings_ += 1
        self._since = 0
        numbers = self._state.number[: len(self.tasks_)]
        trained = np.searchsorted(numbers, rows.task[rows.fresh])
        self._state.updates[: len(numbers)] += np.bincount(trained, minlength=len(numbers))

    def _answers(self, X: Any, task: IntArray) -> FloatArray:
        """(n,) decision values or predictions of the model in force; 0 before the first training."""
        model = self.batch_learner_
        if model is None:
            return np.zeros(len(task))
        known = np.where(task >= 0, self._state.number[task], -1)
        X = X[:, : model.n_features_in_]
        values = (model.decision_function if is_classifier(model) else model.predict)(X, known)
        return np.asarray(values, np.float64)

    def number_of_task(self, task: Any) -> int:
        """The number under which `batch_learner_` knows a task."""
        self._fitted("number_of_task")
        return int(self._state.number[self._known_tasks().column[task]])

    def save(self, path: Any, *, companion: Any = None) -> None:
        """Not possible: the rows kept for the next training are not part of a model's file."""
        raise ValueError("Periodic keeps rows and cannot be saved; save its batch_learner_")


class PeriodicClassifier(Periodic, Classifier):
    """`Periodic` of a classifier."""


class PeriodicRegressor(Periodic, Regressor):
    """`Periodic` of a regressor."""


def _some(rows: Kept, which: Any) -> Kept:
    return Kept(rows.X[which], rows.y[which], rows.task[which], rows.fresh[which])


def _stacked(blocks: deque[Kept], n_features: int) -> Kept:
    """All blocks as one; columns may have appeared since the first, and rows may be dense or sparse."""
    X = [widened(block.X, n_features) for block in blocks]
    one: Any = np.concatenate(X) if not any(map(sp.issparse, X)) else sp.vstack(X, format="csr")
    return Kept(one, *(np.concatenate(parts) for parts in list(zip(*blocks, strict=True))[1:]))


def _matrix(rounds: Rounds, n_features: int) -> Any:
    """The rows as an (n, d) array or CSR matrix."""
    if rounds.width:
        return rounds.values.reshape(-1, rounds.width)
    shape = (len(rounds.y), n_features)
    return sp.csr_matrix((rounds.values, rounds.indices, rounds.indptr), shape=shape)
