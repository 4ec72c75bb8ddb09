"""A shard of a service: an engine in a process of Ray's, which comes back from its snapshot and log when it dies."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cluster.routing import shards_of
from shoal.serve.contract import Rows
from shoal.serve.engine import Engine, EngineSettings

if TYPE_CHECKING:
    from shoal.cluster.own_topic import OwnTopic, Source

AT_ONCE = 64  # requests of a shard


class ShardEngine:
    """The actor: an engine's verbs, with answers that travel.

    Every shard begins with the whole model; the tasks of the others stay in it as they were, and do not count.
    """

    def __init__(
        self, model: Path, folder: Path, settings: EngineSettings, shard: int, n_shards: int,
        offsets: Mapping[str, int], source: Source | None,
    ) -> None:  # fmt: skip
        self._engine = Engine(model, folder, settings, offsets=offsets)
        tasks = list(self._engine.tasks())
        self._others = int((shards_of(tasks, n_shards) != shard).sum())  # new ones are always its own
        self._topic: OwnTopic | None = None
        if source is not None:
            from shoal.cluster.own_topic import OwnTopic

            self._topic = OwnTopic(self._engine, source, shard, n_shards)
            self._engine.more_gauges = self._topic.gauges

    def ask(self, verb: str, *arguments: Any, **options: Any) -> Any:
        """The answer, when it is there."""
        if verb in ("describe", "gauges"):
            return self._own(getattr(self._engine, verb)())
        if verb == "overview":
            seen = self._engine.overview()
            return {**seen, "gauges": self._own(seen["gauges"])}
        found = getattr(self._engine, verb)(*arguments, **options)
        if isinstance(found, Future):
            return found.result()
        return dict(found) if isinstance(found, Mapping) else found

    def _own(self, found: Mapping[str, Any]) -> dict[str, Any]:
        return {**found, "tasks": found["tasks"] - self._others}

    def predict_each(self, rows: Sequence[Mapping[str, Any]], wait: bool) -> list[Any]:
        """The answer to each row, or what is wrong with it."""
        found: list[Any] = [None] * len(rows)
        for places, answers in self._engine.predict_each(rows, wait=wait):
            for place, one in zip(places, answers.result(), strict=True):
                found[place] = one
        return found

    def check(self, rows: Rows) -> None:
        """Raise Refused if rows cannot be learned."""
        self._engine.check(rows)

    def exported(self) -> bytes:
        """The model file."""
        path = self._engine.export()
        try:
            return path.read_bytes()
        finally:
            path.unlink()

    def is_ready(self) -> bool:
        """Can it learn?"""
        return self._engine.is_ready

    def close(self) -> None:
        """Learn all that was accepted, and take a last snapshot."""
        if self._topic is not None:
            self._topic.stop()
        self._engine.close()

    def process(self) -> int:
        """Its number."""
        return os.getpid()


def start_engines(
    model: Path, folder: Path, settings: EngineSettings, n: int, options: Mapping[str, Any] | None = None,
    offsets: Mapping[str, int] | None = None, source: Source | None = None,
) -> list[Any]:  # fmt: skip
    """So many shards, each with a folder of its own; the first of them reads the model file. With a source, each has a
    topic that it follows."""
    import ray

    from shoal.cluster.actors import start_ray

    start_ray()
    chosen = {"num_cpus": 0, **(options or {}), "max_restarts": -1, "max_task_retries": 0, "max_concurrency": AT_ONCE}
    actor = ray.remote(ShardEngine).options(**chosen)
    return [actor.remote(model, folder / f"shard-{i}", settings, i, n, offsets or {}, source) for i in range(n)]
