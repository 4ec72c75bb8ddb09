"""Multitask second-order Perceptron (Cavallanti, Cesa-Bianchi, Gentile, JMLR 2010, section 4.2, figure 2).

The Perceptron in coordinates in which the mistakes so far are alike in all directions. With
phi = B_x^(1/2) (e_i (x) x), S the columns phi of the mistakes and v = sum y phi over them,

    f = v^T (a I + S S^T + phi phi^T)^-1 phi;   on a mistake  v <- v + y phi,  S <- [S, phi].

Theorem 8 bounds the mistakes. `_second_order_dual` has the loops over the rows kept (eq. 11), `_second_order_primal`
those over the weights.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import call
from shoal.engine.rounds import Rounds
from shoal.engine.rows import TASKS
from shoal.learner import Classifier, Learner
from shoal.online import _second_order_dual as dual
from shoal.online import _second_order_primal as primal
from shoal.online._support import STORED, Support, SupportLearner, cut, empty
from shoal.relations import Constant


class SecondOrderPerceptron(Classifier, SupportLearner):
    """Second-order Perceptrons that learn from each other's mistakes through an interaction matrix.

    A row is answered by ``f = a beta.k / delta`` with k_s = B[i_s, i] k(x_s, x), G the same between the rows kept,
    ``beta = (a I + G)^-1 y`` and ``delta = a + k(x, x) - k^T (a I + G)^-1 k``; on a mistake (ŷ ≠ y) the row is kept.
    All tasks share the rows, so K does not count: O(s) kernels an example and O(s) operations for its sign, with which
    `partial_fit` makes do; O(s²) for a decision value, as of `predict` and `test_then_train`, and for an update; O(s²)
    memory.

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
        Most rows to keep ("dual"): when there is no room, the oldest goes. Cost and memory are then bounded, but
        Theorem 8 is lost: it needs every mistake.

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

    def __init__(
        self, *, relation: Any = "pairwise", a: float = 1.0, kernel: Any = "linear", gamma: float = 1.0,
        form: str = "dual", budget: int | None = None,
    ) -> None:  # fmt: skip
        self.relation = relation
        self.a = a
        self.kernel = kernel
        self.gamma = gamma
        self.form = form
        self.budget = budget

    @property
    def _is_primal(self) -> bool:
        return self.form == "primal"

    def _settings(self) -> dual.Settings | primal.Settings:
        if not (self.a > 0 and math.isfinite(self.a)):
            raise ValueError(f"a must be a finite number > 0, got {self.a}")
        if self.form not in ("dual", "primal"):
            raise ValueError(f"form must be 'dual' or 'primal', got {self.form!r}")
        kernel, most = self._kernel(), self._most()
        if not self._is_primal:
            return dual.Settings(float(self.a), self._rates(), kernel, most)
        if self.kernel != "linear" or self.budget is not None:
            raise ValueError("form='primal' needs kernel='linear' and no budget; use form='dual'")
        return primal.Settings(float(self.a), self._rates(), self._is_pooled)

    @property
    def _is_pooled(self) -> bool:
        relation = self._resolved()
        return isinstance(relation, Constant) and math.isinf(relation.b)

    def _allocate(self, n_tasks: int, n_features: int) -> dual.State | primal.State:
        if self._is_primal:
            return primal.allocate(self._is_pooled, n_tasks, n_features, self._state)
        rows = self._room.rows
        return dual.State(
            empty(self._room), np.zeros((rows, rows)), np.zeros(rows), np.zeros(rows), np.zeros(n_tasks, np.int64),
            np.zeros(2, np.int64),
        )  # fmt: skip

    def _loops(self) -> tuple[Any, Any]:
        return (primal.learn, primal.decide) if self._is_primal else (dual.learn, dual.decide)

    # ---- hyper-parameters are part of the matrix ---------------------------------------------------------

    def _current(self) -> Any:
        if self._state is not None and not all(map(_same, self._matrix_of(), self._learnt_with)):
            raise ValueError("only budget can change after the first row: the others shape the matrix")
        return super()._current()

    def _keep(self, settings: Any) -> None:
        super()._keep(settings)
        self._learnt_with = self._matrix_of()

    def _matrix_of(self) -> tuple[Any, ...]:
        return self.relation, self.a, self.kernel, self.gamma, self.form

    # ---- tasks come and go -------------------------------------------------------------------------------

    def _reserve(self, n_tasks: int, n_features: int) -> None:
        if self._is_primal:  # no spare features: the matrix is square in them
            have = self._capacity if self._state is not None else (0, 0)
            if (n_tasks, n_features) != (min(n_tasks, have[0]), min(n_features, have[1])):
                self._enlarge(max(n_tasks, have[0]), max(n_features, have[1]))
        else:
            super()._reserve(n_tasks, n_features)

    def _call(self, loop: int, rounds: Rounds, decisions: FloatArray) -> Any:
        if not self._is_primal:
            return super()._call(loop, rounds, decisions)
        settings, first = self._current(), 0
        for last in self._ends(rounds) if loop == 0 else [len(rounds.task)]:
            piece = cut(rounds, first, int(last))
            if loop == 0:
                self._let_in(piece)
            call(self._code[loop], piece, settings, self._state, decisions[first:last], self.dtype)
            first = int(last)
        return None

    def _prepare(self, rounds: Rounds) -> None:
        super()._prepare(rounds)
        self._let_in(rounds)

    def _ends(self, rounds: Rounds) -> IntArray:
        """A round that brings tasks begins a call: the matrix is formed anew before it."""
        known = np.maximum.accumulate(np.maximum(rounds.task, self._state.clock[TASKS] - 1))
        rows = np.flatnonzero(np.diff(known)) + 1
        starts = rounds.starts[np.searchsorted(rounds.starts, rows, "right") - 1]
        return np.append(np.unique(starts[starts > 0]), len(known))

    def _let_in(self, rounds: Rounds) -> None:
        n_tasks = int(rounds.task[: rounds.starts[1]].max()) + 1
        if n_tasks > self._state.clock[TASKS]:
            self._enter(self._state, n_tasks)

    def _enter(self, state: Any, n_tasks: int) -> None:
        if self._is_primal:
            primal.enter(self._current(), state, self._resolved(), n_tasks)
        else:
            state.clock[TASKS] = n_tasks
            self._form_anew(state, n_tasks)

    def _leave(self, state: Any, k: int, n_tasks: int) -> None:
        if not self._is_primal:
            super()._leave(state, k, n_tasks)
            self._form_anew(state, n_tasks - 1)
        elif not self._is_pooled:
            primal.leave(state, k, n_tasks)

    def _form_anew(self, state: Any, n_tasks: int) -> None:
        if state.support.extent[STORED]:
            dual.factorise(self._current(), state, n_tasks, self._gram())

    # ---- what the forms keep -----------------------------------------------------------------------------

    def _trimmed(self) -> Any:
        return Learner._trimmed(self) if self._is_primal else super()._trimmed()

    def _restore(self, header: dict[str, Any], arrays: Any) -> None:
        (Learner if self._is_primal else SupportLearner)._restore(self, header, arrays)

    def _stored(self, name: str) -> Support:
        if self._is_primal:
            raise AttributeError(f"form='primal' keeps no rows, so there is no {name}")
        return super()._stored(name)

    @property
    def relation_(self) -> FloatArray:
        """(n_tasks, n_tasks) the rates B = A^-1 of the tasks that there are."""
        if not self._is_primal:
            return super().relation_
        n_tasks = len(self.tasks_)
        prior = self._fitted("relation_").prior[:n_tasks, :n_tasks]
        return np.full((n_tasks, n_tasks), self.a / prior[0, 0]) if self._is_pooled else self.a * np.linalg.inv(prior)


def _same(now: Any, then: Any) -> bool:
    return now is then or (isinstance(now, str | int | float) and isinstance(then, str | int | float) and now == then)
