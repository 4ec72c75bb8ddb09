"""`FileStream`: the chunks of a file, with notes about its columns, its bad rows and its progress."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from shoal.engine.rounds import Chunk
from shoal.files.labels import Labels
from shoal.files.messages import BadRows, plural
from shoal.files.saved_state import State
from shoal.files.source import Sources


class Piece(NamedTuple):
    """A chunk, and the columns of `keep` for its rows."""

    chunk: Chunk
    kept: Any


class Reader(Protocol):
    """The common interface of the readers of tables, LIBSVM and VW."""

    @property
    def feature_names(self) -> list[str]: ...
    @property
    def feature_columns(self) -> list[str | None]: ...
    @property
    def unmatched(self) -> list[str]: ...
    def chunks(self) -> Iterator[Piece]: ...
    def meanings(self, row: int) -> Mapping[int, Any]: ...
    def notes(self) -> list[str]: ...
    def to_dict(self) -> State: ...


class FileStream(Iterator[Chunk]):
    """Chunks of a file or of several, read once from start to end; made by `open_stream`.

    Attributes
    ----------
    name : str
        The file, as messages call it.
    n_rows : int
        Good rows given so far.
    rows_total : int or None
        Rows of the file, where the format says (Parquet, Arrow).
    kept : polars.DataFrame or None
        The columns of `keep` for the rows of the last chunk.
    """

    def __init__(
        self,
        reader: Reader,
        labels: Labels,
        bad: BadRows,
        *,
        family: str,
        sources: Sources | None = None,
        rows_total: int | None = None,
    ) -> None:
        self.name = bad.name
        self.n_rows = 0
        self.rows_total = rows_total
        self.kept: Any = None
        self._reader, self._labels, self._bad = reader, labels, bad
        self._family, self._sources = family, sources
        self._pieces = reader.chunks()

    def __next__(self) -> Chunk:
        try:
            chunk, self.kept = next(self._pieces)
        except BaseException:
            self.close()
            raise
        self.n_rows += chunk.X.shape[0]
        return chunk

    def bound_labels(self, targets: Any) -> None:
        """From the next chunk on, accept the numbers that a learner's kind of targets does."""
        self._labels.bound(targets)

    @property
    def is_table(self) -> bool:
        """Are its rows those of a table, and not of LIBSVM or VW text?"""
        return self._family == "table"

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of X so far; they may become more while the stream goes."""
        return list(self._reader.feature_names)

    @property
    def feature_columns(self) -> list[str | None]:
        """The column of the table from which each feature comes; of other files each feature is a column."""
        return list(self._reader.feature_columns)

    @property
    def kind(self) -> str:
        """The kind of the labels: "binary", "multiclass" or "regression"; "auto" only if there was no row."""
        return self._labels.kind

    @property
    def labels_are_numbers(self) -> bool:
        """Whether the labels are numbers and no text, as far as the first rows say it."""
        return bool(self._labels.numeric)

    @property
    def labels_in_sample(self) -> int:
        """Distinct labels in the first rows; 0 if they did not have to be looked at."""
        return self._labels.n_found

    @property
    def classes(self) -> list[Any]:
        """The labels as they were given, or those that have been seen, sorted; none for regression."""
        return self._labels.in_order

    def as_written(self, labels: Iterable[Any]) -> list[Any]:
        """Labels, such as predicted ones, as the file wrote them."""
        return self._labels.as_written(labels)

    @property
    def classes_are_given(self) -> bool:
        """Whether there are no other labels than `classes`."""
        return self._labels.given

    @property
    def skipped(self) -> int:
        """How many bad rows were skipped."""
        return self._bad.count

    @property
    def bad_rows(self) -> list[str]:
        """Messages about the first few skipped rows: where they are, and why they are bad."""
        return list(self._bad.messages)

    @property
    def notes(self) -> list[str]:
        """Notes on the columns so far, a sentence each."""
        skipped = [f"{plural(self.skipped, 'bad row')} skipped"] if self.skipped else []
        return self._reader.notes() + skipped

    def meanings(self, row: int) -> Mapping[int, Any]:
        """Meanings of a row's features in the last chunk, by their columns of X; of a table without `read_ahead`."""
        return self._reader.meanings(row)

    @property
    def unmatched(self) -> list[str]:
        """Columns of a saved state that are absent, and unknown ones that are not used, a sentence each."""
        return list(self._reader.unmatched)

    @property
    def bytes_read(self) -> int | None:
        """Bytes read so far; None for Parquet and Arrow, which count rows."""
        return self._sources.bytes_read if self._sources else None

    @property
    def total_bytes(self) -> int | None:
        """Bytes of the files; None for standard input, URLs, Parquet and Arrow."""
        return self._sources.total_bytes if self._sources else None

    def to_dict(self) -> State:
        """The state with which `open_stream(..., state=...)` goes on with another file, exactly; JSON can hold it."""
        return {"family": self._family, "labels": self._labels.to_dict(), "reader": self._reader.to_dict()}

    def close(self) -> None:
        """Close the file; the end of the stream and errors do it too."""
        if isinstance(self._pieces, Generator):
            self._pieces.close()  # a thread that reads ahead has to end before its file is closed
        if self._sources is not None:
            self._sources.close()

    def __enter__(self) -> FileStream:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
