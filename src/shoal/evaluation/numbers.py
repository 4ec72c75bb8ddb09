"""How scores are written: four decimals where they fit, never wider than a column."""

from __future__ import annotations

import math


def number(value: float) -> str:
    """A score with four decimals; with four digits if it is as large as only broken models have it.

    Examples
    --------
    >>> number(0.17823), number(1234.5), number(3e141), number(float("nan"))
    ('0.1782', '1234.5000', '3e+141', 'undefined')
    """
    if math.isnan(value):
        return "undefined"
    return f"{value:.4f}" if abs(value) < 1e4 else f"{value:.4g}"


def fewer_errors(ours: float, theirs: float, than: str) -> str:
    """What a lower error rate is worth.

    Examples
    --------
    >>> fewer_errors(0.18, 0.19, "pooled"), fewer_errors(0.05, 0.2, "pooled"), fewer_errors(0.1, 0.1, "pooled")
    ('one error in 19 less than pooled', '4 times fewer errors than pooled', 'as many errors as pooled')
    """
    if ours == theirs:
        return f"as many errors as {than}"
    if ours == 0.0:
        return f"no errors, unlike {than}"
    if theirs >= 2.0 * ours:
        return f"{theirs / ours:.3g} times fewer errors than {than}"
    return f"one error in {theirs / (theirs - ours):.0f} less than {than}"
