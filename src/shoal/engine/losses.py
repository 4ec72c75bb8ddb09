"""Losses of one prediction f against a target y, and their derivatives in f.

Scales are scikit-learn's: squared (1/2)(f - y)^2, squared hinge [1 - y f]_+^2.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from shoal.engine.compile import kernel
from shoal.engine.rows import largest

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
    return _within_numbers(step, rounds, row) if loss in (SQUARED, SQUARED_HINGE) else step


@kernel(inline=False)
def _within_numbers(step: float, rounds: Rounds, row: int) -> float:
    """The step, or the one that changes the weight of the row's largest value by `LARGEST_STEP`."""
    size = largest(rounds, row)
    if abs(step) * size <= LARGEST_STEP:
        return step
    return math.copysign(LARGEST_STEP / size, step) if size > 0.0 else 0.0
