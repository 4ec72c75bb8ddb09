"""Seconds an example as one size grows and the others stay, as far as memory and time allow."""

import math
import time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.complexity.cases import Case, Growth, Size
from shoal.model.algorithm import Size as Sides
from shoal.model.state import leaves

AXES = {
    "nnz": (1, 3, 10, 30, 100, 300, 1_000),
    "tasks": (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000),
    "features": (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000),
}
FITTED = {"nnz": [10], "tasks": [10, 100], "features": [10, 100]}  # ends of a curve, as ratios of sizes
TOLERANCE = 0.25  # of an exponent: the data outgrow one cache after the other, which costs up to 0.2 where all is flat
LATER = 2 ** (1 + TOLERANCE) - 1  # the second half of a stream beside the first, if row t costs t^TOLERANCE

ROWS, ENTRIES, FEWEST = 100_000, 3_000_000, 300  # most: more than caches hold
PASS, PASSES = 0.25, 3  # seconds that a pass over the rows should take, and how many
LONG = 1.0  # seconds of a pass that need no repeat
SECONDS, BYTES = 5.0, 2e9  # a size that needs more, for a pass or for the state, ends its curve


class Curve(NamedTuple):
    """What was measured along one axis."""

    axis: str
    sizes: list[int]
    seconds: list[float]  # a row
    ended_by: str = ""  # "time" or "memory"

    def exponent(self) -> float:
        """The smaller of the slopes over the last decade and the last two: growth is in both, a cache left in one."""
        return min(self.slope(ratio) for ratio in FITTED[self.axis]) if len(self.sizes) > 1 else math.nan

    def slope(self, ratio: float) -> float:
        """By least squares on log-log axes, from the last size divided by the ratio on."""
        fitted = np.array(self.sizes) * ratio >= self.sizes[-1]
        return float(np.polyfit(np.log(self.sizes)[fitted], np.log(self.seconds)[fitted], 1)[0])


class Measured(NamedTuple):
    """A learner's costs."""

    base: float  # seconds a row
    curves: dict[str, Curve]
    later: float  # the second half of a stream beside its first

    def above(self, growth: Growth) -> bool:
        """Does the cost grow faster than the docstring says?"""
        steep = [curve.exponent() > getattr(growth, axis) + TOLERANCE for axis, curve in self.curves.items()]
        return any(steep) or self.later > LATER


def stream(n_rows: int, size: Size) -> tuple[Any, Any]:
    """Rows with distinct random columns, each column from a band of its own; one row a task in turn."""
    rng, band = np.random.default_rng(0), size.features // size.nnz
    indices = rng.integers(band, size=(n_rows, size.nnz), dtype=np.int32)
    indices += np.arange(size.nnz, dtype=np.int32) * band
    values = rng.standard_normal(indices.size) / math.sqrt(size.nnz)
    indptr = np.arange(0, indices.size + 1, size.nnz)
    X = sp.csr_matrix((values, indices.ravel(), indptr), shape=(n_rows, size.features))
    return X, np.resize(np.arange(size.tasks), n_rows)


def ready(case: Case, size: Size) -> Any:
    """A learner that knows the tasks and the columns."""
    return case.make().add_tasks(range(size.tasks)).add_features(size.features)


def labels(case: Case, n_rows: int, seed: int) -> Any:
    """Tossed: nothing can be learned, so that learners go on erring, and moving, wherever a curve is."""
    return np.random.default_rng(seed).integers(case.n_labels, size=n_rows).astype(float)


def seconds_a_row(learner: Any, X: Any, y: Any, task: Any) -> float:
    """Of `partial_fit`: processor time, so that others on the machine count for less."""
    start = time.process_time()
    learner.partial_fit(X, y, task)
    return (time.process_time() - start) / len(y)


def cost(case: Case, size: Size, n_rows: int, n_passes: int = PASSES) -> float:
    """Seconds a row of the fastest pass; a pass before touches all memory (page faults) and loads compiled code."""
    (X, task), learner = stream(n_rows, size), ready(case, size)
    return min([seconds_a_row(learner, X, labels(case, n_rows, i), task) for i in range(1 + n_passes)][1:])


def later(case: Case, n_rows: int) -> float:
    """Time of the second half of a stream beside that of its first, each the fastest of some."""
    (X, task), y, half = stream(n_rows, case.base), labels(case, n_rows, 0), n_rows // 2
    found = []
    for _ in range(PASSES):
        learner = ready(case, case.base).partial_fit(X[:1], y[:1], task[:1])
        parts = slice(0, half), slice(half, n_rows)
        found.append([seconds_a_row(learner, X[part], y[part], task[part]) for part in parts])
    first, second = np.min(found, axis=0).tolist()
    return float(second / first)


def rows_for(size: Size, expected: float) -> int:
    """Whole turns of all tasks: as many rows as a pass has time for."""
    most = min(ROWS, ENTRIES // size.nnz, int(PASS / expected))
    return math.ceil(max(most, FEWEST) / size.tasks) * size.tasks


def allocate(case: Case, n_tasks: int, n_features: int) -> Any:
    """A state of this capacity: of wrappers that of the learner inside, which more than two labels copy."""
    learner: Any = case.make()
    core = getattr(learner, "estimator", learner).new_core()
    return core.algorithm.allocate(core.setup, Sides(n_tasks, n_features))


def state_bytes(case: Case, size: Size) -> float:
    """Bytes of the state, from three small ones: the sides of its arrays are linear in tasks and in features."""
    few = 128
    allocated = (leaves(allocate(case, *n)) for n in ((few, few), (2 * few, few), (few, 2 * few)))
    total = 0.0
    for small, by_tasks, by_features in zip(*allocated, strict=True):
        sides, grown = np.array(small.shape, float), np.array([by_tasks.shape, by_features.shape], float)
        sides += np.array([size.tasks / few - 1, size.features / few - 1]) @ (grown - sides)
        total += small.itemsize * float(sides.prod())
    return total if case.n_labels == 2 else total * (case.n_labels + 1)


def size_at(case: Case, axis: str, n: int) -> Size:
    """The base but for one; rows of many non-zeros stay sparse."""
    base = case.base._replace(features=10 * case.base.features) if axis == "nnz" else case.base
    return base._replace(**{axis: n})


def curve(case: Case, axis: str, base: float) -> Curve:
    """Costs along an axis, up to where memory or time ends; `base` is the cost of the base size."""
    sizes: list[int] = []
    seconds: list[float] = []
    expected = base
    for n in AXES[axis]:
        size = size_at(case, axis, n)
        if state_bytes(case, size) > BYTES:
            return Curve(axis, sizes, seconds, "memory")
        if sizes:
            expected = seconds[-1] * (n / sizes[-1]) ** getattr(case.growth, axis)
        n_rows = rows_for(size, expected)
        if n_rows * expected > SECONDS:
            return Curve(axis, sizes, seconds, "time")
        sizes.append(n)
        n_passes = 1 if n_rows * expected > LONG else PASSES
        seconds.append(base if size == case.base else cost(case, size, n_rows, n_passes))
    return Curve(axis, sizes, seconds)


def measure(case: Case) -> Measured:
    """All of a case."""
    n_rows = rows_for(case.base, cost(case, case.base, 10 * FEWEST))
    base = cost(case, case.base, n_rows)
    return Measured(base, {axis: curve(case, axis, base) for axis in AXES}, later(case, n_rows))
