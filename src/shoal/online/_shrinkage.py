"""What two penalties on singular values do to one of them: s -> f s, the minimiser of (s' - s)^2/2 + tau g(s')."""

from __future__ import annotations

import math

from shoal.engine.compile import kernel

STEPS = 200  # of Newton's method with bisection; a handful is usual


@kernel
def nuclear_factor(s: float, tau: float) -> float:
    """f for g(s) = s: [1 - tau/s]_+ (ROMCO's eq. 16)."""
    return 1.0 - tau / s if s > tau else 0.0


@kernel
def cubic(f: float, a: float, b: float) -> float:
    """ROMCO's eq. 21 for s' = f s, divided by s: a f^3 - a f^2 + b f - 1 with a = s^2, b = 1 + 2 tau."""
    return a * f * f * (f - 1.0) + b * f - 1.0


@kernel(inline=False)
def root_between(low: float, high: float, a: float, b: float) -> float:
    """The root of `cubic` where it rises from <= 0 at `low` to >= 0 at `high`."""
    f = min(max(1.0 / b, low), high)
    for _ in range(STEPS):
        value = cubic(f, a, b)
        if value == 0.0:
            return f
        if value < 0.0:
            low = f
        else:
            high = f
        slope = a * f * (3.0 * f - 2.0) + b
        newton = f - value / slope if slope > 0.0 else low
        f_new = newton if low < newton < high else 0.5 * (low + high)
        if abs(f_new - f) <= 1e-16 * f:
            return f_new
        f = f_new
    return f


@kernel(inline=False)
def logdet_factor(s: float, tau: float) -> float:
    """f for g(s) = log(1 + s^2): never 0, near 1/(1 + 2 tau) for small s and near 1 for large.

    For tau > 4 there may be two minima, one on each side of the cubic's falling part: the lower one is taken.
    """
    a, b = s * s, 1.0 + 2.0 * tau
    if a <= 3.0 * b:  # the cubic rises everywhere
        return root_between(0.0, 1.0, a, b)
    half = math.sqrt(1.0 - 3.0 * b / a)
    top, bottom = (1.0 - half) / 3.0, (1.0 + half) / 3.0
    if cubic(bottom, a, b) > 0.0:
        return root_between(0.0, top, a, b)
    if cubic(top, a, b) < 0.0:
        return root_between(bottom, 1.0, a, b)
    small, large = root_between(0.0, top, a, b), root_between(bottom, 1.0, a, b)
    return small if height(small, a, tau) < height(large, a, tau) else large


@kernel
def height(f: float, a: float, tau: float) -> float:
    """The minimised function at s' = f s, divided by s^2."""
    return 0.5 * (f - 1.0) ** 2 + tau / a * math.log1p(a * f * f)
