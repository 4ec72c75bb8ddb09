"""`shoal compare`: learners side by side in one pass, with ranks and significance; `--tune` tunes them first."""

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import chain
from typing import Any

from sklearn.base import is_classifier

from shoal.cli.commands.learners import make_learner
from shoal.cli.display import Display, grouped
from shoal.cli.options import CompareOptions, RowOptions
from shoal.cli.outputs import STDOUT, check_folder, check_outputs
from shoal.cli.results import SCHEMA, as_json, plain, write_json
from shoal.cli.sharded import on_cluster
from shoal.cli.signals import Stop
from shoal.cli.streams import Stream, ask_kind, fitting, is_dataset, open_data, protocol_of, warmed_up
from shoal.engine.rounds import Chunk
from shoal.evaluation import Evaluation, Orders, SearchResult, compare_orders, progressive_validate, search
from shoal.evaluation.learner_ranks import Standing, conclusion, standings
from shoal.evaluation.result import label, number
from shoal.evaluation.tuning import GRIDS
from shoal.learner import Learner
from shoal.model.slicing import joined, len_of, rows_of

OF_LABELS = ("HedgedSharing", "MultitaskPerceptron", "OSMTL", "CollaborativePA", "PassiveAggressive")
OF_NUMBERS = ("HedgedSharingRegressor", "MultitaskRegressor", "PassiveAggressiveRegressor")
N_DRAWS = 10  # combinations of hyper-parameters tried for each learner
SEED = 0


def compare_learners(data: Sequence[str], rows: RowOptions, options: CompareOptions) -> int:
    """The whole command; returns the exit code."""
    if not data:
        raise ValueError("shoal compare takes files, - for standard input, or dataset:NAME")
    if options.tune is not None and options.tune < 10:
        raise ValueError(f"--tune takes a number of rows, 10 or more, got {options.tune}")
    if options.cluster is not None and options.tune is None:
        raise ValueError("--cluster is for the tries of --tune; the comparison itself is one pass in this process")
    seeds = _seeds(options)
    inputs = [] if is_dataset(data) else [name for name in data if name != STDOUT]
    check_folder("--export", options.export)
    check_outputs({"--report": options.report, "--json": options.json}, inputs)
    named = _contestants(options.learners)
    stream = open_data(data, rows, next(iter(named.values()), None), None)
    quiet = options.quiet or options.json == STDOUT
    if not named:
        stream, rows = ask_kind(data, rows, stream, quiet=quiet)
    usual = OF_NUMBERS if stream.kind == "regression" else OF_LABELS
    chosen = named or _contestants(usual)
    contestants = {name: fitting(one, stream, forecasts=len(rows.forecast)) for name, one in chosen.items()}
    tuned: dict[str, SearchResult] = {}
    if options.tune is not None:
        head, stream = split_stream(stream, options.tune)
        shows = sys.stderr.isatty() and not quiet
        with on_cluster(options.cluster):
            found = {name: _tuned(name, one, head, progress=shows) for name, one in contestants.items()}
        tuned = {name: one for name, one in found.items() if one is not None}
        best = {name: _with(contestants[name], one.best_params) for name, one in tuned.items()}
        contestants = {**contestants, **best}
    first = next(iter(contestants.values()))
    has_metrics = bool(options.metrics)
    display = Display(stream.title, first, contestants, stream.fraction, [], quiet=quiet, chosen=has_metrics)
    if options.tune is not None:
        display.say("\n".join([*_tuning_lines(tuned, contestants, options.tune), ""]))
    if seeds:
        return _over_orders(stream, contestants, seeds, options, tuned, display)
    with Stop().on_signals() as stop:
        evaluations = _pass(stream, contestants, options, display, stop)
        placed = standings(evaluations)
        display.say("\n" + "\n".join(standing_lines(placed)))
        display.summary(evaluations, None, stream.notes(), stopped=stop.name)
        _write(options, stream, evaluations, placed, tuned, stop, display)
    return stop.exit_code


def _seeds(options: CompareOptions) -> list[int]:
    """One an order; none for the rows' own order."""
    if options.seeds is None:
        return list(range(options.shuffles or 0))
    found: list[int] = []
    try:
        for part in options.seeds.split(","):
            first, _, last = part.partition("-")
            found += range(int(first), int(last or first) + 1)
    except ValueError:
        raise ValueError(f"--seeds takes numbers from 0 on, as in 0-29 or 3,7,11, got {options.seeds!r}") from None
    if options.shuffles not in (None, len(found)):
        raise ValueError(f"--seeds {options.seeds} are {len(found)} orders, and --shuffles says {options.shuffles}")
    return found


def _over_orders(
    stream: Stream,
    contestants: dict[str, Learner],
    seeds: list[int],
    options: CompareOptions,
    tuned: dict[str, SearchResult],
    display: Display,
) -> int:
    """Compare over random orders of the rows, and write the results."""
    stream = stream.begun()
    protocol = protocol_of(options, stream) | {"n_jobs": options.jobs}
    shows = sys.stderr.isatty() and not options.quiet
    display.say(f"{len(contestants)} learners on {stream.title}, in {len(seeds)} random orders of its rows\n")
    found = compare_orders(contestants, stream.chunks, seeds=seeds, progress=shows, **protocol)
    display.say(f"{found}\n")
    first = next(iter(found.evaluations.values()))[0]
    if options.json:
        head = {
            "schema": SCHEMA,
            "data": stream.title,
            "kind": first.kind,
            "rows": first.rows,
            "tasks": first.history[-1].tasks,
        }
        write_json(
            options.json,
            plain(head | _orders_as_json(found) | {"tuning": _tuning(tuned, options), "notes": stream.notes()}),
        )
        display.say(f"results written to {options.json}")
    if options.report:
        from shoal.report import write_order_report

        title = f"{len(contestants)} learners on {stream.title}, {len(seeds)} orders"
        write_order_report(options.report, found, title=title, notes=grouped(stream.notes()))
        display.say(f"report written to {options.report}")
    _export(options, found, display)
    return 0


def _orders_as_json(found: Orders) -> dict[str, Any]:
    return {
        "seeds": found.seeds,
        "metric": found.metric,
        "learners": {
            name: {"overall": [one.overall for one in of], "macro": [one.macro for one in of]}
            for name, of in found.evaluations.items()
        },
        "places": [one._asdict() | {"is_clear": one.is_clear} for one in found.places],
        "critical_difference": found.critical_difference,
        "conclusion": found.conclusion,
    }


def _export(options: CompareOptions, found: Any, display: Display) -> None:
    if options.export:
        from shoal.report import export

        display.say(f"{len(export(found, options.export))} tables and pictures written to {options.export}")


def _tuning(tuned: dict[str, SearchResult], options: CompareOptions) -> dict[str, Any]:
    return {
        name: {"rows": options.tune, "best": one.best_params, "score": one.best_score} for name, one in tuned.items()
    }


def _contestants(texts: Iterable[str]) -> dict[str, Learner]:
    """Learners by the texts that name them."""
    found: dict[str, Learner] = {}
    for text in texts:
        name, *settings = text.split(":")
        if settings and "=" not in settings[0]:  # my_file:MyLearner
            name = f"{name}:{settings.pop(0)}"
        if text in found:
            raise ValueError(f"--learners names {text} twice")
        found[text] = make_learner(name, settings)
    kinds = {is_classifier(learner) for learner in found.values()}
    if len(kinds) > 1:
        raise ValueError("--learners must be all for labels or all for numbers (`shoal learners` lists them)")
    return found


def _pass(
    stream: Stream, contestants: dict[str, Learner], options: CompareOptions, display: Display, stop: Stop
) -> dict[str, Evaluation]:
    stream = stream.begun()
    protocol = protocol_of(options, stream)
    chunks = stop.until(warmed_up(stream.chunks, contestants, **protocol))
    with display:
        return progressive_validate(
            contestants, chunks, **protocol, on_checkpoint=display.checkpoint, on_rows=display.rows
        )


# ---- tuning ------------------------------------------------------------------------------------------------


def split_stream(stream: Stream, n: int) -> tuple[Chunk, Stream]:
    """The first n rows, and the stream of the others."""
    chunks, head, have = iter(stream.chunks), None, 0
    rest: list[Chunk] = []
    for chunk in chunks:
        take = min(n - have, len_of(chunk.y))
        piece = Chunk(*(rows_of(part, 0, take) for part in chunk))
        head = piece if head is None else Chunk(*(_joined(a, b) for a, b in zip(head, piece, strict=True)))
        have += take
        if take < len_of(chunk.y):
            rest = [Chunk(*(rows_of(part, take, len_of(chunk.y)) for part in chunk))]
        if have == n:
            break
    if head is None or have < n:
        raise ValueError(f"--tune {n}: the stream has only {have:,} rows, and some must be left to compare on")
    total = None if stream.total_rows is None else stream.total_rows - n
    return head, replace(stream, chunks=_not_empty(chain(rest, chunks), n), total_rows=total)


def _joined(head: Any, tail: Any) -> Any:
    return None if tail is None else joined(head, tail)


def _not_empty(chunks: Iterator[Chunk], n: int) -> Iterator[Chunk]:
    empty = True
    for chunk in chunks:
        empty = False
        yield chunk
    if empty:
        raise ValueError(f"--tune {n}: the stream has no more rows, and some must be left to compare on")


def _tuned(name: str, learner: Learner, first: Chunk, *, progress: bool) -> SearchResult | None:
    """The best hyper-parameters on the first rows, shuffled and each predicted before it is learned."""
    given = {setting.partition("=")[0] for setting in name.split(":")[1:]}
    grid = {key: values for key, values in GRIDS.get(type(learner).__name__, {}).items() if key not in given}
    if not grid:
        return None
    how: dict[str, Any] = {"parameters": grid, "n_draws": N_DRAWS, "validation": "shuffle", "random_state": SEED}
    how |= {"metric": "auc" if is_classifier(learner) else "rmse"}
    try:
        return search(learner, first.X, first.y, first.task, sample_weight=first.weight, progress=progress, **how)
    except ValueError as error:
        raise ValueError(f"--tune: {name} cannot be tuned on these rows: {error}") from None


def _with(learner: Learner, parameters: dict[str, Any]) -> Learner:
    return type(learner)(**{**learner.get_params(deep=False), **parameters})


def _tuning_lines(tuned: dict[str, SearchResult], contestants: dict[str, Learner], n: int) -> list[str]:
    width = max(map(len, contestants)) + 2
    lines = [f"tuned on the first {n:,} rows, which are left out of the scores"]
    for name in contestants:
        if name in tuned:
            best = ", ".join(f"{key}={value!r}" for key, value in sorted(tuned[name].best_params.items()))
            tries = f"{len(tuned[name].trials)} tried, {label(tuned[name].metric)} {number(tuned[name].best_score)}"
            lines.append(f"  {name:<{width}}{best} ({tries})")
        else:
            lines.append(f"  {name:<{width}}nothing to tune")
    return lines


# ---- results -------------------------------------------------------------------------------------------


def standing_lines(placed: list[Standing]) -> list[str]:
    """A table of ranks, then its conclusion."""
    title = f"macro-{label(placed[0].metric)}"
    width = max(len(one.name) for one in placed) + 2
    titles = ("rank", title, "mean rank", "behind", "±", "p")
    lines = [" " * width + "".join(f"{text:>11}" for text in titles)]
    for one in placed:
        if one.rank is None:
            why = "no score" if one.diverged is None else f"diverged at row {one.diverged:,}"
            lines.append(f"{one.name:<{width}}{'':>11}  {why}")
            continue
        gap = ("", "", "") if one.rank == 1 else (number(one.behind), _error(one.standard_error), f"{one.p_value:.2g}")
        texts = (str(one.rank), number(one.score), f"{one.mean_rank:.2f}", *gap)
        lines.append(f"{one.name:<{width}}" + "".join(f"{text:>11}" for text in texts))
    return [*lines, conclusion(placed)]


def _error(value: float) -> str:
    return "" if math.isnan(value) else number(value)


def _write(
    options: CompareOptions,
    stream: Stream,
    evaluations: dict[str, Evaluation],
    placed: list[Standing],
    tuned: dict[str, SearchResult],
    stop: Stop,
    display: Display,
) -> None:
    if options.json:
        found = as_json(evaluations, None, data=stream.title, notes=stream.notes(), stopped=stop.name)
        found["standings"] = plain([{**asdict(one), "is_clear": one.is_clear} for one in placed])
        found["tuning"] = plain(_tuning(tuned, options))
        write_json(options.json, found)
        display.say(f"results written to {options.json}")
    if options.report or options.export:
        evaluations = stream.with_columns(evaluations)
    if options.report:
        from shoal.report import write_report

        title = f"{len(evaluations)} learners on {stream.title}"
        write_report(options.report, evaluations, ranking=placed, title=title, notes=grouped(stream.notes()))
        display.say(f"report written to {options.report}")
    _export(options, evaluations, display)
