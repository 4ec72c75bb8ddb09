"""Predictions as a file, written during the stream: CSV, NDJSON, Parquet, or CSV on standard output."""

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from shoal.cli.outputs import STDOUT
from shoal.cli.results import ending
from shoal.engine.rounds import Chunk
from shoal.evaluation.predictions import Predictions
from shoal.files import FileStream
from shoal.whole_file import whole_file


class PredictionFile:
    """Takes predictions chunk by chunk; the file appears at the end of the block, if the block succeeds."""

    def __init__(self, path: str, option: str = "--predictions") -> None:
        self._path = path
        self._ending = ".csv" if path == STDOUT else ending(path, option)
        self._stack = ExitStack()
        self._has_header = False
        self._texts: set[str] = set()  # text columns, which the scan must not read as numbers
        self._part: Path | None = None
        self._out: IO[str] = sys.stdout

    def __enter__(self) -> Self:
        if self._path != STDOUT:
            self._part = self._stack.enter_context(whole_file(self._path))
            self._out = self._stack.enter_context(self._part.open("w", encoding="utf-8", newline=""))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._part is not None and self._ending == ".parquet":
            self._as_parquet(self._part)
        self._stack.__exit__(kind, error, trace)

    def write(self, found: Predictions, kept: Any = None) -> None:
        """Append rows; the columns of `kept` (a polars frame) come first."""
        import polars as pl

        frame = pl.DataFrame(_columns(found), strict=False)
        if kept is not None and kept.width:
            kept = kept.rename({name: f"{name} of the file" for name in kept.columns if name in frame.columns})
            frame = pl.concat([kept, frame], how="horizontal")
        self._texts.update(frame.select(pl.col(pl.String)).columns)
        if self._ending == ".ndjson":
            self._out.write(frame.write_ndjson())
        else:
            self._out.write(frame.write_csv(include_header=not self._has_header))
            self._has_header = True

    def _as_parquet(self, part: Path) -> None:
        """Rewrite the part, which is CSV so far; a scan does so in constant memory."""
        import polars as pl

        self._out.flush()
        with whole_file(part) as again:
            texts = dict.fromkeys(self._texts, pl.String)
            pl.scan_csv(part, infer_schema_length=None, schema_overrides=texts).sink_parquet(again)


class KeptColumns:
    """Columns of a file that wait until the rows beside them are predicted: readers are ahead of learners.

    Parameters
    ----------
    names : sequence of str
        The columns, which the stream keeps (`ReadOptions.keep`).
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._waiting: deque[Any] = deque()

    def of(self, chunks: Iterator[Chunk], file: FileStream) -> Iterator[Chunk]:
        """The chunks; the columns of each wait from then on."""
        for chunk in chunks:
            self._waiting.append(file.kept.select(self._names))
            yield chunk

    def take(self, n: int) -> Any:
        """The columns of the next n rows, as a frame of polars; None if there are no columns to keep."""
        if not self._names:
            return None
        import polars as pl

        taken = []
        while n:
            frame = self._waiting.popleft()
            taken.append(frame.head(n))
            if frame.height > n:
                self._waiting.appendleft(frame.slice(n))
            n -= taken[-1].height
        return pl.concat(taken)


def as_written(found: Predictions, write: Callable[[list[Any]], list[Any]]) -> Predictions:
    """Predictions with the labels as the file wrote them."""
    return found._replace(
        predicted=write(found.predicted),
        label=None if found.label is None else write(found.label),
        labels=None if found.labels is None else [write(labels) for labels in found.labels],
    )


def _columns(found: Predictions) -> dict[str, list[Any]]:
    """The columns of the file; task and label only if the stream has them."""
    columns: dict[str, list[Any]] = {}
    if found.task is not None:
        columns["task"] = [str(task) for task in found.task]
    if found.label is not None:
        columns["label"] = found.label
    columns["predicted"] = found.predicted
    if found.probability is not None:
        columns["probability"] = found.probability.tolist()
    elif found.decision is not None:
        columns["decision"] = found.decision.tolist()
    if found.interval is not None:
        columns["low"], columns["high"] = found.interval.T.tolist()
    if found.quantiles is not None:
        columns |= {f"quantile {level}": values.tolist() for level, values in found.quantiles.items()}
    if found.labels is not None:
        columns["set"] = ["|".join(map(str, labels)) for labels in found.labels]
    if found.is_known is not None:
        columns["known_task"] = found.is_known
    return columns
