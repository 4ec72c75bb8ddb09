"""Online learning of the tasks' relation, OMTRL (Saha, Rai, Venkatasubramanian, Daumé, AISTATS 2011).

On a mistake on (x, y) of task i, every task j moves by its rate,  w_j <- w_j + y B[j, i] x,  as in the multitask
Perceptron; then the rates B = A^-1 follow the Gram matrix G = W'W of the weights by one of four steps:

    logdet       B <- B + eta_A G            minimises D_LogDet(A || A_old) + eta_A tr(W A W')
    von Neumann  B <- exp(log B + eta_A G)   minimises D_vonNeumann(A || A_old) + eta_A tr(W A W')
    covariance   B <- cov of the columns of W + 1e-6 I
    batch        B <- G^(1/2) / tr G^(1/2)   minimises tr(W B^-1 W') over tr B = 1 (Zhang, Yeung)

Taken literally, G grows with B and B with G: doubles overflow within a hundred updates. So B is rescaled to trace K
after each step. W changes with rate matrices of all times, so it is stored, all tasks of a feature together.
"""

import math
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray, aligned_zeros
from shoal.engine.axes import FEATURE, TASK
from shoal.engine.compile import kernel
from shoal.engine.losses import is_mistake
from shoal.engine.rounds import Rounds
from shoal.engine.rows import ROUNDS, TASKS, add_to_all, dot, dot_all, feature_at, row_bounds, squared_norm, whole_turns
from shoal.learner import Classifier, Learner
from shoal.model.algorithm import FAILED, ONE_STEP, Algorithm, Chunks, Explain, Setup, Size, Tasks
from shoal.model.explanations import correlations_with
from shoal.model.parameters import Params, from_keywords, one_of, positive, whole
from shoal.model.persistence import learner_class

LOGDET: Final = 0
VON_NEUMANN: Final = 1
COVARIANCE: Final = 2
BATCH: Final = 3
DIVERGENCES: Final = {"logdet": LOGDET, "von-neumann": VON_NEUMANN, "covariance": COVARIANCE, "batch": BATCH}
RIDGE: Final = 1e-6
USED = 3  # position in the counters
VANISHED = 1e-100  # a rate below this has underflowed, or will in the Gram matrix


class Settings(NamedTuple):
    """Hyper-parameters."""

    divergence: int
    eta: float
    warmup: int
    literal: bool


class State(NamedTuple):
    """Weights lie feature by feature, all tasks together: a mistake moves all of them."""

    weights: Annotated[FloatArray, FEATURE, TASK]  # W, tasks padded to blocks
    gram: Annotated[FloatArray, TASK, TASK]  # G = W'W
    relation: Annotated[FloatArray, TASK, TASK]  # B
    log_relation: Annotated[FloatArray, TASK, TASK]  # log B, empty unless von Neumann
    sums: Annotated[FloatArray, TASK]  # sums of the columns of W, empty unless covariance
    used: Annotated[NDArray[np.bool_], FEATURE]  # rows of W that ever moved, empty unless covariance
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (4,) tasks, rounds, features, features used


@kernel(entry="too", inline=False)
def enter(state: State, n_tasks: int, literal: bool) -> None:
    """New tasks are related to none: B = I, or in the literal rule A = I/K, the old part of A keeping its share."""
    old = state.counters[TASKS]
    if n_tasks <= old:
        return
    rate = float(n_tasks) if literal else 1.0
    if literal and old > 0:
        grown = n_tasks / old
        for j in range(old):
            for k in range(old):
                state.relation[j, k] *= grown
        for k in range(min(old, len(state.log_relation))):
            state.log_relation[k, k] += math.log(grown)
    for k in range(old, n_tasks):
        start_afresh(state, k, rate)
    state.counters[TASKS] = n_tasks


@kernel(inline=False)
def start_afresh(state: State, k: int, rate: float) -> None:
    """Task k is related to none and learns at `rate`."""
    state.relation[k, :] = 0.0
    state.relation[:, k] = 0.0
    state.relation[k, k] = rate
    if len(state.log_relation) > 0:
        state.log_relation[k, :] = 0.0
        state.log_relation[:, k] = 0.0
        state.log_relation[k, k] = math.log(rate)


@kernel(allocates=True, inline=False)
def mean_margin(rounds: Rounds, row: int, state: State) -> float:
    """The mean over all tasks of <w_k, x>."""
    margins = np.empty(state.weights.shape[1])
    dot_all(rounds, row, state.weights, margins)
    total, n_tasks = 0.0, state.counters[TASKS]
    for k in range(n_tasks):
        total += margins[k]
    return float(total / max(n_tasks, 1))


@kernel(entry="too")
def margin(rounds: Rounds, row: int, state: State) -> float:
    """<w_i, x>; for an unseen task the mean over all."""
    k = rounds.task[row]
    return dot(rounds, row, state.weights[:, k]) if k >= 0 else mean_margin(rounds, row, state)


@kernel(entry=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    for row in range(len(decisions)):
        decisions[row] = margin(rounds, row, state)


@kernel(entry="too")
def note_columns(rounds: Rounds, row: int, step: FloatArray, state: State) -> None:
    """Sums for the covariance beside G: sums of columns, and which features have weights at all."""
    first, last = row_bounds(rounds, row)
    total = 0.0
    for p in range(first, last):
        j = feature_at(rounds, row, p)
        total += rounds.values[p]
        if rounds.values[p] != 0.0 and not state.used[j]:
            state.used[j] = True
            state.counters[USED] += 1
    for k in range(state.counters[TASKS]):
        state.sums[k] += step[k] * total


@kernel
def move(rounds: Rounds, row: int, norm: float, settings: Settings, state: State, z: FloatArray, b: FloatArray) -> None:
    """w_j <- w_j + y B[j, i] x for all j, and G with it: G + z b' + b z' + ||x||^2 b b', z = W'x, b = y B[:, i]."""
    i, n = rounds.task[row], state.counters[TASKS]
    if state.relation[i, i] < VANISHED:  # the relation has forgotten a task without weights: let it begin
        start_afresh(state, i, float(n) if settings.literal else 1.0)
    for j in range(n):
        b[j] = rounds.y[row] * state.relation[j, i]
    dot_all(rounds, row, state.weights, z)
    for j in range(n):
        for k in range(j + 1):
            state.gram[j, k] += z[j] * b[k] + b[j] * z[k] + norm * b[j] * b[k]
            state.gram[k, j] = state.gram[j, k]
    add_to_all(rounds, row, b, state.weights)
    if settings.divergence == COVARIANCE:
        note_columns(rounds, row, b, state)


# ---- the relation's step -----------------------------------------------------------------------------------


@kernel(allocates=True, inline=False)
def _fill(values: FloatArray, vectors: FloatArray, tasks: IntArray, B: FloatArray) -> None:
    """B[tasks, tasks] <- V diag(values) V', exactly symmetric."""
    scaled = np.empty_like(vectors)
    for a in range(len(tasks)):
        for b in range(len(tasks)):
            scaled[a, b] = vectors[a, b] * values[b]
    part = np.dot(scaled, vectors.T)
    for a in range(len(tasks)):
        for b in range(a + 1):
            B[tasks[a], tasks[b]] = part[a, b]
            B[tasks[b], tasks[a]] = part[a, b]


@kernel(allocates=True, inline=False)
def _eigen(matrix: FloatArray, tasks: IntArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues and eigenvectors of matrix[tasks, tasks]."""
    part = np.empty((len(tasks), len(tasks)))
    for a in range(len(tasks)):
        for b in range(len(tasks)):
            part[a, b] = matrix[tasks[a], tasks[b]]
    return np.linalg.eigh(part)


@kernel(allocates=True, inline=False)
def _exponential(L: FloatArray, tasks: IntArray, normalize: bool, B: FloatArray) -> None:
    """B <- exp(L); normalized, with 1 as its largest eigenvalue, and L as the logarithm of that."""
    values, vectors = _eigen(L, tasks)
    shift = 0.0
    if normalize:
        idle = np.ones(len(L), np.bool_)
        idle[tasks] = False
        shift = values[-1]
        for k in range(len(L)):
            if idle[k]:
                shift = max(shift, L[k, k])
    for k in range(len(L)):
        L[k, k] -= shift
        B[k, k] = math.exp(L[k, k])
    for a in range(len(values)):
        values[a] = math.exp(values[a] - shift)
    _fill(values, vectors, tasks, B)


@kernel(allocates=True, inline=False)
def _root(G: FloatArray, tasks: IntArray, B: FloatArray) -> None:
    """B <- G^(1/2) / tr G^(1/2)."""
    values, vectors = _eigen(G, tasks)
    total = 0.0
    for a in range(len(values)):
        values[a] = math.sqrt(max(values[a], 0.0))  # rounding makes zeros slightly negative
        total += values[a]
    for a in range(len(values)):
        values[a] /= total
    _fill(values, vectors, tasks, B)


@kernel(allocates=True, inline=False)
def _is_finite(matrix: FloatArray) -> bool:
    finite = True
    for j in range(len(matrix)):
        for k in range(len(matrix)):
            finite &= math.isfinite(matrix[j, k])
    return finite


@kernel(allocates=True, inline=False)
def _step(settings: Settings, state: State, G: FloatArray, tasks: IntArray, B: FloatArray, L: FloatArray) -> bool:
    """B and log B, copies of the old ones, to the new ones; False if the decomposition would meet infinity."""
    divergence, sums, n_features = settings.divergence, state.sums, state.counters[USED]
    K = len(G)
    for j in range(K):
        for k in range(K):
            if divergence == LOGDET:
                B[j, k] += settings.eta * G[j, k]
            elif divergence == VON_NEUMANN:
                L[j, k] += settings.eta * G[j, k]
                B[j, k] = 0.0
            elif divergence == COVARIANCE:
                B[j, k] = (G[j, k] - sums[j] * sums[k] / n_features) / max(n_features - 1, 1)
                B[j, k] += RIDGE if j == k else 0.0
            else:
                B[j, k] = 0.0
    if divergence == VON_NEUMANN:
        if not _is_finite(L):
            return False
        _exponential(L, tasks, not settings.literal, B)
    elif divergence == BATCH:
        _root(G, tasks, B)
    return True


@kernel(allocates=True, inline=False)
def relate(settings: Settings, state: State) -> bool:
    """Let B, and log B for von Neumann, follow G; False, and no step, if it would leave the range of doubles.

    Tasks without weights are related to none. Eigenvectors are taken of the others' part only: rounding would else
    relate them. G is exactly symmetric.
    """
    K = state.counters[TASKS]
    gram, relation, log_relation = state.gram[:K, :K], state.relation[:K, :K], state.log_relation[:K, :K]
    tasks = np.array([k for k in range(K) if gram[k, k] > 0.0], np.int64)
    if not _is_finite(gram):
        return False
    if len(tasks) == 0:
        return True
    B, L = relation.copy(), log_relation.copy()
    if not _step(settings, state, gram, tasks, B, L):
        return False
    trace = 0.0
    for k in range(K):
        trace += B[k, k]
    if not (0.0 < trace < np.inf and _is_finite(B)):
        return False
    scale = 1.0 if settings.literal else K / trace
    for j in range(K):
        for k in range(K):
            relation[j, k] = scale * B[j, k]
    for j in range(len(L)):
        for k in range(len(L)):
            log_relation[j, k] = L[j, k] + (math.log(scale) if j == k else 0.0)
    return True


# ---- learning ----------------------------------------------------------------------------------------------


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    """The number of rounds, or FAILED if the literal rule has left the range of doubles."""
    z, b = np.zeros(state.weights.shape[1]), np.zeros(state.weights.shape[1])
    for r in range(len(rounds.starts) - 1):
        first, last = rounds.starts[r], rounds.starts[r + 1]
        newest = rounds.task[first]
        for row in range(first, last):
            newest = max(newest, rounds.task[row])
        enter(state, newest + 1, settings.literal)
        state.counters[ROUNDS] += 1
        if len(decisions) > 0:
            for row in range(first, last):
                decisions[row] = margin(rounds, row, state)
        for row in range(first, last):
            norm = squared_norm(rounds, row)
            if norm == 0.0 or not is_mistake(margin(rounds, row, state), rounds.y[row]):
                continue
            move(rounds, row, norm, settings, state, z, b)
            state.updates[rounds.task[row]] += 1
            if state.counters[ROUNDS] > settings.warmup and not relate(settings, state) and settings.literal:
                return FAILED
    return len(rounds.starts) - 1


def settings(p: Params) -> Settings:
    return Settings(p.divergence, p.eta_A, p.warmup, p.normalize is None)


def allocate(setup: Setup, size: Size) -> State:
    (n_tasks, n_features), divergence = size, setup.settings.divergence
    covariance = divergence == COVARIANCE
    n_log = n_tasks if divergence == VON_NEUMANN else 0
    weights, square = aligned_zeros((n_features, whole_turns(n_tasks))), (n_tasks, n_tasks)
    sums, used = np.zeros(n_tasks if covariance else 0), np.zeros(n_features if covariance else 0, np.bool_)
    updates, counters = np.zeros(n_tasks, np.int64), np.zeros(4, np.int64)
    log_relation = np.zeros((n_log, n_log))
    return State(weights, np.zeros(square), np.zeros(square), log_relation, sums, used, updates, counters)


def correlations(state: State, k: int, n_tasks: int) -> FloatArray:
    """(n_tasks,) B[k, j] / sqrt(B[k, k] B[j, j]); 0 for a task that the relation has driven to 0."""
    return correlations_with(state.relation[:n_tasks, :n_tasks], k)


ALGORITHM = Algorithm[State](
    parameters={
        "divergence": one_of(DIVERGENCES),
        "eta_A": positive(),
        "warmup": whole(0, "a number of rounds, an integer"),
        "normalize": one_of(("trace", None)),
    },
    settings=settings,
    allocate=allocate,
    learn=learn,
    decide=decide,
    exchange="the relation follows the weights of all tasks, and every step moves all of them",
    no_weights=ONE_STEP,
    tasks=Tasks(enter=lambda setup, state, n_tasks: enter(state, n_tasks, setup.settings.literal)),
    chunks=Chunks(
        may_fail=lambda p: p.normalize is None,
        failure=(
            "the literal relation (normalize=None) left the range of doubles at update {updates}, and the model was "
            "put back to what it was before this call; use normalize='trace', or a smaller eta_A"
        ),
    ),
    explain=Explain(likeness=correlations),
)


@from_keywords
class OMTRL(Classifier):
    """Perceptrons that learn from each other's mistakes through a relation which is learned as well.

    On a mistake of task i (ŷ ≠ y) every task j makes the step ``w_j <- w_j + y B[j, i] x``; then B follows the Gram
    matrix ``G = WᵀW`` of the weights, by `divergence`. Cost O(nnz) to predict, O(nnz K + K²) a mistake, K³ more with
    "von-neumann" and "batch".

    Parameters
    ----------
    divergence : {"logdet", "von-neumann", "covariance", "batch"}
        "logdet": ``B <- B + eta_A G`` (the papers' OMTLLOG). "von-neumann": ``B <- exp(log B + eta_A G)`` (OMTLVON).
        "covariance": the covariance of the tasks' weights, over the features that have any, plus 1e-6 I (OMTRL).
        "batch": ``G^½/tr G^½``, the best B of trace 1 for the present weights.
    eta_A : float > 0
        Step of "logdet" and "von-neumann". Search downwards: large values make B a matrix of rank one.
    warmup : int >= 0
        The first `warmup` rounds leave B as it is: independent Perceptrons (the papers' EPOCH times T).
    normalize : {"trace", None}
        "trace": B is rescaled to trace K after each step. None: the literal rule, which soon overflows.
    classes : two labels, optional
        Needed where the first label does not tell the other; see `partial_fit`.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) weights
    relation_ : (n_tasks, n_tasks) the rates B: on a mistake of task i, task j moves by B[j, i]
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_, task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters; in the literal rule, when B leaves the range of doubles (the model stays as
        it was before the call).

    Notes
    -----
    A new task begins related to none, with rate 1 (literal: K, from A = I/K). A task without weights whose rate the
    relation has driven to 0 begins anew with its first mistake. Rows without non-zeros teach nothing. An unseen task
    is answered by the mean of all tasks' weights.

    Odd rows: one wrong label moves the weights by one step, however sure the forecast was; a value of 1e6 in a row that
    is misjudged moves its weight by 1e6 such steps, which later rows do not take back.

    References
    ----------
    Saha, Rai, Venkatasubramanian, Daumé. Online Learning of Multiple Tasks and Their Relationships. AISTATS 2011.
    "batch": Zhang, Yeung. A Convex Formulation for Learning Task Relationships. UAI 2010.

    Examples
    --------
    >>> from shoal import OMTRL
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> for warmup in (2000, 0):  # without and with a relation
    ...     learner = OMTRL(warmup=warmup)
    ...     decisions = learner.test_then_train(data.X, data.y, data.task)
    ...     print(f"warmup {warmup:4} error {((decisions >= 0) != (data.y > 0)).mean():.3f}")
    warmup 2000 error 0.305
    warmup    0 error 0.240
    """

    divergence: str = "logdet"
    eta_A: float = 1e-3
    warmup: int = 0
    normalize: str | None = "trace"
    classes: Any = None

    algorithm = ALGORITHM

    def baselines(self) -> dict[str, Learner]:
        return {name: learner_class("MultitaskPerceptron")(relation=name) for name in ("independent", "pooled")}

    @property
    def coef_(self) -> FloatArray:
        """(n_tasks, n_features) weights."""
        weights = self._state("coef_").weights
        return np.ascontiguousarray(weights[: self.n_features_in_, : len(self.tasks_)].T)

    @property
    def relation_(self) -> FloatArray:
        """(n_tasks, n_tasks) the rates B = A^-1: on a mistake of task i, task j moves by B[j, i]."""
        n = len(self.tasks_)
        relation: FloatArray = self._state("relation_").relation[:n, :n]
        return relation.copy()
