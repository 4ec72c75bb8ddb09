"""Linear tasks with a given relatedness, noise, drift and sparse rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from shoal.datasets.dataset import Dataset

FloatArray = NDArray[np.float64]


def make_related_tasks(
    n_tasks: int = 10,
    n_features: int = 20,
    n_rows: int = 1000,
    relatedness: float = 0.8,
    noise: float = 0.1,
    drift: float = 0.0,
    nnz: int | None = None,
    seed: int = 0,
    n_groups: int | None = None,
) -> Dataset:
    """A stream of random rows, each labelled by the sign of its task's own linear rule.

    The rule of task k is w_k = √relatedness · common + √(1 - relatedness) · own_k, with random unit vectors:
    two tasks have cosine `relatedness`, up to chance. With `drift` the rule of row t is
    cos(drift·t) w_k + sin(drift·t) w'_k, w' being a second such set of rules. With groups, task k is in group
    k mod n_groups, and `common` is its group's, which is made of one for all likewise: tasks of one group have cosine
    `relatedness`, those of two its square.

    Parameters
    ----------
    n_tasks, n_features : int
    n_rows : int
        Rows in all; the task of each is drawn uniformly.
    relatedness : float in [0, 1]
        0: the tasks have nothing in common; 1: they are the same.
    noise : float in [0, 1]
        Probability that a label is flipped.
    drift : float
        Angle, in radians a row, by which all rules turn; 0: they stay.
    nnz : int, optional
        Entries of a row, one in each of `nnz` equal blocks of columns; X is then sparse. By default X is
        dense.
    seed : int
        The same seed gives the same rows and rules; `noise`, `drift` and `relatedness` change nothing else.
    n_groups : int, optional
        By default the tasks are in no groups.

    Returns
    -------
    Dataset
        Binary; rows of unit norm.

    Raises
    ------
    ValueError
        If an argument is out of its range.

    Examples
    --------
    >>> from shoal.datasets import make_related_tasks
    >>> make_related_tasks(n_tasks=3, n_features=50, nnz=5)
    Dataset('related_tasks', 1,000 rows, 3 tasks, 50 features, binary)
    """
    _check(n_tasks, n_features, n_rows, relatedness, noise, nnz, n_groups)
    # One generator for each part, so that changing one part leaves the others as they are.
    for_rows, for_tasks, for_rules, for_turned_rules, for_noise = np.random.default_rng(seed).spawn(5)
    task = for_tasks.integers(n_tasks, size=n_rows)
    X = _dense_rows(n_rows, n_features, for_rows) if nnz is None else _sparse_rows(n_rows, n_features, nnz, for_rows)
    margin = _margins(X, task, _rules(n_tasks, n_features, relatedness, n_groups, for_rules))
    if drift != 0:
        turned = _margins(X, task, _rules(n_tasks, n_features, relatedness, n_groups, for_turned_rules))
        angle = drift * np.arange(n_rows)
        margin = np.cos(angle) * margin + np.sin(angle) * turned
    flipped = for_noise.random(n_rows) < noise
    return Dataset(
        name="related_tasks",
        X=X,
        y=np.where((margin >= 0) != flipped, 1.0, -1.0),
        task=task,
        feature_names=tuple(f"x{j}" for j in range(n_features)),
        description=(
            f"Simulated linear tasks of relatedness {relatedness:g} with noise {noise:g} and drift {drift:g}."
        ),
        kind="binary",
    )


def _check(
    n_tasks: int,
    n_features: int,
    n_rows: int,
    relatedness: float,
    noise: float,
    nnz: int | None,
    n_groups: int | None,
) -> None:
    counts = {
        "n_tasks": n_tasks,
        "n_features": n_features,
        "n_rows": n_rows,
        "n_groups": 1 if n_groups is None else n_groups,
    }
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"{name} must be at least 1, got {count}")
    for name, share in (("relatedness", relatedness), ("noise", noise)):
        if not 0 <= share <= 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {share}")
    if nnz is not None and not 1 <= nnz <= n_features:
        raise ValueError(f"nnz must lie between 1 and n_features = {n_features}, got {nnz}")


def _rules(
    n_tasks: int, n_features: int, relatedness: float, n_groups: int | None, rng: np.random.Generator
) -> FloatArray:
    common, own = (
        _unit(rng.standard_normal((1, n_features))),
        _unit(rng.standard_normal((n_tasks, n_features))),
    )
    if n_groups is not None:
        of_groups = _unit(rng.standard_normal((n_groups, n_features)))
        common = (np.sqrt(relatedness) * common + np.sqrt(1 - relatedness) * of_groups)[np.arange(n_tasks) % n_groups]
    rules: FloatArray = np.sqrt(relatedness) * common + np.sqrt(1 - relatedness) * own
    return rules


def _dense_rows(n_rows: int, n_features: int, rng: np.random.Generator) -> FloatArray:
    return _unit(rng.standard_normal((n_rows, n_features)))


def _sparse_rows(n_rows: int, n_features: int, nnz: int, rng: np.random.Generator) -> csr_matrix[Any]:
    """One entry in each block of columns: distinct and sorted without a look at what was drawn."""
    edges = np.linspace(0, n_features, nnz + 1).astype(np.int64)
    columns = edges[:-1] + (rng.random((n_rows, nnz)) * np.diff(edges)).astype(np.int64)
    values = _unit(rng.standard_normal((n_rows, nnz)))
    indptr = np.arange(n_rows + 1) * nnz
    return csr_matrix((values.ravel(), columns.ravel(), indptr), shape=(n_rows, n_features))


def _margins(X: Any, task: NDArray[np.int64], rules: FloatArray) -> FloatArray:
    """Each row times the rule of its task."""
    margin, by_task = np.empty(len(task)), np.argsort(task, kind="stable")
    ends = np.cumsum(np.bincount(task, minlength=len(rules)))
    for rule, rows in zip(rules, np.split(by_task, ends[:-1]), strict=True):
        margin[rows] = X[rows] @ rule
    return margin


def _unit(rows: FloatArray) -> FloatArray:
    scaled: FloatArray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled
