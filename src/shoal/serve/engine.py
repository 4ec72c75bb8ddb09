"""The engine: a model that predicts while it learns from a log, and loses nothing. It knows no HTTP.

It owns a folder with the snapshots and, unless a database is given, the log. Predictions run in the caller's thread.
One thread checks requests and commits them to the log (`log_writer`), another learns what is committed and takes
snapshots (`learner_thread`).
"""

from __future__ import annotations

import logging
import math
import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from shoal.learner import Learner
from shoal.serve import contract, promises, snapshots
from shoal.serve.answers import Answers, rehearse
from shoal.serve.apply import Fold
from shoal.serve.commands import Alter, Chore, Command, Follow, Forget, Label, Learn, Wait, now, without_ids
from shoal.serve.late_labels import first_request, new_request, prediction_id, with_ids
from shoal.serve.learner_thread import STOPPED, LearnerThread, Rhythm
from shoal.serve.limits import Caps, Limits
from shoal.serve.log import Log, Waiting, lock
from shoal.serve.log_writer import LogWriter
from shoal.serve.model_changes import Change, ModelFolder, refuse_unlike
from shoal.serve.row_codec import pack, pack_one
from shoal.serve.served_model import ServedModel
from shoal.serve.snapshots import SNAPSHOTS, Context, Snapshots, newest
from shoal.serve.statistics import Statistics
from shoal.tabular.reasons import Reasons

logger = logging.getLogger("shoal")
WEEK = 7 * 24 * 3600.0
EXPIRY_SECONDS = 60.0


class EngineSettings(NamedTuple):
    """The options of an engine."""

    log: str | None = None  # SQLAlchemy URL; None: a SQLite file in the folder
    rhythm: Rhythm = Rhythm()
    keep: int = 3  # snapshots
    keep_models: int = 3  # replaced ones
    keep_log: bool = False  # keep all records and the first snapshot, to rebuild the model of any time
    label_wait: float = WEEK  # seconds that rows wait for their labels; 0: predictions have no ids
    most_rows: int = 200_000  # not learned yet; beyond that, requests get 429
    caps: Caps = Caps()
    shadows: bool = True
    strict: bool = False  # refuse rows that lack a column of the model, or have a further one
    new_log: bool = False  # if the log is lost, continue behind the newest snapshot with an empty one


class Engine:
    """A served model file.

    Parameters
    ----------
    model : Path
        A file that `shoal run --save` wrote. Only a new folder reads it; later the folder holds the model.
    folder : Path
        For log and snapshots.
    settings : EngineSettings
    on_progress : function, optional
        Receives the reached and the last position while the log is replayed.
    offsets : mapping, optional
        For a new folder: the next message of each partition that the model has not learned.

    Raises
    ------
    ValueError
        If the model file or all snapshots cannot be read, another process has the folder or the log, or the log does
        not continue where the newest snapshot ends.
    Unavailable
        If the log cannot be reached.
    """

    def __init__(
        self,
        model: Path | None,
        folder: Path,
        settings: EngineSettings | None = None,
        on_progress: Callable[[int, int], None] | None = None,
        offsets: Mapping[str, int] | None = None,
    ) -> None:
        self.settings = settings or EngineSettings()
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as after_failure:  # release folder and log
            self._own = lock(folder / "lock", folder)
            after_failure.callback(os.close, self._own)
            self._snapshots = Snapshots(folder / SNAPSHOTS, self.settings.keep, keep_first=self.settings.keep_log)
            self._snapshots.tidy()
            if model is None and not self._snapshots.all():
                raise ValueError(f"{folder} holds no snapshot")
            snapshots.check_format(folder, is_new=not self._snapshots.all())
            self._log = Log(self.settings.log or f"sqlite:///{folder / 'log.sqlite'}", owned=True)
            after_failure.callback(self._log.close)
            self._open(model, on_progress, offsets or {})
            after_failure.pop_all()

    def _open(
        self, model: Path | None, on_progress: Callable[[int, int], None] | None, offsets: Mapping[str, int]
    ) -> None:
        """Read the newest snapshot, replay the log behind it, start the threads."""
        if not self._snapshots.all() and model is not None:
            self._log.check(0, None)
            first = self._snapshots.path(0)
            # Before the model, which marks the folder as begun.
            snapshots.write_context(first, Context(None, offsets, self._log.id))
            ServedModel(model).save(first)
        (served, candidate), position, context = newest(self._snapshots, with_shadows=self.settings.shadows)
        if self.settings.new_log and position > self._log.last:
            # Before the log, which is empty only until then.
            snapshots.write_context(self._snapshots.path(position), context._replace(log=self._log.id))
            self._log.begin_behind(position)
        else:
            self._log.check(position, context.log)
        self._log.begin_at(context.offsets)
        self.statistics = Statistics(served, context.counted, candidate)
        files = ModelFolder(self.folder, self.settings.keep_models, with_shadows=self.settings.shadows)
        files.tidy()
        files.replaced = list(context.replaced)
        self._fold, self._files, self._changing = (
            Fold(served, position, self.statistics, candidate, files),
            files,
            Lock(),
        )
        self._fold.rows = context.rows
        self._fold.forgotten = self._log.last_forgotten()
        # After a crash these may be left to do. If a newer snapshot is damaged, this one is kept.
        knows_no_more = self._fold.forgotten if position >= self._fold.forgotten else 0
        self._log.drop_until(self._snapshots.prune(knows_no_more))
        for reached in self._fold.replay(self._log.read(position)):
            if on_progress is not None:
                on_progress(reached, self._log.last)
        self._fold.offsets = self._log.offsets()
        for one in self._fold.models.all():
            one.encoder.unmatched.strict = self.settings.strict
        self._answers = Answers(self._fold)
        self._learner = LearnerThread(
            self._fold, position, self._snapshots, self.settings.rhythm, self._context, self._drop_records
        )
        head = self._learner_of_head
        limits = Limits(self.settings.caps, lambda task: head().knows_task(task), lambda: len(head().tasks_))
        self._writer = LogWriter(self._log, self._fold, limits, self._learner.put, self.settings.label_wait)
        self._next_expiry = time.monotonic()
        self.more_gauges: Callable[[], Mapping[str, float]] = dict  # of the follower that feeds the engine
        self._closed = False
        self._learner.start()
        self._writer.start()

    # ---- predicting and learning -----------------------------------------------------------------------------

    def predict(self, rows: contract.Rows, *, wait: bool = True) -> Future[list[contract.Answer]]:
        """Answers in the order of the rows; with `wait`, done when the rows are stored to wait for their labels."""
        self._refuse_if_closed()
        found = self._answers.of(rows)
        if not wait or self.settings.label_wait <= 0:
            return now(found)
        if trouble := self._writer.trouble:
            return now(without_ids(found, trouble))
        request = new_request()
        waiting = Waiting(request, len(found), pack(rows), bytes(len(found)))
        return self._submit(Wait([waiting], with_ids(found, request)))

    def predict_each(self, rows: Sequence[Mapping[str, Any]], *, wait: bool = True) -> list[contract.Pending]:
        """Predict rows of JSON values (numbers, strings, booleans, None) from different requests, fast. Each row has
        its own answer or error."""
        self._refuse_if_closed()
        found, waiting = self._answers.of_each(rows), []
        waits = wait and self.settings.label_wait > 0
        if waits and (trouble := self._writer.trouble):
            found = without_ids(found, trouble)
        elif waits:
            for i, answer in enumerate(found):
                if isinstance(answer, contract.Answer):
                    request = new_request()
                    waiting.append(Waiting(request, 1, pack_one(rows[i]), b"\0"))
                    found[i] = answer._replace(id=prediction_id(request, 0))
        return [contract.Pending(range(len(rows)), self._submit(Wait(waiting, found)) if waiting else now(found))]

    def learn(self, rows: contract.Rows, key: str | None = None) -> Future[contract.Receipt]:
        """Done when the rows are in the log; they are learned soon after, in that order."""
        self._refuse_if_full()
        return self._submit(Learn(rows, pack(rows), key))

    def check(self, rows: contract.Rows) -> None:
        """Raise Refused if these rows could not be learned now. Nothing changes."""
        with self._fold.accepting, self._fold.columns:
            models = self._fold.head
            mark = models.mark()
            try:
                rows, _ = models.matched(rows, new_columns=self.settings.caps.new_columns_a_minute > 0)
                faults = models.check(rows)[1]
            finally:
                models.rollback(mark)
        if faults:
            raise contract.Refused(*faults)

    def label(self, labels: Sequence[tuple[str, Any]], key: str | None = None) -> Future[contract.LabelReceipt]:
        """Learn predicted rows, given as pairs (id of the prediction, label)."""
        self._refuse_if_full()
        return self._submit(Label(labels, key))

    def follow(self, messages: contract.Messages) -> Future[contract.Followed]:
        """Done when labeled rows, waiting rows and labels, and the offsets are in the log, each exactly once.

        Rows that cannot be learned are left out; the result names them.
        """
        self._refuse_if_full()
        return self._submit(Follow(messages))

    def offsets(self) -> dict[str, int]:
        """The next message of each followed partition, by "topic/partition"."""
        return self._log.offsets()

    def worth(self, rows: contract.Rows) -> list[contract.Worth]:
        """Say which labels are worth asking for. Nothing changes."""
        self._refuse_if_closed()
        return self._answers.worth(rows)

    def explain(self, rows: contract.Rows) -> list[Reasons]:
        """Why the forecast of each row is what it is. Nothing changes. Raises Refused if they are more than 100."""
        self._refuse_if_closed()
        return self._answers.explain(rows)

    def forget(self, task: str) -> Future[contract.Receipt]:
        """Forget a task.

        From its position in the log on, its rows among those that wait for labels count as blank; they are blanked
        before this is done, or by the next start. The model forgets it at that position, before this is done, and then
        begins a snapshot; once that is written, older snapshots and records are deleted.
        """
        self._refuse_if_in_trouble()
        self._answers.forget(task)
        replaced = not self._fold.head.knows_task(task) and self._files.knows_task(task)
        return self._submit(Forget(task, replaced))

    # ---- changing the model ------------------------------------------------------------------------------------

    def new_file(self) -> Path:
        """A path for a model file that `change` takes."""
        return self._files.new_file()

    def change(self, what: str, file: Path | None = None) -> contract.Receipt:
        """Change the model while the log goes on; returns when the other one answers.

        "swap" puts the model of a file in place, "shadow" beside it as a candidate, which learns the same rows and is
        judged on them; "promote" puts the candidate in place, "drop" ends it; "rollback" returns to the model that was
        replaced last, as it was then. The file, at a path of `new_file`, is taken.

        Raises
        ------
        Refused
            If the file is no model, or one of other rows or labels; then nothing changes.
        Conflict
            If there is no candidate, or no model to return to.
        """
        self._refuse_if_in_trouble()
        with self._changing:  # one after the other, so that what is replaced is known
            try:
                command = self._prepared(what, file)
                receipt: contract.Receipt = self._submit(command).result()
            finally:
                if file is not None:
                    file.unlink(missing_ok=True)  # unless it was taken
            while not self.wait_until_learned(receipt.position, 1.0):
                self._refuse_if_closed()
            if command.change.what in ("swap", "shadow"):
                self._files.note(str(command.change.file))
            return receipt

    def has_taken(self, file: Path) -> bool:
        """Whether a file of this content was put in place, or beside it, before."""
        return self._files.has_taken(self._files.name_of(file))

    def _prepared(self, what: str, file: Path | None) -> Alter:
        """The command, with the model that it needs."""
        if what in ("swap", "shadow") and file is not None:
            try:
                loaded = ServedModel(file, with_shadows=self.settings.shadows)
            except (ValueError, OSError) as error:
                sentence = str(error).replace(str(file), "the file")
                raise contract.Refused(contract.Fault(None, None, sentence)) from None
            refuse_unlike(loaded, self._fold.served)
            rehearse(file, with_shadows=self.settings.shadows)
            loaded.encoder.unmatched.strict = self.settings.strict
            return Alter(Change("swap" if what == "swap" else "shadow", self._files.name_of(file)), loaded, file)
        if what == "rollback":
            if not self._files.replaced:
                raise contract.Conflict("there is no model to return to: none was replaced, or all that were are back")
            change = Change("rollback", self._files.replaced[-1])
            restored = self._files.load(change)
            if restored is not None:
                restored.encoder.unmatched.strict = self.settings.strict
            return Alter(change, restored, None)
        if self._fold.models.candidate is None:
            raise contract.Conflict("there is no candidate")
        return Alter(Change("promote" if what == "promote" else "drop"), None, None)

    def _learner_of_head(self) -> Learner:
        learner: Learner = self._fold.head.served.learner
        return learner

    # ---- looking ---------------------------------------------------------------------------------------------

    def describe(self) -> Mapping[str, Any]:
        """The model in plain values."""
        served = self._fold.served
        learner, roles = served.learner, served.roles
        return {
            "learner": type(learner).__name__,
            "parameters": {name: _json(value) for name, value in learner.get_params(deep=False).items()},
            "kind": served.labels.kind,
            "labels": served.labels.as_written(served.labels.classes) if served.labels.kind != "regression" else [],
            "quantiles": list(learner.quantiles),
            "columns": served.encoder.column_kinds,
            "unknown": dict(served.encoder.unmatched.unknown),
            "absent": dict(served.encoder.unmatched.absent),
            "task": roles.tasks,
            "label": roles.label,
            "tasks": len(learner.tasks_),
            "features": learner.n_features_in_,
            "learned": self._fold.position,
            "logged": self._writer.position,
            "rows": self._fold.rows,
            "replaced": len(self._files.replaced),
            "candidate": self._candidate(),
        }

    def _candidate(self) -> Mapping[str, Any] | None:
        """The candidate, with its scores and those of the live model on the same rows."""
        found, trial = self._fold.models.candidate, self.statistics.trial
        if found is None or trial is None:
            return None
        learner = found.learner
        about = {"learner": type(learner).__name__, "tasks": len(learner.tasks_), "features": learner.n_features_in_}
        scores = trial.scores()
        return {**about, "since": scores["since"], "scores": scores["candidate"], "live": scores["live"]}

    def list_tasks(self, sort: str, text: str, first: int, n: int) -> tuple[list[Mapping[str, Any]], int]:
        """A part of the tasks with their counts since the service began, and the number of tasks that contain the text;
        sorted by "rows", "error", "loss" or "auc" (worst first), "newest" or "name"."""
        return self.statistics.list_tasks(sort, text, first, n)

    def overview(self) -> Mapping[str, Any]:
        """The numbers on the page."""
        served = self._fold.served
        name = re.sub(r"(\.shoal)?(\.live)?(\.\d+)?$", "", self.folder.name)
        roles = {"task": served.roles.tasks, "label": served.roles.label}
        answers = {"learner": type(served.learner).__name__, "quantiles": list(served.learner.quantiles)}
        model = {"name": name, **answers, **roles}
        beside = {"replaced": len(self._files.replaced), "candidate": self._candidate()}
        return {**self.statistics.state(), "gauges": self.gauges(), "model": model, **beside}

    def tasks(self) -> Sequence[str]:
        """Ids of all tasks of the model."""
        return list(self._fold.served.learner.tasks_)

    def task(self, task: str) -> Mapping[str, Any]:
        """One task in plain values. Raises UnknownTask.

        `latest`: the forecast that was asked for last, and its reasons; `similar`: the most similar tasks; `ways`: the
        weights of the ways of sharing, if the learner weighs some; the values of `promises.of_task`; and since the
        service began `rows`, `error`, `loss`, and the means of `forecast` and `happened`.
        """
        found = dict(self._answers.about(task))
        with suppress(contract.UnknownTask):  # the task is older than the service
            found |= self.statistics.task(task)
        return found

    def export(self) -> Path:
        """Write a model file for `shoal.load` and `shoal run --load`; the caller deletes it."""
        self._refuse_if_closed()
        handle, name = tempfile.mkstemp(dir=self.folder, prefix="export-", suffix=".shoal")
        os.close(handle)
        with self._fold.accepting, self._fold.columns, self._fold.turns.learning():
            writing = snapshots.begin(self._fold.position, Path(name), self._fold.served.save)
        writing.wait()
        if writing.error:
            Path(name).unlink(missing_ok=True)
            raise contract.Unavailable(f"the model file was not written: {writing.error}")
        return Path(name)

    def gauges(self) -> Mapping[str, float]:
        """Numbers for dashboards."""
        newest_snapshot = self._snapshots.all()[0]
        with self._fold.turns.answering():
            kept = promises.gauges(self._fold.served.learner)
        log_bytes = {}
        if not self._writer.trouble:
            with suppress(contract.Unavailable):  # the other numbers matter most while the database is away
                log_bytes = {"log_bytes": self._log.size()}
        return {
            "queue_rows": self.queue,
            "position_logged": self._writer.position,
            "position_learned": self._fold.position,
            "rows_learned": self._fold.rows,
            "rows_refused": self._fold.refused,
            **log_bytes,
            "log_in_trouble": float(bool(self._writer.trouble)),
            "predictions_waiting": self._log.predictions_waiting,
            "snapshot_age_seconds": max(time.time() - newest_snapshot.time, 0.0),
            "snapshot_pause_seconds": self._learner.pause,
            "tasks": len(self._fold.served.learner.tasks_),
            "features": self._fold.served.learner.n_features_in_,
            **self.statistics.gauges(),
            **kept,
            **({} if (trial := self.statistics.trial) is None else trial.gauges()),
            **{f"labels_{name}": count for name, count in self._writer.labels.items()},
            "labels_asked": self._answers.labels_asked,
            **({} if (lag := self._writer.lags.median()) is None else {"label_lag_seconds": lag}),
            **self.more_gauges(),
        }

    @property
    def queue(self) -> int:
        """Rows that are requested or accepted and not learned yet."""
        return self._writer.rows_waiting + self._learner.backlog

    @property
    def trouble(self) -> str:
        """Why nothing can be learned now; empty if all is well."""
        return self._no_service or self._writer.trouble

    def wait_until_learned(self, position: int | None = None, timeout: float = math.inf) -> bool:
        """Wait until the model has learned the log up to a position (all by default); return whether it has."""
        position = self._writer.position if position is None else position
        ends = time.monotonic() + timeout
        while self._fold.position < position:
            if self._learner.failure is not None or time.monotonic() > ends:
                return False
            time.sleep(0.002)
        return True

    def expire(self) -> Future[None]:
        """Drop predictions whose labels would be late, and idempotency keys older than a week. The engine itself calls
        this once a minute."""
        moment = time.time() - self.settings.label_wait
        chore = Chore(lambda: self._log.expire(first_request(moment), moment, time.time() - WEEK))
        self._writer.submit(chore)
        return chore.future

    def close(self, *, snapshot: bool = True) -> None:
        """Learn all accepted rows, take a last snapshot, end the threads."""
        if self._closed:
            return
        self._closed = True
        if self._writer.trouble:
            self._writer.give_up()
        self._writer.stop()
        self._learner.stop()
        if snapshot and self._learner.failure is None:
            self._learner.finish()
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
        self._writer.submit(command)
        return command.future

    @property
    def _no_service(self) -> str:
        """Why nothing is answered; empty if all is well."""
        if self._closed:
            return "the service ends"
        return "" if self._learner.failure is None else STOPPED

    def _refuse_if_closed(self) -> None:
        if reason := self._no_service:
            raise contract.Unavailable(reason)

    def _refuse_if_in_trouble(self) -> None:
        """Raise Unavailable at once if the log is away."""
        self._refuse_if_closed()
        if trouble := self._writer.trouble:
            raise contract.Unavailable(trouble)

    def _refuse_if_full(self) -> None:
        self._refuse_if_in_trouble()
        if self.queue >= self.settings.most_rows:
            raise contract.Busy(f"{self.queue:,} rows wait to be learned", 1.0)

    def _context(self) -> Context:
        """The context of a snapshot."""
        return Context(
            self.statistics.to_dict(), dict(self._fold.offsets), self._log.id, self._fold.rows, self._files.replaced
        )

    def _drop_records(self, oldest: int) -> None:
        """Drop the records below the oldest snapshot; with `keep_log` the first one is kept, so there are none."""
        if self._writer.is_alive():
            self._writer.submit(Chore(lambda: self._drop_until(oldest)))
        else:
            try:
                self._drop_until(oldest)
            except contract.Unavailable as error:
                logger.warning("old records were not dropped; the next snapshot does it: %s", error)

    def _drop_until(self, oldest: int) -> None:
        self._log.drop_until(oldest)
        named = [Change.decoded(body).file for body in self._log.changes(oldest)]
        self._files.prune({name for name in named if name is not None})


def _json(value: Any) -> Any:
    """A parameter as JSON has it; of types that JSON lacks, as Python writes it."""
    if isinstance(value, list | tuple):
        return [_json(one) for one in value]
    is_plain = value is None or isinstance(value, bool | int | str)
    return value if is_plain or (isinstance(value, float) and math.isfinite(value)) else repr(value)
