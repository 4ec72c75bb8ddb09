"""Shards as Ray actors, and the connection to Ray."""

import logging
import os
import socket
from collections.abc import Mapping
from typing import Any

import ray

from shoal.cluster.shard import Progress, Shard
from shoal.cluster.shard_handle import ShardHandle
from shoal.learner import Learner

LOCAL = "local"  # in place of an address: on this machine
PATIENCE = 10.0  # seconds to connect


class ShardActor(Shard):
    """A shard that knows its machine."""

    def tell_progress(self) -> Progress:
        """The progress, with the machine that holds it."""
        return super().tell_progress()._replace(machine=ray.get_runtime_context().get_node_id())


def start_ray(address: str | None = None) -> None:
    """Connect to the Ray at an address, or start one on this machine, unless this process is connected already.

    Ray's reports of use are switched off.

    Raises
    ------
    ValueError
        If no Ray answers at the address.
    """
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
    """Raise ValueError if nothing listens at the address: Ray itself would try for minutes."""
    host, colon, port = (address or "").rpartition(":")
    if not colon or not port.isdecimal() or "://" in host:
        return
    try:
        socket.create_connection((host, int(port)), PATIENCE).close()
    except OSError as error:
        raise ValueError(f"no Ray answers at {address}: {error}") from None


def start_shards(learner: Learner, n: int, options: Mapping[str, Any]) -> list[ShardHandle]:
    """Start n empty shards."""
    start_ray()
    chosen = {"num_cpus": _share_of(n), "scheduling_strategy": "SPREAD", **options}
    chosen |= {"max_restarts": -1, "max_task_retries": 0}
    n_threads = max(1, int(chosen["num_cpus"]))
    return [ShardHandle(start_actor(chosen, n_threads), learner) for _ in range(n)]


def start_actor(options: Mapping[str, Any], n_threads: int) -> Any:
    """Start the process of a shard."""
    return ray.remote(ShardActor).options(**options).remote(n_threads)


def _share_of(n: int) -> float:
    """Cores for each of n shards: one, or less if fewer are free, so that Ray can place all of them at once.

    A machine may have a remainder that is too small for a shard; one share a machine is held back for that.
    """
    n_free = ray.available_resources().get("CPU", 0.0)
    if n <= n_free and float(n_free).is_integer():
        return 1.0
    n_machines = len([node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")])
    return min(1.0, int(n_free / (n + max(n_machines, 1) - 1) * 1000) / 1000)
