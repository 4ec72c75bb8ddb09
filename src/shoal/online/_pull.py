"""Models that their own rows pull to a common one,  u_k <- (1 - alpha) u_k + alpha g,  without O(d) work a sparse row.

While g_j stands still, n pulls are one: u_kj <- g_j + (1 - alpha)^n (u_kj - g_j). So a sparse row of task k pulls its
own features at once, and all others *owe* the pull. Before g moves on a feature, every task takes there what it owes:
O(nnz K) a row instead of O(d). A dense row pulls all features anyway, and then nothing is owed.

A model may have several parts (a Gaussian has two) that are pulled together. `pulls[k]` counts pulls since task k owed
nothing, `settled[j, k]` how many of them feature j has had.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.compile import kernel
from shoal.engine.rounds import Rounds
from shoal.learner import Classifier

CountArray = NDArray[np.int16]
MOST = 32_000  # pulls a feature may owe; at this many the task's whole model is settled: d/32,000 a row

ROUNDING = 1e-12  # the common model has often just repaired the row: what is left of the loss is then zero but for this


def powers_of(keep: float) -> FloatArray:
    """(MOST + 2,) the weights keep^n that n pulls leave to the old value."""
    return np.asarray(float(keep) ** np.arange(MOST + 2), np.float64)


@kernel
def extent(rounds: Rounds, row: int) -> tuple[int, int]:
    """Where the row's values start, and their number."""
    if rounds.width > 0:
        return row * rounds.width, rounds.width
    return rounds.indptr[row], rounds.indptr[row + 1] - rounds.indptr[row]


@kernel
def feature(rounds: Rounds, start: int, p: int) -> int:
    """The column of the row's p-th value."""
    return p if rounds.width > 0 else rounds.indices[start + p]


@kernel(entry=True, allocates=True)
def may_owe(rounds: Rounds, powers: FloatArray, pulls: IntArray) -> bool:
    """Whether any task may owe a pull while these rows are learnt."""
    return bool(powers[1] != 1.0) and (rounds.width == 0 or bool(np.any(pulls > 0)))


@kernel
def part_at(
    i: int, j: int, k: int, powers: FloatArray, common: FloatArray, own: FloatArray, settled: CountArray,
    pulls: IntArray,
) -> float:  # fmt: skip
    """Part i of u_kj, with the pulls it owes."""
    owed = pulls[k] - settled[j, k]
    value: float = own[i, j, k]
    if owed > 0:
        value = common[i, j] + powers[owed] * (value - common[i, j])
    return value


@kernel
def _take(owed: int, j: int, k: int, powers: FloatArray, common: FloatArray, own: FloatArray) -> None:
    for i in range(len(own)):
        own[i, j, k] = common[i, j] + powers[owed] * (own[i, j, k] - common[i, j])


@kernel
def settle(
    rounds: Rounds, row: int, n_tasks: int, powers: FloatArray, common: FloatArray, own: FloatArray,
    settled: CountArray, pulls: IntArray,
) -> None:  # fmt: skip
    """All tasks take what they owe on the row's features: to be called before the common model moves there."""
    start, n = extent(rounds, row)
    for p in range(n):
        j = feature(rounds, start, p)
        for k in range(n_tasks):
            owed = pulls[k] - settled[j, k]
            if owed > 0:
                _take(owed, j, k, powers, common, own)
                settled[j, k] = pulls[k]


@kernel
def pull(
    rounds: Rounds, row: int, k: int, powers: FloatArray, common: FloatArray, own: FloatArray, settled: CountArray,
    pulls: IntArray,
) -> None:  # fmt: skip
    """u_k <- (1 - alpha) u_k + alpha g: done on the row's features, owed on the others."""
    if powers[1] == 1.0:  # alpha = 0
        return
    if rounds.width > 0 or pulls[k] == MOST:
        for j in range(own.shape[1]):
            _take(pulls[k] - settled[j, k] + 1, j, k, powers, common, own)
            settled[j, k] = 0
        pulls[k] = 0
        return
    pulls[k] += 1
    start, n = extent(rounds, row)
    for p in range(n):
        j = feature(rounds, start, p)
        _take(pulls[k] - settled[j, k], j, k, powers, common, own)
        settled[j, k] = pulls[k]


class Pulled(Classifier):
    """A classifier whose state has `common`, `own`, `settled` and `pulls`, and whose settings have `powers`."""

    alpha: float

    def _powers(self) -> FloatArray:
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha must be in [0, 1], got {self.alpha}")
        return powers_of(1.0 - self.alpha)

    def _parts(self, powers: FloatArray) -> FloatArray:
        """(parts, features, tasks) all models with the pulls they owe."""
        owed = self._state.pulls - self._state.settled
        g, u = self._state.common[:, :, None], self._state.own
        return np.asarray(np.where(owed == 0, u, g + powers[owed] * (u - g)))

    def _keep(self, settings: Any) -> None:
        """New hyper-parameters: what is owed was owed under the old ones."""
        if self._state is not None and self._settings_read is not None and self._state.pulls.any():
            self._state.own[...] = self._parts(self._settings_read.powers)
            self._state.settled[...] = 0
            self._state.pulls[...] = 0
        super()._keep(settings)
