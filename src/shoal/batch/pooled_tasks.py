"""Pooled tasks (STL of Murugesan et al., NIPS 2016): one model from the rows of all tasks, as if they were one.

w = argmin_w (mu/2)||w||² + (1/N) sum_i [1 - y_i w.x_i]_+
"""

from typing import Any

import numpy as np

from shoal.batch.around_estimator import AroundEstimator, answers
from shoal.batch.base import Rows
from shoal.engine.arrays import FloatArray, IntArray


class PooledTasks(AroundEstimator):
    """One model for all tasks: the other extreme of `IndependentTasks`.

    The default is the papers' linear model ``min (mu/2)||w||² + (1/N) sum_i [1 - y_i w.x_i]_+`` over the rows of all
    tasks, without an intercept. Cost: that of a task of `IndependentTasks` with all rows.

    Parameters
    ----------
    estimator : scikit-learn classifier or regressor, optional
        Cloned. A classifier makes this a classifier of two labels (it learns -1 and +1), a regressor a regressor.
    mu : float > 0
        Regularisation of the default model; below 1e-25 of the rows' squared size it is taken to be that.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) weights of the default model, the same for every task
    n_iter_ : iterations of the default model's solver
    objective_ : (n_iter_,) objective of the default model after each iteration; (1,) at the end where there are many
        features and liblinear, which does not tell it on the way, is used
    estimator_ : the fitted clone, where `estimator` is given
    tasks_, classes_, n_features_in_, feature_names_in_

    Raises
    ------
    ValueError
        On bad input, if `estimator` is not one, or if `mu` is not a positive number.

    Notes
    -----
    An unseen task is answered like any other. Only the default model can be saved. `sample_weight` as in
    `IndependentTasks`.

    References
    ----------
    Murugesan, Liu, Carbonell, Yang. Adaptive Smoothed Online Multi-Task Learning. NIPS 2016: the baseline STL.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from shoal import IndependentTasks, PooledTasks
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(600, 5)), rng.integers(20, size=600)
    >>> w = rng.normal(size=5) + 0.3 * rng.normal(size=(20, 5))
    >>> y = np.einsum("ij,ij->i", X, w[task]) + rng.normal(size=600)
    >>> for kind in (IndependentTasks, PooledTasks):
    ...     learner = kind(estimator=Ridge()).fit(X[:300], y[:300], task[:300])
    ...     print(f"{kind.__name__:16} R2 {learner.score(X[300:], y[300:], task[300:]):.3f}")
    IndependentTasks R2 0.694
    PooledTasks      R2 0.727
    """

    coef_: FloatArray
    estimator_: Any

    def solve(self, rows: Rows) -> dict[str, Any]:
        if self.estimator is not None:
            return {"estimator_": self._fit_clone(rows.X, rows.y, rows.weight)}
        w, n_iter, objective = self._fit_linear(rows.X, rows.y, rows.weight)
        return {"coef_": np.tile(w, (rows.n_tasks, 1)), "n_iter_": n_iter, "objective_": np.array(objective)}

    def decide(self, X: Any, task: IntArray) -> FloatArray:
        if self.estimator is None:
            return np.asarray(X @ self.coef_[0])
        return answers(self.estimator_, X)
