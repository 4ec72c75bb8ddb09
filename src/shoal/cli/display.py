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
from shoal.files.messages import plural
from shoal.learner import Learner

SHOWN_OF_LABELS = ("error", "auc", "log_loss", "brier", "calibration_error", "f1_positive", "f1_negative")
SHOWN = (*SHOWN_OF_LABELS, "pinball", "mae", "rmse", "explained_variance")
NAMES = 12  # of columns in one line
CLASSES = 20  # in a table
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
        chosen: bool = False,
    ) -> None:
        self._fraction, self._quiet, self._chosen = fraction, quiet, chosen  # chosen: whether the user named the scores
        self._name = next(iter(contestants))
        self._others = [name for name in contestants if name != self._name]
        self._title, self._learner, self._assumed = title, learner, assumed
        self._widths: list[int] = []  # of the columns, once the header is printed
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
        if not self._widths:
            titles = [title.format(error=label(first), main=f"macro-{label(main)}") for title in COLUMNS]
            self._widths = [max(12, len(title) + 2) for title in titles]
            self._print("".join(f"{title:>{width}}" for title, width in zip(titles, self._widths, strict=True)))
        speed = point.rows / point.seconds if point.seconds > 0 else float("nan")
        values = (point.overall[first], point.since_last[first], point.macro[main])
        cells = (f"{point.rows:,}", f"{point.tasks:,}", *map(number, values), f"{speed:,.0f}")
        self._print("".join(f"{cell:>{width}}" for cell, width in zip(cells, self._widths, strict=True)))

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
            self.say(f"\nstopped by {stopped} after {plural(rows, 'row')}; these are their scores")
        first = next(iter(evaluations.values()))
        usual = [] if self._chosen else [name for name in SHOWN if name in first.overall]
        if any(name in PROBABILITIES for name in usual):
            usual = [name for name in usual if not name.startswith("f1")]
        self.say("\n" + "\n".join(_score_table(evaluations, usual or list(first.overall))))
        if self._chosen:
            self.say("\n" + "\n".join([self._name, *first.scores_as_text(), *_class_table(first)]))
        if verdict is not None:
            self.say(f"\n{verdict}")
        found = [
            *notes,
            *dict.fromkeys(note for evaluation in evaluations.values() for note in evaluation.notes),
        ]
        if found:
            self.say("\n" + "\n".join(f"- {note}" for note in grouped(found)))
        self.say("")


def grouped(notes: list[str]) -> list[str]:
    """Join the notes `column: text` that have the same text into one line."""
    columns: dict[str, list[str]] = {}
    for note in notes:
        column, colon, text = note.partition(": ")
        columns.setdefault(text if colon else "", []).append(column if colon else note)
    loose = columns.pop("", [])
    return [f"{_some(names)}: {text}" for text, names in columns.items()] + loose


def _some(names: list[str]) -> str:
    if len(names) <= NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: NAMES - 2])} and {len(names) - NAMES + 2} more"


def _listed(names: list[str], most: int = 5) -> str:
    """`a, b and c`, or the number of others."""
    if len(names) > most:
        return f"{len(names)} others"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _score_table(evaluations: dict[str, Evaluation], names: list[str]) -> list[str]:
    """A row per learner, the mean over tasks that judges beside the same over all rows; missing scores stay empty."""
    main = main_metric(next(iter(evaluations.values())))
    place = names.index(main) + 1 if main in names else len(names)
    titles = [label(name) for name in names]
    titles[place:place] = [f"macro-{label(main)}"]
    titles += ["updates", "seconds"]
    width = max(len(name) for name in evaluations) + 2
    wide = [max(11, len(title) + 2) for title in titles]
    lines = [" " * width + "".join(f"{title:>{n}}" for title, n in zip(titles, wide, strict=True))]
    for name, one in evaluations.items():
        scores = [one.overall.get(metric) for metric in names]
        scores[place:place] = [one.macro.get(main)]
        texts = ["" if score is None else number(score) for score in scores]
        texts += [f"{one.n_updates:,}", f"{one.wall_seconds:.2f}"]
        lines.append(f"{name:<{width}}" + "".join(f"{text:>{n}}" for text, n in zip(texts, wide, strict=True)))
    return lines


def _class_table(one: Evaluation) -> list[str]:
    """A row per class, those with most rows first; empty for two labels."""
    classes = sorted(one.per_class.items(), key=lambda item: -item[1]["rows"])[:CLASSES]
    lines = [f"{'class':<18}{'rows':>11}{'precision':>11}{'recall':>11}{'F1':>11}"] if classes else []
    for name, of in classes:
        scores = "".join(f"{number(of[key]):>11}" for key in ("precision", "recall", "f1"))
        lines.append(f"{name!s:<18.17}{of['rows']:>11,.0f}{scores}")
    return ["", *lines] if lines else []
