"""Adaptive Smoothed Online Multi-Task Learning (Murugesan, Liu, Carbonell, Yang, NIPS 2016, algorithm 2).

Each task's learner k listens to the others' rows with weights R = alpha I + (1 - alpha) P, where row k of P, its
*attention*, moves towards the tasks whose rows it predicts well. In a round with losses l_kj = [1 - y_j <w_k, x_j>]_+,
every k whose trigger fires makes (eqs. 9 and 11; right-hand sides are those before the round)

    w_k  <- w_k + C sum_{j: l_kj > 0} R_kj y_j x_j          P_kj <- P_kj exp(-C (1 - alpha)/lambda l_kj) / normaliser

P is kept as log P: losses of raw counts reach 1e5, where every exp underflows and P would become 0/0.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import LANES, FloatArray, IntArray, aligned_zeros
from shoal.engine.axes import FEATURE, INFINITE, TASK
from shoal.engine.compile import kernel
from shoal.engine.losses import is_mistake
from shoal.engine.rounds import Rounds
from shoal.engine.rows import ROUNDS, TASKS, add, add_to_all, dot, dot_all, padded
from shoal.learner import Classifier, Learner
from shoal.model.algorithm import Algorithm, Setup, Size
from shoal.model.parameters import WEIGHTS_TYPE, Params, between, one_of, or_auto, positive, truth
from shoal.online.multitask_perceptron import MultitaskPerceptron


class Settings(NamedTuple):
    """Hyper-parameters."""

    alpha: float  # negative: corollary 2's schedule
    C: float  # negative: corollary 2's schedule
    lam: float
    threshold: bool  # OSMTL-t
    margin_trigger: bool
    memory: bool
    follow: bool


class State(NamedTuple):
    """Weights lie feature by feature, all tasks together: a round needs every learner on every row."""

    weights: Annotated[FloatArray, FEATURE, TASK]  # W, tasks padded to blocks
    log_attention: Annotated[FloatArray, TASK, TASK, INFINITE]  # log P
    updates: Annotated[IntArray, TASK]  # fired triggers
    counters: IntArray  # (3,) tasks, rounds, features


class Work(NamedTuple):
    """Scratch of one call; room for all tasks, or where it counts the rows of a round, for as many."""

    margins: FloatArray  # [j, k]: learner k on the row of the j-th present task
    pull: FloatArray  # [j, k]: how far that row moves learner k
    losses: FloatArray
    moved: FloatArray
    fired: NDArray[np.bool_]
    present: NDArray[np.bool_]
    places: IntArray  # 0, 1, 2, ...


@kernel(entry=True)
def enter(state: State, n_tasks: int) -> None:
    """New tasks get their fair share 1/K of every attention, the others keep what is left; their own is uniform."""
    known = state.counters[TASKS]
    if n_tasks <= known:
        return
    share = -math.log(n_tasks)
    for k in range(known):
        for j in range(known):
            state.log_attention[k, j] += math.log(known / n_tasks)
        for j in range(known, n_tasks):
            state.log_attention[k, j] = share
    for k in range(known, n_tasks):
        for j in range(n_tasks):
            state.log_attention[k, j] = share
    state.counters[TASKS] = n_tasks


@kernel(entry=True)
def schedule(settings: Settings, t: int) -> tuple[float, float]:
    """alpha and C; "auto" is corollary 2 with the doubling trick: T = 2^m in rounds 2^m to 2^(m+1) - 1."""
    root = math.sqrt(2.0 ** math.floor(math.log2(t)))
    alpha = settings.alpha if settings.alpha >= 0.0 else root / (1.0 + root)
    C = settings.C if settings.C >= 0.0 else (1.0 + root) / (root * root)
    return alpha, C


@kernel(entry=True)
def log_sum_exp(log_p: FloatArray, tasks: IntArray) -> float:
    """log sum of exp over some entries; -inf if all are."""
    top = -np.inf
    for j in tasks:
        top = max(top, log_p[j])
    if top == -np.inf:
        return top
    total = 0.0
    for j in tasks:
        total += math.exp(log_p[j] - top)
    return top + math.log(total)


@kernel
def shift_attention(log_p: FloatArray, tasks: IntArray, rate: float, settings: Settings, work: Work) -> None:
    """Move row k of log P on the present tasks, which keep their total mass (spec 2.3)."""
    losses, moved = work.losses, work.moved
    mass = log_sum_exp(log_p, tasks)
    for i in range(len(tasks)):
        if settings.threshold:  # OSMTL-t: P_kj proportional to (lambda - l_kj)_+
            room = settings.lam - losses[i]
            moved[i] = math.log(room) if room > 0.0 else -np.inf
            if settings.memory:
                moved[i] += log_p[tasks[i]]
        else:  # eq. 11
            moved[i] = log_p[tasks[i]] - rate * losses[i]
    moved_mass = log_sum_exp(moved, work.places[: len(tasks)])
    if moved_mass == -np.inf:  # no task is well enough predicted: the row stays
        return
    for i in range(len(tasks)):
        log_p[tasks[i]] = moved[i] - moved_mass + mass


@kernel
def decide_rows(rounds: Rounds, state: State, decisions: FloatArray, margins: FloatArray) -> None:
    n_tasks = state.counters[TASKS]
    for row in range(len(decisions)):
        if rounds.task[row] >= 0:
            decisions[row] = dot(rounds, row, state.weights[:, rounds.task[row]])
        else:  # an unseen task: the mean over all
            dot_all(rounds, row, state.weights, margins)
            total = 0.0
            for k in range(n_tasks):
                total += margins[k]
            decisions[row] = total / max(n_tasks, 1)


@kernel(entry=True, allocates=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    decide_rows(rounds, state, decisions, np.empty(state.weights.shape[1]))


@kernel
def answer_all(
    rounds: Rounds, first: int, tasks: IntArray, everyone: bool, n_fired: int, weights: FloatArray, work: Work
) -> None:
    """Margins of the learners that fired on all rows of the round; of all learners where that costs no more."""
    for j in range(len(tasks)):
        if everyone or n_fired * LANES >= 2 * len(tasks):
            dot_all(rounds, first + j, weights, work.margins[j])
        else:
            for i in range(len(tasks)):
                if work.fired[i] and i != j:
                    work.margins[j, tasks[i]] = dot(rounds, first + j, weights[:, tasks[i]])


@kernel
def spread(rounds: Rounds, row: int, pull: FloatArray, n_tasks: int, W: FloatArray) -> None:
    """w_k <- w_k + pull_k x; column by column where few learners move."""
    n_moving = 0
    for k in range(n_tasks):
        n_moving += int(pull[k] != 0.0)
    if n_moving * LANES >= 2 * n_tasks:
        add_to_all(rounds, row, pull, W)
    elif n_moving > 0:
        for k in range(n_tasks):
            if pull[k] != 0.0:
                add(rounds, row, pull[k], W[:, k])


@kernel
def answer_own(
    rounds: Rounds, first: int, tasks: IntArray, settings: Settings, W: FloatArray, decisions: FloatArray, work: Work
) -> int:
    """Every row's margin under its own learner; returns how many fire."""
    n_fired = 0
    for j in range(len(tasks)):
        row = first + j
        f, y = dot(rounds, row, W[:, tasks[j]]), rounds.y[row]
        work.margins[j, tasks[j]] = f
        if len(decisions) > 0:
            decisions[row] = f
        work.fired[j] = y * f < 1.0 if settings.margin_trigger else is_mistake(f, y)
        n_fired += int(work.fired[j])
    return n_fired


@kernel
def collect(rounds: Rounds, first: int, tasks: IntArray, alpha: float, C: float, state: State, work: Work) -> None:
    """pull of the learners that fired, from all rows with l_kj > 0."""
    n, pull = len(tasks), work.pull
    for j in range(n):
        for k in range(pull.shape[1]):
            pull[j, k] = 0.0
    for i in range(n):  # learner k = tasks[i] and its own data
        k = tasks[i]
        if not work.fired[i]:
            continue
        state.updates[k] += 1
        for j in range(n):
            y = rounds.y[first + j]
            if y * work.margins[j, k] < 1.0:
                R = (1.0 - alpha) * math.exp(state.log_attention[k, tasks[j]])
                if i == j:
                    R += alpha
                pull[j, k] = C * R * y  # eq. 9


@kernel
def borrow(rounds: Rounds, first: int, tasks: IntArray, step: float, state: State, work: Work) -> None:
    """pull of the absent learners k: C (1 - alpha) P_kj y_j on fired rows with l_kj > 0."""
    n_tasks, present = state.counters[TASKS], work.present
    for k in range(n_tasks):
        present[k] = False
    for j in range(len(tasks)):
        present[tasks[j]] = True
    for j in range(len(tasks)):
        y = rounds.y[first + j]
        if work.fired[j]:
            for k in range(n_tasks):
                if not present[k] and y * work.margins[j, k] < 1.0:
                    work.pull[j, k] = step * math.exp(state.log_attention[k, tasks[j]]) * y


@kernel
def learn_rounds(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray, work: Work) -> None:
    for r in range(len(rounds.starts) - 1):
        first, last = rounds.starts[r], rounds.starts[r + 1]
        n, tasks = last - first, rounds.task[first:last]
        n_tasks = state.counters[TASKS]
        for k in tasks:
            n_tasks = max(n_tasks, k + 1)
        enter(state, n_tasks)
        state.counters[ROUNDS] += 1
        alpha, C = schedule(settings, state.counters[ROUNDS])
        n_fired = answer_own(rounds, first, tasks, settings, state.weights, decisions, work)
        if n_fired == 0:
            continue
        answer_all(rounds, first, tasks, settings.follow, n_fired, state.weights, work)
        collect(rounds, first, tasks, alpha, C, state, work)
        if settings.follow and n < n_tasks:  # absent tasks borrow the rows on which their own learner erred
            borrow(rounds, first, tasks, C * (1.0 - alpha), state, work)
        for j in range(n):
            spread(rounds, first + j, work.pull[j], n_tasks, state.weights)
        rate = C * (1.0 - alpha) / settings.lam
        if rate > 0.0 or settings.threshold:
            for i in range(n):
                if work.fired[i]:
                    for j in range(n):
                        work.losses[j] = max(0.0, 1.0 - rounds.y[first + j] * work.margins[j, tasks[i]])
                    shift_attention(state.log_attention[tasks[i]], tasks, rate, settings, work)


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    room, most = state.weights.shape[1], 1
    for r in range(len(rounds.starts) - 1):
        most = max(most, rounds.starts[r + 1] - rounds.starts[r])
    work = Work(
        np.empty((most, room)), np.empty((most, room)), np.empty(most), np.empty(most), np.empty(most, np.bool_),
        np.empty(room, np.bool_), np.arange(most),
    )  # fmt: skip
    learn_rounds(rounds, settings, state, decisions, work)


AUTO = -1.0  # corollary 2's schedule


def settings(p: Params) -> Settings:
    return Settings(
        p.alpha, p.C, p.lam, p.attention == "threshold", p.trigger == "margin", p.memory, p.absent == "follow"
    )


def allocate(setup: Setup, size: Size) -> State:
    n_tasks, n_features = size
    weights = aligned_zeros((n_features, padded(n_tasks)), setup.params.dtype)
    return State(weights, np.zeros((n_tasks, n_tasks)), np.zeros(n_tasks, np.int64), np.zeros(3, np.int64))


def leave(setup: Setup, state: State, k: int) -> None:
    """Every attention row shares out what it gave to task k in proportion, or evenly if that was all."""
    others = np.delete(np.arange(state.counters[TASKS]), k)
    for row in others:
        log_p = state.log_attention[row]
        mass = log_sum_exp(log_p, others)
        log_p[others] = log_p[others] - mass if mass > -np.inf else -math.log(len(others))


ALGORITHM = Algorithm(
    parameters={
        "alpha": or_auto(between(0, 1), AUTO),
        "C": or_auto(positive(), AUTO),
        "lam": positive(infinite=True),
        "attention": one_of(("exponential", "threshold")),
        "trigger": one_of(("mistake", "margin")),
        "memory": truth(),
        "absent": one_of(("stay", "follow")),
        "dtype": WEIGHTS_TYPE,
    },
    settings=settings,
    allocate=allocate,
    learn=learn,
    decide=decide,
    exchange="each task learns from the rows of all others in its round, so no task can be learned apart from them",
    simultaneous=True,
    enter=lambda setup, state, n_tasks: enter(state, n_tasks),
    leave=leave,
)


class OSMTL(Classifier):
    """Adaptive Smoothed Online Multi-Task Learning: each task learns from whose data it predicts well.

    In a round, every task k that errs makes ``w_k <- w_k + C Σ_{j: l_kj > 0} R_kj y_j x_j`` with
    R = alpha I + (1 - alpha) P and l_kj = [1 - y_j <w_k, x_j>]_+, and moves its attention
    ``P_kj ∝ P_kj exp(-C (1 - alpha)/lam · l_kj)``. Cost of a round of all K tasks: O(nnz K), nnz over its rows.

    Parameters
    ----------
    alpha : float in [0, 1] or "auto"
        Concentration on the own task; 1 is independent learning. "auto": √T/(1+√T), corollary 2.
    C : float > 0 or "auto"
        Step size. "auto": (1+√T)/T. The horizon T is not known, so it doubles: T = 2^m in rounds 2^m to
        2^(m+1) - 1; what was learnt is kept.
    lam : float > 0 (inf allowed)
        Inertia of the attention; inf freezes it: with ``alpha=1/(K+1)`` this is the papers' FOML. With
        ``attention="threshold"`` the loss at which attention ends, to be above 1.
    attention : {"exponential", "threshold"}
        OSMTL-e (eq. 11), or OSMTL-t: P_kj ∝ (lam - l_kj)_+; a row with no positive entry stays as it was.
    trigger : {"mistake", "margin"}
        Task k updates when ŷ ≠ y (the paper's prose and published counts), or when y f < 1 (algorithm 2 as
        printed, the one that Theorem 1 needs).
    memory : bool
        With "threshold", multiply by the old attention; the paper's rule has none.
    absent : {"stay", "follow"}
        What a task without a row in the round does. "stay": nothing. "follow": it takes a row on which the row's
        own learner erred as borrowed data, with weight (1 - alpha) P_kj. Attention moves only between tasks
        that are present and only for their learners; together they keep the mass they had.
        When every round has one row there is nothing to compare, so attention never moves: "stay" is then
        independent learning with step C (alpha + (1 - alpha)/K), "follow" sharing with equal fixed weights.
    dtype : {"float64", "float32"}
        What weights are stored in. float32 takes half the memory; sums are float64 all the same.
    classes : two labels, optional
        Needed where the first label does not tell the other; see `partial_fit`.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) weights
    attention_ : (n_tasks, n_tasks) P, rows sum to 1
    relation_ : (n_tasks, n_tasks) R; R[k, j] is how much learner k listens to task j's data
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_ (triggers fired), task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters.

    Notes
    -----
    An unseen task is answered by the mean of all tasks' weights. Regret: `shoal.theory.osmtl_regret_bound`.

    References
    ----------
    Murugesan, Liu, Carbonell, Yang. Adaptive Smoothed Online Multi-Task Learning. NIPS 2016: algorithm 2,
    eqs. 8-11, Theorem 1, Corollary 2.

    Examples
    --------
    >>> from shoal import OSMTL
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> data = data.interleaved(seed=0)
    >>> for alpha in (1.0, 0.5):
    ...     decisions = OSMTL(alpha=alpha).test_then_train(data.X, data.y, data.task)
    ...     print(f"alpha {alpha} error {((decisions >= 0) != (data.y > 0)).mean():.3f}")
    alpha 1.0 error 0.283
    alpha 0.5 error 0.235
    """

    algorithm = ALGORITHM

    def __init__(
        self, *, alpha: float | str = 0.5, C: float | str = 1.0, lam: float = 1.0, attention: str = "exponential",
        trigger: str = "mistake", memory: bool = False, absent: str = "stay", dtype: Any = "float64",
        classes: Any = None,
    ) -> None:  # fmt: skip
        self.dtype = dtype
        self.alpha = alpha
        self.C = C
        self.lam = lam
        self.attention = attention
        self.trigger = trigger
        self.memory = memory
        self.absent = absent
        self.classes = classes

    def baselines(self) -> dict[str, Learner]:
        own = OSMTL(**{**self.get_params(), "alpha": 1.0, "absent": "stay"})
        auto = self.C == "auto"
        pooled = MultitaskPerceptron(
            relation="pooled", loss="hinge" if self.trigger == "margin" else "perceptron",
            eta=1.0 if auto else float(self.C), step="sqrt" if auto else "constant", dtype=self.dtype,
        )  # fmt: skip
        return {"independent": own, "pooled": pooled}

    @property
    def coef_(self) -> FloatArray:
        """(n_tasks, n_features) weights."""
        weights = self._state("coef_").weights
        return np.ascontiguousarray(weights[: self.n_features_in_, : len(self.tasks_)].T, np.float64)

    @property
    def attention_(self) -> FloatArray:
        """(n_tasks, n_tasks) P: row k is how task k's borrowed attention is spread over the tasks."""
        n = len(self.tasks_)
        P = np.exp(self._state("attention_").log_attention[:n, :n])
        return np.asarray(P / P.sum(axis=1, keepdims=True))

    @property
    def relation_(self) -> FloatArray:
        """(n_tasks, n_tasks) R = alpha I + (1 - alpha) P."""
        state = self._state("relation_")
        alpha, _ = schedule(self._setup().settings, max(int(state.counters[ROUNDS]), 1))
        return np.asarray(alpha * np.eye(len(self.tasks_)) + (1 - alpha) * self.attention_)
