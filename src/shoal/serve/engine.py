"""The engine: a model that answers while it learns from a log, and loses nothing. No HTTP.

A folder belongs to it: the log (unless that is elsewhere) and the snapshots. Three threads work in it, next to those
who ask: one checks and commits (`admission`), one learns and takes snapshots (`learning`); answers are given in the
caller's thread.
"""

from __future__ import annotations

import logging
import math
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

from shoal.serve import snapshots
from shoal.serve.admission import Admission
from shoal.serve.answers import Answers
from shoal.serve.bodies import pack, pack_one
from shoal.serve.commands import (
    Chore,
    Command,
    Follow,
    Forget,
    Label,
    Learn,
    Wait,
    first_request,
    id_of,
    new_request,
    with_ids,
)
from shoal.serve.contract import (
    Answer,
    Busy,
    Followed,
    LabelReceipt,
    Messages,
    Pending,
    Receipt,
    Refused,
    Rows,
    Unavailable,
    UnknownTask,
    Worth,
)  # fmt: skip
from shoal.serve.erasing import without_task
from shoal.serve.fold import Fold
from shoal.serve.folder import lock, newest
from shoal.serve.learning import Learning, Rhythm
from shoal.serve.limits import Caps, Limits
from shoal.serve.log import Log, Waiting
from shoal.serve.outcomes import now
from shoal.serve.served import Served
from shoal.serve.snapshots import Context, Snapshots
from shoal.serve.statistics import Statistics

logger = logging.getLogger("shoal")
WEEK = 7 * 24 * 3600.0
EXPIRY_SECONDS = 60.0


class EngineSettings(NamedTuple):
    """What can be said about an engine."""

    log: str | None = None  # of SQLAlchemy; None: a SQLite file in the folder
    rhythm: Rhythm = Rhythm()
    keep: int = 3  # snapshots
    keep_log: bool = False  # keep all records and the first snapshot: the model can be built as it was at any time
    label_wait: float = WEEK  # seconds that rows wait for their labels; 0: predictions have no ids
    most_rows: int = 200_000  # that are accepted or asked and not learned yet; beyond, requests are told to wait
    caps: Caps = Caps()
    shadows: bool = True
    new_log: bool = False  # go on behind the newest snapshot with an empty log, if its own is lost


class Engine:
    """A model file, served.

    Parameters
    ----------
    model : Path
        What `shoal run --save` wrote. It is read once, when the folder is new; from then on the folder has the model.
    folder : Path
        For log and snapshots.
    settings : EngineSettings
    on_progress : function, optional
        Told the position while the log is replayed.
    offsets : mapping, optional
        Of a new folder: how far topics have been read into the model already.

    Raises
    ------
    ValueError
        If the model file is none, or no snapshot can be read, or another process has the folder or the log, or the log
        does not go on where the newest snapshot ends.
    Unavailable
        If the log cannot be reached.
    """

    def __init__(
        self, model: Path | None, folder: Path, settings: EngineSettings | None = None,
        on_progress: Callable[[int, int], None] | None = None, offsets: Mapping[str, int] | None = None,
    ) -> None:  # fmt: skip
        self.settings = settings or EngineSettings()
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as after_failure:  # another try finds folder and log free
            self._own = lock(folder / "lock", folder)
            after_failure.callback(os.close, self._own)
            self._snapshots = Snapshots(folder / "snapshots", self.settings.keep, keep_first=self.settings.keep_log)
            if model is None and not self._snapshots.all():
                raise ValueError(f"{folder} holds no snapshot")
            self._log = Log(self.settings.log or f"sqlite:///{folder / 'log.sqlite'}", owned=True)
            after_failure.callback(self._log.close)
            self._open(model, on_progress, offsets or {})
            after_failure.pop_all()

    def _open(
        self, model: Path | None, on_progress: Callable[[int, int], None] | None, offsets: Mapping[str, int]
    ) -> None:
        """The newest model and all of the log behind it; then the threads."""
        if not self._snapshots.all() and model is not None:
            self._log.check(0, None)
            first = self._snapshots.path(0)
            # Before the model: with that the folder is no longer new.
            snapshots.write_context(first, Context(None, offsets, self._log.id))
            Served(model).save(first)
        served, position, context = newest(self._snapshots, with_shadows=self.settings.shadows)
        if self.settings.new_log and position > self._log.last:
            # Before the log: with that it is no longer empty.
            snapshots.write_context(self._snapshots.path(position), context._replace(log=self._log.id))
            self._log.begin_behind(position)
        else:
            self._log.check(position, context.log)
        self._log.begin_at(context.offsets)
        self.statistics = Statistics(served, context.counted)
        self._fold = Fold(served, position, self.statistics)
        self._fold.forgotten = self._log.last_forgotten()
        # A crash may have come before these; a damaged newer snapshot is no reason to delete this one.
        knows_no_more = self._fold.forgotten if position >= self._fold.forgotten else 0
        self._log.drop_until(self._snapshots.prune(knows_no_more))
        for reached in self._fold.replay(self._log.read(position)):
            if on_progress is not None:
                on_progress(reached, self._log.last)
        self._fold.offsets = self._log.offsets()
        self._answers = Answers(self._fold)
        knows, tasks = served.learner.knows_task, served.learner
        self._learning = Learning(
            self._fold, position, self._snapshots, self.settings.rhythm, self._context, self._drop_records
        )
        limits = Limits(self.settings.caps, knows, lambda: len(tasks.tasks_))
        self._admission = Admission(self._log, self._fold, limits, self._learning.put, self.settings.label_wait)
        self._next_expiry = time.monotonic()
        self.more_gauges: Callable[[], Mapping[str, float]] = dict  # of who feeds the engine
        self._closed = False
        self._learning.start()
        self._admission.start()

    # ---- what can be asked -----------------------------------------------------------------------------------

    def predict(self, rows: Rows, *, wait: bool = True) -> Future[list[Answer]]:
        """Answers in the order of the rows; with `wait`, done when the rows wait for their labels in the log."""
        waits = wait and self.settings.label_wait > 0
        self._refuse_if_in_trouble() if waits else self._refuse_if_closed()
        found = self._answers.of(rows)
        if not waits:
            return now(found)
        request = new_request()
        waiting = Waiting(request, len(found), pack(rows), bytes(len(found)))
        return self._submit(Wait([waiting], with_ids(found, request)))

    def predict_each(self, rows: Sequence[Mapping[str, Any]], *, wait: bool = True) -> list[Pending]:
        """The same of rows of JSON values (numbers, strings, booleans, None) that came apart, quickly: what is wrong
        with one is nothing to the others."""
        waits = wait and self.settings.label_wait > 0
        self._refuse_if_in_trouble() if waits else self._refuse_if_closed()
        found, waiting = self._answers.of_each(rows), []
        if waits:
            for i, answer in enumerate(found):
                if isinstance(answer, Answer):
                    request = new_request()
                    waiting.append(Waiting(request, 1, pack_one(rows[i]), b"\0"))
                    found[i] = answer._replace(id=id_of(request, 0))
        return [Pending(range(len(rows)), self._submit(Wait(waiting, found)) if waiting else now(found))]

    def learn(self, rows: Rows, key: str | None = None) -> Future[Receipt]:
        """Done when the rows are in the log; they are learned soon after, in the order of the log."""
        self._refuse_if_full()
        return self._submit(Learn(rows, pack(rows), key))

    def check(self, rows: Rows) -> None:
        """Raise Refused if rows to learn could not be accepted now. Nothing changes."""
        served = self._fold.served
        with self._fold.accepting, self._fold.columns:
            mark = served.rows_to_learn.mark()
            try:
                faults = served.check(rows)[1]
            finally:
                served.rows_to_learn.rollback(mark)
        if faults:
            raise Refused(*faults)

    def label(self, labels: Sequence[tuple[str, Any]], key: str | None = None) -> Future[LabelReceipt]:
        """Learn rows as they were predicted: (id of the prediction, label) each."""
        self._refuse_if_full()
        return self._submit(Label(labels, key))

    def follow(self, messages: Messages) -> Future[Followed]:
        """Done when the messages are in the log: the rows that have their labels, those that wait, and the offsets.

        Rows that cannot be learned are left out and said so; nothing of it is written twice.
        """
        self._refuse_if_full()
        return self._submit(Follow(messages))

    def offsets(self) -> dict[str, int]:
        """The next message of each partition that was followed, by "topic/partition"."""
        return self._log.offsets()

    def worth(self, rows: Rows) -> list[Worth]:
        """Which labels are worth asking for; nothing changes."""
        self._refuse_if_closed()
        return self._answers.worth(rows)

    def forget(self, task: str) -> Future[Receipt]:
        """Forget a task.

        It is gone from the rows that wait with the commit, from the model with its place in the log, and from snapshots
        and records (of all tasks, before that place) as soon as the next snapshot stands, which is begun when the model
        has forgotten it.
        """
        self._refuse_if_in_trouble()
        return self._submit(Forget(task, without_task(task, self._fold.served)))

    # ---- what can be seen ------------------------------------------------------------------------------------

    def describe(self) -> Mapping[str, Any]:
        """The model in plain values."""
        served = self._fold.served
        learner, roles = served.learner, served.roles
        return {
            "learner": type(learner).__name__,
            "parameters": {name: repr(value) for name, value in learner.get_params(deep=False).items()},
            "kind": served.labels.kind,
            "labels": served.labels.as_written(served.labels.classes) if served.labels.kind != "regression" else [],
            "columns": served.encoder.column_kinds,
            "task": roles.tasks,
            "label": roles.label,
            "tasks": len(learner.tasks_),
            "features": learner.n_features_in_,
            "learned": self._fold.position,
            "logged": self._admission.position,
            "rows": self._fold.rows,
        }

    def list_tasks(self, sort: str, text: str, first: int, n: int) -> tuple[list[Mapping[str, Any]], int]:
        """Some tasks with what was counted of them since the service began, and how many contain the text: sorted by
        "rows", "error" (the worst first), "newest" or "name"."""
        return self.statistics.list_tasks(sort, text, first, n)

    def overview(self) -> Mapping[str, Any]:
        """What the page shows."""
        found = self.describe()
        model = {name: found[name] for name in ("learner", "label")}
        return {**self.statistics.state(), "gauges": self.gauges(), "model": model}

    def tasks(self) -> Sequence[str]:
        """Ids of all tasks of the model."""
        return list(self._fold.served.learner.tasks_)

    def task(self, task: str) -> Mapping[str, Any]:
        """One task in plain values. Raises UnknownTask.

        `similar`: the tasks most like it; `ways`: the ways of sharing by their weight, of a learner that weighs some;
        and of rows since the service began `rows`, `error`, `loss`, and the mean `forecast` next to what `happened`.
        """
        found = dict(self._answers.about(task))
        with suppress(UnknownTask):  # the model knew it before the service began
            found |= self.statistics.task(task)
        return found

    def export(self) -> Path:
        """A model file that `shoal.load` and `shoal run --load` read; the caller deletes it."""
        self._refuse_if_closed()
        handle, name = tempfile.mkstemp(dir=self.folder, prefix="export-", suffix=".shoal")
        os.close(handle)
        with self._fold.accepting, self._fold.columns, self._fold.turns.learning():
            writing = snapshots.begin(self._fold.position, Path(name), self._fold.served.save)
        writing.wait()
        if writing.error:
            Path(name).unlink(missing_ok=True)
            raise Unavailable(f"the model file was not written: {writing.error}")
        return Path(name)

    def gauges(self) -> Mapping[str, float]:
        """Numbers for dashboards."""
        newest_snapshot = self._snapshots.all()[0]
        log_bytes = {}
        if not self._admission.trouble:
            with suppress(Unavailable):  # the other numbers are asked for most while the database is away
                log_bytes = {"log_bytes": self._log.size()}
        return {
            "queue_rows": self.queue,
            "position_logged": self._admission.position,
            "position_learned": self._fold.position,
            "rows_learned": self._fold.rows,
            "rows_refused": self._fold.refused,
            **log_bytes,
            "predictions_waiting": self._log.predictions_waiting,
            "snapshot_age_seconds": max(time.time() - newest_snapshot.time, 0.0),
            "snapshot_pause_seconds": self._learning.pause,
            "tasks": len(self._fold.served.learner.tasks_),
            "features": self._fold.served.learner.n_features_in_,
            **self.statistics.gauges(),
            **{f"labels_{name}": count for name, count in self._admission.labels.items()},
            "labels_asked": self._answers.labels_asked,
            **({} if (lag := self._admission.lags.median()) is None else {"label_lag_seconds": lag}),
            **self.more_gauges(),
        }

    @property
    def queue(self) -> int:
        """Rows that are asked or accepted and not learned yet."""
        return self._admission.rows_waiting + self._learning.backlog

    @property
    def is_ready(self) -> bool:
        """Can it learn?"""
        return not self._closed and not self._admission.trouble and self._learning.failure is None

    def wait_until_learned(self, position: int | None = None, timeout: float = math.inf) -> bool:
        """Wait until all of the log up to a position (all by default) is in the model; whether it is."""
        position = self._admission.position if position is None else position
        ends = time.monotonic() + timeout
        while self._fold.position < position:
            if self._learning.failure is not None or time.monotonic() > ends:
                return False
            time.sleep(0.002)
        return True

    def expire(self) -> Future[None]:
        """Drop predictions that no longer wait for their labels, and idempotency keys older than a week. This happens
        once a minute by itself."""
        moment = time.time() - self.settings.label_wait
        chore = Chore(lambda: self._log.expire(first_request(moment), moment, time.time() - WEEK))
        self._admission.submit(chore)
        return chore.future

    def close(self, *, snapshot: bool = True) -> None:
        """Learn all that was accepted, take a last snapshot, end the threads."""
        if self._closed:
            return
        self._closed = True
        if self._admission.trouble:
            self._admission.give_up()
        self._admission.stop()
        self._learning.stop()
        if snapshot and self._learning.failure is None:
            self._learning.finish()
        self._log.close()
        os.close(self._own)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ---- inside ----------------------------------------------------------------------------------------------

    def _submit(self, command: Command) -> Future[Any]:
        if time.monotonic() >= self._next_expiry:
            self._next_expiry = time.monotonic() + EXPIRY_SECONDS
            self.expire()
        self._admission.submit(command)
        return command.future

    def _refuse_if_closed(self) -> None:
        if self._closed or self._learning.failure is not None:
            raise Unavailable("the service ends" if self._closed else "learning has stopped; see the server's log")

    def _refuse_if_in_trouble(self) -> None:
        """Whoever needs the log is told at once that it is away."""
        self._refuse_if_closed()
        if trouble := self._admission.trouble:
            raise Unavailable(trouble)

    def _refuse_if_full(self) -> None:
        self._refuse_if_in_trouble()
        if self.queue >= self.settings.most_rows:
            raise Busy(f"{self.queue:,} rows wait to be learned", 1.0)

    def _context(self) -> Context:
        """What stands next to a snapshot."""
        return Context(self.statistics.to_dict(), dict(self._fold.offsets), self._log.id)

    def _drop_records(self, oldest: int) -> None:
        """Those below the oldest snapshot; of a kept log the first snapshot is kept, too, so that there are none."""
        if self._admission.is_alive():
            self._admission.submit(Chore(lambda: self._log.drop_until(oldest)))
        else:
            try:
                self._log.drop_until(oldest)
            except Unavailable as error:
                logger.warning("old records were not dropped; the next snapshot does it: %s", error)
