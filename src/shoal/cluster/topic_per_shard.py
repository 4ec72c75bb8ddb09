"""One Kafka topic per shard: each shard reads its own topic, and its log holds the rows and the offsets.

The producer distributes the tasks over the topics by `shoal.cluster.shards_of`, as the service does. So no router
stands between a broker and a shard, and labels from a topic of their own find their rows in the same shard.
"""

import logging
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

from shoal.cluster.batched_calls import joined
from shoal.cluster.placement import shards_of_rows, tasks_frame
from shoal.serve.contract import Fault, Followed, Messages
from shoal.serve.engine import Engine
from shoal.serve.kafka.address import SHARD
from shoal.serve.kafka.follower import Follower
from shoal.serve.kafka.messages import Columns
from shoal.serve.kafka.topic import Topics
from shoal.serve.topic_join import place

logger = logging.getLogger("shoal")
PAUSE = 1.0  # seconds before the next attempt to follow


class TopicPerShard(NamedTuple):
    """Topics with `{shard}` in their names."""

    brokers: str
    topic: str
    labels_topic: str | None = None
    id: str | None = None  # the column that labels name rows by
    settings: Mapping[str, str] = {}

    def topics(self, shard: int, offsets: Mapping[str, int]) -> Topics:
        """The topics of one shard. Raises ValueError if they do not exist."""
        names = [name.replace(SHARD, str(shard)) for name in (self.topic, self.labels_topic) if name is not None]
        return Topics(self.brokers, names, offsets, self.settings)

    def columns(self, shard: int, model: Mapping[str, Any]) -> Columns:
        """How one shard reads its messages."""
        labels = None if self.labels_topic is None else self.labels_topic.replace(SHARD, str(shard))
        return Columns(model["label"], self.id, self.id not in model["columns"], labels)


class TopicFollower:
    """The thread that follows a shard's topic; after a failure it starts again from the offsets in the shard's log.

    Parameters
    ----------
    engine : Engine
        The shard's.
    source : TopicPerShard
    shard, n_shards : int
    """

    def __init__(self, engine: Engine, source: TopicPerShard, shard: int, n_shards: int) -> None:
        self._engine, self._source, self._shard, self._n_shards = engine, source, shard, n_shards
        self._ends = threading.Event()
        self._follower: Follower | None = None
        self._thread = threading.Thread(target=self._run, name="shoal-own-topic", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current commit."""
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
    """An engine that learns rows of its shard's tasks alone: requests for other tasks go to other shards."""

    def __init__(self, engine: Engine, task: list[str], shard: int, n_shards: int) -> None:
        self._engine, self._task, self._shard, self._n_shards = engine, task, shard, n_shards

    def follow(self, messages: Messages) -> Future[Followed]:
        """Follow as an engine does; rows of other shards are refused."""
        labeled, labeled_elsewhere = self._split(messages.labeled)
        unlabeled, unlabeled_elsewhere = self._split([row for _, row in messages.unlabeled])
        places = [
            *((place(messages.sources[i]), home) for i, home in labeled_elsewhere.items()),
            *((place(messages.unlabeled[i][0]), home) for i, home in unlabeled_elsewhere.items()),
        ]
        faults = [
            Fault(None, self._task[0], f"{where}: a task of shard {home} came to shard {self._shard}")
            for where, home in places
        ]
        own = messages._replace(
            labeled=[messages.labeled[i] for i in labeled],
            unlabeled=[messages.unlabeled[i] for i in unlabeled],
            sources=[messages.sources[i] for i in labeled],
        )
        return joined([self._engine.follow(own)], lambda found: found[0]._replace(refused=(*found[0].refused, *faults)))

    def _split(self, rows: Any) -> tuple[list[int], dict[int, int]]:
        """The shard's own rows, and the shards of the others; rows without a task are own: the engine refuses them."""
        homes, problems = shards_of_rows(tasks_frame(rows, self._task), self._task, self._n_shards)
        homes[[row for row, _ in problems]] = self._shard
        places = dict(enumerate(homes.tolist()))
        return (
            [row for row, home in places.items() if home == self._shard],
            {row: home for row, home in places.items() if home != self._shard},
        )
