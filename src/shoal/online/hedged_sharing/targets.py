"""Real targets: less their running mean, measured in their running deviation."""

from __future__ import annotations

import math

from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel
from shoal.online.hedged_sharing.mixing import times

COUNT, MEAN, SCATTER, LARGEST = range(4)  # positions in `targets`


@kernel(alone=False)
def deviation(targets: FloatArray) -> float:
    """Of the targets so far, from their mean."""
    return math.sqrt(targets[SCATTER] / targets[COUNT]) if targets[COUNT] > 0.0 else 0.0


@kernel(alone=False)
def learn_target(y: float, h: float, targets: FloatArray) -> None:
    """Take a real target h times into the running mean and deviation; the first is the mean."""
    if targets[COUNT] == 0.0:
        targets[MEAN] = y
    targets[COUNT] += h
    off = y - targets[MEAN]
    targets[MEAN] += times(h, off) / targets[COUNT]
    targets[SCATTER] += times(h, off) * (y - targets[MEAN])
    targets[LARGEST] = max(targets[LARGEST], abs(off))
