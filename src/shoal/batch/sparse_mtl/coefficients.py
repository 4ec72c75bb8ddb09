"""Basis sets of a kernel machine and their coefficients: Algorithm 1 of Srijith and Shevade.

The rows are sorted by task. A *family* holds sets of basis vectors, each serving its own block of rows: the common set
serves all rows, a task's own set the rows of the task. I is the rows that have a loss (squared hinge: those with
y o < 1, o the output), and e = y - o on I, 0 elsewhere. A set with kernel columns K, Gram matrix G, coefficients a has

    gradient g = reg G a - Kᵀe,   generalised Hessian P = reg G + Σ_{i in I} K_i K_iᵀ     (eq. 3).

The Cholesky factor of each P is kept and follows I and the set by rank-one changes of O(N²) each: P = RᵀR with R upper
triangular, in the leading `size` rows and columns of a larger array. Rows of R are contiguous, and all loops run along
them.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel

MOST_STEPS = 50  # of a Newton iteration; each step reaches the minimum along its direction, so few are needed
JITTER = 1e-10  # relative addition to the diagonal: columns of a kernel matrix are nearly dependent


class Family(NamedTuple):
    """Sets of basis vectors; arrays have capacity for more."""

    reg: float  # gamma or lambda
    starts: IntArray  # (sets + 1,) the rows that each set serves
    size: IntArray  # (sets,) vectors in each set
    K: FloatArray  # (n, capacity) the row's kernel values with the vectors of its set
    G: FloatArray  # (sets, capacity, capacity) kernel values among the vectors
    R: FloatArray  # (sets, capacity, capacity) factor of P over the rows in `held`
    held: NDArray[np.bool_]  # (n,)
    coef: FloatArray  # (sets, capacity)


class Fit(NamedTuple):
    """The rows, their outputs, and scratch."""

    hinge: bool  # squared hinge, or else least squares
    y: FloatArray  # (n,)
    o: FloatArray  # (n,) outputs
    u: FloatArray  # (n,) their change along a direction
    g: FloatArray  # (capacity,) gradient, then direction
    w: FloatArray  # (capacity,)
    stale: NDArray[np.bool_]  # (1 + tasks,) is the common set, or a task's, away from its optimum given the others?


def family(reg: float, starts: IntArray, capacity: int) -> Family:
    """Sets without vectors."""
    n, sets = int(starts[-1]), len(starts) - 1
    square = (sets, capacity, capacity)
    return Family(
        reg,
        starts,
        size=np.zeros(sets, np.int64),
        K=np.zeros((n, capacity)),
        G=np.zeros(square),
        R=np.zeros(square),
        held=np.ones(n, np.bool_),
        coef=np.zeros((sets, capacity)),
    )


def with_capacity(sets: Family, capacity: int) -> Family:
    """The same sets with capacity for at least this many vectors each; at least doubled if it grows."""
    have = sets.K.shape[1]
    if capacity <= have:
        return sets
    larger = family(sets.reg, sets.starts, max(capacity, 2 * have))
    larger.K[:, :have], larger.coef[:, :have] = sets.K, sets.coef
    larger.G[:, :have, :have], larger.R[:, :have, :have] = sets.G, sets.R
    return larger._replace(size=sets.size, held=sets.held)


# ---- the factor of P -----------------------------------------------------------------------------------------


@kernel
def solve_transposed(R: FloatArray, size: int, p: FloatArray) -> None:
    """p <- R⁻ᵀ p."""
    for k in range(size):
        p[k] /= R[k, k]
        w = p[k]
        for i in range(k + 1, size):
            p[i] -= w * R[k, i]


@kernel
def solve_upper(R: FloatArray, size: int, p: FloatArray) -> None:
    """p <- R⁻¹ p."""
    for k in range(size - 1, -1, -1):
        total = 0.0
        for i in range(k + 1, size):
            total += R[k, i] * p[i]
        p[k] = (p[k] - total) / R[k, k]


@kernel
def append(R: FloatArray, size: int, p: FloatArray) -> None:
    """The factor of [[P, p], [pᵀ, p_size]] from that of P; p is overwritten: w = R⁻ᵀ p, last pivot √(p_size - w·w)."""
    solve_transposed(R, size, p)
    pivot = p[size] * (1.0 + JITTER)
    least = p[size] * JITTER
    for k in range(size):
        R[k, size] = p[k]
        R[size, k] = 0.0
        pivot -= p[k] * p[k]
    R[size, size] = math.sqrt(max(pivot, least))


@kernel
def rank_one(R: FloatArray, size: int, w: FloatArray, sign: float) -> bool:
    """The factor of P + sign w wᵀ from that of P; w is overwritten. False, and R is spoilt, if P loses its rank."""
    for k in range(size):
        square = R[k, k] * R[k, k]
        left = square + sign * w[k] * w[k]
        if left <= JITTER * JITTER * square:
            return False
        r = math.sqrt(left)
        c, s = r / R[k, k], w[k] / R[k, k]
        R[k, k] = r
        for i in range(k + 1, size):
            R[k, i] = (R[k, i] + sign * s * w[i]) / c
            w[i] = c * w[i] - s * R[k, i]
    return True


# ---- a set and its rows --------------------------------------------------------------------------------------


@kernel
def in_loss(hinge: bool, y: float, o: float) -> bool:
    """Is the row in I?"""
    return not hinge or y * o < 1.0


@kernel(entry=True)
def add_vector(sets: Family, k: int, column: FloatArray, row: int, w: FloatArray) -> None:
    """Give set k the row `row` as a vector, its coefficient 0; `column` is its kernel values with the set's rows."""
    first, last, size = sets.starts[k], sets.starts[k + 1], sets.size[k]
    for j in range(size):
        sets.G[k, size, j] = sets.G[k, j, size] = sets.K[row, j]
        w[j] = sets.reg * sets.K[row, j]
    sets.G[k, size, size] = column[row - first]
    w[size] = sets.reg * column[row - first]
    for i in range(first, last):
        value = column[i - first]
        sets.K[i, size] = value
        if sets.held[i]:
            for j in range(size + 1):
                w[j] += value * sets.K[i, j]
    append(sets.R[k], size, w)
    sets.coef[k, size] = 0.0
    sets.size[k] = size + 1


@kernel(inline=False)
def refactor(sets: Family, k: int, w: FloatArray) -> None:
    """The factor computed again from the rows in `held`: where so much was subtracted that rounding errors dominate."""
    for c in range(sets.size[k]):
        for j in range(c + 1):
            w[j] = sets.reg * sets.G[k, c, j]
        for i in range(sets.starts[k], sets.starts[k + 1]):
            if sets.held[i]:
                for j in range(c + 1):
                    w[j] += sets.K[i, c] * sets.K[i, j]
        append(sets.R[k], c, w)


@kernel(inline=False)
def follow(sets: Family, k: int, fit: Fit) -> int:
    """Let the factor follow I, one row at a time; the number of rows that entered or left."""
    changes = 0
    if not fit.hinge:
        return changes
    sound = True
    for i in range(sets.starts[k], sets.starts[k + 1]):
        now = in_loss(fit.hinge, fit.y[i], fit.o[i])
        if now != sets.held[i]:
            sets.held[i] = now
            changes += 1
            if sound:
                for j in range(sets.size[k]):
                    fit.w[j] = sets.K[i, j]
                sound = rank_one(sets.R[k], sets.size[k], fit.w, 1.0 if now else -1.0)
    if not sound:
        refactor(sets, k, fit.w)
    return changes


@kernel(inline=False)
def gradient(sets: Family, k: int, fit: Fit, g: FloatArray) -> None:
    """g <- reg G a - Kᵀe (eq. 3)."""
    size = sets.size[k]
    for j in range(size):
        total = 0.0
        for c in range(size):
            total += sets.G[k, j, c] * sets.coef[k, c]
        g[j] = sets.reg * total
    for i in range(sets.starts[k], sets.starts[k + 1]):
        if in_loss(fit.hinge, fit.y[i], fit.o[i]):
            e = fit.y[i] - fit.o[i]
            for j in range(size):
                g[j] -= e * sets.K[i, j]


@kernel
def products(sets: Family, k: int, a: FloatArray, d: FloatArray) -> float:
    """reg aᵀGd."""
    total = 0.0
    for j in range(sets.size[k]):
        part = 0.0
        for c in range(sets.size[k]):
            part += sets.G[k, j, c] * d[c]
        total += a[j] * part
    return sets.reg * total


@kernel
def slope(fit: Fit, first: int, last: int, s: float) -> tuple[float, float]:
    """First and second derivative in s of the losses of rows with outputs o + s u."""
    value, curvature = 0.0, 0.0
    for i in range(first, last):
        o = fit.o[i] + s * fit.u[i]
        if in_loss(fit.hinge, fit.y[i], o):
            value -= (fit.y[i] - o) * fit.u[i]
            curvature += fit.u[i] * fit.u[i]
    return value, curvature


@kernel(inline=False)
def line_search(fit: Fit, first: int, last: int, linear: float, quadratic: float) -> float:
    """The step s >= 0 that minimises the objective along u, exactly; `linear` and `quadratic` are of the regulariser.

    The derivative is increasing and piecewise linear: Newton steps from 1 find its root, kept inside a bracket.
    """
    at_zero = linear + slope(fit, first, last, 0.0)[0]
    low, high, s = 0.0, np.inf, 1.0
    for _ in range(MOST_STEPS):
        value, curvature = slope(fit, first, last, s)
        value += linear + s * quadratic
        if abs(value) <= 1e-13 * abs(at_zero):
            break
        if value < 0.0:
            low = s
        else:
            high = s
        s -= value / (curvature + quadratic)
        if not low < s < high:
            s = 2.0 * low if high == np.inf else 0.5 * (low + high)
    return s


@kernel
def rise(fit: Fit, first: int, last: int, s: float, linear: float, quadratic: float) -> float:
    """The increase of the objective by a step s along u."""
    total = 0.0
    for i in range(first, last):
        o = fit.o[i] + s * fit.u[i]
        if in_loss(fit.hinge, fit.y[i], o):
            total += 0.5 * (fit.y[i] - o) ** 2
        if in_loss(fit.hinge, fit.y[i], fit.o[i]):
            total -= 0.5 * (fit.y[i] - fit.o[i]) ** 2
    return total + s * linear + 0.5 * s * s * quadratic


@kernel(inline=False)
def newton(sets: Family, k: int, fit: Fit, small: float) -> bool:
    """Minimise over the coefficients of set k, the others fixed; did they change?

    Steps along -P⁻¹g with exact line search, until I stays as it is in a full step, or a step promises a decrease of
    less than `small`, or would raise the objective. Then rounding errors rule: the factor's, or else, if a new one does
    not help, the objective's.
    """
    first, last, size = sets.starts[k], sets.starts[k + 1], sets.size[k]
    moved, full_step, renewed = False, False, False
    for _ in range(MOST_STEPS):
        changes = follow(sets, k, fit)
        if full_step and changes == 0:
            break
        gradient(sets, k, fit, fit.g)
        for j in range(size):
            fit.w[j] = -fit.g[j]
        solve_transposed(sets.R[k], size, fit.w)
        promise = 0.0
        for j in range(size):
            promise += fit.w[j] * fit.w[j]  # gᵀP⁻¹g: twice the decrease if I stays
        if not 0.5 * promise > small:
            break
        solve_upper(sets.R[k], size, fit.w)
        for i in range(first, last):
            fit.u[i] = 0.0
            for j in range(size):
                fit.u[i] += sets.K[i, j] * fit.w[j]
        linear, quadratic = products(sets, k, sets.coef[k], fit.w), products(sets, k, fit.w, fit.w)
        s = line_search(fit, first, last, linear, quadratic) if fit.hinge else 1.0
        if not rise(fit, first, last, s, linear, quadratic) < 0.0:
            if renewed:
                break
            refactor(sets, k, fit.w)
            renewed, full_step = True, False
            continue
        for j in range(size):
            sets.coef[k, j] += s * fit.w[j]
        for i in range(first, last):
            fit.o[i] += s * fit.u[i]
        moved, full_step = True, s == 1.0
        if not fit.hinge:
            break
    return moved


@kernel(entry="too")
def objective_of(sets: Family, k: int) -> float:
    """(reg/2) aᵀGa."""
    return 0.5 * products(sets, k, sets.coef[k], sets.coef[k])


@kernel(entry="too")
def losses(fit: Fit, first: int, last: int) -> float:
    """½ Σ_{i in I} e_i²."""
    total = 0.0
    for i in range(first, last):
        if in_loss(fit.hinge, fit.y[i], fit.o[i]):
            total += (fit.y[i] - fit.o[i]) ** 2
    return 0.5 * total


@kernel(entry="too", inline=False)
def objective(common: Family, own: Family, fit: Fit) -> float:
    """Eq. 2, or eq. 5 for least squares."""
    total = losses(fit, 0, len(fit.y)) + objective_of(common, 0)
    for k in range(len(own.size)):
        total += objective_of(own, k)
    return total


@kernel(entry=True)
def alternate(common: Family, own: Family, fit: Fit, inner_tol: float, most_sweeps: int) -> tuple[float, int, bool]:
    """Algorithm 1: the common coefficients, then each task's, until a sweep's relative decrease is small.

    Only what is `stale` is looked at. Returns the objective, the sweeps, and whether they were enough.
    """
    E = objective(common, own, fit)
    for sweep in range(most_sweeps):
        small = 0.01 * inner_tol * E
        if fit.stale[0]:
            fit.stale[0] = False
            if newton(common, 0, fit, small):
                fit.stale[1:] = True
        for k in range(len(own.size)):
            if fit.stale[1 + k]:
                fit.stale[1 + k] = False
                if newton(own, k, fit, small):
                    fit.stale[0] = True
        before, E = E, objective(common, own, fit)
        if before - E <= inner_tol * E or (common.size[0] == 0 or not fit.stale.any()):
            return E, sweep + 1, True
    return E, most_sweeps, False


def errors(fit: Fit) -> Any:
    """(n,) e = y - o on I, 0 elsewhere; and I as 0 and 1."""
    e = fit.y - fit.o
    loss = (fit.y * fit.o < 1.0) if fit.hinge else np.ones(len(e), np.bool_)
    return np.where(loss, e, 0.0), loss.astype(np.float64)
