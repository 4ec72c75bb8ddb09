"""`shoal run`: progressive validation of a learner and its baselines over a stream, then the verdict."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from shoal.cli import sharded
from shoal.cli.commands.learners import learner_within, make_learner, modules_from_here, name_of
from shoal.cli.compiling import compiled_in_two
from shoal.cli.display import Display, grouped
from shoal.cli.guards import guard_of, harmed
from shoal.cli.intervals import covered, with_interval
from shoal.cli.options import RowOptions, RunOptions
from shoal.cli.outputs import STDOUT, check_folder, check_outputs
from shoal.cli.predictions import KeptColumns, PredictionFile
from shoal.cli.results import as_json, ending, write_json, write_tasks
from shoal.cli.signals import Stop
from shoal.cli.streams import (
    Stream,
    ask_kind,
    fitting,
    is_dataset,
    open_data,
    protocol_of,
    reading_of,
    remember,
    warmed_up,
)
from shoal.cli.targets import with_target
from shoal.evaluation import Evaluation, ModelAdapter, Verdict, compare, progressive_validate
from shoal.evaluation.verdict import NEEDED
from shoal.learner import Learner
from shoal.model_file import Reading, load_baselines, load_model, save_model
from shoal.wrappers.hierarchy import Hierarchy
from shoal.wrappers.inner import wrappers_of

SHOWN_TASKS = 5
DEFAULT, DEFAULT_OF_NUMBERS = "HedgedSharing", "HedgedSharingRegressor"


def run_stream(data: Sequence[str], rows: RowOptions, options: RunOptions) -> int:
    """The whole command; returns the exit code."""
    _check(data, options)
    if options.hierarchy and not options.load and len(rows.task) < 2:
        raise ValueError("--hierarchy needs two columns of --task or more, as in --task country,shop")
    learner, reading = _chosen(options)
    likely = make_learner(DEFAULT, list(options.settings)) if learner is None else learner_within(learner)
    is_sharded = sharded.is_sharded(options)
    with compiled_in_two(None if is_sharded else likely) as compile_rest:
        run = _opened(data, rows, options, learner, reading)
        compile_rest(learner_within(run.learner), run.stream.first)
    if not is_sharded:
        return run.run()
    with sharded.on_shards(run.learner, options) as cluster:
        shards = {type(cluster.learner).__name__: cluster}
        return replace(run, stream=sharded.announced(run.stream, cluster), contestants=shards).run()


def _opened(
    data: Sequence[str], rows: RowOptions, options: RunOptions, learner: Learner | None, reading: Reading | None
) -> "_Run":
    """The data, and the learner and its baselines as they take it."""
    kept = list(dict.fromkeys([*_carried(learner, options), *options.keep]))
    columns = {"keep": kept, "strict": options.strict, "new_columns": options.new_columns}
    if options.load and learner is not None and not is_dataset(data):
        reading = reading_of(data, rows, options.load, learner, reading)
    stream = open_data(data, rows, learner, reading, **columns)
    if learner is None:
        stream, rows = ask_kind(data, rows, stream, quiet=_is_quiet(options), **columns)
        name = DEFAULT_OF_NUMBERS if stream.kind == "regression" else DEFAULT
        learner = make_learner(name, list(options.settings))
    waiting = KeptColumns(options.keep)
    if options.keep and stream.file is not None:
        stream = replace(stream, chunks=waiting.of(stream.chunks, stream.file))
    stream = stream.judged()
    learner = with_target(learner, options.target, stream.title, options.load)
    guard, hierarchy, forecasts = options.guard, options.hierarchy, len(rows.forecast)
    learner = fitting(learner, stream, guard=guard, hierarchy=hierarchy, forecasts=forecasts, is_new=reading is None)
    if guard and guard_of(learner) is None:
        raise ValueError(f"{options.load} was learned without a guard: shoal run --guard learns one from rows")
    if hierarchy and not any(isinstance(one, Hierarchy) for one in wrappers_of(learner)):
        raise ValueError(f"{options.load} was learned without a hierarchy: shoal run --hierarchy learns one from rows")
    contestants = {name_of(learner): learner} if sharded.is_sharded(options) else _contestants(learner, options)
    return _Run(stream, contestants, rows, options, reading, waiting)


def _contestants(learner: Learner, options: RunOptions) -> dict[str, Learner]:
    """The learner and its baselines, by name."""
    found = {name_of(learner): with_interval(learner, options.interval, options.load)}
    is_own = isinstance(learner, ModelAdapter)
    if options.save and is_own:
        raise ValueError(f"--save writes learners of shoal only; {name_of(learner)} is a model of another kind")
    if options.baselines and not is_own:
        found |= _loaded_baselines(options) if options.load else learner.baselines()
    return found


@dataclass(frozen=True)
class _Run:
    """A learner and its baselines on a stream: the pass over its rows, then the outputs."""

    stream: Stream
    contestants: dict[str, Learner]
    rows: RowOptions
    options: RunOptions
    reading: Reading | None
    kept: KeptColumns

    @property
    def learner(self) -> Learner:
        """The one that is judged."""
        return next(iter(self.contestants.values()))

    def run(self) -> int:
        """Returns the exit code."""
        learner, *others = self.contestants.values()
        options, assumed = self.options, self._assumed()
        if options.load and options.baselines and not others and not sharded.is_sharded(options):
            assumed.append("there will be no verdict: the model was saved without its baselines")
        quiet, stream = _is_quiet(options), self.stream
        chosen = bool(options.metrics)
        display = Display(stream.title, learner, self.contestants, stream.fraction, assumed, quiet=quiet, chosen=chosen)
        known = list(learner.tasks_) if options.load else []
        with Stop().on_signals() as stop:
            evaluations = self._pass(display, stop)
            verdict = None
            if len(evaluations) == 3:
                main, independent, pooled = evaluations.values()
                verdict = compare(main, independent=independent, pooled=pooled)
            said = [
                *_strange_tasks(stream, known, next(iter(evaluations.values()))),
                *covered(learner),
                *harmed(learner),
                *stream.notes(),
            ]
            display.summary(evaluations, verdict, said, stopped=stop.name)
            self._write(evaluations, verdict, stop.name, [*assumed, *said], display)
        return stop.exit_code

    def _pass(self, display: Display, stop: Stop) -> dict[str, Evaluation]:
        """One pass over the stream, to its end or to the stop."""
        saved, options = 0, self.options

        def on_rows(rows: int) -> None:
            nonlocal saved
            display.rows(rows)
            if options.save_every and rows >= saved + options.save_every:
                self._save(str(options.save))
                saved = rows

        with ExitStack() as stack:
            stack.enter_context(display)
            stream = self.stream.begun()
            judged = "quantiles" if getattr(self.learner, "quantiles", ()) else stream.kind
            protocol = protocol_of(options, stream, NEEDED[judged])
            chunks = stop.until(warmed_up(stream.chunks, sharded.plain(self.contestants), **protocol))
            calls: dict[str, Any] = {"on_checkpoint": display.checkpoint, "on_rows": on_rows}
            if options.predictions:
                file = stack.enter_context(PredictionFile(options.predictions))
                calls["on_predictions"] = lambda found: file.write(
                    stream.as_written(found), self.kept.take(len(found.predicted))
                )
            found: dict[str, Evaluation] = progressive_validate(self.contestants, chunks, **protocol, **calls)
            return found

    def _save(self, path: str) -> int:
        """Write the model, or the models of shards; return the bytes."""
        stream, learner = self.stream, self.learner
        remembered = remember(self.rows, self.reading)
        reading = None if stream.file is None else Reading(remembered, stream.file.to_dict())
        if not isinstance(learner, Learner):
            return sharded.save(path, learner, reading)
        return save_model(path, self.contestants, reading, stream.names).stat().st_size

    def _write(
        self,
        evaluations: dict[str, Evaluation],
        verdict: Verdict | None,
        stopped: str | None,
        notes: list[str],
        display: Display,
    ) -> None:
        """Write all outputs that the options name."""
        options, data, say = self.options, self.stream.title, display.say
        if options.report or options.export or options.figures:
            evaluations = self.stream.with_columns(evaluations)
        if options.save:
            size = self._save(options.save)
            say(f"model saved to {options.save} ({size:,} bytes)")
        if options.predictions and options.predictions != STDOUT:
            say(f"predictions written to {options.predictions}")
        if options.tasks_out:
            write_tasks(options.tasks_out, evaluations)
            say(f"tasks written to {options.tasks_out}")
        if options.json:
            write_json(options.json, as_json(evaluations, verdict, data=data, notes=notes, stopped=stopped))
            say(f"results written to {options.json}")
        if options.report:
            from shoal.report import write_report

            title = f"{next(iter(evaluations))} on {data}"
            write_report(options.report, evaluations, verdict=verdict, title=title, notes=grouped(notes))
            say(f"report written to {options.report}")
        if options.export:
            from shoal.report import export

            say(f"{len(export(evaluations, options.export))} tables and pictures written to {options.export}")
        if options.figures:
            from shoal.report import save_figures

            save_figures(options.figures, evaluations)
            say(f"pictures written to {options.figures}")

    def _assumed(self) -> list[str]:
        """Notes: how the first rows decided about the labels, and the option that decides otherwise."""
        stream, rows = self.stream, self.rows
        if stream.file is None or self.options.load or rows.regression or rows.classify or rows.labels:
            return []
        name = rows.label or "the label"
        if stream.kind == "regression" and self.options.learner is None:
            return [f"{name} has many values, so it is predicted as a number; --classify takes each as a label"]
        if stream.kind == "multiclass":
            instead = "; --regression predicts it as a number" if stream.file.labels_are_numbers else ""
            return [f"{name} has more than two values, so each is learned against the rest{instead}"]
        return []


def _is_quiet(options: RunOptions) -> bool:
    return options.quiet or STDOUT in (options.json, options.predictions)


def _chosen(options: RunOptions) -> tuple[Learner | None, Reading | None]:
    """The named or loaded learner; None if the kind of labels has to decide."""
    if options.load is None:
        return make_learner(options.learner, list(options.settings)) if options.learner else None, None
    if options.learner or options.settings:
        raise ValueError("--load brings its learner and hyper-parameters; leave out --learner and --set")
    if sharded.is_folder(options.load):
        return sharded.opened(options.load, options.cluster, options.shards)
    with modules_from_here():
        return load_model(options.load, options.trusted)


def _loaded_baselines(options: RunOptions) -> dict[str, Learner]:
    with modules_from_here():
        return load_baselines(str(options.load), options.trusted)


def _carried(learner: Any, options: RunOptions) -> list[str]:
    """The column that says which tasks live together."""
    column = options.assign or getattr(learner, "assign", None)
    return [column] if isinstance(column, str) else []


def _strange_tasks(stream: Stream, known: Sequence[Any], evaluation: Evaluation) -> list[str]:
    """A note if the loaded model knew none of the tasks: most likely their ids were written otherwise before."""
    found = [task for task in evaluation.per_task if task is not None]
    if not known or not found or not set(found).isdisjoint(known):
        return []
    return [f"no task of {stream.title} ({_some(found)}) was known to the model, whose tasks are {_some(known)}"]


def _some(tasks: Sequence[Any]) -> str:
    shown = ", ".join(repr(task) for task in tasks[:SHOWN_TASKS])
    return f"{shown} and {len(tasks) - SHOWN_TASKS:,} more" if len(tasks) > SHOWN_TASKS else shown


def _check(data: Sequence[str], options: RunOptions) -> None:
    """Refuse outputs that cannot be written before hours of learning, not after."""
    outputs = {
        "--save": options.save,
        "--report": options.report,
        "--predictions": options.predictions,
        "--tasks-out": options.tasks_out,
        "--json": options.json,
    }
    sharded.check(options)
    of_one_process = {"--interval": options.interval, "--guard": options.guard, "--hierarchy": options.hierarchy}
    for option, given in of_one_process.items():
        if given and sharded.is_sharded(options):
            raise ValueError(f"{option} is for one process: leave out --shards")
    if options.keep and (options.predictions is None or is_dataset(data)):
        raise ValueError("--keep takes columns of a file, and writes them into --predictions")
    if sharded.is_sharded(options):
        check_folder("--save", outputs.pop("--save"))
    check_outputs(outputs, [] if is_dataset(data) else [name for name in data if name != STDOUT])
    check_folder("--figures", options.figures)
    check_folder("--export", options.export)
    for option in ("--predictions", "--tasks-out"):
        if outputs[option] not in (None, STDOUT):
            ending(str(outputs[option]), option)
    if options.save_every is not None and (options.save is None or options.save_every < 1):
        raise ValueError("--save-every takes a number of rows, 1 or more, and needs --save")
    if options.json == options.predictions == STDOUT:
        raise ValueError("--json and --predictions cannot both be standard output")
