"""Second-order Perceptron in primal form (Cavallanti et al. 2010, figure 2), for small (tasks x features).

In the coordinates of the weights, with phi = e_i (x) x, J = a A (x) I + sum phi_s phi_s^T over the mistakes and
g = sum y_s phi_s:

    q = phi^T J^-1 phi,   f = (J^-1 g).phi / (1 + q);   on a mistake  J <- J + phi phi^T,  g <- g + y phi

J is kept as its triangular factor U, U^T U = J, and g as U^-T g: a mistake is one row of rotations. Tasks that are
pooled are one model with A = K. Where rows are so large that a A is lost beside them, what rounding leaves is held to
what is true of the exact J: with l the least eigenvalue of a A, ||U^-T phi|| <= ||phi||/l^½ and
||J^-1 g|| <= ||U^-T g||/l^½.
"""

import math
from collections.abc import Iterator
from typing import Annotated, Any, Final, NamedTuple

import numpy as np

from shoal import relations
from shoal.engine import losses
from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.axes import FEATURE, OTHER, TASK
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds, cut
from shoal.engine.rows import TASKS, add, dot, open_round, squared_norm
from shoal.model.algorithm import Algorithm, Chunks, Explain, Piece, Setup, Size, Storage, Tasks, as_needed
from shoal.model.parameters import Params
from shoal.model.state import in_capacity
from shoal.online.common.relation_rates import UNSEEN, Rates, named_tasks, rates_of, shares
from shoal.online.second_order_perceptron import dual
from shoal.online.second_order_perceptron.triangular_factor import rotate_in, solve, solve_transposed, squared_length

LARGEST = 10_000  # rows of U, 800 MB
ROUNDING: Final = 1.0 + 1e-9  # by this factor a sharp bound may be passed


class Settings(NamedTuple):
    """Hyper-parameters."""

    a: float
    rates: Rates
    pooled: bool


class State(NamedTuple):
    """A model a task."""

    factor: Annotated[FloatArray, TASK, FEATURE, TASK, FEATURE]  # U
    whitened: Annotated[FloatArray, TASK, FEATURE]  # U^-T g
    weights: Annotated[FloatArray, TASK, FEATURE]  # J^-1 g
    prior: Annotated[FloatArray, TASK, TASK]  # a A
    least: FloatArray  # (1,) its least eigenvalue
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (3,) tasks, rounds, features


class PooledState(NamedTuple):
    """One model for all tasks: the same arrays, whose axes of tasks have length 1."""

    factor: Annotated[FloatArray, OTHER, FEATURE, OTHER, FEATURE]
    whitened: Annotated[FloatArray, OTHER, FEATURE]
    weights: Annotated[FloatArray, OTHER, FEATURE]
    prior: FloatArray
    least: FloatArray
    updates: Annotated[IntArray, TASK]
    counters: IntArray


@kernel
def n_models(settings: Settings, state: State) -> int:
    """Models that exist."""
    return 1 if settings.pooled else state.counters[TASKS]


@kernel(inline=False)
def look(rounds: Rounds, row: int, settings: Settings, state: State) -> float:
    """(J^-1 g).phi. An unseen task under a constant relation is expected at (1 - a)/K of the sum of all weights,
    under a given one it is their mean."""
    if settings.pooled:
        return dot(rounds, row, state.weights[0])
    if rounds.task[row] != UNSEEN:
        return dot(rounds, row, state.weights[rounds.task[row]])
    total = 0.0
    for k in range(state.counters[TASKS]):
        total += dot(rounds, row, state.weights[k])
    return total * part_of_unseen(settings, state)


@kernel
def part_of_unseen(settings: Settings, state: State) -> float:
    """The share of each known task's weights in those of an unseen task."""
    if len(settings.rates.mean) > 0:
        return 1.0 / len(settings.rates.mean)
    return shares(settings.rates, state.counters[TASKS])[1]


@kernel(inline=False)
def spread(rounds: Rounds, row: int, settings: Settings, state: State, phi: FloatArray) -> tuple[int, float]:
    """phi <- the row in the coordinates of all weights; its first entry that may not be zero is returned, and how
    much an unseen task's weights vary beside those of the known ones."""
    task, d = rounds.task[row], state.weights.shape[1]
    phi[:] = 0.0
    if settings.pooled or task != UNSEEN:
        model = 0 if settings.pooled else task
        add(rounds, row, 1.0, phi[model * d : (model + 1) * d])
        return model * d, 0.0
    part, n_tasks = part_of_unseen(settings, state), state.counters[TASKS]
    for k in range(n_tasks):
        add(rounds, row, part, phi[k * d : (k + 1) * d])
    if len(settings.rates.mean) > 0:
        return 0, 0.0
    own, shared = shares(settings.rates, n_tasks)
    return 0, (own + shared - n_tasks * shared * shared) / settings.a * squared_norm(rounds, row)


@kernel(inline=False)
def scaled(total: float, rounds: Rounds, row: int, settings: Settings, state: State, phi: FloatArray) -> float:
    """f = (J^-1 g).phi / (1 + q)."""
    n = n_models(settings, state) * state.weights.shape[1]
    first, beside = spread(rounds, row, settings, state, phi[:n])
    limit = ROUNDING * math.sqrt(squared_length(phi, first, n) / state.least[0])
    solve_transposed(square(state), first, n, limit, phi)
    return total / (1.0 + beside + squared_length(phi, first, n))


@kernel(entry="too", allocates=True)
def square(state: State) -> FloatArray:
    """U as a matrix."""
    n = state.weights.size
    return state.factor.reshape((n, n))


@kernel(entry="too", allocates=True)
def solve_weights(state: State, n: int) -> None:
    """J^-1 g = U^-1 (U^-T g)."""
    whitened = state.whitened.reshape(-1)
    limit = ROUNDING * math.sqrt(squared_length(whitened, 0, n) / state.least[0])
    solve(square(state), n, whitened, limit, state.weights.reshape(-1))


@kernel(entry=True, allocates=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    phi = np.empty(state.weights.size)
    for row in range(len(decisions)):
        decisions[row] = scaled(look(rounds, row, settings, state), rounds, row, settings, state, phi)


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    phi = np.empty(state.weights.size)
    for r in range(len(rounds.starts) - 1):
        first, last = open_round(rounds, r, state.counters)
        n = n_models(settings, state) * state.weights.shape[1]
        if len(decisions) > 0:  # the whole round is decided before any of it is learned
            for row in range(first, last):
                decisions[row] = scaled(look(rounds, row, settings, state), rounds, row, settings, state, phi)
        for row in range(first, last):
            if losses.is_mistake(look(rounds, row, settings, state), rounds.y[row]):
                start, _ = spread(rounds, row, settings, state, phi[:n])
                rotate_in(square(state), state.whitened.reshape(-1), start, n, phi, rounds.y[row])
                solve_weights(state, n)
                state.updates[rounds.task[row]] += 1
    return len(rounds.starts) - 1


@kernel(entry=True, allocates=True)
def tighten(state: State, n_models: int, roots: FloatArray) -> None:
    """J <- J + (roots^T roots) (x) I: a row of rotations for each root and feature."""
    d = state.weights.shape[1]
    n = n_models * d
    row = np.empty(n)
    for root in range(len(roots)):
        for j in range(d):
            row[:] = 0.0
            for k in range(n_models):
                row[k * d + j] = roots[root, k]
            rotate_in(square(state), state.whitened.reshape(-1), 0, n, row, 0.0)
    solve_weights(state, n)


def settings(p: Params) -> Settings:
    if p.kernel != "linear" or p.budget is not None:
        raise ValueError("form='primal' needs kernel='linear' and no budget; use form='dual'")
    return Settings(p.a, rates_of(p.relation), is_pooled(p.relation))


def is_pooled(relation: relations.Relation) -> bool:
    return isinstance(relation, relations.Constant) and math.isinf(relation.b)


def allocate(setup: Setup, size: Size) -> State:
    """Zeros."""
    (n_tasks, n_features), pooled = size, setup.settings.pooled
    models = 1 if pooled else n_tasks
    if models * n_features > LARGEST:
        raise ValueError(
            f"{models} tasks x {n_features} features are too many for form='primal', whose memory is the square of"
            " their product; use form='dual'"
        )
    shape = (models, n_features)
    kind: Any = PooledState if pooled else State  # of the same fields: kernels know them as `State`
    state: State = kind(
        factor=np.zeros(shape + shape),
        whitened=np.zeros(shape),
        weights=np.zeros(shape),
        prior=np.zeros((models, models)),
        least=np.zeros(1),
        updates=np.zeros(n_tasks, np.int64),
        counters=np.zeros(3, np.int64),
    )
    return state


def grow(setup: Setup, state: State, size: Size) -> State:
    """Later features of the present models have seen nothing but the prior."""
    larger = allocate(setup, size)
    live = len(state.prior) if setup.settings.pooled else int(state.counters[TASKS])
    each = np.arange(size.features)
    larger.factor[:live, each, :live, each] = np.linalg.cholesky(state.prior[:live, :live]).T
    grown: State = in_capacity(state, larger)
    return grown


def pieces(setup: Setup, state: State, rounds: Rounds, learns: bool) -> Iterator[Piece]:
    """A round that brings tasks begins a call: the matrix is formed anew before it."""
    first = 0
    for last in dual.new_tasks(state, rounds) if learns else [len(rounds.task)]:
        piece = cut(rounds, first, int(last))
        n_tasks = int(piece.task[: piece.starts[1]].max()) + 1
        if learns and n_tasks > state.counters[TASKS]:
            enter(setup, state, n_tasks)
        yield Piece(first, int(last), piece, setup.settings, state._asdict())
        first = int(last)


def enter(setup: Setup, state: State, n_tasks: int) -> None:
    """Replace the prior of the tasks so far by that of n_tasks: add the difference."""
    settings = setup.settings
    old, new = (1, 1) if settings.pooled else (int(state.counters[TASKS]), n_tasks)
    state.counters[TASKS] = n_tasks
    A = np.full((1, 1), float(n_tasks)) if settings.pooled else relations.interaction(setup.params.relation, n_tasks)
    state.factor[old:new] = 0.0
    state.factor[:old, :, old:new] = 0.0
    state.whitened[old:new] = 0.0
    state.prior[old:new] = 0.0
    state.prior[:old, old:new] = 0.0
    values, vectors = np.linalg.eigh(settings.a * A - state.prior[:new, :new])
    added = values > 1e-12 * np.abs(values).max(initial=0.0)
    roots = np.sqrt(values[added])[:, None] * vectors[:, added].T
    state.prior[:new, :new] += roots.T @ roots
    state.least[0] = np.linalg.eigvalsh(state.prior[:new, :new])[0]
    tighten(state, new, np.ascontiguousarray(roots))


def leave(setup: Setup, state: State, k: int) -> None:
    """Integrate task k's weights out: the belief about all others stays as it is, and so do their answers."""
    n_tasks = int(state.counters[TASKS])
    others = np.delete(np.arange(n_tasks), k)
    d = state.weights.shape[1]
    n = n_tasks * d
    if setup.settings.pooled or not len(others):
        return
    order = np.append(k, others)
    U = state.factor[:n_tasks, :, order].reshape(n, n)
    R: FloatArray = np.linalg.qr(np.column_stack([U, state.whitened[:n_tasks].reshape(n)]), mode="r")  # type: ignore[assignment]
    R *= np.where(np.diag(R) < 0.0, -1.0, 1.0)[:, None]
    columns = np.arange(d)
    state.factor[np.ix_(others, columns, others, columns)] = R[d:, d:n].reshape(n_tasks - 1, d, n_tasks - 1, d)
    state.whitened[others] = R[d:, n].reshape(n_tasks - 1, d)
    rates = np.linalg.inv(state.prior[:n_tasks, :n_tasks])
    state.prior[np.ix_(others, others)] = np.linalg.inv(rates[np.ix_(others, others)])


ALGORITHM = Algorithm[State](
    parameters=dual.ALGORITHM.parameters,
    settings=settings,
    allocate=allocate,
    learn=learn,
    decide=decide,
    exchange="the matrix that every task answers with spans all tasks",
    no_weights=dual.ALGORITHM.no_weights,
    retune=dual.retune,
    tasks=Tasks(named=named_tasks, enter=enter, leave=leave),
    storage=Storage(capacity=as_needed, grow=grow),
    chunks=Chunks(pieces=pieces),
    explain=Explain(linear=False),
)
