"""Multitask second-order Perceptron (Cavallanti, Cesa-Bianchi, Gentile, JMLR 2010, section 4.2, figure 2).

The Perceptron in coordinates in which the mistakes so far are alike in all directions. With
phi = B_x^(1/2) (e_i (x) x), S the columns phi of the mistakes and v = sum y phi over them,

    f = v^T (a I + S S^T + phi phi^T)^-1 phi;   on a mistake  v <- v + y phi,  S <- [S, phi].

Theorem 8 bounds the mistakes. `dual` has the loops over the rows kept (eq. 11), `primal` those over the weights.
"""

from typing import Any

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.learner import Classifier
from shoal.model.algorithm import Algorithm
from shoal.model.parameters import from_keywords
from shoal.online.common.relation_rates import Related
from shoal.online.common.support_vectors import Supported
from shoal.online.second_order_perceptron import dual, primal

ALGORITHMS: dict[str, Algorithm[Any]] = {"dual": dual.ALGORITHM, "primal": primal.ALGORITHM}


@from_keywords
class SecondOrderPerceptron(Related, Supported, Classifier):
    """Second-order Perceptrons that learn from each other's mistakes through an interaction matrix.

    A row is answered by ``f = a beta.k / delta`` with k_s = B[i_s, i] k(x_s, x), G the same between the rows kept,
    ``beta = (a I + G)^-1 y`` and ``delta = a + k(x, x) - k^T (a I + G)^-1 k``; on a mistake (ŷ ≠ y) the row is kept.
    Cost, whatever the number of tasks, as all share the rows: O(s) kernels an example and O(s) operations for its sign,
    with which `partial_fit` makes do; O(s²) for a decision value, as of `predict` and `test_then_train`, and for an
    update; O(s²) memory.

    Parameters
    ----------
    relation : as in `MultitaskPerceptron`
    a : float > 0
        How long directions that few rows have taken stay short; the paper's 1.
    kernel : {"linear", "rbf"} or function
        <x, z>, exp(-gamma ||x - z||²), or a function of two arrays (n, d) and (m, d) that returns the (n, m) values
        of a positive semidefinite kernel; it is called once a round, with dense arrays, and such a model cannot be
        saved.
    gamma : float > 0
        Width of "rbf".
    form : {"dual", "primal"}
        "primal" keeps a (K d, K d) matrix in place of rows, for the linear kernel and small K d: O(d) for a sign,
        O((K d)²) for a decision value and an update. Both give the same answers.
    budget : int >= 1, optional
        Most rows to keep ("dual"): when it is full, the oldest goes. Cost and memory are then bounded, but
        Theorem 8 is lost: it needs every mistake.
    classes : two labels, optional
        Needed where the first label does not tell the other; see `partial_fit`.

    Attributes
    ----------
    support_ : (n_support,) places in the stream of the rows kept, oldest first ("dual")
    support_vectors_ : (n_support, n_features) the rows ("dual")
    relation_ : (n_tasks, n_tasks) the rates B
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_, task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, a task that a given graph or matrix does not name, or if a hyper-parameter
        other than `budget` is changed after the first row.

    Notes
    -----
    There is no `coef_`: the decision value is not linear in x. The matrix depends on the rates, and rates like b/K on
    the number of tasks: when a new task appears it is formed anew, O(s² d + s³), or O((K d)³) in primal form; exact,
    but tasks that are known should be declared by `add_tasks` (`fit` does). An unseen task is answered like one more
    task of which nothing is known but its rates to the others, under a given graph or matrix by the mean of all tasks.
    The rows of a forgotten task stay as long as the others use them; the primal form integrates its weights out, and
    from then on B never grows again: the others answer as before. Mistakes are bounded by Theorem 8:
    `shoal.theory.second_order_mistake_bound`.

    Odd rows: one wrong label is one mistake among those kept; a value of 1e6 makes the matrix large along its feature,
    where later rows count for little.

    References
    ----------
    Cavallanti, Cesa-Bianchi, Gentile. Linear Algorithms for Online Multitask Classification. JMLR 11, 2010: figure 2,
    section 4.2.1, Theorem 8.

    Examples
    --------
    One feature is 20 times as large as the others.

    >>> import numpy as np
    >>> from shoal import MultitaskPerceptron, SecondOrderPerceptron
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> X = data.X * np.append(20.0, np.ones(29))
    >>> for learner in (MultitaskPerceptron(), SecondOrderPerceptron(), SecondOrderPerceptron(budget=300)):
    ...     decisions = learner.test_then_train(X, data.y, data.task)
    ...     print(f"{learner!s:33} error {((decisions >= 0) != (data.y > 0)).mean():.3f}")
    MultitaskPerceptron()             error 0.320
    SecondOrderPerceptron()           error 0.189
    SecondOrderPerceptron(budget=300) error 0.204
    """

    relation: Any = "pairwise"
    a: float = 1.0
    kernel: Any = "linear"
    gamma: float = 1.0
    form: str = "dual"
    budget: int | None = None
    classes: Any = None

    @property
    def algorithm(self) -> Algorithm[Any]:
        if self.form not in ALGORITHMS:
            raise ValueError(f"form must be 'dual' or 'primal', got {self.form!r}")
        return ALGORITHMS[self.form]

    def _rows_of(self, attribute: str) -> None:
        if self.form == "primal":
            raise AttributeError(f"form='primal' keeps no rows, so there is no {attribute}")

    @property
    def support_(self) -> IntArray:
        """(n_support,) places in the stream, from 0, of the rows that the model keeps ("dual")."""
        self._rows_of("support_")
        return super().support_

    @property
    def support_vectors_(self) -> FloatArray:
        """(n_support, n_features) the rows that the model keeps ("dual")."""
        self._rows_of("support_vectors_")
        return super().support_vectors_

    @property
    def relation_(self) -> FloatArray:
        """(n_tasks, n_tasks) the rates B = A^-1 of the tasks that there are."""
        if self.form == "dual":
            return super().relation_
        n_tasks, state = len(self.tasks_), self._state("relation_")
        prior = state.prior[:n_tasks, :n_tasks]
        if isinstance(state, primal.PooledState):
            return np.full((n_tasks, n_tasks), self.a / prior[0, 0])
        return np.asarray(self.a * np.linalg.inv(prior))
