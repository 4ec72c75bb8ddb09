"""`--interval`: a learner whose answers are intervals or sets of labels, and how many targets these held."""

from typing import Any

import numpy as np

from shoal.evaluation.metrics.metric import LEAST_ROWS
from shoal.learner import Learner
from shoal.wrappers.conformal import Conformal

ENOUGH = LEAST_ROWS["auc"]  # rows of a task whose coverage says something


def with_interval(learner: Any, coverage: float | None, loaded: str | None) -> Any:
    """The learner with intervals of this coverage; as it is where none is asked for.

    Raises
    ------
    ValueError
        If it is no learner of this library, has no probabilities, or if the loaded model has other intervals or none.
    """
    if coverage is None:
        return learner
    if loaded is not None:
        check_coverage(learner, coverage, loaded)
        return learner
    if not isinstance(learner, Learner):
        raise ValueError("--interval takes learners of shoal")
    wrapped = Conformal(learner, coverage=coverage)
    wrapped.new_core()  # raises now if the learner has no probabilities
    return wrapped


def check_coverage(learner: Any, coverage: float | None, model: str) -> None:
    """Raise ValueError if the model in a file does not have intervals of this coverage."""
    if coverage is None or (isinstance(learner, Conformal) and learner.coverage == coverage):
        return
    if isinstance(learner, Conformal):
        raise ValueError(
            f"the intervals of {model} have coverage {learner.coverage:g}: leave out --interval, or learn anew"
        )
    raise ValueError(f"{model} was learned without intervals: shoal run --interval {coverage:g} learns them from rows")


def covered(learner: Any) -> list[str]:
    """A sentence on the share of targets that were in their answers, in all and in the worst task."""
    if not isinstance(learner, Conformal):
        return []
    judged, shares = learner.judged_, learner.coverage_
    if judged.sum() == 0.0:
        return [f"no target was held against {_answers(learner)}: they begin after 50 rows"]
    share = float((shares * judged)[judged > 0.0].sum() / judged.sum())
    sentence = f"{share:.1%} of the targets were in {_answers(learner)} of {learner.coverage:g}"
    large = np.flatnonzero(judged >= ENOUGH)
    if len(large) == 0:
        return [sentence]
    worst = large[shares[large].argmin()]
    return [f"{sentence}; in the worst task of {ENOUGH} rows or more, {learner.tasks_[worst]}, {shares[worst]:.1%}"]


def _answers(learner: Conformal) -> str:
    return "sets" if hasattr(learner, "predict_set") else "intervals"
