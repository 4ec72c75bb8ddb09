"""A batch learner as an online baseline: retrained at an interval of rows, its last model answers in between.

So the ROMCO paper runs MTFL and trace-norm learning (Yang, Zhao, Gao, TKDE 2017: retrained after every 100 samples).
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.validation import has_fit_parameter

from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.rounds import Rounds
from shoal.learner import Classifier, Regressor, WeightedLearner, available_if
from shoal.model.algorithm import Size
from shoal.model.core import CoreLike
from shoal.model.explanations import Parts, parts_of_linear
from shoal.model.groups import Groups
from shoal.model.parameters import from_keywords, optional, read, whole
from shoal.model.slicing import widened
from shoal.model.targets import RealTargets, Targets, TwoLabels

PARAMETERS = {"every": whole(1), "window": optional(whole(1))}


class Kept(NamedTuple):
    """Rows kept for the next training."""

    X: Any
    y: FloatArray
    task: IntArray  # numbers as in `State.number`
    fresh: NDArray[np.bool_]  # not yet in a training
    weight: FloatArray  # (n,) how often each row counts, > 0


class Retraining:
    """A core that keeps rows, and trains a batch learner on them every so often."""

    simultaneous = False
    may_fail = True  # training may
    groups: Groups | None = None

    def __init__(self, estimator: Any, values: dict[str, Any]) -> None:
        self.named_tasks: list[Any] = []
        params = read(PARAMETERS, values)
        if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
            raise ValueError(f"estimator must be a batch learner with fit(X, y, task), got {estimator!r}")
        if hasattr(estimator, "check_parameters"):
            estimator.check_parameters()
        if hasattr(estimator, "named_tasks") and estimator.named_tasks():
            raise ValueError("the estimator sees tasks as numbers, so its relation cannot name them")
        self.estimator, self.every, self.window = estimator, params.every, params.window
        self.no_weights: str = getattr(estimator, "no_weights", "")
        if not self.no_weights and not has_fit_parameter(estimator, "sample_weight"):
            self.no_weights = f"the fit of {type(estimator).__name__} takes none"
        self.model: Any = None  # the one in force
        self.n_trainings = 0
        self.state: Any = None  # (tasks,) rows that went into a training, once there is one
        self._numbers = np.zeros(0, np.int64)  # (tasks,) by which the batch learner knows the tasks: 1, 2, ...
        self._highest = 0
        self._n_features = 0
        self._kept: deque[Kept] = deque()  # in the order of arrival
        self._n_kept = self._since = 0  # rows kept, rows since the last training

    # ---- the interface of a core ---------------------------------------------------------------------------

    @property
    def learns_in_blocks(self) -> bool:
        return False

    def reserve(self, n_tasks: int, n_features: int) -> None:
        """New tasks get the next numbers: they rise with the tasks and none is given twice."""
        new = n_tasks - len(self._numbers)
        self.state = np.append([] if self.state is None else self.state, np.zeros(new)).astype(np.int64)
        self._numbers = np.append(self._numbers, self._highest + 1 + np.arange(new)).astype(np.int64)
        self._highest += new
        self._n_features = n_features

    def enter(self, n_tasks: int) -> None:
        pass

    def leave(self, k: int, n_tasks: int) -> None:
        """A forgotten task's rows are dropped; the model in force is not asked about it any more."""
        self._keep_only([block.task != self._numbers[k] for block in self._kept])
        self._numbers, self.state = np.delete(self._numbers, k), np.delete(self.state, k)

    def new_out(self, n_rows: int) -> FloatArray:
        return np.empty(n_rows)

    def learn(self, rounds: Rounds, out: FloatArray) -> None:
        self.learn_every(rounds, out, self.every, self._train_if_possible)

    def learn_at_once(self, rounds: Rounds, out: FloatArray) -> None:
        """One training on all rows; where it fails there is no model to go on with."""
        n = len(rounds.y) if len(rounds.weight) == 0 else int(np.count_nonzero(rounds.weight))
        self.learn_every(rounds, out, n, self._train)

    def learn_every(self, rounds: Rounds, out: FloatArray, every: int, train: Callable[[], None]) -> None:
        """Keep the rows, and train at the round ends where it is due."""
        X = _matrix(rounds, self._n_features)
        first, n = 0, len(rounds.y)
        weight = rounds.weight if len(rounds.weight) else np.ones(n)
        counting = np.flatnonzero(weight)  # the others are only answered
        while first < n:
            due = np.searchsorted(counting, first) + max(every - self._since, 1)  # rows that count
            stop = n if due >= len(counting) else int(counting[due - 1]) + 1
            last = int(rounds.starts[np.searchsorted(rounds.starts, stop)])
            if len(out):
                out[first:last] = self._decisions(X[first:last], rounds.task[first:last])
            kept = first + np.flatnonzero(weight[first:last])
            task = self._numbers[rounds.task[kept]]
            self._keep_rows(Kept(X[kept], rounds.y[kept], task, np.ones(len(task), bool), weight[kept]))
            if self._since >= every:
                train()
            first = last

    def _keep_rows(self, rows: Kept) -> None:
        """Keep the rows for the next training, and forget blocks that are out of the window."""
        self._kept.append(rows)
        self._n_kept += len(rows.y)
        self._since += len(rows.y)
        while self.window is not None and self._n_kept - len(self._kept[0].y) >= self.window:
            self._n_kept -= len(self._kept.popleft().y)

    def _train_if_possible(self) -> None:
        """Train, or go on without the rows that are new: the others went into a training that did not fail.

        If they stayed, one odd row among them would fail every later training, and no call of its own is to blame.
        """
        try:
            self._train()
        except (ValueError, ArithmeticError) as error:
            n_before = self._n_kept
            self._keep_only([~block.fresh for block in self._kept])
            self._since = 0
            dropped, kind = n_before - self._n_kept, type(self.estimator).__name__
            message = f"a training of {kind} failed ({error}): its {dropped} new rows are dropped, the last model stays"
            warnings.warn(message, RuntimeWarning, stacklevel=2)

    def _keep_only(self, which: list[NDArray[np.bool_]]) -> None:
        """Drop kept rows, given a mask a block."""
        self._kept = deque(_some(block, kept) for block, kept in zip(self._kept, which, strict=True))
        self._n_kept = sum(len(block.y) for block in self._kept)

    def _train(self) -> None:
        rows = _stacked(self._kept, self._n_features)
        rows = _some(rows, slice(max(0, len(rows.y) - (self.window or len(rows.y))), None))
        weights = {} if (rows.weight == 1.0).all() else {"sample_weight": rows.weight}
        model = clone(self.estimator).fit(rows.X, rows.y, rows.task, **weights)
        self._kept, self._n_kept = deque([rows._replace(fresh=np.zeros(len(rows.y), bool))]), len(rows.y)
        self.model = model
        self.n_trainings += 1
        self._since = 0
        trained = np.searchsorted(self._numbers, rows.task[rows.fresh])
        self.state = self.state + np.bincount(trained, minlength=len(self._numbers))

    def decide(self, rounds: Rounds, out: FloatArray) -> None:
        out[:] = self._decisions(_matrix(rounds, self._n_features), rounds.task)

    def _decisions(self, X: Any, task: IntArray) -> FloatArray:
        """(n,) decision values or predictions of the model in force; 0 before the first training."""
        model = self.model
        if model is None:
            return np.zeros(len(task))
        known = np.where(task >= 0, np.append(self._numbers, -1)[task], -1)
        X = X[:, : model.n_features_in_]
        values = (model.decision_function if is_classifier(model) else model.predict)(X, known)
        return np.asarray(values, np.float64)

    def contributions(self, tasks: IntArray, features: IndexArray, values: FloatArray | None = None) -> Parts:
        """The parts that features add to decisions, if the batch learner has weights."""
        if self.model is not None and not hasattr(self.model, "coef_"):
            kind = type(self.model).__name__
            raise ValueError(f"{kind} has no weights here, so there are no contributions of single features")
        return parts_of_linear(self.decide, None, tasks, features, values)

    def likeness(self, k: int, n_tasks: int) -> FloatArray | None:
        """Nothing that is learned for all tasks."""
        return None

    def number_of(self, k: int) -> int:
        """The number by which the batch learner knows task k."""
        return int(self._numbers[k])

    def updates(self, n_tasks: int) -> IntArray:
        return np.array(self.state[:n_tasks])

    def adopt(self, other: Any) -> None:
        if is_classifier(other.estimator) != is_classifier(self.estimator):
            raise ValueError(f"estimator must stay what it was, a classifier or a regressor, got {other.estimator!r}")
        self.estimator, self.every, self.window = other.estimator, other.every, other.window

    def attach(self, other: Any) -> None:
        pass

    def snapshot(self) -> Callable[[], None]:
        before = {**vars(self), "_kept": self._kept.copy()}  # only the queue changes in place
        return lambda: vars(self).update(before)

    def nbytes(self) -> int:
        return 0

    def pack(self, size: Size) -> Any:
        raise ValueError("Periodic keeps rows and cannot be saved; save its estimator_")

    def blank(self, size: Size) -> Any:
        return self.pack(size)

    def expect_labels(self, labels: Any) -> None:
        pass

    def unpack(self, packed: Any, size: Size) -> None:
        self.pack(size)


def _classifies(learner: Any) -> bool:
    return bool(is_classifier(learner.estimator))


@from_keywords
class Periodic(WeightedLearner):
    """A batch learner that is retrained at an interval of rows of a stream: an online learner with all verbs.

    Between two trainings the last model answers; before the first every decision value is 0. Cost: a training every
    `every` rows, each on the last `window` rows.

    Parameters
    ----------
    estimator : batch learner
        An estimator with `fit(X, y, task)`, such as those of `shoal.batch`; it stays as it is, copies are trained.
    every : int >= 1
        Rows from one training to the next, over all tasks; a round of several rows is finished first.
    window : int >= 1 or None
        Train on this many last rows, which bounds memory to `window` + `every` rows; None: on all rows.

    Attributes
    ----------
    estimator_ : the model in force, None before the first training; its tasks are numbers, see `number_of_task`
    n_trainings_ : trainings so far
    tasks_, n_features_in_, feature_names_in_, n_updates_, task_updates_ : as of all online learners; an update is a
        row's first training
    classes_ : of classifiers

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, and where the one training of `fit` fails.

    Warns
    -----
    RuntimeWarning
        If a training fails: the last model stays, and the rows since the last training are dropped.

    Notes
    -----
    An odd row is in all trainings until it leaves the window, and costs what the batch learner's loss makes of it: with
    a squared loss and no window, one target of 1e6 deviations ruins its task for good.
    It is a classifier or a regressor, as the batch learner is. `fit` trains once, on the last `window` rows. Columns
    that appeared after the last training are left out of the answers until the next. Such a learner cannot be saved;
    its `estimator_` can. `sample_weight` goes to the `fit` of the batch learner, if that takes it; rows of weight 0 are
    answered and not kept.

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

    estimator: Any = field(default=None, kw_only=False)
    every: int = 100
    window: int | None = None
    classes: Any = None

    estimator_names = ("estimator",)

    @property
    def targets(self) -> Targets:
        """Labels or numbers, as the estimator predicts them."""
        return TwoLabels() if _classifies(self) else RealTargets()

    @property
    def simultaneous(self) -> bool:
        """Each row is a round."""
        return False

    def new_core(self) -> CoreLike:
        """The core, which keeps the rows."""
        return Retraining(self.estimator, self.get_params(deep=False))

    def fit(self, X: Any, y: Any, task: Any = None, *, rounds: Any = None, sample_weight: Any = None) -> Periodic:
        """Forget everything, then train once, on the last `window` rows."""
        model = self._new_model()
        learn = model.core_as(Retraining).learn_at_once
        model.learn(X, y, task, rounds, None, sample_weight, declare=True, learn=learn)
        self._model = None
        self._keep(model)
        return self

    # A classifier's verbs or a regressor's, as the estimator is one or the other.

    def predict(self, X: Any, task: Any = None) -> NDArray[Any]:
        """(n,) labels, or numbers."""
        return (Classifier if _classifies(self) else Regressor).predict(self, X, task)

    def predict_one(self, x: Any, task: Any = None) -> Any:
        """The label or the number of one example."""
        return (Classifier if _classifies(self) else Regressor).predict_one(self, x, task)

    def predict_round(self, examples: Any) -> dict[Any, Any]:
        """`{task: x, ...}` to `{task: prediction, ...}`."""
        return {task: self.predict_one(x, task) for task, x in examples.items()}

    def score(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> float:
        """Accuracy, or R^2."""
        kind: Any = Classifier if _classifies(self) else Regressor
        return float(kind.score(self, X, y, task, sample_weight))

    @available_if(_classifies)
    def decision_function(self, X: Any, task: Any = None) -> FloatArray:
        """(n,) margins."""
        return self._values(X, task)

    @available_if(_classifies)
    def decision_one(self, x: Any, task: Any = None) -> float:
        """The margin of one example."""
        return float(self._value_one(x, task)[0])

    @property
    def classes_(self) -> NDArray[Any]:
        """(2,) the labels, of classifiers."""
        if not _classifies(self):
            raise AttributeError("Periodic of a regressor has no classes_")
        return np.asarray(self._known("classes_").labels.classes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if _classifies(self):
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags(multi_class=False)
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags

    # ---- learned attributes --------------------------------------------------------------------------------

    @property
    def estimator_(self) -> Any:
        """The batch model in force; None before the first training."""
        return self._known("estimator_").core_as(Retraining).model

    @property
    def n_trainings_(self) -> int:
        """Trainings so far."""
        return 0 if self._model is None else self._model.core_as(Retraining).n_trainings

    def number_of_task(self, task: Any) -> int:
        """The number by which `estimator_` knows a task."""
        model = self._known("number_of_task")
        return model.core_as(Retraining).number_of(model.tasks.column[task])


def _some(rows: Kept, which: Any) -> Kept:
    return Kept(rows.X[which], *(part[which] for part in rows[1:]))


def _stacked(blocks: deque[Kept], n_features: int) -> Kept:
    """All blocks as one; columns may have appeared since the first, and rows may be dense or sparse."""
    X = [widened(block.X, n_features) for block in blocks]
    one: Any = np.concatenate(X) if not any(map(sp.issparse, X)) else sp.vstack(X, format="csr")
    return Kept(one, *(np.concatenate(parts) for parts in list(zip(*blocks, strict=True))[1:]))


def _matrix(rounds: Rounds, n_features: int) -> Any:
    """The rows as an (n, d) array or CSR matrix."""
    if rounds.width:
        return rounds.values.reshape(-1, rounds.width)
    shape = (len(rounds.task), n_features)
    return sp.csr_matrix((rounds.values, rounds.indices, rounds.indptr), shape=shape)
