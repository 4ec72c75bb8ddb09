"""Learners within a wrapper: make their cores, and show a core as a learner. Shared by all wrappers."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from shoal.engine.arrays import FloatArray
from shoal.learner import Learner, WeightedLearner, available_if, log_probabilities, probabilities, view
from shoal.model.core import CoreLike
from shoal.model.model import Model
from shoal.model.targets import Targets
from shoal.model.tasks import TaskIndex


def inner_core(estimator: Any, kind: type[Learner], wrapper: str) -> CoreLike:
    """A core that has learned nothing, with the hyper-parameters of an estimator, which stays as it is."""
    if not isinstance(estimator, kind):
        wanted = "a learner" if kind is Learner else "a classifier"
        raise ValueError(f"{wrapper} needs {wanted} of this library, got {type(estimator).__name__}")
    return estimator.new_core()


def mean_core(estimator: Any, wrapper: str) -> CoreLike:
    """The same for a wrapper that mixes answers, and judges numbers by squared errors."""
    core = inner_core(estimator, Learner, wrapper)
    if estimator.quantiles:
        raise ValueError(f"{wrapper} judges numbers by squared errors, which suit a mean and no quantile")
    return core


def seen_through(
    estimator: Learner, outer: Model, core: CoreLike, labels: Any = None, tasks: TaskIndex | None = None
) -> Learner:
    """A learner like the estimator over a core that learned within another one: a view, with the same arrays."""
    model = Model(core, estimator.targets, type(estimator).__name__)
    model.tasks, model.features, model.labels = tasks or outer.tasks, outer.features, labels or outer.labels
    return view(estimator, model)


def of_labels(learner: Any) -> bool:
    """Is it a classifier, by what it is around?"""
    return bool(is_classifier(learner))


def of_numbers(learner: Any) -> bool:
    """Is it a regressor, likewise?"""
    return not of_labels(learner)


class AroundAnyLearner(WeightedLearner):
    """A wrapper that is a classifier or a regressor, as its estimator is."""

    estimator: Learner | None
    default: ClassVar[type[Learner]]  # what None stands for

    @property
    def plain(self) -> Learner:
        """The estimator, or the default one."""
        return self.default() if self.estimator is None else self.estimator

    @property
    def targets(self) -> Targets:
        """The estimator's kind."""
        return self.plain.targets

    @property
    def answers_by_exp(self) -> bool:
        """As the estimator's."""
        return bool(getattr(self.plain, "answers_by_exp", False))

    @property
    def quantiles(self) -> tuple[float, ...]:
        """The estimator's."""
        return self.plain.quantiles

    @property
    def declared_labels(self) -> Any:
        """The estimator's."""
        return self.plain.declared_labels

    @property
    def simultaneous(self) -> bool:
        """The estimator's protocol."""
        return self.plain.simultaneous

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), self.plain.__sklearn_tags__()
        tags.estimator_type, tags.target_tags = inner.estimator_type, inner.target_tags
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        return tags

    def predict_round(self, examples: Mapping[Any, Any]) -> dict[Any, Any]:
        """`{task: x, ...}` to `{task: prediction, ...}`."""
        return {task: self.predict_one(x, task) for task, x in examples.items()}


class Mixed(AroundAnyLearner):
    """A wrapper whose answers are mixtures: logits of the larger label, or numbers."""

    @property
    def is_probabilistic(self) -> bool:
        """Decision values of labels are logits."""
        return of_labels(self.plain)

    def predict(self, X: Any, task: Any = None) -> NDArray[Any]:
        """(n,) labels, or numbers."""
        values = self._values(X, task)
        return self._labels(values) if of_labels(self.plain) else values

    def predict_one(self, x: Any, task: Hashable = None) -> Any:
        """The label, or the number, of one example (dict or 1-d array)."""
        value = self._value_one(x, task)
        return self._labels(value).tolist()[0] if of_labels(self.plain) else float(value[0])

    def _labels(self, values: FloatArray) -> NDArray[Any]:
        return np.asarray(self.classes_[(values >= 0.0).astype(np.int64)])

    @available_if(of_labels)
    def decision_function(self, X: Any, task: Any = None) -> FloatArray:
        """(n,) logits of the larger label."""
        return self._values(X, task)

    @available_if(of_labels)
    def decision_one(self, x: Any, task: Hashable = None) -> float:
        """The logit of one example (dict or 1-d array)."""
        return float(self._value_one(x, task)[0])

    @available_if(of_labels)
    def predict_proba(self, X: Any, task: Any = None) -> FloatArray:
        """(n, 2) probabilities of the labels, in the order of `classes_`."""
        return probabilities(self._values(X, task))

    @available_if(of_labels)
    def predict_log_proba(self, X: Any, task: Any = None) -> FloatArray:
        """(n, 2) logarithms of the probabilities, finite where a probability is rounded to 0 or 1."""
        return log_probabilities(self._values(X, task))

    @available_if(of_labels)
    def predict_proba_one(self, x: Any, task: Hashable = None) -> dict[Any, float]:
        """Probability of each label for one example (dict or 1-d array)."""
        return dict(zip(self.classes_.tolist(), probabilities(self._value_one(x, task))[0].tolist(), strict=True))

    def score(self, X: Any, y: Any, task: Any = None, sample_weight: Any = None) -> float:
        """Accuracy, or R^2."""
        from sklearn.metrics import accuracy_score, r2_score

        measure = accuracy_score if of_labels(self.plain) else r2_score
        return float(measure(y, self.predict(X, task), sample_weight=sample_weight))

    @property
    def classes_(self) -> NDArray[Any]:
        """(2,) the labels, the larger one is +1."""
        return np.asarray(self._known("classes_").labels.classes)


def wrappers_of(learner: Any) -> Iterator[Any]:
    """The learner, if it is such a wrapper, and those within it, the outermost first; as trained, if they are."""
    while isinstance(learner, AroundAnyLearner):
        yield learner
        learner = learner.estimator_ if learner.__sklearn_is_fitted__() else learner.plain
