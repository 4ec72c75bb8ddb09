"""LightGBM as one would use it on a stream: retrained at every twentieth on all rows so far, the task as a category.

The first twentieth, before which nothing is known, is answered by the share of positive labels so far.
"""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.scores import Scores, Stream, score

TIMES = 20
WIDEST = 1_000  # columns; with more, a table is text, for which boosting takes hours
DEFAULT: dict[str, Any] = {}
GRID: dict[str, dict[str, Any]] = {
    f"{leaves} leaves, rate {rate}, {trees} trees": {
        "num_leaves": leaves, "learning_rate": rate, "n_estimators": trees,
    }
    for leaves, rate, trees in ((7, 0.1, 100), (15, 0.05, 100), (31, 0.05, 100), (31, 0.05, 300), (63, 0.05, 300))
}  # fmt: skip


def can_run(stream: Stream) -> bool:
    """Text would take hours."""
    return bool(stream.X.shape[1] <= WIDEST)


def run_lightgbm(stream: Stream, options: dict[str, Any]) -> Scores:
    """Scores of the answers before each retraining."""
    import lightgbm

    X = stream.X.toarray() if sp.issparse(stream.X) else stream.X
    table = np.column_stack([X, stream.task])
    n, positive = len(stream.y), stream.y > 0
    edges = np.linspace(0, n, TIMES + 1).astype(int)
    so_far = (np.cumsum(positive) - positive + 0.5) / (np.arange(n) + 1.0)
    logits = np.log(so_far / (1.0 - so_far))
    start = time.perf_counter()
    for first, last in pairwise(edges[1:].tolist()):
        model = lightgbm.LGBMClassifier(**options, categorical_feature=[table.shape[1] - 1], verbosity=-1)
        model.fit(table[:first], positive[:first])
        logits[first:last] = model.booster_.predict(table[first:last], raw_score=True)
    return score(stream, logits, time.perf_counter() - start)
