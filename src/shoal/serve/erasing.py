"""A task's rows out of what is stored of requests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shoal.serve.bodies import pack, unpack
from shoal.serve.contract import Rows
from shoal.serve.served import Served


def without_task(task: str, served: Served) -> Callable[[bytes], bytes | None]:
    """A function from stored rows to the same with nothing in the rows of a task; None if it has none there.

    The rows stay, all their columns missing: ids of predictions count them.
    """

    def edited(body: bytes) -> bytes | None:
        rows = unpack(body)
        if any(name not in rows.frame.columns for name in served.roles.tasks):
            return None
        ids = served.task_ids(rows.frame)
        mine = np.array([one == task for one in ids], np.bool_)
        if not mine.any():
            return None
        kept = np.flatnonzero(~mine)
        positions = [None] * len(mine)
        for place, row in enumerate(kept.tolist()):
            positions[row] = place  # type: ignore[call-overload]
        emptied = rows.frame[kept.tolist()]
        blank = emptied.clear(n=1)
        frame = blank.vstack(emptied)[[0 if place is None else place + 1 for place in positions]]
        return pack(Rows(frame, rows.strings))

    return edited
