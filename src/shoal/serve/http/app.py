"""The application: Litestar with the handlers of `routes`, inside the layers of `middleware`."""

from collections.abc import Collection
from typing import Any

from litestar import Litestar, Response, route
from litestar.types import ControllerRouterHandler

from shoal.serve.contract import Service
from shoal.serve.http.access import Token
from shoal.serve.http.metrics import Metrics
from shoal.serve.http.middleware import App, layered, with_names
from shoal.serve.http.openapi import Route
from shoal.serve.http.problems import PROBLEM, reply_of
from shoal.serve.http.request_bodies import BodyLimits
from shoal.serve.http.routes import ROUTES, Api, Asked


def application(
    service: Service, tokens: list[Token], limits: BodyLimits | None = None, origins: Collection[str] = ()
) -> App:
    """A service as an ASGI application.

    Parameters
    ----------
    tokens : list of Token
        Without any, every request to a local name is allowed: only for an address that nobody else reaches.
    origins : collection of str
        Such as "https://shop.example.org": pages of these sites may ask from a browser.
    """
    api = Api(service, tokens, limits or BodyLimits(), Metrics(), origins)
    framework = _litestar(api)
    served = layered(framework, api)

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await served(with_names(scope), receive, send)
        elif scope["type"] == "lifespan":
            await framework(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    return serve


def _litestar(api: Api) -> Litestar:
    return Litestar(
        [_handler(api, one) for one in ROUTES],
        exception_handlers={Exception: _problem_response},
        openapi_config=None,
        request_max_body_size=None,  # `request_bodies` counts the bytes while it reads
        cors_config=None,
        debug=False,
        logging_config=None,
    )


def _handler(api: Api, one: Route) -> ControllerRouterHandler:
    """A route as Litestar takes it."""

    async def handle(request: Asked) -> Response[Any]:
        found: Response[Any] = await one.handler(api, request)
        return found

    return route(one.path.replace("}", ":str}"), http_method=one.method, status_code=200)(handle)  # type: ignore[arg-type]


def _problem_response(_: Asked, error: Exception) -> Response[bytes]:
    reply = reply_of(error)
    headers = {name.decode(): value.decode() for name, value in reply.headers if name != b"content-type"}
    return Response(reply.body, status_code=reply.status, headers=headers, media_type=PROBLEM)
