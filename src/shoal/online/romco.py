"""Robust Online Multi-Task learning with Correlative and persOnalized structures (Yang, Zhao, Gao, TKDE 2017).

W = U + V: U is common to the tasks and of low rank, V personal to the few tasks that are unlike the others. In a
round in which some task has a loss, with the gradient column g_k = -C 1[y_k <w_k, x_k> < 1] y_k x_k (eqs. 13, 14),

    U <- prox_{eta lambda1 g}(U - eta G)          v_k <- [1 - rho lambda2 / ||vh_k||]_+ vh_k,   vh_k = v_k - rho g_k

where g is the nuclear norm (algorithm 1, eq. 16) or log det(I + U^T U) (algorithm 2, eq. 21). Either prox shrinks
singular values, s_i -> f_i s_i, and is a K x K matrix from the right: with the eigenvectors Q of the Gram matrix
U^T U, U <- U Q diag(f) Q^T. So no round needs an SVD of U nor all of its rows (`_lazy_rows`).
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from shoal.classifier import Classifier
from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.axes import TASK
from shoal.engine.compile import kernel
from shoal.engine.losses import is_mistake
from shoal.engine.rounds import Rounds
from shoal.engine.rows import ROUNDS, TASKS, squared_norm
from shoal.learner import Learner
from shoal.model.algorithm import Algorithm, Setup, Size
from shoal.model.parameters import Params, non_negative, one_of, positive
from shoal.online import _lazy_rows as lazy
from shoal.online._lazy_rows import Rows
from shoal.online._shrinkage import logdet_factor, nuclear_factor
from shoal.online.multitask_perceptron import MultitaskPerceptron


class Settings(NamedTuple):
    """Hyper-parameters."""

    logdet: bool
    eta: float
    rho: float
    lambda1: float
    lambda2: float
    C: float
    on_mistakes: bool
    sqrt_step: bool


class State(NamedTuple):
    """Weights, and what the shrinkage must know of them."""

    rows: Rows  # of U and V
    gram: Annotated[FloatArray, TASK, TASK]  # U^T U
    personal: Annotated[FloatArray, TASK]  # ||v_k||^2
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (3,) tasks, rounds, features


@kernel(entry=True, allocates=True, inline=False)
def flush(state: State) -> None:
    """Let every row feel all transforms; U^T U and ||v_k||^2 anew, so that rounding errors do not add up."""
    lazy.flush(state.rows, state.counters[TASKS])
    measure(state)


@kernel(allocates=True, inline=False)
def measure(state: State) -> None:
    """U^T U and ||v_k||^2 of rows with nothing pending."""
    K = state.counters[TASKS]
    for i in range(K):
        state.personal[i] = 0.0
        for k in range(K):
            state.gram[i, k] = 0.0
    for j in range(len(state.rows.weights)):
        u, v = state.rows.weights[j, lazy.COMMON], state.rows.weights[j, lazy.PERSONAL]
        if state.rows.stamps[j] != lazy.UNTOUCHED:
            for i in range(K):
                for k in range(K):
                    state.gram[i, k] += u[i] * u[k]
                state.personal[i] += v[i] * v[i]


@kernel(entry=True, allocates=True, inline=False)
def enter(state: State, n_tasks: int) -> None:
    """New tasks have u = v = 0; what rows remember is laid out for `side_of` tasks."""
    if lazy.side_of(n_tasks) > lazy.side_of(state.counters[TASKS]):
        flush(state)
    state.counters[TASKS] = max(state.counters[TASKS], n_tasks)


@kernel
def push_common(rounds: Rounds, row: int, k: int, step: float, z: FloatArray, state: State) -> None:
    """The Gram matrix of U with u_k + step x, from the present U^T x."""
    K = state.counters[TASKS]
    lazy.project(state.rows, rounds, row, k, K, z)
    for i in range(K):
        h = step * lazy.through(state.rows, z, i, K)
        state.gram[i, k] += h
        state.gram[k, i] += h
    state.gram[k, k] += step * step * squared_norm(rounds, row)


@kernel
def shrink_personal(k: int, inner: float, norm: float, step: float, threshold: float, state: State) -> float:
    """Eq. 18 on v_k + step x, which is not written yet: shrinks v_k and returns the step that x has now."""
    squared = state.personal[k] + step * (2.0 * inner + step * norm)  # ||vh_k||^2
    length = math.sqrt(max(0.0, squared))
    if length <= threshold:
        if state.personal[k] > 0.0:
            state.rows.scales[k] = 0.0
        state.personal[k] = 0.0
        return 0.0
    factor = 1.0 - threshold / length
    state.rows.scales[k] *= factor
    state.personal[k] = (length - threshold) ** 2
    return step * factor


@kernel(allocates=True, inline=False)
def from_eigen(Q: FloatArray, values: FloatArray) -> FloatArray:
    """Q diag(values) Q^T."""
    scaled, transposed = np.empty(Q.shape), np.empty(Q.shape)
    for i in range(len(values)):
        for j in range(len(values)):
            scaled[i, j] = Q[i, j] * values[j]
            transposed[j, i] = Q[i, j]
    product: FloatArray = np.dot(scaled, transposed)
    return product


@kernel(allocates=True, inline=False)
def shrink_common(tau: float, logdet: bool, state: State) -> bool:
    """The prox of tau g: singular values s_i of U become f_i s_i, so A <- A Q diag(f) Q^T. True if some f_i is 0.

    Columns that are still zero stay out of it and exactly zero: noise would decide what a margin of 0 predicts.
    """
    K, rows = state.counters[TASKS], state.rows
    tasks = np.array([k for k in range(K) if state.gram[k, k] > 0.0])
    n = len(tasks)
    if n == 0:
        return False
    gram, columns, inverse = np.empty((n, n)), np.empty((K, n)), np.empty((n, K))
    for i in range(n):
        for j in range(n):
            gram[i, j] = state.gram[tasks[i], tasks[j]]
        for k in range(K):
            columns[k, i] = rows.transform[k, tasks[i]]
            inverse[i, k] = rows.inverse[tasks[i], k]
    squares, Q = np.linalg.eigh(gram)
    factors = np.empty(n)
    truncated = False
    for i in range(n):
        s = math.sqrt(max(squares[i], 0.0))
        factors[i] = logdet_factor(s, tau) if logdet else nuclear_factor(s, tau)  # eq. 21, eq. 16
        squares[i] = (factors[i] * s) ** 2
        truncated |= factors[i] == 0.0
    gram = from_eigen(Q, squares)
    columns = np.dot(columns, from_eigen(Q, factors))
    if not truncated:
        inverse = np.dot(from_eigen(Q, 1.0 / factors), inverse)
    for i in range(n):
        for j in range(n):
            state.gram[tasks[i], tasks[j]] = gram[i, j]
        for k in range(K):
            rows.transform[k, tasks[i]] = columns[k, i]
            rows.inverse[tasks[i], k] = inverse[i, k]
    return truncated


@kernel(entry=True, allocates=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    K, capacity = state.counters[TASKS], state.rows.weights.shape[2]
    z, copy, spare = np.empty(capacity), np.empty((2, capacity)), np.empty(capacity)
    for row in range(len(decisions)):
        k = rounds.task[row]
        f = lazy.project_asleep(state.rows, rounds, row, k, K, z, copy, spare)
        if k >= 0:
            f += lazy.through(state.rows, z, k, K)
        else:  # an unseen task: the mean of what is common
            for i in range(K):
                f += lazy.through(state.rows, z, i, K) / K
        decisions[row] = f


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    capacity = state.rows.weights.shape[2]
    spare, z, margins, inner = np.empty(capacity), np.empty(capacity), np.empty(capacity), np.empty(capacity)
    for r in range(len(rounds.starts) - 1):
        first, last = rounds.starts[r], rounds.starts[r + 1]
        enter(state, rounds.task[first:last].max() + 1)
        state.counters[ROUNDS] += 1
        K, rows = state.counters[TASKS], state.rows
        due = False
        for row in range(first, last):
            k, y = rounds.task[row], rounds.y[row]
            lazy.apply_pending_in_row(rows, rounds, row, K, spare)
            inner[k] = lazy.project(rows, rounds, row, k, K, z)
            margins[k] = f = lazy.through(rows, z, k, K) + inner[k]
            if len(decisions) > 0:
                decisions[row] = f
            due |= is_mistake(f, y) if settings.on_mistakes else y * f < 1.0
        if not due:
            continue
        root = math.sqrt(state.counters[ROUNDS]) if settings.sqrt_step else 1.0
        eta, rho = settings.eta / root, settings.rho / root
        for row in range(first, last):
            k, y = rounds.task[row], rounds.y[row]
            norm = squared_norm(rounds, row)
            push = settings.C * y if y * margins[k] < 1.0 and norm > 0.0 else 0.0  # the gradient g_k is -push x
            personal = shrink_personal(k, inner[k], norm, rho * push, rho * settings.lambda2, state)
            if push != 0.0:
                push_common(rounds, row, k, eta * push, z, state)
                lazy.add(rows, rounds, row, k, K, eta * push, personal, spare)
                state.updates[k] += 1
        truncated = False
        if settings.lambda1 > 0.0:
            truncated = shrink_common(eta * settings.lambda1, settings.logdet, state)
        if lazy.end_update(rows, truncated, K):
            measure(state)


def settings(p: Params) -> Settings:
    return Settings(
        p.penalty == "logdet", p.eta, p.rho, p.lambda1, p.lambda2, p.C, p.trigger == "mistake", p.step == "sqrt"
    )


def allocate(setup: Setup, size: Size) -> State:
    n_tasks = size.tasks
    return State(
        lazy.allocate(*size), np.zeros((n_tasks, n_tasks)), np.zeros(n_tasks), np.zeros(n_tasks, np.int64),
        np.zeros(3, np.int64),
    )  # fmt: skip


def leave(setup: Setup, state: State, k: int) -> None:
    """Every transform mixes all tasks, so all are applied before one goes."""
    flush(state)
    state.rows.products[:] = 0.0
    state.rows.fades[:] = 0.0


def check(setup: Setup, state: State, size: Size) -> None:
    lazy.check(state.rows)


ALGORITHM = Algorithm[State](
    parameters={
        "penalty": one_of(("nuclear", "logdet")),
        "eta": positive(),
        "rho": positive(),
        "lambda1": non_negative(),
        "lambda2": non_negative(),
        "C": positive(),
        "trigger": one_of(("margin", "mistake")),
        "step": one_of(("constant", "sqrt")),
    },
    settings=settings,
    allocate=allocate,
    learn=learn,
    decide=decide,
    exchange="the common part is shrunk as one matrix over all tasks, which no part of the tasks can do by itself",
    no_weights="a round is one step of all tasks on the sum of their losses, in which its paper weighs no row",
    simultaneous=True,
    enter=lambda setup, state, n_tasks: enter(state, n_tasks),
    leave=leave,
    check=check,
    shared=lazy.decide_common,
)


class ROMCO(Classifier):
    """Robust online multi-task learning: a common part of low rank, and personal parts for the tasks that need one.

    With W = U + V, a round with a loss makes ``U <- prox(U - eta G)`` and ``v_k <- [1 - rho lambda2/||v̂_k||]_+ v̂_k``,
    ``v̂_k = v_k - rho g_k``, where ``g_k = -C y_k x_k`` for tasks with y f < 1. The prox shrinks the singular values
    of U: s to [s - eta lambda1]_+ ("nuclear"), or to the root of eq. 21 ("logdet"). All of U shrinks in such a
    round; of V the columns of the tasks that are present, those without loss too.
    Cost O(nnz K + K³) a round, nnz over its rows, plus O(K²) for a feature that is touched for the first time since
    the rank was last truncated. No work depends on the number of features.

    Parameters
    ----------
    penalty : {"nuclear", "logdet"}
        "nuclear" (ROMCO-NuCl) truncates the rank exactly; "logdet" (ROMCO-LogD) shrinks large singular values less
        and small ones more, but none to zero.
    eta, rho : float > 0
        Step sizes of U and of V: the smaller, the more of what was learned is retained.
    lambda1 : float >= 0
        Strength of the penalty on U. 0 leaves it alone; large values make U = 0.
    lambda2 : float >= 0
        Strength of the group lasso on V; large values make V = 0.
    C : float > 0
        Weight of the loss.
    trigger : {"margin", "mistake"}
        A round updates when some task has a hinge loss (the regret proof needs that), or only when some task errs.
        Either way all tasks with a loss push.
    step : {"constant", "sqrt"}
        "sqrt" divides eta and rho by the square root of the number of rounds so far.
    classes : two labels, optional
        Needed where the first label does not tell the other; see `partial_fit`.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) weights u_k + v_k
    coef_low_rank_, coef_task_ : (n_tasks, n_features) their two parts
    rank_ : rank of U
    outlier_tasks_ : ids of the tasks with v_k ≠ 0
    relation_ : None
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_, task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters.

    Notes
    -----
    An unseen task is answered by the mean of the common parts u_k. With "nuclear", constant steps and the trigger
    "margin" the regret is bounded: `shoal.theory.romco_regret_bound`. A round ends where a call ends, so other chunks
    are other rounds unless `rounds=` names them.

    Odd rows: one wrong label moves the weights by one step, however sure the forecast was; a value of 1e6 in a row that
    is misjudged moves its weight by 1e6 such steps, which later rows do not take back.

    References
    ----------
    Yang, Zhao, Gao. Robust Online Multi-Task Learning with Correlative and Personalized Structures. IEEE TKDE 29,
    2017: algorithms 1 and 2, eqs. 13-21, Lemma 3, Theorem 3.

    Examples
    --------
    >>> from shoal import ROMCO
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> data = data.interleaved(seed=0)
    >>> for lambda1 in (0.0, 0.1, 0.3):
    ...     learner = ROMCO(lambda1=lambda1, lambda2=1.0)
    ...     decisions = learner.test_then_train(data.X, data.y, data.task)
    ...     error = ((decisions >= 0) != (data.y > 0)).mean()
    ...     print(f"lambda1 {lambda1}  rank {learner.rank_:2}  error {error:.3f}")
    lambda1 0.0  rank 20  error 0.281
    lambda1 0.1  rank 18  error 0.242
    lambda1 0.3  rank  6  error 0.212
    """

    algorithm = ALGORITHM

    def __init__(
        self, *, penalty: str = "nuclear", eta: float = 0.1, rho: float = 0.1, lambda1: float = 0.01,
        lambda2: float = 0.01, C: float = 1.0, trigger: str = "margin", step: str = "constant", classes: Any = None,
    ) -> None:  # fmt: skip
        self.penalty = penalty
        self.eta = eta
        self.rho = rho
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.C = C
        self.trigger = trigger
        self.step = step
        self.classes = classes

    def baselines(self) -> dict[str, Learner]:
        own = ROMCO(**{**self.get_params(), "lambda1": 0.0, "lambda2": 0.0})
        pooled = MultitaskPerceptron(
            relation="pooled", loss="hinge", eta=float(self.C * (self.eta + self.rho)), step=self.step
        )
        return {"independent": own, "pooled": pooled}

    def _parts(self, name: str) -> FloatArray:
        """(2, n_tasks, n_features) U and V, transposed."""
        state = self._state(name)
        weights = state.rows.weights[: self.n_features_in_].copy()
        lazy.write_out(state.rows, weights, len(self.tasks_))
        return np.ascontiguousarray(weights[:, :, : len(self.tasks_)].transpose(1, 2, 0))

    @property
    def coef_(self) -> FloatArray:
        """(n_tasks, n_features) weights u_k + v_k."""
        return np.asarray(self._parts("coef_").sum(axis=0))

    @property
    def coef_low_rank_(self) -> FloatArray:
        """(n_tasks, n_features) the common part, U transposed."""
        return np.asarray(self._parts("coef_low_rank_")[lazy.COMMON])

    @property
    def coef_task_(self) -> FloatArray:
        """(n_tasks, n_features) the personal part, V transposed."""
        return np.asarray(self._parts("coef_task_")[lazy.PERSONAL])

    @property
    def rank_(self) -> int:
        """Rank of the common part."""
        return int(np.linalg.matrix_rank(self._parts("rank_")[lazy.COMMON]))

    @property
    def outlier_tasks_(self) -> list[Any]:
        """Ids of the tasks that have a personal part."""
        personal = self._state("outlier_tasks_").personal
        return [task for task, squared in zip(self.tasks_, personal, strict=False) if squared > 0.0]
