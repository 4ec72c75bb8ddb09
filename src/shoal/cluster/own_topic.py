"""A topic of Kafka for each shard, which the shard reads itself: its log has its rows and how far it has read.

Whoever writes the topics shares the tasks out, as the service does: by `shoal.cluster.shards_of`. So nothing stands
between a broker and a shard, and labels of a topic of their own find their rows in the same shard.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

from shoal.cluster.futures import joined
from shoal.cluster.row_routing import shards_of_rows, tasks_frame
from shoal.serve.contract import Fault, Followed, Messages
from shoal.serve.engine import Engine
from shoal.serve.kafka.address import SHARD
from shoal.serve.kafka.follower import Follower
from shoal.serve.kafka.messages import Columns
from shoal.serve.kafka.topic import Topics

logger = logging.getLogger("shoal")
PAUSE = 1.0  # seconds before following is tried again


class Source(NamedTuple):
    """Topics, with `{shard}` in their names."""

    brokers: str
    topic: str
    labels_topic: str | None = None
    id: str | None = None  # the column that labels name rows by
    settings: Mapping[str, str] = {}

    def topics(self, shard: int, offsets: Mapping[str, int]) -> Topics:
        """What a shard reads. Raises ValueError if it is not there."""
        names = [name.replace(SHARD, str(shard)) for name in (self.topic, self.labels_topic) if name is not None]
        return Topics(self.brokers, names, offsets, self.settings)

    def columns(self, shard: int, model: Mapping[str, Any]) -> Columns:
        """What its messages are read by."""
        labels = None if self.labels_topic is None else self.labels_topic.replace(SHARD, str(shard))
        return Columns(model["label"], self.id, self.id not in model["columns"], labels)


class OwnTopic:
    """The thread that follows a shard's topic; where that fails, it begins again from the shard's log.

    Parameters
    ----------
    engine : Engine
        Of the shard.
    source : Source
    shard, n_shards : int
    """

    def __init__(self, engine: Engine, source: Source, shard: int, n_shards: int) -> None:
        self._engine, self._source, self._shard, self._n_shards = engine, source, shard, n_shards
        self._ends = threading.Event()
        self._follower: Follower | None = None
        self._thread = threading.Thread(target=self._run, name="shoal-own-topic", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End after the commit that is on its way."""
        self._ends.set()
        if self._follower is not None:
            self._follower.stop()
        self._thread.join()

    def gauges(self) -> dict[str, float]:
        """Numbers for dashboards."""
        return {} if self._follower is None else self._follower.gauges()

    def _run(self) -> None:
        model = self._engine.describe()
        own = OwnRows(self._engine, model["task"], self._shard, self._n_shards)
        while not self._ends.is_set():
            try:
                topics = self._source.topics(self._shard, self._engine.offsets())
            except ValueError as error:  # a broker is away
                logger.warning("%s", error)
            else:
                self._follower = Follower(own, topics, self._source.columns(self._shard, model))
                if self._ends.is_set():
                    self._follower.stop()
                self._follower.run()
            self._ends.wait(PAUSE)


class OwnRows:
    """An engine that learns rows of its shard's tasks alone: requests for others go elsewhere."""

    def __init__(self, engine: Engine, task: list[str], shard: int, n_shards: int) -> None:
        self._engine, self._task, self._shard, self._n_shards = engine, task, shard, n_shards

    def follow(self, messages: Messages) -> Future[Followed]:
        """As an engine does; rows of other shards are refused."""
        labeled, elsewhere = self._split(messages.labeled)
        kept, others = self._split([row for _, row in messages.unlabeled])
        faults = [
            Fault(None, self._task[0], f"a task of shard {home} came to shard {self._shard}")
            for home in (*elsewhere.values(), *others.values())
        ]
        own = messages._replace(
            labeled=[messages.labeled[i] for i in labeled], unlabeled=[messages.unlabeled[i] for i in kept]
        )
        return joined([self._engine.follow(own)], lambda found: found[0]._replace(refused=(*found[0].refused, *faults)))

    def _split(self, rows: Any) -> tuple[list[int], dict[int, int]]:
        """The shard's own rows, and of the others where they belong; who has no task, the engine says."""
        homes, problems = shards_of_rows(tasks_frame(rows, self._task), self._task, self._n_shards)
        homes[[row for row, _ in problems]] = self._shard
        places = dict(enumerate(homes.tolist()))
        return (
            [row for row, home in places.items() if home == self._shard],
            {row: home for row, home in places.items() if home != self._shard},
        )
