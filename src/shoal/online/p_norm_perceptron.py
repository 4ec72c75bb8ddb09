"""Multitask p-norm Perceptron (Cavallanti, Cesa-Bianchi, Gentile, JMLR 2010, section 4.1).

The tasks' sums of mistakes V (d, K) grow by the multitask Perceptron rule, and its gradient link predicts:

    W = grad (1/2)||V||_p^2    f = sum_j B[j, i] <w_j, x>    on a mistake of task i:  v_j <- v_j + y B[j, i] x, all j

For p = 2 ln max(K, d) mistakes depend on the dimension by its logarithm only: made for sparse comparators.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from shoal import relations
from shoal.classifier import Classifier
from shoal.engine import losses
from shoal.engine.arrays import FloatArray
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import FEATURES, TASKS, copy_to, open_round
from shoal.model.algorithm import ONE_STEP, Algorithm, Setup, Size
from shoal.model.parameters import Params, at_least, one_of, or_auto
from shoal.online import _p_norm
from shoal.online._p_norm import FACTOR, OWN, SHARED, P, State
from shoal.online.common.relation_rates import RELATION, Rates, Related, named_tasks, rates_of, shares
from shoal.relations import rates_column

AUTO = 0.0


class Settings(NamedTuple):
    """Hyper-parameters."""

    p: float  # AUTO: 2 ln max(K, d)
    root: bool  # B^1/2 in place of B, everywhere
    rates: Rates  # of a given relation already those of the variant


@kernel(entry=True)
def prepare(settings: Settings, state: State) -> None:
    """Follow what depends on the numbers of tasks and features: auto p and the shares of a constant relation."""
    K = max(state.counters[TASKS], 1)
    p = settings.p if settings.p != AUTO else max(2.0, 2.0 * math.log(max(K, state.counters[FEATURES])))
    own, shared = 1.0, 0.0
    if len(settings.rates.mean) == 0:  # B = a I + (1 - a)/K 11^T, and B^1/2 the same with sqrt(a)
        own, shared = shares(settings.rates, K)
        if settings.root:
            own = math.sqrt(own)
            shared = (1.0 - own) / K
    link = state.link
    if link[P] != p or link[OWN] != own or link[SHARED] != shared:
        _p_norm.rebuild(state, p, own, shared)


@kernel
def margin(rounds: Rounds, row: int, settings: Settings, state: State, column: FloatArray) -> float:
    """sum_j B[j, i] <w_j, x>; `column` receives B[:, i] of a given relation."""
    dense, k, link = rounds.width > 0, rounds.task[row], state.link
    start = row * rounds.width if dense else rounds.indptr[row]
    n = rounds.width if dense else rounds.indptr[row + 1] - start
    f = 0.0
    if len(settings.rates.mean) == 0:
        for i in range(n):
            a, x = i if dense else int(rounds.indices[start + i]), rounds.values[start + i]
            if link[OWN] > 0.0:
                f += x * link[OWN] * _p_norm.power(_p_norm.entry(state, a, k), link)
            if link[SHARED] > 0.0:
                f += x * link[SHARED] * state.powers[a, 0]
        return float(f * link[FACTOR])
    load_column(settings, k, column)
    for i in range(n):
        a, x = i if dense else int(rounds.indices[start + i]), rounds.values[start + i]
        for j in range(len(column)):
            f += x * column[j] * state.powers[a, j]
    return float(f * link[FACTOR])


@kernel(entry=True, allocates=True)
def load_column(settings: Settings, k: int, column: FloatArray) -> None:
    """column <- B[:, k]; the mean of all columns for an unseen task."""
    if k >= 0:
        rates_column(settings.rates.factors, k, column)
    else:
        copy_to(column, settings.rates.mean)


@kernel
def step(rounds: Rounds, row: int, settings: Settings, state: State, column: FloatArray) -> None:
    """v_j <- v_j + y B[j, i] x for all j; `column` still holds B[:, i]."""
    dense, k, y = rounds.width > 0, rounds.task[row], rounds.y[row]
    start = row * rounds.width if dense else rounds.indptr[row]
    n = rounds.width if dense else rounds.indptr[row + 1] - start
    for i in range(n):
        a, change = np.uint32(i if dense else rounds.indices[start + i]), y * rounds.values[start + i]
        if len(settings.rates.mean) > 0:
            for j in range(len(column)):
                state.own[a, j] += change * column[j]
        else:
            if state.own.shape[1] > 0:
                state.own[a, k] += change
            if len(state.shared) > 0:
                state.shared[a] += change
    _p_norm.changed(rounds, row, state)
    state.updates[k] += 1


@kernel(entry=True, allocates=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    column = np.empty(len(settings.rates.mean))
    for row in range(len(decisions)):
        decisions[row] = margin(rounds, row, settings, state, column)


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    column = np.empty(len(settings.rates.mean))
    for r in range(len(rounds.starts) - 1):
        first, last = open_round(rounds, r, state.counters)
        prepare(settings, state)
        if len(decisions) > 0 and last - first > 1:  # the whole round is decided before any of it is learned
            for row in range(first, last):
                decisions[row] = margin(rounds, row, settings, state, column)
        for row in range(first, last):
            f = margin(rounds, row, settings, state, column)
            if len(decisions) > 0 and last - first == 1:
                decisions[row] = f
            if losses.is_mistake(f, rounds.y[row]):
                step(rounds, row, settings, state, column)


def settings(p: Params) -> Settings:
    rates, root = rates_of(p.relation), p.variant == "sqrt"
    if root and len(rates.mean):
        B = _square_root(p.relation.rates(len(rates.mean)))
        rates = rates._replace(factors=relations.Factors(B, *rates.factors[1:-1], 1.0), mean=B.mean(axis=0))
    return Settings(p.p, root, rates)


def _square_root(B: FloatArray) -> FloatArray:
    """The symmetric B^1/2 of a positive definite B."""
    values, vectors = np.linalg.eigh(B)
    return np.ascontiguousarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def allocate(setup: Setup, size: Size) -> State:
    relation = setup.params.relation
    if isinstance(relation, relations.Given):
        return _p_norm.empty(*size, own=True, shared=False, given=True)
    independent = relation.b == 0 and not relation.b_is_n_tasks
    return _p_norm.empty(*size, own=not math.isinf(relation.b), shared=not independent, given=False)


def enter(setup: Setup, state: State, n_tasks: int) -> None:
    state.counters[TASKS] = n_tasks
    prepare(setup.settings, state)


def left(setup: Setup, state: State, n_tasks: int) -> None:
    """V is that of the tasks that are left."""
    prepare(setup.settings, state)
    _p_norm.rebuild(state, *state.link[: SHARED + 1])


def check(setup: Setup, state: State, size: Size) -> None:
    if state.link[P] < 2.0 and state.link[P] != 0.0:
        raise ValueError(f"its p is {state.link[P]}, expected at least 2")


ALGORITHM = Algorithm[State](
    parameters={
        "relation": RELATION,
        "p": or_auto(at_least(2), AUTO),
        "variant": one_of(("printed", "sqrt")),
    },
    settings=settings,
    allocate=allocate,
    learn=learn,
    decide=decide,
    exchange="the norm is that of all tasks' sums together",
    no_weights=ONE_STEP,
    named_tasks=named_tasks,
    enter=enter,
    left=left,
    check=check,
)


class PNormPerceptron(Related, Classifier):
    """The multitask Perceptron under a p-norm: few mistakes where few of many features matter.

    On a mistake of task i (ŷ ≠ y) every task j moves by ``v_j <- v_j + y B[j, i] x`` with B = A^-1, and a row is
    answered by ``f = Σ_j B[j, i] <w_j, x>`` with ``w_ja = sign(v_ja) |v_ja|^(p-1) / ‖V‖_p^(p-2)``. Cost for the
    constant relations O(nnz) to predict, O(nnz K) to update; for matrices and graphs O(nnz K) for both. A new task
    changes all of V where b/K depends on K, which costs O(K d) once.

    Parameters
    ----------
    relation : as in `MultitaskPerceptron`
    p : float >= 2 or "auto"
        "auto": 2 ln max(K, d), at least 2, of the tasks and features that there are at the row; Theorem 6.
    variant : {"printed", "sqrt"}
        "printed" is the algorithm above; its p = 2 predicts with B² and is not the multitask Perceptron. "sqrt" puts
        B^½ in place of B (Remark 7), the p-norm Perceptron of the transformed rows; its p = 2 is `MultitaskPerceptron`.
    classes : two labels, optional
        Needed where the first label does not tell the other; see `partial_fit`.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) weights, W B or W B^½
    p_ : float, p in force
    relation_ : (n_tasks, n_tasks) the rates B
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_, task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, or a task that a given graph or matrix does not name.

    Notes
    -----
    V is that of the tasks which exist: when K grows, past mistakes count with the new b/K. An unseen task is
    answered like one that has made no mistake yet; under a given graph or matrix by the mean of all tasks. Mistakes
    are bounded by Theorem 6: `shoal.theory.p_norm_mistake_bound`.

    Odd rows: one wrong label moves the dual weights by one step, however sure the forecast was; a value of 1e6 in a row
    that is misjudged moves its weight by 1e6 such steps, which later rows do not take back.

    References
    ----------
    Cavallanti, Cesa-Bianchi, Gentile. Linear Algorithms for Online Multitask Classification. JMLR 11, 2010:
    section 4.1, Theorem 6, Remark 7.

    Examples
    --------
    Three of 200 features matter, to all ten tasks.

    >>> import numpy as np
    >>> from shoal import MultitaskPerceptron, PNormPerceptron
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.choice([-1.0, 1.0], size=(2000, 200)), rng.integers(10, size=2000)
    >>> y = np.sign(X[:, :3].sum(axis=1))
    >>> for learner in (MultitaskPerceptron(), PNormPerceptron(), PNormPerceptron(variant="sqrt")):
    ...     decisions = learner.test_then_train(X, y, task)
    ...     print(f"{learner!r:31} error {((decisions >= 0) != (y > 0)).mean():.3f}")
    MultitaskPerceptron()           error 0.165
    PNormPerceptron()               error 0.018
    PNormPerceptron(variant='sqrt') error 0.040
    """

    algorithm = ALGORITHM

    def __init__(
        self, *, relation: Any = "pairwise", p: float | str = "auto", variant: str = "printed", classes: Any = None
    ) -> None:
        self.relation = relation
        self.p = p
        self.variant = variant
        self.classes = classes

    @property
    def p_(self) -> float:
        """The p in force."""
        return float(self._state("p_").link[P])

    @property
    def coef_(self) -> FloatArray:
        """(n_tasks, n_features) weights: the columns of W B, or W B^1/2."""
        state, n_tasks, d = self._state("coef_"), len(self.tasks_), self.n_features_in_
        p, own, shared, scale, factor = state.link
        V = np.zeros((d, n_tasks))
        if own > 0:
            V += own * state.own[:d, :n_tasks]
        if shared > 0:
            V += shared * state.shared[:d, None]
        W = factor * np.sign(V) * (np.abs(V) / scale) ** (p - 1)
        relation = self._setup().params.relation
        if isinstance(relation, relations.Given):
            B = relation.rates(n_tasks)
            return np.ascontiguousarray((W @ (_square_root(B) if self.variant == "sqrt" else B)).T)
        return np.ascontiguousarray((own * W + shared * W.sum(axis=1, keepdims=True)).T)
