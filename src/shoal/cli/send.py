"""`shoal send`: the rows of a file into a service, each once, however often it is sent."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from shoal.files.formats import SPARSE, choose_format
from shoal.files.paths import find_files
from shoal.files.tables.batches import Batch, regroup
from shoal.files.tables.parts import Parts
from shoal.serve.client import Client

ROWS = 2_000  # of a request
TOKEN = "SHOAL_TOKEN_WRITE"


def send_files(data: Sequence[str], url: str, *, format: str | None, delimiter: str | None) -> None:
    """The whole command.

    A request's key is the name and size of the files and the number of its first row, so rows that were sent before are
    acknowledged and not learned again.
    """
    paths = find_files(list(data))
    kind = choose_format(paths, format)
    if kind in SPARSE:
        raise ValueError(f"{paths[0]} is {kind} text, which has no columns; a service takes rows of tables")
    parts = Parts(paths, kind, delimiter, ())
    identity = hashlib.blake2b(repr([(Path(path).name, _size(path)) for path in paths]).encode(), digest_size=12)
    rows = repeated = 0
    console = Console(stderr=True)
    try:
        with Client(url, os.environ.get(TOKEN)) as client, Progress(console=console, transient=True) as progress:
            bar = progress.add_task("sending", total=parts.rows_total)
            for batch in regroup(parts.batches(), ROWS):
                _refuse_problems(batch, paths)
                if len(batch.lines) == 0:
                    continue
                key = f"{identity.hexdigest()}/{rows}"
                receipt = client.learn(batch.frame.to_dicts() if parts.strings else batch.frame, key)
                rows += receipt.rows
                repeated += receipt.rows if receipt.repeated else 0
                progress.update(bar, completed=rows, description=f"{rows:,} rows")
    finally:
        parts.close()
    again = f", of which {repeated:,} had been sent before" if repeated else ""
    console.print(f"{rows:,} rows are in the log of {url}{again}", highlight=False, soft_wrap=True)


def _refuse_problems(batch: Batch, paths: list[str]) -> None:
    if batch.problems:
        line, problem = batch.problems[0]
        raise ValueError(f"{paths[0]}, line {line}: {problem}; the rows before were sent")


def _size(path: str) -> int:
    return os.path.getsize(path) if os.path.exists(path) else 0
