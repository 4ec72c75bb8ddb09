"""Steps of a shared loss: how far each task of a round moves when the round costs a norm of its tasks' losses.

For losses l >= 0 and the ball ||tau||_* <= C of the dual norm (Dekel, Long, Singer 2007),

    finite:  tau = argmax sum_k tau_k l_k        implicit:  tau = argmax sum_k (tau_k l_k - tau_k^2 ||x_k||^2 / 2)

L1 and Linf are the two ends of r-max, the sum of the r largest losses, whose ball is 0 <= tau_k <= C, sum tau <= rC.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel
from shoal.engine.rows import copy_to

L2: Final = 0  # any other number is the r of r-max
ALL: Final = 2**62
NORMS = ("l1", "l2", "linf", "rmax")


def norm_code(norm: Any, r: Any = 1, name: str = "norm") -> int:
    """The norm as a number: L2, or the r of r-max.

    Raises
    ------
    ValueError
        If there is no such norm, or r is not a whole number above 0.
    """
    if norm not in NORMS:
        raise ValueError(f"{name} must be one of {NORMS}, got {norm!r}")
    if isinstance(r, bool) or not isinstance(r, int | np.integer) or r < 1:
        raise ValueError(f"r must be a whole number >= 1, got {r!r}")
    return {"l1": ALL, "l2": L2, "linf": 1, "rmax": int(r)}[norm]


@kernel(allocates=True, inline=False)
def largest_first(losses: FloatArray) -> IntArray:
    """Tasks by their losses, in order where these are equal. The only sort here: each more takes seconds to compile."""
    return np.argsort(-losses, kind="mergesort")


@kernel
def euclidean(losses: FloatArray) -> float:
    """||l||_2; the squares of 1e300 would be inf."""
    top, total = 0.0, 0.0
    for loss in losses:
        top = max(top, loss)
    for loss in losses:
        total += (loss / top) ** 2 if top > 0.0 else 0.0
    return top * math.sqrt(total)


@kernel(entry=True, allocates=True, inline=False)
def shared_loss(losses: FloatArray, norm: int) -> float:
    """||l||."""
    if norm == L2:
        return euclidean(losses)
    total = 0.0
    for k in largest_first(losses)[:norm]:
        total += losses[k]
    return total


@kernel(entry=True)
def spread(n: int, norm: int) -> float:
    """rho^2 = max (||tau||_2 / ||tau||_*)^2 for n tasks."""
    return 1.0 if norm == L2 else float(min(norm, n))


@kernel(entry=True, allocates=True, inline=False)
def finite_steps(losses: FloatArray, norm: int, C: float, tau: FloatArray) -> None:
    """tau <- argmax {sum tau_k l_k: ||tau||_* <= C}; the first of equal losses where not all can move."""
    n = len(losses)
    if norm == L2:
        size = euclidean(losses)
        for k in range(n):
            tau[k] = C * (losses[k] / size) if size > 0.0 else 0.0
    elif norm < n:
        tau[:] = 0.0
        for k in largest_first(losses)[:norm]:
            tau[k] = C if losses[k] > 0.0 else 0.0
    else:
        for k in range(n):
            tau[k] = C if losses[k] > 0.0 else 0.0


@kernel(allocates=True, inline=False)
def implicit_steps(losses: FloatArray, norms: FloatArray, norm: int, C: float, tau: FloatArray) -> None:
    """tau <- argmax {sum (tau_k l_k - tau_k^2 n_k / 2): ||tau||_* <= C} with n_k = ||x_k||^2."""
    if norm == L2:
        _implicit_l2(losses, norms, C, tau)
        return
    total = 0.0
    for k in range(len(losses)):  # threshold 0: Passive-Aggressive I on each task
        tau[k] = 0.0
        if losses[k] > 0.0:
            tau[k] = min(C, losses[k] / norms[k]) if norms[k] > 0.0 else C
        total += tau[k]
    if norm < len(losses) and total > norm * C:
        _implicit_rmax(losses, norms, norm * C, C, tau)


@kernel(allocates=True, inline=False)
def _implicit_l2(losses: FloatArray, norms: FloatArray, C: float, tau: FloatArray) -> None:
    """tau_k = l_k/(n_k + theta), theta >= 0 with ||tau||_2 = C: safeguarded Newton on 1/||tau||.

    That function of theta is concave and rises, so Newton's steps from the left never pass the root. Losses are
    divided by the largest, n and theta by it over C, so that nothing overflows.
    """
    top = losses.max()
    tau[:] = 0.0
    if top == 0.0:
        return
    relative, n = losses / top, norms / top * C
    theta = max(0.0, np.max(relative - n))  # no tau_k alone exceeds C
    for _ in range(100):
        square, slope = 0.0, 0.0
        for k in range(len(relative)):
            if relative[k] > 0.0:
                u = relative[k] / (n[k] + theta)
                square += u * u
                slope += u * u / (n[k] + theta)
        move = square * (math.sqrt(square) - 1.0) / slope if square > 1.0 else 0.0
        theta += move
        if move <= 1e-16 * theta:
            break
    for k in range(len(relative)):
        if relative[k] > 0.0:
            tau[k] = C * (relative[k] / (n[k] + theta))


@kernel(allocates=True, inline=False)
def _implicit_rmax(losses: FloatArray, norms: FloatArray, mass: float, C: float, tau: FloatArray) -> None:
    """tau_k = min(C, [l_k - theta]_+/n_k), theta > 0 with sum tau = mass: exact, by sorting.

    Every tau_k is linear in theta between its two ends, C at l_k - C n_k and 0 at l_k. The root lies between two
    neighbours of all sorted ends, where tau is linear. Ends that round to one number stay two places in the order.
    """
    K = len(losses)
    ends = np.empty(2 * K)
    for k in range(K):
        ends[k], ends[K + k] = losses[k] - C * norms[k], losses[k]
    order, place = largest_first(-ends), np.empty(2 * K, np.int64)
    below, above = 0, 2 * K - 1  # sum tau > mass at theta = 0, and 0 at the last end
    for i in range(2 * K):
        place[order[i]] = i
        below += int(ends[i] < 0.0)
    left, right = tau.copy(), np.zeros(K)
    while below <= above:
        middle = (below + above) // 2
        theta, total = ends[order[middle]], 0.0
        for k in range(K):
            if losses[k] == 0.0 or middle >= place[K + k]:
                right[k] = 0.0
            elif middle <= place[k]:
                right[k] = C
            else:
                right[k] = min(C, (losses[k] - theta) / norms[k]) if norms[k] > 0.0 else C
            total += right[k]
        if total > mass:
            copy_to(left, right)
            below = middle + 1
        else:
            copy_to(tau, right)
            above = middle - 1
    excess, lack = left.sum() - mass, mass - tau.sum()
    share = lack / (excess + lack)
    for k in range(K):
        tau[k] += share * (left[k] - tau[k])
