"""The options of `shoal compare`, `shoal explain` and `shoal serve`, declared once, as those of `shoal run` are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Group, Parameter
from cyclopts.validators import Number

from shoal.cli.options import LEARNER, OUTPUT, PROTOCOL, ROWS, Names, Switch


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """What the command line of `shoal compare` says."""

    learners: Annotated[Names, Parameter(group=LEARNER)] = ()
    """Names from `shoal learners`; settings follow after colons, as in OSMTL:alpha=0.9:C=0.1. [default: five that share
    in different ways]"""

    tune: Annotated[int | None, Parameter(group=LEARNER)] = None
    """Choose hyper-parameters on the first so many rows, ten tries each; these rows are then left out of the scores."""

    cluster: Annotated[str | None, Parameter(group=LEARNER)] = None
    """Try them on the Ray cluster at this address; local is one on this machine. [default: in this process]"""

    window: Annotated[int, Parameter(group=PROTOCOL, validator=Number(gte=1))] = 1000
    """Rows of the sliding window of the "last rows" scores."""

    delay: Annotated[int, Parameter(group=PROTOCOL, validator=Number(gte=0))] = 0
    """Learn the label of a row only after this many later rows have been predicted."""

    json: Annotated[str | None, Parameter(group=OUTPUT, allow_leading_hyphen=True)] = None
    """Write all that was found as JSON; - is standard output, which then has nothing else."""

    quiet: Annotated[Switch, Parameter(group=OUTPUT)] = False
    """Print nothing but errors."""

    report: Annotated[str | None, Parameter(group=OUTPUT)] = None
    """Write an HTML report with pictures here."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    """What the command line of `shoal explain` says."""

    model: Annotated[str, Parameter(group=LEARNER)]
    """A file that `shoal run --save` wrote, or `learner.save(path)`."""

    task: Annotated[str | None, Parameter(group=ROWS)] = None
    """The task to explain; of a file, its rows alone. [default: what all tasks share; of a file, all rows]"""

    class_: Annotated[str | None, Parameter(name="--class", group=ROWS)] = None
    """With several classes, the one to explain. [default: every class; of a row, the predicted one]"""

    rows: Annotated[int, Parameter(group=ROWS)] = 3
    """How many rows of the file to explain."""

    format: Annotated[str | None, Parameter(group=ROWS)] = None
    """The format of the file. [default: from its name]"""

    top: Annotated[int, Parameter(group=OUTPUT)] = 10
    """How many features to show."""


SERVICE, STORAGE, LIMITS = (
    Group("Service", sort_key=1),
    Group("Log and snapshots", sort_key=2),
    Group("Limits", sort_key=3),
)


TOPIC = Group("Topic", sort_key=0)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FollowOptions:
    """What the command line of `shoal follow` says of topics."""

    model: Annotated[str | None, Parameter(group=TOPIC)] = None
    """A file that `shoal run --save` wrote, to go on with. [default: a new model, of --task and --label]"""

    labels_from: Annotated[str | None, Parameter(group=TOPIC)] = None
    """A topic of labels for rows that came without, as {"id": ..., "label": ...}; needs --model."""

    id: Annotated[str | None, Parameter(group=TOPIC)] = None
    """The column that labels name rows by. [default: the key of the message]"""

    kafka_settings: Annotated[str | None, Parameter(group=TOPIC)] = None
    """A file of settings for the client, name=value in each line, such as security.protocol=SASL_SSL."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """What the command line of `shoal serve` says."""

    host: Annotated[str, Parameter(group=SERVICE)] = "127.0.0.1"
    """The address to listen at; others than this computer's need tokens."""

    port: Annotated[int, Parameter(group=SERVICE)] = 8000
    """The port."""

    tokens: Annotated[str | None, Parameter(group=SERVICE)] = None
    """A JSON file with lists of tokens under "read", "write" and "admin"; SHOAL_TOKEN_READ, SHOAL_TOKEN_WRITE and
    SHOAL_TOKEN_ADMIN of the environment count, too."""

    shadows: Annotated[bool, Parameter(group=SERVICE)] = True
    """Learn the same without sharing, too, so that the page can say what sharing is worth."""

    shards: Annotated[int, Parameter(group=SERVICE)] = 1
    """Share the tasks out to so many processes, each with its own log, on a Ray cluster."""

    cluster: Annotated[str | None, Parameter(group=SERVICE)] = None
    """The address of that cluster, on which Ray Serve answers requests; local is one on this machine. [default: this
    machine, and this process answers]"""

    fallback: Annotated[Switch, Parameter(group=SERVICE)] = False
    """While a shard is away, answer for its tasks as for unknown ones, instead of 503."""

    folder: Annotated[str | None, Parameter(group=STORAGE)] = None
    """Where log and snapshots are. [default: the model's name with .live]"""

    log: Annotated[str | None, Parameter(group=STORAGE)] = None
    """The log's database, such as postgresql+psycopg://user@host/name. [default: SQLite in the folder]"""

    new_log: Annotated[Switch, Parameter(group=STORAGE)] = False
    """Go on from the newest snapshot with an empty log, if its own is lost; what was accepted since is lost, too."""

    snapshot_rows: Annotated[int, Parameter(group=STORAGE)] = 1_000_000
    """Take a snapshot after so many rows ..."""

    snapshot_seconds: Annotated[float, Parameter(group=STORAGE)] = 300.0
    """... or seconds."""

    keep: Annotated[int, Parameter(group=STORAGE)] = 3
    """How many snapshots are kept."""

    keep_log: Annotated[Switch, Parameter(group=STORAGE)] = False
    """Keep all records and the first snapshot, so that shoal replay can build the model as it was at any time."""

    label_wait: Annotated[float, Parameter(group=STORAGE)] = 168.0
    """Hours that predicted rows wait for their labels; 0: predictions have no ids."""

    new_tasks: Annotated[int, Parameter(group=LIMITS)] = 10_000
    """New tasks a minute."""

    new_columns: Annotated[int, Parameter(group=LIMITS)] = 100
    """New columns a minute."""

    max_tasks: Annotated[int, Parameter(group=LIMITS)] = 10_000_000
    """Tasks in all."""
