"""What learners of real targets add: predictions and their score."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from sklearn.base import RegressorMixin

from shoal.engine.arrays import FloatArray
from shoal.learner import Learner
from shoal.model.targets import RealTargets, Targets


class Regressor(RegressorMixin, Learner):  # type: ignore[misc]
    """A learner of real targets."""

    targets: Targets = RealTargets()

    def predict(self, X: Any, task: Any = None) -> FloatArray:
        """(n,) predictions <w_task, x>."""
        return self._values(X, task)

    def score(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> float:
        """Coefficient of determination R^2."""
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X, task), sample_weight=sample_weight))

    def predict_one(self, x: Any, task: Hashable = None) -> float:
        """The prediction for one example (dict or 1-d array)."""
        return float(self._value_one(x, task)[0])

    def predict_round(self, examples: Mapping[Any, Any]) -> dict[Any, float]:
        """`{task: x, ...}` to `{task: prediction, ...}`."""
        return {task: self.predict_one(x, task) for task, x in examples.items()}
