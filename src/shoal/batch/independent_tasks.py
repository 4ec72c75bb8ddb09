"""Independent tasks (ITL of Murugesan et al., NIPS 2016; STL of Srijith and Shevade): a model a task, no sharing.

w_k = argmin_w (mu/2)||w||² + L_k(w),   L_k(w) = (1/N_k) sum_i [1 - y_i w.x_i]_+
"""

from typing import Any

import numpy as np

from shoal.batch.around_estimator import AroundEstimator, answers
from shoal.batch.base import Rows, split_by_task, task_margins
from shoal.engine.arrays import FloatArray, IntArray


class IndependentTasks(AroundEstimator):
    """One model a task, each learned from its own rows: the baseline of every shared model.

    The default is the papers' linear model ``min (mu/2)||w||² + (1/N_k) sum_i [1 - y_i w.x_i]_+`` without
    an intercept (put a constant among the features). Cost: K fits on N_k rows, O(N_k d²)
    each for few features (interior point method), or some passes over them (liblinear).

    Parameters
    ----------
    estimator : scikit-learn classifier or regressor, optional
        Cloned for every task. A classifier makes this a classifier of two labels (it learns -1 and +1), a regressor
        a regressor. A task whose training rows all have one label always answers that label.
    mu : float > 0
        Regularisation of the default model; below 1e-25 of the rows' squared size it is taken to be that.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) weights of the default model
    n_iter_ : (n_tasks,) iterations of the default model's solver
    objective_ : (longest n_iter_,) sum of the tasks' objectives after each iteration of the default model's solver; of
        a task that has ended, its last (many features are left to liblinear, which tells only the end)
    estimators_ : list of fitted clones in the order of `tasks_`, where `estimator` is given
    tasks_, classes_, n_features_in_, feature_names_in_

    Raises
    ------
    ValueError
        On bad input, if `estimator` is not one, or if `mu` is not a positive number.

    Notes
    -----
    An unseen task is answered by the mean of the decision values (or predictions) of all tasks. Only the default
    model can be saved. With `sample_weight` h the default's mean loss is (1/sum_i h_i) sum_i h_i [1 - y_i w.x_i]_+,
    that of rows which come h times; an estimator gets the weights if its `fit` takes them.

    References
    ----------
    Murugesan, Liu, Carbonell, Yang. Adaptive Smoothed Online Multi-Task Learning. NIPS 2016: the baseline ITL.

    Examples
    --------
    >>> from shoal import IndependentTasks, PooledTasks
    >>> from shoal.datasets import make_conjoint
    >>> for similarity in ("high", "low"):
    ...     train, test = make_conjoint(similarity, seed=1)
    ...     for learner in (IndependentTasks(), PooledTasks()):
    ...         accuracy = learner.fit(train.X, train.y, train.task).score(test.X, test.y, test.task)
    ...         print(f"{similarity:4} {type(learner).__name__:16} error {1 - accuracy:.3f}")
    high IndependentTasks error 0.120
    high PooledTasks      error 0.153
    low  IndependentTasks error 0.119
    low  PooledTasks      error 0.306
    """

    coef_: FloatArray
    estimators_: list[Any]

    def solve(self, rows: Rows) -> dict[str, Any]:
        weight = rows.weight
        parts = [(rows.X[own], rows.y[own], weight[own] if len(weight) else weight) for own in rows.of_tasks()]
        if self.estimator is not None:
            return {"estimators_": [self._fit_clone(*part) for part in parts]}
        coef, n_iter, paths = zip(*(self._fit_linear(*part) for part in parts), strict=True)
        longest = max(map(len, paths))
        objective = np.sum([[*path, *path[-1:] * (longest - len(path))] for path in paths], axis=0)
        return {"coef_": np.array(coef), "n_iter_": np.array(n_iter), "objective_": objective}

    def decide(self, X: Any, task: IntArray) -> FloatArray:
        if self.estimator is None:
            return task_margins(X, task, self.coef_, self.coef_.mean(axis=0))
        values = np.empty(len(task))
        for k, own in enumerate(split_by_task(task + 1, len(self.estimators_) + 1)):
            if len(own):
                models = [self.estimators_[k - 1]] if k else self.estimators_
                values[own] = np.mean([answers(model, X[own]) for model in models], axis=0)
        return values
