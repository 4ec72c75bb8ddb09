"""Learners within a wrapper: make their cores, and show a core as a learner. Shared by all wrappers."""

from typing import Any

from shoal.learner import Learner, view
from shoal.model.core import CoreLike
from shoal.model.model import Model


def inner_core(estimator: Any, kind: type[Learner], wrapper: str) -> CoreLike:
    """A core that has learned nothing, with the hyper-parameters of an estimator, which stays as it is."""
    if not isinstance(estimator, kind):
        wanted = "a learner" if kind is Learner else "a classifier"
        raise ValueError(f"{wrapper} needs {wanted} of this library, got {type(estimator).__name__}")
    return estimator.new_core()


def seen_through(estimator: Learner, outer: Model, core: CoreLike, labels: Any = None) -> Learner:
    """A learner like the estimator over a core that learned within another one: a view, with the same arrays."""
    model = Model(core, estimator.targets, type(estimator).__name__)
    model.tasks, model.features, model.labels = outer.tasks, outer.features, labels or outer.labels
    return view(estimator, model)
