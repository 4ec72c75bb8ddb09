"""Real targets: less their running mean, measured in their running deviation; and how noisy they are.

An odd target must not undo what was learned. One beyond 10 deviations is clipped before anything learns it, and so is
an error beyond 7 deviations of the noise. Of a thousand rows, one may be clipped by accident. With c the clipped rows
beyond that, both limits are (1 + c)^(1/4) times as far: large values that keep coming are no accident.
"""

from __future__ import annotations

import math

from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel
from shoal.online.hedged_sharing.mixing import times, within
from shoal.online.hedged_sharing.scaling import FAR, FEW, OUTLIER, RECENT, current

# Positions in `targets`. LAST: mean square of the last ones, JUMPS: of the steps from one to the next. All of them less
# the mean and clipped.
COUNT, MEAN, SCATTER, LARGEST, LAST, CLIPPED, PREVIOUS, JUMPS = range(8)
N_TARGETS, N_ERRORS = 8, 5
SQUARES, ROWS, LAST_SQUARES, CLIPPED_ERRORS, ALL_ROWS = range(5)  # positions in `errors`; ROWS: within the window
SETTLED = 1000.0  # rows after which the mean moves slowly: one that moves fast moves the target of all weights
SLOWLY = 1e-3  # times the usual step from one target to the next
WINDOW = 300.0  # rows that the noise level remembers
ERROR_OUTLIER = 49.0  # times the noise's variance, beyond which the square of an error is clipped
ACCIDENTS = 1e-3  # of all rows


@kernel(alone=False)
def deviation(targets: FloatArray) -> float:
    """Of the targets so far, from the mean."""
    return math.sqrt(targets[SCATTER] / targets[COUNT]) if targets[COUNT] > 0.0 else 0.0


@kernel(alone=False)
def _farther(n_clipped: float, n: float) -> float:
    """How many times as far a limit lies after so many clipped rows of n."""
    return float(max(1.0 + n_clipped - ACCIDENTS * n, 1.0) ** 0.25)


@kernel(alone=False)
def _share(h: float, n: float) -> float:
    """The part of a row that counts h times in the mean of the last rows, after n others."""
    return h / (min(n, RECENT - 1.0) + h)


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
        limit = math.sqrt(OUTLIER * square) * _farther(targets[CLIPPED], targets[COUNT])
        if abs(off) > limit:
            off = within(limit, off)
            targets[CLIPPED] += h
    share, jump = _share(h, targets[COUNT]), off - targets[PREVIOUS]
    targets[COUNT] += h
    targets[LAST] += share * (off * off - targets[LAST])
    targets[JUMPS] += share * (jump * jump - targets[JUMPS])
    step = times(h, off) / targets[COUNT]
    if targets[COUNT] > SETTLED:
        step = within(times(h, SLOWLY * math.sqrt(targets[JUMPS])), step)
    targets[MEAN] += step
    targets[PREVIOUS] = off - step
    targets[SCATTER] += times(h, off) * (off - step)
    targets[LARGEST] = max(targets[LARGEST], abs(off))
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
        limit = max(math.sqrt(ERROR_OUTLIER * variance) * _farther(errors[CLIPPED_ERRORS], errors[ALL_ROWS]), unit)
        if abs(e) > limit:
            e = within(limit, e)
            errors[CLIPPED_ERRORS] += h
    errors[LAST_SQUARES] += _share(h, errors[ROWS]) * (e * e - errors[LAST_SQUARES])
    errors[SQUARES] += h * e * e
    errors[ROWS] += h
    errors[ALL_ROWS] += h
    if errors[ROWS] > WINDOW:
        errors[SQUARES] *= WINDOW / errors[ROWS]
        errors[ROWS] = WINDOW
    return e
