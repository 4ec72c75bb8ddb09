"""The table of routes: the scope of each request, and which paths are routes."""

from __future__ import annotations

import pytest

from shoal.serve.http.access import ADMIN, OPEN, READ, WRITE
from shoal.serve.http.routes import ROUTES, label_of, routes_of, scope_of


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", "/health", OPEN), ("GET", "/ready", OPEN), ("GET", "/", OPEN), ("GET", "/page/page.js", OPEN),
        ("POST", "/health", OPEN), ("PUT", "/", OPEN),  # a wrong method is told to whom the route is open
        ("GET", "/v1/model", READ), ("POST", "/v1/predict", READ), ("POST", "/v1/query", READ),
        ("GET", "/metrics", READ), ("GET", "/v1/events", READ), ("GET", "/v1/tasks", READ),
        ("GET", "/v1/tasks/a/b\nc", READ),
        ("GET", "/v1/openapi.json", READ), ("GET", "/v1/openapi_json", READ), ("POST", "/v1/model", READ),
        ("POST", "/v1/learn", WRITE), ("POST", "/v1/labels", WRITE), ("GET", "/v1/learn", READ),
        ("DELETE", "/v1/tasks/a", ADMIN), ("GET", "/v1/export", ADMIN), ("PUT", "/v1/tasks/a", READ),
        ("POST", "/v1/export", READ), ("GET", "/nothing", READ), ("GET", "/page/", READ), ("GET", "/healthy", READ),
    ],
)  # fmt: skip
def test_the_scope_of_a_request(method: str, path: str, scope: int) -> None:
    assert scope_of(method, path) == scope


def test_a_route_is_its_path_letter_by_letter() -> None:
    assert {method: route.scope for method, route in routes_of("/v1/tasks/a").items()} == {"GET": READ, "DELETE": ADMIN}
    for path in ("/v1/learn/", "/v1/learn\n", "//v1/learn", "/v1/openapi_json", "/v1/tasks/", "/V1/learn", ""):
        assert routes_of(path) == {}, path
    assert len({(method, path) for method, path, *_ in ROUTES}) == len(ROUTES)


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("/v1/predict", "/v1/predict"), ("/v1/tasks", "/v1/tasks"), ("/v1/tasks/a/b", "/v1/tasks"), ("/", "/"),
        ("/page/app.js", "/page"), ("/v1/openapi.json", "/v1/openapi.json"), ("/health", "/health"),
        ("/v1/predict/", "other"), ("/healthy", "other"), ("", "other"),
    ],
)  # fmt: skip
def test_the_label_of_a_path(path: str, label: str) -> None:
    assert label_of(path) == label
