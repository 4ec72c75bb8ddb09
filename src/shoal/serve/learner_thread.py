"""The thread that learns committed rows and takes snapshots."""

import logging
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from shoal.serve import snapshots
from shoal.serve.apply import Fold, Group
from shoal.serve.contract import Unavailable
from shoal.serve.snapshots import Context, Snapshots, Writing, save_models

logger = logging.getLogger("shoal")
POLL_SECONDS = 0.2
STOPPED = "learning has stopped; see the server's log"
PAUSE_SECONDS = 60.0  # after a failed snapshot, which is a line in the log


class Rhythm(NamedTuple):
    """A snapshot is due after a number of rows, or of seconds."""

    rows: int = 1_000_000
    seconds: float = 300.0


class LearnerThread(threading.Thread):
    """The thread.

    Parameters
    ----------
    fold : Fold
    saved : int
        The position of the newest snapshot.
    folder : Snapshots
    rhythm : Rhythm
    context : function
        Gives the context to save with a snapshot.
    on_snapshot : function
        Called after each snapshot with the position of the oldest one that is kept.
    """

    def __init__(
        self,
        fold: Fold,
        saved: int,
        folder: Snapshots,
        rhythm: Rhythm,
        context: Callable[[], Context],
        on_snapshot: Callable[[int], None],
    ) -> None:
        super().__init__(name="shoal-learn", daemon=True)
        self._fold, self._folder, self._rhythm = fold, folder, rhythm
        self._context_now, self._on_snapshot = context, on_snapshot
        self._inbox: queue.SimpleQueue[Group | None] = queue.SimpleQueue()
        self._saved = saved
        self._rows_saved, self._next_by = fold.rows, time.monotonic() + rhythm.seconds
        self._writing: Writing | None = None
        self._not_before = 0.0
        self._counting = threading.Lock()
        self.backlog = 0  # accepted rows that are not learned yet
        self.pause = 0.0  # seconds of the last snapshot's fork, in which nothing else runs
        self.failure: BaseException | None = None

    def put(self, group: Group) -> None:
        """Put the next group in the queue."""
        with self._counting:
            self.backlog += group.rows
        self._inbox.put(group)
        if self.failure is not None:
            self._refuse_rest()

    def stop(self) -> None:
        """Learn all queued groups, then end."""
        self._inbox.put(None)
        self.join()

    def run(self) -> None:
        group: Group | None = None
        try:
            while True:
                try:
                    group = self._inbox.get(timeout=POLL_SECONDS)
                except queue.Empty:
                    self._snapshot()
                    continue
                if group is None:
                    break
                self._fold.apply(group)
                with self._counting:
                    self.backlog -= group.rows
                if group.learned is not None:
                    group.learned.set_result(None)
                self._snapshot()
        except BaseException as error:  # the model and the log differ now: serve no more
            logger.exception("learning has stopped")
            self.failure = error
            self._refuse(group)
            self._refuse_rest()

    def _refuse_rest(self) -> None:
        """Fail all that wait for groups in the queue, which will not be learned."""
        with suppress(queue.Empty):
            while True:
                self._refuse(self._inbox.get_nowait())

    def _refuse(self, group: Group | None) -> None:
        if group is not None and group.learned is not None and not group.learned.done():
            group.learned.set_exception(Unavailable(STOPPED))

    # ---- snapshots -------------------------------------------------------------------------------------------

    def _snapshot(self) -> None:
        """Finish the running snapshot if it is written; begin one if it is due."""
        if self._writing is not None:
            if not self._writing.is_done:
                return
            self._written(self._writing)
        rows = self._fold.rows - self._rows_saved
        due = rows >= self._rhythm.rows or time.monotonic() >= self._next_by or self._fold.forgotten > self._saved
        if self._fold.position > self._saved and due and time.monotonic() >= self._not_before:
            self._writing = self.begin()

    def begin(self) -> Writing:
        """Begin a snapshot of the model as it is."""
        position, fold = self._fold.position, self._fold
        with fold.accepting, fold.columns, fold.turns.learning():
            begun = time.perf_counter()
            writing = snapshots.begin(
                position, self._folder.path(position), partial(save_models, fold.models), self._context_now
            )
            self.pause = time.perf_counter() - begun
        self._rows_saved, self._next_by = fold.rows, time.monotonic() + self._rhythm.seconds
        return writing

    def finish(self) -> None:
        """Take a last snapshot, after the thread has ended."""
        if self._writing is not None:
            self._writing.wait()
            self._written(self._writing)
        if self._fold.position > self._saved:
            writing = self.begin()
            writing.wait()
            self._written(writing)

    def _written(self, writing: Writing) -> None:
        self._writing = None
        if writing.error:
            logger.error("snapshot %d was not written: %s", writing.position, writing.error)
            self._not_before = time.monotonic() + PAUSE_SECONDS
            return
        self._saved = writing.position
        self._on_snapshot(self._folder.prune(self._fold.forgotten))
