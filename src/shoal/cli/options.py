"""The options of the commands, declared once for the command line, its help and the run itself.

They stand apart from the commands, because `--help` must not import what a command needs. Small commands declare their
options in `app`. `in_options` rewrites messages of the library, which name the arguments of functions.
"""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated

from cyclopts import Group, Parameter, Token
from cyclopts.validators import Number

LEARNER, ROWS = Group("Learner", sort_key=1), Group("Rows", sort_key=2)
WAYS = Group("How columns are read (by default the first 1,000 rows decide)", sort_key=3)
PROTOCOL, CLUSTER = Group("Protocol", sort_key=4), Group("Cluster", sort_key=5)
OUTPUT = Group("Output", sort_key=6)
TOPIC, SERVICE = Group("Topic", sort_key=0), Group("Service", sort_key=1)
STORAGE, LIMITS = Group("Log and snapshots", sort_key=2), Group("Limits", sort_key=3)

# Arguments of `shoal.files` that are other options on the command line.
SWITCHES = {"kind='multiclass'": "--classify", "kind='regression'": "--regression", "classes=[...]": "--labels"}


def _split(type_: type, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Names separated by commas; a name with a comma stands in double quotes, as in CSV."""
    lines = [token.value for token in tokens]
    return tuple(name.strip() for names in csv.reader(lines, skipinitialspace=True) for name in names if name.strip())


Names = Annotated[tuple[str, ...], Parameter(converter=_split, n_tokens=1, negative="", show_default=False)]
Switch = Annotated[bool, Parameter(negative="", show_default=False)]
Trusted = Annotated[Names, Parameter(group=LEARNER)]
Interval = Annotated[float | None, Parameter(group=OUTPUT, validator=Number(gt=0.0, lt=1.0))]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RowOptions:
    """Options about the rows of a file and their columns."""

    task: Annotated[Names, Parameter(group=ROWS)] = ()
    """The column of the task ids, or several, as in shop,country (LIBSVM: qid or a feature; VW: a namespace)."""

    label: Annotated[str | None, Parameter(group=ROWS)] = None
    """The column of the labels, or of the numbers to predict."""

    labels: Annotated[Names, Parameter(group=ROWS)] = ()
    """All labels, as in --labels no,yes; of two, the second is positive. [default: those that appear, sorted]"""

    regression: Annotated[Switch, Parameter(group=ROWS)] = False
    """The label is a number to predict."""

    classify: Annotated[Switch, Parameter(group=ROWS)] = False
    """The label is a class, though it may be a number with many values."""

    weight: Annotated[str | None, Parameter(group=ROWS)] = None
    """The column that says how much each row counts in learning; scores count rows."""

    time: Annotated[str | None, Parameter(group=ROWS)] = None
    """The column of the rows' times: a row earlier than the one before it is an error."""

    sort: Annotated[Switch, Parameter(group=ROWS)] = False
    """Sort the rows by --time first, on disk if they are larger than memory."""

    text: Annotated[Names, Parameter(group=WAYS)] = ()
    """Columns whose words, single and in pairs, are features."""

    category: Annotated[Names, Parameter(group=WAYS)] = ()
    """Columns whose values are features (one-hot)."""

    numeric: Annotated[Names, Parameter(group=WAYS)] = ()
    """Columns of numbers, $5, 1,234 and 5 % among them."""

    date: Annotated[Names, Parameter(group=WAYS)] = ()
    """Columns of dates or times of day."""

    forecast: Annotated[Names, Parameter(group=WAYS)] = ()
    """Columns with forecasts of other models (numbers, or probabilities of the positive label), used as far as good."""

    ignore: Annotated[Names, Parameter(group=WAYS)] = ()
    """Columns to leave out (in lists, a name that holds a comma stands in double quotes)."""

    hash_bits: Annotated[int | None, Parameter(group=WAYS)] = None
    """The words of a column share 2^this many features. [default: 18]"""

    keep_names: Annotated[Switch, Parameter(group=WAYS)] = False
    """Keep the words of the features, for shoal explain; reading takes longer."""

    date_format: Annotated[str | None, Parameter(group=WAYS)] = None
    """How dates are written, as in %d/%m/%Y. [default: detected where day and month cannot be mistaken]"""

    missing: Annotated[Names, Parameter(group=WAYS)] = ()
    """Words for missing values, beside an empty field, NA, #N/A, NULL and what else pandas knows."""

    decimal: Annotated[str | None, Parameter(group=WAYS)] = None
    """The decimal mark, . or a comma. [default: detected for each column]"""

    encoding: Annotated[str | None, Parameter(group=WAYS)] = None
    """The encoding of text, such as shift_jis. [default: UTF-8, UTF-16 or Windows-1252, detected]"""

    delimiter: Annotated[str | None, Parameter(group=WAYS)] = None
    """The delimiter of CSV fields. [default: detected]"""

    format: Annotated[str | None, Parameter(group=WAYS)] = None
    """The format of the file. [default: from its name]"""

    skip_bad: Annotated[Switch, Parameter(group=WAYS)] = False
    """Count bad rows instead of stopping at the first."""

    def given(self) -> dict[str, object]:
        """The options that were typed, by name."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) != field.default}


@dataclass(frozen=True, kw_only=True)
class PassOptions:
    """Options of the commands that make a pass over a stream."""

    window: Annotated[int, Parameter(group=PROTOCOL, validator=Number(gte=1))] = 1000
    """Rows of the sliding window of the "last rows" scores."""

    delay: Annotated[int, Parameter(group=PROTOCOL, validator=Number(gte=0))] = 0
    """Learn the label of a row only after this many later rows have been predicted."""

    metrics: Annotated[Names, Parameter(group=PROTOCOL)] = ()
    """The scores, such as auc,f1,balanced_error,pinball:0.9, or scikit-learn's names. [default: the usual ones]"""

    class_weight: Annotated[Names, Parameter(group=LEARNER)] = ()
    """How much more is learned from rows of a label, as in yes=5,no=1; or balanced: the inverse of its share so far."""

    json: Annotated[str | None, Parameter(group=OUTPUT, allow_leading_hyphen=True)] = None
    """Write all results as JSON; - is standard output, which then has nothing else."""

    quiet: Annotated[Switch, Parameter(group=OUTPUT)] = False
    """Print nothing but errors."""

    report: Annotated[str | None, Parameter(group=OUTPUT)] = None
    """Write an HTML report with pictures here."""

    export: Annotated[str | None, Parameter(group=OUTPUT)] = None
    """Write every table and picture into this folder: LaTeX, CSV, Parquet, SVG and PDF."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions(PassOptions):
    """Options of `shoal run`."""

    learner: Annotated[str | None, Parameter(group=LEARNER)] = None
    """A name from `shoal learners`, or your class, my_file:MyLearner. [default: HedgedSharing or its regressor]"""

    settings: Annotated[tuple[str, ...], Parameter(name="--set", group=LEARNER, negative="", show_default=False)] = ()
    """A hyper-parameter, as in --set alpha=0.9; may be repeated."""

    target: Annotated[Names, Parameter(group=LEARNER)] = ()
    """Of numbers, predict mean, median, or quantiles, as in 0.1,0.5,0.9, judged by their loss. [default: mean]"""

    guard: Annotated[Switch, Parameter(group=LEARNER)] = False
    """Guard each task against harm by sharing, by a second learner, which does not share."""

    hierarchy: Annotated[Switch, Parameter(group=LEARNER)] = False
    """The columns of --task are levels, as in country,shop: a new shop begins with what its country has learned."""

    load: Annotated[str | None, Parameter(group=LEARNER)] = None
    """Go on with this model. Columns that it does not know are not used, absent ones are missing values."""

    trusted: Trusted = ()
    """Learners of yours that --load may import from here, as in my_file:MyLearner, if the model holds them."""

    new_columns: Annotated[int, Parameter(group=LEARNER, validator=Number(gte=0))] = 0
    """Learn so many columns that the model (or the first file) does not have."""

    strict: Annotated[Switch, Parameter(group=LEARNER)] = False
    """Refuse files whose columns are not those of the model (or of the first file)."""

    baselines: Annotated[bool, Parameter(group=PROTOCOL)] = True
    """Run one model per task and one model for all next to the learner, for the verdict; --save keeps them, too."""

    shards: Annotated[int, Parameter(group=CLUSTER)] = 1
    """Share the tasks out to so many processes of a Ray cluster. There are no baselines then, and no verdict."""

    cluster: Annotated[str | None, Parameter(group=CLUSTER)] = None
    """The address of that cluster. [default: local, one on this machine]"""

    exchange_every: Annotated[int | None, Parameter(group=CLUSTER)] = None
    """Rows after which shards merge what all tasks share; 0: never. [default: 200,000]"""

    assign: Annotated[str | None, Parameter(group=CLUSTER)] = None
    """A column: tasks with the same value in their first rows live on one shard. [default: a hash of the task]"""

    save: Annotated[str | None, Parameter(group=OUTPUT)] = None
    """Write the model here; of several shards, a folder."""

    save_every: Annotated[int | None, Parameter(group=OUTPUT)] = None
    """Write it after every so many rows, too."""

    predictions: Annotated[str | None, Parameter(group=OUTPUT, allow_leading_hyphen=True)] = None
    """Write each row's prediction, given before the row was learned, as .csv, .ndjson or .parquet."""

    keep: Annotated[Names, Parameter(group=OUTPUT)] = ()
    """Columns of the file to write next to the predictions, such as --keep id; --ignore id does not learn it."""

    interval: Interval = None
    """Add low and high of intervals, of labels sets, that hold this share of each task's targets, such as 0.9."""

    tasks_out: Annotated[str | None, Parameter(group=OUTPUT)] = None
    """Write a row per task with all scores, as .csv, .ndjson or .parquet."""

    figures: Annotated[str | None, Parameter(group=OUTPUT)] = None
    """Write the pictures into this folder, as PNG and SVG."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """Options of `shoal predict`."""

    model: Annotated[str, Parameter(group=LEARNER)]
    """A file that `shoal run --save` wrote, or a folder, if it did so with `--shards`."""

    trusted: Trusted = ()
    """Learners of yours that may be imported from here, as in my_file:MyLearner, if the model holds them."""

    strict: Annotated[Switch, Parameter(group=LEARNER)] = False
    """Refuse files whose columns are not those of the model."""

    cluster: Annotated[str | None, Parameter(group=LEARNER)] = None
    """Of a folder, the address of the Ray cluster to put it on. [default: one on this machine]"""

    keep: Annotated[Names, Parameter(group=OUTPUT)] = ()
    """Columns of the file to write next to the predictions, such as --keep id."""

    interval: Interval = None
    """The share of targets in the intervals of a model of shoal run --interval; they are written with or without it."""

    out: Annotated[str, Parameter(group=OUTPUT, allow_leading_hyphen=True)] = "-"
    """Write predictions here: .csv, .ndjson, .parquet or -; of two labels, the probability is of the positive one."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CompareOptions(PassOptions):
    """Options of `shoal compare`."""

    learners: Annotated[Names, Parameter(group=LEARNER)] = ()
    """Names from `shoal learners`, or my_file:MyLearner; settings follow: OSMTL:C=0.1. [default: five ways to share]"""

    shuffles: Annotated[int | None, Parameter(group=PROTOCOL, validator=Number(gte=1))] = None
    """Compare over so many random orders of the rows, which must fit into memory, instead of their own order."""

    seeds: Annotated[str | None, Parameter(group=PROTOCOL)] = None
    """The seeds of these orders, as in 0-29 or 3,7,11. [default: from 0 on]"""

    jobs: Annotated[int, Parameter(group=PROTOCOL)] = 1
    """Processes for the orders; -1 is one a core."""

    tune: Annotated[int | None, Parameter(group=LEARNER)] = None
    """Choose hyper-parameters on the first so many rows, ten tries each; these rows are then left out of the scores."""

    cluster: Annotated[str | None, Parameter(group=LEARNER)] = None
    """Try them on the Ray cluster at this address; local is one on this machine. [default: in this process]"""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    """Options of `shoal explain`."""

    model: Annotated[str, Parameter(group=LEARNER)]
    """A file that `shoal run --save` wrote, or `learner.save(path)`."""

    trusted: Trusted = ()
    """Learners of yours that may be imported from here, as in my_file:MyLearner, if the model holds them."""

    task: Annotated[str | None, Parameter(group=ROWS)] = None
    """The task to explain; of a file, its rows alone. [default: what all tasks share; of a file, all rows]"""

    class_: Annotated[str | None, Parameter(name="--class", group=ROWS)] = None
    """With several classes, the one to explain. [default: every class; of a row, the predicted one]"""

    rows: Annotated[int, Parameter(group=ROWS)] = 3
    """How many rows of the file to explain."""

    importance: Annotated[Switch, Parameter(group=ROWS)] = False
    """Say which columns move the forecasts of the file's first 1,000 rows most, over all and in the largest tasks."""

    since: Annotated[str | None, Parameter(group=ROWS)] = None
    """With --importance, what changed since then: a date, in the time column or the first one of dates, or a row."""

    dependence: Annotated[str | None, Parameter(group=ROWS)] = None
    """How the forecasts of the file's first 1,000 rows change with this column, over all and in the largest tasks."""

    format: Annotated[str | None, Parameter(group=ROWS)] = None
    """The format of the file. [default: from its name]"""

    top: Annotated[int, Parameter(group=OUTPUT)] = 10
    """How many features to show."""

    export: Annotated[str | None, Parameter(group=OUTPUT)] = None
    """With --importance or --dependence, write table and picture into this folder: LaTeX, CSV, Parquet, SVG and PDF."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FollowOptions:
    """Options of `shoal follow` about topics."""

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
    """Options of `shoal serve`."""

    host: Annotated[str, Parameter(group=SERVICE)] = "127.0.0.1"
    """The address to listen at; others than this computer's need tokens."""

    port: Annotated[int, Parameter(group=SERVICE)] = 8000
    """The port."""

    tokens: Annotated[str | None, Parameter(group=SERVICE)] = None
    """A JSON file of lists "read", "write", "admin"; SHOAL_TOKEN_READ, _WRITE, _ADMIN in the environment count, too."""

    origins: Annotated[Names, Parameter(group=SERVICE)] = ()
    """Sites whose pages may ask from a browser, such as https://shop.example.org, separated by commas."""

    shadows: Annotated[bool, Parameter(group=SERVICE)] = True
    """Learn the same without sharing, too, so that the page can say what sharing is worth."""

    shadow: Annotated[str | None, Parameter(group=SERVICE)] = None
    """A model file that learns the same rows and answers nothing; /v1/model and the metrics compare it, once."""

    shards: Annotated[int, Parameter(group=SERVICE)] = 1
    """Share the tasks out to so many processes, each with its own log, on a Ray cluster."""

    cluster: Annotated[str | None, Parameter(group=SERVICE)] = None
    """The cluster's address, where Ray Serve answers; local: one on this machine. [default: this process answers]"""

    fallback: Annotated[Switch, Parameter(group=SERVICE)] = False
    """While a shard is down, answer for its tasks as for unknown ones, instead of 503."""

    folder: Annotated[str | None, Parameter(group=STORAGE)] = None
    """Where log and snapshots are. [default: the model's name with .live]"""

    log: Annotated[str | None, Parameter(group=STORAGE)] = None
    """The log's database, such as postgresql+psycopg://user@host/name. [default: SQLite in the folder]"""

    new_log: Annotated[Switch, Parameter(group=STORAGE)] = False
    """Go on from the newest snapshot with an empty log, if its own is lost; what was accepted since is lost, too."""

    replace: Annotated[Switch, Parameter(group=STORAGE)] = False
    """Begin anew with the model file, if it is another one than the folder began with; the folder is kept beside."""

    snapshot_rows: Annotated[int, Parameter(group=STORAGE)] = 1_000_000
    """Take a snapshot after so many rows ..."""

    snapshot_seconds: Annotated[float, Parameter(group=STORAGE)] = 300.0
    """... or seconds."""

    keep: Annotated[int, Parameter(group=STORAGE)] = 3
    """How many snapshots are kept."""

    keep_models: Annotated[int, Parameter(group=STORAGE, validator=Number(gte=0))] = 3
    """How many replaced models are kept, for POST /v1/model/rollback."""

    keep_log: Annotated[Switch, Parameter(group=STORAGE)] = False
    """Keep all records and the first snapshot, so that shoal replay can build the model as it was at any time."""

    label_wait: Annotated[float, Parameter(group=STORAGE)] = 168.0
    """Hours that predicted rows wait for their labels; 0: predictions have no ids."""

    new_tasks: Annotated[int, Parameter(group=LIMITS)] = 10_000
    """New tasks a minute."""

    new_columns: Annotated[int, Parameter(group=LIMITS)] = 0
    """New columns a minute that are learned; others are named in the answers and not used."""

    strict: Annotated[Switch, Parameter(group=LIMITS)] = False
    """Refuse rows that lack a column of the model, or have a further one."""

    max_tasks: Annotated[int, Parameter(group=LIMITS)] = 10_000_000
    """Tasks in all."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ReproduceOptions:
    """Options of `shoal reproduce`."""

    everything: Annotated[Switch, Parameter(name="--all")] = False
    """Run everything."""

    quick: Switch = False
    """Two shuffles and small pieces of the data: whether everything runs."""

    claims: Switch = False
    """Run nothing: judge the papers' claims by the runs that are kept; with --report, write the page of these runs."""

    jobs: int = 1
    """Processes; -1 is one a core."""

    backend: str = "loky"
    """Of joblib: loky, threading, multiprocessing or dask (after `pip install "dask[distributed]"`)."""

    cluster: str | None = None
    """Run on the Ray cluster at this address, on all of its cores; local is one on this machine."""

    report: str | None = None
    """Write one HTML page with all tables and figures here."""

    figures: str | None = None
    """Write the figures into this folder, as PNG and SVG."""


def in_options(text: str) -> str:
    """A message of the library as the command line would say it: `date_format=` becomes `--date-format`."""
    names = "|".join((*(field.name for field in fields(RowOptions)), "keep", "strict", "new_columns"))
    pattern = (
        rf"""{"|".join(map(re.escape, SWITCHES))}|"""
        rf"""(?<![\w.'"-])(?P<name>{names})=(?P<one>\[(?P<value>'[^']*'|"[^"]*")\])?"""
    )
    return re.sub(pattern, lambda found: _as_typed(found, text[found.end() : found.end() + 1]), text)


def _as_typed(found: re.Match[str], then: str) -> str:
    if found["name"] is None:
        return SWITCHES[found[0]]
    option = f"--{found['name'].replace('_', '-')}"
    if found["one"] is not None:
        return f"{option} {found['value']}"
    return option if then in " ,.)" else f"{option} "
