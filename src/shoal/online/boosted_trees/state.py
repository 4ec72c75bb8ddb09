"""The state of boosted trees: allocated, grown, saved and checked."""

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.axes import INFINITE, ROW
from shoal.engine.compile import kernel
from shoal.online.boosted_trees.forest import (
    FIRST_COLUMN,
    N_CODES,
    N_EDGES,
    N_LEAVES,
    N_PLACES,
    N_TREES,
    CodeArray,
    Forests,
    SmallArray,
    Tasks,
    ValueArray,
    fill_sets,
    new_forests,
    new_tasks,
    spread,
)
from shoal.online.boosted_trees.tree import (
    Training,
    enter,
    new_training,
)

BUFFER, SPARE = 16_384, 128  # rows that a training takes, and that may come while columns are coded
MOST_COLUMNS = SPARE - 1
FIRST_CAPACITY = 256
FIRST_ROWS = 100  # before the first training

# Positions in `counters`.
ROWS, STORED, NEXT, DUE = 0, 1, 2, 3  # learned; in the buffer; where the next goes; at which a training begins
STEP, FROZEN, BEGIN, SIDE = 4, 5, 6, 7  # of the training, 0: none; its rows; where they begin; 1 + the forest that
SPENT, N_COUNTERS = 8, 9  # answers, 0: none; the cost of trainings so far, in additions


class State(NamedTuple):
    """The buffer of rows, the forest that answers, and the training of the next one."""

    tasks: Tasks
    forests: Forests
    training: Training
    values: Annotated[ValueArray, ROW]  # (buffer, columns) the first of which, the task's, is empty
    task: Annotated[IntArray, ROW]  # (buffer,)
    targets: Annotated[FloatArray, ROW]  # (buffer, 2) and weights
    counters: IntArray  # (9,)


def new_state(n_tasks: int, n_rows: int = 0, n_columns: int = 0) -> State:
    """A state that has learned nothing, with room for these numbers of rows and columns; `extended` gives more."""
    counters = np.zeros(N_COUNTERS, np.int64)
    counters[DUE] = FIRST_ROWS
    return State(
        new_tasks(n_tasks),
        new_forests(n_columns),
        new_training(min(n_rows, BUFFER), n_columns),
        np.zeros((n_rows, n_columns), np.float32),
        np.zeros(n_rows, np.int64),
        np.zeros((n_rows, 2)),
        counters,
    )


def extended(state: State, n: int, d: int) -> State:
    """The same with room for n more rows of d values."""
    n_rows, n_columns = state.values.shape
    need = min(int(state.counters[STORED]) + n, BUFFER + SPARE)
    while n_rows < need:
        n_rows = min(max(2 * n_rows, FIRST_CAPACITY), BUFFER if n_rows < BUFFER else BUFFER + SPARE)
    return in_room(state, n_rows, max(n_columns, (FIRST_COLUMN + d + 7) // 8 * 8))


def in_room(state: State, n_rows: int, n_columns: int) -> State:
    """The same with room for these numbers of rows and columns; scratch is new."""
    larger = new_state(0, n_rows, n_columns)
    forests = _in(state.forests, larger.forests)
    training: Training = _in(state.training, larger.training)
    values, task, targets, counters = _in(state[3:], larger[3:])
    return State(state.tasks, forests, training, values, task, targets, counters)


def _in(old: Any, larger: Any) -> Any:
    """Arrays of `larger` with those of `old` as their leading blocks."""
    for array, room in zip(old, larger, strict=True):
        if isinstance(array, np.ndarray) and array.size > 0:
            room[tuple(slice(n) for n in array.shape)] = array
    return larger


def forget(state: State, k: int) -> None:
    """Drop a task's rows; those of the tasks after it, which move up by one, are kept. A training begins anew."""
    counters = state.counters
    n = int(counters[STORED])
    order = (counters[NEXT] - n + np.arange(n)) % (BUFFER + SPARE)
    order = order[state.task[order] != k]
    for array in (state.values, state.task, state.targets):
        array[: len(order)] = array[order]
    state.task[: len(order)] -= state.task[: len(order)] > k
    state.tasks.total[:] -= state.tasks.sums[k, :2]
    counters[STORED], counters[NEXT] = len(order), len(order) % (BUFFER + SPARE)
    if counters[STEP] > 0:
        counters[STEP], counters[DUE] = 0, counters[ROWS] + 1


class Packed(NamedTuple):
    """The saved form: the rows in the buffer, splits, and of a training the codes and the frozen rows."""

    tasks: Tasks
    edges: Annotated[ValueArray, ROW, INFINITE]  # (forests, columns, 31): the one that answers, the one in training
    column: Annotated[SmallArray, ROW]  # (forests, 240, 31)
    parent: Annotated[SmallArray, ROW]  # (forests, 240, 31)
    left: Annotated[NDArray[np.uint64], ROW]  # (forests, 240, 31)
    forest_values: Annotated[FloatArray, ROW]  # (forests, 240, 63)
    units: Annotated[FloatArray, ROW]  # (forests, 2)
    sizes: Annotated[IntArray, ROW]  # (forests,)
    codes: Annotated[CodeArray, ROW]  # (columns, frozen rows)
    frozen: Annotated[FloatArray, ROW]  # (3, frozen rows) target, weight, margin
    values: Annotated[ValueArray, ROW]  # (rows, columns)
    task: Annotated[IntArray, ROW]  # (rows,)
    targets: Annotated[FloatArray, ROW]  # (rows, 2)
    counters: IntArray


def _needed(counters: IntArray) -> list[int]:
    """The forest that answers, and the one in training."""
    side = int(counters[SIDE])
    return ([side - 1] if side > 0 else []) + ([side % 2] if counters[STEP] > 0 else [])


def pack(state: State) -> Packed:
    """The saved form of a state."""
    forests, training, counters = state.forests, state.training, state.counters
    n, n_frozen = int(counters[STORED]), int(counters[FROZEN]) if counters[STEP] > 0 else 0
    n_coded = min(int(counters[STEP]), int(forests.sizes[counters[SIDE] % 2])) if n_frozen > 0 else 0
    frozen = np.stack([training.target, training.weight, training.margin])[:, :n_frozen]
    splits: list[Any] = [array[_needed(counters)] for array in (forests.edges, *forests[4:])]
    rows: list[Any] = [state.values[:n], state.task[:n], state.targets[:n], counters]
    parts = [state.tasks, *splits, training.codes[:n_coded, :n_frozen], frozen, *rows]
    return Packed(*parts)


def blank(n_tasks: int) -> Packed:
    """An empty `pack`."""
    return pack(new_state(n_tasks))


def unpack(packed: Packed) -> State:
    """The inverse of `pack`."""
    n_coded, n_frozen = packed.codes.shape
    n, n_columns = packed.values.shape
    state = extended(new_state(0, 0, n_columns), n, 0) if n_columns > 0 else new_state(0)
    forests, training = state.forests, state.training
    arrays: list[Any] = [forests.edges, *forests[4:]]
    for array, saved in zip(arrays, packed[1:8], strict=True):
        array[_needed(packed.counters)] = saved
    training.codes[:n_coded, :n_frozen] = packed.codes
    for array, frozen in zip((training.target, training.weight, training.margin), packed.frozen, strict=True):
        array[:n_frozen] = frozen
    training.units[0] = packed.frozen[1].max(initial=0.0)
    state.values[:n], state.task[:n], state.targets[:n] = packed.values, packed.task, packed.targets
    state = state._replace(tasks=packed.tasks, counters=packed.counters)
    _restore(n_coded, n_frozen, state)
    return state


@kernel(entry=True)
def _restore(n_coded: int, n_frozen: int, state: State) -> None:
    """Fill the arrays that are not saved."""
    forests = state.forests
    for side in range(2):
        fill_sets(side, forests)
        for t in range(forests.column.shape[1]):
            spread(side, t, forests)
    for c in range(n_coded):
        enter(c, n_frozen, state.training)


def check(packed: Packed, n_tasks: int) -> None:
    """Raise ValueError unless all that kernels index with is in range."""
    counters, (n, n_columns), sizes = packed.counters, packed.values.shape, packed.sizes
    if (counters < 0).any() or counters[SIDE] > 2 or n_columns > MOST_COLUMNS + 1:
        raise ValueError("counts of its trees are out of range")
    n_forests, n_frozen, n_coded = len(_needed(counters)), packed.codes.shape[1], len(packed.codes)
    trees = N_TREES if n_columns > 0 else 0
    shapes = [
        (packed.edges, (n_forests, n_columns, N_EDGES)),
        *((each, (n_forests, trees, N_LEAVES - 1)) for each in (packed.column, packed.parent, packed.left)),
        (packed.forest_values, (n_forests, trees, 2 * N_LEAVES - 1)),
        (packed.units, (n_forests, 2)),
        (sizes, (n_forests,)),
        (packed.frozen, (3, n_frozen)),
        (packed.targets, (n, 2)),
        (packed.task, (n,)),
    ]
    if any(array.shape != shape for array, shape in shapes):
        raise ValueError("the arrays of its trees do not have the sizes that their counts give")
    if counters[STORED] != n or n > BUFFER + SPARE or counters[NEXT] >= BUFFER + SPARE:
        raise ValueError("its trees' rows do not have the number that their counts give")
    if n < BUFFER + SPARE and counters[NEXT] != n:
        raise ValueError("the place of its trees' next row is out of range")
    if ((sizes < FIRST_COLUMN) | (sizes > n_columns)).any():
        raise ValueError("its trees have more columns than there are")
    step = int(counters[STEP])
    if step > 0 and not (
        n_frozen == counters[FROZEN] <= min(n, BUFFER)
        and n_coded == min(step, sizes[-1])
        and step < sizes[-1] + N_TREES
        and counters[BEGIN] < max(n, 1)
        and (packed.frozen[1] > 0.0).all()
    ):
        raise ValueError("the step of its trees' training is out of range")
    if (packed.codes >= N_CODES).any() or (packed.task < 0).any() or (packed.task >= n_tasks).any():
        raise ValueError("codes or tasks of its trees' rows are out of range")
    places, splits = packed.tasks.places, np.arange(N_LEAVES - 1)
    if (places < 0).any() or (places > N_PLACES).any() or not (packed.tasks.sums[:, 0] >= 0.0).all():
        raise ValueError("places of tasks in its trees are out of range")
    if (packed.column < -1).any() or (packed.column >= sizes[:, None, None]).any():
        raise ValueError("columns of its trees' splits are out of range")
    if (packed.parent < 0).any() or (packed.parent > splits).any():
        raise ValueError("its trees split leaves that do not exist")
