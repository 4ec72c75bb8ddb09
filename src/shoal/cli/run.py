"""`shoal run`: progressive validation of a learner and its baselines over a stream, then the verdict."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.base import is_classifier

from shoal.cli.catalogue import make_learner
from shoal.cli.display import Display
from shoal.cli.options import RunOptions
from shoal.cli.warm_up import warmed_up
from shoal.engine.rounds import Chunk
from shoal.evaluation import compare, progressive_validate
from shoal.files import FileStream, open_stream
from shoal.files.targets import Target
from shoal.learner import Learner, load_with_companion

DATASET = "dataset:"
DEFAULT_LEARNER = "HedgedSharing"


@dataclass
class Stream:
    """The chunks, and what is known about them."""

    chunks: Iterator[Chunk]
    classes: list[Any] | None
    title: str
    total_rows: int | None
    file: FileStream | None

    def fraction(self, rows: int) -> float | None:
        """How much of the stream has been read."""
        if self.total_rows:
            return rows / self.total_rows
        if self.file is not None and self.file.total_bytes:
            return (self.file.bytes_read or 0) / self.file.total_bytes
        return None

    def notes(self) -> list[str]:
        """What was done with the columns, and the bad rows that were skipped."""
        return [] if self.file is None else [*self.file.notes, *self.file.bad_rows]


def run_stream(data: str, options: RunOptions) -> None:
    """The whole command."""
    _check_outputs(options)
    learner, companion = _learner(options)
    contestants = {type(learner).__name__: learner}
    if options.baselines and not options.load:
        contestants |= learner.baselines()
    stream = _open(data, options, learner, companion)
    display = Display(stream.title, learner, contestants, stream.fraction)
    with display:
        protocol: dict[str, Any] = {"window": options.window, "delay": options.delay, "classes": stream.classes}
        evaluations = progressive_validate(
            contestants, warmed_up(stream.chunks, contestants, **protocol), **protocol,
            on_checkpoint=display.checkpoint, on_rows=display.rows,
        )  # fmt: skip
    verdict = None
    if len(evaluations) == 3:
        main, independent, pooled = evaluations.values()
        verdict = compare(main, independent=independent, pooled=pooled)
    display.summary(evaluations, verdict, stream.notes())
    _write(options, stream, evaluations, verdict, learner)


def _learner(options: RunOptions) -> tuple[Learner, Any]:
    if options.load is None:
        return make_learner(options.learner or DEFAULT_LEARNER, list(options.settings)), None
    if options.learner or options.settings:
        raise ValueError("--load brings its learner and hyper-parameters; leave out --learner and --set")
    return load_with_companion(options.load)


def _open(data: str, options: RunOptions, learner: Learner, companion: Any) -> Stream:
    if data.startswith(DATASET):
        return _open_dataset(data, options, learner)
    kind: Target = "binary" if is_classifier(learner) else "regression"
    file = open_stream(
        data, task=options.task, label=options.label, kind=kind, format=options.format,
        skip_bad=options.skip_bad, text=options.text, numeric=options.numeric, ignore=options.ignore,
        labels=options.labels or None, state=companion, ahead=True,
    )  # fmt: skip
    name = "standard input" if data == "-" else Path(data).name
    # Once the file's two labels are known, learners need not wait for the second to know what the first means.
    return Stream(file, _classes(options, learner, companion), name, file.rows_total, file)


def _classes(options: RunOptions, learner: Learner, companion: Any) -> list[Any] | None:
    if not options.labels or not is_classifier(learner) or companion is not None:
        return None
    try:
        return [float(label) for label in options.labels]
    except ValueError:
        return list(options.labels)


def _open_dataset(name: str, options: RunOptions, learner: Learner) -> Stream:
    if options.task or options.label or options.format or options.text or options.numeric or options.ignore:
        raise ValueError("a built-in data set has its task and label: leave out --task, --label and the column options")
    from shoal.datasets import load as load_dataset

    data = load_dataset(name.removeprefix(DATASET))
    if (data.kind == "binary") != is_classifier(learner):
        raise ValueError(
            f"{name} is {data.kind}; {type(learner).__name__} is for "
            f"{'two labels' if is_classifier(learner) else 'real targets'} (`shoal learners` lists all)"
        )
    return Stream(data.stream(), None, data.name, len(data), None)


def _check_outputs(options: RunOptions) -> None:
    """A folder that is not there is said before hours of learning, not after."""
    for name, path in (("--save", options.save), ("--report", options.report)):
        folder = Path(path or ".").parent
        if not folder.is_dir():
            raise FileNotFoundError(f"the folder {folder} for {name} does not exist; make it first")


def _write(options: RunOptions, stream: Stream, evaluations: Any, verdict: Any, learner: Learner) -> None:
    if options.save:
        learner.save(options.save, companion=None if stream.file is None else stream.file.to_dict())
        print(f"model saved to {options.save} ({os.path.getsize(options.save):,} bytes)")
    title = f"{type(learner).__name__} on {stream.title}"
    if options.report:
        from shoal.report import write_report

        write_report(options.report, evaluations, verdict=verdict, title=title, notes=stream.notes())
        print(f"report written to {options.report}")
    if options.figures:
        from shoal.report import save_figures

        save_figures(options.figures, evaluations)
        print(f"pictures written to {options.figures}")
