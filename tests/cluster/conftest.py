"""One Ray for all tests of clusters: two cores, no dashboard, no reports of use, and hardly any memory."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from typing import Any

import pytest

QUICK = {  # by default a machine is gone after 30 seconds of silence, a process has not come up after 60
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 2000,
    "health_check_failure_threshold": 4,
    "worker_register_timeout_seconds": 15,
    "worker_niceness": 0,  # by default workers wait for everything else that runs here
}


@pytest.fixture(scope="session")
def nodes() -> Iterator[Any]:
    """A Ray whose machines are processes, to which a test may add others."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 2 * 10**8, "_system_config": QUICK}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="session")
def pool(nodes: Any) -> Iterator[Any]:
    """The actors that tests leave to each other."""
    from tests.cluster.shards import Pool

    pool = Pool()
    yield pool
    pool.clear()


@pytest.fixture
def shared_actors(pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters of this test start no process where another has left one."""
    from shoal.cluster import actors
    from shoal.cluster.shard_handle import ShardHandle

    monkeypatch.setattr(actors, "start_actor", pool.start_actor)
    monkeypatch.setattr(ShardHandle, "close", lambda handle: pool.close(handle))
