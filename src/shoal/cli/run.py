"""`shoal run`: progressive validation of a learner and its baselines over a stream, then the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sklearn.base import is_classifier

from shoal.cli.catalogue import make_learner
from shoal.cli.display import Display
from shoal.cli.model_file import Reading, load_model, save_model
from shoal.cli.options import RunOptions
from shoal.cli.outputs import STDOUT, check_folder, check_outputs
from shoal.cli.predictions import PredictionFile
from shoal.cli.results import as_json, ending, write_json, write_tasks
from shoal.cli.stopping import Stop
from shoal.cli.warm_up import warmed_up
from shoal.engine.rounds import Chunk
from shoal.evaluation import Evaluation, Verdict, compare, progressive_validate
from shoal.files import FileStream, open_stream
from shoal.files.targets import Target
from shoal.learner import Learner

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
    names: tuple[str, ...] = ()  # of the features of a built-in data set

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


def run_stream(data: str, options: RunOptions) -> int:
    """The whole command; returns the exit code."""
    _check(data, options)
    learner, reading = _learner(options)
    if reading is not None:
        options = replace(options, task=options.task or reading.task, label=options.label or reading.label)
    contestants = {type(learner).__name__: learner}
    if options.baselines and not options.load:
        contestants |= learner.baselines()
    stream = open_data(data, options, learner, reading)
    quiet = options.quiet or STDOUT in (options.json, options.predictions)
    display = Display(stream.title, learner, contestants, stream.fraction, quiet=quiet)
    with Stop().on_signals() as stop:
        evaluations = _pass(stream, contestants, options, display, stop)
        verdict = None
        if len(evaluations) == 3:
            main, independent, pooled = evaluations.values()
            verdict = compare(main, independent=independent, pooled=pooled)
        display.summary(evaluations, verdict, stream.notes(), stopped=stop.name)
        _write(options, stream, evaluations, verdict, stop, say=display.say)
    return stop.exit_code


def _pass(
    stream: Stream, contestants: dict[str, Learner], options: RunOptions, display: Display, stop: Stop
) -> dict[str, Evaluation]:
    """One pass over the stream, to its end or to the stop."""
    protocol: dict[str, Any] = {"window": options.window, "delay": options.delay, "classes": stream.classes}
    learner = next(iter(contestants.values()))
    chunks = stop.until(warmed_up(stream.chunks, contestants, **protocol))
    saved = 0

    def on_rows(rows: int) -> None:
        nonlocal saved
        display.rows(rows)
        if options.save_every and rows >= saved + options.save_every:
            _save(options, stream, learner)
            saved = rows

    with ExitStack() as stack:
        stack.enter_context(display)
        file = stack.enter_context(PredictionFile(options.predictions)) if options.predictions else None
        return progressive_validate(
            contestants, chunks, **protocol, on_checkpoint=display.checkpoint, on_rows=on_rows,
            on_predictions=None if file is None else file.write,
        )  # fmt: skip


def _learner(options: RunOptions) -> tuple[Learner, Reading | None]:
    if options.load is None:
        return make_learner(options.learner or DEFAULT_LEARNER, list(options.settings)), None
    if options.learner or options.settings:
        raise ValueError("--load brings its learner and hyper-parameters; leave out --learner and --set")
    return load_model(options.load)


def open_data(data: str, options: RunOptions, learner: Learner, reading: Reading | None) -> Stream:
    if data.startswith(DATASET):
        return _open_dataset(data, options, learner)
    kind: Target = "binary" if is_classifier(learner) else "regression"
    file = open_stream(
        data, task=options.task, label=options.label, kind=kind, format=options.format,
        skip_bad=options.skip_bad, text=options.text, numeric=options.numeric, ignore=options.ignore,
        labels=options.labels or None, state=None if reading is None else reading.state, read_ahead=True,
    )  # fmt: skip
    name = "standard input" if data == "-" else Path(data).name
    # Once the file's two labels are known, learners need not wait for the second to know what the first means.
    return Stream(file, _classes(options, learner, reading), name, file.rows_total, file)


def _classes(options: RunOptions, learner: Learner, reading: Reading | None) -> list[Any] | None:
    if not options.labels or not is_classifier(learner) or reading is not None:
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
    return Stream(data.stream(), None, data.name, len(data), None, data.feature_names)


def _check(data: str, options: RunOptions) -> None:
    """What cannot be written is said before hours of learning, not after."""
    outputs = {
        "--save": options.save, "--report": options.report, "--predictions": options.predictions,
        "--tasks-out": options.tasks_out, "--json": options.json,
    }  # fmt: skip
    inputs = [None if data == STDOUT or data.startswith(DATASET) else data]
    check_outputs(outputs, inputs)
    check_folder("--figures", options.figures)
    for option in ("--predictions", "--tasks-out"):
        if outputs[option] not in (None, STDOUT):
            ending(str(outputs[option]), option)
    if options.save_every is not None and (options.save is None or options.save_every < 1):
        raise ValueError("--save-every takes a number of rows, 1 or more, and needs --save")
    if options.json == options.predictions == STDOUT:
        raise ValueError("--json and --predictions cannot both be standard output")


def _save(options: RunOptions, stream: Stream, learner: Learner) -> Path:
    return save_model(str(options.save), learner, stream.file or stream.names, task=options.task, label=options.label)


def _write(
    options: RunOptions, stream: Stream, evaluations: dict[str, Evaluation], verdict: Verdict | None, stop: Stop,
    *, say: Callable[[str], None],
) -> None:  # fmt: skip
    learner = next(iter(evaluations.values())).learner
    if options.save:
        path = _save(options, stream, learner)
        say(f"model saved to {options.save} ({path.stat().st_size:,} bytes)")
    if options.predictions and options.predictions != STDOUT:
        say(f"predictions written to {options.predictions}")
    if options.tasks_out:
        write_tasks(options.tasks_out, evaluations)
        say(f"tasks written to {options.tasks_out}")
    if options.json:
        found = as_json(evaluations, verdict, data=stream.title, notes=stream.notes(), stopped=stop.name)
        write_json(options.json, found)
        say(f"results written to {options.json}")
    if options.report:
        from shoal.report import write_report

        title = f"{type(learner).__name__} on {stream.title}"
        write_report(options.report, evaluations, verdict=verdict, title=title, notes=stream.notes())
        say(f"report written to {options.report}")
    if options.figures:
        from shoal.report import save_figures

        save_figures(options.figures, evaluations)
        say(f"pictures written to {options.figures}")
