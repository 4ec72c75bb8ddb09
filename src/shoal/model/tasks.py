"""Task ids of any hashable kind, and the column each has in a model."""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import IntArray
from shoal.engine.compile import kernel


@kernel(entry=True, allocates=True)
def _codes(task: IntArray, low: int, span: int) -> tuple[IntArray, IntArray]:
    """Integer ids as codes in order of first appearance, and the row of each first appearance."""
    code_of = np.full(span, -1, np.int64)
    codes = np.empty(len(task), np.int64)
    firsts = np.empty(min(span, len(task)), np.int64)
    n = 0
    for row in range(len(task)):
        v = task[row] - low
        if code_of[v] < 0:
            code_of[v] = n
            firsts[n] = row
            n += 1
        codes[row] = code_of[v]
    return codes, firsts[:n]


@kernel(entry=True, allocates=True)
def _text_codes(letters: NDArray[np.uint32]) -> tuple[IntArray, IntArray]:
    """The same for ids of text, a row of code points each."""
    n_rows, width = letters.shape
    slots = 16
    while slots < 2 * n_rows:
        slots *= 2
    code_at, codes, firsts = np.empty(slots, np.int64), np.empty(n_rows, np.int64), np.empty(n_rows, np.int64)
    code_at[:] = -1  # np.full takes a tenth of a second more to compile
    n = 0
    for row in range(n_rows):
        mixed = np.uint64(0)
        for i in range(width):
            mixed = (mixed ^ np.uint64(letters[row, i])) * np.uint64(0x9E3779B97F4A7C15)
        slot = np.int64(mixed >> np.uint64(32)) & (slots - 1)
        while code_at[slot] >= 0 and not _same(letters[firsts[code_at[slot]]], letters[row]):
            slot = (slot + 1) & (slots - 1)
        if code_at[slot] < 0:
            code_at[slot] = n
            firsts[n] = row
            n += 1
        codes[row] = code_at[slot]
    return codes, firsts[:n]


@kernel(alone=False)
def _same(a: NDArray[np.uint32], b: NDArray[np.uint32]) -> bool:
    differing = 0
    for i in range(len(a)):
        differing += int(a[i] != b[i])
    return differing == 0


def _as_list(task: Any, n_rows: int) -> list[Any]:
    if hasattr(task, "to_numpy") and not isinstance(task, np.ndarray):
        task = task.to_numpy()  # pandas, polars, Arrow
    ids = task.tolist() if isinstance(task, np.ndarray) else None if isinstance(task, str) else list(task)
    if ids is None or len(ids) != n_rows:
        found = "a single string" if ids is None else f"{len(ids)} ids"
        raise ValueError(f"task must hold one id per row: expected {n_rows} ids, got {found}")
    return ids


def _refuse_missing(task: Hashable, row: int) -> None:
    if task is None or task != task:
        raise ValueError(f"row {row}: its task id is missing ({task}); expected any hashable id but None or NaN")


def _addresses(objects: NDArray[np.object_]) -> NDArray[np.uint32]:
    """(n, 2) halves of the addresses of objects, to look up each object once.

    The readers of files give few objects for many rows: 10 to 19 ns a row, instead of 43 to 65 if each id is looked up
    in a dict. Where each row has an object of its own, it takes 67 to 115 ns instead of 54 to 88.
    """
    return np.frombuffer(np.ascontiguousarray(objects), np.uint32).reshape(len(objects), -1).copy()


def _is_hashable(task: Any) -> bool:
    try:
        hash(task)
    except TypeError:
        return False
    return True


class TaskIndex:
    """Task ids in the order of their columns."""

    def __init__(self, ids: Iterable[Hashable] = ()) -> None:
        ids = list(ids)
        self.column = dict(zip(ids, range(len(ids)), strict=True))
        self._counted = np.arange(len(self.column))

    def __len__(self) -> int:
        return len(self.column)

    @property
    def ids(self) -> list[Any]:
        """The ids in column order."""
        return list(self.column)

    def add(self, ids: Iterable[Hashable]) -> None:
        """Give each new id the next column."""
        for task in ids:
            self.column.setdefault(task, len(self.column))
        if len(self.column) > len(self._counted):
            self._counted = np.arange(2 * len(self.column))

    def one(self, task: Hashable) -> IntArray | None:
        """(1,) the column of a task, not to be written to; None if it is new."""
        k = self.column.get(task)
        return None if k is None else self._counted[k : k + 1]  # half the time of a new array

    def keep_first(self, n: int) -> None:
        """Take back the tasks that were added last."""
        for task in list(self.column)[n:]:
            del self.column[task]

    def encode(self, task: Any, n_rows: int) -> tuple[IntArray, list[Any]]:
        """Columns of the rows' tasks, and the new ids in order of appearance (columns from `len(self)` on).

        Nothing is added: the caller calls `add` once all input is known to be good.
        """
        if task is None:
            ids = [None]
            rows = np.zeros(n_rows, np.int64)
        elif isinstance(task, np.ndarray) and task.dtype.kind in "iu" and task.shape == (n_rows,) and n_rows > 32:
            low, high = int(task.min()), int(task.max())
            if high - low > 8 * n_rows + 1024 or high > 2**62:
                return self._encode_list(task.tolist())
            rows, firsts = _codes(np.require(task, np.int64, ["C", "W"]), low, high - low + 1)
            ids = task[firsts].tolist()
        elif isinstance(task, np.ndarray) and task.dtype.kind == "U" and task.shape == (n_rows,) and n_rows > 32:
            letters = np.require(task, None, ["C", "W"]).view(np.uint32).reshape(n_rows, -1)
            rows, firsts = _text_codes(letters)
            ids = task[firsts].tolist()
        elif isinstance(task, np.ndarray) and task.dtype.kind == "O" and task.shape == (n_rows,) and n_rows > 32:
            rows, firsts = _text_codes(_addresses(task))
            try:
                columns, new = self._encode_list(task[firsts].tolist())
            except ValueError:
                return self._encode_list(task.tolist())  # which names the row
            return columns[rows], new
        else:
            return self._encode_list(_as_list(task, n_rows))
        columns, new = self._encode_list(ids, check=task is not None)
        return columns.take(rows), new

    def _encode_list(self, ids: list[Any], *, check: bool = True) -> tuple[IntArray, list[Any]]:
        try:
            known = list(map(self.column.get, ids))
            if None not in known:
                return np.array(known, np.int64), []
            distinct = dict.fromkeys(ids)  # in order of appearance
        except TypeError:
            row, task = next((row, task) for row, task in enumerate(ids) if not _is_hashable(task))
            raise ValueError(f"row {row}: task ids must be hashable, got {type(task).__name__}") from None
        new = [task for task in distinct if task not in self.column]
        if check and any(task is None or task != task for task in new):
            for row, task in enumerate(ids):
                _refuse_missing(task, row)
        columns = dict(zip(distinct, map(self.column.get, distinct), strict=True))
        columns |= {task: len(self.column) + i for i, task in enumerate(new)}
        return np.fromiter(map(columns.__getitem__, ids), np.int64, len(ids)), new

    def look_up(self, task: Any, n_rows: int) -> IntArray:
        """Columns for prediction: -1 where the model has not seen the task."""
        columns, new = self.encode(task, n_rows)
        if new:
            columns[columns >= len(self)] = -1
        return columns
