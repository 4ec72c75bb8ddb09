"""`shoal reproduce`: lists the papers' experiments, runs them, prints ours beside theirs."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from joblib import parallel_config
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from shoal.cli.jobs import on_cluster
from shoal.papers.claims.table import as_text, judged
from shoal.papers.experiment import Experiment
from shoal.papers.fairness import edges
from shoal.papers.library import experiments
from shoal.papers.outcome import Outcome
from shoal.papers.page import write_page
from shoal.papers.running import OnProgress, recall, reproduce, state
from shoal.papers.text import lines
from shoal.report.figures import FORMATS

BACKENDS = ("loky", "threading", "multiprocessing", "dask")


@dataclass(frozen=True)
class Options:
    """What the command line said."""

    ids: list[str]
    everything: bool
    quick: bool
    claims: bool
    n_jobs: int
    backend: str
    cluster: str | None
    report: str | None
    figures: str | None


def reproduce_papers(options: Options) -> int:
    """The whole command; the exit code is 1 if a setting was chosen on an edge of its grid."""
    known = experiments()
    if options.claims:
        return _judge_claims(known, options.report)
    wanted = _wanted(options, known)
    if not wanted:
        _list(known, options.quick)
        return 0
    if options.report and not Path(options.report).parent.is_dir():
        raise FileNotFoundError(f"the folder {Path(options.report).parent} for --report does not exist; make it first")
    if options.cluster is not None and (options.n_jobs != 1 or options.backend != "loky"):
        raise ValueError("--cluster takes all cores of the cluster: leave out --jobs and --backend")
    outcomes = []
    n_jobs = options.n_jobs if options.cluster is None else None
    with _backend(options.backend), on_cluster(options.cluster), _bars() as bars:
        for i, experiment in enumerate(wanted):
            outcome = reproduce(
                experiment, quick=options.quick, n_jobs=n_jobs,
                on_progress=_bar(bars, f"{experiment.id} ({i + 1} of {len(wanted)})"),
            )  # fmt: skip
            _print(bars, "\n".join([*lines(outcome), ""]))
            outcomes.append(outcome)
    _write(options, outcomes)
    return 0 if options.quick else _check_edges(outcomes)


def _wanted(options: Options, known: dict[str, Experiment]) -> list[Experiment]:
    """The experiments asked for, a paper's name standing for all of its own."""
    if options.everything:
        return list(known.values())
    found = []
    for name in options.ids:
        mine = [experiment for experiment in known.values() if name in (experiment.id, experiment.paper)]
        if not mine:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            raise ValueError(f"there is no experiment {name!r}{hint}; `shoal reproduce` lists them")
        found += mine
    return [known[name] for name in dict.fromkeys(experiment.id for experiment in found)]


def _list(known: dict[str, Experiment], quick: bool) -> None:
    width = max(map(len, known)) + 2
    print(f"{'experiment':<{width}}{'state':<14}{'one core':>9}  title")
    for experiment in known.values():
        found = state(experiment, quick)
        left = experiment.seconds * (1 - found.done / max(found.total, 1))
        time = "" if found.done >= found.total else _time(left)
        print(f"{experiment.id:<{width}}{found!s:<14}{time:>9}  {experiment.title}")
        if found.missing:
            print(f"{'':<{width}}{'':<25}without {', '.join(found.missing)}")
    print("\nshoal reproduce ID runs one, a paper's name all of its own, --all everything; --quick small pieces of it.")


def _judge_claims(known: dict[str, Experiment], report: str | None) -> int:
    outcomes = [recall(experiment) for experiment in known.values()]
    if report:
        write_page(report, outcomes)
    print("\n".join(as_text(judged(outcomes, known))))
    return _check_edges(outcomes)


def _check_edges(outcomes: list[Outcome]) -> int:
    """Say which settings lie on an edge; the exit code. Experiments that share runs have settings in common."""
    found = dict.fromkeys(str(edge) for outcome in outcomes for edge in edges(outcome))
    n = len({pair for outcome in outcomes for pair in outcome.tuned})
    print(f"{len(found)} of {n} chosen settings lie on an edge of their grid.")
    print("".join(f"- {edge}\n" for edge in found), end="")
    return 1 if found else 0


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


@contextmanager
def _backend(name: str) -> Iterator[None]:
    """A backend of joblib."""
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
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("left"), TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal,
    ) as bars:  # fmt: skip
        yield bars


def _bar(bars: Progress, name: str) -> OnProgress:
    """A line of the display; the second stage (after the choice of parameters) starts it anew."""
    line = bars.add_task(name, total=None)

    def move(done: int, total: int) -> None:
        bars.update(line, completed=done, total=total, visible=done < total)

    return move


def _print(bars: Progress, text: str) -> None:
    if bars.disable:
        print(text, flush=True)
    else:  # the bar lives on stderr: clear it while the table goes to stdout
        bars.stop()
        print(text, flush=True)
        bars.start()


def _write(options: Options, outcomes: list[Outcome]) -> None:
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
