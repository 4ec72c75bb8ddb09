"""Values to try for a hyper-parameter: wide enough that the best one lies inside, dense enough to find it."""

from __future__ import annotations

import math


def decades(first: float, last: float, per_decade: int) -> tuple[float, ...]:
    """Powers of ten with so many values a decade, both ends included.

    Examples
    --------
    >>> decades(0.01, 1.0, 2)
    (0.01, 0.0316, 0.1, 0.316, 1.0)
    """
    n = round(per_decade * math.log10(last / first))
    return tuple(float(f"{first * 10 ** (i / per_decade):.3g}") for i in range(n + 1))


TENTHS = tuple(round(0.1 * i, 1) for i in range(11))
QUARTERS = decades(1e-5, 1e4, 4)  # a step or the C of a loss: four values a decade
CONFIDENCE = (0.5001, 0.501, 0.51, *(round(0.55 + 0.05 * i, 2) for i in range(9)), 0.975, 0.99, 0.999)
