"""The commands of the program, and the one place where errors become a line on stderr and exit code 2."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter

app = App(
    name="shoal",
    help="Learn many related prediction tasks together from one stream.",
    version=lambda: f"shoal {metadata.version('shoal')}",
    help_format="plaintext",
)


@app.command
def run(
    data: Annotated[str, Parameter(allow_leading_hyphen=True)],
    *,
    learner: str | None = None,
    set_: Annotated[list[str] | None, Parameter(name=["--set"])] = None,
    task: str | None = None,
    label: str | None = None,
    labels: str | None = None,
    format_: Annotated[str | None, Parameter(name=["--format"])] = None,
    text: str = "",
    numeric: str = "",
    ignore: str = "",
    skip_bad: Annotated[bool, Parameter(negative="")] = False,
    window: int = 1000,
    delay: int = 0,
    baselines: bool = True,
    load: str | None = None,
    save: str | None = None,
    report: str | None = None,
    figures: str | None = None,
) -> None:
    """Answer each row of a stream before learning it, and say whether sharing between tasks pays.

    Parameters
    ----------
    data
        A file (CSV, TSV, Parquet, NDJSON, Arrow IPC, LIBSVM, VW text; text may be gzipped), - for standard
        input, or dataset:NAME. Files may be larger than memory.
    learner
        A name from `shoal learners`. [default: HedgedSharing, which has nothing to tune]
    set_
        A hyper-parameter, as in --set alpha=0.9; may be repeated.
    task
        The column of the task ids (LIBSVM: qid or a feature's number; VW: a namespace).
    label
        The column of the labels, or of the real targets of a regressor.
    labels
        The two labels, as in --labels no,yes. [default: the first two that appear]
    format_
        The format of the file. [default: from its name]
    text
        Columns to read as text, separated by commas.
    numeric
        Columns to read as numbers, separated by commas.
    ignore
        Columns to leave out, separated by commas.
    skip_bad
        Count bad rows instead of stopping at the first.
    window
        Rows of the sliding window of the "last rows" scores.
    delay
        Learn the label of a row only after this many later rows were answered.
    baselines
        Run one model per task and one model for all beside the learner, for the verdict.
    load
        Go on with this model.
    save
        Write the model here.
    report
        Write an HTML report with pictures here.
    figures
        Write the pictures into this folder, as PNG and SVG.
    """
    from shoal.cli.run import Options, run_stream

    run_stream(
        Options(
            data=data, learner=learner, settings=set_ or [], task=task, label=label, labels=_commas(labels),
            format=format_, text=_commas(text), numeric=_commas(numeric), ignore=_commas(ignore),
            skip_bad=skip_bad, window=window, delay=delay, baselines=baselines, load=load, save=save,
            report=report, figures=figures,
        )
    )  # fmt: skip


def _commas(value: str | None) -> list[str]:
    return [part.strip() for part in value.split(",")] if value else []


@app.command
def learners() -> None:
    """The learners there are, with their hyper-parameters."""
    from shoal.cli.catalogue import print_learners

    print_learners()


@app.command
def datasets() -> None:
    """The data sets that `shoal run dataset:NAME` knows."""
    from shoal.cli.catalogue import print_datasets

    print_datasets()


@app.command
def inspect(model: str) -> None:
    """What a saved model is and has learnt.

    Parameters
    ----------
    model
        A file written by `shoal run --save` or `learner.save(path)`.
    """
    from shoal.cli.inspect import print_model

    print_model(model)


@app.command
def reproduce(
    *experiments: str,
    all_: Annotated[bool, Parameter(name=["--all"], negative="")] = False,
    quick: Annotated[bool, Parameter(negative="")] = False,
    jobs: int = 1,
    backend: str = "loky",
    report: str | None = None,
    figures: str | None = None,
) -> None:
    """Run the papers' experiments and print ours beside theirs; without arguments, list them.

    Results are kept ($SHOAL_CACHE, else ~/.cache/shoal/results): a killed run goes on where it was.

    Parameters
    ----------
    experiments
        Such as osmtl/table1, or a paper's name for all of its own.
    all_
        Run everything.
    quick
        Two shuffles and small pieces of the data: whether everything runs.
    jobs
        Processes; -1 is one a core.
    backend
        Of joblib: loky, threading, multiprocessing, ray or dask (the last two after `pip install ray` or
        `dask[distributed]`).
    report
        Write one HTML page with all tables and figures here.
    figures
        Write the figures into this folder, as PNG and SVG.
    """
    from shoal.cli.reproduce import Options, reproduce_papers

    reproduce_papers(
        Options(
            ids=list(experiments), everything=all_, quick=quick, jobs=jobs, backend=backend, report=report,
            figures=figures,
        )
    )  # fmt: skip


def start(arguments: list[str] | None = None) -> None:
    """Run the program; whatever goes wrong for the user is one line on stderr and exit code 2."""
    try:
        app(sys.argv[1:] if arguments is None else arguments, exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except CycloptsError as error:
        _fail(f"{_one_line(str(error))} (shoal {_command(arguments)}--help shows what there is)")
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except (ValueError, OSError, ImportError) as error:
        _fail(_one_line(str(error)))


def _command(arguments: list[str] | None) -> str:
    given = sys.argv[1:] if arguments is None else arguments
    return f"{given[0]} " if given and given[0] in ("run", "learners", "datasets", "inspect", "reproduce") else ""


def _one_line(message: str) -> str:
    return " ".join(message.split())


def _fail(message: str) -> None:
    print(f"shoal: {message}", file=sys.stderr)
    sys.exit(2)
