"""The logistic function, and the implicit step of a margin, which cannot overshoot."""

import math

from shoal.engine.compile import kernel

LIMIT = 15.0  # logits are kept within +-15


@kernel(alone=False)
def sigmoid(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-logit))


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
