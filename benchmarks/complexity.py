"""Cost of an example against what the docstrings say: how it grows with non-zeros, tasks and rows seen.

    python -m benchmarks.complexity [LEARNER ...]

A cost of O(nnz^a K^b) may grow by no more than 16^a from 16 to 256 non-zeros and by 8^b from 16 to 128 tasks; the
exponents printed are those of the growth that was measured. Rows: the second half of a stream beside its first.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import shoal
from benchmarks.timing import machine

N_FEATURES = 4_096
NNZ, TASKS = (16, 256), (16, 128)
TOLERANCE = 0.25  # of an exponent: cache misses grow with the data too


class Case(NamedTuple):
    """A learner and the exponents of its docstring, for one example."""

    make: Callable[[], Any]
    nnz: float
    tasks: float
    about: str


CASES = {
    "MultitaskPerceptron": Case(lambda: shoal.MultitaskPerceptron(loss="logistic"), 1, 0, "O(nnz)"),
    "MultitaskRegressor": Case(lambda: shoal.MultitaskRegressor(eta=0.01), 1, 0, "O(nnz)"),
    "PassiveAggressive": Case(shoal.PassiveAggressive, 1, 0, "O(nnz)"),
    "PassiveAggressiveRegressor": Case(shoal.PassiveAggressiveRegressor, 1, 0, "O(nnz)"),
    "HedgedSharing": Case(shoal.HedgedSharing, 1, 0, "O(nnz)"),
    "HedgedSharingRegressor": Case(shoal.HedgedSharingRegressor, 1, 0, "O(nnz)"),
    "PNormPerceptron": Case(lambda: shoal.PNormPerceptron(relation=1.0), 1, 0, "O(nnz)"),
    "CollaborativePA": Case(shoal.CollaborativePA, 1, 0, "O(nnz)"),
    "CollaborativeCW": Case(shoal.CollaborativeCW, 1, 0, "O(nnz)"),
    "SharedLoss": Case(shoal.SharedLoss, 1, 0, "O(nnz), sorting apart"),
    "LocalGlobalGaussian": Case(lambda: shoal.LocalGlobalGaussian(covariance="diagonal"), 1, 0, "O(nnz), diagonal"),
    "KernelPerceptron": Case(lambda: shoal.KernelPerceptron(budget=100), 1, 0, "O(s nnz), s = 100"),
    "SecondOrderPerceptron": Case(lambda: shoal.SecondOrderPerceptron(budget=100), 1, 0, "O(s nnz + s^2), s = 100"),
    "OSMTL": Case(shoal.OSMTL, 1, 1, "O(nnz K)"),
    "OMTRL": Case(shoal.OMTRL, 1, 2, "O(nnz K + K^2), logdet"),
    "SchattenPerceptron": Case(lambda: shoal.SchattenPerceptron(p=2), 1, 2, "O(nnz K + K^2 p)"),
    "ROMCO": Case(shoal.ROMCO, 1, 2, "O(nnz K + K^2): K^3 a round of K rows"),
}


def stream(n_rows: int, nnz: int, n_tasks: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Unit rows with distinct random columns, one row a task in turn, labels of a common direction."""
    rng = np.random.default_rng(seed)
    indices = np.sort(rng.integers(N_FEATURES // nnz, size=(n_rows, nnz)) + np.arange(nnz) * (N_FEATURES // nnz))
    values = rng.normal(size=(n_rows, nnz)) / math.sqrt(nnz)
    y = np.where((values * rng.normal(size=N_FEATURES)[indices]).sum(axis=1) >= 0, 1.0, -1.0)
    indptr = np.arange(0, n_rows * nnz + 1, nnz)
    X = sp.csr_matrix((values.ravel(), indices.ravel().astype(np.int32), indptr), shape=(n_rows, N_FEATURES))
    return X, y, np.resize(np.arange(n_tasks), n_rows)


def halves(case: Case, nnz: int, n_tasks: int, repeats: int = 3) -> tuple[float, float]:
    """Seconds a row over the first and the second half of a stream."""
    n_rows = 128 * max(8, min(64, 2_000_000 // (128 * nnz * (n_tasks if case.tasks else 8))))
    X, y, task = stream(n_rows, nnz, n_tasks)
    half, found = n_rows // 2, []
    for _ in range(repeats + 1):
        learner, times = case.make().add_tasks(range(n_tasks)).widen(N_FEATURES), []
        for rows in (slice(0, half), slice(half, n_rows)):
            start = time.perf_counter()
            learner.partial_fit(X[rows], y[rows], task[rows])
            times.append((time.perf_counter() - start) / half)
        found.append(times)
    first, second = zip(*found[1:], strict=True)  # the first run loads compiled code
    return median(first), median(second)


def main(names: list[str]) -> None:
    """Print the table."""
    print(f"Medians of 3. {machine()}\n")
    print(f"{'learner':28}{'us a row':>10}{'nnz^':>7}{'K^':>7}{'later rows':>12}  docstring")
    for name in names or CASES:
        case = CASES[name]
        first, base = halves(case, NNZ[0], TASKS[0])
        by_nnz = math.log(halves(case, NNZ[1], TASKS[0])[1] / base) / math.log(NNZ[1] / NNZ[0])
        by_tasks = math.log(halves(case, NNZ[0], TASKS[1])[1] / base) / math.log(TASKS[1] / TASKS[0])
        above = " ABOVE" if by_nnz > case.nnz + TOLERANCE or by_tasks > case.tasks + TOLERANCE else ""
        print(
            f"{name:28}{base * 1e6:>10.2f}{by_nnz:>7.2f}{by_tasks:>7.2f}{base / first:>11.2f}x  {case.about}{above}",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
