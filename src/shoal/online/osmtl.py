"""Adaptive Smoothed Online Multi-Task Learning (Murugesan, Liu, Carbonell, Yang, NIPS 2016, algorithm 2).

Each task's learner k listens to the others' rows with weights R = alpha I + (1 - alpha) P, where row k of P, its
*attention*, moves towards the tasks whose rows it predicts well. In a round with losses l_kj = [1 - y_j <w_k, x_j>]_+,
every k whose trigger fires makes (eqs. 9 and 11; right-hand sides are those before the round)

    w_k  <- w_k + C sum_{j: l_kj > 0} R_kj y_j x_j          P_kj <- P_kj exp(-C (1 - alpha)/lambda l_kj) / normaliser

With real targets (our reading; the paper says that its methods apply to regression, section 2.1) the loss is
l_kj = [|y_j - <w_k, x_j>| - epsilon]_+, the sign of y_j - <w_k, x_j> stands for y_j, and a trigger fires on a loss.

P is kept as log P: losses of raw counts reach 1e5, where every exp underflows and P would become 0/0. A given P stays
as it is, and only the weights learn.
"""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal import relations
from shoal.engine.arrays import LANES, FloatArray, IntArray, aligned_zeros
from shoal.engine.axes import FEATURE, INFINITE, TASK
from shoal.engine.compile import kernel
from shoal.engine.losses import is_mistake
from shoal.engine.rounds import Rounds
from shoal.engine.rows import ROUNDS, TASKS, add, add_to_all, dot, dot_all, whole_turns
from shoal.learner import Classifier, Learner, Regressor
from shoal.model.algorithm import Algorithm, Chunks, Explain, Setup, Size, Tasks
from shoal.model.parameters import (
    WEIGHTS_TYPE,
    Params,
    Reader,
    between,
    from_keywords,
    non_negative,
    one_of,
    or_auto,
    positive,
    truth,
)
from shoal.model.persistence import learner_class
from shoal.relations import Attention

AUTO = -1.0  # corollary 2's schedule
RULE = one_of(("exponential", "threshold"))
LEARNED = np.zeros((0, 0))  # in the place of a given P


class Settings(NamedTuple):
    """Hyper-parameters."""

    alpha: float  # negative: corollary 2's schedule
    C: float  # negative: corollary 2's schedule
    lam: float
    threshold: bool  # OSMTL-t
    margin_trigger: bool
    memory: bool
    follow: bool
    epsilon: float  # regression's zone without loss; negative: classification
    given: FloatArray  # (K, K) P as the user gave it, or (0, 0): it is learned


class State(NamedTuple):
    """Weights lie feature by feature, all tasks together: a round needs every learner on every row."""

    weights: Annotated[FloatArray, FEATURE, TASK]  # W, tasks padded to blocks
    log_attention: Annotated[FloatArray, TASK, TASK, INFINITE]  # log P, or (0, 0) where P is given
    updates: Annotated[IntArray, TASK]  # fired triggers
    counters: IntArray  # (3,) tasks, rounds, features


class Work(NamedTuple):
    """Scratch of one call: as many numbers as tasks, or as rows of the largest round."""

    margins: FloatArray  # [j, k]: learner k on the row of the j-th present task
    pull: FloatArray  # [j, k]: how far that row moves learner k
    losses: FloatArray
    moved: FloatArray
    fired: NDArray[np.bool_]
    present: NDArray[np.bool_]
    places: IntArray  # 0, 1, 2, ...


@kernel(entry="too")
def enter(state: State, n_tasks: int) -> None:
    """New tasks get their fair share 1/K of every attention, the others keep what is left; their own is uniform."""
    known = state.counters[TASKS]
    if n_tasks <= known:
        return
    state.counters[TASKS] = n_tasks
    if len(state.log_attention) == 0:  # a given attention stays as it is
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


@kernel(entry="too")
def schedule(settings: Settings, t: int) -> tuple[float, float]:
    """alpha and C; "auto" is corollary 2 with the doubling trick: T = 2^m in rounds 2^m to 2^(m+1) - 1."""
    root = math.sqrt(2.0 ** math.floor(math.log2(t)))
    alpha = settings.alpha if settings.alpha >= 0.0 else root / (1.0 + root)
    C = settings.C if settings.C >= 0.0 else (1.0 + root) / (root * root)
    return alpha, C


@kernel
def loss_of(f: float, y: float, settings: Settings) -> float:
    """l_kj: [1 - y f]_+, or in regression [|y - f| - epsilon]_+."""
    return max(0.0, 1.0 - y * f) if settings.epsilon < 0.0 else max(0.0, abs(y - f) - settings.epsilon)


@kernel
def direction(f: float, y: float, settings: Settings) -> float:
    """Where l_kj falls: y, or in regression the sign of y - f; 0 where there is no loss."""
    if settings.epsilon < 0.0:
        return y if y * f < 1.0 else 0.0
    return math.copysign(1.0, y - f) if abs(y - f) > settings.epsilon else 0.0


@kernel(entry="too")
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
        if settings.threshold:  # OSMTL-t: P_kj proportional to (lambda - l_kj)_+, here over lambda, which may be inf
            slack = 1.0 - losses[i] / settings.lam
            moved[i] = math.log(slack) if slack > 0.0 else -np.inf
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
        work.fired[j] = direction(f, y, settings) != 0.0 if settings.margin_trigger else is_mistake(f, y)
        n_fired += int(work.fired[j])
    return n_fired


@kernel
def attention(k: int, j: int, settings: Settings, state: State) -> float:
    """P_kj, as it was given or as it is learned."""
    return settings.given[k, j] if len(settings.given) > 0 else math.exp(state.log_attention[k, j])


@kernel
def collect(
    rounds: Rounds, first: int, tasks: IntArray, alpha: float, C: float, settings: Settings, state: State, work: Work
) -> None:
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
            step = direction(work.margins[j, k], rounds.y[first + j], settings)
            if step != 0.0:
                R = (1.0 - alpha) * attention(k, tasks[j], settings, state)  # eq. 3
                if i == j:
                    R += alpha
                pull[j, k] = C * R * step  # eq. 9


@kernel
def borrow(
    rounds: Rounds, first: int, tasks: IntArray, rate: float, settings: Settings, state: State, work: Work
) -> None:
    """pull of the absent learners k: C (1 - alpha) P_kj y_j on fired rows with l_kj > 0; `rate` is C (1 - alpha)."""
    n_tasks, present = state.counters[TASKS], work.present
    for k in range(n_tasks):
        present[k] = False
    for j in range(len(tasks)):
        present[tasks[j]] = True
    for j in range(len(tasks)):
        if work.fired[j]:
            for k in range(n_tasks):
                step = 0.0 if present[k] else direction(work.margins[j, k], rounds.y[first + j], settings)
                if step != 0.0:
                    work.pull[j, k] = rate * attention(k, tasks[j], settings, state) * step


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
        collect(rounds, first, tasks, alpha, C, settings, state, work)
        if settings.follow and n < n_tasks:  # absent tasks borrow the rows on which their own learner erred
            borrow(rounds, first, tasks, C * (1.0 - alpha), settings, state, work)
        for j in range(n):
            spread(rounds, first + j, work.pull[j], n_tasks, state.weights)
        rate = C * (1.0 - alpha) / settings.lam
        if len(settings.given) == 0 and (rate > 0.0 or settings.threshold):
            for i in range(n):
                if work.fired[i]:
                    for j in range(n):
                        work.losses[j] = loss_of(work.margins[j, tasks[i]], rounds.y[first + j], settings)
                    shift_attention(state.log_attention[tasks[i]], tasks, rate, settings, work)


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    tasks, most = state.weights.shape[1], 1
    for r in range(len(rounds.starts) - 1):
        most = max(most, rounds.starts[r + 1] - rounds.starts[r])
    margins, pull = np.empty((most, tasks)), np.empty((most, tasks))
    losses, moved, fired = np.empty(most), np.empty(most), np.empty(most, np.bool_)
    work = Work(margins, pull, losses, moved, fired, np.empty(tasks, np.bool_), np.arange(most))
    learn_rounds(rounds, settings, state, decisions, work)
    return len(rounds.starts) - 1


def read_attention(value: Any) -> Any:
    attention = relations.resolve_attention(value)
    return attention if isinstance(attention, Attention) else RULE.convert(attention)


def named_tasks(p: Params) -> list[Any]:
    """The tasks that a given attention names."""
    return list(p.attention.tasks) if isinstance(p.attention, Attention) else []


def settings(p: Params) -> Settings:
    given = np.require(p.attention.P, None, ["C", "W"]) if isinstance(p.attention, Attention) else LEARNED
    threshold, margin = p.attention == "threshold", getattr(p, "trigger", "margin") == "margin"
    epsilon = getattr(p, "epsilon", -1.0)
    return Settings(p.alpha, p.C, p.lam, threshold, margin, p.memory, p.absent == "follow", epsilon, given)


def allocate(setup: Setup, size: Size) -> State:
    n_tasks, n_features = size
    weights = aligned_zeros((n_features, whole_turns(n_tasks)), setup.params.dtype)
    learned = 0 if named_tasks(setup.params) else n_tasks
    return State(weights, np.zeros((learned, learned)), np.zeros(n_tasks, np.int64), np.zeros(3, np.int64))


def leave(setup: Setup, state: State, k: int) -> None:
    """Every attention row shares out what it gave to task k in proportion, or evenly if that was all."""
    others = np.delete(np.arange(state.counters[TASKS]), k)
    for row in others:
        log_p = state.log_attention[row]
        mass = log_sum_exp(log_p, others)
        log_p[others] = log_p[others] - mass if mass > -np.inf else -math.log(len(others))


def attention_of(state: State, k: int, n_tasks: int) -> FloatArray:
    """(n_tasks,) the row of P: how the attention that task k borrows is spread."""
    P = np.exp(state.log_attention[k, :n_tasks])
    return np.asarray(P / P.sum())


PARAMETERS = {
    "alpha": or_auto(between(0, 1), AUTO),
    "C": or_auto(positive(), AUTO),
    "lam": positive(infinite=True),
    "attention": Reader(f"{RULE.text}, or a matrix", read_attention),
    "trigger": one_of(("mistake", "margin")),
    "epsilon": non_negative(infinite=True),
    "memory": truth(),
    "absent": one_of(("stay", "follow")),
    "dtype": WEIGHTS_TYPE,
}
ALGORITHM = Algorithm[State](
    parameters=PARAMETERS,
    settings=settings,
    allocate=allocate,
    learn=learn,
    decide=decide,
    exchange="each task learns from the rows of all others in its round, so no task can be learned apart from them",
    no_weights="a round is one problem of all tasks, whose losses move the attention too; its paper weighs no row",
    chunks=Chunks(simultaneous=True),
    tasks=Tasks(named=named_tasks, enter=lambda setup, state, n_tasks: enter(state, n_tasks), leave=leave),
    explain=Explain(likeness=attention_of),
)
# Attention that was not learned does not say which tasks are alike.
GIVEN = ALGORITHM._replace(explain=ALGORITHM.explain._replace(likeness=None))


@from_keywords
class _OSMTL(Learner):
    """The base of the classifier and the regressor."""

    alpha: float | str = 0.5
    C: float | str = 1.0
    lam: float = 1.0
    attention: Any = "exponential"
    memory: bool = False
    absent: str = "stay"
    dtype: Any = "float64"

    def _pooled(self) -> dict[str, Any]:
        """The steps of OSMTL, as hyper-parameters of one model for all tasks."""
        steps = {"eta": 1.0, "step": "sqrt"} if self.C == "auto" else {"eta": float(self.C), "step": "constant"}
        return {"relation": "pooled", "dtype": self.dtype, **steps}

    @property
    def algorithm(self) -> Algorithm[State]:
        return ALGORITHM if isinstance(self.attention, str) else GIVEN

    @property
    def coef_(self) -> FloatArray:
        """(n_tasks, n_features) weights."""
        weights = self._state("coef_").weights
        return np.ascontiguousarray(weights[: self.n_features_in_, : len(self.tasks_)].T, np.float64)

    @property
    def attention_(self) -> FloatArray:
        """(n_tasks, n_tasks) P: row k is how task k's borrowed attention is spread over the tasks."""
        state, given = self._state("attention_"), self._setup().settings.given
        if len(given):
            return np.array(given)
        n = len(self.tasks_)
        P = np.exp(state.log_attention[:n, :n])
        return np.asarray(P / P.sum(axis=1, keepdims=True))

    @property
    def relation_(self) -> FloatArray:
        """(n_tasks, n_tasks) R = alpha I + (1 - alpha) P."""
        state = self._state("relation_")
        alpha, _ = schedule(self._setup().settings, max(int(state.counters[ROUNDS]), 1))
        return np.asarray(alpha * np.eye(len(self.tasks_)) + (1 - alpha) * self.attention_)


@from_keywords
class OSMTL(_OSMTL, Classifier):
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
        2^(m+1) - 1; weights are kept.
    lam : float > 0 (inf allowed)
        Inertia of the attention; inf freezes it: with ``alpha=1/(K+1)`` this is the papers' FOML. With
        ``attention="threshold"`` the loss at which attention ends, to be above 1; inf: all tasks of a round alike.
    attention : {"exponential", "threshold"} or (K, K) matrix
        OSMTL-e (eq. 11), or OSMTL-t: P_kj ∝ (lam - l_kj)_+; a row with no positive entry stays as it was.
        A matrix, or `shoal.relations.attention(P, tasks=[...])`, is P itself: rows sum to 1, no entry is negative.
        It names all tasks (default 0..K-1) and stays as it is, so `lam` and `memory` change nothing. With ``alpha=0``
        this is the domain adaptation of the paper (section 2.3).
    trigger : {"mistake", "margin"}
        Task k updates when ŷ ≠ y (the paper's prose and published counts), or when y f < 1 (algorithm 2 as
        printed, the one that Theorem 1 needs).
    memory : bool
        With "threshold", multiply by the old attention; the paper's rule has none.
    absent : {"stay", "follow"}
        How a task without a row in the round learns. "stay": not at all. "follow": it takes a row on which the row's
        own learner erred as borrowed data, with weight (1 - alpha) P_kj. Attention moves only between tasks
        that are present and only for their learners; together they keep the mass they had.
        When every round has one row there is nothing to compare, so attention never moves: "stay" is then
        independent learning with step C (alpha + (1 - alpha)/K), "follow" sharing with equal fixed weights.
    dtype : {"float64", "float32"}
        Type of the stored weights. float32 takes half the memory; sums are float64 in both.
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
        On bad input or hyper-parameters, or a task that a given attention does not name.

    Notes
    -----
    An unseen task is answered by the mean of all tasks' weights. Regret: `shoal.theory.osmtl_regret_bound`. A round
    ends where a call ends, so other chunks are other rounds unless `rounds=` names them.

    Odd rows: one wrong label moves the weights by one step of at most C x, however sure the forecast was; a value of
    1e6 in a row that is misjudged moves its weight by 1e6 such steps, which later rows do not take back.

    References
    ----------
    Murugesan, Liu, Carbonell, Yang. Adaptive Smoothed Online Multi-Task Learning. NIPS 2016: algorithm 2,
    eqs. 3 and 8-11, Theorem 1, Corollary 2.

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

    trigger: str = "mistake"
    classes: Any = None

    def baselines(self) -> dict[str, Learner]:
        own = OSMTL(**{**self.get_params(), "alpha": 1.0, "absent": "stay"})
        loss = "hinge" if self.trigger == "margin" else "perceptron"
        pooled = learner_class("MultitaskPerceptron")(**self._pooled(), loss=loss)
        return {"independent": own, "pooled": pooled}


@from_keywords
class OSMTLRegressor(_OSMTL, Regressor):
    """Adaptive smoothed online multi-task regression: each task learns from whose data it predicts well.

    `OSMTL` with the loss l_kj = [|y_j - f_kj| - epsilon]_+, f_kj = <w_k, x_j>. In a round, every task k whose own loss
    is not 0 makes ``w_k <- w_k + C Σ_{j: l_kj > 0} R_kj sign(y_j - f_kj) x_j`` with R = alpha I + (1 - alpha) P, and
    moves its attention ``P_kj ∝ P_kj exp(-C (1 - alpha)/lam · l_kj)``. Cost of a round of all K tasks: O(nnz K), nnz
    over its rows.

    Parameters
    ----------
    alpha : float in [0, 1] or "auto"
        Concentration on the own task; 1 is independent learning. "auto" as in `OSMTL`.
    C : float > 0 or "auto"
        Step size, on the scale of the targets: a row moves its own prediction by at most C ||x||², whatever its error.
        "auto" as in `OSMTL`.
    lam : float > 0 (inf allowed)
        Inertia of the attention; inf freezes it. Targets that are s times as large want s times the C and epsilon, and
        s² times the lam. With ``attention="threshold"`` the loss at which attention ends (s times); inf: all tasks of a
        round alike.
    attention : {"exponential", "threshold"} or (K, K) matrix
        How P moves, or P itself, as in `OSMTL`.
    epsilon : float >= 0
        Errors up to this cost nothing.
    memory : bool
        With "threshold", multiply by the old attention; the paper's rule has none.
    absent : {"stay", "follow"}
        How a task without a row in the round learns, as in `OSMTL`; it borrows rows that have a loss under their
        own learner.
    dtype : {"float64", "float32"}
        Type of the stored weights. float32 takes half the memory; sums are float64 in both.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) weights
    attention_ : (n_tasks, n_tasks) P, rows sum to 1
    relation_ : (n_tasks, n_tasks) R; R[k, j] is how much learner k listens to task j's data
    tasks_, n_features_in_, feature_names_in_, n_updates_ (triggers fired), task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, or a task that a given attention does not name.

    Notes
    -----
    This is our reading: the paper says that its methods "are also applicable to regression tasks" (section 2.1) and
    gives no loss. The hinge becomes the loss of support vector regression, whose slope is as bounded as the hinge's.
    A loss is the trigger, as algorithm 2 prints it: there are no labels to mistake. There is no bias: put a constant
    among the features. An unseen task is answered by the mean of all tasks' weights. A round ends where a call ends,
    so other chunks are other rounds unless `rounds=` names them.

    Odd rows: a target of 1e6 deviations moves the weights by no more than C x, as any loss does; a value of 1e6 moves
    its weight by 1e6 such steps, which later rows do not take back.

    References
    ----------
    Murugesan, Liu, Carbonell, Yang. Adaptive Smoothed Online Multi-Task Learning. NIPS 2016: algorithm 2,
    eqs. 3 and 8-11.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import OSMTLRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(1200, 10)), np.resize(np.arange(30), 1200)
    >>> w = rng.normal(size=10) + 0.3 * rng.normal(size=(30, 10))
    >>> y = np.einsum("ij,ij->i", X, w[task])
    >>> for alpha in (1.0, 0.1):
    ...     predictions = OSMTLRegressor(alpha=alpha, C=0.3).test_then_train(X, y, task)
    ...     print(f"alpha {alpha} RMSE {np.sqrt(np.mean((predictions - y) ** 2)):.2f}")
    alpha 1.0 RMSE 2.26
    alpha 0.1 RMSE 1.52
    """

    C: float | str = 0.03
    epsilon: float = 0.1

    def baselines(self) -> dict[str, Learner]:
        own = OSMTLRegressor(**{**self.get_params(), "alpha": 1.0, "absent": "stay"})
        loss = {"loss": "epsilon_insensitive", "epsilon": self.epsilon}
        pooled = learner_class("MultitaskRegressor")(**self._pooled(), **loss)
        return {"independent": own, "pooled": pooled}
