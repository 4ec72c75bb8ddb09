"""2p-norm matrix Perceptron (Cavallanti, Cesa-Bianchi, Gentile, JMLR 2010, section 6): tasks in a common subspace.

The tasks' Perceptrons V (d, K) predict through the gradient link of a Schatten norm, which favours few directions:

    W = grad (1/2)||V||_{S_2p}^2 = tr(G^p)^(1/p-1) V G^(p-1),  G = V^T V      v_k <- v_k + y_k x_k  for all mistaken k

p = 1 leaves them independent. All goes through G and V^T x, so no singular value of a (d, K) matrix is ever taken, and
kernels serve as well (section 6.2.1). Remark 12 replaces the mistakes by the steps tau of a shared loss.

G and its power are kept up to date without V: a step v_k <- v_k + c x changes G by e_k u^T + u e_k^T with
u = c V^T x + (c^2/2) ||x||^2 e_k, and hence, m = p - 1,

    G'^m - G^m = sum_{i < m}  (G'^i e_k) (G^(m-1-i) u)^T + (G'^i u) (G^(m-1-i) e_k)^T,

which takes O(K^2 p) instead of the O(K^3) of a product. The power is multiplied anew after K steps, or when the trace
has moved far or the power shrunk, so that rounding does not add up. The state holds G / scale, scale a power of two
near the trace: the gradient does not depend on it, and powers neither over- nor underflow.
"""

import math
from typing import Annotated, Any, Final, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray, aligned_zeros
from shoal.engine.axes import FEATURE, TASK
from shoal.engine.compile import kernel
from shoal.engine.kernel_functions import LINEAR, NO_SLOTS, KernelFunction, resolve
from shoal.engine.losses import is_mistake
from shoal.engine.rounds import Rounds
from shoal.engine.rows import FEATURES, TASKS, add, dot_all, open_round, row_bounds, whole_turns
from shoal.learner import Classifier, Learner
from shoal.model.algorithm import ONE_STEP, Algorithm, Chunks, Explain, Setup, Size, Storage, Tasks
from shoal.model.explanations import correlations_with
from shoal.model.parameters import Params, between, from_keywords, or_auto, positive
from shoal.model.persistence import learner_class
from shoal.online.common import support_vectors
from shoal.online.common.shared_loss_steps import Norm, finite_steps, norm_code
from shoal.online.common.support_vectors import ROWS, STORED, Support, Supported, append, compare

P: Final = 0  # positions in `form`
SCALE: Final = 1
FACTOR: Final = 2
STEPS: Final = 3
PEAK: Final = 4
DRIFT: Final = 4.0  # how far the trace may be from the scale
SHRUNK: Final = 1e-3  # beside its peak, of which the last digits remain in a power that steps have made
ROUNDING: Final = 1.0 + 1e-9  # v = x makes |<v, x>| = ||v|| ||x||, but for the last digits

AUTO = 0.0
LARGEST_P = 64  # beyond, powers of G could underflow, and S_2p is the spectral norm for all purposes


class Settings(NamedTuple):
    """Hyper-parameters."""

    p: float  # AUTO: ceil(ln min(d, K))
    shared: bool  # learn from a shared loss, not from mistakes
    norm: Norm  # of that loss
    C: float
    kernel: KernelFunction


class Gram(NamedTuple):
    """Products of the tasks' weights with each other, and factors of their powers."""

    products: Annotated[FloatArray, TASK, TASK]  # G/scale
    power: Annotated[FloatArray, TASK, TASK]  # (G/scale)^(p-1)
    form: FloatArray  # (5,) p, scale, factor tr((G/scale)^p)^(1/p-1), and of the power: steps since fresh, its peak


class State(NamedTuple):
    """V as weights feature by feature, or as rows with their factors if the kernel is not linear."""

    weights: Annotated[FloatArray, FEATURE, TASK]  # V, tasks padded to blocks; or (0, padded tasks)
    support: Support  # rows of V's expansion, their factors in place of labels
    gram: Gram
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (3,) tasks, rounds, features


# ---- the Gram matrix ---------------------------------------------------------------------------------------


def empty_gram(n_tasks: int) -> Gram:
    """The Gram matrix of V = 0."""
    return Gram(np.zeros((n_tasks, n_tasks)), np.zeros((n_tasks, n_tasks)), np.array([0.0, 1.0, 0.0, 0.0, 0.0]))


@kernel
def trace(gram: Gram, K: int) -> float:
    """tr G / scale."""
    total = 0.0
    for k in range(K):
        total += gram.products[k, k]
    return total


@kernel
def height(gram: Gram, K: int) -> float:
    """The largest entry of the power, which is semidefinite: one on the diagonal."""
    largest = 0.0
    for k in range(K):
        largest = max(largest, gram.power[k, k])
    return largest


@kernel
def apply(gram: Gram, K: int, v: FloatArray, out: FloatArray) -> None:
    """out <- (G/scale) v."""
    for j in range(K):
        total = 0.0
        for k in range(K):
            total += gram.products[j, k] * v[k]
        out[j] = total


@kernel
def multiply(A: FloatArray, B: FloatArray, out: FloatArray) -> None:
    """out <- A B; in one order of sums on every machine, which a BLAS does not promise."""
    n = len(out)
    for i in range(n):
        for k in range(n):
            out[i, k] = 0.0
        for j in range(n):
            for k in range(n):
                out[i, k] += A[i, j] * B[j, k]


@kernel(entry="too", allocates=True, inline=False)
def refresh(gram: Gram, K: int, p: float) -> None:
    """(G/scale)^(p-1) anew: by products for whole p, by eigenvalues else.

    Of the tasks that have learned only: v_k = 0 makes w_k = 0, not a rounding error whose sign would predict.
    """
    gram.form[P], gram.form[STEPS] = p, 0.0
    learned = np.array([k for k in range(K) if gram.products[k, k] > 0.0], np.int64)  # the others' products are zeros
    n = len(learned)
    G, power, scratch = np.empty((n, n)), np.zeros((n, n)), np.empty((n, n))
    for a in range(n):
        power[a, a] = 1.0  # G^0
        for b in range(n):
            G[a, b] = gram.products[learned[a], learned[b]]
    if n > 0 and p != math.floor(p):
        fractional_power(G, p - 1.0, power)
    else:
        for _ in range(int(p) - 1):
            multiply(power, G, scratch)
            power, scratch = scratch, power
    for j in range(K):
        for k in range(K):
            gram.power[j, k] = 1.0 if p == 1.0 and j == k else 0.0
    for a in range(n):
        for b in range(n):
            gram.power[learned[a], learned[b]] = power[a, b]
    gram.form[PEAK] = height(gram, K)
    update_factor(gram, K)


@kernel(allocates=True, inline=False)
def fractional_power(G: FloatArray, exponent: float, out: FloatArray) -> None:
    """out <- G^exponent of a semidefinite G."""
    K = len(G)
    values, vectors = np.linalg.eigh(G)
    for j in range(K):
        for k in range(K):
            out[j, k] = 0.0
            for i in range(K):
                out[j, k] += vectors[j, i] * max(0.0, values[i]) ** exponent * vectors[k, i]


@kernel
def update_factor(gram: Gram, K: int) -> None:
    """The factor tr(G^p)^(1/p-1) of grad (1/2)||V||_{S_2p}^2 = tr(G^p)^(1/p-1) V G^(p-1), for G/scale.

    tr(G^p) >= K (tr G / K)^p and tr(G^p)^(1-1/p) >= |G^(p-1)[j, k]| for any semidefinite G, so what rounding makes of
    it must not be less.
    """
    total, size, p, largest = 0.0, trace(gram, K), gram.form[P], 0.0
    for j in range(K):
        for k in range(K):
            total += gram.power[j, k] * gram.products[j, k]
            largest = max(largest, abs(gram.power[j, k]))
    total = max(total, K * (max(size, 0.0) / K) ** p)
    factor = total ** (1.0 / p - 1.0) if size > 0.0 else 0.0
    gram.form[FACTOR] = 1.0 if p == 1.0 else min(factor, 1.0 / largest) if largest > 0.0 else factor


@kernel
def rescale(gram: Gram, K: int, size: float) -> None:
    """Another scale, the power of two at or below the size."""
    shift = math.frexp(gram.form[SCALE])[1] - math.frexp(size)[1]
    for j in range(K):
        for k in range(K):
            gram.products[j, k] = math.ldexp(gram.products[j, k], shift)
    gram.form[SCALE] = math.ldexp(0.5, math.frexp(size)[1])
    gram.form[STEPS] = K  # the power is multiplied anew when the round is done


@kernel
def bound(gram: Gram, K: int, norm: float, z: FloatArray) -> None:
    """Clip |z_j| to ||v_j|| ||x||: parts of v_j that G lost next to far larger rows must not come back by V^T x."""
    for j in range(K):
        largest = ROUNDING * math.sqrt(gram.products[j, j]) * math.sqrt(gram.form[SCALE]) * math.sqrt(norm)
        z[j] = min(max(z[j], -largest), largest)


@kernel(allocates=True, inline=False)
def step_gram(gram: Gram, K: int, k: int, c: float, z: FloatArray, norm: float) -> None:
    """After v_k <- v_k + c x, with z = V^T x before and norm = ||x||^2; a round of steps ends with `finish_round`."""
    form, G, p = gram.form, gram.products, gram.form[P]
    bound(gram, K, norm, z)
    largest = 2.0 * (trace(gram, K) * form[SCALE] + c * c * norm)  # ||V + M||^2 <= 2 ||V||^2 + 2 ||M||^2
    if largest > 0.0 and not form[SCALE] / DRIFT <= largest <= form[SCALE] * DRIFT:
        rescale(gram, K, largest)
    if p != math.floor(p):
        form[STEPS] = K
    half = 0.5 * c * c * norm / form[SCALE]
    m = int(p) - 1 if form[STEPS] < K else 0
    e, u = np.zeros((m + 1, K)), np.zeros((m + 1, K))  # line i: (G/scale)^i e_k and (G/scale)^i u
    if m > 0:
        e[0, k], u[0, k] = 1.0, half
        for j in range(K):
            u[0, j] += c * z[j] / form[SCALE]
    for i in range(m - 1):
        apply(gram, K, e[i], e[i + 1])
        apply(gram, K, u[i], u[i + 1])
    for j in range(K):
        G[k, j] += c * z[j] / form[SCALE]
        G[j, k] += c * z[j] / form[SCALE]
    G[k, k] += 2.0 * half
    if G[k, k] <= 0.0:  # the rest of v_k is below the rounding of what was taken away
        for j in range(K):
            G[j, k] = G[k, j] = 0.0
        form[STEPS] = K
    elif m > 0:
        form[STEPS] += 1.0
        grow_power(gram, K, e, u, np.zeros((4, K)))


@kernel
def grow_power(gram: Gram, K: int, e: FloatArray, u: FloatArray, scratch: FloatArray) -> None:
    """power += sum_{i < m} (G'^i e_k) (G^(m-1-i) u)^T + (G'^i u) (G^(m-1-i) e_k)^T; G' is there, G in the lines."""
    m = len(e) - 1
    for j in range(K):
        scratch[0, j], scratch[1, j] = e[0, j], u[0, j]
    for i in range(m):
        now, then = 2 * (i % 2), 2 * ((i + 1) % 2)
        new_e, new_u, old_e, old_u = scratch[now], scratch[now + 1], e[m - 1 - i], u[m - 1 - i]
        for a in range(K):
            for b in range(K):
                gram.power[a, b] += new_e[a] * old_u[b] + new_u[a] * old_e[b]
        apply(gram, K, new_e, scratch[then])
        apply(gram, K, new_u, scratch[then + 1])
    gram.form[PEAK] = max(gram.form[PEAK], height(gram, K))


@kernel
def finish_round(gram: Gram, K: int) -> None:
    """Bring scale, power and factor up to date after the steps of a round."""
    size = trace(gram, K)
    if 0.0 < size < 1.0 / DRIFT:
        rescale(gram, K, size * gram.form[SCALE])
    stale = gram.form[STEPS] >= K or height(gram, K) < SHRUNK * gram.form[PEAK]
    if gram.form[P] > 1.0 and stale:
        refresh(gram, K, gram.form[P])
    else:
        update_factor(gram, K)


# ---- learning ----------------------------------------------------------------------------------------------


@kernel(entry="too", allocates=True)
def prepare(settings: Settings, state: State) -> None:
    """Follow p = ceil(ln min(d, K)) as tasks and features come; d is infinite for kernels."""
    K = max(state.counters[TASKS], 1)
    p = settings.p
    if p == AUTO:
        rank = min(K, max(state.counters[FEATURES], 1)) if settings.kernel.kind == LINEAR else K
        p = max(1.0, math.ceil(math.log(rank)))
    if p != state.gram.form[P]:
        refresh(state.gram, K, p)
    if p == 1.0:
        for k in range(K):
            state.gram.power[k, k] = 1.0


@kernel(sums="in order")
def norm_in_order(rounds: Rounds, row: int) -> float:
    """||x||^2, summed as `dot_all` sums: when v = x loses x again, nothing remains in the Gram matrix."""
    first, last = row_bounds(rounds, row)
    total = 0.0
    for p in range(first, last):
        total += rounds.values[p] * rounds.values[p]
    return total


@kernel
def products(rounds: Rounds, row: int, settings: Settings, state: State, z: FloatArray, scratch: FloatArray) -> float:
    """z <- V^T x for all tasks; <x, x> is returned."""
    if settings.kernel.kind == LINEAR:
        dot_all(rounds, row, state.weights, z)
        return norm_in_order(rounds, row)
    n = state.support.extent[STORED]
    scratch[:n] = 1.0
    norm = compare(rounds, row, settings.kernel, state.support, scratch)
    z[:] = 0.0
    for s in range(n):
        z[state.support.task[s]] += state.support.y[s] * scratch[s]
    return norm


@kernel
def margin(state: State, k: int, z: FloatArray) -> float:
    """<w_k, x> = sum_j factor G^(p-1)[k, j] z_j; 0 for an unseen task, whose v is 0.

    Factor and power make numbers of at most 1; the power alone may be 1e38 and carry <v, x> out of range.
    """
    f = 0.0
    if k >= 0:
        for j in range(state.counters[TASKS]):
            f += relation(state, k, j) * z[j]
    return f


@kernel(sums="in order")
def relation(state: State, j: int, k: int) -> float:
    """tr(G^p)^(1/p-1) G^(p-1)[j, k]."""
    return float(state.gram.form[FACTOR] * state.gram.power[j, k])


@kernel(entry=True, allocates=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    z, scratch = np.empty(state.weights.shape[1]), np.empty(len(state.support.y))
    for row in range(len(decisions)):
        products(rounds, row, settings, state, z, scratch)
        decisions[row] = margin(state, rounds.task[row], z)


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    capacity = state.weights.shape[1]
    z, scratch = np.empty(capacity), np.empty(len(state.support.y))
    losses, steps = np.empty(capacity), np.empty(capacity)
    for r in range(len(rounds.starts) - 1):
        first, last = open_round(rounds, r, state.counters)
        prepare(settings, state)
        K, n = state.counters[TASKS], last - first
        for row in range(first, last):
            products(rounds, row, settings, state, z, scratch)
            f, y = margin(state, rounds.task[row], z), rounds.y[row]
            if len(decisions) > 0:
                decisions[row] = f
            losses[row - first] = max(0.0, 1.0 - y * f)
            steps[row - first] = 1.0 if is_mistake(f, y) else 0.0
        if settings.shared:
            finite_steps(losses[:n], settings.norm, settings.C, steps[:n])
        moves = False
        for row in range(first, last):
            if steps[row - first] > 0.0:
                moves = True
                norm = products(rounds, row, settings, state, z, scratch)
                move(rounds, row, steps[row - first] * rounds.y[row], settings, state)
                step_gram(state.gram, K, rounds.task[row], steps[row - first] * rounds.y[row], z, norm)
            state.support.extent[ROWS] += 1
        if moves:
            finish_round(state.gram, K)
    return len(rounds.starts) - 1


@kernel
def move(rounds: Rounds, row: int, c: float, settings: Settings, state: State) -> None:
    """v_k <- v_k + c x."""
    k = rounds.task[row]
    if settings.kernel.kind == LINEAR:
        add(rounds, row, c, state.weights[:, k])
    else:
        append(rounds, row, settings.kernel, state.support)
        state.support.y[state.support.extent[STORED] - 1] = c
    state.updates[k] += 1


def settings(p: Params) -> Settings:
    shared = p.shared_loss is not None
    norm = norm_code(p.shared_loss if shared else "l2", p.r, "shared_loss")
    return Settings(p.p, shared, norm, p.C, resolve(p.kernel, p.gamma))


def allocate(setup: Setup, size: Size) -> State:
    (n_tasks, n_features), linear = size, setup.settings.kernel.kind == LINEAR
    weights = aligned_zeros((n_features if linear else 0, whole_turns(n_tasks)))
    return State(
        weights, support_vectors.empty(), empty_gram(n_tasks), np.zeros(n_tasks, np.int64), np.zeros(3, np.int64)
    )


def enter(setup: Setup, state: State, n_tasks: int) -> None:
    state.counters[TASKS] = n_tasks
    prepare(setup.settings, state)


def leave(setup: Setup, state: State, k: int) -> None:
    """The rows of the task go with it."""
    support_vectors.keep(state.support, NO_SLOTS, 0, k)
    task = state.support.task[: state.support.extent[STORED]]
    task[task > k] -= 1


def left(setup: Setup, state: State, n_tasks: int) -> None:
    """Compute the products anew without the task, whose weights are also in those of the others."""
    prepare(setup.settings, state)
    refresh(state.gram, max(n_tasks, 1), state.gram.form[P])


def check(setup: Setup, state: State, size: Size) -> None:
    support_vectors.check(setup, state, size)
    p, scale, _, steps, _ = state.gram.form
    if not ((p == 0.0 or 1.0 <= p <= LARGEST_P) and scale > 0.0 and steps >= 0.0) or (state.support.task < 0).any():
        raise ValueError("its power or scale is out of range")


def correlations(state: State, k: int, n_tasks: int) -> FloatArray:
    """(n_tasks,) of task k in G^(p-1)."""
    return correlations_with(state.gram.power[:n_tasks, :n_tasks], k)


ALGORITHM = Algorithm[State](
    parameters={"p": or_auto(between(1, LARGEST_P), AUTO), "C": positive()},
    settings=settings,
    allocate=allocate,
    learn=learn,
    decide=decide,
    exchange="the norm is that of all tasks' weights together",
    no_weights=ONE_STEP,
    tasks=Tasks(enter=enter, leave=leave, left=left),
    storage=Storage(pack=support_vectors.pack(allocate), check=check),
    chunks=Chunks(simultaneous=True),
    explain=Explain(likeness=correlations),
)
WITH_ROWS = ALGORITHM._replace(
    chunks=Chunks(simultaneous=True, pieces=support_vectors.pieces, may_fail=lambda p: callable(p.kernel)),
    explain=ALGORITHM.explain._replace(linear=False),
)


@from_keywords
class SchattenPerceptron(Supported, Classifier):
    """The 2p-norm matrix Perceptron: tasks whose weights lie near a common subspace help each other find it.

    Every mistaken task of a round (ŷ ≠ y) makes ``v_k <- v_k + y_k x_k``, and tasks are answered by the columns of
    ``W = tr(G^p)^(1/p-1) V G^(p-1)`` with G = VᵀV. Cost O(nnz K) to predict an example and O(nnz K + K² p) to learn
    from it (for p that is not whole O(K³) a round with mistakes); with a kernel O(s) kernels take the place of nnz K,
    s the number of mistakes so far.

    Parameters
    ----------
    p : float in [1, 64] or "auto"
        1: independent Perceptrons; the larger, the fewer directions the tasks share. "auto": ceil(ln min(d, K)), at
        least 1, of the tasks and features that there are at the row.
    kernel : {"linear", "rbf"} or function
        As in `KernelPerceptron`.
    gamma : float > 0
        Width of "rbf".
    shared_loss : {None, "l1", "l2", "linf", "rmax"} or float in [1, inf]
        A norm of the round's hinge losses to learn from instead of mistakes (Remark 12): the steps are
        ``v_k <- v_k + tau_k y_k x_k`` with tau = argmax {Σ tau_k l_k: ‖tau‖_* ≤ C}, the norms and the "finite" rule
        of `SharedLoss`. A number p is Lp.
    C : float > 0
        Size of the steps of the shared loss.
    r : int >= 1
        For "rmax" only.
    classes : two labels, optional
        Needed where the first label does not tell the other; see `partial_fit`.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) weights W, if the kernel is linear
    relation_ : (n_tasks, n_tasks) tr(G^p)^(1/p-1) G^(p-1), what W is to V: how much of each other's sums tasks use
    p_ : float, p in force
    support_, support_vectors_ : places in the stream of the rows kept, and the rows, if the kernel is not linear
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_, task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters.

    Notes
    -----
    A task that is absent from a round stays. An unseen task has v = 0 and is answered with margin 0, the larger
    label. A forgotten task takes its sum v_k, and with it what the others' weights owe to it. Mistakes are bounded by
    Theorem 9, `shoal.theory.schatten_mistake_bound`, shared losses by Remark 12, `shoal.theory.schatten_loss_bound`.
    A round ends where a call ends, so other chunks are other rounds unless `rounds=` names them.

    Odd rows: one wrong label moves the dual weights by one step, however sure the forecast was; a value of 1e6 in a row
    that is misjudged moves its weight by 1e6 such steps, which later rows do not take back.

    References
    ----------
    Cavallanti, Cesa-Bianchi, Gentile. Linear Algorithms for Online Multitask Classification. JMLR 11, 2010:
    section 6, figure 3, Theorem 9, Remark 12.

    Examples
    --------
    30 tasks with opposite or equal weights: one direction, which a mean over tasks cannot see.

    >>> import numpy as np
    >>> from shoal import SchattenPerceptron
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(6000, 20)), np.tile(np.arange(30), 200)
    >>> y = np.sign(X @ rng.normal(size=20)) * np.where(task % 2, 1, -1)
    >>> for p in (1, 2, "auto"):
    ...     decisions = SchattenPerceptron(p=p).test_then_train(X, y, task)
    ...     print(f"p {p!s:4} error {((decisions >= 0) != (y > 0)).mean():.3f}")
    p 1    error 0.209
    p 2    error 0.107
    p auto error 0.094
    """

    p: float | str = "auto"
    kernel: Any = "linear"
    gamma: float = 1.0
    shared_loss: str | float | None = None
    C: float = 1.0
    r: int = 1
    classes: Any = None

    @property
    def algorithm(self) -> Algorithm[State]:
        return ALGORITHM if self._is_linear() else WITH_ROWS

    def _is_linear(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "linear"

    def baselines(self) -> dict[str, Learner]:
        own = type(self)(**{**self.get_params(deep=False), "p": 1})
        if not self._is_linear():
            pooled = learner_class("KernelPerceptron")(relation="pooled", kernel=self.kernel, gamma=self.gamma)
        else:
            loss, eta = ("perceptron", 1.0) if self.shared_loss is None else ("hinge", self.C)
            pooled = learner_class("MultitaskPerceptron")(relation="pooled", loss=loss, eta=eta)
        return {"independent": own, "pooled": pooled}

    @property
    def p_(self) -> float:
        """The p in force."""
        return float(self._state("p_").gram.form[P])

    @property
    def coef_(self) -> FloatArray:
        """(n_tasks, n_features) the columns of W."""
        state = self._state("coef_")
        if not self._is_linear():
            raise AttributeError("SchattenPerceptron has no coef_ if its kernel is not linear")
        V = state.weights[: self.n_features_in_, : len(self.tasks_)]
        return np.ascontiguousarray((V @ self.relation_).T)

    @property
    def relation_(self) -> FloatArray:
        """(n_tasks, n_tasks) tr(G^p)^(1/p-1) G^(p-1)."""
        gram, K = self._state("relation_").gram, len(self.tasks_)
        return np.asarray(gram.form[FACTOR] * gram.power[:K, :K])
