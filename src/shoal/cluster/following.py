"""Messages of a topic, each to the shard of its task, exactly once, though every shard has a log of its own.

A shard's log holds, next to its rows, how far that shard has read each partition. All shards are told of every message,
and a shard leaves out those that it has passed. So messages that only some shards have taken, because another one was
away, are given to all again, and nobody learns one twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from shoal.cluster.futures import result, when_done
from shoal.cluster.row_routing import shards_of_rows, tasks_frame
from shoal.serve.contract import Fault, Followed, Messages, Refused

Ask = Callable[..., Future[Any]]  # (shard, verb, arguments)


class Following:
    """How far each shard has read.

    Parameters
    ----------
    ask : function of (shard, verb, *arguments)
        A future of the answer.
    shards : int
    task : sequence of str
        The columns of the task ids.
    """

    def __init__(self, ask: Ask, shards: int, task: Sequence[str]) -> None:
        self._ask, self._n, self._task = ask, shards, task
        self._offsets: list[dict[str, int] | None] = [None] * shards  # None: the shard has to say it

    def offsets(self) -> dict[str, int]:
        """Where to read on, so that no shard misses a message. Raises Unavailable."""
        every = [self._of(shard) for shard in range(self._n)]
        return {name: min(each[name] for each in every) for name in every[0] if all(name in each for each in every)}

    def follow(self, messages: Messages) -> Future[Followed]:
        """Done when each row is in the log of its shard, and the offsets in those of all.

        Raises
        ------
        Refused
            If rows and labels come apart: a shard would have to know where the row of a label is.
        Unavailable
            If a shard is away.
        """
        if messages.unlabeled or messages.labels:
            raise Refused(Fault(None, None, "labels from a topic of their own need one engine"))
        parts: list[tuple[int, dict[str, int], Messages]] = []
        homes, problems = shards_of_rows(tasks_frame(messages.labeled, self._task), self._task, self._n)
        homes[[row for row, _ in problems]] = 0  # who will say what is wrong with them
        for shard in range(self._n):
            own = self._of(shard)
            rows = [
                row
                for row, home, (source, offset) in zip(messages.labeled, homes.tolist(), messages.sources, strict=True)
                if home == shard and offset >= own.get(source, 0)
            ]
            further = {name: offset for name, offset in messages.offsets.items() if offset > own.get(name, 0)}
            if further:
                parts.append((shard, own, Messages(rows, [], [], further)))
        asked = [self._ask(shard, "follow", part) for shard, _, part in parts]

        def join(done: list[Future[Any]]) -> Followed:
            for (shard, own, part), one in zip(parts, done, strict=True):
                self._offsets[shard] = None if one.exception() else {**own, **part.offsets}
            found = [result(one) for one in done]
            position = max((one.position for one in found if one.position is not None), default=None)
            refused = tuple(fault for one in found for fault in one.refused)
            return Followed(position, sum(one.rows for one in found), sum(one.double for one in found), refused)

        return when_done(asked, join)

    def _of(self, shard: int) -> dict[str, int]:
        known = self._offsets[shard]
        if known is None:
            known = self._offsets[shard] = dict(result(self._ask(shard, "offsets")))
        return known
