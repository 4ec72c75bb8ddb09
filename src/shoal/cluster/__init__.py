"""A learner on many machines: its tasks on shards, which exchange what all tasks share (`shoal[cluster]`: Ray)."""

from __future__ import annotations

from typing import Any

__all__ = ["Cluster"]


def __getattr__(name: str) -> Any:
    if name != "Cluster":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from shoal.cluster.cluster import Cluster
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise ModuleNotFoundError('a cluster needs Ray: pip install "shoal[cluster]"', name="ray") from None
    return Cluster
