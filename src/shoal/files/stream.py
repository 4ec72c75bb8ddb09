"""The stream of a file as its users see it: chunks, what was done with the columns, how far it is."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Protocol

from shoal.engine.rounds import Chunk
from shoal.files.bad_rows import BadRows
from shoal.files.source import ByteSource
from shoal.files.targets import Labels, State


class Reader(Protocol):
    """What the readers of tables, LIBSVM and VW have in common."""

    @property
    def feature_names(self) -> list[str]: ...
    def chunks(self) -> Iterator[Chunk]: ...
    def notes(self) -> list[str]: ...
    def to_dict(self) -> State: ...


class FileStream(Iterator[Chunk]):
    """Chunks of a file, read once from start to end; made by `open_stream`.

    Attributes
    ----------
    name : str
        The file, as messages call it.
    n_rows : int
        Good rows given so far.
    rows_total : int or None
        Rows of the file, where the format says (Parquet, Arrow).
    """

    def __init__(
        self,
        reader: Reader,
        labels: Labels,
        bad: BadRows,
        *,
        family: str,
        source: ByteSource | None = None,
        rows_total: int | None = None,
    ) -> None:
        self.name = bad.name
        self.n_rows = 0
        self.rows_total = rows_total
        self._reader, self._labels, self._bad = reader, labels, bad
        self._family, self._source = family, source
        self._chunks = reader.chunks()

    def __next__(self) -> Chunk:
        try:
            chunk = next(self._chunks)
        except BaseException:
            self.close()
            raise
        self.n_rows += len(chunk.y)
        return chunk

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of X so far; they may become more while the stream goes."""
        return list(self._reader.feature_names)

    @property
    def classes(self) -> list[Any]:
        """The labels of a binary stream, sorted: those that were given, or that have been seen."""
        return sorted(self._labels.classes)

    @property
    def skipped(self) -> int:
        """How many bad rows were skipped."""
        return self._bad.count

    @property
    def bad_rows(self) -> list[str]:
        """Where the first few skipped rows are, and what was wrong with them."""
        return list(self._bad.messages)

    @property
    def notes(self) -> list[str]:
        """What was done with the columns so far, a sentence each."""
        skipped = [f"{self.skipped} bad rows skipped"] if self.skipped else []
        return self._reader.notes() + skipped

    @property
    def bytes_read(self) -> int | None:
        """Bytes read so far; None for Parquet and Arrow, which count rows."""
        return self._source.bytes_read if self._source else None

    @property
    def total_bytes(self) -> int | None:
        """Bytes of the file; None for standard input, Parquet and Arrow."""
        return self._source.total_bytes if self._source else None

    def to_dict(self) -> State:
        """What `open_stream(..., state=...)` needs to go on with another file, exactly; JSON can hold it."""
        return {"family": self._family, "labels": self._labels.to_dict(), "features": self._reader.to_dict()}

    def close(self) -> None:
        """Close the file; the end of the stream and errors do it too."""
        if isinstance(self._chunks, Generator):
            self._chunks.close()  # a thread that reads ahead must end before its file is closed
        if self._source is not None:
            self._source.close()

    def __enter__(self) -> FileStream:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
