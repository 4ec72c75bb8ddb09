"""A service with HTTP in front of it."""

from __future__ import annotations

from typing import Any

from shoal.serve.contract import Service
from shoal.serve.engine import Engine
from shoal.serve.http.access import Token
from shoal.serve.http.app import create_app
from shoal.serve.http.bodies import Caps
from shoal.serve.http.door import Door
from shoal.serve.http.metrics import Metrics
from shoal.serve.page.routes import page_routes


def application(service: Service, tokens: list[Token], caps: Caps | None = None) -> Any:
    """An ASGI application; the page is there if the service is one engine."""
    caps, metrics = caps or Caps(), Metrics()
    page = page_routes(service) if isinstance(service, Engine) else ()
    return Door(create_app(service, caps, metrics, page), service, tokens, caps, metrics)
