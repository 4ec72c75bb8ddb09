"""SHAMO (Crammer, Mansour, NIPS 2012): many tasks share few hypotheses.

Like K-means with models for centres: fit a hypothesis to the pooled rows of each cluster of tasks, move every task to
the hypothesis with the least loss on its rows, repeat until no task moves.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from shoal.batch.base import LinearBatchLearner, Rows
from shoal.batch.linear_svm import mean_hinge_by_task, weighted_hinge
from shoal.engine.arrays import FloatArray, IntArray
from shoal.model.parameters import Readers, from_keywords, positive, whole


class Clustering(NamedTuple):
    """Where one start of the procedure ended."""

    hypotheses: FloatArray  # (M, d)
    assignment: IntArray  # (K,)
    losses: list[float]  # total training loss after each iteration
    settled: bool  # did it end because no task moved?


@from_keywords
class SHAMO(LinearBatchLearner):
    """Shared hypotheses: every task uses the one of M linear models that suits it best (batch).

    From a random assignment g: ``h_c <- argmin (mu/2)||h||² + mean hinge on the rows of the tasks of cluster c``, then
    ``g(k) <- argmin_c L_k(h_c)``, L_k the mean hinge on task k's rows (ties: stay), until nothing moves; the best of
    `n_init` starts. A cluster left empty gets a random task of one that has several. Cost an iteration: M support
    vector machines on N rows in all, O(N d²) for few features, and O(N M d).

    Parameters
    ----------
    n_hypotheses : int >= 1
        M; at most as many as there are tasks are used. 1 is one model for all.
    mu : float > 0
        Strength of (mu/2)||h||²; below 1e-25 of the rows' squared size it is taken to be that.
    n_init : int >= 1
        Random starts; the one with the least total training loss is kept.
    max_iter : int >= 1
        Most iterations of a start.
    random_state : int, RandomState or None
        Draws the starts, and the tasks that go to empty clusters.

    Attributes
    ----------
    hypotheses_ : (M, n_features) weights
    assignment_ : (n_tasks,) number of each task's hypothesis
    coef_ : (n_tasks, n_features) weights, `hypotheses_[assignment_]`
    objective_ : (n_iter_,) total training loss sum_k L_k(h_g(k)) after each iteration of the start that was kept
    n_iter_ : its iterations
    tasks_, classes_, n_features_in_, feature_names_in_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters.

    Warns
    -----
    ConvergenceWarning
        If tasks still moved after `max_iter` iterations of the start that was kept.

    Notes
    -----
    An unseen task is answered by the mean of all tasks' weights.

    References
    ----------
    Crammer, Mansour. Learning Multiple Tasks using Shared Hypotheses. NIPS 2012. As used for comparison by
    Murugesan, Liu, Carbonell, Yang. Adaptive Smoothed Online Multi-Task Learning. NIPS 2016.

    Examples
    --------
    Two groups of tasks that learn opposite rules.

    >>> import numpy as np
    >>> from shoal import SHAMO
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(1200, 10)), np.arange(1200) % 10
    >>> w = rng.normal(size=10)
    >>> y = np.where((X @ w + rng.normal(size=1200)) * np.where(task < 5, 1, -1) > 0, 1, -1)
    >>> train, test = slice(0, 200), slice(200, None)
    >>> for n_hypotheses in (1, 2, 10):
    ...     learner = SHAMO(n_hypotheses=n_hypotheses, random_state=0).fit(X[train], y[train], task[train])
    ...     print(f"M {n_hypotheses:2}  error {1 - learner.score(X[test], y[test], task[test]):.3f}")
    M  1  error 0.500
    M  2  error 0.115
    M 10  error 0.244
    """

    n_hypotheses: int = 2
    mu: float = 1e-3
    n_init: int = 5
    max_iter: int = 50
    random_state: Any = None

    parameters: ClassVar[Readers] = dict.fromkeys(("n_hypotheses", "n_init", "max_iter"), whole(1)) | {"mu": positive()}

    def solve(self, rows: Rows) -> dict[str, Any]:
        from sklearn.utils import check_random_state

        random = check_random_state(self.random_state)
        starts = [self._cluster(rows, random) for _ in range(self.n_init)]
        best = min(starts, key=lambda start: start.losses[-1])
        if not best.settled:
            self._warn_not_converged(f"tasks still moved after {self.max_iter} iterations; raise max_iter")
        return {
            "hypotheses_": best.hypotheses,
            "assignment_": best.assignment,
            "coef_": best.hypotheses[best.assignment],
            "objective_": np.array(best.losses),
            "n_iter_": len(best.losses),
        }

    def _cluster(self, rows: Rows, random: Any) -> Clustering:
        M = min(self.n_hypotheses, rows.n_tasks)
        assignment = np.asarray(random.randint(M, size=rows.n_tasks), np.int64)
        fitted: IntArray = np.full(rows.n_tasks, -1)  # the assignment that the hypotheses were fitted to
        H = np.zeros((M, rows.X.shape[1]))
        losses: list[float] = []
        while len(losses) < self.max_iter:
            _fill_empty(assignment, M, random)
            self._refit(rows, assignment, fitted, H)
            fitted = assignment.copy()
            L = mean_hinge_by_task(rows.y[:, None] * (rows.X @ H.T), rows.task, rows.n_tasks)  # L[k, c] = L_k(h_c)
            own = L[np.arange(rows.n_tasks), assignment]
            assignment = np.where(L.min(axis=1) < own, L.argmin(axis=1), assignment)
            if (assignment == fitted).all():
                return Clustering(H, assignment, [*losses, float(own.sum())], settled=True)
            losses.append(float(L.min(axis=1).sum()))
        self._refit(rows, assignment, fitted, H)
        return Clustering(H, assignment, losses, settled=False)

    def _refit(self, rows: Rows, assignment: IntArray, before: IntArray, H: FloatArray) -> None:
        """Fit each hypothesis whose cluster is not what it was."""
        for c in range(len(H)):
            members = np.flatnonzero(assignment[rows.task] == c)
            if len(members) and ((assignment == c) != (before == c)).any():
                uniform = np.full(len(members), 1.0 / len(members))
                H[c] = weighted_hinge(rows.X[members], rows.y[members], uniform, self.mu).w


def _fill_empty(assignment: IntArray, M: int, random: Any) -> None:
    """Give each cluster without tasks a random task of a cluster that has several."""
    for c in range(M):
        counts = np.bincount(assignment, minlength=M)
        if counts[c] == 0:
            assignment[random.choice(np.flatnonzero(counts[assignment] > 1))] = c
