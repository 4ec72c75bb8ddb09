"""The papers' protocols: one function a protocol, `(data, learner, seed, **options)` to numbers.

A `seed` is a shuffle: all learners see the same rows in the same order. Times are the process's own (CPU), after a few
rows to load compiled code.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import clone

from shoal.datasets.dataset import Dataset
from shoal.engine.arrays import FloatArray, IntArray
from shoal.evaluation.metrics.auc import aucs

CURVE_POINTS = 40


def held_out(data: Dataset, learner: Any, seed: int, *, train: int) -> dict[str, Any]:
    """One pass over `train` rows of each task, the AUC of the final model on the others (OSMTL, section 3).

    The rows are drawn with each task's share of positives; rounds hold a row of every task.
    """
    first, rest = split(data, seed, train)
    return _fit_and_rank(data, learner, first, rest)


def cross_validated(data: Dataset, learner: Any, seed: int, *, train: int, folds: int = 5) -> dict[str, Any]:
    """Mean AUC over folds of the `train` rows of each task that `held_out` would learn: for choosing parameters."""
    rows, _ = split(data, seed, train)
    turn = _turns(_codes(data)[rows]) % folds
    values = [
        _fit_and_rank(data, clone(learner), rows[turn != fold], rows[turn == fold])["auc"] for fold in range(folds)
    ]
    return {"auc": float(np.mean(values))}


def split(data: Dataset, seed: int, train: int) -> tuple[IntArray, IntArray]:
    """Rows to learn, in rounds, and the others; each task's positives are shared out in proportion."""
    codes, rng = _codes(data), np.random.default_rng(seed)
    order = rng.permutation(len(data))
    learn = np.zeros(len(data), bool)
    for k in range(codes.max() + 1):
        of_task = order[codes[order] == k]
        positive, negative = of_task[data.y[of_task] > 0], of_task[data.y[of_task] < 0]
        n_positive = round(train * len(positive) / len(of_task))
        learn[positive[:n_positive]] = True
        learn[negative[: train - n_positive]] = True
    return _in_rounds(codes, order[learn[order]]), order[~learn[order]]


def _fit_and_rank(data: Dataset, learner: Any, first: IntArray, rest: IntArray) -> dict[str, Any]:
    X, y, task = data.X[first], data.y[first], data.task[first]
    warm_up(learner, data, first)
    start = time.process_time()
    learner.fit(X, y, task)
    seconds = time.process_time() - start
    scores = learner.decision_function(data.X[rest], data.task[rest])
    codes = _codes(data)[rest]
    _, per_task = aucs(codes, data.y[rest] > 0, np.asarray(scores, float), codes.max() + 1)
    numbers = {"auc": float(np.nanmean(per_task)), "seconds": seconds, "ms": 1e3 * seconds / len(first)}
    if hasattr(learner, "n_updates_"):
        numbers["nsv"] = float(learner.n_updates_)
    return numbers


def progressive(
    data: Dataset, learner: Any, seed: int, *, shuffle: bool = True, by_task: bool = False
) -> dict[str, Any]:
    """Every row answered before it is learned; the k-th round holds the k-th row of each task that has one.

    Errors and F1 of both classes are means over tasks; the curve is the mean error so far. With `by_task`, F1 and the
    error so far of every task, and the mean F1 so far.
    """
    rows = data.interleaved(seed) if shuffle else data
    decisions, seconds = answered(rows, learner)
    codes = _codes(rows)
    K = codes.max() + 1
    predicted, positive = decisions >= 0, rows.y > 0
    wrong = predicted != positive
    error = [float(wrong[codes == k].mean()) for k in range(K)]
    errors, f1 = _errors_so_far(codes, wrong), _f1_so_far(codes, predicted, positive)
    _, auc = aucs(codes, positive, decisions, K)
    numbers: dict[str, Any] = {
        "error": float(np.mean(error)),
        "all_error": float(wrong.mean()),
        "auc": float(np.nanmean(auc)),
        **{name: float(curves[:, -1].mean()) for name, curves in f1.items()},
        "seconds": seconds,
        "errors": error,
        "curve": errors.mean(axis=0).tolist(),
        "rows_per_second": len(rows) / seconds,
    }
    if by_task:
        numbers |= {"tasks": np.unique(rows.task).astype(str).tolist(), "curves": errors.tolist()}
        numbers |= {f"{name} of tasks": curves[:, -1].tolist() for name, curves in f1.items()}
        numbers |= {f"{name} curve": curves.mean(axis=0).tolist() for name, curves in f1.items()}
    if hasattr(learner, "n_updates_"):
        numbers["nsv"] = float(learner.n_updates_)
    return numbers


def answered(rows: Dataset, learner: Any) -> tuple[FloatArray, float]:
    """Decision values given before learning, and the CPU seconds of it all."""
    warm_up(learner, rows, np.arange(len(rows)))
    start = time.process_time()
    decisions = np.asarray(learner.test_then_train(rows.X, rows.y, rows.task, classes=[-1.0, 1.0]), float)
    return decisions, max(time.process_time() - start, 1e-9)


def warm_up(learner: Any, data: Dataset, rows: IntArray) -> None:
    """Load compiled code into this process, with a copy of the learner and a few rows of both labels."""
    few = np.concatenate([rows[data.y[rows] > 0][:2], rows[data.y[rows] < 0][:2]])
    if len(np.unique(data.y[few])) == 2:
        clone(learner).fit(data.X[few], data.y[few], data.task[few])


def _errors_so_far(codes: IntArray, wrong: Any) -> FloatArray:
    """(tasks, 40): the error after each fortieth of a task's rows."""
    return np.array([np.cumsum(wrong[codes == k])[ends - 1] / ends for k, ends in _fortieths(codes)])


def _f1_so_far(codes: IntArray, predicted: Any, positive: Any) -> dict[str, FloatArray]:
    """F1 of each class, (tasks, 40): after each fortieth of a task's rows, 0 before the first row of that class."""
    found = {}
    for name, side in (("f1_positive", True), ("f1_negative", False)):
        guessed, true = predicted == side, positive == side
        both, either = (guessed & true).astype(float), guessed.astype(float) + true
        found[name] = np.array(
            [
                2 * np.cumsum(both[codes == k])[ends - 1] / np.maximum(1, np.cumsum(either[codes == k])[ends - 1])
                for k, ends in _fortieths(codes)
            ]
        )
    return found


def _fortieths(codes: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Each task, and how many of its rows have passed at each fortieth."""
    for k, size in enumerate(np.bincount(codes).tolist()):
        yield k, np.maximum(1, np.arange(1, CURVE_POINTS + 1) * size // CURVE_POINTS)


def _codes(data: Dataset) -> IntArray:
    """Tasks numbered in the order of their sorted ids, so that a subset keeps the numbers."""
    _, codes = np.unique(data.task, return_inverse=True)
    return codes.astype(np.int64)


def _turns(codes: IntArray) -> IntArray:
    """For each row, how many rows of its task come before it."""
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)
    turn = np.empty(len(codes), np.int64)
    turn[order] = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return turn


def _in_rounds(codes: IntArray, rows: IntArray) -> IntArray:
    """The rows so that the k-th row of every task comes in the k-th round, tasks in their order."""
    return rows[np.lexsort((codes[rows], _turns(codes[rows])))]
