"""river and scikit-learn on the rows of several tasks."""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from river.linear_model import ALMAClassifier, LogisticRegression, PAClassifier
from river.optim import SGD
from scipy.sparse import csr_matrix
from sklearn.linear_model import SGDClassifier

from benchmarks.scores import CERTAIN, Scores, Stream, score, timed

CHUNK = 1_000
RIVER: dict[str, Callable[[], Any]] = {
    "river LogisticRegression, default": LogisticRegression,
    "river PAClassifier, default": PAClassifier,
    "river ALMAClassifier, default": ALMAClassifier,
    "river LogisticRegression, SGD(0.1)": lambda: LogisticRegression(SGD(0.1), intercept_lr=0.1),
    "river LogisticRegression, SGD(0.5)": lambda: LogisticRegression(SGD(0.5), intercept_lr=0.5),
    "river LogisticRegression, SGD(2)": lambda: LogisticRegression(SGD(2.0), intercept_lr=2.0),
    "river PAClassifier, C=0.1": lambda: PAClassifier(C=0.1),
    "river PAClassifier, C=0.01": lambda: PAClassifier(C=0.01),
}
SKLEARN: dict[str, dict[str, Any]] = {
    "scikit-learn SGDClassifier, default": {},
    "scikit-learn SGDClassifier, constant 0.1": {"learning_rate": "constant", "eta0": 0.1},
    "scikit-learn SGDClassifier, constant 0.5": {"learning_rate": "constant", "eta0": 0.5},
    "scikit-learn SGDClassifier, constant 2": {"learning_rate": "constant", "eta0": 2.0},
}


def run_river(stream: Stream, make: Callable[[], Any]) -> Scores:
    """Predict, then learn, a row at a time; the time that it takes to make the dicts is not counted."""
    X = csr_matrix(stream.X)
    d, model, seconds = X.shape[1], make(), 0.0
    columns, values, ends = X.indices.tolist(), X.data.tolist(), X.indptr.tolist()
    logits = np.empty(X.shape[0])
    for i, (y, task) in enumerate(zip((stream.y > 0).tolist(), stream.task.tolist(), strict=True)):
        row = slice(ends[i], ends[i + 1])
        x = dict(zip(columns[row], values[row], strict=True))
        x |= {(1 + task) * d + j: value for j, value in x.items()}  # the same crossed with the task
        start = time.perf_counter()
        p = model.predict_proba_one(x)[True]
        model.learn_one(x, y)
        seconds += time.perf_counter() - start
        logits[i] = _logit(p)
    return score(stream, logits, seconds)


def _logit(p: float) -> float:
    if 0.0 < p < 1.0:
        return math.log(p) - math.log1p(-p)
    return CERTAIN if p > 0.5 else -CERTAIN


def run_sklearn(stream: Stream, options: dict[str, Any]) -> Scores:
    """One model for all tasks: a chunk of 1,000 rows is predicted, then learned; the first has no answers to score."""

    def one_pass() -> Any:
        model, logits = SGDClassifier(loss="log_loss", shuffle=False, **options), np.zeros(len(stream.y))
        for low in range(0, len(logits), CHUNK):
            rows = slice(low, low + CHUNK)
            if low:
                logits[rows] = model.decision_function(stream.X[rows])
            model.partial_fit(stream.X[rows], stream.y[rows], classes=[-1.0, 1.0])
        return logits

    logits, seconds = timed(one_pass)
    return score(stream, logits, seconds, first=CHUNK)
