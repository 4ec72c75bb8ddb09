"""A question to whoever sits at the terminal; nobody is asked in a pipe or a script."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from shoal.cli.options import RowOptions
from shoal.cli.streams import Stream, open_data


def ask_kind(data: Sequence[str], rows: RowOptions, stream: Stream, *, quiet: bool) -> tuple[Stream, RowOptions]:
    """The stream and the options after asking whether labels that are many numbers are to be predicted as numbers.

    They stay as they are where the options say it, or where nobody can answer.
    """
    chosen = rows.regression or rows.classify or rows.labels
    if quiet or chosen or stream.file is None or stream.kind != "regression" or not _at_terminal():
        return stream, rows
    from rich.console import Console
    from rich.prompt import Confirm

    question = f"{rows.label or 'the label'} has many values: is it a number to predict (--regression)?"
    try:
        is_number = Confirm.ask(question, console=Console(stderr=True), default=True)
    except EOFError:
        return stream, rows
    if is_number:
        return stream, replace(rows, regression=True)
    stream.file.close()
    rows = replace(rows, classify=True)
    return open_data(data, rows, None, None), rows


def _at_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
