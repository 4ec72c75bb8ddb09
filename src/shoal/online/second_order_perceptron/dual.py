"""Second-order Perceptron in dual form (Cavallanti et al. 2010, section 4.2.1): K classifiers on one set of rows.

With G[r, s] = B[i_r, i_s] k(x_r, x_s) over the rows kept and k_s = B[i_s, i] k(x_s, x), eq. 11 is

    beta = (a I + G)^-1 y,   f = a beta.k / delta,   delta = a + k(x, x) - k (a I + G)^-1 k

(delta > 0, so the sign is that of beta.k). The inverse is kept as its triangular factor U, U^T U = a I + G: an
update costs the same O(s^2), and to drop a row is to add what it held, where an inverse would have to subtract.
Where rows are so large that a is lost beside them, what rounding leaves is held to what is true of the exact inverse:
||U^-T k||^2 <= k(x, x), ||U^-T y||^2 <= s/a and ||beta|| <= s^½/a.
"""

import math
from collections.abc import Iterator
from typing import Annotated, Any, Final, NamedTuple

import numpy as np

from shoal.engine import losses
from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.axes import ROW, TASK
from shoal.engine.compile import kernel
from shoal.engine.kernel_functions import KernelFunction, resolve
from shoal.engine.rounds import Rounds
from shoal.engine.rows import TASKS, copy_to, open_round
from shoal.model.algorithm import Algorithm, Chunks, Explain, Piece, Setup, Size, Storage, Tasks
from shoal.model.parameters import Params, optional, positive, whole
from shoal.online.common import support_vectors
from shoal.online.common.relation_rates import RELATION, Rates, named_tasks, rates_of, rates_with
from shoal.online.common.support_vectors import ROWS, STORED, Support, append, compare, drop_oldest
from shoal.online.second_order_perceptron.triangular_factor import remove_first, solve, solve_transposed, squared_length

ROUNDING: Final = 1.0 + 1e-9  # by this factor a sharp bound may be passed


class Settings(NamedTuple):
    """Hyper-parameters."""

    a: float
    rates: Rates
    kernel: KernelFunction
    budget: int


class State(NamedTuple):
    """The rows of all mistakes serve every task."""

    support: Support
    factor: Annotated[FloatArray, ROW, ROW]  # U
    whitened: Annotated[FloatArray, ROW]  # U^-T y
    dual: Annotated[FloatArray, ROW]  # beta
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (3,) tasks, rounds, features


@kernel(inline=False)
def compare_all(rounds: Rounds, row: int, settings: Settings, state: State, k: FloatArray) -> tuple[float, float]:
    """beta.k and k(x, x); fills k."""
    support = state.support
    n = support.extent[STORED]
    own = rates_with(settings.rates, state.counters[TASKS], rounds.task[row], support.task, n, k)
    own *= compare(rounds, row, settings.kernel, support, k)
    total = 0.0
    for s in range(n):
        total += state.dual[s] * k[s]
    return total, own


@kernel
def delta(a: float, own: float, n: int, v: FloatArray) -> float:
    """a + k(x, x) - ||v||^2 with v = U^-T k; at least what the rounding of so many terms leaves uncertain.

    (That floor is below 1e-9 of k(x, x): it only decides where k(x, x) is so large that a is lost beside it.)
    """
    uncertain = 16.0 * (n + 16.0) * 2.0**-52
    return max(a + own - squared_length(v, 0, n), uncertain * (a + own))


@kernel(inline=False)
def scaled(total: float, own: float, settings: Settings, state: State, k: FloatArray) -> float:
    """f = a beta.k / delta (eq. 11); uses up k."""
    n = state.support.extent[STORED]
    solve_transposed(state.factor, 0, n, ROUNDING * math.sqrt(own), k)
    return settings.a * (total / delta(settings.a, own, n, k))


@kernel(inline=False)
def border(state: State, n: int, a: float, own: float, y: float, v: FloatArray) -> None:
    """Give U the row and column of one more row, v = k on entry."""
    U = state.factor
    solve_transposed(U, 0, n, ROUNDING * math.sqrt(own), v)
    root = math.sqrt(delta(a, own, n, v))
    total = 0.0
    for s in range(n):
        U[s, n] = v[s]
        total += v[s] * state.whitened[s]
    U[n, n] = root
    limit = ROUNDING * math.sqrt((n + 1) / a)
    state.whitened[n] = min(max((y - total) / root, -limit), limit)


@kernel(inline=False)
def solve_dual(state: State, n: int, a: float) -> None:
    """beta = U^-1 (U^-T y), eq. 11."""
    solve(state.factor, n, state.whitened, ROUNDING * math.sqrt(n) / a, state.dual)


@kernel(entry=True, allocates=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    k = np.empty(len(state.support.y))
    for row in range(len(decisions)):
        total, own = compare_all(rounds, row, settings, state, k)
        decisions[row] = scaled(total, own, settings, state, k)


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    support = state.support
    k, v = np.empty(len(support.y)), np.empty(len(support.y))
    for r in range(len(rounds.starts) - 1):
        first, last = open_round(rounds, r, state.counters)
        if len(decisions) > 0 and last - first > 1:  # the whole round is decided before any of it is learned
            for row in range(first, last):
                total, own = compare_all(rounds, row, settings, state, k)
                decisions[row] = scaled(total, own, settings, state, k)
        for row in range(first, last):
            total, own = compare_all(rounds, row, settings, state, k)
            if len(decisions) > 0 and last - first == 1:
                copy_to(v, k)
                decisions[row] = scaled(total, own, settings, state, v)
            if losses.is_mistake(total, rounds.y[row]):
                n = support.extent[STORED]
                while n >= settings.budget:
                    remove_first(state.factor, state.whitened, n, v)
                    drop_oldest(settings.kernel, support)
                    n -= 1
                    for s in range(n):
                        k[s] = k[s + 1]
                border(state, n, settings.a, own, rounds.y[row], k)
                append(rounds, row, settings.kernel, support)
                solve_dual(state, n + 1, settings.a)
                state.updates[rounds.task[row]] += 1
            support.extent[ROWS] += 1
    return len(rounds.starts) - 1


@kernel(entry=True, allocates=True)
def factorise(settings: Settings, state: State, n_tasks: int, gram: FloatArray) -> None:
    """U, U^-T y and beta anew, from the kernels between the rows kept and the rates of this many tasks."""
    support = state.support
    v = np.empty(len(gram))
    for n in range(len(gram)):
        own = rates_with(settings.rates, n_tasks, support.task[n], support.task, n, v)
        for s in range(n):
            v[s] *= gram[n, s]
        border(state, n, settings.a, own * gram[n, n], support.y[n], v)
    solve_dual(state, len(gram), settings.a)


def settings(p: Params) -> Settings:
    return Settings(p.a, rates_of(p.relation), resolve(p.kernel, p.gamma), support_vectors.most(p))


def allocate(setup: Setup, size: Size) -> State:
    rows, updates, counters = np.zeros(0), np.zeros(size.tasks, np.int64), np.zeros(3, np.int64)
    return State(support_vectors.empty(), rows.reshape(0, 0), rows, rows, updates, counters)


def in_rows(state: State, capacity: int) -> State:
    """The state with a factor for so many rows."""
    n = min(int(state.support.extent[STORED]), capacity)
    factor, whitened, dual = np.zeros((capacity, capacity)), np.zeros(capacity), np.zeros(capacity)
    factor[:n, :n], whitened[:n], dual[:n] = state.factor[:n, :n], state.whitened[:n], state.dual[:n]
    return state._replace(factor=factor, whitened=whitened, dual=dual)


def prepare(setup: Setup, state: State, rounds: Rounds) -> State:
    """Capacity for the rows, and the tasks of the first round enter."""
    if len(state.support.y) > len(state.whitened):
        state = in_rows(state, len(state.support.y))
    n_tasks = int(rounds.task[: rounds.starts[1]].max()) + 1
    if n_tasks > state.counters[TASKS]:
        enter(setup, state, n_tasks)
    return state


def new_tasks(state: Any, rounds: Rounds) -> IntArray:
    """Rows at which rounds begin that bring tasks: the matrix is formed anew before them. Last the number of rows."""
    known = np.maximum.accumulate(np.maximum(rounds.task, state.counters[TASKS] - 1))
    rows = np.flatnonzero(np.diff(known)) + 1
    starts = rounds.starts[np.searchsorted(rounds.starts, rows, "right") - 1]
    return np.append(np.unique(starts[starts > 0]), len(known))


def pieces(setup: Setup, state: State, rounds: Rounds, learns: bool) -> Iterator[Piece]:
    return support_vectors.pieces(setup, state, rounds, learns, ends=new_tasks, prepare=prepare)


def enter(setup: Setup, state: State, n_tasks: int) -> None:
    """Rates depend on the number of tasks, so the matrix is formed anew."""
    state.counters[TASKS] = n_tasks
    left(setup, state, n_tasks)


def left(setup: Setup, state: State, n_tasks: int) -> None:
    """The matrix formed anew, for this number of tasks."""
    if state.support.extent[STORED]:
        factorise(setup.settings, state, n_tasks, support_vectors.gram_of(setup, state))


def pack(setup: Setup, state: State, size: Size) -> State:
    packed = support_vectors.pack(allocate)(setup, state, size)
    return in_rows(packed, int(state.support.extent[STORED]))


def check(setup: Setup, state: State, size: Size) -> None:
    support_vectors.check(setup, state, size)
    n = len(state.support.y)
    if (state.factor.shape, state.whitened.shape, state.dual.shape) != ((n, n), (n,), (n,)):
        raise ValueError("its factor does not fit its rows")


def retune(before: Setup, after: Setup, state: object) -> None:
    """All hyper-parameters but the budget are part of the matrix."""
    for name in ("relation", "a", "kernel", "gamma"):
        if getattr(before.params, name) != getattr(after.params, name):
            raise ValueError("only budget can change after the first row: the others shape the matrix")


ALGORITHM = Algorithm[State](
    parameters={"relation": RELATION, "a": positive(), "budget": optional(whole(1, "a whole number"))},
    settings=settings,
    allocate=allocate,
    learn=learn,
    decide=decide,
    exchange="every task answers by the rows that all tasks keep",
    no_weights="a mistake adds its row to the matrix once, and its paper has no meaning for a part of that",
    retune=retune,
    tasks=Tasks(named=named_tasks, enter=enter, leave=support_vectors.leave, left=left),
    storage=Storage(pack=pack, check=check),
    chunks=Chunks(pieces=pieces, may_fail=lambda p: callable(p.kernel)),
    explain=Explain(linear=False),
)
