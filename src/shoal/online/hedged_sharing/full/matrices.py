"""The matrices of the full experts: made as features and tasks come, within the memory that they may take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import aligned_zeros
from shoal.engine.rounds import Rounds
from shoal.online.hedged_sharing.full.experts import PLACES, PRIOR, SIDES, SLOTS, Full, matrix_bytes


def new_matrices(side: int, n: int, dtype: Any) -> NDArray[Any]:
    """(n, side + 1, side) new matrices with their weights."""
    found = aligned_zeros((n, side + 1, side), dtype)
    found[:, np.arange(side), np.arange(side)] = PRIOR
    return found


def new_full(n_tasks: int, n_features: int, dtype: Any) -> Full:
    """Nothing learned."""
    ints = np.zeros(n_features, np.int64), np.zeros(n_tasks, np.int64)
    side = SIDES[0]
    return Full(*ints, new_matrices(side, 1, dtype)[0], new_matrices(side, 0, dtype), np.array([1, 0]))


def extended(full: Full, rounds: Rounds, memory: float, most_features: int) -> Full:
    """Room for the next round's new features and tasks; if not all fit then, the youngest tasks lose theirs.

    The same arrays if there is room.
    """
    (used, n_matrices), old = full.counters.tolist(), full.pooled.shape[1]
    need = min(used + _most_new(full, rounds), most_features + 1)
    side = next(side for side in SIDES if side >= max(need, old))
    most = int(memory // matrix_bytes(side, full.pooled.itemsize))
    first, last = int(rounds.starts[0]), int(rounds.starts[1])
    wanted = min(n_matrices + int((full.slot[rounds.task[first:last]] == 0).sum()), most)
    if side == old and wanted <= len(full.own):
        return full
    n_kept = min(n_matrices, most)
    room = len(full.own) if wanted <= len(full.own) else max(2 * len(full.own), wanted)
    own = _larger(full.own[:n_kept], side, min(room, most))
    found = full._replace(pooled=_larger(full.pooled[None], side, 1)[0], own=own)
    found.slot[found.slot > n_kept] = 0
    found.counters[SLOTS] = n_kept
    return found


def _most_new(full: Full, rounds: Rounds) -> int:
    """New features that the next round can bring, counted as often as they come."""
    first, last = int(rounds.starts[0]), int(rounds.starts[1])
    if rounds.width > 0:
        there = rounds.values.reshape(-1, rounds.width)[first:last] != 0.0
        return int((there & (full.place[: rounds.width] == 0)).sum())
    columns = rounds.indices[rounds.indptr[first] : rounds.indptr[last]]
    return int((full.place[columns] == 0).sum())


def _larger(matrices: NDArray[Any], side: int, n: int) -> NDArray[Any]:
    """So many matrices of this side, the first of which hold what is known."""
    old = matrices.shape[2]
    if side == old and n == len(matrices):
        return matrices
    found = new_matrices(side, n, matrices.dtype)
    found[: len(matrices), :old, :old] = matrices[:, :old]
    found[: len(matrices), side, :old] = matrices[:, old]
    return found


def forget(full: Full, k: int) -> None:
    """The task's matrix goes, the last one takes its place."""
    at, last = int(full.slot[k]) - 1, int(full.counters[SLOTS]) - 1
    if at < 0:
        return
    full.own[at] = full.own[last]
    full.slot[full.slot == last + 1] = at + 1
    full.slot[k] = 0
    full.own[last] = new_matrices(full.own.shape[2], 1, full.own.dtype)[0]
    full.counters[SLOTS] = last


def pack(full: Full) -> Full:
    """What is in use."""
    n, side = int(full.counters[SLOTS]), int(full.counters[PLACES])
    rows = np.append(np.arange(side), full.pooled.shape[1])
    return full._replace(pooled=full.pooled[rows, :side], own=full.own[:n, rows, :side])


def check(packed: Full) -> None:
    """Raise ValueError unless places and sizes are in range."""
    (used, n), side = packed.counters.tolist(), packed.pooled.shape[-1]
    if not 1 <= used <= SIDES[-1] or packed.pooled.shape != (used + 1, side) or side != used:
        raise ValueError("its matrix is of another size than it says")
    if packed.own.shape != (n, used + 1, used):
        raise ValueError("its matrices of tasks are not as many as it says")
    places = packed.place[packed.place > 0]
    if (packed.place < 0).any() or (places >= used).any() or len(np.unique(places)) != len(places):
        raise ValueError("places of features in its matrix are out of range")
    slots = packed.slot[packed.slot > 0]
    if (packed.slot < 0).any() or (slots > n).any() or len(np.unique(slots)) != len(slots):
        raise ValueError("places of tasks' matrices are out of range")


def unpack(packed: Full) -> Full:
    """What `pack` gave."""
    side = next(side for side in SIDES if side >= packed.counters[PLACES])
    n = len(packed.own)
    return packed._replace(pooled=_larger(packed.pooled[None], side, 1)[0], own=_larger(packed.own, side, n))
