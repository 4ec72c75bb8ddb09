"""Any stream as pieces that cut no round and end exactly at the checkpoints.

Single rows are gathered into chunks first; rows that are dicts become sparse, and each new name gets the next column.
A learner of the simultaneous protocol forms its rounds anew in every call. So the last round of a chunk
is held back until the next chunk shows whether it is complete: how a stream is chunked does not matter.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from shoal.engine.arrays import IntArray
from shoal.engine.rounds import Chunk, starts_without_repeats
from shoal.model.slicing import joined, len_of, rows_of
from shoal.model.tasks import TaskIndex

ROWS_A_CHUNK = 1_000  # of single rows that are gathered


class Piece(NamedTuple):
    """Rows that are fed to the learners at once."""

    X: Any
    y: Any
    task: Any
    rounds: Any
    code: IntArray  # (n,) number of the row's task
    starts: IntArray | None  # (n_rounds + 1,) row offsets; None: each row is a round
    weight: Any = None  # (n,) weights of the rows; None: all are 1


class Row(NamedTuple):
    """One example of a stream of single examples."""

    x: Any  # dict of named features, or 1-d array
    y: Any
    task: Any

    @property
    def shape(self) -> tuple[Any, bool]:
        """Rows of equal shape can stand in one chunk."""
        return (None if isinstance(self.x, Mapping) else len(self.x), self.task is None)


def as_chunks(stream: Any, names: dict[str, int]) -> Iterator[Chunk]:
    """The stream's chunks; single rows `(x, y, task)`, x a dict or 1-d array, are gathered into chunks.

    Parameters
    ----------
    stream : iterable, or a data set with a `stream` method, or one chunk as a tuple `(X, y, task)`
    names : dict
        Gets the column of each feature name of dict rows.

    Raises
    ------
    ValueError
        If an item is neither a chunk nor a row.
    """
    rows: list[Row] = []
    if isinstance(stream, tuple) and 2 <= len(stream) <= 4 and _is_table(stream[0]):
        stream = [stream]
    for item in stream.stream() if hasattr(stream, "stream") else stream:
        row = None if isinstance(item, Chunk) else _as_row(item)
        if rows and (row is None or len(rows) == ROWS_A_CHUNK or row.shape != rows[0].shape):
            yield _gathered(rows, names)
            rows = []
        if row is None:
            yield Chunk(*item)
        else:
            rows.append(row)
    if rows:
        yield _gathered(rows, names)


def with_task(chunks: Iterable[Chunk], learners: Iterable[Any]) -> Iterator[Chunk]:
    """The chunks; those without tasks have them from the column that learners of tables (`task="shop"`) name."""
    named = {one.task for one in learners if isinstance(getattr(one, "task", None), str)}
    for chunk in chunks:
        column = next(iter(named)) if len(named) == 1 and chunk.task is None else None
        names = getattr(chunk.X, "column_names", getattr(chunk.X, "columns", ()))  # Arrow's, or a data frame's
        has_column = column is not None and column in names
        yield chunk._replace(task=np.asarray(chunk.X[column])) if has_column else chunk


class ClassWeights:
    """Weights of rows by their label: given, or "balanced".

    Balanced, as scikit-learn has it, of the rows so far: with n rows of k labels, n_c of them (this one counted) of the
    row's own label, the row weighs n / (k n_c). So every label weighs the same in the long run, the first rows too.

    Examples
    --------
    >>> [one] = ClassWeights("balanced").of([Chunk(None, np.array([0, 0, 1, 0]), None)])
    >>> one.weight.tolist()
    [1.0, 1.0, 1.5, 0.6666666666666666]
    """

    def __init__(self, class_weight: Mapping[Any, float] | str) -> None:
        if class_weight != "balanced" and not isinstance(class_weight, Mapping):
            raise ValueError(f'class_weight must be "balanced" or a dict of label -> weight, got {class_weight!r}')
        self._given = None if isinstance(class_weight, str) else dict(class_weight)
        self._rows: dict[Any, int] = {}

    def of(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """The chunks with these weights, times their own."""
        for chunk in chunks:
            weight = self._weights(np.asarray(chunk.y))
            yield chunk._replace(weight=weight if chunk.weight is None else weight * np.asarray(chunk.weight))

    def _weights(self, y: Any) -> Any:
        weights = np.empty(len(y))
        for i, label in enumerate(y.tolist()):
            self._rows[label] = n = self._rows.get(label, 0) + 1
            if self._given is None:
                weights[i] = sum(self._rows.values()) / (len(self._rows) * n)
            else:
                weights[i] = self._given.get(label, 1.0)
        return weights

    def notes(self) -> list[str]:
        """Labels that have a weight and no row."""
        unseen = [label for label in self._given or () if label not in self._rows]
        return [f"class_weight names {label!r}, a label that no row has" for label in unseen]


def _is_table(X: Any) -> bool:
    """Whether it has rows and columns, and is not itself a row or a chunk."""
    return len(getattr(X, "shape", ())) == 2 or (isinstance(X, list) and bool(X) and isinstance(X[0], list | dict))


def _as_row(item: Any) -> Row | None:
    """The item as a row, None if it is a chunk."""
    if not isinstance(item, tuple) or not 2 <= len(item) <= 4:
        kind = type(item).__name__
        raise ValueError(f"a stream holds chunks (X, y, task) or rows (x, y, task), got an item of type {kind}")
    x, y, task = item[0], item[1], item[2] if len(item) > 2 else None
    task = task.item() if isinstance(task, np.generic) else task  # ids as `tolist` gives those of arrays
    if isinstance(x, Mapping):
        return Row(x, y, task)
    x = np.asarray(x) if isinstance(x, list | tuple) else x
    return Row(x, y, task) if getattr(x, "ndim", 2) == 1 else None


def _gathered(rows: Sequence[Row], names: dict[str, int]) -> Chunk:
    X: Any = [row.x for row in rows]
    X = _sparse(X, names) if isinstance(X[0], Mapping) else np.stack(X)
    task = None if rows[0].task is None else np.fromiter((row.task for row in rows), object, len(rows))
    return Chunk(X, np.asarray([row.y for row in rows]), task)


def _sparse(rows: Sequence[Mapping[str, float]], names: dict[str, int]) -> Any:
    """Dicts as a CSR matrix; unseen names get the next columns."""
    indices = [names.setdefault(name, len(names)) for x in rows for name in x]
    values = np.array([value for x in rows for value in x.values()], np.float64)
    indptr = np.cumsum([0, *map(len, rows)])
    X = sp.csr_matrix((values, np.array(indices, np.int32), indptr), shape=(len(rows), len(names)))
    X.sort_indices()
    return X


def whole_rounds(chunks: Iterable[Chunk], tasks: TaskIndex, *, simultaneous: bool) -> Iterator[Piece]:
    """The chunks with their task codes; a round that goes on in the next chunk is joined.

    Parameters
    ----------
    tasks : TaskIndex
        Grows with the tasks of the stream.
    simultaneous : bool
        Whether chunks without explicit rounds have rounds of several rows.
    """
    held: Chunk | None = None
    for chunk in chunks:
        chunk = _in_arrays(chunk)
        if held is not None:
            if (held.rounds is None) != (chunk.rounds is None):
                raise ValueError("either all chunks of a stream have rounds or none")
            chunk = _together(held, chunk)
            held = None
        n = len_of(chunk.y)
        if n == 0:
            continue
        code, fresh = tasks.encode(chunk.task, n)
        tasks.add(fresh)
        if chunk.rounds is None and not simultaneous:
            yield Piece(*chunk[:4], code, None, chunk.weight)
            continue
        starts = _starts(chunk, code, len(tasks))
        last = int(starts[-2])
        held = Chunk(*(rows_of(part, last, n) for part in chunk))
        if last > 0:
            yield cut(Piece(*chunk[:4], code, starts[:-1], chunk.weight), 0, last)
    if held is not None:
        code = tasks.encode(held.task, len_of(held.y))[0]
        yield Piece(*held[:4], code, np.array([0, len(code)]), held.weight)


def _in_arrays(chunk: Chunk) -> Chunk:
    """Lists and series as arrays, so that rows can be cut out of every part."""
    X, y, task, *rest = chunk
    X = np.asarray(X) if isinstance(X, list | tuple) else X
    if isinstance(task, list | tuple):  # ids may be tuples: NumPy must not look into them
        task = np.fromiter(task, object, len(task))
    return Chunk(X, np.asarray(y), *(None if part is None else np.asarray(part) for part in (task, *rest)))


def _together(first: Chunk, then: Chunk) -> Chunk:
    if first.weight is None and then.weight is not None:
        first = first._replace(weight=np.ones(len_of(first.y)))
    if then.weight is None and first.weight is not None:
        then = then._replace(weight=np.ones(len_of(then.y)))
    return Chunk(*(joined(a, b) for a, b in zip(first, then, strict=True)))


def _starts(chunk: Chunk, code: IntArray, n_tasks: int) -> IntArray:
    if chunk.rounds is None:
        return starts_without_repeats(code, n_tasks)
    borders = np.flatnonzero(np.diff(chunk.rounds)) + 1
    return np.concatenate([[0], borders, [len(code)]])


def cut(piece: Piece, first: int, last: int) -> Piece:
    """Rows `first` to `last` of a piece, both on round borders."""
    starts = piece.starts
    if starts is not None:
        starts = starts[np.searchsorted(starts, first) : np.searchsorted(starts, last) + 1] - first
    X, y, task, rounds, code = (rows_of(part, first, last) for part in piece[:5])
    return Piece(X, y, task, rounds, code, starts, rows_of(piece.weight, first, last))


def cut_at(pieces: Iterable[Piece], next_stop: Callable[[int], float]) -> Iterator[tuple[Piece, bool]]:
    """Cut pieces at the row counts of `next_stop`, or at the next round border; True for a piece that ends there."""
    done = 0
    for piece in pieces:
        n, first = len(piece.code), 0
        while first < n:
            stop = next_stop(done + first) - done
            if stop <= n and piece.starts is not None:
                stop = piece.starts[np.searchsorted(piece.starts, stop)]
            last = int(min(stop, n))
            yield cut(piece, first, last), stop <= n
            first = last
        done += n
