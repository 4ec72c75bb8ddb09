"""What the two forms of the second-order Perceptron share: their matrix depends on the number of tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.engine.arrays import IntArray
from shoal.engine.rounds import Rounds
from shoal.engine.rows import TASKS


def new_tasks(state: Any, rounds: Rounds) -> IntArray:
    """Rows at which rounds begin that bring tasks: the matrix is formed anew before them. Last the number of rows."""
    known = np.maximum.accumulate(np.maximum(rounds.task, state.counters[TASKS] - 1))
    rows = np.flatnonzero(np.diff(known)) + 1
    starts = rounds.starts[np.searchsorted(rounds.starts, rows, "right") - 1]
    return np.append(np.unique(starts[starts > 0]), len(known))
