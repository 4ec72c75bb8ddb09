"""One or many copies of a scikit-learn estimator, their answers on a common scale."""

from dataclasses import field
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

from shoal.batch.base import BatchLearner
from shoal.batch.linear_svm import Fit, weighted_hinge
from shoal.engine.arrays import FloatArray
from shoal.model.parameters import Readers, from_keywords, positive


@from_keywords
class AroundEstimator(BatchLearner):
    """The base of learners whose models are scikit-learn's, or the papers' linear one."""

    estimator: Any = field(default=None, kw_only=False)
    mu: float = 1e-3

    parameters: ClassVar[Readers] = {"mu": positive()}

    def check_parameters(self) -> None:
        super().check_parameters()
        known = isinstance(self.estimator, BaseEstimator) and hasattr(self.estimator, "predict")
        if self.estimator is not None and not known:
            raise ValueError(f"estimator must be None or a scikit-learn estimator, got {self.estimator!r}")

    @property
    def no_weights(self) -> str:
        """Why rows cannot have weights, or "": some estimators take none."""
        has_them = self.estimator is None or has_fit_parameter(self.estimator, "sample_weight")
        return "" if has_them else f"the fit of {type(self.estimator).__name__} takes none"

    def fit(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> Self:
        """Learn from all rows at once, as `BatchLearner.fit` says.

        Parameters
        ----------
        sample_weight : (n,) numbers from 0 to 1e6, optional
            How often each row counts; one of weight 0 is left out, and its task if it has no other row.

        Raises
        ------
        ValueError
            As `BatchLearner.fit`, or where the estimator takes no weights.
        """
        return self._fit(X, y, task, sample_weight)

    def classifies(self) -> bool:
        return self.estimator is None or is_classifier(self.estimator)

    def _fit_linear(self, X: Any, y: FloatArray, weight: FloatArray) -> Fit:
        """The papers' linear model; the mean loss is over the weights, if there are any."""
        shares = weight / weight.sum() if len(weight) else np.full(len(y), 1.0 / len(y))
        return weighted_hinge(X, y, shares, self.mu)

    def _fit_clone(self, X: Any, y: FloatArray, weight: FloatArray) -> Any:
        """A copy of the estimator; many refuse rows of one label, for which the answer is that label."""
        from sklearn.dummy import DummyClassifier

        one_label = self.classifies() and bool((y == y[0]).all())
        model = DummyClassifier(strategy="most_frequent") if one_label else clone(self.estimator)
        with np.errstate(over="warn", divide="warn", invalid="warn"):  # warn, as this is code of others
            return model.fit(X, y, sample_weight=weight) if len(weight) else model.fit(X, y)


def answers(model: Any, X: Any) -> FloatArray:
    """Decision values, whose sign is the label, of any classifier of -1 and +1; predictions of a regressor."""
    if is_classifier(model) and len(model.classes_) == 2:
        if hasattr(model, "decision_function"):
            return np.asarray(model.decision_function(X), np.float64)
        if hasattr(model, "predict_proba"):
            return np.asarray(model.predict_proba(X)[:, 1] - 0.5, np.float64)
    return np.asarray(model.predict(X), np.float64)
