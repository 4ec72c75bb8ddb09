"""Parts of several bounds: checked comparators and streams, hinge losses, norms."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from shoal.engine.arrays import FloatArray, IntArray
from shoal.model.labels import encode
from shoal.model.table import read_table, validated
from shoal.model.tasks import TaskIndex
from shoal.relations import Given, Relation


def comparator_matrix(comparator: Any) -> FloatArray:
    """A comparator as a checked (n_tasks, n_features) matrix."""
    U: FloatArray = np.array(comparator, dtype=np.float64)
    if U.ndim != 2 or not len(U) or not np.isfinite(U).all():
        raise ValueError(f"the comparator must be a finite (n_tasks, n_features) matrix, got shape {U.shape}")
    return U


def all_equal(U: FloatArray) -> bool:
    """Are all tasks' weights the same?"""
    return bool((U.min(axis=0) == U.max(axis=0)).all())


def variance(U: FloatArray) -> float:
    """VAR[u] = (1/K) sum ||u_i - mean||^2 (Corollary 4)."""
    return float(np.mean(np.sum((U - U.mean(axis=0)) ** 2, axis=1)))


def hinge(y: FloatArray, f: FloatArray) -> FloatArray:
    """[1 - y f]_+"""
    return np.asarray(np.maximum(0.0, 1.0 - y * f))


def squared_norms(rows: Any) -> FloatArray:
    """||x||^2 of every row, dense or sparse."""
    squares = rows.power(2) if hasattr(rows, "tocsr") else rows**2
    return np.asarray(squares.sum(axis=1)).ravel()


def mistakes(
    U: FloatArray, relation: Relation, X: Any, y: Any, task: Any, mistaken: Any, tasks: Sequence[Hashable] | None
) -> tuple[FloatArray, Any, FloatArray, IntArray]:
    """The comparator in the order of the relation's tasks; the mistaken rows, their signs and tasks."""
    if isinstance(relation, Given):
        U, tasks = in_order_of(relation.tasks, U, tasks), relation.tasks
    rows, signs, columns = stream_table(X, y, task, len(U), tasks)
    wrong = mistaken_rows(mistaken, len(signs))
    return U, rows[wrong], signs[wrong], columns[wrong]


def mistaken_rows(mistaken: Any, n_rows: int) -> IntArray:
    """Indices of the mistaken rows."""
    wrong = np.asarray(mistaken)
    if wrong.dtype != bool or wrong.shape != (n_rows,):
        raise ValueError(f"mistaken must hold one bool per row: expected {n_rows}, got shape {wrong.shape}")
    return np.flatnonzero(wrong)


def refuse_other_count(U: FloatArray, n: int, what: str) -> None:
    """Raise unless there is one row per task."""
    if len(U) != n:
        raise ValueError(f"the comparator must have one row per task: expected {n} ({what}), got {len(U)}")


def in_order_of(names: tuple[Hashable, ...], U: FloatArray, tasks: Sequence[Hashable] | None) -> FloatArray:
    """The comparator's rows in the order of the relation's tasks."""
    if tasks is None:
        return U
    if set(tasks) != set(names) or not len(tasks) == len(names) == len(U):
        raise ValueError("tasks must be those that the relation names, one for each row of the comparator")
    return np.asarray(U[TaskIndex(tasks).look_up(list(names), len(names))])


def stream_table(
    X: Any, y: Any, task: Any, n_tasks: int, tasks: Sequence[Hashable] | None
) -> tuple[Any, FloatArray, IntArray]:
    """Rows, signs, and for each row its task's row of the comparator."""
    table = validated(read_table(X))
    signs, _ = encode(y, table.n_rows, None)
    index = TaskIndex(tasks or ())
    columns, new = index.encode(task, table.n_rows)
    if new and tasks is not None:
        raise ValueError(f"task {new[0]!r} is not one of the {len(index)} tasks of the comparator")
    if len(index) + len(new) != n_tasks:
        expected = len(index) + len(new)
        raise ValueError(f"the comparator must have one row per task: expected {expected}, got {n_tasks}")
    if table.width > 0:
        return table.values.reshape(table.n_rows, table.width), signs, columns
    shape = (table.n_rows, table.n_features)
    return sp.csr_matrix((table.values, table.indices, table.indptr), shape=shape), signs, columns
