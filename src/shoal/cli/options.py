"""The options of the commands, declared once: from here come the command line, its help and the run itself."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated

from cyclopts import Group, Parameter, Token
from cyclopts.validators import Number

LEARNER, ROWS = Group("Learner", sort_key=1), Group("Rows", sort_key=2)
WAYS = Group("How columns are read (by default the first 1,000 rows decide)", sort_key=3)
PROTOCOL, CLUSTER = Group("Protocol", sort_key=4), Group("Cluster", sort_key=5)
OUTPUT = Group("Output", sort_key=6)


def _split(type_: type, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Names separated by commas; one that holds a comma stands in double quotes, as in CSV."""
    lines = [token.value for token in tokens]
    return tuple(name.strip() for names in csv.reader(lines, skipinitialspace=True) for name in names if name.strip())


Names = Annotated[tuple[str, ...], Parameter(converter=_split, n_tokens=1, negative="", show_default=False)]
Switch = Annotated[bool, Parameter(negative="", show_default=False)]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RowOptions:
    """What the command line says about the rows of a file and their columns."""

    task: Annotated[Names, Parameter(group=ROWS)] = ()
    """The column of the task ids, or several, as in shop,country (LIBSVM: qid or a feature; VW: a namespace)."""

    label: Annotated[str | None, Parameter(group=ROWS)] = None
    """The column of the labels, or of the numbers to predict."""

    labels: Annotated[Names, Parameter(group=ROWS)] = ()
    """The labels that there are, as in --labels no,yes. Of two, the second is positive. [default: those that appear;
    the later by number or letter is positive]"""

    regression: Annotated[Switch, Parameter(group=ROWS)] = False
    """The label is a number to predict."""

    classify: Annotated[Switch, Parameter(group=ROWS)] = False
    """The label is a class, though it may be a number with many values."""

    weight: Annotated[str | None, Parameter(group=ROWS)] = None
    """The column that says how much each row counts in learning; scores count rows."""

    time: Annotated[str | None, Parameter(group=ROWS)] = None
    """The column of the rows' times: a row earlier than the one before it is an error."""

    sort: Annotated[Switch, Parameter(group=ROWS)] = False
    """Sort the rows by --time first; the file must fit in memory."""

    text: Annotated[Names, Parameter(group=WAYS)] = ()
    """Columns whose words, single and in pairs, are features."""

    category: Annotated[Names, Parameter(group=WAYS)] = ()
    """Columns whose values are features (one-hot)."""

    numeric: Annotated[Names, Parameter(group=WAYS)] = ()
    """Columns of numbers, $5, 1,234 and 5 % among them."""

    date: Annotated[Names, Parameter(group=WAYS)] = ()
    """Columns of dates or times of day."""

    ignore: Annotated[Names, Parameter(group=WAYS)] = ()
    """Columns to leave out (in lists, a name that holds a comma stands in double quotes)."""

    hash_bits: Annotated[int | None, Parameter(group=WAYS)] = None
    """The words of a column share 2^this many features. [default: 18]"""

    keep_names: Annotated[Switch, Parameter(group=WAYS)] = False
    """Keep the words of the features, for shoal explain; reading takes longer."""

    date_format: Annotated[str | None, Parameter(group=WAYS)] = None
    """How dates are written, as in %d/%m/%Y. [default: ISO 8601]"""

    decimal: Annotated[str | None, Parameter(group=WAYS)] = None
    """The decimal mark, . or a comma. [default: .]"""

    delimiter: Annotated[str | None, Parameter(group=WAYS)] = None
    """What separates the fields of CSV. [default: found by itself]"""

    format: Annotated[str | None, Parameter(group=WAYS)] = None
    """The format of the file. [default: from its name]"""

    skip_bad: Annotated[Switch, Parameter(group=WAYS)] = False
    """Count bad rows instead of stopping at the first."""

    def given(self) -> dict[str, object]:
        """What was typed, by name."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) != field.default}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What the command line of `shoal run` says."""

    learner: Annotated[str | None, Parameter(group=LEARNER)] = None
    """A name from `shoal learners`. [default: HedgedSharing or its regressor, which have nothing to tune]"""

    settings: Annotated[tuple[str, ...], Parameter(name="--set", group=LEARNER, negative="", show_default=False)] = ()
    """A hyper-parameter, as in --set alpha=0.9; may be repeated."""

    load: Annotated[str | None, Parameter(group=LEARNER)] = None
    """Go on with this model."""

    window: Annotated[int, Parameter(group=PROTOCOL, validator=Number(gte=1))] = 1000
    """Rows of the sliding window of the "last rows" scores."""

    delay: Annotated[int, Parameter(group=PROTOCOL, validator=Number(gte=0))] = 0
    """Learn the label of a row only after this many later rows have been predicted."""

    baselines: Annotated[bool, Parameter(group=PROTOCOL)] = True
    """Run one model per task and one model for all next to the learner, for the verdict; --save keeps them, too."""

    shards: Annotated[int, Parameter(group=CLUSTER)] = 1
    """Share the tasks out to so many processes of a Ray cluster. There are no baselines then, and no verdict."""

    cluster: Annotated[str | None, Parameter(group=CLUSTER)] = None
    """The address of that cluster. [default: local, one on this machine]"""

    exchange_every: Annotated[int | None, Parameter(group=CLUSTER)] = None
    """Rows after which shards merge what all tasks share; 0: never. [default: 200,000]"""

    assign: Annotated[str | None, Parameter(group=CLUSTER)] = None
    """A column: tasks whose first rows have the same value there live on the same shard. [default: a hash of the
    task]"""

    save: Annotated[str | None, Parameter(group=OUTPUT)] = None
    """Write the model here; of several shards, a folder."""

    save_every: Annotated[int | None, Parameter(group=OUTPUT)] = None
    """Write it after every so many rows, too."""

    predictions: Annotated[str | None, Parameter(group=OUTPUT, allow_leading_hyphen=True)] = None
    """Write each row's prediction, given before the row was learned, as .csv, .ndjson or .parquet."""

    tasks_out: Annotated[str | None, Parameter(group=OUTPUT)] = None
    """Write a row per task with all scores, as .csv, .ndjson or .parquet."""

    json: Annotated[str | None, Parameter(group=OUTPUT, allow_leading_hyphen=True)] = None
    """Write all that was found as JSON; - is standard output, which then has nothing else."""

    quiet: Annotated[Switch, Parameter(group=OUTPUT)] = False
    """Print nothing but errors."""

    report: Annotated[str | None, Parameter(group=OUTPUT)] = None
    """Write an HTML report with pictures here."""

    figures: Annotated[str | None, Parameter(group=OUTPUT)] = None
    """Write the pictures into this folder, as PNG and SVG."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """What the command line of `shoal predict` says."""

    model: Annotated[str, Parameter(group=LEARNER)]
    """A file that `shoal run --save` wrote, or a folder, if it did so with `--shards`."""

    cluster: Annotated[str | None, Parameter(group=LEARNER)] = None
    """Of a folder, the address of the Ray cluster to put it on. [default: one on this machine]"""

    keep: Annotated[Names, Parameter(group=OUTPUT)] = ()
    """Columns of the file to write next to the predictions, such as --keep id."""

    out: Annotated[str, Parameter(group=OUTPUT, allow_leading_hyphen=True)] = "-"
    """Write predictions here: .csv, .ndjson, .parquet or -; of two labels, the probability is of the positive one."""
