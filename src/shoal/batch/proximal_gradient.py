"""Accelerated proximal gradient with backtracking (FISTA: Beck, Teboulle, SIAM J. Imaging Sciences 2, 2009).

Minimises smooth(W) + penalty(W): from a search point Z,  W <- prox(Z - grad/L, 1/L),  L doubled until the quadratic
model at Z bounds the smooth part at W. A step that would raise the objective is not taken; the momentum starts again
(O'Donoghue, Candès, 2015), so the objective never rises.

The smooth part is the losses of all rows under the weights of their tasks. A penalty is its proximal operator.
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from shoal.batch.base import LinearBatchLearner, Rows
from shoal.engine import losses
from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel
from shoal.engine.rounds import NO_INDICES, NO_INDPTR, Rounds
from shoal.engine.rows import add, dot
from shoal.model.parameters import Readers, one_of, positive, whole

Smooth = Callable[[FloatArray], tuple[float, FloatArray]]  # value and gradient
Prox = Callable[[FloatArray, float], tuple[FloatArray, float]]  # (Z, s) -> argmin s penalty(W) + ½||W - Z||², penalty

LONGEST = 1e100  # step, where there is next to no curvature: its square is a number
ROUNDING = 1e-14  # of the smooth part's value: below it, a comparison of two values says nothing
ONE_ROUND = np.zeros(0, np.int64)  # rounds mean nothing to a batch learner


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


# ---- the smooth part -----------------------------------------------------------------------------------------


@kernel
def loss_value(loss: int, f: float, y: float) -> float:
    """The loss whose derivative is `losses.derivative`."""
    if loss == losses.SQUARED_HINGE:
        return max(0.0, 1.0 - y * f) ** 2
    if loss == losses.LOGISTIC:
        return max(0.0, -y * f) + math.log1p(math.exp(-abs(f)))
    return 0.5 * (f - y) ** 2


@kernel(entry=True)
def risk(rounds: Rounds, loss: int, weight: FloatArray, W: FloatArray, G: FloatArray) -> float:
    """sum_k weight_k sum_i loss(y_i, <w_k, x_i>) over the rows of task k; G becomes its gradient in W (tasks, d)."""
    G[:] = 0.0
    total = 0.0
    for row in range(len(rounds.y)):
        k, y = rounds.task[row], rounds.y[row]
        f = dot(rounds, row, W[k])
        total += weight[k] * loss_value(loss, f, y)
        add(rounds, row, weight[k] * losses.derivative(loss, f, y, 0.0), G[k])
    return total


class Risk:
    """W -> (risk, gradient) for given rows."""

    def __init__(self, rows: Rows, loss: str, weight: FloatArray) -> None:
        self.rounds = _as_rounds(rows)
        self.loss = SmoothLossLearner.losses[loss]
        self.weight = weight
        self.shape = (rows.n_tasks, rows.X.shape[1])

    def __call__(self, W: FloatArray) -> tuple[float, FloatArray]:
        G = np.empty(self.shape)
        return risk(self.rounds, self.loss, self.weight, W, G), G


def _as_rounds(rows: Rows) -> Rounds:
    X = rows.X
    if isinstance(X, np.ndarray):
        return Rounds(X.shape[1], NO_INDPTR, NO_INDICES, X.reshape(-1), rows.task, rows.y, ONE_ROUND)
    return Rounds(0, X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, rows.task, rows.y, ONE_ROUND)


class SmoothLossLearner(LinearBatchLearner):
    """A linear learner whose loss has a gradient; with the squared loss it is a regressor."""

    loss: str
    tol: float
    max_iter: int
    losses: ClassVar[dict[str, int]] = {
        "logistic": losses.LOGISTIC,
        "squared_hinge": losses.SQUARED_HINGE,
        "squared": losses.SQUARED,
    }
    parameters: ClassVar[Readers] = {"loss": one_of(tuple(losses)), "tol": positive(), "max_iter": whole(1)}

    def classifies(self) -> bool:
        return self.loss != "squared"

    def _finish(self, path: Path) -> dict[str, Any]:
        """The learned attributes at the end of a path of iterations; warns if it did not converge."""
        if path.change > self.tol:
            self._warn_not_converged(f"the objective still changes by {path.change:.1e}; raise max_iter or tol")
        rank = int(np.linalg.matrix_rank(path.W))
        return {"coef_": path.W, "rank_": rank, "objective_": np.array(path.objective), "n_iter_": len(path.objective)}


# ---- penalties: Z and s to W = argmin s penalty(W) + ½||W - Z||², and penalty(W) -----------------------------


def _svd(Z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    U, values, V = np.linalg.svd(Z, full_matrices=False)
    return U, values, V


def nuclear(Z: FloatArray, s: float, strength: float) -> tuple[FloatArray, float]:
    """strength ||W||_*: singular values v become [v - s strength]_+."""
    U, values, V = _svd(Z)
    kept = np.maximum(0.0, values - s * strength)
    return (U * kept) @ V, strength * float(kept.sum())


def squared_nuclear(Z: FloatArray, s: float, strength: float) -> tuple[FloatArray, float]:
    """strength ||W||_*²: singular values v become [v - t c]_+ with t = 2 s strength and c = ||W||_*.

    c = (v_1 + ... + v_r)/(1 + r t) for the largest r with v_r > t c_r.
    """
    U, values, V = _svd(Z)
    t = 2.0 * s * strength
    sums = np.cumsum(values) / (1.0 + t * np.arange(1, len(values) + 1))
    alive = np.flatnonzero(values > t * sums)
    kept = np.maximum(0.0, values - t * sums[alive[-1]]) if len(alive) else np.zeros(len(values))
    return (U * kept) @ V, strength * float(kept.sum()) ** 2


def group_lasso(Z: FloatArray, s: float, strength: float) -> tuple[FloatArray, float]:
    """strength sum_j ||W[:, j]||: the weights that all tasks give to a feature shrink together, or vanish."""
    lengths = np.linalg.norm(Z, axis=0)
    kept = np.maximum(0.0, lengths - s * strength)
    return Z * (kept / np.where(lengths > 0.0, lengths, 1.0)), strength * float(kept.sum())
