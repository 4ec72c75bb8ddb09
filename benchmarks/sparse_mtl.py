"""Time to fit SparseMTL on School as the rows grow: `SHOAL_DATA=... python -m benchmarks.sparse_mtl`.

The paper's sizes: 65 common basis vectors and 10 of every school's own, kappa = 59 candidates a vector, no early stop;
so the same number of vectors is chosen whatever n is, and the time should grow as n does.
"""

import time
from typing import Any

import numpy as np

from benchmarks.timing import machine
from shoal import SparseMTLRegressor
from shoal.datasets import load_school

SIZES = (2_500, 5_000, 11_472)
SETTINGS: dict[str, Any] = {
    "gamma": 0.3, "lam": 3.0, "sigma": 2.0, "n_common": 65, "n_task": 10, "n_candidates": 59, "tol": 0.0,
    "random_state": 0,
}  # fmt: skip


def timed_fit(X: Any, y: Any, task: Any, **settings: Any) -> tuple[float, float, SparseMTLRegressor]:
    """Seconds of one fit, on the clock and of processors, and what was fitted."""
    learner = SparseMTLRegressor(**SETTINGS | settings)
    wall, cpu = time.perf_counter(), time.process_time()
    learner.fit(X, y - y.mean(), task)
    return time.perf_counter() - wall, time.process_time() - cpu, learner


def main() -> None:
    data = load_school()
    order = np.random.default_rng(0).permutation(len(data))
    timed_fit(data.X[:500], data.y[:500], data.task[:500])  # loads compiled code
    print(f"SparseMTLRegressor on School, 139 tasks. {machine()}")
    print(f"{'sharing':9}{'rows':>8}{'common':>8}{'own':>7}{'seconds':>10}{'CPU s':>10}{'CPU us a row':>14}")
    for settings in ({"sharing": "common", "n_common": 75}, {"sharing": "both"}):
        for n in SIZES:
            rows = np.sort(order[:n])
            wall, cpu, learner = timed_fit(data.X[rows], data.y[rows], data.task[rows], **settings)
            counts = f"{learner.n_basis_common_:>8}{learner.n_basis_task_:>7,}"
            print(f"{settings['sharing']:9}{n:>8,}{counts}{wall:>10.2f}{cpu:>10.2f}{1e6 * cpu / n:>14.0f}", flush=True)


if __name__ == "__main__":
    main()
