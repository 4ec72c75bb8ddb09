"""The description of the routes against a real server: what it allows is answered as it says, and nothing else is."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import settings
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from tests.serve.material import records, rows, write_model
from tests.serve.test_http import served

from shoal.serve.engine import Engine, EngineSettings
from shoal.serve.http.access import ADMIN, Token
from shoal.serve.http.arrow import ARROW
from shoal.serve.http.request_bodies import NDJSON
from shoal.serve.http.routes import ROUTES

SECRET = "admin" * 5
ALLOWED = {"Authorization": f"Bearer {SECRET}"}
N_EXAMPLES = 300 if "SOAK" in os.environ else 5
MAILS = records(6, seed=60)


def arrow(found: list[dict[str, Any]]) -> bytes:
    buffer = io.BytesIO()
    rows(found).frame.write_ipc_stream(buffer)
    return buffer.getvalue()


good = st.lists(st.sampled_from(MAILS), min_size=1, max_size=4)
values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
odd = st.lists(st.dictionaries(st.sampled_from(sorted(MAILS[0])) | st.text(), values), min_size=1, max_size=4)
tables = good | odd
lines = tables.map(lambda found: b"\n".join(json.dumps(one).encode() for one in found))
schemathesis.openapi.media_type(NDJSON, lines)
schemathesis.openapi.media_type(ARROW, good.map(arrow) | st.binary(max_size=200))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("openapi")
    with (
        Engine(write_model(folder), folder / "engine", EngineSettings()) as engine,
        served(engine, [Token(SECRET.encode(), ADMIN)]) as found,
    ):
        yield found


@pytest.fixture(scope="module")
def described(url: str) -> Any:
    """The description; half of the rows are such as the model knows."""
    config = schemathesis.Config.from_dict({"generation": {"with-security-parameters": False}})
    found = schemathesis.openapi.from_url(f"{url}/v1/openapi.json", headers=ALLOWED, config=config)

    @found.hook
    def flatmap_body(context: Any, body: Any) -> st.SearchStrategy[Any]:
        has_rows = context.operation.path in ("/v1/learn", "/v1/predict", "/v1/query")
        return st.just(body) | good if has_rows and not isinstance(body, bytes) else st.just(body)

    return found


schema = schemathesis.pytest.from_fixture("described").exclude(path="/v1/events")  # has no end


@schema.parametrize()
@settings(max_examples=N_EXAMPLES)
def test_what_is_described_is_what_is_answered(case: Any) -> None:
    """What a model can read of a row, and what is a model, no schema says whole: what fits it may be refused."""
    excluded = [positive_data_acceptance] if case.method in ("POST", "PUT") else []
    if isinstance(case.body, list) and all(row in MAILS for row in case.body):
        excluded.append(negative_data_rejection)  # rows that the hook put in
    case.call_and_validate(headers=ALLOWED, excluded_checks=excluded)


def test_every_route_but_those_of_the_page_is_described(described: Any) -> None:
    paths = described.raw_schema["paths"]
    named = {(method.upper(), path) for path, operations in paths.items() for method in operations}
    assert {(route.method, route.path) for route in ROUTES} - named == {("GET", "/"), ("GET", "/page/{name}")}
