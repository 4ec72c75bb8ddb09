"""Rows of a stream, drawn at random while it passes: each is as likely as any other, however long the stream is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from scipy.sparse import csr_matrix

from shoal.engine.arrays import FloatArray

ROWS = 4_000  # of which truth and forecast are kept
WHOLE_ROWS = 256  # of these, whose features and task are kept, too


class Sample(NamedTuple):
    """Rows of a stream."""

    pairs: FloatArray  # (rows, 2): truth and forecast, of numbers
    X: Any  # (fewer rows, n_features) sparse, in the learner's columns; None: they are not kept
    task: list[Any] | None  # of the rows of X


class Sampler:
    """Draws 4,000 rows, of which 256 have their features: algorithm R (Vitter, 1985).

    How a stream is cut into pieces does not change the sample.

    Parameters
    ----------
    numbers : bool
        Keep truth and forecast, which are numbers.
    whole : bool
        Keep features and tasks.
    """

    def __init__(self, *, numbers: bool, whole: bool) -> None:
        self._random = np.random.default_rng(0)
        self._met = 0
        self._pairs = np.zeros((ROWS if numbers else 0, 2))
        self._places = WHOLE_ROWS if whole else 0
        self._whole: dict[int, tuple[Any, Any, Any]] = {}  # place -> columns and values of the features, and the task

    def update(self, X: Any, task: Any, truth: FloatArray, forecast: FloatArray) -> None:
        """Take in a piece of the stream."""
        number = self._met + np.arange(len(truth))
        drawn = (self._random.random(len(truth)) * (number + 1)).astype(np.int64)
        place = np.where(number < ROWS, number, drawn)
        self._met += len(truth)
        if len(self._pairs):
            chosen = np.flatnonzero(place < ROWS)
            self._pairs[place[chosen]] = np.column_stack([truth[chosen], forecast[chosen]])
        chosen = np.flatnonzero(place < self._places)
        if len(chosen):
            rows = _sparse(X, chosen)
            tasks = [None] * len(chosen) if task is None else np.asarray(task)[chosen].tolist()
            parts = zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), tasks, strict=True)
            for k, (first, last, one) in zip(place[chosen].tolist(), parts, strict=True):
                self._whole[k] = rows.indices[first:last].copy(), rows.data[first:last].copy(), one

    def sample(self, admit: Callable[[Any], Any]) -> Sample:
        """The rows; `admit` puts features in the order of a learner's columns."""
        if not self._whole:
            return Sample(self._pairs[: self._met], None, None)
        indices, values, tasks = zip(*self._whole.values(), strict=True)
        indptr = np.cumsum([0, *map(len, indices)])
        X = admit(csr_matrix((np.concatenate(values), np.concatenate(indices), indptr)))
        return Sample(self._pairs[: self._met], X, None if tasks[0] is None else list(tasks))


def _sparse(X: Any, rows: Any) -> Any:
    """Rows of a table of any kind."""
    if hasattr(X, "tocsr"):
        return csr_matrix(X.tocsr()[rows])
    found = X[rows] if isinstance(X, np.ndarray) else nw.from_native(X, eager_only=True)[rows].to_numpy()
    return csr_matrix(np.asarray(found, np.float64))
