"""The logistic function, and the implicit step of a margin, which cannot overshoot."""

import math

from shoal.engine.compile import kernel

LIMIT = 15.0  # logits are kept within +-15
INVERSES = (1 / 11, 1 / 10, 1 / 9, 1 / 8, 1 / 7, 1 / 6, 1 / 5, 1 / 4, 1 / 3, 1 / 2, 1.0)
NEGLIGIBLE = -40.0  # exp of it is less than what sums near 1 are rounded by
ODD = (1 / 19, 1 / 17, 1 / 15, 1 / 13, 1 / 11, 1 / 9, 1 / 7, 1 / 5, 1 / 3, 1.0)
MIDDLE = math.sqrt(2.0)
LOG_MIDDLE = math.log(MIDDLE)


@kernel(alone=False)
def sigmoid(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-logit))


@kernel(alone=False)
def exp_by_series(x: float) -> float:
    """exp(x), -40 <= x <= 15, as (exp(x/64))^64, exact to 1e-14 for |x| <= 15 and to 1e-9 at -40: loops become SIMD."""
    t, power = x * (1.0 / 64.0), 1.0
    for k in INVERSES:
        power = 1.0 + power * (t * k)
    for _ in range(6):
        power *= power
    return power


@kernel(alone=False)
def log1p_by_series(x: float) -> float:
    """log(1 + x), 0 <= x <= 1, as log c + 2 artanh((1 + x - c)/(1 + x + c)), to 2e-16: loops become SIMD."""
    t, total = (1.0 + x - MIDDLE) / (1.0 + x + MIDDLE), 0.0
    for k in ODD:
        total = total * (t * t) + k
    return LOG_MIDDLE + 2.0 * t * total


@kernel(alone=False)
def within(limit: float, value: float) -> float:
    return min(limit, max(-limit, value))


@kernel(sums="exact", alone=False)
def times(h: float, value: float) -> float:
    """h value, in no other order than this: once is the value to the bit."""
    return h * value


@kernel(inline=False, alone=False)
def weighted_slope(logit: float, y: float, tau: float, undivided: bool, h: float) -> float:
    """The move of a logit by a label that counts h times, over tau: sum_i h_i (y - p_i)/(1 + tau h_i p_i (1 - p_i)).

    The parts h_i = 1, 1, 2, 4, ... of h come one after the other, p_i after those before: a sure mistake has hardly
    any curvature, so that one step for all of h would shoot over by up to h steps.
    """
    done = total = 0.0
    while done < h:
        part, p = min(max(done, 1.0), h - done), sigmoid(logit + tau * total)
        total += part * (y - p) / (1.0 + (0.0 if undivided else tau * part * p * (1.0 - p)))
        done += part
    return total


@kernel(alone=False)
def slope(m: float, p: float, y: float, tau: float, undivided: bool, h: float, regression: bool) -> float:
    """h e/(1 + tau h c) of a margin m, or of its probability p: divided, the step cannot overshoot."""
    if regression:
        return h * (y - m) / (1.0 + h * tau)
    if h != 1.0:
        return weighted_slope(m, y, tau, undivided, h)
    return (y - p) / (1.0 + (0.0 if undivided else tau * p * (1.0 - p)))
