"""Trace-norm regularised multi-task learning (TRML; Ji, Ye, ICML 2009).

    min_W  sum_k (1/N_k) sum_i loss(y_i, <w_k, x_i>) + rho ||W||_*

The trace norm, the sum of the singular values, makes W a matrix of low rank: the tasks share few directions.
"""

from typing import Any, ClassVar

import numpy as np

from shoal.batch.base import Rows
from shoal.batch.proximal_gradient import Risk, SmoothLossLearner, minimise, nuclear
from shoal.engine.arrays import FloatArray
from shoal.model.parameters import Readers, from_keywords, positive


@from_keywords
class TraceNorm(SmoothLossLearner):
    """Tasks whose weights span few directions: a penalty on the sum of their singular values (batch).

    ``min sum_k (1/N_k) sum_i loss(y_i, <w_k, x_i>) + rho ||W||_*`` by accelerated proximal gradient with backtracking:
    ``W <- SVT(Z - grad/L, rho/L)``, which shrinks every singular value by rho/L. Cost an iteration: O(nnz) for the
    gradient and O(d K min(d, K)) for the singular values.

    Parameters
    ----------
    rho : float > 0
        Strength of the penalty; the larger, the lower the rank.
    loss : {"logistic", "squared_hinge", "squared"}
        log(1 + exp(-y f)), [1 - y f]_+², or ½(f - y)², which makes this a regressor.
    tol : float > 0
        Stop when the objective changes by at most this part of it.
    max_iter : int >= 1
        Most iterations.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) weights W, transposed
    rank_ : number of singular values that are left
    objective_ : (n_iter_,) objective after each iteration; it never rises
    n_iter_ : iterations
    tasks_, classes_ (classification only), n_features_in_, feature_names_in_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters.

    Warns
    -----
    ConvergenceWarning
        If the objective still changed by more than `tol` after `max_iter` iterations.

    Notes
    -----
    There is no intercept; a constant among the features is penalised like the others. An unseen task is answered by
    the mean of all tasks' weights.

    References
    ----------
    Ji, Ye. An Accelerated Gradient Method for Trace Norm Minimization. ICML 2009: algorithm 2.

    Examples
    --------
    >>> from shoal import TraceNorm
    >>> from shoal.datasets import make_conjoint
    >>> train, test = make_conjoint("high", seed=1)
    >>> for rho in (0.003, 0.03, 0.3):
    ...     learner = TraceNorm(rho=rho).fit(train.X, train.y, train.task)
    ...     error = 1 - learner.score(test.X, test.y, test.task)
    ...     print(f"rho {rho:5}  rank {learner.rank_:2}  error {error:.3f}")
    rho 0.003  rank 12  error 0.097
    rho  0.03  rank 11  error 0.088
    rho   0.3  rank  6  error 0.117
    """

    rho: float = 0.01
    loss: str = "logistic"
    tol: float = 1e-4
    max_iter: int = 1000

    parameters: ClassVar[Readers] = {**SmoothLossLearner.parameters, "rho": positive()}

    def solve(self, rows: Rows) -> dict[str, Any]:
        smooth = Risk(rows, self.loss, 1.0 / np.bincount(rows.task))

        def prox(Z: FloatArray, s: float) -> tuple[FloatArray, float]:
            return nuclear(Z, s, self.rho)

        path = minimise(smooth, prox, np.zeros(smooth.shape), self.tol, self.max_iter)
        return self._finish(path)
