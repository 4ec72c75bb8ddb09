"""The model is a fold over the log: records are applied to it in order, live, at the start and in `shoal replay` alike.

Predictions go first. Learning takes the model for a millisecond at a time, and waits while predictions wait.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.rounds import Chunk
from shoal.files.tables.check_rows import Checked
from shoal.learner import Learner
from shoal.model.growth import stepping_aside
from shoal.serve.contract import Rows
from shoal.serve.log import Record
from shoal.serve.row_codec import are_alike, concat, unpack
from shoal.serve.served_model import Learned, ServedModel, learn, part_of

MOST_ROWS = 20_000  # of several records that are learned as one chunk
SLICE_SECONDS = 0.001  # learning holds the model no longer, or for one row (round) that takes longer by itself
FIRST_ROWS = 8  # of the first slice, before the time of a row is known
PATIENCE = 0.05  # seconds that learning waits for predictions


class Group(NamedTuple):
    """Consecutive records to learn together, or one record that forgets a task."""

    last: int  # position of the last record
    times: FloatArray  # when each row was accepted
    checked: Checked | None
    forgotten: str | None = None
    offsets: Mapping[str, int] = {}  # next message of each partition after this group

    @property
    def rows(self) -> int:
        return len(self.times)


class Counted(Protocol):
    """A counter of learned rows."""

    def learned(self, found: Learned) -> None: ...
    def forget(self, task: str) -> None: ...


class Fold:
    """The model, and the position in the log that it has reached.

    Parameters
    ----------
    served : ServedModel
    position : int
        The last record that the model has already learned.
    counted : Counted, optional
        Receives each learned slice, and each forgotten task.

    Attributes
    ----------
    accepting : Lock
        Held from the check of rows to their commit. A snapshot taken in between would hold columns and labels that the
        log may never hold. Taken before `columns`.
    columns : Lock
        Held while the encoder changes, or checks rows to learn.
    turns : Turns
        Held while the learner changes, or answers.
    offsets : dict
        The next message of each partition, as far as topics have been learned.
    forgotten : int
        The position of the last record that forgot a task.
    readers : Readers
        Of rows to predict, with the columns of the last learned group; predictions need no lock but `turns`.
    refused : int
        Rows of the log that the learner refused.
    """

    def __init__(self, served: ServedModel, position: int = 0, counted: Counted | None = None) -> None:
        self.served, self.position = served, position
        self.accepting, self.columns, self.turns = threading.Lock(), threading.Lock(), Turns()
        self.rows = self.refused = self.forgotten = 0
        self.offsets: dict[str, int] = {}
        self.readers = served.readers()
        self._counted = counted
        self._rows_a_slice = float(FIRST_ROWS)

    def apply(self, group: Group) -> None:
        """Learn the next rows of the log, or forget a task."""
        if group.forgotten is not None:
            with self.turns.learning():
                self.served.forget(group.forgotten)
            self.forgotten = group.last
            if self._counted is not None:
                self._counted.forget(group.forgotten)
        elif group.checked is not None:
            self._learn(group.checked, group.times)
        self.position, self.rows = group.last, self.rows + group.rows
        self.offsets |= group.offsets

    def _learn(self, checked: Checked, times: FloatArray) -> None:
        with self.columns:
            chunk = self.served.encode(checked)
            readers = self.served.readers()
        cuts, learned = self.served.cuts(chunk), 0
        while learned < chunk.X.shape[0]:
            part = part_of(chunk, learned, _last_cut(cuts, learned, self._rows_a_slice))
            shadows = {name: self._learn_slice(shadow, part)[0] for name, shadow in self.served.shadows.items()}
            with self.turns.learning():
                begun = time.perf_counter()
                decisions, refused = self._learn_slice(self.served.learner, part)
                seconds = time.perf_counter() - begun
            n, self.refused = part.X.shape[0], self.refused + refused
            fit = 0.8 * SLICE_SECONDS / seconds * n  # at the last slice's speed; slices grow slowly, as rows differ
            self._rows_a_slice = max(1.0, min(fit, 1.5 * self._rows_a_slice))
            if self._counted is not None:
                tasks = [None] * n if part.task is None else part.task.tolist()
                now = times[learned : learned + n]
                self._counted.learned(Learned(now, tasks, np.asarray(part.y), decisions, shadows))
            learned += n
        self.readers = readers

    def _learn_slice(self, learner: Learner, part: Chunk) -> tuple[FloatArray, int]:
        """Learn a slice; return the decision values given before, and the number of refused rows.

        If the learner refuses the slice, its rows (or rounds) are learned one by one, so that slices do not matter.
        Refused rows have NaN as decision value. With several labels all rows have, as labels may be added row by row.
        """
        try:
            return learn(learner, part), 0
        except ValueError:
            said, refused, reached = np.full(part.X.shape[0], np.nan), 0, 0
            for cut in self.served.cuts(part).tolist():
                try:
                    found = learn(learner, part_of(part, reached, cut))
                except ValueError:
                    refused += cut - reached
                else:
                    said[reached:cut] = found if found.ndim == 1 else np.nan
                reached = cut
            return said, refused

    def replay(self, records: Iterable[Record]) -> Iterator[int]:
        """Apply the records behind the position; yield the position after each group.

        Raises
        ------
        ValueError
            If a record is missing, or the rows of one cannot be read.
        """
        for found in _grouped(records, self.position, together=not self.served.learner.simultaneous):
            last, pieces = found[-1].record, [read.rows for read in found if read.rows is not None]
            if not pieces:
                self.apply(Group(last.position, np.empty(0), None, last.body.decode()))
            else:
                checked, faults = self.served.check(concat(pieces))
                if faults:
                    sentence = faults[0].sentence
                    raise ValueError(f"the log does not fit the model: up to record {last.position}, {sentence}")
                times = np.repeat([read.record.time for read in found], [piece.frame.height for piece in pieces])
                self.apply(Group(last.position, times, checked))
            yield self.position


class Turns:
    """A lock that gives predictions priority over learning.

    With a plain lock the learning thread, slice after slice, would take it again before a waiting prediction wakes up.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answering = _Answering(self._lock)

    def answering(self) -> _Answering:
        """A context in which the model does not change."""
        return self._answering

    @contextmanager
    def learning(self) -> Iterator[None]:
        """A context in which the model may change. It gives way while arrays are copied into larger ones.

        It waits at most `PATIENCE` seconds for predictions, so that accepted rows are learned under any load.
        """
        self._answering.wait_for_none(PATIENCE)
        with self._lock, stepping_aside(self._given_way):
            yield

    @contextmanager
    def _given_way(self) -> Iterator[None]:
        """Let predictions run."""
        self._lock.release()
        try:
            yield
        finally:
            self._answering.wait_for_none(PATIENCE)
            self._lock.acquire()


class _Answering:
    """A context that many threads may wait for."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock, self._counting = lock, threading.Lock()
        self._asking = 0  # predictions that wait or run; guarded by `_counting`
        self._is_free = threading.Event()
        self._is_free.set()

    def __enter__(self) -> None:
        with self._counting:
            self._asking += 1
            self._is_free.clear()
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()
        with self._counting:
            self._asking -= 1
            if self._asking == 0:
                self._is_free.set()

    def wait_for_none(self, seconds: float) -> None:
        """Wait until no prediction waits or runs, at most this many seconds."""
        self._is_free.wait(seconds)


# ---- groups of records ---------------------------------------------------------------------------------------


def _last_cut(cuts: IntArray, first: int, rows: float) -> int:
    """The last cut at most this many rows behind the first, or else the next cut."""
    following, beyond = np.searchsorted(cuts, [first, first + rows], side="right")
    return int(cuts[max(following, beyond - 1)])


class _Read(NamedTuple):
    """A record, with its rows unless it forgets a task."""

    record: Record
    rows: Rows | None


def _grouped(records: Iterable[Record], position: int, *, together: bool) -> Iterator[list[_Read]]:
    """Split records into groups that may be learned as one chunk; a record that forgets a task is alone."""
    held: list[_Read] = []
    height = 0
    for record in records:
        if record.position != position + 1:
            raise ValueError(f"record {position + 1} of the log is missing: the next one is {record.position}")
        read = _Read(record, None if record.kind == "forget" else unpack(record.body))
        height += record.rows
        if held and not (together and height <= MOST_ROWS and _are_alike(held[0], read)):
            yield held
            held, height = [], record.rows
        held.append(read)
        position = record.position
    if held:
        yield held


def _are_alike(one: _Read, other: _Read) -> bool:
    return one.rows is not None and other.rows is not None and are_alike(one.rows, other.rows)
