"""Results as files: everything as JSON (docs/json.md describes it), and a table with a row per task."""

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from shoal.cli.outputs import STDOUT
from shoal.evaluation import Comparison, Evaluation, Verdict
from shoal.evaluation.result import winners
from shoal.whole_file import whole_file

SCHEMA = 1  # to be increased when a name changes or goes
OF_ALL_ROWS = "calibration_error"  # no task has it alone
WRITERS = {".csv": "write_csv", ".parquet": "write_parquet", ".ndjson": "write_ndjson"}


def as_json(
    evaluations: Mapping[str, Evaluation], verdict: Verdict | None, *, data: str, notes: list[str], stopped: str | None
) -> dict[str, Any]:
    """The run as a dict of plain values; undefined scores are None."""
    first = next(iter(evaluations.values()))
    found = {
        "schema": SCHEMA,
        "data": data,
        "kind": first.kind,
        "rows": first.rows,
        "tasks": first.tasks,
        "stopped": stopped,
        "learners": {name: _learner(one) for name, one in evaluations.items()},
        "verdict": None if verdict is None else _verdict(verdict),
        "notes": notes,
    }
    values: dict[str, Any] = plain(found)
    return values


def _learner(one: Evaluation) -> dict[str, Any]:
    return {
        "class": type(one.learner).__name__,
        "parameters": {name: repr(value) for name, value in one.learner.get_params(deep=False).items()},
        "overall": one.overall,
        "standard_errors": one.standard_errors,
        "macro": one.macro,
        "last_rows": {"rows": min(one.window, one.rows), "overall": one.windowed, "macro": one.windowed_macro},
        "updates": one.n_updates,
        "queries": one.n_queries,
        "seconds": one.wall_seconds,
        "diverged": one.diverged,
        "history": [asdict(point) for point in one.history],
        "calibration": [found._asdict() for found in one.calibration],
        "confusion": [[true, guess, rows] for (true, guess), rows in one.confusion.items()],
        "classes": [{"class": name, **scores} for name, scores in one.per_class.items()],
        "notes": one.notes,
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "outcome": verdict.outcome,
        "clear": verdict.is_clear,
        "sentence": verdict.sentence,
        "diverged": verdict.diverged,
        "harm": None if verdict.harm is None else verdict.harm._asdict(),
        "comparisons": [_comparison(found) for found in verdict.comparisons],
    }


def _comparison(found: Comparison) -> dict[str, Any]:
    return {
        "scope": found.scope,
        "metric": found.metric,
        "macro": found.macro,
        "tasks": found.tasks,
        "outcome": found.outcome,
        "best": found.best,
        "scores": found.scores,
        "best_minus": {name: asdict(one) for name, one in found.differences.items()},
        "gains": {name: asdict(one) for name, one in found.gains.items()},
        "losing": found.losing,
    }


def plain(value: Any) -> Any:
    """The value in JSON's types: NumPy's numbers as Python's; None for NaN and infinity."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def write_json(path: str, found: Mapping[str, Any]) -> None:
    """Write the dict; "-" is standard output."""
    text = json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if path == STDOUT:
        sys.stdout.write(text)
        return
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


def write_tasks(path: str, evaluations: Mapping[str, Evaluation]) -> None:
    """Write a row per task: its rows, the learner's updates and scores, the others' scores, and the winner."""
    import polars as pl

    name, first = next(iter(evaluations.items()))
    won = winners(first)
    records = []
    for task, values in first.per_task.items():
        record: dict[str, Any] = {"task": str(task), **values}
        for other, one in evaluations.items():
            if other != name:
                scores = one.per_task[task]
                record |= {f"{other}_{metric}": score for metric, score in scores.items() if metric != "rows"}
        record = {column: value for column, value in record.items() if not column.endswith(OF_ALL_ROWS)}
        records.append(record | ({"sharing": won[task].way, "weight": won[task].weight} if task in won else {}))
    frame = pl.DataFrame(records, infer_schema_length=None)
    write = WRITERS[ending(path, "--tasks-out")]
    with whole_file(path) as part:
        getattr(frame, write)(part)


def ending(path: str, option: str) -> str:
    """The ending of the name, which decides the format."""
    found = Path(path).suffix.lower()
    if found not in WRITERS:
        raise ValueError(f"{option} {path} must end in {', '.join(WRITERS)}")
    return found
