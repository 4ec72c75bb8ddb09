"""A service with HTTP in front of it."""

from __future__ import annotations

from typing import Any

from shoal.serve.contract import Service
from shoal.serve.http.access import Token
from shoal.serve.http.app import create_app
from shoal.serve.http.bodies import Caps
from shoal.serve.http.door import Door
from shoal.serve.http.metrics import Metrics
from shoal.serve.page.routes import page_routes


def application(service: Service, tokens: list[Token], caps: Caps | None = None) -> Any:
    """An ASGI application."""
    caps, metrics = caps or Caps(), Metrics()
    return Door(create_app(service, caps, metrics, page_routes(service)), service, tokens, caps, metrics)
