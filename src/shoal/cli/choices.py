"""The options of `shoal compare` and `shoal explain`, declared once, as those of `shoal run` are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

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

    window: Annotated[int, Parameter(group=PROTOCOL)] = 1000
    """Rows of the sliding window of the "last rows" scores."""

    delay: Annotated[int, Parameter(group=PROTOCOL)] = 0
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
