"""`shoal run`: progressive validation of a learner and its baselines over a stream, then the verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from shoal.cli import sharded
from shoal.cli.asking import ask_kind
from shoal.cli.catalogue import make_learner
from shoal.cli.display import Display, grouped
from shoal.cli.options import RowOptions, RunOptions
from shoal.cli.outputs import STDOUT, check_folder, check_outputs
from shoal.cli.predictions import PredictionFile
from shoal.cli.results import as_json, ending, write_json, write_tasks
from shoal.cli.stopping import Stop
from shoal.cli.streams import Stream, fitting, is_dataset, open_data, remember
from shoal.cli.warm_up import warmed_up
from shoal.evaluation import Evaluation, Verdict, compare, progressive_validate
from shoal.learner import Learner
from shoal.model_file import Reading, load_baselines, load_model, save_model

SHOWN_TASKS = 5
DEFAULT, DEFAULT_OF_NUMBERS = "HedgedSharing", "HedgedSharingRegressor"


def run_stream(data: Sequence[str], rows: RowOptions, options: RunOptions) -> int:
    """The whole command; returns the exit code."""
    _check(data, options)
    learner, reading = _chosen(options)
    stream = open_data(data, rows, learner, reading, _carried(learner, options))
    quiet = options.quiet or STDOUT in (options.json, options.predictions)
    if learner is None:
        stream, rows = ask_kind(data, rows, stream, quiet=quiet)
        name = DEFAULT_OF_NUMBERS if stream.kind == "regression" else DEFAULT
        learner = make_learner(name, list(options.settings))
    learner = fitting(learner, stream, is_new=reading is None)
    if sharded.is_sharded(options):
        with sharded.on_shards(learner, options) as cluster:
            name = type(cluster.learner).__name__
            return _run(sharded.announced(stream, cluster), {name: cluster}, rows, options, reading)
    contestants = {type(learner).__name__: learner}
    if options.baselines:
        contestants |= load_baselines(options.load) if options.load else learner.baselines()
    return _run(stream, contestants, rows, options, reading)


def _run(
    stream: Stream, contestants: dict[str, Learner], rows: RowOptions, options: RunOptions, reading: Reading | None
) -> int:
    quiet = options.quiet or STDOUT in (options.json, options.predictions)
    learner, *others = contestants.values()
    remembered = remember(rows, reading)
    assumed = _assumed(stream, rows, options)
    if options.load and options.baselines and not others and not sharded.is_sharded(options):
        assumed.append("there will be no verdict: the model was saved without its baselines")
    display = Display(stream.title, learner, contestants, stream.fraction, assumed, quiet=quiet)
    known = list(next(iter(contestants.values())).tasks_) if options.load else []
    with Stop().on_signals() as stop:
        evaluations = _pass(stream, contestants, options, remembered, display, stop)
        verdict = None
        if len(evaluations) == 3:
            main, independent, pooled = evaluations.values()
            verdict = compare(main, independent=independent, pooled=pooled)
        said = [*_strange_tasks(stream, known, next(iter(evaluations.values()))), *stream.notes()]
        display.summary(evaluations, verdict, said, stopped=stop.name)
        notes = [*assumed, *said]
        _write(options, stream, evaluations, verdict, stop, remembered, notes, say=display.say)
    return stop.exit_code


def _pass(
    stream: Stream, contestants: dict[str, Learner], options: RunOptions, remembered: dict[str, Any],
    display: Display, stop: Stop,
) -> dict[str, Evaluation]:  # fmt: skip
    """One pass over the stream, to its end or to the stop."""
    saved = 0

    def on_rows(rows: int) -> None:
        nonlocal saved
        display.rows(rows)
        if options.save_every and rows >= saved + options.save_every:
            _save(str(options.save), contestants, stream, remembered)
            saved = rows

    with ExitStack() as stack:
        stack.enter_context(display)
        stream = stream.begun()
        protocol: dict[str, Any] = {"window": options.window, "delay": options.delay, "classes": stream.classes}
        chunks = stop.until(warmed_up(stream.chunks, sharded.plain(contestants), **protocol))
        file = stack.enter_context(PredictionFile(options.predictions)) if options.predictions else None
        return progressive_validate(
            contestants, chunks, **protocol, on_checkpoint=display.checkpoint, on_rows=on_rows,
            on_predictions=None if file is None else lambda found: file.write(stream.as_written(found)),
        )  # fmt: skip


def _chosen(options: RunOptions) -> tuple[Learner | None, Reading | None]:
    """The learner that is named or loaded; None if the labels have to say which."""
    if options.load is None:
        learner = make_learner(options.learner or DEFAULT, list(options.settings))  # wrong settings are told now
        return learner if options.learner else None, None
    if options.learner or options.settings:
        raise ValueError("--load brings its learner and hyper-parameters; leave out --learner and --set")
    if sharded.is_folder(options.load):
        return sharded.opened(options.load, options.cluster, options.shards)
    return load_model(options.load)


def _carried(learner: Any, options: RunOptions) -> list[str]:
    """The column that says which tasks live together."""
    column = options.assign or getattr(learner, "assign", None)
    return [column] if isinstance(column, str) else []


def _assumed(stream: Stream, rows: RowOptions, options: RunOptions) -> list[str]:
    """What the first rows decided about the labels, and the option that decides otherwise."""
    if stream.file is None or options.load or rows.regression or rows.classify or rows.labels:
        return []
    name = rows.label or "the label"
    if stream.kind == "regression" and options.learner is None:
        return [f"{name} has many values, so it is predicted as a number; --classify takes each as a label"]
    if stream.kind == "multiclass":
        instead = "; --regression predicts it as a number" if stream.file.labels_are_numbers else ""
        return [f"{name} has more than two values, so each is learned against the rest{instead}"]
    return []


def _strange_tasks(stream: Stream, known: Sequence[Any], evaluation: Evaluation) -> list[str]:
    """What to say if the model that went on knew none of the tasks: most likely they were called otherwise before."""
    found = [task for task in evaluation.per_task if task is not None]
    if not known or not found or not set(found).isdisjoint(known):
        return []
    return [f"no task of {stream.title} ({_some(found)}) was known to the model, whose tasks are {_some(known)}"]


def _some(tasks: Sequence[Any]) -> str:
    shown = ", ".join(repr(task) for task in tasks[:SHOWN_TASKS])
    return f"{shown} and {len(tasks) - SHOWN_TASKS:,} more" if len(tasks) > SHOWN_TASKS else shown


def _check(data: Sequence[str], options: RunOptions) -> None:
    """What cannot be written is said before hours of learning, not after."""
    outputs = {
        "--save": options.save, "--report": options.report, "--predictions": options.predictions,
        "--tasks-out": options.tasks_out, "--json": options.json,
    }  # fmt: skip
    sharded.check(options)
    if sharded.is_sharded(options):
        check_folder("--save", outputs.pop("--save"))
    check_outputs(outputs, [] if is_dataset(data) else [name for name in data if name != STDOUT])
    check_folder("--figures", options.figures)
    for option in ("--predictions", "--tasks-out"):
        if outputs[option] not in (None, STDOUT):
            ending(str(outputs[option]), option)
    if options.save_every is not None and (options.save is None or options.save_every < 1):
        raise ValueError("--save-every takes a number of rows, 1 or more, and needs --save")
    if options.json == options.predictions == STDOUT:
        raise ValueError("--json and --predictions cannot both be standard output")


def _save(path: str, contestants: dict[str, Learner], stream: Stream, remembered: dict[str, Any]) -> int:
    """Write the model, or the models of shards; return the bytes."""
    reading = None if stream.file is None else Reading(remembered, stream.file.to_dict())
    learner = next(iter(contestants.values()))
    if not isinstance(learner, Learner):
        return sharded.save(path, learner, reading)
    return save_model(path, contestants, reading, stream.names).stat().st_size


def _write(
    options: RunOptions, stream: Stream, evaluations: dict[str, Evaluation], verdict: Verdict | None, stop: Stop,
    remembered: dict[str, Any], notes: list[str], *, say: Callable[[str], None],
) -> None:  # fmt: skip
    contestants = {name: one.learner for name, one in evaluations.items()}
    if options.save:
        size = _save(options.save, contestants, stream, remembered)
        say(f"model saved to {options.save} ({size:,} bytes)")
    if options.predictions and options.predictions != STDOUT:
        say(f"predictions written to {options.predictions}")
    if options.tasks_out:
        write_tasks(options.tasks_out, evaluations)
        say(f"tasks written to {options.tasks_out}")
    if options.json:
        found = as_json(evaluations, verdict, data=stream.title, notes=notes, stopped=stop.name)
        write_json(options.json, found)
        say(f"results written to {options.json}")
    if options.report:
        from shoal.report import write_report

        title = f"{next(iter(contestants))} on {stream.title}"
        write_report(options.report, evaluations, verdict=verdict, title=title, notes=grouped(notes))
        say(f"report written to {options.report}")
    if options.figures:
        from shoal.report import save_figures

        save_figures(options.figures, evaluations)
        say(f"pictures written to {options.figures}")
