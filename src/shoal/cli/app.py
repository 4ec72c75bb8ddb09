"""The command line: signatures and help of all commands, and the one place that turns errors into exit code 2.

A command's module is imported when the command runs, so that help and mistyped options cost no import.
"""

import errno
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, CycloptsError, Parameter

from shoal.cli.options import (
    CompareOptions,
    ExplainOptions,
    FollowOptions,
    Names,
    PredictOptions,
    ReproduceOptions,
    RowOptions,
    RunOptions,
    ServeOptions,
    Switch,
    Trusted,
    in_options,
)

STANDARD_INPUT = "standard input"
TAKE_HYPHEN = ("--out", "--json", "--predictions")  # options that take -, which is standard output
ROWS_BY_DEFAULT, RUN_BY_DEFAULT, COMPARE_BY_DEFAULT = RowOptions(), RunOptions(), CompareOptions()
SERVE_BY_DEFAULT, FOLLOW_BY_DEFAULT, REPRODUCE_BY_DEFAULT = ServeOptions(), FollowOptions(), ReproduceOptions()
EXAMPLES = """\
shoal run dataset:flights --report report.html
    104 models from 327,346 real flights: was it late? The last lines say whether sharing pays.
shoal run mails.csv --task user --label spam --save model.shoal
    A model per user from your own table; the model goes on with --load, and predicts with shoal predict.
shoal run prices.parquet --task shop --label price --learner HedgedSharingRegressor --predictions out.csv
    Numbers instead of two labels, and what was predicted for each row before it was learned.

shoal run --help lists the options, shoal learners the learners."""

app = App(
    name="shoal",
    help="Learn many related prediction tasks together from one stream.",
    version=lambda: f"shoal {metadata.version('shoal')}",
    help_format="plaintext",
    result_action="return_value",
)


@app.command
def run(
    *data: str,
    rows: RowOptions = ROWS_BY_DEFAULT,
    options: RunOptions = RUN_BY_DEFAULT,
) -> int:
    """Predict each row of a stream before learning it, and say whether sharing between tasks pays.

    Example: shoal run mails.csv --task user --label spam --save model.shoal

    Parameters
    ----------
    data
        Files, patterns such as 2024-*.csv, folders, - for standard input, or dataset:NAME.
        Formats: CSV, TSV, Parquet, JSON, Arrow IPC, LIBSVM, VW text; gzip, bzip2, xz, Zstandard, zip.
        Files may be larger than memory, and a zip file may hold several.
    """
    if not data:
        print(EXAMPLES)
        return 0
    from shoal.cli.commands.run import run_stream

    return run_stream(_inputs(data), rows, options)


@app.command
def predict(
    *data: str,
    rows: RowOptions = ROWS_BY_DEFAULT,
    options: PredictOptions,
) -> None:
    """Predict the rows of a file with a model that `shoal run --save` wrote. The model does not change.

    Example: shoal predict new.csv --model model.shoal --keep id --out predicted.csv

    Parameters
    ----------
    data
        Files with the columns that the model was learned from, labels or not, or - for standard input.
    """
    from shoal.cli.commands.predict import predict_files

    predict_files(_inputs(data), rows, options)


@app.command
def explain(*data: str, options: ExplainOptions) -> None:
    """Say what moves the forecasts of a saved model, which tasks are alike, or why rows of a file get theirs.

    Example: shoal explain --model model.shoal --task anna

    Parameters
    ----------
    data
        Files with the columns that the model was learned from, or dataset:NAME: the first rows are explained.
    """
    from shoal.cli.commands.explain import explain_model

    explain_model(_inputs(data), options)


@app.command
def compare(
    *data: str,
    rows: RowOptions = ROWS_BY_DEFAULT,
    options: CompareOptions = COMPARE_BY_DEFAULT,
) -> int:
    """Run learners side by side over a stream, and say which is best and whether that may be chance.

    Example: shoal compare mails.csv --task user --label spam --learners HedgedSharing,OSMTL --tune 2000

    Parameters
    ----------
    data
        Files, - for standard input, or dataset:NAME, as for shoal run.
    """
    from shoal.cli.commands.compare import compare_learners

    return compare_learners(_inputs(data), rows, options)


@app.command
def serve(model: str, /, *, options: ServeOptions = SERVE_BY_DEFAULT) -> int:
    """Answer and learn over HTTP; a crash at any moment loses nothing that was acknowledged.

    Example: shoal serve model.shoal

    Parameters
    ----------
    model
        A file that `shoal run --save` wrote. It is read once; the folder next to it then has the model.
    """
    with _needing("serve"):
        from shoal.cli.commands.serve import serve_model

    with _needing("cluster"):
        return serve_model(model, options)


@app.command
def follow(
    topic: str,
    /,
    *,
    follow: FollowOptions = FOLLOW_BY_DEFAULT,
    rows: RowOptions = ROWS_BY_DEFAULT,
    options: ServeOptions = SERVE_BY_DEFAULT,
) -> int:
    """Learn the messages of a Kafka topic, each exactly once, and answer over HTTP as shoal serve does.

    Example: shoal follow kafka://broker:9092/mails --task user --label spam

    Parameters
    ----------
    topic
        kafka://BROKER:9092/TOPIC. Each message is a JSON object, read as a line of NDJSON is.
    """
    with _needing("kafka"):
        from shoal.cli.commands.follow import follow_topic

    return follow_topic(topic, follow, rows, options)


@app.command
def send(
    *data: str, to: str, format: str | None = None, delimiter: str | None = None, decimal: Literal[".", ","] = "."
) -> None:
    """Send the rows of files into a service; sent again after a failure, they are learned once.

    Example: shoal send mails.csv --to http://127.0.0.1:8000

    Parameters
    ----------
    data
        Files of a table, with the columns that the service's model was learned from.
    to
        The service's address; SHOAL_TOKEN_WRITE of the environment is the token.
    format
        The format of the files. [default: from their names]
    delimiter
        The delimiter of CSV fields. [default: detected]
    decimal
        The decimal mark of numbers in text.
    """
    with _needing("serve"):
        from shoal.cli.commands.send import send_files

    send_files(_inputs(data), to, format=format, delimiter=delimiter, decimal=decimal)


Database = Annotated[str | None, Parameter(name="--log")]


@app.command
def swap(service: str, file: str, /, *, shadow: Switch = False, database: Database = None) -> None:
    """Put a newly trained model in the place of the one that a service answers with; its log goes on.

    Example: shoal swap http://127.0.0.1:8000 new.shoal

    Parameters
    ----------
    service
        The service's address (SHOAL_TOKEN_ADMIN of the environment is the token), or the folder of one that is ended.
    file
        A file that `shoal run --save` wrote, with the same task and label columns.
    shadow
        Let it learn the same rows as a candidate, which answers nothing.
    database
        Where the log is, if it is not in the folder.
    """
    with _needing("serve"):
        from shoal.cli.commands.swap import swap_model

    swap_model(service, Path(file), database, shadow=shadow)


@app.command
def log(folder: str, /, *, database: Database = None, after: int = 0, records: int = 20, rows: Switch = False) -> None:
    """Show what a service accepted.

    Parameters
    ----------
    folder
        The service's folder, such as model.shoal.live.
    database
        Where the log is, if it is not in the folder.
    after
        Show records behind this position.
    records
        How many.
    rows
        Print their rows, too, as JSON.
    """
    with _needing("serve"):
        from shoal.cli.commands.log import print_log

    print_log(folder, database, after=after, n=records, with_rows=rows)


@app.command
def replay(folder: str, /, *, save: str, until: str | None = None, database: Database = None) -> None:
    """Build the model of a service as it was; shoal serve --keep-log keeps what that needs.

    Parameters
    ----------
    folder
        The service's folder, such as model.shoal.live.
    save
        Write the model here.
    until
        A position of the log, or a time such as 2026-11-23T12:00:00. [default: all that was accepted]
    database
        Where the log is, if it is not in the folder.
    """
    with _needing("serve"):
        from shoal.cli.commands.log import replay as build

    build(folder, database, until=until, save=save)


@app.command
def backup(folder: str, /, *, to: str, database: Database = None) -> None:
    """Copy a service into one file, while it runs or not: its newest snapshot and the log behind it.

    Example: shoal backup model.shoal.live --to backup.tar

    Parameters
    ----------
    folder
        The service's folder.
    to
        The file, which is whole or not there.
    database
        Where the log is, if it is not in the folder.
    """
    with _needing("serve"):
        from shoal.cli.commands.backup import backup as copy

    copy(folder, database, to)


@app.command
def restore(file: str, /, *, into: str, database: Database = None) -> None:
    """Make the folder of a service from a backup, which shoal serve then goes on with.

    Example: shoal restore backup.tar --into model.shoal.live

    Parameters
    ----------
    file
        A file that `shoal backup` wrote.
    into
        The new folder.
    database
        An empty database for the log. [default: SQLite in the folder]
    """
    with _needing("serve"):
        from shoal.cli.commands.backup import restore as copy

    copy(file, into, database)


@app.command
def learners(name: str | None = None, /) -> None:
    """List the learners with their hyper-parameters, or explain one.

    Parameters
    ----------
    name
        The learner to explain.
    """
    from shoal.cli.commands.learners import print_learner, print_learners

    print_learners() if name is None else print_learner(name)


@app.command
def cite(learner: str | None = None, /) -> None:
    """Print BibTeX of the library, and of the papers that a learner comes from.

    Parameters
    ----------
    learner
        A name from `shoal learners`.
    """
    from shoal.cli.commands.learners import print_citation

    print_citation(learner)


@app.command
def datasets(*, write: str | None = None) -> None:
    """List the data sets that `shoal run dataset:NAME` knows.

    Example: shoal datasets --write .

    Parameters
    ----------
    write
        Write the tables of README and docs (mails.csv, more.csv, new.csv, sales.csv, tomorrow.csv) into this folder.
    """
    from shoal.cli.commands.learners import print_datasets, write_tables

    print_datasets() if write is None else write_tables(write)


@app.command
def inspect(model: str, /, *, trusted: Trusted = ()) -> None:
    """Say what a saved model is and has learned.

    Parameters
    ----------
    model
        A file written by `shoal run --save` or `learner.save(path)`.
    trusted
        Learners of yours that may be imported from here, as in my_file:MyLearner, if the model holds them.
    """
    from shoal.cli.commands.inspect import print_model

    print_model(model, trusted)


@app.command
def edit(model: str, /, *, drop: Names = ()) -> None:
    """Change a saved model in place.

    Example: shoal edit model.shoal --drop weather

    Parameters
    ----------
    model
        A file written by `shoal run --save` of a table, or by `TabularClassifier.save`.
    drop
        Columns that the model no longer uses; files may have them or not.
    """
    from shoal.cli.commands.edit import edit_model

    edit_model(model, drop)


@app.command(name="compile")
def compile_(*learners: str, jobs: int = -1) -> None:
    """Compile everything for this computer, so that no first run has to wait; for container images, too.

    Parameters
    ----------
    learners
        Compile these only, and the readers of files. [default: all]
    jobs
        Processes; -1 is one a core.
    """
    from shoal.cli.commands.compile import compile_for_this_computer

    compile_for_this_computer(list(learners), n_jobs=jobs)


@app.command
def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print the script by which a shell completes commands and options after the Tab key.

    Example: shoal completion bash > ~/.local/share/bash-completion/completions/shoal

    Parameters
    ----------
    shell
        The shell. The place of zsh's is a file _shoal in $fpath, of fish's ~/.config/fish/completions/shoal.fish.
    """
    print(app.generate_completion(shell=shell), end="")


@app.command
def reproduce(*experiments: str, options: ReproduceOptions = REPRODUCE_BY_DEFAULT) -> int:
    """Run the papers' experiments and print ours next to theirs; without arguments, list them.

    Results are kept ($SHOAL_CACHE, else ~/.cache/shoal/results), so a killed run
    continues. Settings chosen on an edge of their grid, where a better one may lie
    beyond, are listed last and make the exit code 1.

    Parameters
    ----------
    experiments
        Such as osmtl/table1, or a paper's name for all of its own.
    """
    from shoal.cli.commands.reproduce import reproduce_papers

    return reproduce_papers(list(experiments), options)


@contextmanager
def _needing(extra: str) -> Iterator[None]:
    """Name the extra to install if an import fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ValueError(f"this command needs {error.name}: pip install 'shoal[{extra}]'") from None


def start(arguments: list[str] | None = None) -> None:
    """Run the program; every error of the user becomes one line on stderr and exit code 2."""
    logging.basicConfig(format="%(name)s: %(message)s")
    try:
        given = sys.argv[1:] if arguments is None else arguments
        code = app(_without_hyphens(given), exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except CycloptsError as error:
        _fail(f"{_one_line(str(error))} (shoal {_command(arguments)}--help shows what there is)")
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except ModuleNotFoundError:  # `main` says which extra brings it
        raise
    except OSError as error:
        _fail(in_options(_one_line(_told(error))))
    except (ValueError, ImportError) as error:
        _fail(in_options(_one_line(str(error))))
    else:
        if code:
            sys.exit(code)


def _without_hyphens(arguments: Sequence[str]) -> list[str]:
    """Rename the input -, so that the parser may take every other argument with a hyphen for an option."""
    before = ["", *arguments]
    return [
        STANDARD_INPUT if one == "-" and last not in TAKE_HYPHEN else one
        for last, one in zip(before, arguments, strict=False)
    ]


def _inputs(data: Sequence[str]) -> list[str]:
    return ["-" if name == STANDARD_INPUT else name for name in data]


def _command(arguments: list[str] | None) -> str:
    given = sys.argv[1:] if arguments is None else arguments
    return f"{given[0]} " if given and given[0] in app else ""


def _told(error: OSError) -> str:
    """Its words, with a file; files that are written whole name themselves."""
    if error.errno == errno.ENOSPC and error.strerror == os.strerror(errno.ENOSPC) and error.filename is None:
        return "there is no room left for standard output, or in the folder of --export or --figures"
    return str(error) if error.strerror is None or error.filename else error.strerror


def _one_line(message: str) -> str:
    return " ".join(message.split())


def _fail(message: str) -> None:
    print(f"shoal: {message}", file=sys.stderr)
    sys.exit(2)
