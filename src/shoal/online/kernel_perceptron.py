"""Multitask kernel Perceptron (Cavallanti, Cesa-Bianchi, Gentile, JMLR 2010, section 3, eq. 3).

The Perceptron of figure 1 with the multitask kernel  K((x, i), (z, j)) = B[i, j] k(x, z),  B = A^-1: it keeps the
rows on which it was wrong, and decides  f = sum_s y_s B[i_s, i] k(x_s, x).  With k(x, z) = <x, z> it is
`MultitaskPerceptron`; with any other kernel, Theorem 1 holds for functions in place of weights.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from shoal.engine import losses
from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.axes import TASK
from shoal.engine.compile import kernel
from shoal.engine.kernel_functions import KernelFunction, resolve
from shoal.engine.rounds import Rounds
from shoal.engine.rows import TASKS, open_round
from shoal.learner import Classifier
from shoal.model.algorithm import ONE_STEP, Algorithm, Chunks, Explain, Setup, Size, Storage, Tasks
from shoal.model.parameters import Params, from_keywords, optional, whole
from shoal.online.common import support_vectors
from shoal.online.common.relation_rates import RELATION, Rates, Related, named_tasks, rates_of, rates_with
from shoal.online.common.support_vectors import ROWS, STORED, Support, Supported, append, compare, drop_oldest


class Settings(NamedTuple):
    """Hyper-parameters."""

    rates: Rates
    kernel: KernelFunction
    budget: int


class State(NamedTuple):
    """The rows of all mistakes serve every task."""

    support: Support
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (3,) tasks, rounds, features


@kernel(entry="too")
def margin(rounds: Rounds, row: int, settings: Settings, state: State, scratch: FloatArray) -> float:
    """sum_s y_s B[i_s, i] k(x_s, x) (eq. 3)."""
    support = state.support
    n = support.extent[STORED]
    rates_with(settings.rates, state.counters[TASKS], rounds.task[row], support.task, n, scratch)
    compare(rounds, row, settings.kernel, support, scratch)
    total = 0.0
    for s in range(n):
        total += support.y[s] * scratch[s]
    return total


@kernel(entry=True, allocates=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    scratch = np.empty(len(state.support.y))
    for row in range(len(decisions)):
        decisions[row] = margin(rounds, row, settings, state, scratch)


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    scratch = np.empty(len(state.support.y))
    for r in range(len(rounds.starts) - 1):
        first, last = open_round(rounds, r, state.counters)
        if len(decisions) > 0 and last - first > 1:  # the whole round is decided before any of it is learned
            for row in range(first, last):
                decisions[row] = margin(rounds, row, settings, state, scratch)
        for row in range(first, last):
            f = margin(rounds, row, settings, state, scratch)
            if len(decisions) > 0 and last - first == 1:
                decisions[row] = f
            if losses.is_mistake(f, rounds.y[row]):
                while state.support.extent[STORED] >= settings.budget:
                    drop_oldest(settings.kernel, state.support)
                append(rounds, row, settings.kernel, state.support)
                state.updates[rounds.task[row]] += 1
            state.support.extent[ROWS] += 1
    return len(rounds.starts) - 1


PARAMETERS = {"relation": RELATION, "budget": optional(whole(1, "a whole number"))}


def settings(p: Params) -> Settings:
    return Settings(rates_of(p.relation), resolve(p.kernel, p.gamma), support_vectors.most(p))


def allocate(setup: Setup, size: Size) -> State:
    return State(support_vectors.empty(), np.zeros(size.tasks, np.int64), np.zeros(3, np.int64))


ALGORITHM = Algorithm[State](
    parameters=PARAMETERS,
    settings=settings,
    allocate=allocate,
    learn=learn,
    decide=decide,
    exchange="every task answers by the rows that all tasks keep",
    no_weights=ONE_STEP,
    tasks=Tasks(named=named_tasks, leave=support_vectors.leave),
    storage=Storage(pack=support_vectors.pack(allocate), check=support_vectors.check),
    chunks=Chunks(pieces=support_vectors.pieces, may_fail=lambda p: callable(p.kernel)),
    explain=Explain(linear=False),
)


@from_keywords
class KernelPerceptron(Related, Supported, Classifier):
    """Kernel Perceptrons that learn from each other's mistakes through an interaction matrix.

    On a mistake of task i (ŷ ≠ y) the row is kept; a row (x, j) is answered by the sign of
    ``f = sum_s y_s B[i_s, j] k(x_s, x)`` over the rows kept, with B = A^-1 (eq. 3). Cost O(s) kernels an example,
    s the number of rows kept, whatever the number of tasks; tasks without a rate between them cost nothing.

    Parameters
    ----------
    relation : as in `MultitaskPerceptron`
    kernel : {"rbf", "linear"} or function
        exp(-gamma ||x - z||²), <x, z>, or a function of two arrays (n, d) and (m, d) that returns the (n, m)
        values, such as those of `sklearn.metrics.pairwise`; it is called once a round, with dense arrays, and such
        a model cannot be saved.
    gamma : float > 0
        Width of "rbf".
    budget : int >= 1, optional
        Most rows to keep: when it is full, the oldest goes. Cost and memory are then bounded, but the mistake
        bound is not: Theorem 1 needs every mistake, and a row that went may be needed again.
    classes : two labels, optional
        Needed where the first label does not tell the other; see `partial_fit`.

    Attributes
    ----------
    support_ : (n_support,) places in the stream of the rows kept, oldest first
    support_vectors_ : (n_support, n_features) the rows
    relation_ : (n_tasks, n_tasks) the rates B
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_, task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters, or a task that a given graph or matrix does not name.

    Notes
    -----
    Rates that depend on K use the tasks that exist at the row. An unseen task is answered with the rate that all
    tasks have to each other, under a given graph or matrix by the mean of all tasks. There is no `coef_`. The rows
    of a forgotten task stay as long as the others use them. Mistakes: `shoal.theory.kernel_mistake_bound`.

    Odd rows: one wrong label adds one row to the sum; with "rbf" a value of 1e6 makes a row that is like no other and
    costs nothing, with "linear" it is as in `MultitaskPerceptron`.

    References
    ----------
    Cavallanti, Cesa-Bianchi, Gentile. Linear Algorithms for Online Multitask Classification. JMLR 11, 2010:
    eq. 3, Theorem 1, Remark 2.

    Examples
    --------
    Tasks are rings of different sizes around one centre; no line separates inside from outside.

    >>> import numpy as np
    >>> from shoal import KernelPerceptron
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(2000, 2)), rng.integers(20, size=2000)
    >>> y = np.where(np.linalg.norm(X, axis=1) < np.linspace(1.0, 1.4, 20)[task], 1, -1)
    >>> for kernel, relation in [("linear", "pairwise"), ("rbf", "independent"), ("rbf", "pairwise")]:
    ...     decisions = KernelPerceptron(relation=relation, kernel=kernel).test_then_train(X, y, task)
    ...     print(f"{kernel:6} {relation:11} error {((decisions >= 0) != (y > 0)).mean():.3f}")
    linear pairwise    error 0.510
    rbf    independent error 0.191
    rbf    pairwise    error 0.082
    """

    relation: Any = "pairwise"
    kernel: Any = "rbf"
    gamma: float = 1.0
    budget: int | None = None
    classes: Any = None

    algorithm = ALGORITHM
