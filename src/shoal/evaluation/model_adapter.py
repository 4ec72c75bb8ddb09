"""`ModelAdapter`: a model of river, of scikit-learn or of one's own as a competitor in progressive validation."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, Self

import narwhals as nw
import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import ClassifierTags, RegressorTags, get_tags

from shoal.engine.arrays import FloatArray
from shoal.learner import available_if

Kind = Literal["binary", "regression"]
SURE = 1e-15  # a probability is kept so far from 0 and 1


def _gives_probabilities(adapter: ModelAdapter) -> bool:
    return any(hasattr(adapter.model, name) for name in ("predict_proba_one", "predict_proba"))


class ModelAdapter(BaseEstimator):  # type: ignore[misc]
    """Any model with `learn_one` and `predict_one`, or with `partial_fit` and `predict`, as a competitor.

    `progressive_validate` wraps such models by itself, `TabularClassifier` and `TaskColumn` among them, which find the
    task in their rows; the adapter is for those that need an option. Each row is
    predicted before the model learns it, one call a row. A method with an argument `task` is given the row's task; a
    model without one does not see tasks, unless `per_task` makes it one model for each.

    Parameters
    ----------
    model : object
        `learn_one(x, y)` gets a dict of the row's features by name (by number if they have none), as river has it, and
        `partial_fit(X, y)` a row of an array. Of two labels, `predict_proba_one(x)` or `predict_proba(X)` orders the
        rows, else `decision_one(x)` or `decision_function(X)`, else the predicted label.
    kind : {"binary", "regression"}, optional
        By default what the model says of itself, and "binary" if it says nothing.
    per_task : bool
        Train a copy of the model for each task, of its state at the start.

    Attributes
    ----------
    model_ : object, or dict of task to object
        The trained model, or models.
    tasks_ : list
    n_updates_ : int
        Rows learned.

    Raises
    ------
    TypeError
        If the model has neither pair of methods.

    Examples
    --------
    >>> from shoal.datasets import make_related_tasks
    >>> from shoal.evaluation import ModelAdapter, progressive_validate
    >>> class Majority:
    ...     def __init__(self):
    ...         self.sum = 0.0
    ...     def learn_one(self, x, y):
    ...         self.sum += y
    ...     def predict_one(self, x):
    ...         return 1 if self.sum >= 0 else -1
    >>> data = make_related_tasks(n_tasks=5, n_features=10, n_rows=500, relatedness=0.9, noise=0.0, seed=1)
    >>> found = progressive_validate({"all": Majority(), "own": ModelAdapter(Majority(), per_task=True)}, data)
    >>> [round(one.overall["error"], 2) for one in found.values()]
    [0.53, 0.5]
    """

    simultaneous = False

    def __init__(self, model: Any, *, kind: Kind | None = None, per_task: bool = False) -> None:
        self.model = model
        self.kind = kind
        self.per_task = per_task

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if (self.kind or _kind_of(self.model)) == "regression":
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        else:
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags(multi_class=False)
        return tags

    def partial_fit(self, X: Any, y: Any, task: Any = None, *, classes: Any = None, rounds: Any = None) -> Self:
        """Learn the rows in order."""
        self._note(X, y, classes)
        for x, one_y, one_task in zip(_rows(X), np.asarray(y).tolist(), self._tasks(X, task), strict=True):
            self._learn(x, one_y, one_task)
        return self

    def test_then_train(
        self, X: Any, y: Any, task: Any = None, *, classes: Any = None, rounds: Any = None
    ) -> FloatArray:
        """(n,) decision values or predictions, each given before its row is learned."""
        self._note(X, y, classes)
        found = np.empty(X.shape[0])
        for i, (x, one_y, one_task) in enumerate(
            zip(_rows(X), np.asarray(y).tolist(), self._tasks(X, task), strict=True)
        ):
            found[i] = self._decide(x, one_task)
            self._learn(x, one_y, one_task)
        return found

    def decision_function(self, X: Any, task: Any = None) -> FloatArray:
        """(n,) decision values; they are log-odds if the model gives probabilities."""
        return np.array([self._decide(x, one) for x, one in zip(_rows(X), self._tasks(X, task), strict=True)])

    def predict(self, X: Any, task: Any = None) -> Any:
        """(n,) predictions: real numbers, or labels."""
        found = self.decision_function(X, task)
        return found if self._is_regression else np.asarray(self.classes_)[(found >= 0).astype(int)]

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any, task: Any = None) -> FloatArray:
        """(n, 2) probabilities of the labels."""
        p = 1 / (1 + np.exp(-self.decision_function(X, task)))
        return np.column_stack([1 - p, p])

    def add_features(self, names: Any) -> None:
        """Models that take dicts need no notice of new features; arrays become wider."""
        if not isinstance(names, int):
            self.feature_names_in_ = list(names)
            names = len(self.feature_names_in_) - getattr(self, "n_features_in_", 0)
        self.n_features_in_ = int(getattr(self, "n_features_in_", 0) + names)

    def _note(self, X: Any, y: Any, classes: Any) -> None:
        if not hasattr(self, "tasks_"):
            by_row, by_array = (("learn_one", "predict_one"), ("partial_fit", "predict"))
            self._by_row = all(hasattr(self.model, name) for name in by_row)
            if not self._by_row and not all(hasattr(self.model, name) for name in by_array):
                raise TypeError(
                    f"{type(self.model).__name__} has neither learn_one and predict_one nor partial_fit and predict"
                )
            self._is_regression = (self.kind or _kind_of(self.model)) == "regression"
            self.model_: Any = {} if self.per_task else copy.deepcopy(self.model)
            self.tasks_: list[Any] = []
            self._updates: dict[Any, int] = {}
            self.n_updates_, self.n_features_in_ = 0, int(X.shape[1])
            self._ready: set[Any] = set()
        names = getattr(X, "column_names", getattr(X, "columns", None))
        if names is not None:
            self.feature_names_in_ = list(names)
        if not self._is_regression and not hasattr(self, "classes_"):
            self.classes_ = np.asarray(sorted(set(np.asarray(y).tolist())) if classes is None else list(classes))

    @property
    def task_updates_(self) -> list[int]:
        """Rows learned of each task."""
        return [self._updates[task] for task in self.tasks_]

    def _tasks(self, X: Any, task: Any) -> list[Any]:
        return [None] * X.shape[0] if task is None else np.asarray(task).tolist()

    def _of(self, task: Any, *, learns: bool) -> Any:
        if not self.per_task:
            return self.model_
        if task not in self.model_ and not learns:
            return None
        if task not in self.model_:
            self.model_[task] = copy.deepcopy(self.model)
        return self.model_[task]

    def _learn(self, x: dict[int, float], y: Any, task: Any) -> None:
        model = self._of(task, learns=True)
        if task not in self._updates:
            self.tasks_.append(task)
        self._updates[task] = self._updates.get(task, 0) + 1
        self.n_updates_ += 1
        self._ready.add(task if self.per_task else None)
        learn = model.learn_one if self._by_row else model.partial_fit
        takes_classes = not self._is_regression and "classes" in inspect.signature(learn).parameters
        options = {"classes": self.classes_} if takes_classes and len(self.classes_) == 2 else {}
        if self._by_row:
            _call(learn, task, self._named(x), y, **options)
        else:
            _call(learn, task, self._array(x), np.asarray([y]), **options)

    def _decide(self, x: Any, task: Any) -> float:
        """The decision value, or the prediction of a regressor; 0 before anything was learned."""
        model = self._of(task, learns=False)
        if model is None or (not self._by_row and (task if self.per_task else None) not in self._ready):
            return 0.0
        try:
            return self._asked(model, self._named(x) if self._by_row else self._array(x), task)
        except NotFittedError:
            return 0.0

    def _asked(self, model: Any, x: Any, task: Any) -> float:
        one = "_one" if self._by_row else ""
        if self._is_regression:
            return _number(_call(getattr(model, f"predict{one}"), task, x))
        if hasattr(model, f"predict_proba{one}"):
            found = _call(getattr(model, f"predict_proba{one}"), task, x)
            if self._by_row and not found:  # river knows no label yet
                return 0.0
            p = found.get(self.classes_[1], 0.0) if self._by_row else _number(np.asarray(found)[:, 1])
            p = min(max(float(p), SURE), 1 - SURE)
            return math.log(p / (1 - p))
        decide = getattr(model, "decision_one" if self._by_row else "decision_function", None)
        if decide is not None:
            return _number(_call(decide, task, x))
        label = _call(getattr(model, f"predict{one}"), task, x)
        label = label if self._by_row else np.asarray(label).ravel()[0]
        return 0.0 if label is None else 1.0 if label == self.classes_[1] else -1.0

    def _named(self, x: Any) -> dict[Any, float]:
        names = getattr(self, "feature_names_in_", None)
        return x if names is None else {names[j]: value for j, value in x.items()}

    def _array(self, x: dict[int, float]) -> FloatArray:
        row = np.zeros((1, self.n_features_in_))
        row[0, list(x)] = list(x.values())
        return row


def _rows(X: Any) -> Iterator[dict[int, float]]:
    """The values of each row by the number of their column: all of an array, the stored ones of a sparse matrix."""
    if hasattr(X, "indptr"):
        X = csr_matrix(X)
        for i in range(X.shape[0]):
            own = slice(X.indptr[i], X.indptr[i + 1])
            yield dict(zip(X.indices[own].tolist(), X.data[own].tolist(), strict=True))
        return
    try:
        rows = np.asarray(X, np.float64).tolist()
    except (TypeError, ValueError):  # a frame that holds text or dates
        rows = nw.from_native(X, eager_only=True).rows()
    for row in rows:
        yield dict(enumerate(row))


def _call(method: Callable[..., Any], task: Any, *arguments: Any, **options: Any) -> Any:
    """Call a method, with the task if it has such an argument."""
    try:
        takes_task = "task" in inspect.signature(method).parameters
    except ValueError:
        takes_task = False
    return method(*arguments, **options, **({"task": task} if takes_task else {}))


def _number(found: Any) -> float:
    """A number, also out of an array of one; 0 for None."""
    return 0.0 if found is None else float(np.asarray(found, np.float64).ravel()[0])


def _kind_of(model: Any) -> Kind:
    """The kind of targets that a model of scikit-learn or river declares."""
    if type(model).__module__.startswith("river."):
        last = list(model.steps.values())[-1] if hasattr(model, "steps") else model  # of a pipeline
        return "regression" if "Regressor" in [kind.__name__ for kind in type(last).__mro__] else "binary"
    if hasattr(model, "__sklearn_tags__"):
        return "regression" if get_tags(model).estimator_type == "regressor" else "binary"
    return "binary"
