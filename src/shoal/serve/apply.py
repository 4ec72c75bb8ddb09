"""The model is a fold over the log: records are applied to it in order, live, at the start and in `shoal replay` alike.

Predictions go first. Learning takes the model for a millisecond at a time, and waits while predictions wait.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.engine.arrays import FloatArray, IntArray
from shoal.engine.rounds import Chunk
from shoal.files.tables.check_rows import Checked
from shoal.learner import Learner
from shoal.model.growth import stepping_aside
from shoal.serve import snapshots
from shoal.serve.contract import Rows
from shoal.serve.log import Record
from shoal.serve.model_changes import Change, ModelFolder, Models
from shoal.serve.row_codec import are_alike, concat, unpack
from shoal.serve.served_model import Learned, Readers, ServedModel, learn, part_of

MOST_ROWS = 20_000  # of several records that are learned as one chunk
SLICE_SECONDS = 0.001  # learning holds the model no longer, or for one row (round) that takes longer by itself
FIRST_ROWS = 8  # of the first slice, before the time of a row is known
PATIENCE, A_LOOK = 0.05, 0.01  # seconds that learning waits for predictions, and each turn of a long look


class Group(NamedTuple):
    """Consecutive records to learn together, or one record that forgets a task or changes the model."""

    last: int  # position of the last record
    times: FloatArray  # when each row was accepted
    checked: Checked | None
    forgotten: str | None = None
    offsets: Mapping[str, int] = {}  # next message of each partition after this group
    candidate: Checked | None = None  # what the candidate can read of the rows
    change: Change | None = None
    models: Models | None = None  # after the change
    learned: Future[None] | None = None  # done when the model has it

    @property
    def rows(self) -> int:
        return len(self.times)


class Counted(Protocol):
    """A counter of learned rows."""

    def learned(self, found: Learned) -> None: ...
    def tried(self, who: str, found: Learned) -> None: ...
    def forget(self, task: str) -> None: ...
    def changed(self, models: Models, position: int) -> None: ...


class Live(NamedTuple):
    """The parts that answer, all of one moment."""

    served: ServedModel
    readers: Readers  # of rows to predict, with the columns of the last learned group


class Fold:
    """The model, and the position in the log that it has reached.

    Parameters
    ----------
    served : ServedModel
    position : int
        The last record that the model has already learned.
    counted : Counted, optional
        Receives each learned slice, each forgotten task and each change.
    candidate : ServedModel, optional
        Learns the same rows.
    files : ModelFolder, optional
        Has the models that changes name; without it, a log with changes cannot be read.

    Attributes
    ----------
    models : Models
        At the position.
    head : Models
        At the end of the log: they check rows to accept. Others than `models` from a change's commit until its turn.
    live : Live
        The model that answers. Predictions take it once, and need no lock but `turns`.
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
    refused : int
        Rows of the log that the learner refused.
    """

    def __init__(
        self,
        served: ServedModel,
        position: int = 0,
        counted: Counted | None = None,
        candidate: ServedModel | None = None,
        files: ModelFolder | None = None,
    ) -> None:
        self.models = self.head = Models(served, candidate)
        self.position, self.files = position, files
        self.accepting, self.columns, self.turns = threading.Lock(), threading.Lock(), Turns()
        self.rows = self.refused = self.forgotten = 0
        self.offsets: dict[str, int] = {}
        self.live = Live(served, served.readers())
        self._counted = counted
        self._rows_a_slice = float(FIRST_ROWS)

    @property
    def served(self) -> ServedModel:
        """The model that answers."""
        return self.live.served

    @property
    def readers(self) -> Readers:
        """Its readers of rows to predict."""
        return self.live.readers

    def apply(self, group: Group) -> None:
        """Learn the next rows of the log, forget a task, or change the models."""
        if group.change is not None and group.models is not None:
            self._change(group.last, group.change, group.models)
        elif group.forgotten is not None:
            with self.turns.learning():
                for model in self.models.all():
                    model.forget(group.forgotten)
            if self.files is not None:
                self.files.forget(group.forgotten)
            self.forgotten = group.last
            if self._counted is not None:
                self._counted.forget(group.forgotten)
        elif group.checked is not None:
            self._learn(group.checked, group.candidate, group.times)
        self.position, self.rows = group.last, self.rows + group.rows
        self.offsets |= group.offsets

    def _change(self, position: int, change: Change, models: Models) -> None:
        """Let other models answer and learn; the replaced ones are kept, read only."""
        old, self.models = self.models.served, models
        with self.columns:  # nothing may be encoded meanwhile
            self.live = Live(models.served, models.served.readers())

        def save(path: Path) -> None:  # by a child: a large model would keep the interpreter from answers
            writing = snapshots.begin(position, path, old.save)
            writing.wait()
            if writing.error:
                raise OSError(writing.error)

        if self.files is not None:
            self.files.changed(position, change, save)
        if self._counted is not None:
            self._counted.changed(models, position)

    def _learn(self, checked: Checked, beside: Checked | None, times: FloatArray) -> None:
        served, candidate = self.models
        with self.columns:
            chunk = served.encode(checked)
            readers = served.readers()
            trial = None if candidate is None or beside is None else candidate.encode(beside)
        tried = None if trial is None or beside is None else beside.good
        reached = 0
        for part, decisions, shadows in self._slices(served, chunk, self.turns.learning):
            n = part.X.shape[0]
            found = _learned(part, times[reached : reached + n], decisions, shadows)
            if self._counted is not None:
                self._counted.learned(found)
                if tried is not None:
                    self._counted.tried("live", _some(found, np.isin(np.arange(reached, reached + n), tried)))
            reached += n
        self.live = Live(served, readers)
        if trial is None or candidate is None or tried is None:
            return
        reached = 0
        for part, decisions, _ in self._slices(candidate, trial, nullcontext):
            n = part.X.shape[0]
            if self._counted is not None:
                self._counted.tried("candidate", _learned(part, times[tried[reached : reached + n]], decisions, {}))
            reached += n

    def _slices(
        self, model: ServedModel, chunk: Chunk, turn: Callable[[], AbstractContextManager[None]]
    ) -> Iterator[tuple[Chunk, FloatArray, dict[str, FloatArray]]]:
        """Learn a chunk; yield its slices with the decision values from before, and those of the shadows."""
        cuts, learned = model.cuts(chunk), 0
        while learned < chunk.X.shape[0]:
            part = part_of(chunk, learned, _last_cut(cuts, learned, self._rows_a_slice))
            shadows = {name: self._learn_slice(model, shadow, part)[0] for name, shadow in model.shadows.items()}
            with turn():
                begun = time.perf_counter()
                decisions, refused = self._learn_slice(model, model.learner, part)
                seconds = time.perf_counter() - begun
            n = part.X.shape[0]
            if model is self.models.served:
                self.refused += refused
                fit = 0.8 * SLICE_SECONDS / seconds * n  # at the last slice's speed; slices grow slowly, as rows differ
                self._rows_a_slice = max(1.0, min(fit, 1.5 * self._rows_a_slice))
            yield part, decisions, shadows
            learned += n

    def _learn_slice(self, model: ServedModel, learner: Learner, part: Chunk) -> tuple[FloatArray, int]:
        """Learn a slice; return the decision values given before, and the number of refused rows.

        If the learner refuses the slice, its rows (or rounds) are learned one by one, so that slices do not matter.
        Refused rows have NaN as decision value. With several labels all rows have, as labels may be added row by row.
        """
        try:
            return learn(learner, part), 0
        except ValueError:
            decisions, refused, reached = np.full(part.X.shape[0], np.nan), 0, 0
            for cut in model.cuts(part).tolist():
                try:
                    found = learn(learner, part_of(part, reached, cut))
                except ValueError:
                    refused += cut - reached
                else:
                    decisions[reached:cut] = found if found.ndim == 1 else np.nan
                reached = cut
            return decisions, refused

    def replay(self, records: Iterable[Record]) -> Iterator[int]:
        """Apply the records behind the position; yield the position after each group.

        Raises
        ------
        ValueError
            If a record is missing, or the rows of one cannot be read.
        """
        for found in _grouped(records, self.position, together=lambda: not self.models.simultaneous):
            last, pieces = found[-1].record, [read.rows for read in found if read.rows is not None]
            if last.kind == "model":
                self.apply(self._read_change(last))
            elif not pieces:
                self.apply(Group(last.position, np.empty(0), None, last.body.decode()))
            else:
                checked, faults, beside = self.models.check(concat(pieces))
                if faults:
                    sentence = faults[0].sentence
                    raise ValueError(f"the log does not fit the model: up to record {last.position}, {sentence}")
                times = np.repeat([read.record.time for read in found], [piece.frame.height for piece in pieces])
                self.apply(Group(last.position, times, checked, candidate=beside))
            self.head = self.models
            yield self.position

    def _read_change(self, record: Record) -> Group:
        if self.files is None:
            raise ValueError(f"record {record.position} of the log changes the model, whose file is not at hand")
        change = Change.decoded(record.body)
        models = self.models.after(change, self.files.load(change))
        return Group(record.position, np.empty(0), None, change=change, models=models)


class Turns:
    """A lock that gives predictions priority over learning, and over long looks at the model.

    With a plain lock the learning thread, slice after slice, would take it again before a waiting prediction wakes up.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answering = _Answering(self._lock)

    def answering(self) -> _Answering:
        """A context in which the model does not change."""
        return self._answering

    @contextmanager
    def looking(self) -> Iterator[None]:
        """A context in which the model does not change, for those that come back: predictions have priority.

        A thread that takes a plain lock again at once has it before another that waits for it wakes up.
        """
        self._answering.wait_for_none(A_LOOK)
        with self._lock:
            yield

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
    """A record, with its rows if it has some."""

    record: Record
    rows: Rows | None


def _learned(part: Chunk, times: FloatArray, decisions: FloatArray, shadows: dict[str, FloatArray]) -> Learned:
    tasks = [None] * part.X.shape[0] if part.task is None else part.task.tolist()
    return Learned(times, tasks, np.asarray(part.y), decisions, shadows)


def _some(found: Learned, chosen: NDArray[np.bool_]) -> Learned:
    """Some of learned rows, without shadows."""
    tasks = [task for task, is_chosen in zip(found.tasks, chosen, strict=True) if is_chosen]
    return Learned(found.times[chosen], tasks, found.truth[chosen], found.decisions[chosen], {})


def _grouped(records: Iterable[Record], position: int, *, together: Callable[[], bool]) -> Iterator[list[_Read]]:
    """Split records into groups that may be learned as one chunk; a record without rows is alone."""
    held: list[_Read] = []
    height = 0
    for record in records:
        if record.position != position + 1:
            raise ValueError(f"record {position + 1} of the log is missing: the next one is {record.position}")
        read = _Read(record, unpack(record.body) if record.kind == "learn" else None)
        height += record.rows
        if held and not (together() and height <= MOST_ROWS and _are_alike(held[0], read)):
            yield held
            held, height = [], record.rows
        held.append(read)
        position = record.position
    if held:
        yield held


def _are_alike(one: _Read, other: _Read) -> bool:
    return one.rows is not None and other.rows is not None and are_alike(one.rows, other.rows)
