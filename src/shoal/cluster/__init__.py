"""A learner, or the service, on several processes and machines (`shoal[cluster]`: Ray).

Read `placement` first (which shard a task lives on), then `cluster`, `shard` and `shard_handle` for the learner, or
`service` and `batched_calls` for the service. Twins: a cluster of one shard equals the plain learner, bit for bit, and
`tests/cluster/test_merge_state.py` merges copies entry by entry.
"""

from importlib import import_module
from typing import Any

WHERE = {"Cluster": "cluster", "jobs_on": "jobs", "shards_of": "placement"}
__all__ = ["Cluster", "jobs_on", "shards_of"]


def __getattr__(name: str) -> Any:
    if name not in WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{WHERE[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise ModuleNotFoundError('a cluster needs Ray: pip install "shoal[cluster]"', name="ray") from None
