"""What is typed becomes options; what the library says of its options, the program says of its own."""

from __future__ import annotations

import ast
import inspect
import shlex
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from shoal.cli import options as declared
from shoal.cli.app import app
from shoal.cli.options import RowOptions, RunOptions, in_options


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("sort= needs time=, the column", "--sort needs --time, the column"),
        ("hash_bits=60, expected 1 to 24", "--hash-bits 60, expected 1 to 24"),
        ("which numeric=['price'] would read", "which --numeric 'price' would read"),
        ("labels=['a', 'b'], but", "--labels ['a', 'b'], but"),
        ("both in text= and in date=", "both in --text and in --date"),
        ("(kind='multiclass' takes more)", "(--classify takes more)"),
        ("another; pass classes=[...]", "another; pass --labels"),
        ("label 'time=5' is a third one", "label 'time=5' is a third one"),  # what stands in a file is no option
        ("context=1, the time is 5", "context=1, the time is 5"),
    ],
)
def test_options_are_called_as_they_are_typed(said: str, expected: str) -> None:
    assert in_options(said) == expected


def test_no_help_has_the_line_breaks_of_the_source() -> None:
    """Finding 44: "[default: five" ended a line, and four spaces began the next."""
    code = ast.parse(inspect.getsource(declared))
    said = [
        part.value.value
        for one in code.body
        if isinstance(one, ast.ClassDef)
        for part in one.body[1:]
        if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
    ]
    assert len(said) > 80
    assert [text for text in said if "\n" in str(text)] == []


def test_what_is_typed_becomes_options() -> None:
    typed = "run a.csv b.csv --text t --text u --regression --set C=1 --set p=2 --no-baselines --json - --task"
    _, bound, _ = app.parse_args([*shlex.split(typed), 'shop, "a, b"'], print_error=False, exit_on_error=False)
    assert bound.args == ("a.csv", "b.csv")
    found: Any = bound.kwargs
    rows, run = found["rows"], found["options"]
    assert rows == RowOptions(task=("shop", "a, b"), text=("t", "u"), regression=True)
    assert rows.given() == {"task": ("shop", "a, b"), "text": ("t", "u"), "regression": True}
    assert run == RunOptions(settings=("C=1", "p=2"), baselines=False, json="-")


BY_DEFAULT: dict[str, dict[str, Any]] = {  # beside None, () and False
    "RunOptions": {"new_columns": 0, "window": 1000, "delay": 0, "baselines": True, "shards": 1},
    "PredictOptions": {"out": "-"},
    "CompareOptions": {"window": 1000, "delay": 0, "jobs": 1},
    "ExplainOptions": {"rows": 3, "top": 10},
    "ServeOptions": {
        "host": "127.0.0.1", "port": 8000, "shards": 1, "shadows": True, "snapshot_rows": 1_000_000,
        "snapshot_seconds": 300.0, "keep": 3, "keep_models": 3, "label_wait": 168.0, "new_tasks": 10_000,
        "new_columns": 0, "max_tasks": 10_000_000,
    },
    "PassOptions": {"window": 1000, "delay": 0},
    "ReproduceOptions": {"jobs": 1, "backend": "loky"},
}  # fmt: skip


def test_what_is_not_typed_has_the_value_that_the_help_says() -> None:
    """Nobody may change it: one object serves all runs of a process."""
    kinds = [
        kind
        for name, kind in vars(declared).items()
        if name.endswith("Options") and kind.__module__ == declared.__name__
    ]
    assert len(kinds) == 9
    for kind in kinds:
        required = {"model": "m"} if kind.__name__ in ("PredictOptions", "ExplainOptions") else {}
        made = kind(**required)
        others = {field.name: getattr(made, field.name) for field in fields(kind) if field.name not in required}
        expected = BY_DEFAULT.get(kind.__name__, {})
        assert {name: value for name, value in others.items() if value or name in expected} == expected
        assert {name for name, value in others.items() if value not in (None, (), False)} <= {*expected}
        with pytest.raises(FrozenInstanceError):
            setattr(made, fields(kind)[0].name, None)
