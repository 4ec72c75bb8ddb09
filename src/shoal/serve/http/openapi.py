"""The description of the routes (OpenAPI 3.1): schemas from types, and a table of what each route takes and answers.

The framework cannot make it: streams and the fast route are served in front of it, and its handlers see bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec

from shoal.serve.contract import Service
from shoal.serve.http import shapes
from shoal.serve.http.access import OPEN, SCOPES, scope_of
from shoal.serve.http.bodies import ARROW, JSON, LONGEST_KEY, NDJSON, SORTS
from shoal.serve.http.problems import PROBLEM, TITLES

TEXT, EVENTS, FILE = "text/plain", "text/event-stream", "application/octet-stream"
DESCRIPTION = """A model that answers while it learns.

Rows come as a JSON object or an array of objects, as NDJSON (streamed: each megabyte is done while the next one comes;
an error ends the answer with a line that has it) or as an uncompressed Arrow stream. Answers come in the format of the
request unless `Accept` names another. A method that a route does not have is answered 405, with `Allow`."""

Json = dict[str, Any]
TYPES: tuple[Any, ...] = (
    shapes.Answer, shapes.Receipt, shapes.LabelReceipt, shapes.Worth, shapes.Label, shapes.Model, shapes.Tasks,
    shapes.Task, shapes.Status, shapes.Problem, shapes.StreamProblem,
)  # fmt: skip


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _one_or_many(name: str) -> Json:
    return {"anyOf": [_ref(name), {"type": "array", "items": _ref(name), "minItems": 1}]}


def _lines(name: str) -> Json:
    return {"type": "string", "description": f"JSON, one {name} a line; if it fails, the last is a StreamProblem"}


def _answers(name: str, schema: Json) -> Json:
    """Answers to rows, in the three formats."""
    return {JSON: schema, NDJSON: _lines(name), ARROW: {"description": f"an Arrow stream, one {name} a row"}}


def _rows(name: str) -> Json:
    lines = {"type": "string", "description": f"JSON, one {name} a line", "minLength": 2}
    return {JSON: _one_or_many(name), NDJSON: lines, ARROW: {"description": "an Arrow stream, not compressed"}}


KEY: Json = {
    "name": "Idempotency-Key", "in": "header", "required": False,
    "description": "Makes the request safe to repeat: the second time it is answered as the first, and learns nothing.",
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY},
}  # fmt: skip
TASK: Json = {"name": "task", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
PAGES: tuple[Json, ...] = (
    {"name": "sort", "in": "query", "schema": {"type": "string", "enum": list(SORTS), "default": SORTS[0]},
     "description": "error: the worst first"},
    {"name": "q", "in": "query", "schema": {"type": "string", "default": ""}, "description": "what the name contains"},
    {"name": "page", "in": "query", "schema": {"type": "integer", "minimum": 1, "default": 1}},
)  # fmt: skip


class Operation(NamedTuple):
    """A method of a route."""

    name: str
    summary: str
    answers: Mapping[str, Json]  # schema of each media type
    errors: tuple[int, ...] = ()  # besides those of tokens and hosts
    body: Mapping[str, Json] | None = None
    parameters: tuple[Json, ...] = ()


BODY = (400, 408, 413, 415, 422, 503)  # what may be wrong with what is sent
OPERATIONS: dict[tuple[str, str], Operation] = {
    ("post", "/v1/predict"): Operation(
        "predict", "Predict rows", _answers("Answer", _one_or_many("Answer")), BODY, _rows("Row")
    ),
    ("post", "/v1/labels"): Operation(
        "label", "Learn rows as they were predicted, with their labels", {JSON: _ref("LabelReceipt")},
        (*BODY, 409, 429),
        {JSON: _one_or_many("Label"), NDJSON: {"type": "string", "description": "JSON, one Label a line"}}, (KEY,),
    ),
    ("post", "/v1/learn"): Operation(
        "learn", "Learn labeled rows", {JSON: _ref("Receipt"), NDJSON: _lines("Receipt")}, (*BODY, 409, 429),
        _rows("LabeledRow"), (KEY,),
    ),
    ("post", "/v1/query"): Operation(
        "query", "Which labels are worth asking for?", _answers("Worth", {"type": "array", "items": _ref("Worth")}),
        BODY, _rows("Row"),
    ),
    ("get", "/v1/model"): Operation("model", "The model", {JSON: _ref("Model")}),
    ("get", "/v1/tasks"): Operation("tasks", "The tasks, a page at a time", {JSON: _ref("Tasks")}, (400,), None, PAGES),
    ("get", "/v1/tasks/{task}"): Operation("task", "One task", {JSON: _ref("Task")}, (404,), None, (TASK,)),
    ("delete", "/v1/tasks/{task}"): Operation(
        "forget", "Forget a task", {JSON: _ref("Receipt")}, (404, 503), None, (TASK,)
    ),
    ("get", "/v1/export"): Operation(
        "export", "The model file", {FILE: {"description": "for `shoal.load` and `shoal run --load`"}}, (503,)
    ),
    ("get", "/v1/events"): Operation(
        "events", "What the page shows, every second, for ever", {EVENTS: {"type": "string"}}
    ),
    ("get", "/metrics"): Operation("metrics", "For Prometheus", {TEXT: {"type": "string"}}),
    ("get", "/v1/openapi.json"): Operation("description", "This description", {JSON: {"type": "object"}}),
    ("get", "/health"): Operation("health", "Does the process answer?", {JSON: _ref("Status")}),
    ("get", "/ready"): Operation("ready", "Can it learn?", {JSON: _ref("Status")}),
}  # fmt: skip


def description(service: Service) -> Json:
    """The whole document; which columns a row must have, the model says."""
    found = service.describe()
    tasks, label = list(found["task"]), found["label"]
    rows = {"Row": _row("A row to be answered", tasks), "LabeledRow": _row("A row to be learned", [*tasks, label])}
    paths: dict[str, Json] = {}
    for (method, path), operation in OPERATIONS.items():
        paths.setdefault(path, {})[method] = _described(method, path, operation)
    ready = {"description": "it cannot learn now", "content": {JSON: {"schema": _ref("Status")}}}
    paths["/ready"]["get"]["responses"]["503"] = ready
    return {
        "openapi": "3.1.0",
        "info": {"title": "shoal", "version": "1", "description": DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": {**_schemas(), **rows},
            "responses": {str(status): _problem(status) for status in TITLES},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _row(what: str, required: list[str]) -> Json:
    given = {"type": ["string", "number", "boolean"], "minLength": 1}
    return {
        "type": "object",
        "description": f"{what}: its columns by name. A feature may be absent; further columns are taken.",
        "properties": dict.fromkeys(required, given),
        "required": required,
        "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
    }


@cache
def _schemas() -> Json:
    """The types of `shapes`, and those within them."""
    _, found = msgspec.json.schema_components(TYPES, ref_template="#/components/schemas/{name}")
    return found


def _described(method: str, path: str, operation: Operation) -> Json:
    needed = scope_of(method.upper(), path)
    content = {kind: {"schema": schema} for kind, schema in operation.answers.items()}
    responses: Json = {"200": {"description": "done", "content": content}}
    statuses = {*operation.errors, 421, *(() if needed == OPEN else (401, 403))}
    responses |= {str(status): {"$ref": f"#/components/responses/{status}"} for status in sorted(statuses)}
    found: Json = {"summary": operation.summary, "operationId": operation.name, "responses": responses}
    if operation.parameters:
        found["parameters"] = list(operation.parameters)
    if operation.body is not None:
        bodies = {kind: {"schema": schema} for kind, schema in operation.body.items()}
        found["requestBody"] = {"required": True, "content": bodies}
    found["security"] = [{"token": [name]} for name, scope in SCOPES.items() if scope == needed]
    return found


def _problem(status: int) -> Json:
    found: Json = {"description": TITLES[status], "content": {PROBLEM: {"schema": _ref("Problem")}}}
    if status in (429, 503):
        seconds = {"description": "seconds", "schema": {"type": "integer", "minimum": 0}}
        found["headers"] = {"Retry-After": seconds}
    return found
