"""Learners as river estimators: the task is one of the features of a row.

The value of the feature named `task` says whose row it is; the learner gets the dict without it. All else is
river's: dicts of features that come and go, pipelines, `evaluate.progressive_val_score`.
"""

import copy
import pickle
from collections.abc import Hashable, Iterator
from typing import Any

from sklearn.base import is_classifier, is_regressor

from shoal.learner import weights_for

try:
    from river import base
except ImportError as error:
    raise ImportError('shoal.river needs the package river: pip install "shoal[river]"') from error


NO_TASK = "no task"  # the id of rows without one


class _TaskEstimator:
    """The task taken out of the features, and a copy of the learner that learns."""

    def __init__(self, learner: Any, task: Hashable = "task") -> None:
        self.learner = learner
        self.task = task
        self.model = copy.deepcopy(learner)  # river clones from the parameters: they must not learn

    def learn_one(self, x: dict[Hashable, Any], y: Any, w: float = 1.0) -> None:
        """Learn a row; a task or feature that is new gets its place. `x` stays as it is.

        `w` says how often the row counts, for learners that take weights.
        """
        self.model.learn_one(*self._split(x, y), **weights_for(self.model, None if w == 1.0 else w))

    def _split(self, x: dict[Hashable, Any], *y: Any) -> tuple[Any, ...]:
        """Features, target if there is one, and task id: `NO_TASK` where the row has none."""
        features = x.copy()
        task = features.pop(self.task, NO_TASK)
        return features, *y, task

    @property
    def _has_learned(self) -> bool:
        return bool(self.model.__sklearn_is_fitted__())

    @property
    def _raw_memory_usage(self) -> int:
        """Bytes of what was learned, by a pickle of it.

        river follows references instead, which lead into numba: megabytes that all learners share, and weak references
        that raise ReferenceError.
        """
        return len(pickle.dumps(self.model))


class TaskClassifier(_TaskEstimator, base.Classifier):
    """A shoal classifier as a river classifier.

    Parameters
    ----------
    learner : classifier of shoal
        It is copied and stays as it is; if it has learned already (`shoal.load`), the copy goes on from there.
    task : hashable
        Name of the feature that holds the task id. Rows without it belong to one task of their own, `NO_TASK`.

    Attributes
    ----------
    model : the copy that learns, with all that a learner tells (`weights_`, `tasks_`, `save`)

    Raises
    ------
    ValueError
        If `learner` is not a classifier; in `learn_one` on a feature that is not a finite number.

    Notes
    -----
    Labels are river's: False and True (also 0 and 1, -1 and 1; or those that `learner` has learned). Before the first
    row `predict_one` gives None, which river's metrics leave out. `predict_proba_one` works where the learner has
    it. In a pipeline keep the task away from what needs numbers, as the example does.

    Examples
    --------
    >>> from river import compose, evaluate, metrics, preprocessing
    >>> from shoal import HedgedSharing
    >>> from shoal.datasets import make_related_tasks
    >>> from shoal.river import TaskClassifier
    >>> data = make_related_tasks(n_tasks=20, n_features=5, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> names = ["a", "b", "c", "d", "e"]
    >>> rows = [
    ...     ({"user": int(task), **dict(zip(names, x.tolist()))}, bool(y > 0))
    ...     for x, y, task in zip(data.X, data.y, data.task)
    ... ]
    >>> scaled = compose.Discard("user") | preprocessing.StandardScaler()
    >>> model = (scaled + compose.Select("user")) | TaskClassifier(HedgedSharing(), task="user")
    >>> evaluate.progressive_val_score(rows, model, metrics.ROCAUC() + metrics.Accuracy())
    ROCAUC: 98.49%
    Accuracy: 94.25%
    """

    def __init__(self, learner: Any, task: Hashable = "task") -> None:
        if not (hasattr(learner, "learn_round") and is_classifier(learner)):
            raise ValueError(f"expected a classifier of shoal, such as HedgedSharing(), got {learner!r}")
        super().__init__(learner, task)

    def predict_one(self, x: dict[Hashable, Any], **kwargs: Any) -> Any:
        """The label; None before the first row."""
        return self.model.predict_one(*self._split(x)) if self._has_learned else None

    def predict_proba_one(self, x: dict[Hashable, Any], **kwargs: Any) -> dict[Any, float]:
        """`{label: probability}`.

        Raises
        ------
        NotImplementedError
            If the learner gives no probabilities.
        """
        if not hasattr(self.model, "predict_proba_one"):
            raise NotImplementedError(f"{type(self.model).__name__} gives no probabilities; use predict_one")
        if not self._has_learned:
            return {} if self._multiclass else {False: 0.5, True: 0.5}
        return dict(self.model.predict_proba_one(*self._split(x)))

    @property
    def _multiclass(self) -> bool:
        return bool(self.learner.__sklearn_tags__().classifier_tags.multi_class)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from shoal import HedgedSharing

        yield {"learner": HedgedSharing()}


class TaskRegressor(_TaskEstimator, base.Regressor):
    """A shoal regressor as a river regressor.

    Parameters
    ----------
    learner : regressor of shoal
        It is copied and stays as it is; if it has learned already (`shoal.load`), the copy goes on from there.
    task : hashable
        Name of the feature that holds the task id. Rows without it belong to one task of their own, `NO_TASK`.

    Attributes
    ----------
    model : the copy that learns, with all that a learner tells (`coef_`, `tasks_`, `save`)

    Raises
    ------
    ValueError
        If `learner` is not a regressor; in `learn_one` on a feature or target that is not a finite number.

    Notes
    -----
    Before the first row `predict_one` gives 0. In a pipeline keep the task away from what needs numbers, as the example
    of `TaskClassifier` does.

    Examples
    --------
    >>> from river import evaluate, metrics
    >>> from shoal import MultitaskRegressor
    >>> from shoal.river import TaskRegressor
    >>> rows = [({"shop": shop, "day": day / 7}, 2.0 * day / 7 + (shop == "b"))
    ...         for day in range(1, 8) for shop in "ab"] * 20
    >>> for sharing in ("pooled", "pairwise"):
    ...     model = TaskRegressor(MultitaskRegressor(relation=sharing), task="shop")
    ...     print(sharing, evaluate.progressive_val_score(rows, model, metrics.MAE()))
    pooled MAE: 0.568249
    pairwise MAE: 0.359858
    """

    def __init__(self, learner: Any, task: Hashable = "task") -> None:
        if not (hasattr(learner, "learn_round") and is_regressor(learner)):
            raise ValueError(f"expected a regressor of shoal, such as MultitaskRegressor(), got {learner!r}")
        super().__init__(learner, task)

    def predict_one(self, x: dict[Hashable, Any]) -> float:
        """The prediction; 0 before the first row."""
        return float(self.model.predict_one(*self._split(x))) if self._has_learned else 0.0

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from shoal import MultitaskRegressor

        yield {"learner": MultitaskRegressor()}
