"""Multitask Perceptron (Cavallanti, Cesa-Bianchi, Gentile, JMLR 2010, section 3, figure 1).

On a mistake on (x, y) of task i, every task j moves by its rate:  w_j <- w_j + y B[j, i] x,  B = A^-1.
The mistake is one case of a gradient step, w_j <- w_j - eta l'(f, y) B[j, i] x, which gives the other losses.

Constant matrices (eqs. 4 and 5, B = a I + (1 - a)/K 11^T) need no matrix: with v_i the sum of task i's own
steps and s the sum of all,  w_i = a v_i + (1 - a)/K s,  so an example costs O(nnz) whatever K is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from shoal import relations
from shoal.engine import losses
from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel
from shoal.engine.intrinsics import on_stack
from shoal.engine.rounds import Rounds
from shoal.engine.rows import ROUNDS, TASKS, add, dot, open_round
from shoal.engine.task_weights.lookahead import Ahead, nothing_ahead
from shoal.engine.task_weights.weights import (
    DENSE_FIRST,
    DENSE_MOST,
    Own,
    OwnWeights,
    as_matrix,
    fetch_own,
    fits,
    new_own,
    own_add,
    own_dot,
    own_dot_and,
    touch,
    touch_all,
)
from shoal.learner import Classifier, Learner, Regressor
from shoal.model.validation import BAD, good_until
from shoal.online import _interaction

LEARN = 0  # of the loops


class Settings(NamedTuple):
    """Hyper-parameters of the constant relations."""

    loss: int
    eta: float
    sqrt_step: bool  # divide eta by sqrt(t)
    epsilon: float
    b: float
    b_is_n_tasks: bool


class State(NamedTuple):
    """Sums of steps; rows of tasks are contiguous."""

    shared: FloatArray  # (features,) s, or empty if tasks are independent
    own: Own  # (tasks, features) v, or nothing if tasks are pooled
    updates: IntArray  # (tasks,)
    clock: IntArray  # (2,) tasks, rounds


@kernel(entry=True)
def shares(settings: Settings, n_tasks: int) -> tuple[float, float]:
    """The weights of v_i and of s in w_i: B as printed, or B / max_i B_ii for gradient steps."""
    a = 1.0 / (1.0 + (n_tasks if settings.b_is_n_tasks else settings.b))
    own, shared = a, (1.0 - a) / n_tasks  # eq. 5
    if settings.loss == losses.PERCEPTRON:
        return own, shared
    return own / (own + shared), shared / (own + shared)


@kernel
def margin(rounds: Rounds, row: int, own: float, shared: float, state: State, ahead: Ahead) -> float:
    """<w_i, x> with w_i = own v_i + shared s; an unseen task has v_i = 0."""
    if own > 0.0 and shared > 0.0 and rounds.task[row] >= 0:
        v, s = own_dot_and(rounds, row, rounds.task[row], state.own, ahead, state.shared)
        return own * v + shared * s
    f = 0.0
    if own > 0.0 and rounds.task[row] >= 0:
        f += own * own_dot(rounds, row, rounds.task[row], state.own, ahead)
    if shared > 0.0:
        f += shared * dot(rounds, row, state.shared)
    return f


@kernel(entry=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    own, shared = shares(settings, max(state.clock[TASKS], 1))
    ahead = on_stack()
    nothing_ahead(ahead)
    good = 0
    for row in range(len(decisions)):
        good = good_until(rounds, good, row + 1)
        if good == BAD:
            return BAD
        decisions[row] = margin(rounds, row, own, shared, state, ahead)
    return len(decisions)


@kernel(entry=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    ahead = on_stack()
    n_tasks, own, shared = 0, 0.0, 0.0
    nothing_ahead(ahead)
    good = rounds.starts[0]
    for r in range(len(rounds.starts) - 1):
        first, last = rounds.starts[r], rounds.starts[r + 1]
        good = good_until(rounds, good, last)
        if good == BAD:
            return BAD
        if not fits(rounds, first, last, state.own):
            return r
        open_round(rounds, r, state.clock)
        if state.clock[TASKS] != n_tasks:
            n_tasks = state.clock[TASKS]
            own, shared = shares(settings, n_tasks)
        step = settings.eta / math.sqrt(state.clock[ROUNDS]) if settings.sqrt_step else settings.eta
        if len(decisions) > 0 and last - first > 1:  # the whole round is decided before any of it is learnt
            for row in range(first, last):
                decisions[row] = margin(rounds, row, own, shared, state, ahead)
        for row in range(first, last):
            f = margin(rounds, row, own, shared, state, ahead)
            if len(decisions) > 0 and last - first == 1:
                decisions[row] = f
            slope = losses.derivative(settings.loss, f, rounds.y[row], settings.epsilon)
            if slope == 0.0:
                continue
            move = losses.step_along(settings.loss, -step * slope, rounds, row)
            if own > 0.0:
                fetch_own(rounds, row, state.own)  # while the shared weights learn
            if shared > 0.0:
                add(rounds, row, move, state.shared)
            if own > 0.0:
                own_add(rounds, row, move, rounds.task[row], state.own)
                if settings.loss == losses.PERCEPTRON:
                    touch(rounds, row, rounds.task[row], state.own)
                else:
                    touch_all(rounds.task[row], state.own)
            state.updates[rounds.task[row]] += 1
    return len(rounds.starts) - 1


class _Multitask(OwnWeights):
    """What the classifier and the regressor share."""

    relation: Any
    loss: str
    eta: float
    step: str
    epsilon = 0.0
    _losses: dict[str, int]
    _with_bits = True
    _checks_rows = True

    def _most_dense(self) -> int:
        return DENSE_FIRST if self.loss == "perceptron" else DENSE_MOST

    def _settings(self) -> Any:
        if self.loss not in self._losses:
            raise ValueError(f"loss must be one of {sorted(self._losses)}, got {self.loss!r}")
        if not (self.eta > 0 and math.isfinite(self.eta)):
            raise ValueError(f"eta must be a finite number > 0, got {self.eta}")
        if self.step not in ("constant", "sqrt"):
            raise ValueError(f"step must be 'constant' or 'sqrt', got {self.step!r}")
        if not self.epsilon >= 0:
            raise ValueError(f"epsilon must be a number >= 0, got {self.epsilon}")
        loss = self._losses[self.loss]
        step = (loss, float(self.eta), self.step == "sqrt", float(self.epsilon))
        relation = self._resolved()
        if isinstance(relation, relations.Constant):
            return Settings(*step, relation.b, relation.b_is_n_tasks)
        factors = relation.factors(unit_own_rate=loss != losses.PERCEPTRON)
        return _interaction.Settings(*step, factors)

    def _resolved(self) -> relations.Relation:
        """The relation, resolved once per value of the hyper-parameter."""
        cached = self.__dict__.get("_relation_cache")
        if cached is None or cached[0] is not self.relation:
            cached = self._relation_cache = (self.relation, relations.resolve(self.relation))
        resolved: relations.Relation = cached[1]
        return resolved

    def _allocate(self, n_tasks: int, n_features: int) -> State | _interaction.State:
        relation = self._resolved()
        updates, clock, dtype = np.zeros(n_tasks, np.int64), np.zeros(2, np.int64), self._weights_type()
        if isinstance(relation, relations.Given):
            return _interaction.State(np.zeros((n_features, n_tasks), dtype), updates, clock)
        pooled, independent = math.isinf(relation.b), relation.b == 0 and not relation.b_is_n_tasks
        shared = np.zeros(0 if independent else n_features, dtype)
        own = new_own(n_tasks, 0, dtype) if pooled else self._new_own(n_tasks, n_features)
        return State(shared, own, updates, clock)

    def _loops(self) -> tuple[Any, Any]:
        constant = isinstance(self._resolved(), relations.Constant)
        return (learn, decide) if constant else (_interaction.learn, _interaction.decide)

    def _initial_tasks(self) -> list[Any]:
        relation = self._resolved()
        return list(relation.tasks) if isinstance(relation, relations.Given) else []

    def baselines(self) -> dict[str, Learner]:
        parameters = self.get_params(deep=False)
        return {name: type(self)(**{**parameters, "relation": name}) for name in ("independent", "pooled")}

    @property
    def coef_(self) -> FloatArray:
        """(n_tasks, n_features) the weights w_i."""
        state, settings = self._fitted("coef_"), self._current()
        n_tasks, d = len(self.tasks_), self.n_features_in_
        if isinstance(state, _interaction.State):
            return np.ascontiguousarray(state.weights[:d, :n_tasks].T, np.float64)
        own, shared = shares(settings, max(n_tasks, 1))
        weights = np.zeros((n_tasks, d))
        if own > 0:
            weights += own * as_matrix(state.own, n_tasks, d)
        if shared > 0:
            weights += shared * state.shared[:d]
        return weights

    @property
    def relation_(self) -> FloatArray:
        """(n_tasks, n_tasks) the rates B = A^-1: on a mistake of task i, task j moves by B[j, i]."""
        self._fitted("relation_")
        return self._resolved().rates(len(self.tasks_))


class MultitaskPerceptron(_Multitask, Classifier):
    """Perceptrons that learn from each other's mistakes through an interaction matrix.

    On a mistake of task i (ŷ ≠ y) every task j makes the step ``w_j <- w_j + eta y B[j, i] x`` with B = A^-1;
    with another `loss`, each example makes ``w_j <- w_j - eta l'(f, y) B[j, i] x / max_k B[k, k]``, so that
    `eta` is the step of a task on its own example whatever B is. Cost O(nnz) an example for the constant
    relations whatever the number of tasks K; for matrices and graphs O(nnz) to predict, O(K nnz) to update.

    Parameters
    ----------
    relation : {"pairwise", "independent", "pooled"}, float, graph, matrix or object of `shoal.relations`
        "pairwise" is eq. 4 (the own task moves twice as far as the others), a number b >= 0 eq. 5 (b = 0
        independent, b = K pairwise, b -> infinity pooled). A task graph (edge list, networkx graph, adjacency
        matrix, dense or sparse) stands for A = I + Laplacian (section 3.3); a matrix with a non-zero diagonal
        is A itself, positive definite. Graphs and matrices name all their tasks.
    loss : {"perceptron", "hinge", "squared_hinge", "logistic"}
        "perceptron" is the paper's mistake-driven rule.
    eta : float > 0
        Step size. With the Perceptron loss and a constant step it changes no prediction.
    step : {"constant", "sqrt"}
        "sqrt" divides eta by the square root of the number of rounds so far.
    dtype : {"float64", "float32"}
        What weights are stored in. float32 takes half the memory; sums are float64 all the same.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) weights
    relation_ : (n_tasks, n_tasks) the rates B
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_, task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, or a task that a given graph or matrix does not name.

    Notes
    -----
    Rates that depend on K use the tasks that exist at the row. An unseen task is answered from the shared
    sum, ``(1 - a)/K s``; under a given graph or matrix, where every task is known, by the mean of all tasks.
    Mistakes are bounded by Theorem 1: `shoal.theory.perceptron_mistake_bound`. Over rounds of all tasks "pairwise" is
    the papers' FOML, read as fixed weights with which a task's mistake moves all (for the other reading, in which a
    task that errs moves by all rows of the round, see `OSMTL`). Squared losses answer long rows by
    longer weights; no step of theirs changes a weight by more than 1e140, so that all numbers stay finite.

    References
    ----------
    Cavallanti, Cesa-Bianchi, Gentile. Linear Algorithms for Online Multitask Classification. JMLR 11, 2010:
    figure 1, Theorem 1, eqs. 4-6.

    Examples
    --------
    >>> from shoal import MultitaskPerceptron
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> for relation in ("independent", "pairwise", "pooled"):
    ...     learner = MultitaskPerceptron(relation=relation)
    ...     decisions = learner.test_then_train(data.X, data.y, data.task)
    ...     print(f"{relation:12} error {((decisions >= 0) != (data.y > 0)).mean():.3f}")
    independent  error 0.305
    pairwise     error 0.162
    pooled       error 0.166
    """

    _losses = losses.CLASSIFICATION

    def __init__(
        self,
        *,
        relation: Any = "pairwise",
        loss: str = "perceptron",
        eta: float = 1.0,
        step: str = "constant",
        dtype: Any = "float64",
    ) -> None:
        self.dtype = dtype
        self.relation = relation
        self.loss = loss
        self.eta = eta
        self.step = step


class MultitaskRegressor(_Multitask, Regressor):
    """Gradient steps for real targets, shared through an interaction matrix like `MultitaskPerceptron`'s.

    Every example of task i makes ``w_j <- w_j - eta l'(f, y) B[j, i] x / max_k B[k, k]`` for every task j.
    Cost, answers for unseen tasks and the bound on a squared loss's step as in `MultitaskPerceptron`.

    Parameters
    ----------
    relation : as in `MultitaskPerceptron`
    loss : {"squared", "epsilon_insensitive"}
        (1/2)(f - y)^2, or [|f - y| - epsilon]_+.
    eta : float > 0
        Step size. With the squared loss it should stay below 1 / ||x||^2.
    epsilon : float >= 0
        Half-width of the zone without loss of "epsilon_insensitive".
    step : {"constant", "sqrt"}
        "sqrt" divides eta by the square root of the number of rounds so far.
    dtype : {"float64", "float32"}
        What weights are stored in. float32 takes half the memory; sums are float64 all the same.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) weights
    relation_ : (n_tasks, n_tasks) the rates B
    tasks_, n_features_in_, feature_names_in_, n_updates_, task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, or a task that a given graph or matrix does not name.

    References
    ----------
    The multitask kernel of Cavallanti et al. (JMLR 11, 2010, eq. 3) with the gradient of a regression loss.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import MultitaskRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(3000, 5)), rng.integers(30, size=3000)
    >>> w = rng.normal(size=5) + 0.3 * rng.normal(size=(30, 5))
    >>> y = np.einsum("ij,ij->i", X, w[task])
    >>> for relation in ("independent", "pairwise"):
    ...     predictions = MultitaskRegressor(relation=relation, eta=0.05).test_then_train(X, y, task)
    ...     print(f"{relation:12} RMSE {np.sqrt(np.mean((predictions - y) ** 2)):.2f}")
    independent  RMSE 0.76
    pairwise     RMSE 0.40
    """

    _losses = losses.REGRESSION

    def __init__(
        self, *, relation: Any = "pairwise", loss: str = "squared", eta: float = 0.1, epsilon: float = 0.1,
        step: str = "constant", dtype: Any = "float64",
    ) -> None:  # fmt: skip
        self.dtype = dtype
        self.relation = relation
        self.loss = loss
        self.eta = eta
        self.epsilon = epsilon
        self.step = step
