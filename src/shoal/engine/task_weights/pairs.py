"""(task, feature) pairs as files hold them: for each task its features in order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import IntArray
from shoal.engine.task_weights.hash_table import Tables, of_task


def sorted_pairs(tables: Tables, task: int) -> tuple[IntArray, NDArray[Any]]:
    """The features that occur in a task, in order, and the contents of their slots."""
    features, held = of_task(tables, task)
    order = np.argsort(features)
    return features[order], held[order]


def check_pairs(starts: IntArray, features: NDArray[Any], n_values: int, n_tasks: int, n_features: int) -> None:
    """Raise ValueError unless these are the sorted features of each task's pairs."""
    if len(starts) != n_tasks + 1 or starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] != len(features):
        raise ValueError("the offsets of its tasks' pairs are not in order")
    if len(features) != n_values:
        raise ValueError(f"{len(features)} pairs have {n_values} values")
    steps = np.diff(features)
    begins = starts[1:-1][(starts[1:-1] > 0) & (starts[1:-1] < len(features))]
    steps[begins - 1] = 1
    if len(features) and (features.min() < 0 or features.max() >= n_features or (steps <= 0).any()):
        raise ValueError("the features of pairs are out of range or order")
