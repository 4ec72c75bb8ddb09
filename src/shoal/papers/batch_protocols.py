"""The papers' protocols for batch learners: as in `protocols`, one function a protocol."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from shoal.datasets.conjoint import make_conjoint
from shoal.datasets.dataset import Dataset
from shoal.engine.arrays import FloatArray
from shoal.papers.protocols import held_out


def by_size(data: Any, learner: Any, seed: int, *, sizes: tuple[int, ...]) -> dict[str, Any]:
    """The AUC after training on this many rows a task, for each size, and its mean over sizes."""
    curve = [held_out(data, clone(learner), seed, train=size)["auc"] for size in sizes]
    return {"curve": curve, "auc": float(np.mean(curve)), "auc_20": curve[0], "auc_last": curve[-1]}


def simulated(
    data: Dataset, learner: Any, seed: int, *, similarity: Any, n_tasks: int, n_questions: int, repeats: int = 1
) -> dict[str, Any]:
    """Error on the test questions to people who are drawn anew in every run (`data` is the first such drawing)."""
    found = []
    for run in range(seed, seed + repeats):
        train, test = make_conjoint(similarity, n_tasks=n_tasks, n_questions=n_questions, seed=run)
        fitted = clone(learner).fit(train.X, train.y, train.task)
        found.append({"error": 1.0 - fitted.score(test.X, test.y, test.task), **_vectors(fitted)})
    return {name: float(np.mean([numbers[name] for numbers in found])) for name in found[0]}


def three_quarters(task: Any, seed: int) -> NDArray[np.bool_]:
    """Training rows: 75 % of each task's, rounded down, which makes the paper's 11,472 on School."""
    rng, learn = np.random.default_rng(seed), np.zeros(len(task), bool)
    for k in np.unique(task):
        own = rng.permutation(np.flatnonzero(task == k))
        learn[own[: 3 * len(own) // 4]] = True
    return learn


def explained(data: Dataset, learner: Any, seed: int) -> dict[str, Any]:
    """1 - (sum of squared errors)/(total variance) over the test rows of all tasks, in two readings of "total".

    Around one mean, that of all test rows; or around what a task's training rows average, so that what is explained is
    explained within tasks.
    """
    learn = three_quarters(data.task, seed)
    X, y, task = data.X[~learn], data.y[~learn], data.task[~learn]
    level = float(data.y[learn].mean())
    learner.fit(data.X[learn], data.y[learn] - level, data.task[learn])
    error = float(((y - level - learner.predict(X, task)) ** 2).sum())
    own = y - _task_means(data.y[learn], data.task[learn], task)
    return {
        "explained": 1.0 - error / float(((y - y.mean()) ** 2).sum()),
        "within": 1.0 - error / float((own**2).sum()),
        **_vectors(learner),
    }


def _task_means(y: FloatArray, task: Any, of: Any) -> FloatArray:
    """For each task of `of`, the mean of its y."""
    ids, codes = np.unique(task, return_inverse=True)
    means: FloatArray = (np.bincount(codes, y) / np.bincount(codes))[np.searchsorted(ids, of)]
    return means


def _vectors(learner: Any) -> dict[str, float]:
    """Kernel values that a prediction takes (mean over tasks), and rows that the model keeps; kernel learners only."""
    if hasattr(learner, "n_basis_common_"):
        common, own = learner.n_basis_common_, learner.n_basis_task_
        per_task = own / len(learner.tasks_)
        return {
            "vectors": common + per_task,
            "total": common + per_task,
            "common": common,
            "own": per_task,
            "kept": common + own,
        }
    if hasattr(learner, "support_"):  # the common part of RegMTL needs all of them for every task
        return {"vectors": len(learner.support_), "kept": len(learner.support_)}
    return {}
