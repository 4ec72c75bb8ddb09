"""2p-norm matrix Perceptron (Cavallanti, Cesa-Bianchi, Gentile, JMLR 2010, section 6): tasks in a common subspace.

The tasks' Perceptrons V (d, K) predict through the gradient link of a Schatten norm, which favours few directions:

    W = grad (1/2)||V||_{S_2p}^2 = tr(G^p)^(1/p-1) V G^(p-1),  G = V^T V      v_k <- v_k + y_k x_k  for all mistaken k

p = 1 leaves them independent. All goes through G and V^T x, so no singular value of a (d, K) matrix is ever taken, and
kernels serve as well (section 6.2.1). Remark 12 replaces the mistakes by the steps tau of a shared loss.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from shoal.classifier import Classifier
from shoal.engine.arrays import FloatArray, IntArray, aligned_zeros
from shoal.engine.axes import FEATURE, TASK
from shoal.engine.compile import kernel
from shoal.engine.kernels import LINEAR, NO_SLOTS, Kernel, resolve
from shoal.engine.losses import is_mistake
from shoal.engine.rounds import Rounds
from shoal.engine.rows import FEATURES, TASKS, add, dot_all, open_round, whole_turns
from shoal.learner import Learner
from shoal.model.algorithm import ONE_STEP, Algorithm, Setup, Size
from shoal.model.explanations import correlations_with
from shoal.model.parameters import Params, between, or_auto, positive
from shoal.online import _gram
from shoal.online._gram import FACTOR, Gram, P
from shoal.online.common import support_vectors
from shoal.online.common.shared_loss_steps import Norm, finite_steps, norm_code
from shoal.online.common.support_vectors import ROWS, STORED, Support, Supported, append, compare
from shoal.online.multitask_perceptron import MultitaskPerceptron

AUTO = 0.0
LARGEST_P = 64  # beyond, powers of G could underflow, and S_2p is the spectral norm for all purposes


class Settings(NamedTuple):
    """Hyper-parameters."""

    p: float  # AUTO: ceil(ln min(d, K))
    shared: bool  # learn from a shared loss, not from mistakes
    norm: Norm  # of that loss
    C: float
    kernel: Kernel


class State(NamedTuple):
    """V as weights feature by feature, or as rows with their factors if the kernel is not linear."""

    weights: Annotated[FloatArray, FEATURE, TASK]  # V, tasks padded to blocks; or (0, padded tasks)
    support: Support  # rows of V's expansion, their factors in place of labels
    gram: Gram
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (3,) tasks, rounds, features


@kernel(entry=True, allocates=True)
def prepare(settings: Settings, state: State) -> None:
    """Follow p = ceil(ln min(d, K)) as tasks and features come; d is infinite for kernels."""
    K = max(state.counters[TASKS], 1)
    p = settings.p
    if p == AUTO:
        rank = min(K, max(state.counters[FEATURES], 1)) if settings.kernel.kind == LINEAR else K
        p = max(1.0, math.ceil(math.log(rank)))
    if p != state.gram.form[P]:
        _gram.refresh(state.gram, K, p)
    if p == 1.0:
        for k in range(K):
            state.gram.power[k, k] = 1.0


@kernel(sums="in order")
def norm_in_order(rounds: Rounds, row: int) -> float:
    """||x||^2, summed as `dot_all` sums: when v = x loses x again, nothing remains in the Gram matrix."""
    dense = rounds.width > 0
    start = row * rounds.width if dense else rounds.indptr[row]
    total = 0.0
    for p in range(rounds.width if dense else rounds.indptr[row + 1] - start):
        total += rounds.values[start + p] * rounds.values[start + p]
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
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
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
                _gram.step(state.gram, K, rounds.task[row], steps[row - first] * rounds.y[row], z, norm)
            state.support.extent[ROWS] += 1
        if moves:
            _gram.finish(state.gram, K)


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
        weights, support_vectors.empty(), _gram.empty(n_tasks), np.zeros(n_tasks, np.int64), np.zeros(3, np.int64)
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
    """What the others' weights owed to its sum goes too."""
    prepare(setup.settings, state)
    _gram.refresh(state.gram, max(n_tasks, 1), state.gram.form[P])


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
    simultaneous=True,
    enter=enter,
    leave=leave,
    left=left,
    pack=support_vectors.pack(allocate),
    check=check,
    likeness=correlations,
)
WITH_ROWS = ALGORITHM._replace(pieces=support_vectors.pieces, may_fail=lambda p: callable(p.kernel), linear=False)


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

    @property
    def algorithm(self) -> Algorithm[State]:
        return ALGORITHM if self._is_linear() else WITH_ROWS

    def __init__(
        self, *, p: float | str = "auto", kernel: Any = "linear", gamma: float = 1.0,
        shared_loss: str | float | None = None, C: float = 1.0, r: int = 1, classes: Any = None,
    ) -> None:  # fmt: skip
        self.p = p
        self.kernel = kernel
        self.gamma = gamma
        self.shared_loss = shared_loss
        self.C = C
        self.r = r
        self.classes = classes

    def _is_linear(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "linear"

    def baselines(self) -> dict[str, Learner]:
        own = type(self)(**{**self.get_params(deep=False), "p": 1})
        if not self._is_linear():
            from shoal.online.kernel_perceptron import KernelPerceptron

            return {
                "independent": own,
                "pooled": KernelPerceptron(relation="pooled", kernel=self.kernel, gamma=self.gamma),
            }
        loss, eta = ("perceptron", 1.0) if self.shared_loss is None else ("hinge", self.C)
        return {"independent": own, "pooled": MultitaskPerceptron(relation="pooled", loss=loss, eta=eta)}

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
