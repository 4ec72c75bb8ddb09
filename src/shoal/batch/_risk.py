"""The smooth part of a penalised problem: the losses of all rows under the weights of their tasks, and its gradient."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from shoal.batch._accelerated import Path
from shoal.batch.base import LinearBatchLearner, Rows
from shoal.engine import losses
from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel
from shoal.engine.rounds import NO_INDICES, NO_INDPTR, Rounds
from shoal.engine.rows import add, dot

ONE_ROUND = np.zeros(0, np.int64)  # rounds mean nothing to a batch learner


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

    def check_parameters(self) -> None:
        self._require_choice("loss", tuple(self.losses))
        self._require_positive("tol")
        self._require_count("max_iter")

    def classifies(self) -> bool:
        return self.loss != "squared"

    def _finish(self, path: Path) -> dict[str, Any]:
        """What a path of iterations leaves, with a warning if it did not converge."""
        if path.change > self.tol:
            self._warn_not_converged(f"the objective still changes by {path.change:.1e}; raise max_iter or tol")
        rank = int(np.linalg.matrix_rank(path.W))
        return {"coef_": path.W, "rank_": rank, "objective_": np.array(path.objective), "n_iter_": len(path.objective)}
