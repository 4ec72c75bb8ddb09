"""`shoal reproduce`: list the papers' experiments, run them, print ours next to theirs."""

import difflib
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from joblib import parallel_config
from joblib.externals.loky import get_reusable_executor
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from shoal.cli.options import ReproduceOptions
from shoal.cli.sharded import on_cluster
from shoal.cli.signals import SIGNALS
from shoal.papers.cache import store
from shoal.papers.claims.table import as_text, judged
from shoal.papers.experiment import Experiment, experiments
from shoal.papers.fairness import edges
from shoal.papers.outcome import Outcome
from shoal.papers.page import write_page
from shoal.papers.runner import OnProgress, recall, reproduce, state
from shoal.papers.text import lines
from shoal.report.figures import FORMATS

BACKENDS = ("loky", "threading", "multiprocessing", "dask")


def reproduce_papers(ids: list[str], options: ReproduceOptions) -> int:
    """The whole command.

    The exit code is 1 if a setting was chosen on an edge of its grid or if nothing could run of an experiment.
    """
    known = experiments()
    if options.claims:
        return _judge_claims(known, options.report)
    wanted = _wanted(ids, known, everything=options.everything)
    if not wanted:
        _list(known, options.quick)
        return 0
    if options.report and not Path(options.report).parent.is_dir():
        raise FileNotFoundError(f"the folder {Path(options.report).parent} for --report does not exist; make it first")
    if options.cluster is not None and (options.jobs != 1 or options.backend != "loky"):
        raise ValueError("--cluster takes all cores of the cluster: leave out --jobs and --backend")
    outcomes = []
    n_jobs = options.jobs if options.cluster is None else None
    with _stopping(), _backend(options.backend), on_cluster(options.cluster), _bars() as bars:
        for i, experiment in enumerate(wanted):
            move = _bar(bars, f"{experiment.id} ({i + 1} of {len(wanted)})")
            outcome = reproduce(experiment, quick=options.quick, n_jobs=n_jobs, on_progress=move)
            _print(bars, "\n".join([*lines(outcome), ""]))
            outcomes.append(outcome)
    _write(options, outcomes)
    return max(_check_runs(outcomes), 0 if options.quick else _check_edges(outcomes))


@contextmanager
def _stopping() -> Iterator[None]:
    """Ctrl-C and SIGTERM end the workers, too, and say what is kept."""

    def stop(number: int, frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)  # the workers are being ended, and a second signal would leave some
        raise _Stopped(number)

    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield
    except _Stopped as stopped:
        get_reusable_executor().shutdown(kill_workers=True)
        name = signal.Signals(stopped.number).name
        kept = f"the runs that are done are kept in {store.folder()}, and the same command goes on from there"
        print(f"shoal: stopped by {name}: {kept}", file=sys.stderr)
        sys.exit(128 + stopped.number)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Stopped(BaseException):
    """A signal came; no handler of errors on the way may take it for one."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def _check_runs(outcomes: list[Outcome]) -> int:
    """Name the experiments of which nothing could run; return the exit code."""
    empty = [outcome.experiment.id for outcome in outcomes if not outcome.runs]
    if empty:
        print(f"Nothing could run of {', '.join(empty)}: see the reasons above.")
    return 1 if empty else 0


def _wanted(ids: list[str], known: dict[str, Experiment], *, everything: bool) -> list[Experiment]:
    """The experiments asked for; a paper's name means all of its own."""
    if everything:
        return list(known.values())
    found = []
    for name in ids:
        matching = [experiment for experiment in known.values() if name in (experiment.id, experiment.paper)]
        if not matching:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            raise ValueError(f"there is no experiment {name!r}{hint}; `shoal reproduce` lists them")
        found += matching
    return [known[name] for name in dict.fromkeys(experiment.id for experiment in found)]


def _list(known: dict[str, Experiment], quick: bool) -> None:
    width = max(map(len, known)) + 2
    print(f"{'experiment':<{width}}{'state':<14}{'one core':>14}  title")
    for experiment in known.values():
        found = state(experiment, quick)
        left = experiment.seconds * (1 - found.done / max(found.total, 1))
        time = "" if found.done >= found.total else f"({experiment.runs_of})" if experiment.runs_of else _time(left)
        print(f"{experiment.id:<{width}}{found!s:<14}{time:>14}  {experiment.title}")
        if found.missing:
            print(f"{'':<{width}}{'':<30}without {', '.join(found.missing)}")
    print("\nshoal reproduce ID runs one, a paper's name all of its own, --all everything; --quick small pieces of it.")


def _judge_claims(known: dict[str, Experiment], report: str | None) -> int:
    outcomes = [recall(experiment) for experiment in known.values()]
    if report:
        write_page(report, outcomes)
    print("\n".join(as_text(judged(outcomes, known))))
    return _check_edges(outcomes)


def _check_edges(outcomes: list[Outcome]) -> int:
    """Print the settings that lie on an edge, once each though experiments share runs; return the exit code."""
    found = dict.fromkeys(str(edge) for outcome in outcomes for edge in edges(outcome))
    n = len({pair for outcome in outcomes for pair in outcome.tuned})
    if n == 0:
        return 0
    print(f"{len(found)} of {n} chosen settings lie on an edge of their grid.")
    print("".join(f"- {edge}\n" for edge in found), end="")
    return 1 if found else 0


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


@contextmanager
def _backend(name: str) -> Iterator[None]:
    """Run joblib's jobs by a backend while the block lasts."""
    if name not in BACKENDS:
        raise ValueError(f"--backend must be one of {', '.join(BACKENDS)}, got {name!r}")
    if name == "dask":
        from distributed import Client

        with Client(), parallel_config(backend="dask"):
            yield
        return
    with parallel_config(backend=name):
        yield


@contextmanager
def _bars() -> Iterator[Progress]:
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    left = TextColumn("left"), TimeRemainingColumn()
    with Progress(*columns, *left, console=console, transient=True, disable=not console.is_terminal) as bars:
        yield bars


def _bar(bars: Progress, name: str) -> OnProgress:
    """Add a progress line, which the second stage of an experiment (after the tuning) starts anew."""
    line = bars.add_task(name, total=None)

    def move(done: int, total: int) -> None:
        bars.update(line, completed=done, total=total, visible=done < total)

    return move


def _print(bars: Progress, text: str) -> None:
    if bars.disable:
        print(text, flush=True)
    else:  # clear the bar on stderr while the table goes to stdout
        bars.stop()
        print(text, flush=True)
        bars.start()


def _write(options: ReproduceOptions, outcomes: list[Outcome]) -> None:
    if options.figures:
        folder = Path(options.figures)
        folder.mkdir(parents=True, exist_ok=True)
        drawn = [o.experiment.figure(o) for o in outcomes if o.experiment.figure is not None and o.runs]
        for figure in filter(None, drawn):
            for ending in FORMATS:
                figure.save(folder / f"{figure.name}.{ending}")
        print(f"pictures written to {options.figures}")
    if options.report:
        write_page(options.report, outcomes)
        print(f"page written to {options.report}")
