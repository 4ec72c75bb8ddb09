"""Losses of one prediction f against a target y, and their derivatives in f.

Scales are scikit-learn's: squared (1/2)(f - y)^2, squared hinge [1 - y f]_+^2. Counts and positive targets are answered
by exp(f): their losses are the negative log-likelihoods of Poisson and gamma with that mean.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel
from shoal.engine.rows import largest, row_bounds, squared_norm, weight_of

if TYPE_CHECKING:
    from shoal.engine.rounds import Rounds

PERCEPTRON: Final = 0
HINGE: Final = 1
SQUARED_HINGE: Final = 2
LOGISTIC: Final = 3
SQUARED: Final = 4
EPSILON_INSENSITIVE: Final = 5
HUBER: Final = 6  # from here on by implicit steps
ABSOLUTE: Final = 7
QUANTILE: Final = 8
POISSON: Final = 9
GAMMA: Final = 10

CLASSIFICATION: Final = {
    "perceptron": PERCEPTRON,
    "hinge": HINGE,
    "squared_hinge": SQUARED_HINGE,
    "logistic": LOGISTIC,
}
REGRESSION: Final = {
    "squared": SQUARED,
    "epsilon_insensitive": EPSILON_INSENSITIVE,
    "huber": HUBER,
    "absolute": ABSOLUTE,
    "quantile": QUANTILE,
    "poisson": POISSON,
    "gamma": GAMMA,
}

ROUNDING = 1e-16  # a step of this part of the sum before it changes no digit
LARGEST_STEP = 1e140  # of a weight; after 1e9 such steps, the product with a row of 1e150 is a number still
LARGEST_LOG = 700.0  # of an answer exp(f)
LARGEST_OMEGA, OMEGA_STEPS = 1e300, 50  # of what Lambert's function is asked for; of Newton's steps, of which 7 do


@kernel(entry="too")
def is_mistake(f: float, y: float) -> bool:
    """The predicted label differs from y; a margin of 0 predicts +1."""
    return (f >= 0.0) != (y > 0.0)


@kernel
def derivative(loss: int, f: float, y: float, epsilon: float) -> float:
    """d loss / d f. `epsilon` is the zone of EPSILON_INSENSITIVE, the threshold of HUBER, the level of QUANTILE."""
    if loss == PERCEPTRON:  # -y on a mistake: the mistake-driven rule
        return -y if is_mistake(f, y) else 0.0
    if loss == HINGE:
        return -y if y * f < 1.0 else 0.0
    if loss == SQUARED_HINGE:
        return -2.0 * y * max(0.0, 1.0 - y * f)
    if loss == LOGISTIC:
        return -y / (1.0 + math.exp(y * f)) if y * f < 700.0 else 0.0  # beyond, exp overflows
    if loss == POISSON:  # exp(f) - y f
        return exponential(f) - y
    if loss == GAMMA:  # f + y exp(-f)
        return 1.0 - y * exponential(-f)
    error = f - y
    if loss == SQUARED:
        return error
    if loss == HUBER:
        return max(-epsilon, min(epsilon, error))
    if loss == QUANTILE:  # epsilon (y - f) below y, (1 - epsilon)(f - y) above
        return 0.0 if error == 0.0 else (1.0 - epsilon if error > 0.0 else -epsilon)
    zone = epsilon if loss == EPSILON_INSENSITIVE else 0.0
    return 0.0 if abs(error) <= zone else math.copysign(1.0, error)


@kernel
def exponential(f: float) -> float:
    """exp(f), finite."""
    return math.exp(min(f, LARGEST_LOG))


@kernel
def answered(loss: int, f: float) -> float:
    """The answer that a margin stands for."""
    return exponential(f) if loss >= POISSON else f


@kernel
def move_along(
    loss: int, step: float, slope: float, f: float, y: float, epsilon: float, rate: float, rounds: Rounds, row: int
) -> float:
    """The factor of x in what a row of margin f and derivative `slope` moves its task's weights, before the rate."""
    if len(rounds.weight) > 0 or loss >= HUBER:
        return weighted_step(loss, step, f, y, epsilon, rate, rounds, row)
    return step_along(loss, -step * slope, rounds, row)


@kernel
def is_steep(loss: int) -> bool:
    """A derivative may be of any size."""
    return loss in (SQUARED, SQUARED_HINGE, HUBER, POISSON, GAMMA)


@kernel
def step_along(loss: int, step: float, rounds: Rounds, row: int) -> float:
    """The factor of x in a gradient step, `step` if all is well.

    Squared losses answer a row of size r by weights of size r f: two rows of 1e150 would make 1e450.
    """
    if not is_steep(loss):
        return step
    first, last = row_bounds(rounds, row)
    return _within_numbers(step, rounds.values[first:last])


@kernel(inline=False)
def weighted_step(
    loss: int, step: float, f: float, y: float, epsilon: float, rate: float, rounds: Rounds, row: int
) -> float:
    """The factor of x after the steps of a row that counts h times: floor(h) whole ones, the last of what is left.

    All steps go along x, so that only the margin has to be followed. With B_ii the `rate` of the row's own task,

        m_1 = -eta l'(f, y),   f_k = f + B_ii ||x||^2 (m_1 + ... + m_k),   m_(k+1) = -eta l'(f_k, y)

    and the factor is m_1 + m_2 + ...: for whole h that of h rows one after the other. It ends where the loss does, or
    where a step is lost in rounding; h = 1 gives `step_along` to the bit. (Karampatziakis and Langford, UAI 2011, take
    infinitely many small steps instead, which have closed forms but differ from one whole step where h = 1.) An
    implicit step is m_(k+1) = -eta l'(f_(k+1), y): it cannot go beyond what the row asks for.
    """
    left, total, margin, implicit = weight_of(rounds, row), 0.0, f, loss >= HUBER
    gain = rate * squared_norm(rounds, row) if left > 1.0 or implicit else 0.0
    first, last = row_bounds(rounds, row)
    size = largest(rounds.values[first:last]) if is_steep(loss) else 0.0
    while left > 0.0:
        part = min(left, 1.0) * step
        if implicit:
            move = _bounded(_implicit_step(loss, part, margin, y, epsilon, gain), size)
        else:
            move = _bounded(-part * derivative(loss, margin, y, epsilon), size)
        if abs(move) <= ROUNDING * abs(total):
            break
        total += move
        margin = f + gain * total
        left -= 1.0
    return total


@kernel(inline=False)
def _implicit_step(loss: int, step: float, f: float, y: float, epsilon: float, gain: float) -> float:
    """m = -eta l'(f + B_ii ||x||^2 m, y): the step to the minimum of eta l + (what the weights move)^2 / 2.

    With c = eta B_ii ||x||^2 and the residual r = y - f, m is

        Huber      r / (1/eta + c/eta), at most eta epsilon in size
        quantile   r eta / c, from -eta (1 - epsilon) to eta epsilon; the absolute loss likewise, from -eta to eta
        Poisson    eta (y - v / c),  v = W(c e^(f + c y))
        gamma      eta (v / c - 1),  v = W(c y e^(c - f))

    with Lambert's W: v is what c e^f, or c y e^-f, is at the margin after the step. Where c is large, m is how far the
    margin moves over B_ii ||x||^2, which loses no digits to a difference.
    """
    c = min(step * gain, LARGEST_OMEGA)
    if c == 0.0:
        return -step * derivative(loss, f, y, epsilon)
    if loss == HUBER:
        return max(-step * epsilon, min(step * epsilon, (y - f) / (1.0 / step + gain)))
    if loss == QUANTILE:
        return max(-step * (1.0 - epsilon), min(step * epsilon, (y - f) / gain))
    if loss == ABSOLUTE:
        return max(-step, min(step, (y - f) / gain))
    log = math.log(c)
    if loss == POISSON:
        u = _log_omega(log + f + c * y)
        return step * (y - math.exp(u - log)) if c < 1.0 else (u - log - f) / gain
    u = _log_omega(log + math.log(y) + c - f)
    return step * (math.exp(u - log) - 1.0) if c < 1.0 else (log + math.log(y) - u - f) / gain


@kernel(inline=False)
def _log_omega(z: float) -> float:
    """The u with e^u + u = z, which is log W(e^z), by Newton's method."""
    z = min(z, LARGEST_OMEGA)
    u = z if z < 1.0 else math.log(z)  # not below the root: from there each step is towards it
    for _ in range(OMEGA_STEPS):
        v = math.exp(u)
        change = (v + u - z) / (v + 1.0)
        u -= change
        if abs(change) <= ROUNDING * (1.0 + abs(u)):
            break
    return u


@kernel(inline=False)
def _within_numbers(step: float, x: FloatArray) -> float:
    """The step, or the one that changes the weight of the row's largest value by `LARGEST_STEP`."""
    return _bounded(step, largest(x))


@kernel
def _bounded(step: float, size: float) -> float:
    """The step along a row whose largest value is `size`."""
    if abs(step) * size <= LARGEST_STEP:
        return step
    return math.copysign(LARGEST_STEP / size, step) if size > 0.0 else 0.0
