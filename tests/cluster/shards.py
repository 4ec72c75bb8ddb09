"""Actors that one test leaves are the next one's: to start a process takes longer than most tests."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import ray
from benchmarks.guard.processor import compile_for_haswell

compile_for_haswell()  # here too, before an actor imports numba: what it compiles is kept for all tests

from shoal.cluster.actors import ShardActor  # noqa: E402
from shoal.cluster.shard_handle import ShardHandle  # noqa: E402


class DelayedShard(ShardActor):
    """A shard that may take its time before each command."""

    def __init__(self, n_threads: int = 1) -> None:
        super().__init__(n_threads)
        self._seconds: Sequence[float] = (0.0,)

    def delay(self, seconds: Sequence[float]) -> None:
        """From now on, in turn."""
        self._seconds = seconds

    def run(self, number: int, command: str, arguments: tuple[Any, ...]) -> Any:
        """As any shard does, later."""
        time.sleep(self._seconds[number % len(self._seconds)])
        return super().run(number, command, arguments)


class Pool:
    """What takes the place of `start_actor` and `ShardHandle.close`."""

    def __init__(self) -> None:
        self._left: list[Any] = []
        self._bound: list[Any] = []  # to a machine, which goes with its test

    def start_actor(self, options: Mapping[str, Any], n_threads: int) -> Any:
        """One that another test left, unless it has to be somewhere."""
        is_bound = "resources" in options
        if self._left and not is_bound:
            return self._left.pop()
        actor = ray.remote(DelayedShard).options(**options).remote(n_threads)
        if is_bound:
            self._bound.append(actor)
        return actor

    def close(self, handle: ShardHandle) -> None:
        """Leave the actor to the next test."""
        if handle.actor in self._bound:
            ray.kill(handle.actor)
            return
        handle.actor.delay.remote((0.0,))
        self._left.append(handle.actor)

    def clear(self) -> None:
        """Stop all that are left."""
        while self._left:
            ray.kill(self._left.pop())
