"""A task's rows out of what is stored of requests."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from shoal.serve.bodies import pack, unpack
from shoal.serve.contract import Rows
from shoal.serve.served import Served


def without_task(task: str, served: Served) -> Callable[[bytes], bytes | None]:
    """A function from stored rows to the same with nothing in the rows of a task; None if it has none there.

    The rows stay, all their columns missing: ids of predictions count them.
    """

    def edited(body: bytes) -> bytes | None:
        rows = unpack(body)
        others = pl.Series([one != task for one in served.task_ids(rows.frame)])
        return None if others.all() else pack(Rows(rows.frame.select(pl.when(others).then(pl.all())), rows.strings))

    return edited
