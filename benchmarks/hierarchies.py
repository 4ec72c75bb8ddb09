"""The default alone, and within `Hierarchy`, on tasks that are in groups: `python -m benchmarks.hierarchies`.

Log-loss, or root mean squared error, over all rows, and over the first five rows of each task; each row is answered
before it is learned. Needs the data sets and panels of the folder SHOAL_DATA.
"""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers.panels import read
from shoal import HedgedSharing, HedgedSharingRegressor, Hierarchy
from shoal.datasets import load, make_related_tasks

FIRST = 5  # rows of a task
LAST_FOLIATED = 15  # of the fields of landmine: those after it are bare
SUPERTYPES = {"A2": ["A*02:01", "A*02:02", "A*02:03", "A*02:06", "A*68:02"], "A1": ["A*01:01"], "B7": ["B*07:02"]}
PRECINCT, SCHOOL = 4, slice(6, 9)  # columns of stops; of egsingle, what is a school's alone


class Nested(NamedTuple):
    """Rows of tasks in groups."""

    name: str
    X: Any
    y: Any
    ids: list[tuple[Any, Any]]
    regression: bool = False


def nested(name: str) -> Nested:
    """The rows of a data set or a panel."""
    if name in ("egsingle", "stops"):
        panel = read(Path(os.environ["SHOAL_DATA"]) / "panels", name)
        if name == "egsingle":
            group = np.unique(panel.table[:, SCHOOL], axis=0, return_inverse=True)[1].ravel()
        else:  # a neighborhood is in the precinct of most of its stops
            of = [
                np.bincount(panel.table[panel.task == k, PRECINCT].astype(int)).argmax() for k in np.unique(panel.task)
            ]
            group = np.array(of)[panel.task]
        ids = list(zip(group.tolist(), panel.task.tolist(), strict=True))
        return Nested(name, panel.X, panel.y, ids, not panel.classification)
    if name == "made":
        data = make_related_tasks(n_tasks=60, n_groups=6, n_rows=6000, relatedness=0.7, noise=0.0, seed=0)
        return Nested(name, data.X, data.y, [(k % 6, k) for k in data.task.tolist()])
    data = load(name)
    order = np.random.default_rng(0).permutation(len(data))
    task = data.task[order].tolist()
    if name == "landmine":
        return Nested(name, data.X[order], data.y[order], [(k <= LAST_FOLIATED, k) for k in task])
    group_of = {f"HLA-{allele}": group for group, alleles in SUPERTYPES.items() for allele in alleles}
    return Nested(name, data.X[order], data.y[order], [(group_of.get(k, "A3"), k) for k in task])


def losses(learner: Any, data: Nested) -> list[float]:
    """Over all rows, and over the first of each task."""
    f = learner.test_then_train(data.X, data.y, data.ids)
    each = (f - data.y) ** 2 if data.regression else np.logaddexp(0.0, -data.y * f)
    rows, is_first = dict[Any, int](), []
    for task in data.ids:
        rows[task] = rows.get(task, 0) + 1
        is_first.append(rows[task] <= FIRST)
    means = [each.mean(), each[is_first].mean()]
    return [float(np.sqrt(mean) if data.regression else mean) for mean in means]


def main() -> None:
    """Print a row of the table for each stream."""
    print("| rows | tasks | groups | default | `Hierarchy` | first five rows | `Hierarchy` |\n|" + " --- |" * 7)
    for name in ("made", "landmine", "mhc", "egsingle", "stops"):
        data = nested(name)
        plain = HedgedSharingRegressor() if data.regression else HedgedSharing()
        (alone, first), (with_groups, first_with) = losses(plain, data), losses(Hierarchy(plain), data)
        numbers = [f"{one:.4f}" for one in (alone, with_groups, first, first_with)]
        groups = len({group for group, _ in data.ids})
        print(
            "|", " | ".join([f"{name}, {len(data.y):,}", str(len({*data.ids})), str(groups), *numbers]), "|", flush=True
        )


if __name__ == "__main__":
    main()
