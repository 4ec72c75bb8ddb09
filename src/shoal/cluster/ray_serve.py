"""HTTP by Ray Serve: the routes of the service in Ray's own proxies and processes.

It serves clusters, because Ray restarts it on any machine. It answers fewer requests than the program's own server
(docs/cluster.md has numbers), which is therefore used if all shards are on this machine.
"""

import logging
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from shoal.cluster.service import ShardedService
from shoal.serve.http.access import Token
from shoal.serve.http.app import application

NAME = "shoal"
AT_ONCE = 2_000  # concurrent requests of a replica


@contextmanager
def by_ray_serve(
    service: ShardedService, tokens: list[Token], host: str, port: int, origins: Collection[str] = ()
) -> Iterator[None]:
    """Serve the routes at an address of the cluster's first machine while the block lasts.

    Raises
    ------
    ValueError
        If Ray Serve runs on this cluster already: a cluster has one Ray Serve, at one address.
    """
    from ray import serve
    from ray.serve.config import HTTPOptions

    if serve.status().proxies:
        raise ValueError("Ray Serve runs on this cluster already, at an address of its own: `serve shutdown` ends it")

    def routes() -> Any:
        return application(service, tokens, origins=origins)

    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    serve.start(http_options=HTTPOptions(host=host, port=port))
    try:
        replica: Any = serve.deployment(serve.ingress(routes)(_Replica), name=NAME, max_ongoing_requests=AT_ONCE)
        serve.run(replica.bind(), name=NAME)
        yield
    finally:
        serve.shutdown()


class _Replica:
    """The class that Ray Serve replicates; `routes` give it all that it does."""
