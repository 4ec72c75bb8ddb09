"""The fold: records go into the model in the order of the log. Live, at the start and in `shoal replay` alike."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.rounds import Chunk
from shoal.files.tables.check_rows import Checked
from shoal.learner import Learner
from shoal.serve.bodies import are_alike, concat, unpack
from shoal.serve.contract import Rows
from shoal.serve.log import Record
from shoal.serve.served import Learned, Served, learn, part_of
from shoal.serve.turns import Turns

MOST_ROWS = 20_000  # of several records that are learned as one chunk
SLICE_SECONDS = 0.001  # learning holds the model no longer, or for one row (round) that takes longer by itself
FIRST_ROWS = 8  # of the first slice, before it is known how long a row takes


class Group(NamedTuple):
    """Consecutive records that are learned together, or one that forgets a task."""

    last: int  # the position of the last
    times: FloatArray  # when each row was accepted
    checked: Checked | None
    forgotten: str | None = None
    offsets: Mapping[str, int] = {}  # how far topics have been read with it

    @property
    def rows(self) -> int:
        return len(self.times)


class Counted(Protocol):
    """What counts the rows that are learned."""

    def learned(self, found: Learned) -> None: ...
    def forget(self, task: str) -> None: ...


class Fold:
    """What has been learned of the log.

    Parameters
    ----------
    served : Served
    position : int
        Up to here the model has learned already.
    counted : Counted, optional
        Told what was learned, slice by slice, and what was forgotten.

    Attributes
    ----------
    accepting : Lock
        Held from the check of rows to their commit: what is saved meanwhile would know columns and labels that the log
        may never hold. Taken before `columns`.
    columns : Lock
        Held while the encoder changes, or is read for rows to learn.
    turns : Turns
        Held while the learner changes, or answers.
    offsets : dict
        How far topics have been learned: the next message of each partition.
    forgotten : int
        The position of the last record that forgot a task.
    readers : Readers
        Of rows to answer, as the columns were when the last group was learned: an answer waits for no lock but `turns`.
    refused : int
        Rows that were in the log and that the learner refused all the same.
    """

    def __init__(self, served: Served, position: int = 0, counted: Counted | None = None) -> None:
        self.served, self.position = served, position
        self.accepting, self.columns, self.turns = threading.Lock(), threading.Lock(), Turns()
        self.rows = self.refused = self.forgotten = 0
        self.offsets: dict[str, int] = {}
        self.readers = served.readers()
        self._counted = counted
        self._rows_a_slice = float(FIRST_ROWS)

    def apply(self, group: Group) -> None:
        """Learn or forget what comes next in the log."""
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
            fit = 0.8 * SLICE_SECONDS / seconds * n  # as the last slice went; growing slowly, as rows differ
            self._rows_a_slice = max(1.0, min(fit, 1.5 * self._rows_a_slice))
            if self._counted is not None:
                tasks = [None] * n if part.task is None else part.task.tolist()
                now = times[learned : learned + n]
                self._counted.learned(Learned(now, tasks, np.asarray(part.y), decisions, shadows))
            learned += n
        self.readers = readers

    def _learn_slice(self, learner: Learner, part: Chunk) -> tuple[FloatArray, int]:
        """Learn a slice: what was said of its rows before, and how many the learner refused.

        If it refuses any, rows (or rounds) are learned one by one, so that slices do not matter; of those refused
        nothing is said, and of all if there are several labels, whose number may grow from row to row.
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
        """Apply records behind the position; the position after each group.

        Raises
        ------
        ValueError
            If a record does not belong behind the position, or its rows cannot be read.
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


def _last_cut(cuts: IntArray, first: int, rows: float) -> int:
    """The last cut by which no more rows are passed, or the next one if there is none."""
    following, beyond = np.searchsorted(cuts, [first, first + rows], side="right")
    return int(cuts[max(following, beyond - 1)])


class _Read(NamedTuple):
    """A record, and its rows unless it forgets a task."""

    record: Record
    rows: Rows | None


def _grouped(records: Iterable[Record], position: int, *, together: bool) -> Iterator[list[_Read]]:
    """Records that may be learned as one chunk, or one that forgets a task."""
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
