"""Errors of differences over shuffles: t quantiles, splits that overlap, and many comparisons at once."""

import math
from typing import NamedTuple

from shoal.engine.arrays import FloatArray

LEVEL = 0.05  # of a two-sided test: a difference is real if chance alone gives one as large less often


class Difference(NamedTuple):
    """A mean difference and its standard errors.

    `error` takes the shuffles as independent, which they are as orders and splits of these rows. `corrected` adds what
    test sets share, for a reader who asks about other rows (Nadeau, Bengio, Machine Learning 52, 2003, section 3.3).
    """

    mean: float
    error: float  # 0 with one value, such as a published one
    freedom: float = math.inf  # degrees of freedom of Student's t
    corrected: float | None = None  # None where nothing is split, so that no test sets overlap

    @property
    def p(self) -> float:
        """Two-sided p of a difference above 0; 1 if it is not."""
        return _p(self.mean, self.error, self.freedom)

    @property
    def corrected_p(self) -> float:
        """The same by the corrected error, if there is one."""
        return _p(self.mean, self.error if self.corrected is None else self.corrected, self.freedom)

    @property
    def above(self) -> bool:
        """Whether it is above 0 beyond chance, taken alone."""
        return self.p <= LEVEL

    @property
    def below(self) -> bool:
        """Whether it is below 0 beyond chance, taken alone."""
        return self._replace(mean=-self.mean).above

    def less(self, amount: float) -> "Difference":
        """The difference less a constant, which has no error."""
        return self._replace(mean=self.mean - amount)

    def __str__(self) -> str:
        if not self.error:
            return ""
        corrected = f", {self.mean / self.corrected:.1f} corrected for overlap" if self.corrected else ""
        return f"t = {self.mean / self.error:.1f}{corrected}"


def _p(mean: float, error: float, freedom: float) -> float:
    from scipy.special import stdtr

    if not mean > 0:
        return 1.0
    return 2.0 * float(stdtr(freedom, -mean / error)) if error else 0.0


def one_sample(values: FloatArray, overlap: float = 0.0) -> Difference:
    """The mean of values and its errors.

    `overlap` is the number of test rows over that of training rows of a random split: the corrected error is
    s sqrt(1/n + overlap) in place of s sqrt(1/n).

    Examples
    --------
    Thirty differences with mean 1 and deviation 1, tested on twice as many rows as were learned:

    >>> import numpy as np
    >>> values = 1 + np.sqrt(29 / 30) * np.tile([-1.0, 1.0], 15)
    >>> found = one_sample(values, overlap=2.0)
    >>> round(found.mean / found.error, 2), round(found.mean / found.corrected, 2)
    (5.48, 0.7)
    """
    n = len(values)
    if n < 2:
        return Difference(float(values.mean()), 0.0)
    deviation = float(values.std(ddof=1))
    corrected = deviation * math.sqrt(1 / n + overlap) if overlap else None
    return Difference(float(values.mean()), deviation / math.sqrt(n), n - 1, corrected)


def paired(a: FloatArray, b: FloatArray, overlap: float = 0.0) -> Difference:
    """The first less the second, over the shuffles that both have."""
    n = min(len(a), len(b))
    return one_sample(a[:n] - b[:n], overlap)


def unpaired(a: FloatArray, b: FloatArray) -> Difference:
    """The first mean less the second, of shuffles of different rows: Welch's error and degrees of freedom."""
    parts = [(float(v.var(ddof=1)) / len(v), len(v) - 1) for v in (a, b) if len(v) > 1]
    variance = sum(part for part, _ in parts)
    freedom = variance**2 / sum(part**2 / n for part, n in parts) if variance else math.inf
    return Difference(float(a.mean() - b.mean()), math.sqrt(variance), freedom)
