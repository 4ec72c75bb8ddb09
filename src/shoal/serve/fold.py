"""The fold: records go into the model in the order of the log. Live, at the start and in `shoal replay` alike."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from shoal.engine.rounds import Chunk
from shoal.files.tables.rows import Checked
from shoal.learner import Learner
from shoal.serve.bodies import are_alike, concat, unpack
from shoal.serve.contract import Rows
from shoal.serve.log import Record
from shoal.serve.served import Learned, Served, learn
from shoal.serve.turns import Turns

MOST_ROWS = 20_000  # of several records that are learned as one chunk
SLICE_SECONDS = 0.001  # learning holds the model no longer, so that an answer waits no longer
FEWEST_ROWS = 8  # of a slice: below, cutting costs more than learning


class Group(NamedTuple):
    """Consecutive records that are learned together, or one that forgets a task."""

    last: int  # the position of the last
    rows: int
    checked: Checked | None
    forgotten: str | None = None


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
        Held while the encoder changes, or is read for rows of a table.
    turns : Turns
        Held while the learner changes, or answers.
    forgotten : int
        The position of the last record that forgot a task.
    refused : int
        Rows that were in the log and that the learner refused all the same.
    """

    def __init__(self, served: Served, position: int = 0, counted: Counted | None = None) -> None:
        self.served, self.position = served, position
        self.accepting, self.columns, self.turns = threading.Lock(), threading.Lock(), Turns()
        self.rows = self.refused = self.forgotten = 0
        self.one_row = served.encoder.one_row()
        self._counted = counted
        self._rows_a_slice = 64.0

    def apply(self, group: Group) -> None:
        """Learn or forget what comes next in the log."""
        if group.forgotten is not None:
            with self.turns.learning():
                self.served.forget(group.forgotten)
            self.forgotten = group.last
            if self._counted is not None:
                self._counted.forget(group.forgotten)
        elif group.checked is not None:
            self._learn(group.checked)
        self.position, self.rows = group.last, self.rows + group.rows

    def _learn(self, checked: Checked) -> None:
        with self.columns:
            chunk = self.served.encode(checked)
            one_row = self.served.encoder.one_row()
        rows_a_slice = max(int(self._rows_a_slice), FEWEST_ROWS)
        for part in self.served.slices(chunk, rows_a_slice):
            shadows = {name: self._learn_slice(shadow, part)[0] for name, shadow in self.served.shadows.items()}
            with self.turns.learning():
                begun = time.perf_counter()
                decisions, refused = self._learn_slice(self.served.learner, part)
                seconds = time.perf_counter() - begun
            n, self.refused = part.X.shape[0], self.refused + refused
            if n == rows_a_slice:  # as many rows the next time as took a slice's time this time
                self._rows_a_slice *= min(max(0.8 * SLICE_SECONDS / seconds, 0.5), 1.5)
            if self._counted is not None and all(said is not None for said in (decisions, *shadows.values())):
                tasks = [None] * n if part.task is None else part.task.tolist()
                self._counted.learned(Learned(tasks, np.asarray(part.y), decisions, shadows))
        self.one_row = one_row

    def _learn_slice(self, learner: Learner, part: Chunk) -> tuple[Any, int]:
        """Learn a slice: what was said of its rows before, and how many the learner refused. If it refuses any, rows
        are learned one by one, so that slices do not matter, and nothing is said of them."""
        try:
            return learn(learner, part), 0
        except ValueError:
            refused = 0
            for row in self.served.slices(part, 1):
                try:
                    learn(learner, row)
                except ValueError:
                    refused += row.X.shape[0]
            return None, refused

    def replay(self, records: Iterable[Record]) -> Iterator[int]:
        """Apply records behind the position; the position after each group.

        Raises
        ------
        ValueError
            If a record does not belong behind the position, or its rows cannot be read.
        """
        for last, forgotten, rows in _grouped(records, self.position, together=not self.served.learner.simultaneous):
            checked = None
            if rows is not None:
                checked, faults = self.served.check(rows)
                if faults:
                    raise ValueError(f"the log does not fit the model: up to record {last}, {faults[0].sentence}")
            self.apply(Group(last, 0 if rows is None else rows.frame.height, checked, forgotten))
            yield self.position


def _grouped(
    records: Iterable[Record], position: int, *, together: bool
) -> Iterator[tuple[int, str | None, Rows | None]]:
    """Records that may be learned as one chunk: last position, forgotten task, rows."""
    held: list[Rows] = []
    for record in records:
        if record.position != position + 1:
            raise ValueError(f"record {position + 1} of the log is missing: the next one is {record.position}")
        if record.kind == "forget":
            if held:
                yield position, None, concat(held)
                held = []
            yield record.position, record.body.decode(), None
        else:
            rows = unpack(record.body)
            height = sum(piece.frame.height for piece in held) + rows.frame.height
            if held and (not together or height > MOST_ROWS or not are_alike(held[0], rows)):
                yield position, None, concat(held)
                held = []
            held.append(rows)
        position = record.position
    if held:
        yield position, None, concat(held)
