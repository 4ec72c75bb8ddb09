"""The routes of the service, each written once.

From the table `ROUTES` come Litestar's handlers (`app`), the scope that a request needs, the 404 and 405 of other paths
and methods, the OpenAPI document, and the labels of the metrics. The functions below the table are the handlers.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec
from litestar import MediaType, Request, Response
from litestar.response import Stream

from shoal.serve.contract import Fault, Refused, Rows, Service
from shoal.serve.http import openapi, request_bodies
from shoal.serve.http.access import ADMIN, OPEN, READ, WRITE, Token, allowed
from shoal.serve.http.arrow import ARROW
from shoal.serve.http.batching import in_thread, learned, looked, predictions
from shoal.serve.http.metrics import Metrics
from shoal.serve.http.openapi import EVENTS, FILE, TEXT, Json, Route, one_or_many, ref
from shoal.serve.http.problems import HttpProblem
from shoal.serve.http.request_bodies import JSON, LONGEST_KEY, NDJSON, BodyLimits
from shoal.serve.page import content as page
from shoal.serve.task_counts import SORTS

SHORT = 4096  # bytes of a body that is read in the event loop
PAGE = 50  # tasks
PLACES = {"task": ".+", "name": "[a-z.]+"}  # of a path
BODY = (400, 408, 413, 415, 422, 503)  # statuses of a bad body
KEY: Json = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Makes the request safe to repeat: the second time it is answered as the first, and learns nothing.",
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY},
}
WHY: Json = {
    "name": "explain",
    "in": "query",
    "schema": {"type": "boolean", "default": False},
    "description": "with the reasons, of at most 100 rows",
}
TASK: Json = {"name": "task", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
SORT: Json = {
    "name": "sort",
    "in": "query",
    "schema": {"type": "string", "enum": list(SORTS), "default": SORTS[0]},
    "description": "error, loss, auc: the worst first",
}
TEXT_OF_TASKS: Json = {
    "name": "q",
    "in": "query",
    "schema": {"type": "string", "default": ""},
    "description": "what the name contains",
}
PAGE_OF_TASKS: Json = {"name": "page", "in": "query", "schema": {"type": "integer", "minimum": 1, "default": 1}}
MODEL_FILE = {FILE: {"description": "a file that `shoal run --save` wrote"}}
CHANGE = (400, 408, 413, 415, 422, 503)  # statuses of a bad model file
NOT_READY: Json = {"description": "it cannot learn now", "content": {JSON: {"schema": ref("Status")}}}

Asked = Request[Any, Any, Any]
Handler = Callable[[Any, Any], Awaitable[Any]]


class Api(NamedTuple):
    """The objects that handlers and layers share."""

    service: Service
    tokens: list[Token]
    limits: BodyLimits
    metrics: Metrics
    origins: Collection[str] = ()  # of pages that may ask from other sites


# ---- handlers ------------------------------------------------------------------------------------------------


async def predict(api: Api, request: Asked) -> Response[bytes]:
    """Predict rows. Single JSON rows and NDJSON are answered in front of Litestar, see `app`."""
    kind, rows, _ = await _rows(api, request)
    found = await predictions(api.service, rows)
    if _asks_why(request):
        why = await looked(partial(api.service.explain, rows))
        found = [{**answer, "why": one.to_dict()} for answer, one in zip(found, why, strict=True)]
    return _table(request, kind, found)


async def explain(api: Api, request: Asked) -> Response[bytes]:
    """Say why forecasts are what they are."""
    _, rows, is_one = await _rows(api, request)
    found = [one.to_dict() for one in await looked(partial(api.service.explain, rows))]
    return _json(found[0] if is_one else found)


async def learn(api: Api, request: Asked) -> Response[bytes]:
    """Learn labeled rows."""
    _, rows, _ = await _rows(api, request)
    return _json(await learned(api.service, rows, _key(request)))


async def label(api: Api, request: Asked) -> Response[bytes]:
    """Learn predicted rows, with their labels."""
    kind = request_bodies.media_type(request.headers.get("content-type"))
    if kind == ARROW:
        raise HttpProblem(415, f"labels come as {JSON} or {NDJSON}")
    body = await request_bodies.whole(request.receive, api.limits)
    if kind == NDJSON:
        found = [request_bodies.value_of(line) for line in body.splitlines() if line.strip()]
    else:
        value = request_bodies.value_of(body)
        found = [value] if isinstance(value, dict) else value
    pairs = _labels(found, api.limits)
    return _json((await asyncio.wrap_future(api.service.label(pairs, _key(request))))._asdict())


async def query(api: Api, request: Asked) -> Response[bytes]:
    """Say which labels are worth asking for."""
    kind, rows, _ = await _rows(api, request)
    return _table(request, kind, [one._asdict() for one in await in_thread(partial(api.service.worth, rows))])


async def model(api: Api, _: Asked) -> Response[bytes]:
    """Describe the model."""
    return _json(await looked(api.service.describe))


async def put_model(api: Api, request: Asked) -> Response[bytes]:
    """Put the model of a file in place, or beside it as a candidate."""
    file = await in_thread(api.service.new_file)
    try:
        await request_bodies.to_file(request.receive, api.limits, file)
        what = "shadow" if request.url.path.endswith("/shadow") else "swap"
        return _json((await in_thread(partial(api.service.change, what, file)))._asdict())
    finally:
        file.unlink(missing_ok=True)


def changing(what: str) -> Handler:
    """A handler that changes the model."""

    async def change(api: Api, _: Asked) -> Response[bytes]:
        return _json((await in_thread(partial(api.service.change, what)))._asdict())

    return change


async def tasks(api: Api, request: Asked) -> Response[bytes]:
    """List a page of tasks."""
    query = request.query_params
    sort, text, number = query.get("sort", SORTS[0]), query.get("q", ""), query.get("page", "1")
    if sort not in SORTS:
        raise HttpProblem(400, f"sort={sort!r}, expected {', '.join(SORTS)}")
    try:
        at = int(number)
    except ValueError:
        at = 0
    if at < 1:
        raise HttpProblem(400, f"page={number}, expected 1 or more")
    found, total = await looked(partial(api.service.list_tasks, sort, text, (at - 1) * PAGE, PAGE))
    return _json({"tasks": found, "page": at, "total": total})


async def task(api: Api, request: Asked) -> Response[bytes]:
    """Describe one task."""
    return _json(await looked(partial(api.service.task, unquote(request.path_params["task"]))))


async def forget(api: Api, request: Asked) -> Response[bytes]:
    """Forget a task."""
    call = partial(api.service.forget, unquote(request.path_params["task"]))
    receipt = await asyncio.wrap_future(await in_thread(call))
    return _json(receipt._asdict())


async def export(api: Api, _: Asked) -> Stream:
    """Send the model file."""
    path = await in_thread(api.service.export)

    async def content() -> AsyncIterator[bytes]:
        try:
            with path.open("rb") as file:
                while block := await in_thread(partial(file.read, 1 << 20)):
                    yield block
        finally:
            path.unlink(missing_ok=True)

    return Stream(content(), media_type=FILE)


async def events(api: Api, request: Asked) -> Stream:
    """Send the numbers of the page, every second, and whether it may change the model."""
    may_change = allowed(api.tokens, request.headers.get("authorization", "").encode()) >= ADMIN
    return Stream(page.events(partial(looked, api.service.overview), may_change=may_change), media_type=EVENTS)


async def metrics(api: Api, _: Asked) -> Response[bytes]:
    """Send the metrics."""
    return Response(await looked(partial(api.metrics.text, api.service)), media_type=MediaType.TEXT)


async def described(api: Api, _: Asked) -> Response[bytes]:
    """Send the OpenAPI document."""
    return _json(await looked(partial(openapi.description, ROUTES, api.service)))


async def health(_: Api, __: Asked) -> Response[bytes]:
    """Say that the process answers."""
    return _json({"status": "ok"})


async def ready(api: Api, _: Asked) -> Response[bytes]:
    """Say whether the service can learn."""
    if trouble := await in_thread(lambda: api.service.trouble):
        return _json({"status": "not ready", "why": trouble}, 503)
    return _json({"status": "ready"})


async def page_file(_: Api, request: Asked) -> Response[bytes]:
    """Send a file of the page."""
    name = request.path_params.get("name", page.INDEX)
    if name not in page.KINDS:
        return Response(b"", status_code=404)
    return Response(page.file(name), media_type=page.KINDS[name])


ROUTES: tuple[Route, ...] = (
    Route("GET", "/health", OPEN, health, "health", "Does the process answer?", {JSON: ref("Status")}),
    Route("GET", "/ready", OPEN, ready, "ready", "Can it learn?", {JSON: ref("Status")}, responses={503: NOT_READY}),
    # The page has no numbers in it; it asks for them with a token.
    Route("GET", "/", OPEN, page_file),
    Route("GET", "/page/{name}", OPEN, page_file),
    Route("GET", "/v1/openapi.json", READ, described, "description", "This description", {JSON: {"type": "object"}}),
    Route(
        "POST", "/v1/predict", READ, predict, "predict", "Predict rows",
        openapi.answers("Answer", one_or_many("Answer")), openapi.rows("Row"), BODY, (WHY,),
    ),
    Route(
        "POST", "/v1/explain", READ, explain, "explain", "Why are forecasts what they are?",
        {JSON: one_or_many("Explanation")}, openapi.rows("Row"), BODY,
    ),
    Route(
        "POST", "/v1/query", READ, query, "query", "Which labels are worth asking for?",
        openapi.answers("Worth", {"type": "array", "items": ref("Worth")}), openapi.rows("Row"), BODY,
    ),
    Route(
        "GET", "/v1/events", READ, events, "events", "What the page shows, every second, for ever",
        {EVENTS: {"type": "string"}},
    ),
    Route("GET", "/v1/model", READ, model, "model", "The model", {JSON: ref("Model")}),
    Route(
        "GET", "/v1/tasks", READ, tasks, "tasks", "The tasks, a page at a time",
        {JSON: ref("Tasks")}, None, (400,), (SORT, TEXT_OF_TASKS, PAGE_OF_TASKS),
    ),
    Route("GET", "/v1/tasks/{task}", READ, task, "task", "One task", {JSON: ref("Task")}, None, (404,), (TASK,)),
    Route("GET", "/metrics", READ, metrics, "metrics", "For Prometheus", {TEXT: {"type": "string"}}),
    Route(
        "POST", "/v1/learn", WRITE, learn, "learn", "Learn labeled rows",
        {JSON: ref("Receipt"), NDJSON: openapi.lines("Receipt")}, openapi.rows("LabeledRow"), (*BODY, 409, 429), (KEY,),
    ),
    Route(
        "POST", "/v1/labels", WRITE, label, "label", "Learn rows as they were predicted, with their labels",
        {JSON: ref("LabelReceipt")},
        {JSON: one_or_many("Label"), NDJSON: {"type": "string", "description": "JSON, one Label a line"}},
        (*BODY, 409, 429), (KEY,),
    ),
    Route(
        "PUT", "/v1/model", ADMIN, put_model, "swap", "Put the model of a file in place",
        {JSON: ref("Receipt")}, MODEL_FILE, CHANGE,
    ),
    Route(
        "PUT", "/v1/model/shadow", ADMIN, put_model, "shadow", "Let the model of a file learn beside, as a candidate",
        {JSON: ref("Receipt")}, MODEL_FILE, CHANGE,
    ),
    *(
        Route(method, path, ADMIN, changing(what), what, summary, {JSON: ref("Receipt")}, None, (409, 503))
        for method, path, what, summary in (
            ("POST", "/v1/model/promote", "promote", "Put the candidate in place"),
            ("POST", "/v1/model/rollback", "rollback", "Return to the model that was replaced last"),
            ("DELETE", "/v1/model/shadow", "drop", "End the candidate"),
        )
    ),
    Route(
        "DELETE", "/v1/tasks/{task}", ADMIN, forget, "forget", "Forget a task",
        {JSON: ref("Receipt")}, None, (404, 503), (TASK,),
    ),
    Route(
        "GET", "/v1/export", ADMIN, export, "export", "The model file",
        {FILE: {"description": "for `shoal.load` and `shoal run --load`"}}, None, (503,),
    ),
)  # fmt: skip


# ---- looking routes up ---------------------------------------------------------------------------------------


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", path)  # text and names in turns
    return re.compile("".join(PLACES[part] if i % 2 else re.escape(part) for i, part in enumerate(parts)), re.DOTALL)


_PATTERNS = [(_pattern(route.path), route) for route in ROUTES]


@lru_cache(1024)
def routes_of(path: str) -> Mapping[str, Route]:
    """The routes of a path, by method. The path must fit letter by letter.

    Litestar also takes `/v1/learn/` for `/v1/learn`; a path without a route here must not come that far.
    """
    return {route.method: route for pattern, route in _PATTERNS if pattern.fullmatch(path)}


def scope_of(method: str, path: str) -> int:
    """The scope that a request needs. A path or method without a route needs the least scope with a token."""
    found = routes_of(path)
    return found[method].scope if method in found else min([READ, *(route.scope for route in found.values())])


def label_of(path: str) -> str:
    """The label of a path in the metrics: its route's path without places."""
    found = next(iter(routes_of(path).values()), None)
    return "other" if found is None else found.path.partition("/{")[0]


# ---- reading requests, writing answers -----------------------------------------------------------------------


def _asks_why(request: Asked) -> bool:
    value = request.query_params.get("explain", "false")
    if value not in ("true", "false"):
        raise HttpProblem(400, f"explain={value!r}, expected true or false")
    return bool(value == "true")


async def _rows(api: Api, request: Asked) -> tuple[str, Rows, bool]:
    """The format and the rows of a request, and whether it is one JSON object."""
    kind = request_bodies.media_type(request.headers.get("content-type"))
    body = await request_bodies.whole(request.receive, api.limits)
    read = partial(request_bodies.rows_of, body, kind, api.limits)
    is_one = kind == JSON and body.lstrip()[:1] == b"{"
    return kind, read() if len(body) < SHORT else await in_thread(read), is_one


def _key(request: Asked) -> str | None:
    return request_bodies.checked_key(request.headers.get("idempotency-key"))


def _labels(found: Any, limits: BodyLimits) -> list[tuple[str, Any]]:
    """Pairs of id and label."""
    if not isinstance(found, list) or not found:
        raise HttpProblem(400, 'expected {"id": …, "label": …}, or an array of these')
    if len(found) > limits.rows:
        raise HttpProblem(413, f"{len(found):,} labels, at most {limits.rows:,} are taken at once")
    pairs = []
    for row, one in enumerate(found):
        right = isinstance(one, dict) and set(one) == {"id", "label"} and isinstance(one["id"], str)
        if not right or isinstance(one["label"], dict | list):
            raise Refused(Fault(row, None, f'label {row}: expected {{"id": "…", "label": …}}'))
        pairs.append((one["id"], one["label"]))
    return pairs


def _table(request: Asked, kind: str, found: list[dict[str, Any]]) -> Response[bytes]:
    accepted = request_bodies.accepted(request.headers.get("accept", ""), kind)
    return Response(request_bodies.table(found, accepted), media_type=accepted)


def _json(found: Any, status: int = 200) -> Response[bytes]:
    return Response(msgspec.json.encode(found), media_type=JSON, status_code=status)
