"""Has a regressor diverged? Too large a step makes predictions grow without bound; their scores mean nothing."""

from __future__ import annotations

import numpy as np

from shoal.engine.arrays import FloatArray

TIMES = 1_000.0  # predictions this many times as large as any target so far belong to no useful model


class Divergence:
    """Watches predictions; `row` is the number of the first row at which they left every scale of the targets."""

    def __init__(self) -> None:
        self.row: int | None = None
        self._rows = 0
        self._largest = 0.0  # target so far, in absolute value

    def update(self, truth: FloatArray, prediction: FloatArray) -> None:
        """Look at more rows."""
        if self.row is None:
            largest = np.maximum.accumulate(np.maximum(np.abs(truth), self._largest))
            self._largest = float(largest[-1])
            with np.errstate(invalid="ignore"):
                sound = np.abs(prediction) <= TIMES * np.where(largest > 0.0, largest, np.inf)
            if not sound.all():
                self.row = self._rows + int(np.argmin(sound)) + 1
        self._rows += len(truth)
