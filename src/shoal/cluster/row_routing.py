"""Which shard of a service a row belongs to, by its columns of the task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from shoal.cluster.routing import shards_of
from shoal.engine.arrays import IntArray
from shoal.files.ids import id_of
from shoal.files.tables.batches import Problem
from shoal.files.tables.label_columns import Tasks


def tasks_frame(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> pl.DataFrame:
    """The task's columns of rows of JSON values."""
    columns = {name: [id_of(row.get(name)) for row in rows] for name in names}
    return pl.DataFrame(columns, schema=dict.fromkeys(names, pl.String))


def shards_of_rows(frame: pl.DataFrame, names: Sequence[str], n_shards: int) -> tuple[IntArray, list[Problem]]:
    """The shard of each row, and the problems of the rows without a task."""
    tasks, problems = Tasks(names).read(frame)
    return shards_of(tasks.tolist(), n_shards), problems
