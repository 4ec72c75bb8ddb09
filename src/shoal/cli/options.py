"""The options of `shoal run`, declared once: from here come the command line, its help and the run itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Group, Parameter, Token

LEARNER, ROWS = Group("Learner", sort_key=1), Group("Rows and columns", sort_key=2)
PROTOCOL, OUTPUT = Group("Protocol", sort_key=3), Group("Output", sort_key=4)


def _split(type_: type, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Names separated by commas."""
    return tuple(name.strip() for token in tokens for name in token.value.split(",") if name.strip())


Names = Annotated[tuple[str, ...], Parameter(converter=_split, n_tokens=1, negative="", show_default=False)]
Switch = Annotated[bool, Parameter(negative="", show_default=False)]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What the command line of `shoal run` says."""

    learner: Annotated[str | None, Parameter(group=LEARNER)] = None
    """A name from `shoal learners`. [default: HedgedSharing, which has nothing to tune]"""

    settings: Annotated[tuple[str, ...], Parameter(name="--set", group=LEARNER, negative="", show_default=False)] = ()
    """A hyper-parameter, as in --set alpha=0.9; may be repeated."""

    load: Annotated[str | None, Parameter(group=LEARNER)] = None
    """Go on with this model."""

    task: Annotated[str | None, Parameter(group=ROWS)] = None
    """The column of the task ids (LIBSVM: qid or a feature's number; VW: a namespace)."""

    label: Annotated[str | None, Parameter(group=ROWS)] = None
    """The column of the labels, or of the real targets of a regressor."""

    labels: Annotated[Names, Parameter(group=ROWS)] = ()
    """The two labels, as in --labels no,yes. [default: the first two that appear]"""

    format: Annotated[str | None, Parameter(group=ROWS)] = None
    """The format of the file. [default: from its name]"""

    text: Annotated[Names, Parameter(group=ROWS)] = ()
    """Columns to read as text, separated by commas."""

    numeric: Annotated[Names, Parameter(group=ROWS)] = ()
    """Columns to read as numbers, separated by commas."""

    ignore: Annotated[Names, Parameter(group=ROWS)] = ()
    """Columns to leave out, separated by commas."""

    skip_bad: Annotated[Switch, Parameter(group=ROWS)] = False
    """Count bad rows instead of stopping at the first."""

    window: Annotated[int, Parameter(group=PROTOCOL)] = 1000
    """Rows of the sliding window of the "last rows" scores."""

    delay: Annotated[int, Parameter(group=PROTOCOL)] = 0
    """Learn the label of a row only after this many later rows have been predicted."""

    baselines: Annotated[bool, Parameter(group=PROTOCOL)] = True
    """Run one model per task and one model for all next to the learner, for the verdict."""

    save: Annotated[str | None, Parameter(group=OUTPUT)] = None
    """Write the model here."""

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
    """A file that `shoal run --save` wrote."""

    out: Annotated[str, Parameter(group=OUTPUT, allow_leading_hyphen=True)] = "-"
    """Write the predictions here, as .csv, .ndjson or .parquet; - is standard output."""

    task: Annotated[str | None, Parameter(group=ROWS)] = None
    """The column of the task ids. [default: the one that the model was learned from]"""

    label: Annotated[str | None, Parameter(group=ROWS)] = None
    """The column of the labels, which is not predicted from. [default: likewise]"""

    format: Annotated[str | None, Parameter(group=ROWS)] = None
    """The format of the file. [default: from its name]"""
