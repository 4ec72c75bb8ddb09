"""Actors of Ray's for shards."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping
from typing import Any

import ray

from shoal.cluster.link import Link
from shoal.cluster.shard import Progress, Shard
from shoal.learner import Learner

LOCAL = "local"  # in place of an address: on this machine
PATIENCE = 10.0  # seconds


class ShardActor(Shard):
    """A shard that knows its machine."""

    def tell_progress(self) -> Progress:
        """With the machine where it lies."""
        return super().tell_progress()._replace(machine=ray.get_runtime_context().get_node_id())


def start_ray(address: str | None = None) -> None:
    """The Ray at an address, or one on this machine, unless this process is connected to one. It tells nobody that it
    is used. Raises ValueError if there is none at the address."""
    _check_that_it_answers(address)
    if ray.is_initialized():
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    options = {"include_dashboard": False} if address in (None, LOCAL) else {"address": address}
    try:
        ray.init(**options, log_to_driver=False, logging_level=logging.ERROR)
    except ConnectionError as error:
        raise ValueError(f"no Ray answers at {address}: {error}") from None


def _check_that_it_answers(address: str | None) -> None:
    """Ray itself would try for minutes. Raises ValueError."""
    host, colon, port = (address or "").rpartition(":")
    if not colon or not port.isdecimal() or "://" in host:
        return
    try:
        socket.create_connection((host, int(port)), PATIENCE).close()
    except OSError as error:
        raise ValueError(f"no Ray answers at {address}: {error}") from None


def start_shards(learner: Learner, n: int, options: Mapping[str, Any]) -> list[Link]:
    """So many shards where nothing has begun."""
    start_ray()
    chosen = {"num_cpus": _share_of(n), "scheduling_strategy": "SPREAD", **options}
    chosen |= {"max_restarts": -1, "max_task_retries": 0}
    n_threads = max(1, int(chosen["num_cpus"]))
    return [Link(start_actor(chosen, n_threads), learner) for _ in range(n)]


def start_actor(options: Mapping[str, Any], n_threads: int) -> Any:
    """The process of a shard."""
    return ray.remote(ShardActor).options(**options).remote(n_threads)


def _share_of(n: int) -> float:
    """A core for each, or so much of the free ones that none has to wait, though a machine may have less than that
    left over."""
    n_free = ray.available_resources().get("CPU", 0.0)
    if n <= n_free and float(n_free).is_integer():
        return 1.0
    n_machines = len([node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")])
    return min(1.0, int(n_free / (n + max(n_machines, 1) - 1) * 1000) / 1000)
