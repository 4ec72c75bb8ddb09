"""Real targets: less the mean of the first ones, measured in their running deviation; and how noisy they are.

An odd target must not undo what was learned. One beyond 10 deviations is clipped before anything learns it, and so is
an error beyond 7 deviations of the noise. With c the rows clipped so far, both limits are (1 + c)^(1/4) times as far:
large values that keep coming are no accident.
"""

from __future__ import annotations

import math

from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel
from shoal.online.hedged_sharing.mixing import times, within
from shoal.online.hedged_sharing.scaling import FAR, FEW, OUTLIER, RECENT, current

COUNT, MEAN, SCATTER, LARGEST, LAST, CLIPPED = range(6)  # positions in `targets`; LAST: mean square of the last ones
N_TARGETS, N_ERRORS = 6, 4
SQUARES, ROWS, LAST_SQUARES, CLIPPED_ERRORS = range(4)  # positions in `errors`
MEAN_ROWS = 1000.0  # after which the mean stays: one that moves moves the target of all weights
WINDOW = 300.0  # rows that the noise level remembers
ERROR_OUTLIER = 49.0  # times the noise's variance, beyond which the square of an error is clipped
POWER = 0.25


@kernel(alone=False)
def deviation(targets: FloatArray) -> float:
    """Of the targets so far, from the mean."""
    return math.sqrt(targets[SCATTER] / targets[COUNT]) if targets[COUNT] > 0.0 else 0.0


@kernel(inline=False, alone=False)
def learn_target(y: float, h: float, targets: FloatArray) -> float:
    """Take a real target h times into the running numbers; return it less the mean before it, clipped.

    Where the last targets are far beyond what the deviation of all says, their own counts.
    """
    if targets[COUNT] == 0.0:
        targets[MEAN] = y
    off = y - targets[MEAN]
    if targets[COUNT] >= FEW and targets[SCATTER] > 0.0:
        square = max(targets[SCATTER] / targets[COUNT], targets[LAST] / FAR)
        limit = math.sqrt(OUTLIER * square) * (1.0 + targets[CLIPPED]) ** POWER
        if abs(off) > limit:
            off = within(limit, off)
            targets[CLIPPED] += h
    targets[COUNT] += h
    step = times(h, off) / targets[COUNT] if targets[COUNT] <= MEAN_ROWS else 0.0
    targets[MEAN] += step
    targets[SCATTER] += times(h, off) * (off - step)
    targets[LARGEST] = max(targets[LARGEST], abs(off))
    targets[LAST] += min(h / min(targets[COUNT], RECENT), 1.0) * (off * off - targets[LAST])
    return float(off)


@kernel(entry=True)
def noise(errors: FloatArray) -> float:
    """The variance of targets around the mixture of all tasks."""
    if errors[ROWS] == 0.0:
        return 0.0
    return float(current(errors[SQUARES], errors[ROWS], errors[LAST_SQUARES]) / errors[ROWS])


@kernel(inline=False, alone=False)
def learn_error(e: float, h: float, unit: float, errors: FloatArray) -> float:
    """Take an error of the mixture of all tasks h times into the noise level; return it, clipped.

    `unit` is the targets' deviation: a smaller error is never clipped, however exact forecasts have been.
    """
    variance = noise(errors)
    if errors[ROWS] >= FEW and variance > 0.0:
        limit = max(math.sqrt(ERROR_OUTLIER * variance) * (1.0 + errors[CLIPPED_ERRORS]) ** POWER, unit)
        if abs(e) > limit:
            e = within(limit, e)
            errors[CLIPPED_ERRORS] += h
    errors[SQUARES] += h * e * e
    errors[ROWS] += h
    errors[LAST_SQUARES] += min(h / min(errors[ROWS], RECENT), 1.0) * (e * e - errors[LAST_SQUARES])
    if errors[ROWS] > WINDOW:
        errors[SQUARES] *= WINDOW / errors[ROWS]
        errors[ROWS] = WINDOW
    return e
