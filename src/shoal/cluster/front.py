"""Ray Serve in front of shards: the routes of the service, by Ray's own proxies and processes.

It is there for clusters: Ray starts it again where it can. It answers fewer requests than the program's own server
(docs/cluster.md has numbers), which is therefore in front where all shards are on this machine.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shoal.cluster.service import ShardedService
from shoal.serve.http.access import Token
from shoal.serve.running import application

NAME = "shoal"
AT_ONCE = 2_000  # requests of a replica


@contextmanager
def front(service: ShardedService, tokens: list[Token], host: str, port: int) -> Iterator[None]:
    """The routes at an address of the cluster's first machine, until the end.

    Raises
    ------
    ValueError
        If Ray Serve runs on this cluster already: it has one address for all that it serves.
    """
    from ray import serve
    from ray.serve.config import HTTPOptions

    if serve.status().proxies:
        raise ValueError("Ray Serve runs on this cluster already, at an address of its own: `serve shutdown` ends it")

    def routes() -> Any:
        return application(service, tokens)

    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    serve.start(http_options=HTTPOptions(host=host, port=port))
    try:
        replica: Any = serve.deployment(serve.ingress(routes)(_Front), name=NAME, max_ongoing_requests=AT_ONCE)
        serve.run(replica.bind(), name=NAME)
        yield
    finally:
        serve.shutdown()


class _Front:
    """What Ray Serve makes replicas of; `routes` are all that it has."""
