"""The learned state of hedged sharing: allocated, grown, packed and checked."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray, aligned_zeros
from shoal.engine.axes import FEATURE, OTHER, TASK
from shoal.engine.rounds import Rounds
from shoal.engine.task_weights import record_table as records
from shoal.engine.task_weights.record_table import Records
from shoal.model.algorithm import Setup, Size
from shoal.model.state import in_capacity, trimmed
from shoal.online.hedged_sharing import crossing, dense
from shoal.online.hedged_sharing.crossing import Crossed, PackedCrossed, new_crossed, own_size_for
from shoal.online.hedged_sharing.dense import Dense, PackedDense
from shoal.online.hedged_sharing.experts import N_EXPERTS, N_INPUTS, OF_TASK, taking_part
from shoal.online.hedged_sharing.linear import OWN_WIDTH, WIDTH
from shoal.online.hedged_sharing.mixing import N_STACKS, TRUSTS, TURN, VARIANCES
from shoal.online.hedged_sharing.scaling import N_ERRORS, N_TARGETS, Scale, new_scale


class State(NamedTuple):
    """The preparing thread updates the fields before `errors`, the learning thread that and those after it."""

    shared: Annotated[FloatArray, FEATURE, OTHER]  # (1 + features, 16) records of s; the first is the constant's
    own: Records  # records of v_k
    crossed: Crossed
    scale: Scale
    targets: FloatArray  # (9,) of real targets: see `scaling`
    seen: IntArray  # (3,) entries, rows, features
    errors: FloatArray  # (5,) of real targets: see `scaling`
    surprises: FloatArray  # (2,) of labels: rows, and those whose label was all but impossible
    rows: IntArray  # (1,)
    task_rows: Annotated[IntArray, TASK]  # rows of each task
    task_weights: Annotated[FloatArray, TASK, OTHER]  # (tasks, experts) Bayes weights
    weights: FloatArray  # (experts,) Bayes weights of all tasks together
    slow: FloatArray  # (experts,) the same with a smaller share
    stacks: FloatArray  # (2, TURN) weights of the second mixing's regressions
    covariances: FloatArray  # (2, N_INPUTS * TURN)
    trusts: FloatArray  # (3,) weights of the third mixing
    updates: Annotated[IntArray, TASK]
    dense: Dense
    counters: IntArray  # (3,) tasks, rounds, features


class PackedState(NamedTuple):
    """The saved arrays."""

    shared: Annotated[FloatArray, FEATURE, OTHER]
    own: records.Packed
    crossed: PackedCrossed
    scale: Scale
    targets: FloatArray
    seen: IntArray
    errors: FloatArray
    surprises: FloatArray
    rows: IntArray
    task_rows: Annotated[IntArray, TASK]
    task_weights: Annotated[FloatArray, TASK, OTHER]
    weights: FloatArray
    slow: FloatArray
    stacks: FloatArray
    covariances: FloatArray
    trusts: FloatArray
    updates: Annotated[IntArray, TASK]
    dense: PackedDense
    counters: IntArray


def _rest(setup: Setup, size: Size) -> dict[str, Any]:
    """A new state's parts but for records."""
    part, settings = np.empty(N_EXPERTS), setup.settings
    taking_part(settings.sharing, settings.interactions, settings.dense.trees.once >= 0.0, settings.regression, part)
    stacks, covariances, uniform = (
        aligned_zeros((N_STACKS, TURN)),
        aligned_zeros((N_STACKS, N_INPUTS, TURN)),
        part / part.sum(),
    )
    stacks[:, OF_TASK] = 1.0  # a regression begins as the task's mixture
    for covariance, variance in zip(covariances, VARIANCES, strict=True):
        np.fill_diagonal(covariance, variance)
    return {
        "shared": aligned_zeros((1 + size.features, WIDTH), setup.params.dtype),
        "scale": new_scale(size.features),
        "targets": np.zeros(N_TARGETS),
        "seen": np.zeros(3, np.int64),
        "errors": np.zeros(N_ERRORS),
        "surprises": np.zeros(2),
        "rows": np.zeros(1, np.int64),
        "task_rows": np.zeros(size.tasks, np.int64),
        "task_weights": np.tile(uniform, (size.tasks, 1)),
        "weights": uniform,
        "slow": uniform.copy(),
        "stacks": stacks,
        "covariances": covariances.reshape(N_STACKS, -1),
        "trusts": np.array(TRUSTS),
        "updates": np.zeros(size.tasks, np.int64),
        "counters": np.zeros(3, np.int64),
    }


def allocate(setup: Setup, size: Size) -> State:
    own = records.new_records(OWN_WIDTH, size.tasks, dtype=setup.params.dtype)
    return State(own=own, crossed=_new_crossed(setup, size), dense=_new_dense(setup, size), **_rest(setup, size))


def _sleeps(setup: Setup, state: State | PackedState) -> bool:
    return dense.sleeps(state.dense, setup.settings.dense)


def _new_dense(setup: Setup, size: Size) -> Dense:
    return dense.new_dense(*size, setup.params.dtype, regression=setup.settings.regression)


def _new_crossed(setup: Setup, size: Size) -> Crossed:
    return new_crossed(*size, own_size_for(setup.settings.memory), setup.params.dtype)


def grow(setup: Setup, state: State, size: Size) -> State:
    larger = State(
        own=records.for_tasks(state.own, size.tasks),
        crossed=crossing.resized(state.crossed, *size),
        dense=state.dense if _sleeps(setup, state) else _new_dense(setup, size),
        **_rest(setup, size),
    )
    tables, n = larger.own.tables, len(state.updates)
    for old, new in zip(
        (state.own.tables.start, state.own.tables.size, state.own.tables.filled),
        (tables.start, tables.size, tables.filled),
        strict=True,
    ):
        new[:n] = old
    grown: State = in_capacity(state._replace(own=larger.own), larger)
    return grown


def extend(setup: Setup, state: State, size: Size, rounds: Rounds) -> State:
    """Of the rows that are left each entry may be a new pair."""
    first, n_rows = int(rounds.starts[0]), len(rounds.task)
    entries = (n_rows - first) * rounds.width if rounds.width > 0 else int(rounds.indptr[-1] - rounds.indptr[first])
    most = size.tasks * (1 + size.features) - int(state.own.used[0])
    return state._replace(own=records.with_capacity(state.own, max(min(entries + n_rows - first, most), 0)))


def leave(setup: Setup, state: State, k: int) -> None:
    records.remove(state.own, k)
    crossing.forget(state.crossed, k)
    dense.forget(state.dense, k)


def _packed_dense(setup: Setup, state: State, size: Size) -> PackedDense:
    if not _sleeps(setup, state):
        return dense.pack(state.dense)
    empty = dense.blank(*size, setup.params.dtype, regression=setup.settings.regression)
    return empty._replace(columns=empty.columns._replace(seen=state.dense.columns.seen))


def pack(setup: Setup, state: State, size: Size) -> Any:
    packed = PackedState(
        **{
            **state._asdict(),
            "own": records.pack(state.own, size.tasks),
            "crossed": crossing.pack(state.crossed),
            "dense": _packed_dense(setup, state, size),
        }
    )
    return trimmed(packed, blank(setup, size))


def blank(setup: Setup, size: Size) -> Any:
    dtype = setup.params.dtype
    return PackedState(
        own=records.blank(OWN_WIDTH, size.tasks, dtype),
        crossed=crossing.blank(*size, dtype),
        dense=dense.blank(*size, dtype, regression=setup.settings.regression),
        **_rest(setup, size),
    )


def check(setup: Setup, packed: Any, size: Size) -> None:
    records.check(packed.own, OWN_WIDTH, size.tasks, 1 + size.features)
    crossing.check(packed.crossed, own_size_for(setup.settings.memory))
    dense.check(packed.dense, size.tasks)
    counts = (
        packed.task_rows,
        packed.rows,
        packed.seen,
        packed.surprises,
        packed.task_weights,
        packed.weights,
        packed.slow,
        packed.trusts,
    )
    if any(not (numbers >= 0).all() for numbers in counts):
        raise ValueError("its numbers of rows or its weights of experts are negative")


def _unpacked_dense(setup: Setup, packed: PackedState) -> Dense:
    found = dense.unpack(packed.dense)
    return dense.asleep(found, regression=setup.settings.regression) if _sleeps(setup, packed) else found


def unpack(setup: Setup, packed: Any, size: Size) -> State:
    return State(
        **{
            **packed._asdict(),
            "own": records.unpack(packed.own, OWN_WIDTH, size.tasks),
            "crossed": crossing.unpack(packed.crossed, own_size_for(setup.settings.memory)),
            "dense": _unpacked_dense(setup, packed),
        }
    )
