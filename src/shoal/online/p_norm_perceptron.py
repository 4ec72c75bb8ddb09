"""Multitask p-norm Perceptron (Cavallanti, Cesa-Bianchi, Gentile, JMLR 2010, section 4.1).

The tasks' sums of mistakes V (d, K) grow by the multitask Perceptron rule, and its gradient link predicts:

    W = grad (1/2)||V||_p^2    f = sum_j B[j, i] <w_j, x>    on a mistake of task i:  v_j <- v_j + y B[j, i] x, all j

For p = 2 ln max(K, d) mistakes depend on the dimension by its logarithm only: made for sparse comparators.

The link is W = sign(V) |V|^(p-1) / ||V||_p^(p-2). V is never stored where its columns share: V[:, j] = own S[:, j] +
shared s. Its p-norm is kept as sums over features, blocks of features and blocks of blocks, so that a change of n
features costs O(n) whatever d is and no error adds up. All powers are taken of |V|/scale; the scale follows the largest
entry, so nothing over- or underflows.
"""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from shoal import relations
from shoal.engine import losses
from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.axes import FEATURE, OTHER, TASK
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import FEATURES, TASKS, copy_to, feature_at, open_round, row_bounds
from shoal.learner import Classifier
from shoal.model.algorithm import ONE_STEP, Algorithm, Setup, Size, Storage, Tasks
from shoal.model.parameters import Params, at_least, from_keywords, one_of, or_auto
from shoal.online.common.relation_rates import RELATION, Rates, Related, named_tasks, rates_of, shares
from shoal.relations import rates_column

AUTO = 0.0
BLOCK = 64
P, OWN, SHARED, SCALE, FACTOR = range(5)  # positions in `link`
RANGE = 2.0**300  # a sum of powers beyond this, or below its inverse, calls for a new scale


class Settings(NamedTuple):
    """Hyper-parameters."""

    p: float  # AUTO: 2 ln max(K, d)
    root: bool  # B^1/2 in place of B, everywhere
    rates: Rates  # of a given relation already those of the variant


class State(NamedTuple):
    """Weights lie feature by feature, all tasks together."""

    own: Annotated[FloatArray, FEATURE, TASK]  # S, sums of own steps; V itself under a given relation; empty if pooled
    shared: Annotated[FloatArray, FEATURE]  # s, the sum of all steps; empty if nothing is shared
    powers: Annotated[FloatArray, FEATURE, OTHER]  # sign(V)|V/scale|^(p-1), of all tasks if given, else their sum
    sums: Annotated[FloatArray, FEATURE]  # sum over tasks of |V/scale|^p
    blocks: FloatArray  # sums over 64 features
    superblocks: FloatArray  # sums over 64 blocks
    link: FloatArray  # (5,) p, own, shared, scale, and the factor scale / ||V/scale||_p^(p-2) of the powers
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (3,) tasks, rounds, features


# ---- the link ----------------------------------------------------------------------------------------------


@kernel
def power(v: float, link: FloatArray) -> float:
    """sign(v) |v/scale|^(p-1)."""
    return math.copysign((abs(v) / link[SCALE]) ** (link[P] - 1.0), v) if v != 0.0 else 0.0


@kernel
def entry(state: State, a: int, k: int) -> float:
    """V[a, k]; a task without steps of its own (k = -1) has the shared part."""
    v = state.link[SHARED] * state.shared[a] if state.link[SHARED] > 0.0 else 0.0
    return v + state.link[OWN] * state.own[a, k] if state.link[OWN] > 0.0 and k >= 0 else v


@kernel
def refresh(state: State, a: int) -> None:
    """Powers and sum of feature a, after a change of its row of V; a task at the shared value costs no power."""
    K, link = state.counters[TASKS], state.link
    base = entry(state, a, -1)
    common = power(base, link)
    mixed, total = 0.0, 0.0
    for k in range(K):
        v, g = base, common
        if link[OWN] > 0.0 and state.own[a, k] != 0.0:
            v = entry(state, a, k)
            g = power(v, link)
        mixed += g
        total += abs(v) / link[SCALE] * abs(g)
        if len(state.shared) == 0 and state.powers.shape[1] > 0:
            state.powers[a, k] = g
    if len(state.shared) > 0:
        state.powers[a, 0] = mixed
    state.sums[a] = total


@kernel(sums="in order")
def block_sum(values: FloatArray, b: int) -> float:
    """The sum of a block in four strands, whose order does not depend on the capacity behind it."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    first, last = b * BLOCK, min((b + 1) * BLOCK, len(values))
    for i in range(first, last - 3, 4):
        s0 += values[i]
        s1 += values[i + 1]
        s2 += values[i + 2]
        s3 += values[i + 3]
    rest = last - (last - first) % 4
    if rest < last:
        s0 += values[rest]
    if rest + 1 < last:
        s1 += values[rest + 1]
    if rest + 2 < last:
        s2 += values[rest + 2]
    return (s0 + s1) + (s2 + s3)


@kernel
def largest(state: State) -> float:
    """max |V|, or 1 if V = 0."""
    top = 0.0
    for a in range(len(state.sums)):
        top = max(top, abs(entry(state, a, -1)))
        if state.link[OWN] > 0.0:
            for k in range(state.counters[TASKS]):
                top = max(top, abs(entry(state, a, k)))
    return top if top > 0.0 else 1.0


@kernel(entry="too")
def rebuild(state: State, p: float, own: float, shared: float) -> None:
    """Everything anew in O(K d): p, the shares or the scale changed."""
    state.link[P], state.link[OWN], state.link[SHARED] = p, own, shared
    state.link[SCALE] = largest(state)
    for a in range(len(state.sums)):
        refresh(state, a)
    for b in range(len(state.blocks)):
        state.blocks[b] = block_sum(state.sums, b)
    for b in range(len(state.superblocks)):
        state.superblocks[b] = block_sum(state.blocks, b)
    update_factor(state)


@kernel
def update_factor(state: State) -> float:
    """The factor, from the p-norm; returns the sum of powers."""
    total, p = 0.0, state.link[P]
    for b in range(-(-len(state.superblocks) // BLOCK)):
        total += block_sum(state.superblocks, b)
    state.link[FACTOR] = state.link[SCALE] * total ** ((2.0 - p) / p) if total > 0.0 else 0.0
    return total


@kernel
def changed(rounds: Rounds, row: int, state: State) -> None:
    """Bring everything up to date after V changed on the features of the row."""
    first, last = row_bounds(rounds, row)
    for i in range(first, last):
        refresh(state, feature_at(rounds, row, i))
    done = -1
    for i in range(first, last):
        b = feature_at(rounds, row, i) // BLOCK
        if b != done:
            done = b
            state.blocks[b] = block_sum(state.sums, b)
    done = -1
    for i in range(first, last):
        b = feature_at(rounds, row, i) // BLOCK**2
        if b != done:
            done = b
            state.superblocks[b] = block_sum(state.blocks, b)
    total = update_factor(state)
    if first < last and not 1.0 / RANGE <= total <= RANGE:
        rebuild(state, state.link[P], state.link[OWN], state.link[SHARED])


# ---- learning ----------------------------------------------------------------------------------------------


@kernel(entry="too")
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
        rebuild(state, p, own, shared)


@kernel
def margin(rounds: Rounds, row: int, settings: Settings, state: State, column: FloatArray) -> float:
    """sum_j B[j, i] <w_j, x>; `column` receives B[:, i] of a given relation."""
    k, link = rounds.task[row], state.link
    first, last = row_bounds(rounds, row)
    f = 0.0
    if len(settings.rates.mean) == 0:
        for i in range(first, last):
            a, x = feature_at(rounds, row, i), rounds.values[i]
            if link[OWN] > 0.0:
                f += x * link[OWN] * power(entry(state, a, k), link)
            if link[SHARED] > 0.0:
                f += x * link[SHARED] * state.powers[a, 0]
        return float(f * link[FACTOR])
    load_column(settings, k, column)
    for i in range(first, last):
        a, x = feature_at(rounds, row, i), rounds.values[i]
        for j in range(len(column)):
            f += x * column[j] * state.powers[a, j]
    return float(f * link[FACTOR])


@kernel(entry="too", allocates=True)
def load_column(settings: Settings, k: int, column: FloatArray) -> None:
    """column <- B[:, k]; the mean of all columns for an unseen task."""
    if k >= 0:
        rates_column(settings.rates.factors, k, column)
    else:
        copy_to(column, settings.rates.mean)


@kernel
def step(rounds: Rounds, row: int, settings: Settings, state: State, column: FloatArray) -> None:
    """v_j <- v_j + y B[j, i] x for all j; `column` still holds B[:, i]."""
    k, y = rounds.task[row], rounds.y[row]
    first, last = row_bounds(rounds, row)
    for i in range(first, last):
        a, change = np.uint32(feature_at(rounds, row, i)), y * rounds.values[i]
        if len(settings.rates.mean) > 0:
            for j in range(len(column)):
                state.own[a, j] += change * column[j]
        else:
            if state.own.shape[1] > 0:
                state.own[a, k] += change
            if len(state.shared) > 0:
                state.shared[a] += change
    changed(rounds, row, state)
    state.updates[k] += 1


@kernel(entry=True, allocates=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    column = np.empty(len(settings.rates.mean))
    for row in range(len(decisions)):
        decisions[row] = margin(rounds, row, settings, state, column)


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
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
    return len(rounds.starts) - 1


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


def empty(n_tasks: int, n_features: int, *, own: bool, shared: bool, given: bool) -> State:
    """V = 0."""
    n_blocks = -(-n_features // BLOCK)
    return State(
        own=np.zeros((n_features, n_tasks if own else 0)),
        shared=np.zeros(n_features if shared else 0),
        powers=np.zeros((n_features, n_tasks if given else int(shared))),
        sums=np.zeros(n_features),
        blocks=np.zeros(n_blocks),
        superblocks=np.zeros(-(-n_blocks // BLOCK)),
        link=np.array([0.0, 0.0, 0.0, 1.0, 0.0]),
        updates=np.zeros(n_tasks, np.int64),
        counters=np.zeros(3, np.int64),
    )


def allocate(setup: Setup, size: Size) -> State:
    relation = setup.params.relation
    if isinstance(relation, relations.Given):
        return empty(*size, own=True, shared=False, given=True)
    independent = relation.b == 0 and not relation.b_is_n_tasks
    return empty(*size, own=not math.isinf(relation.b), shared=not independent, given=False)


def enter(setup: Setup, state: State, n_tasks: int) -> None:
    state.counters[TASKS] = n_tasks
    prepare(setup.settings, state)


def left(setup: Setup, state: State, n_tasks: int) -> None:
    """V is that of the tasks that are left."""
    prepare(setup.settings, state)
    rebuild(state, *state.link[: SHARED + 1])


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
    tasks=Tasks(named=named_tasks, enter=enter, left=left),
    storage=Storage(check=check),
)


@from_keywords
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

    relation: Any = "pairwise"
    p: float | str = "auto"
    variant: str = "printed"
    classes: Any = None

    algorithm = ALGORITHM

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
