"""What learners of labels add: margins, labels and, where decision values are logits, probabilities."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from shoal.engine.arrays import FloatArray
from shoal.learner import Learner
from shoal.model.targets import Targets, TwoLabels


def is_probabilistic_kind(learner: Any) -> bool:
    """Has it probabilities?"""
    return bool(learner.is_probabilistic)


class Classifier(ClassifierMixin, Learner):  # type: ignore[misc]
    """A learner of two labels."""

    targets: Targets = TwoLabels()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @property
    def is_probabilistic(self) -> bool:
        """Are decision values logits, so that there are probabilities?"""
        return False

    @property
    def classes_(self) -> NDArray[Any]:
        """(2,) the labels, the larger one is +1."""
        return np.asarray(self._known("classes_").labels.classes)

    def decision_function(self, X: Any, task: Any = None) -> FloatArray:
        """(n,) margins <w_task, x>."""
        return self._values(X, task)

    def predict(self, X: Any, task: Any = None) -> NDArray[Any]:
        """(n,) labels; a margin of 0 predicts the larger label."""
        positive = (self._values(X, task) >= 0.0).astype(np.int64)
        return np.asarray(self.classes_[positive])

    @available_if(is_probabilistic_kind)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, task: Any = None) -> FloatArray:
        """(n, 2) probabilities of the labels, in the order of `classes_`."""
        return probabilities(self._values(X, task))

    @available_if(is_probabilistic_kind)  # type: ignore[untyped-decorator]
    def predict_proba_one(self, x: Any, task: Hashable = None) -> dict[Any, float]:
        """Probability of each label for one example (dict or 1-d array)."""
        return dict(zip(self.classes_.tolist(), probabilities(self._value_one(x, task))[0].tolist(), strict=True))

    def score(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> float:
        """Accuracy."""
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, self.predict(X, task), sample_weight=sample_weight))

    def decision_one(self, x: Any, task: Hashable = None) -> float:
        """The margin of one example (dict or 1-d array)."""
        return float(self._value_one(x, task)[0])

    def predict_one(self, x: Any, task: Hashable = None) -> Any:
        """The label of one example (dict or 1-d array)."""
        positive = self._value_one(x, task)[0] >= 0.0
        return self.classes_.tolist()[int(positive)]

    def predict_round(self, examples: Mapping[Any, Any]) -> dict[Any, Any]:
        """`{task: x, ...}` to `{task: label, ...}`."""
        return {task: self.predict_one(x, task) for task, x in examples.items()}


def probabilities(logits: FloatArray) -> FloatArray:
    """(n, 2) probabilities of the smaller and the larger label."""
    positive = 1.0 / (1.0 + np.exp(-np.clip(logits, -700.0, 700.0)))
    return np.column_stack([1.0 - positive, positive])
