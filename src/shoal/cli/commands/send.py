"""`shoal send`: the rows of a file into a service; sent again, they are not learned again."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.progress import Progress

from shoal.files.messages import plural
from shoal.files.options import ReadOptions
from shoal.files.paths import SPARSE, choose_format, find_files
from shoal.files.tables import column_kinds
from shoal.files.tables.batches import Batch, regroup
from shoal.files.tables.table_files import TableFiles
from shoal.files.tables.values_in_text import Notation
from shoal.serve.client import Client

ROWS = 2_000  # in a request
TOKEN = "SHOAL_TOKEN_WRITE"


def send_files(data: Sequence[str], url: str, *, format: str | None, delimiter: str | None, decimal: str) -> None:
    """The whole command.

    The key of a request is a hash of the files' names and sizes, and the number of its first row. So the service
    recognizes rows that were sent before: it acknowledges them and does not learn them again.
    """
    paths = find_files(list(data))
    kind = choose_format(paths, format, has_columns=True)
    if kind in SPARSE:
        raise ValueError(f"{paths[0]} is {kind} text, which has no columns; a service takes rows of tables")
    parts = TableFiles(paths, kind, ReadOptions(delimiter=delimiter))
    identity = hashlib.blake2b(repr([(Path(path).name, _size(path)) for path in paths]).encode(), digest_size=12)
    rows = repeated = 0
    console = Console(stderr=True)
    try:
        with Client(url, os.environ.get(TOKEN)) as client, Progress(console=console, transient=True) as progress:
            commas = DecimalCommas(client.model()) if decimal == "," and parts.strings else None
            bar = progress.add_task("sending", total=parts.rows_total)
            for batch in regroup(parts.batches(), ROWS):
                _refuse_problems(batch, paths)
                if len(batch.lines) == 0:
                    continue
                key = f"{identity.hexdigest()}/{rows}"
                frame = batch.frame if commas is None else commas.replaced(batch.frame)
                receipt = client.learn(frame.to_dicts() if parts.strings else frame, key)
                rows += receipt.rows
                repeated += receipt.rows if receipt.repeated else 0
                progress.update(bar, completed=rows, description=f"{rows:,} rows")
    finally:
        parts.close()
    again = f", of which {repeated:,} had been sent before" if repeated else ""
    console.print(
        f"{plural(rows, 'row')} {'is' if rows == 1 else 'are'} in the log of {url}{again}",
        highlight=False,
        soft_wrap=True,
    )


class DecimalCommas:
    """Converts numbers with a decimal comma for the service, which reads decimal points.

    Parameters
    ----------
    model : mapping
        The service's description of its model. It knows the kinds of most columns; the kind of a new column is decided
        as the service will decide it, from the first rows that have a value.
    """

    def __init__(self, model: Mapping[str, Any]) -> None:
        self._is_numeric = {name: kind == "numeric" for name, kind in model["columns"].items()}
        names = [*model["task"], *([] if model["kind"] == "regression" else [model["label"]])]
        self._is_numeric |= dict.fromkeys(names, False)

    def replaced(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The frame with points and commas exchanged in columns of numbers."""
        for column in frame:
            if column.name not in self._is_numeric:
                way = column_kinds.decide(column, Notation(decimal=","))
                if way is not None:
                    self._is_numeric[column.name] = way.kind == "numeric"
        numeric = [name for name in frame.columns if self._is_numeric.get(name)]
        return frame.with_columns(pl.col(numeric).str.replace_many([",", "."], [".", ","]))


def _refuse_problems(batch: Batch, paths: list[str]) -> None:
    if batch.problems:
        line, problem = batch.problems[0]
        raise ValueError(f"{paths[0]}, line {line}: {problem}; the rows before were sent")


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0
