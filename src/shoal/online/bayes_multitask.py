"""Multitask gradient steps for several b and eta at once, mixed by Bayes weights: how much to share is learned.

Model j is `MultitaskPerceptron` or `MultitaskRegressor` with its own b_j (Cavallanti et al. 2010, eq. 5) and eta_j. It
forecasts f_j and moves as it would alone. With L_j the loss of model j so far, the answer to a row is

    labels    p = sum_j a_j sigmoid(f_j),    a_j ~ exp(-L_j),        L_j <- L_j + ln(1 + exp(-y f_j))
    numbers   f = sum_j a_j [f_j],           a_j ~ exp(-L_j / D^2),  L_j <- L_j + ([f_j] - [y])^2 / 2

where [.] clips to the range of the targets so far, 0 included, and D is the width of that range. For labels the product
of the answers' probabilities is sum_j (1/N) exp(-L_j), so that the loss of the answers is at most L_j + ln N for every
j. For numbers exp(-(f - y)^2 / (2 D^2)) is concave in f within the range, and the loss is at most L_j + D^2 ln N with
the last D.

A record of N numbers, one for each model, holds the sums of a (task, feature) pair, or those of a feature over all
tasks. Its twin in plain NumPy is tests/twins/bayes_multitask.py.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np

from shoal.engine import losses
from shoal.engine.arrays import FloatArray, IndexArray, IntArray
from shoal.engine.axes import FEATURE, OTHER, TASK
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.engine.rows import ROUNDS, TASKS, feature_at, open_weighted, row_bounds, weight_of
from shoal.engine.task_weights import record_table as records
from shoal.engine.task_weights.hash_table import has_capacity
from shoal.engine.task_weights.record_table import Found, Records, add_all, find_all
from shoal.model.algorithm import Algorithm, Exchange, Explain, Setup, Size, Storage, Tasks
from shoal.model.explanations import Parts
from shoal.model.parameters import Params, Reader, Readers, or_auto
from shoal.model.state import in_capacity, trimmed
from shoal.online.common.relation_rates import constant_shares
from shoal.relations import Constant, resolve

AUTO = "auto"
BS = (0.0, 1.0, 4.0, 16.0, 64.0, math.inf)
ETAS = (0.3, 1.0, 3.0, 10.0)  # of labels
ETAS_OF_NUMBERS = (0.01, 0.03, 0.1, 0.3)
N_MODELS = len(BS) * len(ETAS)
LOW, HIGH = range(2)  # positions in `span`
MOST_LOSS = 1e300


class Settings(NamedTuple):
    """Hyper-parameters; of model j its b and eta."""

    loss: int
    sqrt_step: bool
    b_is_n_tasks: bool
    b: FloatArray  # (models,)
    eta: FloatArray  # (models,)


class State(NamedTuple):
    """Sums of the steps of all models, and their losses."""

    shared: Annotated[FloatArray, FEATURE, OTHER]  # (features, models) s
    own: Records  # records of v_k, a number for each model
    losses: FloatArray  # (models,) L
    span: FloatArray  # (2,) smallest and largest real target, or 0
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (3,) tasks, rounds, features


class Scratch(NamedTuple):
    """Scratch of one call."""

    features: IntArray
    found: Found  # of the row's pairs in `own`
    of_own: FloatArray  # (models,) the weight of v_k in w_k
    of_shared: FloatArray  # (models,) the weight of s
    margins: FloatArray  # (models,) f
    forecasts: FloatArray  # (models,) of labels ln sigmoid(f), of numbers f within the span
    moves: FloatArray  # (models,)
    weights: FloatArray  # (models,) logarithms of a, up to a constant


@kernel(allocates=True)
def new_scratch(longest: int, n_models: int) -> Scratch:
    ints, numbers = np.zeros((3, longest), np.int64), np.zeros((6, n_models))
    return Scratch(
        ints[0],
        Found(ints[1], ints[2]),
        numbers[0],
        numbers[1],
        numbers[2],
        numbers[3],
        numbers[4],
        numbers[5],
    )


@kernel
def longest_row(rounds: Rounds) -> int:
    """Entries of the longest row."""
    longest = rounds.width
    for row in range(len(rounds.task) if rounds.width == 0 else 0):
        longest = max(longest, rounds.indptr[row + 1] - rounds.indptr[row])
    return longest


@kernel
def fill_shares(settings: Settings, n_tasks: int, scratch: Scratch) -> None:
    """The weights of v_k and s: those of B as printed, or of B / max_i B_ii for gradient steps."""
    for j in range(len(settings.b)):
        own, shared = constant_shares(n_tasks if settings.b_is_n_tasks else settings.b[j], n_tasks)
        unit = 1.0 if settings.loss == losses.PERCEPTRON else own + shared
        scratch.of_own[j], scratch.of_shared[j] = own / unit, shared / unit


@kernel
def softplus(z: float) -> float:
    """ln(1 + exp(z))."""
    return max(z, 0.0) + math.log1p(math.exp(-abs(z)))


@kernel(sums="in order")
def log_of_sum(weights: FloatArray, more: FloatArray) -> float:
    """ln sum_j exp(weights_j + more_j). In order: the largest power is 1, however large its parts are."""
    most, total = -np.inf, 0.0
    for j in range(len(weights)):
        most = max(most, weights[j] + more[j])
    for j in range(len(weights)):
        total += math.exp(weights[j] + more[j] - most)
    return float(most + math.log(total))


@kernel
def smallest(values: FloatArray) -> float:
    least = np.inf
    for value in values:
        least = min(least, value)
    return least


@kernel
def clipped(f: float, span: FloatArray) -> float:
    return float(min(max(f, span[LOW]), span[HIGH]))


@kernel(inline=False)
def ask(rounds: Rounds, row: int, settings: Settings, state: State, scratch: Scratch) -> tuple[float, int, int]:
    """The answer; the row's entries, and how many of its pairs have no record. `scratch` has what its models say."""
    first, last = row_bounds(rounds, row)
    n, margins, records_of = last - first, scratch.margins, state.own.records
    for i in range(n):
        scratch.features[i] = feature_at(rounds, row, first + i)
    missing = find_all(state.own, rounds.task[row], scratch.features[:n], scratch.found)
    margins[:] = 0.0
    for i in range(n):
        x, s, v = rounds.values[first + i], state.shared[scratch.features[i]], records_of[scratch.found.place[i]]
        for j in range(len(margins)):
            margins[j] += x * (scratch.of_shared[j] * s[j] + scratch.of_own[j] * v[j])
    return mixed(settings.loss, state.losses, state.span, scratch), n, missing


@kernel(inline=False)
def mixed(loss: int, so_far: FloatArray, span: FloatArray, scratch: Scratch) -> float:
    """The answer of models with these margins: the logit of their probability, or a number."""
    least, width, forecasts = smallest(so_far), span[HIGH] - span[LOW], scratch.forecasts
    if loss != losses.SQUARED:
        for j in range(len(forecasts)):
            scratch.weights[j] = least - so_far[j]
            forecasts[j] = -softplus(-scratch.margins[j])
        positive = log_of_sum(scratch.weights, forecasts)
        for j in range(len(forecasts)):  # ln(1 - p) = ln p - f
            forecasts[j] -= scratch.margins[j]
        negative = log_of_sum(scratch.weights, forecasts)
        return positive - negative
    total = mass = 0.0
    for j in range(len(forecasts)):
        forecasts[j] = clipped(scratch.margins[j], span)
        weight = math.exp((least - so_far[j]) / width / width) if width > 0.0 else 1.0
        total += weight * forecasts[j]
        mass += weight
    return total / mass


@kernel(inline=False)
def judge(y: float, h: float, settings: Settings, state: State, scratch: Scratch) -> None:
    """Add a row's losses to those so far."""
    if settings.loss != losses.SQUARED:
        for j in range(len(state.losses)):
            state.losses[j] = min(state.losses[j] + h * softplus(-y * scratch.margins[j]), MOST_LOSS)
        return
    target = clipped(y, state.span)
    for j in range(len(state.losses)):
        state.losses[j] = min(state.losses[j] + 0.5 * h * (scratch.forecasts[j] - target) ** 2, MOST_LOSS)
    if h > 0.0:
        state.span[LOW], state.span[HIGH] = min(state.span[LOW], y), max(state.span[HIGH], y)


@kernel(inline=False)
def learn_row(
    rounds: Rounds, row: int, step: float, n: int, missing: int, settings: Settings, state: State, scratch: Scratch
) -> None:
    """Judge all models by the row, and let each make its step."""
    y, first, moved = rounds.y[row], row_bounds(rounds, row)[0], 0.0
    judge(y, weight_of(rounds, row), settings, state, scratch)
    for j in range(len(scratch.moves)):
        f, rate = scratch.margins[j], scratch.of_own[j] + scratch.of_shared[j]
        slope, scratch.moves[j] = losses.derivative(settings.loss, f, y, 0.0), 0.0
        if slope != 0.0:
            eta = step * settings.eta[j]
            scratch.moves[j] = losses.move_along(settings.loss, eta, slope, f, y, 0.0, rate, rounds, row)
        moved += abs(scratch.moves[j])
    if moved == 0.0:
        return
    if missing > 0:
        add_all(state.own, rounds.task[row], scratch.features[:n], missing, scratch.found)
    for i in range(n):
        x, s, v = rounds.values[first + i], state.shared[scratch.features[i]], state.own.records[scratch.found.place[i]]
        for j in range(len(scratch.moves)):
            s[j] += x * scratch.moves[j]
            v[j] += x * scratch.moves[j]
    state.updates[rounds.task[row]] += 1


@kernel(entry=True, allocates=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    scratch = new_scratch(longest_row(rounds), len(settings.b))
    fill_shares(settings, max(state.counters[TASKS], 1), scratch)
    for row in range(len(decisions)):
        decisions[row] = ask(rounds, row, settings, state, scratch)[0]


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    scratch, n_tasks = new_scratch(longest_row(rounds), len(settings.b)), 0
    for r in range(len(rounds.starts) - 1):
        first, last = rounds.starts[r], rounds.starts[r + 1]
        if not has_capacity(rounds, first, last, state.own.tables):
            return r
        open_weighted(rounds, r, state.counters)
        if state.counters[TASKS] != n_tasks:
            n_tasks = state.counters[TASKS]
            fill_shares(settings, n_tasks, scratch)
        step = 1.0 / math.sqrt(state.counters[ROUNDS]) if settings.sqrt_step else 1.0
        if len(decisions) > 0 and last - first > 1:  # the whole round is decided before any of it is learned
            for row in range(first, last):
                decisions[row] = ask(rounds, row, settings, state, scratch)[0]
        for row in range(first, last):
            f, n, missing = ask(rounds, row, settings, state, scratch)
            if len(decisions) > 0 and last - first == 1:
                decisions[row] = f
            if weight_of(rounds, row) > 0.0:
                learn_row(rounds, row, step, n, missing, settings, state, scratch)
    return len(rounds.starts) - 1


def mixture_weights(loss: int, state: State) -> FloatArray:
    """(models,) a."""
    width = float(state.span[HIGH] - state.span[LOW])
    excess = state.losses - state.losses.min()
    if loss == losses.SQUARED:
        excess = excess / width / width if width > 0.0 else 0.0 * excess
    likelihoods = np.exp(-excess)
    return np.asarray(likelihoods / likelihoods.sum())


# ---- explanations ------------------------------------------------------------------------------------------------


@kernel(entry=True, allocates=True)
def fill_weights(
    tasks: IntArray, features: IntArray, settings: Settings, state: State, shared: FloatArray, own: FloatArray
) -> None:
    """Weights of all models by what tasks share (features, models), and tasks' own (tasks, features, models)."""
    scratch = new_scratch(len(features), len(settings.b))
    fill_shares(settings, max(state.counters[TASKS], 1), scratch)
    for i in range(len(features)):
        for j in range(len(settings.b)):
            shared[i, j] = scratch.of_shared[j] * state.shared[features[i], j]
    for k in range(len(tasks)):
        find_all(state.own, tasks[k], features, scratch.found)
        for i in range(len(features)):
            for j in range(len(settings.b)):
                own[k, i, j] = scratch.of_own[j] * state.own.records[scratch.found.place[i], j]


PATH, PATH_WEIGHTS = np.polynomial.legendre.leggauss(16)


def mean_slopes(weights: FloatArray, margins: FloatArray, decisions: FloatArray) -> FloatArray:
    """(tasks, models) mean slopes of the logit in each margin on the way from 0: times margins they give decisions."""
    total = np.zeros_like(margins)
    for at, part in zip(0.5 + 0.5 * PATH, 0.5 * PATH_WEIGHTS, strict=True):
        p = 1.0 / (1.0 + np.exp(-np.clip(at * margins, -300.0, 300.0)))
        q, not_q = (weights * p).sum(1, keepdims=True), (weights * (1.0 - p)).sum(1, keepdims=True)
        total += part * weights * (p * (1.0 - p) + 1e-300) / (q * not_q + 1e-300)
    reached = (total * margins).sum(1, keepdims=True)
    return np.asarray(total * np.divide(decisions[:, None], reached, out=np.ones_like(reached), where=reached != 0.0))


def contributions(
    setup: Setup, state: State, tasks: IntArray, features: IndexArray, values: FloatArray | None
) -> Parts:
    """Contributions of features: those to each model's margin, times the mean slope of the answer in that margin."""
    settings: Settings = setup.settings
    x = np.ones(len(features)) if values is None else values
    shared = np.zeros((len(features), len(settings.b)))
    own = np.zeros((len(tasks), *shared.shape))
    fill_weights(tasks, features.astype(np.int64), settings, state, shared, own)
    weights = mixture_weights(settings.loss, state)
    slopes = np.tile(weights, (len(tasks), 1))
    if values is not None:
        margins = np.einsum("i,kij->kj", x, shared + own)
        if settings.loss == losses.SQUARED:
            within = np.clip(margins, *state.span)
            slopes *= np.divide(within, margins, out=np.ones_like(margins), where=margins != 0.0)
        else:
            p = 1.0 / (1.0 + np.exp(-np.clip(margins, -700.0, 700.0)))
            slopes = mean_slopes(weights, margins, np.log(p @ weights) - np.log((1.0 - p) @ weights))
    from_all, its_own = np.zeros((2, len(tasks), 1 + len(features)))
    from_all[:, 1:] = np.einsum("kj,ij,i->ki", slopes, shared, x)
    its_own[:, 1:] = np.einsum("kj,kij,i->ki", slopes, own, x)
    return Parts(from_all, its_own)


# ---- the algorithm -----------------------------------------------------------------------------------------------


def is_mixture(relation: Any, eta: Any) -> bool:
    """Is one of them left to the data?"""
    return any(isinstance(value, str) and value == AUTO for value in (relation, eta))


def _constant_or_auto(relation: Any) -> Any:
    if isinstance(relation, str) and relation == AUTO:
        return relation
    resolved = resolve(relation)
    if not isinstance(resolved, Constant):
        raise ValueError("eta='auto' goes with constant relations; a graph or a matrix needs a number eta")
    return resolved


def settings_of(p: Params, etas: tuple[float, ...]) -> Settings:
    b_is_n_tasks = p.relation != AUTO and p.relation.b_is_n_tasks
    bs = BS if p.relation == AUTO else (p.relation.b,)
    b, eta = np.array([(b, step) for b in bs for step in (etas if p.eta == AUTO else (p.eta,))]).T
    return Settings(p.loss, p.step == "sqrt", b_is_n_tasks, b.copy(), eta.copy())


def allocate(setup: Setup, size: Size) -> State:
    own = records.new_records(len(setup.settings.b), size.tasks, dtype=setup.params.dtype)
    state: State = _with(own, setup, size)
    return state


def _with(own: Any, setup: Setup, size: Size) -> Any:
    n = len(setup.settings.b)
    return (State if isinstance(own, Records) else PackedState)(
        np.zeros((size.features, n), setup.params.dtype),
        own,
        np.zeros(n),
        np.zeros(2),
        np.zeros(size.tasks, np.int64),
        np.zeros(3, np.int64),
    )


class PackedState(NamedTuple):
    """The state in its saved form."""

    shared: Annotated[FloatArray, FEATURE, OTHER]
    own: records.Packed
    losses: FloatArray
    span: FloatArray
    updates: Annotated[IntArray, TASK]
    counters: IntArray


def grow(setup: Setup, state: State, size: Size) -> State:
    own = records.for_tasks(state.own, size.tasks)
    n = len(state.updates)
    for old, new in zip(
        (state.own.tables.start, state.own.tables.size, state.own.tables.filled),
        (own.tables.start, own.tables.size, own.tables.filled),
        strict=True,
    ):
        new[:n] = old
    grown: State = in_capacity(state._replace(own=own), _with(own, setup, size))
    return grown


def extend(setup: Setup, state: State, size: Size, rounds: Rounds) -> State:
    """Capacity for the rows that are left, in which each entry may be a new pair."""
    first, n_rows = int(rounds.starts[0]), len(rounds.task)
    entries = (n_rows - first) * rounds.width if rounds.width > 0 else int(rounds.indptr[-1] - rounds.indptr[first])
    most = size.tasks * size.features - int(state.own.used[0])
    return state._replace(own=records.with_capacity(state.own, max(min(entries + n_rows - first, most), 0)))


def leave(setup: Setup, state: State, k: int) -> None:
    records.remove(state.own, k)


def blank(setup: Setup, size: Size) -> PackedState:
    packed: PackedState = _with(records.blank(len(setup.settings.b), size.tasks, setup.params.dtype), setup, size)
    return packed


def pack(setup: Setup, state: State, size: Size) -> Any:
    packed = PackedState(**{**state._asdict(), "own": records.pack(state.own, size.tasks)})
    return trimmed(packed, blank(setup, size))


def check(setup: Setup, packed: PackedState, size: Size) -> None:
    records.check(packed.own, len(setup.settings.b), size.tasks, size.features)
    if not (packed.losses >= 0.0).all():
        raise ValueError("its losses are negative")
    if not packed.span[LOW] <= 0.0 <= packed.span[HIGH]:
        raise ValueError("its smallest and largest target are out of order")


def unpack(setup: Setup, packed: PackedState, size: Size) -> State:
    return State(**{**packed._asdict(), "own": records.unpack(packed.own, len(setup.settings.b), size.tasks)})


def mixture(parameters: Readers, etas: tuple[float, ...]) -> Algorithm[State]:
    """The algorithm, for the hyper-parameters of a learner and the steps that it tries."""
    relation = Reader(f"{parameters['relation'].text}, or 'auto'", _constant_or_auto)
    return Algorithm[State](
        parameters={**parameters, "relation": relation, "eta": or_auto(parameters["eta"], AUTO)},
        settings=partial(settings_of, etas=etas),
        allocate=allocate,
        learn=learn,
        decide=decide,
        exchange=Exchange(sum=("shared", "losses"), local=("span", "counters")),
        no_weights="",
        tasks=Tasks(leave=leave),
        storage=Storage(grow=grow, extend=extend, pack=pack, blank=blank, check=check, unpack=unpack),
        explain=Explain(contributions=contributions),
    )
