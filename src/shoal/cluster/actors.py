"""Actors of Ray's for shards."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from shoal.cluster.link import Link
from shoal.cluster.shard import Shard
from shoal.learner import Learner


def start_ray() -> None:
    """A Ray on this machine, unless this process is connected to one. It tells nobody that it is used."""
    import ray

    if not ray.is_initialized():
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(include_dashboard=False, log_to_driver=False)


def start_shards(learner: Learner, n: int, options: Mapping[str, Any]) -> list[Link]:
    """So many shards that know nothing. Each takes a core, or its share of those that are free: none has to wait."""
    import ray

    start_ray()
    n_free = ray.available_resources().get("CPU", 0.0)
    share = min(1.0, int(n_free / n * 1000) / 1000)
    chosen = {"num_cpus": share, "scheduling_strategy": "SPREAD", **options, "max_restarts": -1, "max_task_retries": 0}
    n_threads = max(1, int(chosen["num_cpus"]))
    kind = ray.remote(Shard).options(**chosen)
    return [Link(kind.remote(learner, n_threads)) for _ in range(n)]
