"""Robust Online Multi-Task learning with Correlative and persOnalized structures (Yang, Zhao, Gao, TKDE 2017).

W = U + V: U is common to the tasks and of low rank, V personal to the few tasks that are unlike the others. In a
round in which some task has a loss, with the gradient column g_k = -C 1[y_k <w_k, x_k> < 1] y_k x_k (eqs. 13, 14),

    U <- prox_{eta lambda1 g}(U - eta G)          v_k <- [1 - rho lambda2 / ||vh_k||]_+ vh_k,   vh_k = v_k - rho g_k

where g is the nuclear norm (algorithm 1, eq. 16) or log det(I + U^T U) (algorithm 2, eq. 21). Either prox shrinks
singular values, s_i -> f_i s_i, and is a K x K matrix from the right: with the eigenvectors Q of the Gram matrix
U^T U, U <- U Q diag(f) Q^T. So no round needs an SVD of U.

Nor does a round need all rows of U. An update multiplies U from the right by a K x K matrix M, and column k of V by a
number. Doing so at once costs O(d); here a row waits until an example touches it.

- Rows of the present *epoch* are kept as z with u = z A, A the product of the M of the epoch. Adding a e_k^T to such a
  row is z += a A^-1[k], so A must stay well conditioned: an M that truncates the rank, or an A^-1 that has grown,
  closes the epoch, and A starts anew at I.
- Closed epochs lie in blocks whose sizes are the binary digits of their number, and each knows the product of all
  transforms from it to the end of its block. So a row that waited through n epochs takes at most log2(n)
  products of a vector and a matrix, and closing an epoch costs O(K^3 log n).
- After max(2, touched rows / 4K) updates all pending transforms are applied and no epoch is left to remember. That
  keeps the products smaller than the weights, costs O(K^3) an update on average, and stops rounding errors from adding
  up.
"""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import LANES, FloatArray, IntArray
from shoal.engine.axes import FEATURE, OTHER, TASK
from shoal.engine.compile import kernel
from shoal.engine.losses import is_mistake
from shoal.engine.rounds import Rounds
from shoal.engine.rows import ROUNDS, TASKS, copy_to, feature_at, row_bounds, squared_norm
from shoal.learner import Classifier, Learner
from shoal.model.algorithm import Algorithm, Chunks, Explain, Setup, Size, Storage, Tasks
from shoal.model.parameters import Params, from_keywords, non_negative, one_of, positive
from shoal.model.persistence import learner_class

COMMON, PERSONAL = 0, 1  # positions in the weights' second axis
EPOCHS, UPDATES, TOUCHED = 0, 1, 2  # positions in the tally
UNTOUCHED = -1  # the stamp of a row that is still zero
LARGEST_INVERSE = 1e3  # rounding errors of U are at most about this many times those of an eager update
SMALLEST_SCALE = 1e-60
NEWTON_STEPS = 200  # with bisection; a handful is usual


class Settings(NamedTuple):
    """Hyper-parameters."""

    logdet: bool
    eta: float
    rho: float
    lambda1: float
    lambda2: float
    C: float
    on_mistakes: bool
    sqrt_step: bool


class Rows(NamedTuple):
    """Rows of U and V side by side. K is the number of tasks that exist; loops run over `side_of(K)`."""

    weights: Annotated[FloatArray, FEATURE, OTHER, TASK]  # (features, 2, side of all tasks)
    stamps: Annotated[NDArray[np.int32], FEATURE]  # the epoch in which the row was written
    transform: Annotated[FloatArray, TASK, TASK]  # A
    inverse: Annotated[FloatArray, TASK, TASK]  # A^-1
    scales: Annotated[FloatArray, TASK]  # of V's columns in the present epoch
    products: FloatArray  # side x side numbers a closed epoch: of A, from it to the end of its block
    fades: FloatArray  # side numbers a closed epoch: of the scales, likewise
    tally: IntArray  # (3,) closed epochs, updates since the last flush, rows touched so far


class State(NamedTuple):
    """Weights, and the products that the shrinkage needs."""

    rows: Rows  # of U and V
    gram: Annotated[FloatArray, TASK, TASK]  # U^T U
    personal: Annotated[FloatArray, TASK]  # ||v_k||^2
    updates: Annotated[IntArray, TASK]
    counters: IntArray  # (3,) tasks, rounds, features


# ---- the penalties on one singular value: s -> f s, the minimiser of (s' - s)^2/2 + tau g(s') --------


@kernel
def nuclear_factor(s: float, tau: float) -> float:
    """f for g(s) = s: [1 - tau/s]_+ (eq. 16)."""
    return 1.0 - tau / s if s > tau else 0.0


@kernel
def cubic(f: float, a: float, b: float) -> float:
    """Eq. 21 for s' = f s, divided by s: a f^3 - a f^2 + b f - 1 with a = s^2, b = 1 + 2 tau."""
    return a * f * f * (f - 1.0) + b * f - 1.0


@kernel(inline=False)
def root_between(low: float, high: float, a: float, b: float) -> float:
    """The root of `cubic` where it rises from <= 0 at `low` to >= 0 at `high`."""
    f = min(max(1.0 / b, low), high)
    for _ in range(NEWTON_STEPS):
        value = cubic(f, a, b)
        if value == 0.0:
            return f
        if value < 0.0:
            low = f
        else:
            high = f
        slope = a * f * (3.0 * f - 2.0) + b
        newton = f - value / slope if slope > 0.0 else low
        f_new = newton if low < newton < high else 0.5 * (low + high)
        if abs(f_new - f) <= 1e-16 * f:
            return f_new
        f = f_new
    return f


@kernel(inline=False)
def logdet_factor(s: float, tau: float) -> float:
    """f for g(s) = log(1 + s^2): never 0, near 1/(1 + 2 tau) for small s and near 1 for large.

    For tau > 4 there may be two minima, one on each side of the cubic's falling part: the lower one is taken.
    """
    a, b = s * s, 1.0 + 2.0 * tau
    if a <= 3.0 * b:  # the cubic rises everywhere
        return root_between(0.0, 1.0, a, b)
    half = math.sqrt(1.0 - 3.0 * b / a)
    top, bottom = (1.0 - half) / 3.0, (1.0 + half) / 3.0
    if cubic(bottom, a, b) > 0.0:
        return root_between(0.0, top, a, b)
    if cubic(top, a, b) < 0.0:
        return root_between(bottom, 1.0, a, b)
    small, large = root_between(0.0, top, a, b), root_between(bottom, 1.0, a, b)
    return small if objective(small, a, tau) < objective(large, a, tau) else large


@kernel
def objective(f: float, a: float, tau: float) -> float:
    """The minimised function at s' = f s, divided by s^2."""
    return 0.5 * (f - 1.0) ** 2 + tau / a * math.log1p(a * f * f)


# ---- lazy rows -----------------------------------------------------------------------------------------------


def empty_rows(n_tasks: int, n_features: int) -> Rows:
    """Rows that are all zero."""
    side, n_epochs = side_of(n_tasks), updates_until_flush(n_features, n_tasks) - 1
    return Rows(
        weights=np.zeros((n_features, 2, side)),
        stamps=np.full(n_features, UNTOUCHED, np.int32),
        transform=np.eye(n_tasks),
        inverse=np.eye(n_tasks),
        scales=np.ones(n_tasks),
        products=np.zeros(n_epochs * side * side),
        fades=np.zeros(n_epochs * side),
        tally=np.zeros(3, np.int64),
    )


def check_rows(rows: Rows) -> None:
    """Raise ValueError unless stamps and epochs are in range."""
    n, most = int(rows.tally[EPOCHS]), len(rows.fades) // max(rows.weights.shape[2], 1)
    if not (0 <= n <= most and (rows.tally >= 0).all() and rows.tally[TOUCHED] <= len(rows.stamps)):
        raise ValueError("its epochs are out of range")
    if len(rows.stamps) and not (rows.stamps.min() >= UNTOUCHED and rows.stamps.max() <= n):
        raise ValueError("the epochs of its rows are out of range")


@kernel(entry="too")
def side_of(K: int) -> int:
    """Tasks padded to whole turns of SIMD loops; doubled when it grows, as products are laid out by it."""
    side = LANES
    while side < K:
        side *= 2
    return side


@kernel(entry="too")
def updates_until_flush(n_touched: int, K: int) -> int:
    """How many updates may be pending."""
    return max(2, n_touched // (4 * side_of(K)))


@kernel(sums="in order")
def carry(rows: Rows, z: FloatArray, v: FloatArray, stamp: int, K: int, scratch: FloatArray) -> None:
    """Bring a row of U and V from the epoch of its stamp to the beginning of the present one."""
    side, n = side_of(K), rows.tally[EPOCHS]
    scratch = scratch[:side]
    while stamp < n:
        for k in range(len(scratch)):
            scratch[k] = 0.0
        for i in range(side):
            if z[i] == 0.0:
                continue
            line = rows.products[(stamp * side + i) * side :]  # sliced, so that no index can be negative: SIMD
            for k in range(len(scratch)):
                scratch[k] += z[i] * line[k]
        fade = rows.fades[stamp * side :]
        for k in range(len(scratch)):
            z[k] = scratch[k]
            v[k] *= fade[k]
        size = 1
        while 2 * size <= stamp ^ n:  # the highest digit in which they differ is the size of stamp's block
            size *= 2
        stamp = (stamp // size + 1) * size


@kernel
def apply_pending(rows: Rows, j: int, K: int, scratch: FloatArray) -> None:
    """Apply what is pending on row j: it belongs to the present epoch then."""
    if rows.stamps[j] == UNTOUCHED:
        rows.tally[TOUCHED] += 1
    else:
        carry(rows, rows.weights[j, COMMON], rows.weights[j, PERSONAL], rows.stamps[j], K, scratch)
    rows.stamps[j] = rows.tally[EPOCHS]


@kernel(sums="in order")
def project(rows: Rows, table: Rounds, row: int, k: int, K: int, z: FloatArray, scratch: FloatArray) -> float:
    """z <- Z^T x, and <v_k, x>. Pending transforms of the row's features are applied first."""
    first, last = row_bounds(table, row)
    side, own = side_of(K), 0.0
    for i in range(side):
        z[i] = 0.0
    for p in range(first, last):
        j, x = feature_at(table, row, p), table.values[p]
        if rows.stamps[j] != rows.tally[EPOCHS]:
            apply_pending(rows, j, K, scratch)
        weights = rows.weights[j]
        for i in range(side):
            z[i] += x * weights[COMMON, i]
        own += x * weights[PERSONAL, k]
    return float(own * rows.scales[k])


@kernel(sums="in order")
def project_pending(
    rows: Rows, table: Rounds, row: int, k: int, K: int, z: FloatArray, copy: FloatArray, scratch: FloatArray
) -> float:
    """`project` that leaves rows pending: to predict, which change nothing. k = -1 has no v."""
    first, last = row_bounds(table, row)
    side, own = side_of(K), 0.0
    for i in range(side):
        z[i] = 0.0
    for p in range(first, last):
        j, x = feature_at(table, row, p), table.values[p]
        weights = rows.weights[j]
        if 0 <= rows.stamps[j] < rows.tally[EPOCHS]:
            for i in range(side):
                copy[COMMON, i], copy[PERSONAL, i] = weights[COMMON, i], weights[PERSONAL, i]
            carry(rows, copy[COMMON], copy[PERSONAL], rows.stamps[j], K, scratch)
            weights = copy
        for i in range(side):
            z[i] += x * weights[COMMON, i]
        if k >= 0:
            own += x * weights[PERSONAL, k]
    return own * rows.scales[k] if k >= 0 else 0.0


@kernel(sums="in order")
def through(rows: Rows, z: FloatArray, k: int, K: int) -> float:
    """(z A)_k: <u_k, x> from z = Z^T x."""
    total = 0.0
    for i in range(K):
        total += z[i] * rows.transform[i, k]
    return total


@kernel(sums="in order")
def add_to_row(
    rows: Rows, table: Rounds, row: int, k: int, K: int, common: float, personal: float, scratch: FloatArray
) -> None:
    """u_k += common x and v_k += personal x."""
    first, last = row_bounds(table, row)
    own = personal / rows.scales[k] if personal != 0.0 else 0.0
    side = side_of(K)
    for i in range(side):
        scratch[i] = common * rows.inverse[k, i] if i < K else 0.0
    for p in range(first, last):
        weights, x = rows.weights[feature_at(table, row, p)], table.values[p]
        for i in range(side):
            weights[COMMON, i] += x * scratch[i]
        weights[PERSONAL, k] += own * x


@kernel(entry="too", allocates=True, inline=False)
def write_out(rows: Rows, weights: FloatArray, K: int) -> None:
    """Replace the rows of `weights`, the model's or a copy, by those they stand for: u = z A, v times its scales."""
    scratch = np.empty(weights.shape[2])
    for j in range(len(weights)):
        if rows.stamps[j] == UNTOUCHED:
            continue
        z, v = weights[j, COMMON], weights[j, PERSONAL]
        carry(rows, z, v, rows.stamps[j], K, scratch)
        for k in range(K):
            scratch[k] = through(rows, z, k, K)
            v[k] *= rows.scales[k]
        for k in range(K):
            z[k] = scratch[k]


@kernel
def open_epoch(rows: Rows, K: int) -> None:
    """A = I."""
    for i in range(K):
        rows.scales[i] = 1.0
        for k in range(K):
            rows.transform[i, k] = rows.inverse[i, k] = 1.0 if i == k else 0.0


@kernel(allocates=True, inline=False)
def flush_rows(rows: Rows, K: int) -> None:
    """Write out every row; no epoch is left to remember."""
    write_out(rows, rows.weights, K)
    for j in range(len(rows.stamps)):
        rows.stamps[j] = min(rows.stamps[j], 0)
    rows.tally[EPOCHS] = rows.tally[UPDATES] = 0
    open_epoch(rows, K)


@kernel(allocates=True, inline=False)
def close_epoch(rows: Rows, K: int) -> None:
    """Remember the epoch's transform as a block of its own, and join blocks as digits carry."""
    side, n = side_of(K), rows.tally[EPOCHS]
    area = side * side
    rows.products[n * area : (n + 1) * area] = 0.0
    rows.fades[n * side : (n + 1) * side] = 0.0
    for i in range(K):
        for k in range(K):
            rows.products[n * area + i * side + k] = rows.transform[i, k]
        rows.fades[n * side + i] = rows.scales[i]
    n += 1
    size = 1
    while n % (2 * size) == 0:
        left, right = n - 2 * size, n - size
        before = rows.products[left * area : right * area].reshape((size * side, side))
        whole_right = rows.products[right * area : (right + 1) * area].reshape((side, side))
        copy_to(before.reshape(-1), np.dot(before, whole_right).reshape(-1))
        for i in range(left * side, right * side):
            rows.fades[i] *= rows.fades[right * side + i % side]
        size *= 2
    rows.tally[EPOCHS] = n
    open_epoch(rows, K)


@kernel(allocates=True, inline=False)
def end_update(rows: Rows, truncated: bool, K: int) -> bool:
    """Count an update; flush or close the epoch where it is time. True if no row has pending transforms."""
    rows.tally[UPDATES] += 1
    if rows.tally[UPDATES] >= updates_until_flush(rows.tally[TOUCHED], K):
        flush_rows(rows, K)
        return True
    spent = truncated
    for i in range(K):
        spent |= rows.scales[i] < SMALLEST_SCALE
        for k in range(K):
            spent |= abs(rows.inverse[i, k]) > LARGEST_INVERSE
    if spent:
        close_epoch(rows, K)
    return False


# ---- rounds --------------------------------------------------------------------------------------------------


@kernel(entry="too", allocates=True, inline=False)
def flush(state: State) -> None:
    """Let every row feel all transforms; U^T U and ||v_k||^2 anew, so that rounding errors do not add up."""
    flush_rows(state.rows, state.counters[TASKS])
    measure(state)


@kernel(allocates=True, inline=False)
def measure(state: State) -> None:
    """U^T U and ||v_k||^2 of rows with nothing pending."""
    K = state.counters[TASKS]
    for i in range(K):
        state.personal[i] = 0.0
        for k in range(K):
            state.gram[i, k] = 0.0
    for j in range(len(state.rows.weights)):
        u, v = state.rows.weights[j, COMMON], state.rows.weights[j, PERSONAL]
        if state.rows.stamps[j] != UNTOUCHED:
            for i in range(K):
                for k in range(K):
                    state.gram[i, k] += u[i] * u[k]
                state.personal[i] += v[i] * v[i]


@kernel(entry="too", allocates=True, inline=False)
def enter(state: State, n_tasks: int) -> None:
    """New tasks have u = v = 0; rows are laid out anew for `side_of` tasks."""
    if side_of(n_tasks) > side_of(state.counters[TASKS]):
        flush(state)
    state.counters[TASKS] = max(state.counters[TASKS], n_tasks)


@kernel
def push_common(
    rounds: Rounds, row: int, k: int, step: float, norm: float, z: FloatArray, scratch: FloatArray, state: State
) -> None:
    """The Gram matrix of U with u_k + step x, from the present U^T x and norm = ||x||^2."""
    K = state.counters[TASKS]
    project(state.rows, rounds, row, k, K, z, scratch)
    for i in range(K):
        h = step * through(state.rows, z, i, K)
        state.gram[i, k] += h
        state.gram[k, i] += h
    state.gram[k, k] += step * step * norm


@kernel
def shrink_personal(k: int, inner: float, norm: float, step: float, threshold: float, state: State) -> float:
    """Eq. 18 on v_k + step x, which is not written yet: shrinks v_k and returns the step that x has now."""
    squared = state.personal[k] + step * (2.0 * inner + step * norm)  # ||vh_k||^2
    length = math.sqrt(max(0.0, squared))
    if length <= threshold:
        if state.personal[k] > 0.0:
            state.rows.scales[k] = 0.0
        state.personal[k] = 0.0
        return 0.0
    factor = 1.0 - threshold / length
    state.rows.scales[k] *= factor
    state.personal[k] = (length - threshold) ** 2
    return step * factor


@kernel(allocates=True, inline=False)
def from_eigen(Q: FloatArray, values: FloatArray) -> FloatArray:
    """Q diag(values) Q^T."""
    scaled, transposed = np.empty(Q.shape), np.empty(Q.shape)
    for i in range(len(values)):
        for j in range(len(values)):
            scaled[i, j] = Q[i, j] * values[j]
            transposed[j, i] = Q[i, j]
    product: FloatArray = np.dot(scaled, transposed)
    return product


@kernel(allocates=True, inline=False)
def shrink_common(tau: float, logdet: bool, state: State) -> bool:
    """The prox of tau g: singular values s_i of U become f_i s_i, so A <- A Q diag(f) Q^T. True if some f_i is 0.

    Columns that are still zero stay out of it and exactly zero: noise would decide what a margin of 0 predicts.
    """
    K, rows = state.counters[TASKS], state.rows
    tasks = np.array([k for k in range(K) if state.gram[k, k] > 0.0])
    n = len(tasks)
    if n == 0:
        return False
    gram, columns, inverse = np.empty((n, n)), np.empty((K, n)), np.empty((n, K))
    for i in range(n):
        for j in range(n):
            gram[i, j] = state.gram[tasks[i], tasks[j]]
        for k in range(K):
            columns[k, i] = rows.transform[k, tasks[i]]
            inverse[i, k] = rows.inverse[tasks[i], k]
    squares, Q = np.linalg.eigh(gram)
    factors = np.empty(n)
    truncated = False
    for i in range(n):
        s = math.sqrt(max(squares[i], 0.0))
        factors[i] = logdet_factor(s, tau) if logdet else nuclear_factor(s, tau)  # eq. 21, eq. 16
        squares[i] = (factors[i] * s) ** 2
        truncated |= factors[i] == 0.0
    gram = from_eigen(Q, squares)
    columns = np.dot(columns, from_eigen(Q, factors))
    if not truncated:
        inverse = np.dot(from_eigen(Q, 1.0 / factors), inverse)
    for i in range(n):
        for j in range(n):
            state.gram[tasks[i], tasks[j]] = gram[i, j]
        for k in range(K):
            rows.transform[k, tasks[i]] = columns[k, i]
            rows.inverse[tasks[i], k] = inverse[i, k]
    return truncated


@kernel(entry=True, allocates=True)
def decide(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    K, capacity = state.counters[TASKS], state.rows.weights.shape[2]
    z, copy, scratch = np.empty(capacity), np.empty((2, capacity)), np.empty(capacity)
    for row in range(len(decisions)):
        k = rounds.task[row]
        f = project_pending(state.rows, rounds, row, k, K, z, copy, scratch)
        if k >= 0:
            f += through(state.rows, z, k, K)
        else:  # an unseen task: the mean of what is common
            for i in range(K):
                f += through(state.rows, z, i, K) / K
        decisions[row] = f


@kernel(entry=True, allocates=True)
def decide_common(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> None:
    """The common part <u_k, x> of each row's decision."""
    K, capacity = state.counters[TASKS], state.rows.weights.shape[2]
    z, copy, scratch = np.empty(capacity), np.empty((2, capacity)), np.empty(capacity)
    for row in range(len(decisions)):
        k, f = rounds.task[row], 0.0
        project_pending(state.rows, rounds, row, -1, K, z, copy, scratch)
        for i in range(K):
            f += through(state.rows, z, i, K) / K if k < 0 else 0.0
        decisions[row] = through(state.rows, z, k, K) if k >= 0 else f


@kernel(entry=True, allocates=True)
def learn(rounds: Rounds, settings: Settings, state: State, decisions: FloatArray) -> int:
    capacity = state.rows.weights.shape[2]
    scratch, z, margins, inner = np.empty(capacity), np.empty(capacity), np.empty(capacity), np.empty(capacity)
    for r in range(len(rounds.starts) - 1):
        first, last = rounds.starts[r], rounds.starts[r + 1]
        enter(state, rounds.task[first:last].max() + 1)
        state.counters[ROUNDS] += 1
        K, rows = state.counters[TASKS], state.rows
        due = False
        for row in range(first, last):
            k, y = rounds.task[row], rounds.y[row]
            inner[k] = project(rows, rounds, row, k, K, z, scratch)
            margins[k] = f = through(rows, z, k, K) + inner[k]
            if len(decisions) > 0:
                decisions[row] = f
            due |= is_mistake(f, y) if settings.on_mistakes else y * f < 1.0
        if not due:
            continue
        root = math.sqrt(state.counters[ROUNDS]) if settings.sqrt_step else 1.0
        eta, rho = settings.eta / root, settings.rho / root
        for row in range(first, last):
            k, y = rounds.task[row], rounds.y[row]
            norm = squared_norm(rounds, row)
            push = settings.C * y if y * margins[k] < 1.0 and norm > 0.0 else 0.0  # the gradient g_k is -push x
            personal = shrink_personal(k, inner[k], norm, rho * push, rho * settings.lambda2, state)
            if push != 0.0:
                push_common(rounds, row, k, eta * push, norm, z, scratch, state)
                add_to_row(rows, rounds, row, k, K, eta * push, personal, scratch)
                state.updates[k] += 1
        truncated = False
        if settings.lambda1 > 0.0:
            truncated = shrink_common(eta * settings.lambda1, settings.logdet, state)
        if end_update(rows, truncated, K):
            measure(state)
    return len(rounds.starts) - 1


def settings(p: Params) -> Settings:
    return Settings(
        p.penalty == "logdet", p.eta, p.rho, p.lambda1, p.lambda2, p.C, p.trigger == "mistake", p.step == "sqrt"
    )


def allocate(setup: Setup, size: Size) -> State:
    n_tasks = size.tasks
    updates, counters = np.zeros(n_tasks, np.int64), np.zeros(3, np.int64)
    return State(empty_rows(*size), np.zeros((n_tasks, n_tasks)), np.zeros(n_tasks), updates, counters)


def leave(setup: Setup, state: State, k: int) -> None:
    """Every transform mixes all tasks, so all are applied before one goes."""
    flush(state)
    state.rows.products[:] = 0.0
    state.rows.fades[:] = 0.0


def check(setup: Setup, state: State, size: Size) -> None:
    check_rows(state.rows)


ALGORITHM = Algorithm[State](
    parameters={
        "penalty": one_of(("nuclear", "logdet")),
        "eta": positive(),
        "rho": positive(),
        "lambda1": non_negative(),
        "lambda2": non_negative(),
        "C": positive(),
        "trigger": one_of(("margin", "mistake")),
        "step": one_of(("constant", "sqrt")),
    },
    settings=settings,
    allocate=allocate,
    learn=learn,
    decide=decide,
    exchange="the common part is shrunk as one matrix over all tasks, which no part of the tasks can do by itself",
    no_weights="a round is one step of all tasks on the sum of their losses, in which its paper weighs no row",
    chunks=Chunks(simultaneous=True),
    tasks=Tasks(enter=lambda setup, state, n_tasks: enter(state, n_tasks), leave=leave),
    storage=Storage(check=check),
    explain=Explain(shared=decide_common),
)


@from_keywords
class ROMCO(Classifier):
    """Robust online multi-task learning: a common part of low rank, and personal parts for the tasks that need one.

    With W = U + V, a round with a loss makes ``U <- prox(U - eta G)`` and ``v_k <- [1 - rho lambda2/||v̂_k||]_+ v̂_k``,
    ``v̂_k = v_k - rho g_k``, where ``g_k = -C y_k x_k`` for tasks with y f < 1. The prox shrinks the singular values
    of U: s to [s - eta lambda1]_+ ("nuclear"), or to the root of eq. 21 ("logdet"). All of U shrinks in such a
    round; of V the columns of the tasks that are present, those without loss too.
    Cost O(nnz K + K³) a round, nnz over its rows, plus O(K²) for a feature that is touched for the first time since
    the rank was last truncated. No work depends on the number of features.

    Parameters
    ----------
    penalty : {"nuclear", "logdet"}
        "nuclear" (ROMCO-NuCl) truncates the rank exactly; "logdet" (ROMCO-LogD) shrinks large singular values less
        and small ones more, but none to zero.
    eta, rho : float > 0
        Step sizes of U and of V: the smaller, the more of what was learned is retained.
    lambda1 : float >= 0
        Strength of the penalty on U. 0 leaves it alone; large values make U = 0.
    lambda2 : float >= 0
        Strength of the group lasso on V; large values make V = 0.
    C : float > 0
        Weight of the loss.
    trigger : {"margin", "mistake"}
        A round updates when some task has a hinge loss (the regret proof needs that), or only when some task errs.
        Either way all tasks with a loss push.
    step : {"constant", "sqrt"}
        "sqrt" divides eta and rho by the square root of the number of rounds so far.
    classes : two labels, optional
        Needed where the first label does not tell the other; see `partial_fit`.

    Attributes
    ----------
    coef_ : (n_tasks, n_features) weights u_k + v_k
    coef_low_rank_, coef_task_ : (n_tasks, n_features) their two parts
    rank_ : rank of U
    outlier_tasks_ : ids of the tasks with v_k ≠ 0
    relation_ : None
    tasks_, classes_, n_features_in_, feature_names_in_, n_updates_, task_updates_

    Raises
    ------
    ValueError
        On bad input or hyper-parameters.

    Notes
    -----
    An unseen task is answered by the mean of the common parts u_k. With "nuclear", constant steps and the trigger
    "margin" the regret is bounded: `shoal.theory.romco_regret_bound`. A round ends where a call ends, so other chunks
    are other rounds unless `rounds=` names them.

    Odd rows: one wrong label moves the weights by one step, however sure the forecast was; a value of 1e6 in a row that
    is misjudged moves its weight by 1e6 such steps, which later rows do not take back.

    References
    ----------
    Yang, Zhao, Gao. Robust Online Multi-Task Learning with Correlative and Personalized Structures. IEEE TKDE 29,
    2017: algorithms 1 and 2, eqs. 13-21, Lemma 3, Theorem 3.

    Examples
    --------
    >>> from shoal import ROMCO
    >>> from shoal.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=20, n_features=30, n_rows=2000, relatedness=0.9, noise=0.0, seed=1)
    >>> data = data.interleaved(seed=0)
    >>> for lambda1 in (0.0, 0.1, 0.3):
    ...     learner = ROMCO(lambda1=lambda1, lambda2=1.0)
    ...     decisions = learner.test_then_train(data.X, data.y, data.task)
    ...     error = ((decisions >= 0) != (data.y > 0)).mean()
    ...     print(f"lambda1 {lambda1}  rank {learner.rank_:2}  error {error:.3f}")
    lambda1 0.0  rank 20  error 0.281
    lambda1 0.1  rank 18  error 0.242
    lambda1 0.3  rank  6  error 0.212
    """

    penalty: str = "nuclear"
    eta: float = 0.1
    rho: float = 0.1
    lambda1: float = 0.01
    lambda2: float = 0.01
    C: float = 1.0
    trigger: str = "margin"
    step: str = "constant"
    classes: Any = None

    algorithm = ALGORITHM

    def baselines(self) -> dict[str, Learner]:
        own = ROMCO(**{**self.get_params(), "lambda1": 0.0, "lambda2": 0.0})
        eta = float(self.C * (self.eta + self.rho))
        pooled = learner_class("MultitaskPerceptron")(relation="pooled", loss="hinge", eta=eta, step=self.step)
        return {"independent": own, "pooled": pooled}

    def _parts(self, name: str) -> FloatArray:
        """(2, n_tasks, n_features) U and V, transposed."""
        state = self._state(name)
        weights = state.rows.weights[: self.n_features_in_].copy()
        write_out(state.rows, weights, len(self.tasks_))
        return np.ascontiguousarray(weights[:, :, : len(self.tasks_)].transpose(1, 2, 0))

    @property
    def coef_(self) -> FloatArray:
        """(n_tasks, n_features) weights u_k + v_k."""
        return np.asarray(self._parts("coef_").sum(axis=0))

    @property
    def coef_low_rank_(self) -> FloatArray:
        """(n_tasks, n_features) the common part, U transposed."""
        return np.asarray(self._parts("coef_low_rank_")[COMMON])

    @property
    def coef_task_(self) -> FloatArray:
        """(n_tasks, n_features) the personal part, V transposed."""
        return np.asarray(self._parts("coef_task_")[PERSONAL])

    @property
    def rank_(self) -> int:
        """Rank of the common part."""
        return int(np.linalg.matrix_rank(self._parts("rank_")[COMMON]))

    @property
    def outlier_tasks_(self) -> list[Any]:
        """Ids of the tasks that have a personal part."""
        personal = self._state("outlier_tasks_").personal
        return [task for task, squared in zip(self.tasks_, personal, strict=False) if squared > 0.0]
