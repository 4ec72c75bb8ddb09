"""Losses of one prediction f against a target y, and their derivatives in f.

Scales are scikit-learn's: squared (1/2)(f - y)^2, squared hinge [1 - y f]_+^2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel
from shoal.engine.rows import largest, row_bounds, squared_norm

if TYPE_CHECKING:
    from shoal.engine.rounds import Rounds

PERCEPTRON: Final = 0
HINGE: Final = 1
SQUARED_HINGE: Final = 2
LOGISTIC: Final = 3
SQUARED: Final = 4
EPSILON_INSENSITIVE: Final = 5

CLASSIFICATION: Final = {
    "perceptron": PERCEPTRON,
    "hinge": HINGE,
    "squared_hinge": SQUARED_HINGE,
    "logistic": LOGISTIC,
}
REGRESSION: Final = {"squared": SQUARED, "epsilon_insensitive": EPSILON_INSENSITIVE}

ROUNDING = 1e-16  # a step of this part of the sum before it changes no digit
LARGEST_STEP = 1e140  # of a weight; after 1e9 such steps, the product with a row of 1e150 is a number still


@kernel(entry=True)
def is_mistake(f: float, y: float) -> bool:
    """The predicted label differs from y; a margin of 0 predicts +1."""
    return (f >= 0.0) != (y > 0.0)


@kernel
def derivative(loss: int, f: float, y: float, epsilon: float) -> float:
    """d loss / d f. `epsilon` is the insensitive zone of EPSILON_INSENSITIVE."""
    if loss == PERCEPTRON:  # -y on a mistake: the mistake-driven rule
        return -y if is_mistake(f, y) else 0.0
    if loss == HINGE:
        return -y if y * f < 1.0 else 0.0
    if loss == SQUARED_HINGE:
        return -2.0 * y * max(0.0, 1.0 - y * f)
    if loss == LOGISTIC:
        return -y / (1.0 + math.exp(y * f)) if y * f < 700.0 else 0.0  # beyond, exp overflows
    if loss == SQUARED:
        return f - y
    error = f - y
    return 0.0 if abs(error) <= epsilon else math.copysign(1.0, error)


@kernel
def step_along(loss: int, step: float, rounds: Rounds, row: int) -> float:
    """The factor of x in a gradient step, `step` if all is well.

    Squared losses answer a row of size r by weights of size r f: two rows of 1e150 would make 1e450.
    """
    if loss not in (SQUARED, SQUARED_HINGE):
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
    infinitely many small steps instead, which have closed forms but differ from one whole step where h = 1.)
    """
    left, total, margin = rounds.weight[row], 0.0, f
    gain = rate * squared_norm(rounds, row) if left > 1.0 else 0.0
    first, last = row_bounds(rounds, row)
    size = largest(rounds.values[first:last]) if loss in (SQUARED, SQUARED_HINGE) else 0.0
    while left > 0.0:
        move = _bounded(-min(left, 1.0) * step * derivative(loss, margin, y, epsilon), size)
        if abs(move) <= ROUNDING * abs(total):
            break
        total += move
        margin = f + gain * total
        left -= 1.0
    return total


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
