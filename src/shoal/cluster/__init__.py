"""A learner on many machines: its tasks on shards, which exchange what all tasks share (`shoal[cluster]`: Ray)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

WHERE = {"Cluster": "cluster", "jobs_on": "jobs", "shards_of": "routing"}
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
