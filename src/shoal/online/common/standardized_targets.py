"""Real targets on one scale: less the mean of the first ten, over their deviation. Errors beyond a limit are clipped.

During the first ten targets the scale moves. Weights learned on the old scale must move with it: a weight w becomes
`ratio` w, and the weight of the constant 1 gains `shift` more.
"""

import math

import numpy as np

from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel

FIRST = 10.0  # targets that tell the scale
COUNT, MEAN, SCATTER, CENTER, UNIT, CLIPPED = range(6)  # positions in a scale
FAR = 7.0  # deviations of an error, beyond which it is clipped
ACCIDENTS = 1e-3  # of all rows may be farther


def new_scale() -> FloatArray:
    """Nothing seen."""
    return np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0])


@kernel(alone=False)
def learn_scale(y: float, h: float, scale: FloatArray) -> tuple[float, float]:
    """Take a target that counts h times; return ratio and shift. Targets that are all equal tell no scale yet."""
    if scale[COUNT] >= FIRST and scale[SCATTER] > 0.0:
        scale[COUNT] += h
        return 1.0, 0.0
    return _moved(y, h, scale)


@kernel(inline=False, alone=False)
def _moved(y: float, h: float, scale: FloatArray) -> tuple[float, float]:
    if scale[COUNT] == 0.0:
        scale[MEAN] = scale[CENTER] = y
    center, unit, off = scale[CENTER], scale[UNIT], y - scale[MEAN]
    scale[COUNT] += h
    scale[MEAN] += h / scale[COUNT] * off
    scale[SCATTER] += h * off * (y - scale[MEAN])
    scale[CENTER] = scale[MEAN]
    if scale[SCATTER] > 0.0:
        scale[UNIT] = math.sqrt(scale[SCATTER] / scale[COUNT])
    return unit / scale[UNIT], (center - scale[CENTER]) / scale[UNIT]


@kernel(alone=False)
def in_units(y: float, scale: FloatArray) -> float:
    """A target on the scale."""
    return float((y - scale[CENTER]) / scale[UNIT])


@kernel(alone=False)
def from_units(u: float, scale: FloatArray) -> float:
    """A target again."""
    return float(scale[CENTER] + scale[UNIT] * u)


@kernel(inline=False, alone=False)
def clipped(e: float, variance: float, h: float, scale: FloatArray) -> float:
    """An error within 7 deviations, and (1 + c)^(1/4) times as many with c clipped rows beyond one of a thousand."""
    if scale[COUNT] <= FIRST:
        return e
    excess = max(scale[CLIPPED] - ACCIDENTS * scale[COUNT], 0.0)
    limit = FAR * math.sqrt(variance) * (1.0 + excess) ** 0.25
    if abs(e) <= limit:
        return e
    scale[CLIPPED] += h
    return math.copysign(limit, e)
