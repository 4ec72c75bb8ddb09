"""`TaskColumn`: the task as a column of X, so that tools that know no tasks work with any learner."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from shoal.engine.arrays import FloatArray
from shoal.files.messages import unknown_name
from shoal.learner import Method, available_if, weights_for
from shoal.model.explanations import Explanation


def _has(verb: str) -> Callable[[Method], Method]:
    """Has the learner the verb?"""

    def check(wrapper: TaskColumn) -> bool:
        return hasattr(getattr(wrapper, "estimator_", wrapper.estimator), verb)

    return available_if(check)


class TaskColumn(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Any learner of this library, online or batch, with the task as a column of X.

    Without `task=` as an argument, cross-validation with any scorer, calibration, stacking, permutation importance and
    SHAP need no metadata routing. Text, dates and missing values are for `TabularClassifier` and `TabularRegressor`,
    which read the task as a column, too.

    Parameters
    ----------
    estimator : learner
        It stays as it is; a copy learns. If it has learned already (`shoal.load`), the answers are its own.
    task : str or int
        The column of the task ids: its name in data frames and dicts, its number in arrays.

    Attributes
    ----------
    estimator_ : the learner that learned, with all that it tells (`tasks_`, `relation_`, `save`)
    classes_ : (n_classes,) labels
    n_features_in_, feature_names_in_ : columns of X, the task among them

    Raises
    ------
    ValueError
        If X has no such column, or on what the learner refuses.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_validate
    >>> from shoal import MultitaskPerceptron, TaskColumn
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(2000, 5)), rng.integers(20, size=2000)
    >>> y = (np.einsum("nd,nd->n", X, (1.0 + 0.5 * rng.normal(size=(20, 5)))[task]) > 0).astype(int)
    >>> model = TaskColumn(MultitaskPerceptron(relation="pairwise"), task=0)
    >>> found = cross_validate(model, np.column_stack([task, X]), y, scoring=["roc_auc", "accuracy"])
    >>> print(f"AUC {found['test_roc_auc'].mean():.3f}, accuracy {found['test_accuracy'].mean():.3f}")
    AUC 0.980, accuracy 0.924
    """

    def __init__(self, estimator: Any, task: str | int = "task") -> None:
        self.estimator = estimator
        self.task = task

    # ---- arrays --------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None) -> Self:
        """Forget everything, then learn the rows."""
        return self._learned(clone(self.estimator), "fit", X, y, sample_weight)

    @_has("partial_fit")
    def partial_fit(self, X: Any, y: Any, *, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows, in order."""
        more = {} if classes is None else {"classes": classes}
        return self._learned(self._begun(), "partial_fit", X, y, sample_weight, **more)

    def _learned(self, learner: Any, verb: str, X: Any, y: Any, sample_weight: Any, **more: Any) -> Self:
        if not hasattr(learner, "estimator_names"):
            raise ValueError(f"TaskColumn needs a learner of this library, got {type(learner).__name__}")
        names = getattr(X, "column_names", getattr(X, "columns", None))
        features, task = self._split(X, None if names is None else list(names))
        getattr(learner, verb)(features, y, task, **more, **weights_for(learner, sample_weight))
        self.estimator_, self.n_features_in_ = learner, np.shape(features)[1] + 1
        self._columns = None if names is None else list(names)
        if names is not None:
            self.feature_names_in_ = np.array(self._columns, np.object_)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """(n,) labels or forecasts."""
        return np.asarray(self._answered("predict", X))

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> FloatArray:
        """(n, n_classes) probabilities of the labels, in the order of `classes_`."""
        return np.asarray(self._answered("predict_proba", X))

    @_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> FloatArray:
        """(n, n_classes) logarithms of the probabilities."""
        return np.asarray(self._answered("predict_log_proba", X))

    @_has("decision_function")
    def decision_function(self, X: Any) -> FloatArray:
        """(n,) margins; of several labels (n, n_classes)."""
        return np.asarray(self._answered("decision_function", X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The learner's score: accuracy, or R^2."""
        features, task = self._split(X, self._names())
        return float(self._fitted().score(features, y, task, sample_weight=sample_weight))

    def _answered(self, verb: str, X: Any) -> Any:
        learner = self._fitted()
        return getattr(learner, verb)(*self._split(X, self._names()))

    # ---- one example -----------------------------------------------------------------------------------------

    @_has("learn_one")
    def learn_one(self, x: Mapping[str, Any], y: Any, *, sample_weight: float = 1.0) -> None:
        """Learn one example: a dict of named features, the task among them."""
        learner = self._begun()
        features, task = self._split_one(x)
        learner.learn_one(features, y, task, **weights_for(learner, None if sample_weight == 1.0 else sample_weight))
        self.estimator_ = learner

    @_has("predict_one")
    def predict_one(self, x: Mapping[str, Any]) -> Any:
        """The label or forecast of one example."""
        return self._fitted().predict_one(*self._split_one(x))

    @_has("predict_proba_one")
    def predict_proba_one(self, x: Mapping[str, Any]) -> dict[Any, float]:
        """Probability of each label for one example."""
        return dict(self._fitted().predict_proba_one(*self._split_one(x)))

    @_has("explain_one")
    def explain_one(self, x: Mapping[str, Any], *, label: Any = None) -> Explanation:
        """The features that move the decision on one example most: see `Learner.explain_one`."""
        found: Explanation = self._fitted().explain_one(*self._split_one(x), label=label)
        return found

    # ---- inside ----------------------------------------------------------------------------------------------

    def _split(self, X: Any, names: list[Any] | None) -> tuple[Any, Any]:
        """The features of a table, and the task of each row. `names` are those of the columns, if they have any."""
        if isinstance(X, list):
            X = np.array(X, object)
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            return self._split_frame(X)
        j = self.task
        if not isinstance(j, int | np.integer):
            if names is None or j not in names:
                raise ValueError(f"X is an array, whose columns have numbers: TaskColumn(estimator, 0), not {j!r}")
            j = names.index(j)
        if np.ndim(X) != 2 and not hasattr(X, "tocsr"):
            raise ValueError(f"Expected 2D array, got {np.ndim(X)}D array instead: reshape your data")
        if not -X.shape[1] <= j < X.shape[1]:
            raise ValueError(f"X has {X.shape[1]} columns, and none with the number {j} of the task")
        others = [k for k in range(X.shape[1]) if k != j % X.shape[1]]
        if hasattr(X, "tocsr"):
            return X.tocsr()[:, others], X.tocsr()[:, [j]].toarray().ravel()
        return X[:, others].astype(np.float64 if X.dtype == object else X.dtype), X[:, j]

    def _split_frame(self, X: Any) -> tuple[Any, Any]:
        import narwhals.stable.v1 as nw

        frame = nw.from_native(X, eager_only=True)
        is_place = isinstance(self.task, int | np.integer) and self.task not in frame.columns
        name: Any = frame.columns[self.task] if is_place else self.task
        if name not in frame.columns:
            raise ValueError(unknown_name("X has no column", name, map(str, frame.columns)))
        task = frame[name]
        numbers = task.dtype.is_integer() and not task.is_null().any()
        ids = task.to_numpy() if numbers else np.fromiter(task.to_list(), np.object_, len(task))
        return nw.to_native(frame.drop(name)), ids

    def _split_one(self, x: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        if self.task not in x:
            raise ValueError(unknown_name("the example has no", str(self.task), map(str, x)))
        return {name: value for name, value in x.items() if name != self.task}, x[self.task]  # type: ignore[index]

    def _begun(self) -> Any:
        """The learner that learns on."""
        if hasattr(self, "estimator_"):
            return self.estimator_
        is_fitted = self.estimator.__sklearn_is_fitted__()
        return copy.deepcopy(self.estimator) if is_fitted else clone(self.estimator)

    def _fitted(self) -> Any:
        found = getattr(self, "estimator_", self.estimator)
        if not found.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This TaskColumn instance is not fitted yet: {type(found).__name__} has learned no row"
            )
        return found

    def _names(self) -> list[Any] | None:
        return getattr(self, "_columns", None)

    @property
    def classes_(self) -> NDArray[Any]:
        """(n_classes,) the labels."""
        return np.asarray(self._fitted().classes_)

    def __sklearn_is_fitted__(self) -> bool:
        return bool(getattr(self, "estimator_", self.estimator).__sklearn_is_fitted__())

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type, tags.classifier_tags = inner.estimator_type, inner.classifier_tags
        tags.regressor_tags, tags.target_tags = inner.regressor_tags, inner.target_tags
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.string = True  # of the task
        return tags
