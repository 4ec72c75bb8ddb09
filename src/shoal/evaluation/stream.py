"""Any stream as pieces that cut no round and end exactly at the checkpoints.

A learner of the simultaneous protocol forms its rounds anew in every call. So the last round of a chunk is
held back until the next chunk shows whether it is complete: how a stream is chunked does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from shoal.engine.arrays import IntArray
from shoal.engine.rounds import Chunk, starts_without_repeats
from shoal.model.slicing import joined, len_of, rows_of
from shoal.model.tasks import TaskIndex


class Piece(NamedTuple):
    """Rows that are fed to the learners at once."""

    X: Any
    y: Any
    task: Any
    rounds: Any
    code: IntArray  # (n,) number of the row's task
    starts: IntArray | None  # (n_rounds + 1,) row offsets; None: nobody asks for rounds of several rows
    weight: Any = None  # (n,) weights of the rows; None: all are 1


def _in_arrays(chunk: Chunk) -> Chunk:
    """Lists and series as arrays, so that rows can be cut out of every part."""
    X, y, task, *others = chunk
    X = np.asarray(X) if isinstance(X, list | tuple) else X
    if isinstance(task, list | tuple):  # ids may be tuples: NumPy must not look into them
        task = np.fromiter(task, object, len(task))
    return Chunk(X, np.asarray(y), *(None if part is None else np.asarray(part) for part in (task, *others)))


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


def whole_rounds(chunks: Iterable[Chunk], tasks: TaskIndex, *, simultaneous: bool) -> Iterator[Piece]:
    """The chunks with their task codes; rounds that continue over a chunk's end are put together.

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


def cut(piece: Piece, first: int, last: int) -> Piece:
    """Rows `first` to `last` of a piece, both on round borders."""
    starts = piece.starts
    if starts is not None:
        starts = starts[np.searchsorted(starts, first) : np.searchsorted(starts, last) + 1] - first
    X, y, task, rounds, code = (rows_of(part, first, last) for part in piece[:5])
    return Piece(X, y, task, rounds, code, starts, rows_of(piece.weight, first, last))


def cut_at(pieces: Iterable[Piece], next_stop: Callable[[int], float]) -> Iterator[tuple[Piece, bool]]:
    """The pieces cut at the row counts `next_stop` names, or the next round border; True where one is."""
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
