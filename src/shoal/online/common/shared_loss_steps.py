"""Steps of a shared loss: how far each task of a round moves when the round costs a norm of its tasks' losses.

For losses l >= 0 and the ball ||tau||_* <= C of the dual norm (Dekel, Long, Singer 2007),

    finite:  tau = argmax sum_k tau_k l_k        implicit:  tau = argmax sum_k (tau_k l_k - tau_k^2 ||x_k||^2 / 2)

L1 and Linf are the two ends of r-max, the sum of the r largest losses, whose ball is 0 <= tau_k <= C, sum tau <= rC.
The dual of Lp is Lq with 1/p + 1/q = 1.
"""

import math
import numbers
from typing import Any, Final, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel
from shoal.engine.rows import copy_to

NORMS = ("l1", "l2", "linf", "rmax")
ALL: Final = 2**62


class Norm(NamedTuple):
    """r-max if r > 0, else Lp."""

    r: int
    p: float = 2.0


NAMED = {"l1": Norm(ALL), "l2": Norm(0), "linf": Norm(1), 1.0: Norm(ALL), math.inf: Norm(1)}


def norm_code(norm: Any, r: Any = 1, name: str = "norm") -> Norm:
    """The norm of a name, or Lp of a number p.

    Raises
    ------
    ValueError
        If there is no such norm, or r is not a whole number above 0.
    """
    is_p = isinstance(norm, numbers.Real) and not isinstance(norm, bool) and float(norm) >= 1.0
    if not is_p and not (isinstance(norm, str) and norm in NORMS):
        raise ValueError(f"{name} must be one of {NORMS} or a number p >= 1, got {norm!r}")
    if isinstance(r, bool) or not isinstance(r, int | np.integer) or r < 1:
        raise ValueError(f"r must be a whole number >= 1, got {r!r}")
    if norm == "rmax":
        return Norm(int(r))
    return NAMED[norm] if norm in NAMED else Norm(0, float(norm))


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


@kernel
def relative_power(losses: FloatArray, top: float, p: float) -> float:
    """(||l||_p / top)^p with the largest loss `top`: 1 to the number of tasks, so that no p overflows."""
    total = 0.0
    for loss in losses:
        total += (loss / top) ** p
    return total


@kernel(entry="too", allocates=True, inline=False)
def shared_loss(losses: FloatArray, norm: Norm) -> float:
    """||l||."""
    if norm.r == 0 and norm.p == 2.0:
        return euclidean(losses)
    if norm.r == 0:
        top = losses.max()
        return float(top * relative_power(losses, top, norm.p) ** (1.0 / norm.p)) if top > 0.0 else 0.0
    total = 0.0
    for k in largest_first(losses)[: norm.r]:
        total += losses[k]
    return total


@kernel(entry="too")
def spread(n: int, norm: Norm) -> float:
    """rho^2 = max (||tau||_2 / ||tau||_*)^2 for n tasks."""
    if norm.r > 0:
        return float(min(norm.r, n))
    return float(n ** max(0.0, 2.0 / norm.p - 1.0))  # equal steps if q > 2, else a single one


@kernel(entry="too", allocates=True, inline=False)
def finite_steps(losses: FloatArray, norm: Norm, C: float, tau: FloatArray) -> None:
    """tau <- argmax {sum tau_k l_k: ||tau||_* <= C}; the first of equal losses where not all can move."""
    n = len(losses)
    if norm.r == 0 and norm.p == 2.0:
        size = euclidean(losses)
        for k in range(n):
            tau[k] = C * (losses[k] / size) if size > 0.0 else 0.0
    elif norm.r == 0:  # C (l_k / ||l||_p)^(p-1)
        top = losses.max()
        size = relative_power(losses, top, norm.p) ** (1.0 - 1.0 / norm.p) if top > 0.0 else 1.0
        for k in range(n):
            tau[k] = C * ((losses[k] / top) ** (norm.p - 1.0) / size) if losses[k] > 0.0 else 0.0
    elif norm.r < n:
        tau[:] = 0.0
        for k in largest_first(losses)[: norm.r]:
            tau[k] = C if losses[k] > 0.0 else 0.0
    else:
        for k in range(n):
            tau[k] = C if losses[k] > 0.0 else 0.0


@kernel(allocates=True, inline=False)
def implicit_steps(losses: FloatArray, norms: FloatArray, norm: Norm, C: float, tau: FloatArray) -> None:
    """tau <- argmax {sum (tau_k l_k - tau_k^2 n_k / 2): ||tau||_* <= C} with n_k = ||x_k||^2."""
    if norm.r == 0 and norm.p == 2.0:
        _implicit_l2(losses, norms, C, tau)
        return
    if norm.r == 0:
        _implicit_lp(losses, norms, norm.p, C, tau)
        return
    total = 0.0
    for k in range(len(losses)):  # threshold 0: Passive-Aggressive I on each task
        tau[k] = 0.0
        if losses[k] > 0.0:
            tau[k] = min(C, losses[k] / norms[k]) if norms[k] > 0.0 else C
        total += tau[k]
    if norm.r < len(losses) and total > norm.r * C:
        _implicit_rmax(losses, norms, norm.r, C, tau)


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
def _implicit_lp(losses: FloatArray, norms: FloatArray, p: float, C: float, tau: FloatArray) -> None:
    """tau_k with n_k tau_k + theta tau_k^(q-1) = l_k, theta >= 0 with ||tau||_q = C: safeguarded Newton on logarithms.

    With tau = C e^u and losses l_k = e^a over the largest, it is C n_k e^u + e^(theta + (q-1) u) = e^a for each task,
    and ln ||e^u||_q falls as theta rises. Nothing overflows, whatever p and the sizes of the rows are.
    """
    K, e, top = len(losses), 1.0 / (p - 1.0), losses.max()
    q = 1.0 + e
    a, log_n, u = np.empty(K), np.empty(K), np.empty(K)
    tau[:] = 0.0
    if top == 0.0:
        return
    lowest = 0.0
    for k in range(K):
        a[k] = math.log(losses[k]) - math.log(top) if losses[k] > 0.0 else -math.inf
        log_n[k] = math.log(norms[k]) + math.log(C) - math.log(top) if norms[k] > 0.0 else -math.inf
        u[k] = a[k] - log_n[k] if losses[k] > 0.0 else -math.inf
        lowest = min(lowest, a[k]) if losses[k] > 0.0 else lowest
    if _log_norm(u, q) <= 0.0:  # theta = 0: no step is held back
        for k in range(K):
            tau[k] = losses[k] / norms[k] if losses[k] > 0.0 else 0.0
        return
    low, high = lowest - 100.0, math.log(relative_power(losses, top, p)) / p  # n_k = 0 at the high end
    theta, size = high, 0.0
    for turn in range(200):
        for k in range(K):
            if losses[k] > 0.0:
                u[k] = _log_step(a[k], log_n[k], theta, e)
        size = _log_norm(u, q)
        slope = 0.0  # of size, by theta
        for k in range(K):
            if losses[k] > 0.0:
                share = min(1.0, math.exp(theta + e * u[k] - a[k]))  # of theta's term in the equation
                slope -= math.exp(q * (u[k] - size)) * share / (1.0 - share + e * share)
        if size > 0.0:
            low = theta
        else:
            high = theta
        if abs(size) <= 1e-15 or high - low <= 4e-16 * max(1.0, -low):
            break
        theta -= size / slope
        if not low < theta < high or turn % 4 == 3:
            theta = 0.5 * (low + high)
    for k in range(K):
        tau[k] = C * math.exp(u[k] - size)  # in the ball to the last digit


@kernel
def _log_norm(u: FloatArray, q: float) -> float:
    """ln ||e^u||_q."""
    top, total = u.max(), 0.0
    if top == math.inf:
        return math.inf
    for value in u:
        total += math.exp(q * (value - top))
    return float(top + math.log(total) / q)


@kernel
def _log_step(a: float, log_n: float, theta: float, e: float) -> float:
    """u with e^(log_n + u) + e^(theta + e u) = e^a, where the factor e is q - 1: Newton on the logarithm of both sides.

    That of the left is convex and rises in u, so steps from the right, where one of the two terms alone is e^a, never
    pass the root.
    """
    u = min(a - log_n, (a - theta) / e)
    for _ in range(100):
        one, other = math.exp(log_n + u - a), math.exp(theta + e * u - a)
        move = math.log(one + other) * (one + other) / (one + e * other)
        if not move > 1e-16 * max(1.0, abs(u)):
            break
        u -= move
    return u


@kernel(allocates=True, inline=False)
def _implicit_rmax(losses: FloatArray, norms: FloatArray, r: int, C: float, tau: FloatArray) -> None:
    """tau_k = min(C, [l_k - theta]_+/n_k), theta > 0 with sum tau = r C: exact, by sorting.

    Every tau_k is linear in theta between its two ends, C at l_k - C n_k and 0 at l_k. The root lies between two
    neighbours of all sorted ends, where tau is linear. Ends that round to one number stay two places in the order.
    Losses and theta are counted from the r-th largest loss, near which theta lies if rows are short: all digits stay.
    """
    K, mass = len(losses), r * C
    base = losses[largest_first(losses)[r - 1]]
    relative, ends = losses - base, np.empty(2 * K)
    for k in range(K):
        ends[k], ends[K + k] = relative[k] - C * norms[k], relative[k]
    order, place = largest_first(-ends), np.empty(2 * K, np.int64)
    below, above = 0, 2 * K - 1  # sum tau > mass at theta = 0, and 0 at the last end
    for i in range(2 * K):
        place[order[i]] = i
        below += int(ends[i] < -base)
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
                right[k] = min(C, (relative[k] - theta) / norms[k]) if norms[k] > 0.0 else C
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
