"""The OpenAPI 3.1 document: made from the table of routes and from the types of the bodies.

Litestar cannot make it: some routes are answered in front of it, and its handlers see bytes. The types serve only the
document and the client; the tests hold each answer of the service to its schema.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict, get_type_hints

import msgspec
from msgspec import Meta

from shoal.serve import contract
from shoal.serve.contract import Service
from shoal.serve.http.access import OPEN, SCOPES
from shoal.serve.http.arrow import ARROW
from shoal.serve.http.problems import PROBLEM, TITLES
from shoal.serve.http.request_bodies import JSON, NDJSON

TEXT, EVENTS, FILE = "text/plain", "text/event-stream", "application/octet-stream"
DESCRIPTION = """A model that answers while it learns.

Rows come as a JSON object or an array of objects, as NDJSON (streamed: each megabyte is done while the next one comes;
an error ends the answer with a line that has it) or as an uncompressed Arrow stream. Answers come in the format of the
request unless `Accept` names another. A method that a route does not have is answered 405, with `Allow`."""

Json = dict[str, Any]


class Route(NamedTuple):
    """A method of a path, with all that the service, its tokens and its description need to know."""

    method: str
    path: str  # with {task} or {name}
    scope: int  # see `access`
    handler: Callable[[Any, Any], Awaitable[Any]]
    name: str = ""  # of the operation; without one, the document leaves the route out
    summary: str = ""
    answers: Mapping[str, Json] = {}  # schema of each media type
    body: Mapping[str, Json] | None = None  # the same of the request
    errors: tuple[int, ...] = ()  # besides those of tokens and hosts
    parameters: tuple[Json, ...] = ()
    responses: Mapping[int, Json] = {}  # further ones, by status


def description(routes: Iterable[Route], service: Service) -> Json:
    """The whole document. The model says which columns a row must have."""
    found = service.describe()
    tasks, label = list(found["task"]), found["label"]
    rows = {"Row": _row("A row to be answered", tasks), "LabeledRow": _row("A row to be learned", [*tasks, label])}
    paths: dict[str, Json] = {}
    for route in routes:
        if route.name:
            paths.setdefault(route.path, {})[route.method.lower()] = _described(route)
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
    """The types of bodies, and the types within them."""
    _, found = msgspec.json.schema_components(TYPES, ref_template="#/components/schemas/{name}")
    return found


def _described(route: Route) -> Json:
    content = {kind: {"schema": schema} for kind, schema in route.answers.items()}
    responses: Json = {"200": {"description": "done", "content": content}}
    statuses = {*route.errors, 421, *(() if route.scope == OPEN else (401, 403))}
    responses |= {str(status): {"$ref": f"#/components/responses/{status}"} for status in sorted(statuses)}
    responses |= {str(status): response for status, response in route.responses.items()}
    found: Json = {"summary": route.summary, "operationId": route.name, "responses": responses}
    if route.parameters:
        found["parameters"] = list(route.parameters)
    if route.body is not None:
        bodies = {kind: {"schema": schema} for kind, schema in route.body.items()}
        found["requestBody"] = {"required": True, "content": bodies}
    found["security"] = [{"token": [name]} for name, scope in SCOPES.items() if scope == route.scope]
    return found


def _problem(status: int) -> Json:
    found: Json = {"description": TITLES[status], "content": {PROBLEM: {"schema": ref("Problem")}}}
    if status in (429, 503):
        seconds = {"description": "seconds", "schema": {"type": "integer", "minimum": 0}}
        found["headers"] = {"Retry-After": seconds}
    return found


# ---- schemas of bodies ---------------------------------------------------------------------------------------


def ref(name: str) -> Json:
    """A type, by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def one_or_many(name: str) -> Json:
    """An object, or an array of objects."""
    return {"anyOf": [ref(name), {"type": "array", "items": ref(name), "minItems": 1}]}


def lines(name: str) -> Json:
    """A streamed answer, as NDJSON."""
    return {"type": "string", "description": f"JSON, one {name} a line; if it fails, the last is a StreamProblem"}


def answers(name: str, schema: Json) -> dict[str, Json]:
    """Answers to rows, in the three formats."""
    return {JSON: schema, NDJSON: lines(name), ARROW: {"description": f"an Arrow stream, one {name} a row"}}


def rows(name: str) -> dict[str, Json]:
    """Rows of a request, in the three formats."""
    text = {"type": "string", "description": f"JSON, one {name} a line", "minLength": 2}
    return {JSON: one_or_many(name), NDJSON: text, ARROW: {"description": "an Arrow stream, not compressed"}}


# ---- types of bodies -----------------------------------------------------------------------------------------


Scalar = str | int | float | bool | None


def as_object(kind: type[Any], absent: Collection[str] = ()) -> Any:
    """The type of a named tuple's `_asdict()`, some of which may be absent."""
    fields = [(name, hint) for name, hint in get_type_hints(kind).items() if name not in absent]
    optional = [(name, hint, None) for name, hint in get_type_hints(kind).items() if name in absent]
    return msgspec.defstruct(kind.__name__, [*fields, *optional], namespace={"__doc__": kind.__doc__})


Answer, Receipt = as_object(contract.Answer, contract.OF_SOME), as_object(contract.Receipt)
LabelReceipt, Worth = as_object(contract.LabelReceipt), as_object(contract.Worth)


class Reason(TypedDict):
    """The part of a forecast that a feature of the row, or a pair of them, adds."""

    what: Annotated[str, Meta(description="in the units of the table, as `price 2.50`; the last may be all others")]
    share: Annotated[float, Meta(description="of the forecast: the shares and what is usual add up to it")]
    shared: Annotated[float, Meta(description="of the decision (log-odds), by what all tasks share")]
    own: Annotated[float, Meta(description="of the decision, by what the task has of its own")]


class Explanation(TypedDict):
    """Why a forecast is what it is."""

    predicted: Scalar
    label: Annotated[Scalar, Meta(description="that the forecast is about; null: it is a number")]
    forecast: Annotated[float, Meta(description="the probability of the label; a margin; or the number")]
    usual: Annotated[float, Meta(description="the forecast of a row without features")]
    usual_of: Annotated[str, Meta(description="the task, or all tasks, of which that is usual")]
    unit: Annotated[str, Meta(description="what the forecast is, as `probability of yes`")]
    low: NotRequired[Annotated[float | None, Meta(description="end of the interval; null: there is none yet")]]
    high: NotRequired[Annotated[float | None, Meta(description="the other end")]]
    set: NotRequired[Annotated[list[Any], Meta(description="labels that it may be, of a model with sets")]]
    reasons: Annotated[list[Reason], Meta(description="the largest first")]
    text: Annotated[str, Meta(description="all this in at most ten lines")]


class Label(TypedDict):
    """The label of a row that was predicted."""

    id: Annotated[str, Meta(description="as the prediction gave it")]
    label: Scalar


class Scores(TypedDict):
    """How rows were judged before they were learned."""

    rows: int
    error: float | None
    loss: float | None
    calibration_error: float | None


class Candidate(TypedDict):
    """A model that learns the same rows and answers nothing, beside the one that does."""

    learner: str
    tasks: int
    features: int
    since: Annotated[int, Meta(description="the record of the log at which both begin to be compared")]
    scores: Scores
    live: Annotated[Scores, Meta(description="of the model that answers, on the same rows")]


class Model(TypedDict):
    """The model in plain values."""

    learner: str
    parameters: Annotated[dict[str, Any], Meta(description="as JSON; what it has not, as Python writes it")]
    kind: Literal["binary", "multiclass", "regression"]
    labels: Annotated[list[Any], Meta(description="of a regression: none; of two, the second is positive")]
    quantiles: Annotated[list[float], Meta(description="the levels of the quantiles that are answered, if they are")]
    columns: Annotated[dict[str, str | None], Meta(description="numeric, category, text or date")]
    unknown: Annotated[
        dict[str, int], Meta(description="columns that came and are not used, with the rows that had them")
    ]
    absent: Annotated[dict[str, int], Meta(description="columns that did not come, with the rows that lacked them")]
    task: Annotated[list[str], Meta(description="the columns of the task")]
    label: Annotated[str, Meta(description="the column of the label")]
    tasks: int
    features: int
    learned: Annotated[int, Meta(description="the last record of the log that is in the model")]
    logged: Annotated[int, Meta(description="the last record of the log")]
    rows: Annotated[int, Meta(description="that the service has learned since its folder began")]
    replaced: Annotated[int, Meta(description="models that a rollback can return to, one after the other")]
    candidate: Candidate | None
    shards: NotRequired[Annotated[int, Meta(description="that tasks are shared out to; positions are sums of theirs")]]


class CountedTask(TypedDict):
    """Counts and scores of a task; each row was judged before it was learned."""

    task: str | None
    rows: int
    error: Annotated[float, Meta(description="share of mistakes; of numbers the mean absolute error")]
    loss: NotRequired[
        Annotated[
            float, Meta(description="mean log-loss; of numbers the mean squared error, of quantiles pinball loss")
        ]
    ]
    forecast: NotRequired[Annotated[float, Meta(description="mean probability, or number, that was forecast")]]
    happened: NotRequired[Annotated[float, Meta(description="what it was in the mean")]]
    auc: NotRequired[Annotated[float, Meta(description="of two labels that have both come: from 24 bins of forecasts")]]
    trend: Annotated[list[float], Meta(description="mean loss, or error, of eight equal parts at most, in order")]


class Tasks(TypedDict):
    """A page of tasks."""

    tasks: list[CountedTask]
    page: int
    total: Annotated[int, Meta(description="tasks of all pages")]


class Similar(TypedDict):
    """Another task, and how alike it is."""

    task: str
    similarity: float


class Way(TypedDict):
    """A way of sharing, and its part of the forecast."""

    way: str
    weight: float


class Task(TypedDict):
    """A task; without counts if no row of it was learned here."""

    task: str
    latest: NotRequired[Annotated[Explanation, Meta(description="of the forecast that was asked for last")]]
    similar: Annotated[list[Similar], Meta(description="the most similar first")]
    ways: Annotated[list[Way], Meta(description="of sharing, the heaviest first, of a learner that weighs some")]
    coverage: NotRequired[Annotated[float, Meta(description="share of targets that were in their interval, or set")]]
    trust: NotRequired[Annotated[float, Meta(description="in sharing, of a guarded model, from 0 to 1")]]
    harmed: NotRequired[Annotated[bool, Meta(description="whether sharing without the guard would have harmed it")]]
    rows: NotRequired[int]
    error: NotRequired[float]
    loss: NotRequired[float]
    forecast: NotRequired[float]
    happened: NotRequired[float]
    auc: NotRequired[float]
    trend: NotRequired[list[float]]


class Status(TypedDict):
    """How the service is."""

    status: Literal["ok", "ready", "not ready"]
    why: NotRequired[Annotated[str, Meta(description="it is not ready")]]


class RowFault(TypedDict):
    """A fault of one row."""

    row: Annotated[int | None, Meta(description="counted from 0; null: with all")]
    column: str | None
    detail: str


class Problem(TypedDict):
    """Problem details (RFC 9457)."""

    type: Literal["about:blank"]
    title: str
    status: int
    detail: str
    errors: NotRequired[Annotated[list[RowFault], Meta(description="the first of them")]]
    faults: NotRequired[Annotated[int, Meta(description="how many there are")]]
    row: NotRequired[int]


class StreamProblem(TypedDict):
    """The last line of an NDJSON stream that failed: the lines before it stand."""

    problem: Problem
    rows_before: int


TYPES = (Answer, Explanation, Receipt, LabelReceipt, Worth, Label, Model, Tasks, Task, Status, Problem, StreamProblem)
