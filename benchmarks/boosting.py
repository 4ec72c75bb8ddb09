"""LightGBM as one keeps it up to date: trained anew at every twentieth of the stream, on all rows so far.

Each model predicts the twentieth that follows. The task is a categorical column beside those that shoal gets. Up to the
first training the forecast is the base rate so far, or the mean so far.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csr_matrix, hstack, issparse

PARTS = 20
LATER = " (later)"  # marks scores without the rows before the first training
WIDE = 1_000  # columns; a sparse table of fewer is trained on as an array, which is faster
SETTINGS: dict[str, dict[str, Any]] = {"default": {}} | {
    f"{leaves} leaves, rate {rate}, {trees} trees": {
        "num_leaves": leaves,
        "learning_rate": rate,
        "num_iterations": trees,
    }
    for leaves in (15, 63)
    for rate, trees in ((0.1, 100), (0.05, 100), (0.05, 300))
}
NOTES = """\
LightGBM: trained anew at every twentieth of the stream on all rows so far, to predict the next twentieth, on all cores;
the task is a categorical column beside the columns that shoal gets. Up to the first training it answers the base rate
(or mean) so far; lines with "later" leave this first twentieth out of the scores. Settings: its default; 15 or 63
leaves with rate 0.1 and 100 trees, 0.05 and 100, or 0.05 and 300. Text: the default alone, all would take an hour."""

Predict = Callable[[Any], Any]
Train = Callable[[Any, Any], Predict]
Scores = TypeVar("Scores")


def first_training(n_rows: int) -> int:
    """How many rows there are before any model."""
    return n_rows // PARTS


def retrained(X: Any, y: Any, train: Train, before: Any) -> Any:
    """(n,) answers, each by the model trained last: it has seen the rows up to the last twentieth, never later ones.

    `before` are the answers up to the first training.
    """
    first = first_training(len(y))
    ends = [len(y) * part // PARTS for part in range(1, PARTS + 1)]
    answers = [before[:first]]
    answers += [train(X[:low], y[:low])(X[low:high]) for low, high in pairwise(ends)]
    return np.concatenate(answers)


def logits(X: Any, y: Any, task: Any, settings: dict[str, Any]) -> Any:
    """(n,) for labels -1 and +1."""
    positive = y > 0
    return retrained(with_task(X, task), positive, _trainer("binary", settings), base_rates(positive))


def forecasts(X: Any, y: Any, task: Any, settings: dict[str, Any]) -> Any:
    """(n,) for real targets."""
    return retrained(with_task(X, task), y, _trainer("regression", settings), means(y))


def lines(
    runs: Mapping[str, tuple[Any, float]],
    score: Callable[[Any, float, int], Scores],
    best_of: Callable[[Iterable[Scores]], Scores],
    *,
    every: bool,
) -> Iterator[tuple[str, Scores]]:
    """Lines of a table from the answers and seconds of each setting: its default and the best, or all.

    First over all rows, then without those before the first training.
    """
    n_rows = len(runs["default"][0])
    for suffix, first in (("", 0), (LATER, first_training(n_rows))):
        found = {name: score(*run, first) for name, run in runs.items()}
        for name, scores in found.items():
            if name == "default" or (every and not suffix):
                yield f"LightGBM retrained, {name}{suffix}", scores
        if len(found) > 1:
            yield f"LightGBM retrained, best of {len(found)}{suffix}", best_of(found.values())


def base_rates(positive: Any) -> Any:
    """(n,) the logit of the share of positive rows before each, of one more of either label to begin with."""
    before = np.cumsum(positive) - positive
    return np.log(1.0 + before) - np.log(1.0 + np.arange(len(positive)) - before)


def means(y: Any) -> Any:
    """(n,) the mean before each row; 0 at the first."""
    return (np.cumsum(y) - y) / np.maximum(1, np.arange(len(y)))


def with_task(X: Any, task: Any) -> Any:
    """The columns, and the task as the last."""
    column = np.asarray(task, dtype=np.float64)[:, None]
    if issparse(X) and X.shape[1] > WIDE:
        return hstack([X, csr_matrix(column)]).tocsr()
    return np.hstack([X.toarray() if issparse(X) else X, column])


def _trainer(objective: str, settings: dict[str, Any]) -> Train:
    """LightGBM's own defaults (31 leaves, rate 0.1, 100 trees) but for `settings`; a binary model answers logits."""
    import lightgbm

    def train(X: Any, y: Any) -> Predict:
        rows = lightgbm.Dataset(X, y, categorical_feature=[X.shape[1] - 1])
        model = lightgbm.train({"objective": objective, "verbosity": -1, **settings}, rows)
        return partial(model.predict, raw_score=True)

    return train
