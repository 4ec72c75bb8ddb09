"""A learner of tasks and one of their groups, mixed as a forecast and one from outside: row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.twins.outside_forecast import Mixture


class Hierarchy:
    """`answer` answers a row, `learn` learns it; a task is (group, name), y is -1 or +1, or a number."""

    def __init__(self, of_tasks: Any, of_groups: Any, *, regression: bool) -> None:
        self.of_tasks, self.of_groups, self.regression = of_tasks, of_groups, regression
        self.mixture = Mixture(1, regression=regression)

    def said(self, learner: Any, x: Any, task: Any) -> float:
        if not hasattr(learner, "tasks_"):
            return 0.0
        return float((learner.predict_one if self.regression else learner.decision_one)(x, task))

    def forecasts(self, x: Any, task: Any) -> tuple[float, Any]:
        f, of_group = self.said(self.of_tasks, x, task), self.said(self.of_groups, x, task[0])
        return f, np.array([of_group if self.regression else 1 / (1 + np.exp(-of_group))])

    def answer(self, x: Any, task: Any) -> float:
        return self.mixture.q(task, *self.forecasts(x, task))

    def learn(self, x: Any, y: float, task: Any) -> None:
        f, outside = self.forecasts(x, task)
        self.mixture.learn(task, f, outside, y if self.regression else float(y > 0))
        self.of_tasks.learn_one(x, y, task)
        self.of_groups.learn_one(x, y, task[0])
