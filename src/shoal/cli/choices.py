"""The options of `shoal compare` and `shoal explain`, declared once, as those of `shoal run` are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, get_type_hints

from cyclopts import Parameter

from shoal.cli.options import LEARNER, OUTPUT, ROWS, Names, RunOptions

Hidden = Parameter(parse=False)  # options of `shoal run` that are about one learner


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CompareOptions(RunOptions):
    """What the command line of `shoal compare` says: how rows are read and judged as in `shoal run`."""

    learners: Annotated[Names, Parameter(group=LEARNER)] = ()
    """Names from `shoal learners`; settings follow after colons, as in OSMTL:alpha=0.9:C=0.1. [default: five that share
    in different ways]"""

    tune: Annotated[int | None, Parameter(group=LEARNER)] = None
    """Choose hyper-parameters on the first so many rows, ten tries each; these rows are then left out of the scores."""

    learner: Annotated[str | None, Hidden] = None
    settings: Annotated[tuple[str, ...], Hidden] = ()
    load: Annotated[str | None, Hidden] = None
    baselines: Annotated[bool, Hidden] = True
    save: Annotated[str | None, Hidden] = None
    save_every: Annotated[int | None, Hidden] = None
    predictions: Annotated[str | None, Hidden] = None
    tasks_out: Annotated[str | None, Hidden] = None
    figures: Annotated[str | None, Hidden] = None


# As the constructor has them, those of `RunOptions` are text whose names stand in another module.
CompareOptions.__init__.__annotations__ = get_type_hints(CompareOptions, include_extras=True)


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
