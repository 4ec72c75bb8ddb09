"""The display of `shoal run`: a progress table as Vowpal Wabbit prints, a live bar on a terminal, the summary."""

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from shoal.evaluation import Checkpoint, Evaluation, Verdict
from shoal.evaluation.metrics.registry import PROBABILITIES
from shoal.evaluation.result import MAIN, label, main_metric, number
from shoal.learner import Learner

SHOWN_OF_LABELS = ("error", "auc", "log_loss", "brier", "calibration_error", "f1_positive", "f1_negative")
SHOWN = (*SHOWN_OF_LABELS, "mae", "rmse", "explained_variance")
NAMES = 12  # of columns in one line
COLUMNS = ("rows", "tasks", "{error}", "since last", "{main}", "rows/s")


class Display:
    """Lines on stdout (the table, the summary), the bar on stderr if that is a terminal."""

    def __init__(
        self,
        title: str,
        learner: Learner,
        contestants: dict[str, Learner],
        fraction: Callable[[int], float | None],
        assumed: list[str],
        *,
        quiet: bool = False,
    ) -> None:
        self._fraction, self._quiet = fraction, quiet
        self._name = next(iter(contestants))
        self._others = [name for name in contestants if name != self._name]
        self._title, self._learner, self._assumed = title, learner, assumed
        self._header_printed = False
        console = Console(stderr=True)
        done = TextColumn("{task.fields[rows]:,} rows"), BarColumn(), TextColumn("{task.percentage:>3.0f} %")
        times = TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()
        hidden = quiet or not console.is_terminal
        self._bar = Progress(*done, *times, console=console, transient=True, disable=hidden)
        self._line = self._bar.add_task("", total=None, rows=0)

    def __enter__(self) -> Self:
        others = f", next to {_listed(self._others)}" if self._others else ""
        self.say(f"{self._learner!r}{others}\non {self._title}; every row is predicted before it is learned")
        self.say("\n".join([*self._assumed, ""]))
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def rows(self, n: int) -> None:
        """Move the bar."""
        fraction = self._fraction(n)
        total = None if fraction is None else 1.0
        self._bar.update(self._line, rows=n, total=total, completed=fraction or 0.0)

    def checkpoint(self, points: dict[str, Checkpoint]) -> None:
        """Print a line of the table."""
        point = points[self._name]
        first = next(iter(point.overall))
        main = next((name for name in MAIN if name in point.macro), first)
        if not self._header_printed:
            titles = [title.format(error=label(first), main=f"macro-{label(main)}") for title in COLUMNS]
            self._print("".join(f"{title:>12}" for title in titles))
            self._header_printed = True
        speed = point.rows / point.seconds if point.seconds > 0 else float("nan")
        values = (point.overall[first], point.since_last[first], point.macro[main])
        numbers = "".join(f"{number(value):>12}" for value in values)
        self._print(f"{point.rows:>12,}{point.tasks:>12,}{numbers}{speed:>12,.0f}")

    def say(self, line: str) -> None:
        """Print a line, unless the run is quiet."""
        if not self._quiet:
            print(line, flush=True)

    def _print(self, line: str) -> None:
        if self._bar.disable or not sys.stdout.isatty():
            self.say(line)
        else:
            self._bar.console.print(line, highlight=False, markup=False)

    def summary(
        self, evaluations: dict[str, Evaluation], verdict: Verdict | None, notes: list[str], *, stopped: str | None
    ) -> None:
        """Print the scores of all learners, the verdict, and notes about the data."""
        rows = next(iter(evaluations.values())).rows
        if stopped is not None:
            self.say(f"\nstopped by {stopped} after {rows:,} rows; this is what they say")
        self.say("\n" + "\n".join(_score_table(evaluations)))
        if verdict is not None:
            self.say(f"\n{verdict}")
        said = [
            *notes,
            *dict.fromkeys(note for evaluation in evaluations.values() for note in evaluation.notes),
        ]
        if said:
            self.say("\n" + "\n".join(f"- {note}" for note in grouped(said)))
        self.say("")


def grouped(notes: list[str]) -> list[str]:
    """Join the notes `column: text` that have the same text into one line."""
    columns: dict[str, list[str]] = {}
    for note in notes:
        column, colon, said = note.partition(": ")
        columns.setdefault(said if colon else "", []).append(column if colon else note)
    loose = columns.pop("", [])
    return [f"{_some(names)}: {said}" for said, names in columns.items()] + loose


def _some(names: list[str]) -> str:
    if len(names) <= NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: NAMES - 2])} and {len(names) - NAMES + 2} more"


def _listed(names: list[str], most: int = 5) -> str:
    """`a, b and c`, or the number of others."""
    if len(names) > most:
        return f"{len(names)} others"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _score_table(evaluations: dict[str, Evaluation]) -> list[str]:
    """A row per learner; missing scores stay empty."""
    first = next(iter(evaluations.values()))
    main = main_metric(first)
    names = [name for name in SHOWN if name in first.overall] or list(first.overall)
    if any(name in first.overall for name in PROBABILITIES):
        names = [name for name in names if not name.startswith("f1")]
    titles = [*(label(name) for name in names), f"macro-{label(main)}", "updates", "seconds"]
    width = max(len(name) for name in evaluations) + 2
    wide = [max(11, len(title) + 2) for title in titles]
    lines = [" " * width + "".join(f"{title:>{n}}" for title, n in zip(titles, wide, strict=True))]
    for name, one in evaluations.items():
        scores = [*(one.overall.get(metric) for metric in names), one.macro.get(main)]
        texts = ["" if score is None else number(score) for score in scores]
        texts += [f"{one.n_updates:,}", f"{one.wall_seconds:.2f}"]
        lines.append(f"{name:<{width}}" + "".join(f"{text:>{n}}" for text, n in zip(texts, wide, strict=True)))
    return lines
