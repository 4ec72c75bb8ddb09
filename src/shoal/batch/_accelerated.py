"""Accelerated proximal gradient with backtracking (FISTA: Beck, Teboulle, SIAM J. Imaging Sciences 2, 2009).

Minimises smooth(W) + penalty(W): from a search point Z,  W <- prox(Z - grad/L, 1/L),  L doubled until the quadratic
model at Z bounds the smooth part at W. A step that would raise the objective is not taken; the momentum starts again
(O'Donoghue, Candès, 2015), so the objective never rises.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray

Smooth = Callable[[FloatArray], tuple[float, FloatArray]]  # value and gradient
Prox = Callable[
    [FloatArray, float], tuple[FloatArray, float]
]  # (Z, s) -> argmin s penalty(W) + ½||W - Z||², its penalty

LONGEST = 1e100  # step, where there is next to no curvature: its square is a number
ROUNDING = 1e-14  # of the smooth part's value: below it, a comparison of two values says nothing


class Path(NamedTuple):
    """Where the iterations led."""

    W: FloatArray
    objective: list[float]  # after each iteration
    change: float  # relative change of the objective in the last one


def minimise(smooth: Smooth, prox: Prox, start: FloatArray, tol: float, max_iter: int) -> Path:
    """Iterate until the objective changes by at most `tol` of itself. The penalty must be 0 at `start`."""
    W, Z, t = start, start, 1.0
    L = _curvature(smooth, start)
    objective: list[float] = []
    current, change = smooth(start)[0], math.inf
    while change > tol and len(objective) < max_iter:
        new, value, L = _step(smooth, prox, Z, L)
        if value > current and t > 1.0:
            Z, t = W, 1.0
            continue
        if not value <= current:  # a step without momentum falls, but for rounding errors
            objective.append(current)
            return Path(W, objective, 0.0)
        change = abs(current - value) / max(abs(current), np.finfo(float).tiny)
        t, previous = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t)), t
        Z = new + ((previous - 1.0) / t) * (new - W)
        W, current = new, value
        objective.append(value)
    return Path(W, objective, change)


def _step(smooth: Smooth, prox: Prox, Z: FloatArray, L: float) -> tuple[FloatArray, float, float]:
    """The next W, its objective, and the L that was large enough."""
    value, gradient = smooth(Z)
    while True:
        W, penalty = prox(Z - gradient / L, 1.0 / L)
        D = W - Z
        new = smooth(W)[0]
        bound = value + float((D * gradient).sum()) + 0.5 * L * float((D * D).sum())
        if new <= bound + ROUNDING * abs(value):
            return W, new + penalty, L
        L *= 2.0


def _curvature(smooth: Smooth, W: FloatArray) -> float:
    """The curvature along the gradient: of the size of the Lipschitz constant, and never above it."""
    gradient = smooth(W)[1]
    length = float(np.linalg.norm(gradient))
    if length == 0.0:
        return 1.0
    step = 1e-6 / length
    change = float(np.linalg.norm(smooth(W - step * gradient)[1] - gradient))
    return max(change / (step * length), length / LONGEST, np.finfo(float).tiny)
