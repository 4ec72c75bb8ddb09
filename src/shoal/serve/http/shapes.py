"""What stands in bodies, as types: from them come the schemas of the description.

The service makes these values without the types (`contract` has named tuples, which JSON would show as arrays); the
tests hold what it answers against the schemas.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict, get_type_hints

from msgspec import Meta, defstruct

from shoal.serve import contract

Scalar = str | int | float | bool | None


def as_object(kind: type[Any]) -> Any:
    """The type of what `_asdict` makes of a named tuple."""
    return defstruct(kind.__name__, [*get_type_hints(kind).items()], namespace={"__doc__": kind.__doc__})


Answer, Receipt = as_object(contract.Answer), as_object(contract.Receipt)
LabelReceipt, Worth = as_object(contract.LabelReceipt), as_object(contract.Worth)


class Label(TypedDict):
    """The label of a row that was predicted."""

    id: Annotated[str, Meta(description="as the prediction gave it")]
    label: Scalar


class Model(TypedDict):
    """The model in plain values."""

    learner: str
    parameters: Annotated[dict[str, str], Meta(description="as Python writes them")]
    kind: Literal["binary", "multiclass", "regression"]
    labels: Annotated[list[Any], Meta(description="of a regression: none; of two, the second is positive")]
    columns: Annotated[dict[str, str | None], Meta(description="numeric, category, text or date")]
    task: Annotated[list[str], Meta(description="the columns of the task")]
    label: Annotated[str, Meta(description="the column of the label")]
    tasks: int
    features: int
    learned: Annotated[int, Meta(description="the last record of the log that is in the model")]
    logged: Annotated[int, Meta(description="the last record of the log")]
    rows: Annotated[int, Meta(description="that the service has learned")]
    shards: NotRequired[Annotated[int, Meta(description="that tasks are shared out to; positions are sums of theirs")]]


class CountedTask(TypedDict):
    """What was counted of a task: each row was judged before it was learned."""

    task: str | None
    rows: int
    error: Annotated[float, Meta(description="share of mistakes; of a regression the mean absolute error")]
    loss: NotRequired[Annotated[float, Meta(description="mean log-loss; of a regression the mean squared error")]]
    forecast: NotRequired[Annotated[float, Meta(description="mean probability, or number, that was forecast")]]
    happened: NotRequired[Annotated[float, Meta(description="what it was in the mean")]]


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
    """A way of sharing, and how much of the forecast is its."""

    way: str
    weight: float


class Task(TypedDict):
    """A task; without counts if no row of it was learned here."""

    task: str
    similar: Annotated[list[Similar], Meta(description="the most similar first")]
    ways: Annotated[list[Way], Meta(description="of sharing, the heaviest first, of a learner that weighs some")]
    rows: NotRequired[int]
    error: NotRequired[float]
    loss: NotRequired[float]
    forecast: NotRequired[float]
    happened: NotRequired[float]


class Status(TypedDict):
    """How the service is."""

    status: Literal["ok", "ready", "not ready"]


class RowFault(TypedDict):
    """What is wrong with one row."""

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
