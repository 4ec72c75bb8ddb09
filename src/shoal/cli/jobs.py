"""`--cluster` of commands that have independent jobs to do."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext


def on_cluster(address: str | None) -> AbstractContextManager[None]:
    """Where jobs are done meanwhile: at the address of a cluster, on one of this machine ("local"), or here (None)."""
    if address is None:
        return nullcontext()
    try:
        from shoal.cluster import jobs_on
    except ModuleNotFoundError as error:
        raise ValueError(str(error)) from None
    jobs: AbstractContextManager[None] = jobs_on(address)
    return jobs
