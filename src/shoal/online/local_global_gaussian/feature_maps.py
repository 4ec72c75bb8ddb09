"""Features of rows, so that linear learners follow kernels: k(x, z) as an inner product.

*Random Fourier features* (Rahimi, Recht 2007) of k(x, z) = exp(-gamma ||x - z||²):
phi(x) = sqrt(2/D) cos(Omegaᵀ x + b), Omega ~ N(0, 2 gamma I).
*Nyström features that grow with the stream*, of any kernel: a dictionary of rows seen, entered with the probability of
their ridge leverage score (Calandriello, Lazaric, Valko 2017), and phi(x) = L⁻¹ k_D(x) with the Cholesky factor L of
the dictionary's kernel matrix. A row that enters appends one coordinate and leaves the others as they were, so a model
on these features goes on: new weights start at their prior. ||phi(x)||² <= k(x, x).
"""

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from shoal.engine import kernel_functions
from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel
from shoal.engine.kernel_functions import FUNCTION, RBF, KernelFunction
from shoal.engine.random import POINTS, uniform
from shoal.engine.rounds import NO_INDICES, NO_INDPTR, Rounds, cut
from shoal.engine.rows import FEATURES, copy_to, dot_all, feature_at, row_bounds, squared_norm
from shoal.model.algorithm import Piece, Setup, State
from shoal.model.parameters import Reader
from shoal.model.table import Table, read_table, validated
from shoal.online.common.support_vectors import PIECE, dense_rows

LINEAR: Final = 0
RFF: Final = 1
NYSTROM: Final = 2
TRANSFORMER: Final = 3
_KINDS: Final = {"linear": LINEAR, "rff": RFF, "nystrom": NYSTROM}
_OPTIONS: Final = {LINEAR: set[str](), RFF: {"gamma", "size"}, NYSTROM: {"kernel", "gamma", "size", "ridge"}}

SMALLEST_RESIDUAL: Final = 1e-8  # share of k(x, x) outside the dictionary, below which a row adds nothing but noise
ROWS_AT_ONCE: Final = 1024  # rows mapped before they are learned: bounds the memory of a large chunk


class FeatureMap(NamedTuple):
    """Which map, and its numbers."""

    kind: int = LINEAR
    gamma: float = 1.0  # the kernel's
    size: int = 200  # features, or the most points in the dictionary
    ridge: float = 0.1  # of the leverage scores: the larger, the fewer rows enter
    transformer: Any = None
    kernel: Any = "rbf"  # "linear" or a function of two arrays; Nyström only


class MapState(NamedTuple):
    """The arrays of a map; empty where it needs none."""

    points: FloatArray  # (features, size) Omega, or the dictionary's rows, feature by feature
    offsets: FloatArray  # (size,) b, or the squared norms of the dictionary's rows
    cholesky: FloatArray  # (size, size) of K_DD; Nyström only
    ridge_cholesky: FloatArray  # (size, size) of K_DD + ridge I
    used: IntArray  # (1,) dictionary rows


def read(features: Any) -> FeatureMap:
    """The map that a learner's `features` names.

    Raises
    ------
    ValueError
        If it names none, or one of its numbers is out of range.
    """
    if hasattr(features, "transform"):
        check_is_fitted(features)
        return FeatureMap(TRANSFORMER, transformer=features)
    options = dict(features) if isinstance(features, Mapping) else {"map": features}
    name = options.pop("map", None)
    if not isinstance(name, str) or name not in _KINDS:
        raise ValueError(
            f"features must be one of {sorted(_KINDS)}, a dict such as {{'map': 'rff', 'gamma': 0.1}}, or a fitted "
            f"transformer, got {features!r}"
        )
    unknown = sorted(set(options) - _OPTIONS[_KINDS[name]])
    if unknown:
        raise ValueError(f"features {name!r} has no option {unknown[0]!r}; it has {sorted(_OPTIONS[_KINDS[name]])}")
    found = FeatureMap(_KINDS[name], **options)
    if not (0 < found.gamma < math.inf and 0 < found.ridge < math.inf):
        raise ValueError(f"gamma and ridge of features must be finite numbers > 0, got {found.gamma}, {found.ridge}")
    if not (isinstance(found.size, int) and found.size > 0):
        raise ValueError(f"size of features must be a whole number > 0, got {found.size!r}")
    kernel_functions.resolve(found.kernel, found.gamma)
    return found._replace(gamma=float(found.gamma), ridge=float(found.ridge))


def allocate(feature_map: FeatureMap, n_features: int, seed: int) -> MapState:
    """A map that has seen nothing. A row of Omega depends on the seed and its position alone: the capacity may grow."""
    size = feature_map.size if feature_map.kind in (RFF, NYSTROM) else 0
    square = (size, size) if feature_map.kind == NYSTROM else (0, 0)
    points, offsets = np.zeros((n_features if size else 0, size)), np.zeros(size)
    if feature_map.kind == RFF:
        deviation = math.sqrt(2.0 * feature_map.gamma)
        points = np.random.default_rng([seed, 0]).normal(0.0, deviation, (n_features, size))
        offsets = np.random.default_rng([seed, 1]).uniform(0.0, 2.0 * math.pi, size)
    return MapState(points, offsets, np.zeros(square), np.zeros(square), np.zeros(1, np.int64))


@kernel(entry=True)
def fourier(rounds: Rounds, first: int, state: MapState, out: FloatArray) -> None:
    """out[i] <- sqrt(2/D) cos(Omegaᵀ x + b) for row x = first + i."""
    scale = math.sqrt(2.0 / len(state.offsets))
    for i in range(len(out)):
        phi = out[i]
        dot_all(rounds, first + i, state.points, phi)
        for j in range(len(phi)):
            phi[j] = scale * math.cos(phi[j] + state.offsets[j])


@kernel(entry="too")
def solve(lower: FloatArray, n: int, k: FloatArray, out: FloatArray) -> float:
    """out <- L⁻¹ k in the first n entries; returns its squared norm."""
    total = 0.0
    for i in range(n):
        rest = 0.0
        for j in range(i):
            rest += lower[i, j] * out[j]
        out[i] = (k[i] - rest) / lower[i, i]
        total += out[i] * out[i]
    return total


@kernel(entry="too")
def compare(rounds: Rounds, row: int, norm: float, kernel: KernelFunction, state: MapState, k: FloatArray) -> float:
    """k[j] <- k(z_j, x) for the rows z_j of the dictionary; returns k(x, x)."""
    n = state.used[0]
    if kernel.kind == FUNCTION:
        for j in range(n):
            k[j] = kernel.values[kernel.slots[j], row]
        return float(max(0.0, kernel.values[slot(rounds, row, kernel), row]))
    dot_all(rounds, row, state.points, k)
    if kernel.kind == RBF:
        for j in range(n):
            k[j] = math.exp(-kernel.gamma * max(0.0, norm + state.offsets[j] - 2.0 * k[j]))
    return 1.0 if kernel.kind == RBF else norm


@kernel(entry="too")
def slot(rounds: Rounds, row: int, kernel: KernelFunction) -> int:
    """A function's values come for the dictionary first, then for the rows at hand."""
    return len(kernel.values) - len(rounds.task) + row


@kernel(entry=True, allocates=True)
def nystrom(
    rounds: Rounds,
    kernel: KernelFunction,
    ridge: float,
    grow: bool,
    state: MapState,
    random: NDArray[np.uint64],
    out: FloatArray,
) -> None:
    """out[i] <- phi(x) for row x = i, which may enter the dictionary first (`grow`)."""
    capacity = len(state.offsets)
    k, c = np.empty(capacity), np.empty(capacity)
    for i in range(len(out)):
        n, phi, norm = state.used[0], out[i], squared_norm(rounds, i)
        own = compare(rounds, i, norm, kernel, state, k)
        phi[:] = 0.0
        explained = solve(state.cholesky, n, k, phi)
        if not explained <= own * (1.0 + SMALLEST_RESIDUAL):  # k was rounded, as of huge rows: hold ||phi||² <= k(x, x)
            shrinkage = math.sqrt(own) / math.sqrt(explained) if explained < np.inf else 0.0
            for j in range(n):
                phi[j] = phi[j] * shrinkage if shrinkage > 0.0 else 0.0
            explained = own
        if not grow or n == capacity or own - explained < own * SMALLEST_RESIDUAL:
            continue
        residual = max(0.0, own - solve(state.ridge_cholesky, n, k, c))
        if uniform(random, POINTS) < residual / (residual + ridge):  # the row's ridge leverage score
            if kernel.kind == FUNCTION:
                kernel.slots[n] = slot(rounds, i, kernel)
            enter(rounds, i, norm, state)
            phi[n] = math.sqrt(own - explained)
            copy_to(state.cholesky[n, : n + 1], phi)
            copy_to(state.ridge_cholesky[n, :n], c)
            state.ridge_cholesky[n, n] = math.sqrt(residual + ridge)


@kernel(entry="too", allocates=True)
def enter(rounds: Rounds, row: int, norm: float, state: MapState) -> None:
    """The row becomes the dictionary's next."""
    n = state.used[0]
    first, last = row_bounds(rounds, row)
    for p in range(first, last):
        state.points[feature_at(rounds, row, p), n] = rounds.values[p]
    state.offsets[n] = norm
    state.used[0] = n + 1


def dense_rounds(phi: FloatArray, rounds: Rounds, first: int, last: int, starts: IntArray) -> Rounds:
    """Rows first to last of `rounds` with the features `phi` (last - first, D)."""
    return Rounds(
        phi.shape[1], NO_INDPTR, NO_INDICES, phi.reshape(-1), rounds.task[first:last], rounds.y[first:last], starts
    )


def blocks(starts: IntArray, rows: int) -> list[tuple[int, int]]:
    """Ranges of whole rounds, each of at most `rows` rows or of one longer round."""
    cuts = [0]
    while cuts[-1] < len(starts) - 1:
        end = int(np.searchsorted(starts, starts[cuts[-1]] + rows, "right")) - 1
        cuts.append(max(end, cuts[-1] + 1))
    return list(pairwise(cuts))


FEATURE_MAP = Reader("a feature map", read)


def n_mapped(feature_map: FeatureMap, n_features: int) -> int:
    """D, the features after the map."""
    if feature_map.kind == TRANSFORMER:
        return _transform(feature_map, np.zeros((1, feature_map.transformer.n_features_in_))).n_features
    return n_features if feature_map.kind == LINEAR else feature_map.size


def pieces(setup: Setup, state: State, rounds: Rounds, learns: bool) -> Iterator[Piece]:
    """The features of rows, some rounds at a time; the dictionary may take rows in that are learned."""
    feature_map: FeatureMap = setup.params.features
    n = len(rounds.task)
    if feature_map.kind in (LINEAR, TRANSFORMER):
        whole = rounds if feature_map.kind == LINEAR else _transformed(feature_map, rounds)
        yield Piece(0, n, whole, setup.settings, state._asdict())
        return
    kept = MapState(*(getattr(state, name) for name in MapState._fields))
    starts = rounds.starts if learns else np.arange(n + 1)
    by_function = callable(feature_map.kernel)  # called for one round, so that chunks do not matter
    for a, b in blocks(starts, ROWS_AT_ONCE if not by_function else 1 if learns else PIECE):
        first, last = int(starts[a]), int(starts[b])
        phi = np.empty((last - first, len(kept.offsets)))
        if feature_map.kind == RFF:
            fourier(rounds, first, kept, phi)
        else:
            rows = cut(rounds, first, last)
            with_values = _evaluated(feature_map, kept, rows, int(state.counters[FEATURES]))
            nystrom(rows, with_values, feature_map.ridge, learns, kept, state.random, phi)
        mapped = dense_rounds(phi, rounds, first, last, starts[a : b + 1] - first)
        yield Piece(first, last, mapped, setup.settings, state._asdict())


def _evaluated(feature_map: FeatureMap, state: MapState, rounds: Rounds, d: int) -> KernelFunction:
    """The kernel; if it is a function, with its values between the dictionary and these rows, and these."""
    kernel = kernel_functions.resolve(feature_map.kernel, feature_map.gamma)
    if kernel.kind != FUNCTION:
        return kernel
    X = dense_rows(rounds, d)
    known = np.ascontiguousarray(state.points[:d, : state.used[0]].T)
    values = kernel_functions.evaluate(feature_map.kernel, np.vstack([known, X]), X)
    return kernel._replace(values=values, slots=np.arange(len(state.offsets)))


def _transform(feature_map: FeatureMap, X: Any) -> Table:
    return validated(read_table(feature_map.transformer.transform(X)))


def _transformed(feature_map: FeatureMap, rounds: Rounds) -> Rounds:
    n, d = len(rounds.task), feature_map.transformer.n_features_in_
    if rounds.width > 0:
        X: Any = rounds.values.reshape(n, d)
    else:
        X = sp.csr_matrix((rounds.values, rounds.indices, rounds.indptr), shape=(n, d))
    table = _transform(feature_map, X)
    return rounds._replace(width=table.width, indptr=table.indptr, indices=table.indices, values=table.values)
