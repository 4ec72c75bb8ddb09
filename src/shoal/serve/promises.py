"""Whether wrappers keep their promises, by task and in all: the coverage of `Conformal`, the trust of `Guarded`."""

from typing import Any

import numpy as np

from shoal.learner import Learner, model_of
from shoal.serve.task_counts import FEWEST
from shoal.wrappers.conformal import Conformal
from shoal.wrappers.guarded import Guarded
from shoal.wrappers.inner import wrappers_of


def within(learner: Learner) -> Learner:
    """The learner inside all wrappers."""
    for one in wrappers_of(learner):
        learner = one.estimator_
    return learner


def of_task(learner: Learner, task: str) -> dict[str, Any]:
    """Numbers of a task that the learner knows: `coverage`, the share of its targets that were in their answers;
    `trust` in sharing, and whether sharing without a guard would have `harmed` it."""
    found: dict[str, Any] = {}
    for one in wrappers_of(learner):
        k = model_of(one).tasks.column[task]
        if isinstance(one, Conformal) and one.judged_[k] > 0.0:
            found["coverage"] = float(one.coverage_[k])
        if isinstance(one, Guarded):
            found |= {"trust": float(one.trust_[k]), "harmed": task in one.harmed_}
    return found


def gauges(learner: Learner) -> dict[str, float]:
    """The same of all tasks, for dashboards."""
    found: dict[str, float] = {}
    for one in wrappers_of(learner):
        if isinstance(one, Guarded):
            found["tasks_harmed"] = float(len(one.harmed_))
        elif isinstance(one, Conformal) and (judged := one.judged_).any():
            shares, some = one.coverage_, judged > 0.0
            found["coverage"] = float(np.average(shares[some], weights=judged[some]))
            if (enough := judged >= FEWEST).any():
                found["coverage_of_worst_task"] = float(shares[enough].min())
    return found
