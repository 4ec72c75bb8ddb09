"""The base of all batch learners: `task=`, checks before anything changes, learned attributes, save and load.

An algorithm gives `parameters` (what each may be), `solve` (checked rows to what is learned, by attribute name) and
`decide` (checked rows to decision values or predictions). Whether it classifies may depend on its hyper-parameters
(`loss="squared"`, `estimator=Ridge()`), so one class serves both kinds of target.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.validation import check_is_fitted

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.rounds import NO_WEIGHT
from shoal.learner import available_if
from shoal.model import labels as label_codes
from shoal.model import persistence
from shoal.model.features import Features
from shoal.model.labels import Labels
from shoal.model.parameters import Readers, for_users, read
from shoal.model.sample_weight import read_weights, refuse_all_zero, without_weightless
from shoal.model.table import Table, read_table, validated
from shoal.model.targets import TwoLabels
from shoal.model.tasks import TaskIndex


class Rows(NamedTuple):
    """Checked training rows."""

    X: Any  # (n, d) float64 array or CSR matrix
    y: FloatArray  # (n,) +1 or -1, or a real target
    task: IntArray  # (n,) column of the row's task
    n_tasks: int
    weight: FloatArray = NO_WEIGHT  # (n,) how often each row counts, > 0; or empty if each counts once

    def of_tasks(self) -> Iterator[IntArray]:
        """The row numbers of each task in turn."""
        return split_by_task(self.task, self.n_tasks)


def split_by_task(task: IntArray, n_tasks: int) -> Iterator[IntArray]:
    """The row numbers of tasks 0, 1, ..., n_tasks - 1."""
    order = np.argsort(task, kind="stable")
    bounds = np.searchsorted(task[order], np.arange(n_tasks + 1))
    return (order[first:last] for first, last in pairwise(bounds))


def as_matrix(table: Table) -> Any:
    """Checked rows as an (n, d) array or CSR matrix."""
    if table.width:
        return table.values.reshape(table.n_rows, table.width)
    return sp.csr_matrix((table.values, table.indices, table.indptr), shape=(table.n_rows, table.n_features))


def _has_labels(learner: BatchLearner) -> bool:
    return learner.classifies()


TOO_FAR = (
    "cannot be fitted: numbers became too large or too small for float64; scale the features and the targets to about "
    "1, and choose hyper-parameters nearer to 1"
)
INSTEAD = "give rows several times, or use IndependentTasks or PooledTasks, which take weights"


def _that_count(rows: Rows) -> Rows:
    """The rows of weight > 0. Raises ValueError if there are none."""
    refuse_all_zero(rows.weight)
    which = np.flatnonzero(rows.weight)
    return Rows(rows.X[which], rows.y[which], rows.task[which], rows.n_tasks, rows.weight[which])


# Methods that a kind of learner defines for `fit` and `predict`, and that a user does not call.
INTERNAL = (
    "check_parameters classifies decide estimator_names losses machine minimiser named_tasks no_weights parameters "
    "primal_loss prox solve"
)


class BatchLearner(BaseEstimator):  # type: ignore[misc]
    """A multi-task learner that sees all its rows at once: a scikit-learn estimator with `task=`."""

    _tasks: TaskIndex | None = None
    _features: Features = Features()
    _labels: Labels | None = None
    parameters: ClassVar[Readers] = {}
    estimator_names: ClassVar[tuple[str, ...]] = ()  # hyper-parameters that are learners themselves
    _learned: tuple[str, ...] = ()  # names of the attributes that `fit` set

    @property
    def no_weights(self) -> str:
        """Why rows cannot have weights, or "" if `solve` reads `rows.weight`."""
        return "the paper's objective counts every row of a task alike"

    # ---- defined by each algorithm -----------------------------------------------------------------------

    def check_parameters(self) -> None:
        """Raise ValueError if a hyper-parameter is out of its range."""
        read(self.parameters, self.get_params(deep=False))

    def solve(self, rows: Rows) -> dict[str, Any]:
        """The learned attributes by name; changes nothing in the learner."""
        raise NotImplementedError

    def decide(self, X: Any, task: IntArray) -> FloatArray:
        """(n,) decision values or predictions; a task of -1 was not in the training rows."""
        raise NotImplementedError

    def classifies(self) -> bool:
        """Are the targets two labels (or else real)?"""
        return True

    def named_tasks(self) -> list[Any]:
        """The tasks that the hyper-parameters name; no others may come, and those without rows exist too."""
        return []

    def __dir__(self) -> list[str]:
        return for_users(super().__dir__(), INTERNAL)

    # ---- verbs -------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, task: Any = None) -> Self:
        """Learn from all rows at once, forgetting what was learned before.

        Parameters
        ----------
        X : (n, d) array, SciPy sparse matrix or data frame
        y : (n,) two labels of any kind, or real targets for regression
        task : (n,) task ids, any hashables; None: all rows belong to one task

        Raises
        ------
        ValueError
            On bad input or hyper-parameters, or where numbers become too large or too small for float64; a bad row is
            named and the model stays as it was.
        """
        return self._fit(X, y, task, None)

    def _fit(self, X: Any, y: Any, task: Any, sample_weight: Any) -> Self:
        self.check_parameters()
        table = validated(read_table(X, self))
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        labels: Labels | None = None
        if self.classifies():
            targets, labels = label_codes.encode(y, table.n_rows, None)
        else:
            targets = label_codes.real_targets(y, table.n_rows)
        name, why = type(self).__name__, self.no_weights
        weights = read_weights(sample_weight, table.n_rows, why and f"{name} takes no sample_weight: {why}; {INSTEAD}")
        tasks = TaskIndex(self.named_tasks())
        columns, ids = tasks.encode(task, table.n_rows)
        if ids and len(tasks):
            raise ValueError(f"task {ids[0]!r} is not one of the tasks that the relation names")
        columns, ids = without_weightless(columns, ids, len(tasks), weights)
        tasks.add(ids)
        rows = Rows(as_matrix(table), targets, columns, len(tasks), weights)
        learned = self._solved(rows if len(weights) == 0 else _that_count(rows))
        # All is well: only from here on does the model change.
        self._remember(learned, tasks, Features().admit(table, type(self).__name__), labels)
        return self

    def _solved(self, rows: Rows) -> dict[str, Any]:
        """The result of `solve`, all of it finite.

        Raises
        ------
        ValueError
            If a number of it is not, or would have been on the way.
        """
        try:
            with np.errstate(over="raise", divide="raise", invalid="raise"):
                learned = self.solve(rows)
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            raise ValueError(f"{type(self).__name__} {TOO_FAR} ({error})") from error
        for name, value in learned.items():
            if isinstance(value, float | np.ndarray) and not np.isfinite(value).all():
                raise ValueError(f"{type(self).__name__} {TOO_FAR} ({name} is not finite)")
        return learned

    def _remember(self, learned: dict[str, Any], tasks: TaskIndex, columns: Features, labels: Labels | None) -> None:
        for name in self._learned:
            delattr(self, name)
        for name, value in learned.items():
            setattr(self, name, value)
        self._learned = tuple(learned)
        self._tasks, self._features, self._labels = tasks, columns, labels

    def predict(self, X: Any, task: Any = None) -> NDArray[Any]:
        """(n,) labels (a margin of 0 predicts the larger one), or real predictions."""
        values = self._values(X, task)
        return np.asarray(self.classes_[(values >= 0.0).astype(np.int64)]) if self._labels else values

    @available_if(_has_labels)
    def decision_function(self, X: Any, task: Any = None) -> FloatArray:
        """(n,) margins; their sign is the label."""
        return self._values(X, task)

    def score(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> float:
        """Accuracy, or for regression the coefficient of determination R^2."""
        from sklearn.metrics import accuracy_score, r2_score

        return float(
            (accuracy_score if self.classifies() else r2_score)(y, self.predict(X, task), sample_weight=sample_weight)
        )

    def _values(self, X: Any, task: Any) -> FloatArray:
        check_is_fitted(self)
        table = validated(read_table(X, self))
        self._features.admit(table, type(self).__name__)
        assert self._tasks is not None
        with np.errstate(over="ignore", invalid="ignore"):  # told below, by the row
            values = self.decide(as_matrix(table), self._tasks.look_up(task, table.n_rows))
        if not (finite := np.isfinite(values)).all():
            raise ValueError(
                f"Row {int(finite.argmin())}: the answer is beyond float64; scale the features as for `fit`"
            )
        return values

    # ---- learned attributes ------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return self._tasks is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        if self.classifies():
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags(multi_class=False)
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags

    def _known_tasks(self, name: str) -> TaskIndex:
        if self._tasks is None:
            raise AttributeError(f"{type(self).__name__} has no {name} before it is fitted")
        return self._tasks

    @property
    def tasks_(self) -> list[Any]:
        """Task ids in the order of their columns: as they first appear, or as a given relation names them."""
        return self._known_tasks("tasks_").ids

    @property
    def classes_(self) -> NDArray[Any]:
        """(2,) the labels, the larger one is +1."""
        self._known_tasks("classes_")
        if self._labels is None:
            raise AttributeError(f"{type(self).__name__} has no classes_: its targets are real")
        return self._labels.classes

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        self._known_tasks("n_features_in_")
        return self._features.count

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Column names, where the rows came with names."""
        if self._features.names is None:
            raise AttributeError(f"{type(self).__name__} has no feature_names_in_: its rows came without names")
        return np.fromiter(self._features.names, object, len(self._features.names))

    def _warn_not_converged(self, advice: str) -> None:
        warnings.warn(f"{type(self).__name__} did not converge: {advice}", ConvergenceWarning, stacklevel=4)

    # ---- persistence -------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, whole or not at all; `shoal.load` reads it.

        Raises
        ------
        ValueError
            If a hyper-parameter, a task id or what was learned has no plain form (an estimator, a function).
        """
        persistence.write(path, *self._content())

    def _content(self) -> tuple[dict[str, Any], persistence.Arrays]:
        """Header and arrays of the file."""
        check_is_fitted(self)
        tasks = self._known_tasks("tasks_")
        labels = None if self._labels is None else TwoLabels().to_header(self._labels)
        arrays: persistence.Arrays = {}
        learned = persistence.to_json({name: getattr(self, name) for name in self._learned}, arrays, "learned")
        known = persistence.Known(tasks, self._features, labels)
        return persistence.content(self, known, arrays, learned)

    def _restore(self, known: persistence.Known, arrays: persistence.Arrays) -> None:
        """Take what `save` wrote. Raises ValueError if no such learner could have written it."""
        labels = None if known.labels is None else TwoLabels().from_header(known.labels)
        if (labels is not None) != self.classifies():
            raise ValueError("its labels do not fit its kind of targets")
        if (named := self.named_tasks()) and named != known.tasks.ids:
            raise ValueError("its tasks are not those of its relation")
        learned = persistence.from_json(known.learned, arrays)
        for name, value in learned.items():
            if not (isinstance(name, str) and name.endswith("_") and name.isidentifier()):
                raise ValueError(f"it has learned {name!r}, an attribute that no learner has")
            if isinstance(value, np.ndarray) and np.isnan(value).any():
                raise ValueError(f"{name} holds NaN")
        n_tasks, d = len(known.tasks), known.features.count
        if n_tasks == 0 or np.shape(learned.get("coef_", np.empty((n_tasks, d)))) != (n_tasks, d):
            raise ValueError(f"coef_ does not have the shape ({n_tasks}, {d})")
        self._remember(learned, known.tasks, known.features, labels)
        # Every array that answers is used once, so that a misfit shows now and not at the first prediction.
        values = self.decide(np.zeros((n_tasks + 1, d)), np.arange(-1, n_tasks))
        if np.shape(values) != (n_tasks + 1,) or not np.isfinite(values).all():
            raise ValueError("its arrays give no finite answer for each task")


class LinearBatchLearner(BatchLearner):
    """One weight vector a task: `solve` gives `coef_`."""

    coef_: FloatArray  # (n_tasks, n_features)

    def decide(self, X: Any, task: IntArray) -> FloatArray:
        return task_margins(X, task, self.coef_, self._coef_of_unseen())

    def _coef_of_unseen(self) -> FloatArray:
        """(n_features,) weights that answer a task without training rows: the mean of all tasks."""
        mean: FloatArray = self.coef_.mean(axis=0)
        return mean


def task_margins(X: Any, task: IntArray, coef: FloatArray, unseen: FloatArray) -> FloatArray:
    """(n,) <w_task, x>; a task of -1 has the weights `unseen`."""
    values = np.zeros(len(task))
    for k, rows in enumerate(split_by_task(task + 1, len(coef) + 1)):
        if len(rows):
            values[rows] = X[rows] @ (coef[k - 1] if k else unseen)
    return values
