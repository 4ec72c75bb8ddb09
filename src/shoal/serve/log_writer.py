"""The thread that writes the log: it checks requests, commits many at a time, acknowledges them, and hands on the rows.

One thread, so the log has the order in which rows were checked. A request is accepted or refused as a whole; a refused
one leaves no trace. If the log cannot be written, the whole commit fails, and so do all waiting requests, at once; only
requests of a commit in doubt wait until its outcome is known.
"""

import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import polars as pl

from shoal.serve.apply import MOST_ROWS, Fold, Group
from shoal.serve.commands import Alter, Chore, Command, Follow, Forget, Label, Learn, Wait, done, fail, repeat, run
from shoal.serve.contract import Fault, Receipt, Refused, Rows, Unavailable, UnknownTask
from shoal.serve.late_labels import Lags, complete, first_request, requests_of
from shoal.serve.limits import Limits
from shoal.serve.log import Batch, Forgotten, Half, InDoubt, Log, Record, Taken, Used, Waiting
from shoal.serve.row_codec import MOST_CELLS, are_alike, concat, pack, without_task
from shoal.serve.topic_join import Joined, ids_of, join, without_faults

logger = logging.getLogger("shoal")
MOST_COMMANDS = 512  # of one commit
LOOKED = 1_000  # stored predictions that are looked at between two commits
SIBLINGS = 4  # after a commit of this many commands, the next one waits for more of them; a commit is expensive
GATHER_SECONDS = 0.001
RETRY_SECONDS = 0.25  # between attempts to reach the database
LINE_SECONDS = 60.0  # between two lines about one trouble
PATIENCE = 10.0  # seconds until requests of a commit in doubt fail, and further ones are refused


class Admitted(NamedTuple):
    """A command with valid rows; labels may bring fewer rows than labels."""

    command: Learn | Label | Follow | Forget | Alter
    rows: Rows | None
    answer: Any  # for the future, still without the position
    labeled: Sequence[Waiting] = ()  # the stored predictions that its labels complete
    predicted: Sequence[float] = ()  # the times of these predictions


class Forgets(NamedTuple):
    """A command whose task the log forgets."""

    command: Command
    answer: Any
    learned: Future[None]  # done when the model has forgotten it

    def finish(self, learned: Future[None]) -> None:
        """Complete the command with the outcome of the model's part."""
        error = learned.exception()
        if error is None:
            done(self.command, self.answer)
        else:
            fail(self.command, error)


class LogWriter(threading.Thread):
    """The thread.

    Parameters
    ----------
    log : Log
    fold : Fold
        Its model checks the rows.
    limits : Limits
    hand_on : function
        Receives each committed group, in order.
    label_wait : float
        Seconds that rows wait for their labels.
    """

    def __init__(
        self, log: Log, fold: Fold, limits: Limits, hand_on: Callable[[Group], None], label_wait: float
    ) -> None:
        super().__init__(name="shoal-log", daemon=True)
        self._log, self._fold, self._limits, self._hand_on = log, fold, limits, hand_on
        self._label_wait = label_wait
        self._inbox: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self._position = log.last
        self._stops, self._counting = False, threading.Lock()
        self._ended = threading.Event()
        self._gathers = False
        self._held: list[Command] = []  # for the next commit
        self._trouble, self._next_line, self._is_failure_logged = "", 0.0, False
        self._room = 0  # bytes of the last batch
        # Whose waiting rows are still to be blanked, and whom to answer then; nobody, if that process was killed.
        self._forgetting: dict[Forgotten, Forgets | None] = dict.fromkeys(log.forgotten())
        self._steps: Iterator[None] | None = None  # of the first of them
        self._committing_since = math.inf
        self.rows_waiting = 0  # of commands that are not done yet
        self.labels, self.lags = {"accepted": 0, "late": 0, "double": 0, "unknown": 0}, Lags()

    @property
    def position(self) -> int:
        """The last record in the log."""
        return self._position

    @property
    def trouble(self) -> str:
        """Why the log cannot be written now; empty if it can."""
        if not self._trouble and time.monotonic() > self._committing_since + PATIENCE:
            return f"the log has not answered for {PATIENCE:g} seconds"
        return self._trouble

    def submit(self, command: Command) -> None:
        """Put a command in the queue; its future has the outcome."""
        with self._counting:
            self.rows_waiting += command.n_rows
        self._inbox.put(command)

    def _blank_some(self) -> None:
        """Blank some waiting rows of a task that the log forgets, as there may be millions and predictions wait for
        their commit; behind the last, complete its command."""
        gone, admitted = next(iter(self._forgetting.items()))
        try:
            if self._steps is None:
                self._steps = self._log.blank(gone, self._without(gone.task), LOOKED)
            is_done = next(self._steps, gone) is gone
        except Unavailable as error:
            self._steps = None
            self._refuse_waiting(error)
            self._wait_until_back()
            return
        except Exception as error:  # a stored row that cannot be read; this thread must go on
            logger.exception("waiting rows of a forgotten task could not be blanked; the next start tries again")
            self._steps = None
            del self._forgetting[gone]
            if admitted is not None:
                fail(admitted.command, error)
            return
        if is_done:
            self._steps = None
            del self._forgetting[gone]
            if admitted is not None:
                admitted.learned.add_done_callback(admitted.finish)

    @property
    def _blanks(self) -> bool:
        """Whether waiting rows are to be blanked, by this process."""
        return bool(self._forgetting) and not self._ended.is_set()

    def _without(self, task: str) -> Callable[[bytes], bytes | None]:
        served = self._fold.head.served
        return without_task(task, served.roles.tasks, served.task_ids)

    def _unless_forgotten(self, stored: Waiting | Half) -> Any:
        """The bytes of stored rows, without those of tasks that were forgotten since."""
        body = stored.body if isinstance(stored, Waiting) else stored.row
        for gone in self._forgetting:
            if body is not None and gone.covers(stored):
                body = self._without(gone.task)(body) or body
        return body

    def stop(self) -> None:
        """Do all submitted commands, then end."""
        self._inbox.put(None)
        self.join()

    def run(self) -> None:
        while (commands := self._take()) or self._blanks:
            if commands:
                self._do(commands)
            self._gathers = len(commands) >= SIBLINGS
            with self._counting:
                held = {id(one) for one in self._held}
                self.rows_waiting -= sum(one.n_rows for one in commands if id(one) not in held)
            if self._blanks and not self._trouble:
                self._blank_some()
        for admitted in filter(None, self._forgetting.values()):
            fail(admitted.command, Unavailable("the task is forgotten; the next start blanks its waiting rows"))

    def _take(self) -> list[Command]:
        """The commands of the next commit; none after `stop`."""
        commands, self._held = self._held, []
        if self._gathers:
            time.sleep(GATHER_SECONDS)
        while len(commands) < MOST_COMMANDS:
            try:
                command = self._inbox.get(block=not (commands or self._stops or self._blanks))
            except queue.Empty:
                break
            if command is None:
                self._stops = True
            else:
                commands.append(command)
        return commands

    def _predictions_that_came(self) -> list[Command]:
        """Predictions whose rows wait for this commit: they need no check. Commands between them are held."""
        found = list[Command]()
        with suppress(queue.Empty):
            while len(found) < MOST_COMMANDS:
                command = self._inbox.get_nowait()
                if command is None:
                    self._stops = True
                else:
                    (found if isinstance(command, Wait) else self._held).append(command)
        return found

    # ---- one commit ------------------------------------------------------------------------------------------

    def _do(self, commands: list[Command]) -> None:
        """Do commands in order; some may be held for the next commit."""
        try:
            if self._trouble:  # which is permanent here
                raise Unavailable(self._trouble)
            n = next((max(i, 1) for i, one in enumerate(commands) if isinstance(one, Alter | Forget)), len(commands))
            behind = commands[n:]  # a change is alone, as it changes how rows, or labels of stored ones, are read
            commands, self._held = self._without_repeated(commands[:n])
            self._held += behind
            with self._undone_on_failure():
                moment = time.time()
                groups, admitted = self._admit(commands, moment)
                commands += self._predictions_that_came()  # while rows were checked
                batch = self._batch(admitted, [one for one in commands if _writes_no_record(one)], moment)
                self._commit(batch, commands)
            if groups:
                groups[-1] = groups[-1]._replace(offsets=batch.offsets)
        except Exception as error:  # mostly Unavailable; nothing was written, and this thread must go on
            if isinstance(error, Unavailable):  # before the failed ones can ask again
                self._refuse_waiting(error)
            for command in commands:
                fail(command, error)
            if self._trouble:
                self._wait_until_back()
            return
        for group in groups:
            if group.models is not None:
                if group.change is not None and group.change.what in ("swap", "rollback"):
                    self._limits.begin_anew()
                self._fold.head = group.models
            self._hand_on(group)
        for gone in batch.forgotten:  # which is alone
            assert groups[0].learned is not None
            self._forgetting[gone] = Forgets(admitted[0].command, admitted[0].answer, groups[0].learned)
        self._acknowledge(admitted, commands)
        for command in commands:
            if isinstance(command, Chore):
                run(command)

    def _wait_until_back(self) -> None:
        """After a failure, refuse requests at once until the log can be written."""
        while not self._ended.is_set():
            try:
                self._log.ping(self._room)
                self._trouble = ""
                if self._is_failure_logged:
                    logger.warning("the log can be written again")
                self._is_failure_logged = False
                return
            except Unavailable as error:
                self._refuse_waiting(error)
            self._ended.wait(RETRY_SECONDS)

    def _refuse_waiting(self, error: Unavailable) -> None:
        """Fail the queued commands, and note the reason for further ones."""
        self._trouble = str(error)
        if time.monotonic() >= self._next_line:
            self._next_line, self._is_failure_logged = time.monotonic() + LINE_SECONDS, True
            logger.error("%s; nothing is learned, and predictions have no ids", error)
        if isinstance(error, Taken):
            self._ended.set()
        waiting, self._held = self._held, []
        with suppress(queue.Empty):
            while True:
                command = self._inbox.get_nowait()
                if command is None:  # ending does not wait for a database
                    self._stops = True
                    self._ended.set()
                    continue
                with self._counting:
                    self.rows_waiting -= command.n_rows
                waiting.append(command)
        for command in waiting:
            fail(command, Unavailable(self._trouble))

    @contextmanager
    def _undone_on_failure(self) -> Iterator[None]:
        """If the log cannot be written, undo the new columns, labels and tasks of the checks."""
        with self._fold.accepting:
            with self._fold.columns:
                mark = self._fold.head.mark()
            counted = self._limits.mark()
            try:
                yield
            except Exception:
                with self._fold.columns:
                    self._fold.head.rollback(mark)
                self._limits.rollback(counted)
                raise

    def _without_repeated(self, commands: list[Command]) -> tuple[list[Command], list[Command]]:
        """Answer repeated commands. If two share a key, or label the same prediction, the second one and all behind it
        are held for the next commit."""
        claims = [_claims(command) for command in commands]
        if not any(claims):
            return commands, []
        keys = [command.key for command in commands if isinstance(command, Learn | Label) and command.key]
        used, seen = self._log.used(keys) if keys else {}, set[str]()
        rest: list[Command] = []
        for i, (command, claim) in enumerate(zip(commands, claims, strict=True)):
            if claim & seen:
                return rest, commands[i:]
            seen |= claim
            if isinstance(command, Learn | Label) and command.key in used:
                repeat(command, used[command.key])
            else:
                rest.append(command)
        return rest, []

    def _admit(self, commands: list[Command], moment: float) -> tuple[list[Group], list[Admitted]]:
        """Check rows and give positions: alike consecutive requests as one table, or each alone if that fails."""
        pending = self._with_rows(commands)
        groups: list[Group] = []
        admitted: list[Admitted] = []
        position = self._position
        while pending:
            n = self._alike(pending)
            found, pending = pending[:n], pending[n:]
            group = self._group(found, position, moment)
            if group is None and n > 1:
                pending = found[1:] + pending  # one of them is at fault: check each alone
                found = found[:1]
                group = self._group(found, position, moment)
            if group is not None:
                groups.append(group)
                admitted += found
                position = group.last
        return groups, admitted

    def _alike(self, pending: Sequence[Admitted]) -> int:
        """The number of first commands that make one table."""
        first = pending[0]
        if first.rows is None or self._fold.head.simultaneous:
            return 1
        n, height, columns = 0, 0, set[str]()
        for other in pending:
            if other.rows is None or not are_alike(first.rows, other.rows):
                break
            height += other.rows.frame.height
            columns.update(other.rows.frame.columns)
            if n and (height > MOST_ROWS or height * len(columns) > MOST_CELLS):
                break
            n += 1
        return n

    def _group(self, found: Sequence[Admitted], position: int, moment: float) -> Group | None:
        """Requests as one group to learn; None if one is invalid. A single invalid request fails."""
        last = position + len(found)
        head, command = self._fold.head, found[0].command
        if isinstance(command, Forget):
            task = command.task
            if not (head.knows_task(task) or command.replaced or task in self._limits.coming):
                fail(command, UnknownTask(f"there is no task {task!r}"))
                return None
            return Group(last, np.empty(0), None, task, learned=Future())
        if isinstance(command, Alter):
            if command.part is not None and self._fold.files is not None:
                self._fold.files.take(command.part, command.change)
            models = head.after(command.change, command.loaded)
            return Group(last, np.empty(0), None, change=command.change, models=models)
        rows = concat([one.rows for one in found if one.rows is not None])
        with self._fold.columns:
            mark, known = head.mark(), len(head.served.encoder.column_names)
            try:
                checked, faults, beside = head.check(rows)
                if faults:
                    raise Refused(*sorted(faults, key=lambda fault: fault.row or 0))
                self._limits.check(checked.task, len(head.served.encoder.column_names) - known)
            except Exception as error:  # any error fails this request only
                head.rollback(mark)
                if len(found) == 1:
                    is_polars = isinstance(error, pl.exceptions.PolarsError)
                    fail(command, Refused(_unreadable(error)) if is_polars else error)
                return None
        return Group(last, np.full(rows.frame.height, moment), checked, candidate=beside)

    def _with_rows(self, commands: list[Command]) -> list[Admitted]:
        """Each command that writes a record, with its rows; labels find theirs in the log."""
        wanted = {request for one in commands if isinstance(one, Label) for request in requests_of(one)}
        waiting = self._log.waiting(sorted(wanted)) if wanted else {}
        for name, stored in waiting.items() if self._forgetting else ():
            waiting[name] = stored._replace(body=self._unless_forgotten(stored))
        oldest, column = first_request(time.time() - self._label_wait), str(self._fold.head.served.roles.label)
        found: list[Admitted] = []
        for command in commands:
            if isinstance(command, Learn):
                try:
                    matched, note = self._matched(command.rows)
                except Refused as error:
                    fail(command, error)
                    continue
                found.append(Admitted(command, matched, Receipt(0, command.n_rows, note=note)))
            elif isinstance(command, Forget | Alter):
                found.append(Admitted(command, None, Receipt(0, 0)))
            elif isinstance(command, Label):
                try:
                    rows, labeled, receipt, predicted = complete(command, waiting, column, oldest)
                except Refused as error:
                    fail(command, error)
                    continue
                for kind in ("late", "double", "unknown"):
                    self.labels[kind] += len(getattr(receipt, kind))
                if rows is None:
                    done(command, receipt)
                else:
                    found.append(Admitted(command, self._matched(rows)[0], receipt, labeled, predicted))
            elif isinstance(command, Follow):
                command.joined = self._joined(command)
                if command.joined.rows is not None:
                    found.append(Admitted(command, command.joined.rows, command.joined.answer))
        return found

    def _matched(self, rows: Rows) -> tuple[Rows, str | None]:
        return self._fold.head.matched(rows, new_columns=self._limits.takes_columns)

    def _joined(self, command: Follow) -> Joined:
        """The rows that a topic's messages complete and that can be learned."""
        ids = ids_of(command.messages)
        waiting = self._log.halves(ids) if ids else {}
        for name, half in waiting.items() if self._forgetting else ():
            waiting[name] = half._replace(row=self._unless_forgotten(half))
        joined = join(command.messages, waiting, str(self._fold.head.served.roles.label), time.time())
        with self._fold.columns:
            return without_faults(joined, self._fold.head, new_columns=self._limits.takes_columns)

    def _batch(self, admitted: list[Admitted], others: list[Wait | Follow], moment: float) -> Batch:
        position, n_labels = self._position, 0
        records, receipts = [], []
        labeled: list[Waiting] = []
        forgotten: list[Forgotten] = []
        for i, (command, rows, answer, marked, predicted) in enumerate(admitted):
            position += 1
            answer = answer._replace(position=position)
            admitted[i] = admitted[i]._replace(answer=answer)
            labeled += marked
            n_labels += len(predicted)
            if isinstance(command, Forget):
                records.append(Record(position, moment, "forget", 0, command.task.encode()))
                forgotten.append(Forgotten(position, command.task, self._log.newest_waiting(), moment))
                continue
            if isinstance(command, Alter):
                records.append(Record(position, moment, "model", 0, command.change.encoded()))
                continue
            assert rows is not None
            body = command.body if isinstance(command, Learn) and rows is command.rows else pack(rows)
            records.append(Record(position, moment, "learn", rows.frame.height, body))
            if not isinstance(command, Follow) and command.key is not None:
                receipts.append(Used(command.key, moment, command.digest, list(answer)))
        waits = [waiting for one in others if isinstance(one, Wait) for waiting in one.waiting]
        follows = [one for one in (*(a.command for a in admitted), *others) if isinstance(one, Follow)]
        halves = [half for one in follows if one.joined is not None for half in one.joined.halves]
        offsets = {source: at for one in follows for source, at in one.messages.offsets.items()}
        return Batch(records, receipts, waits, labeled, n_labels, forgotten, halves, offsets)

    def _commit(self, batch: Batch, commands: list[Command]) -> None:
        """Write the batch. Raises Unavailable if it is not written; after a broken connection that is known only when
        the database is back."""
        if any(batch):
            self._committing_since = time.monotonic()
            self._room = sum(len(one.body) for one in batch.records) + sum(len(one.body) for one in batch.waiting)
            try:
                self._log.commit(batch)
            except InDoubt as error:
                if not self._settle(batch, commands, error):
                    raise
            finally:
                self._committing_since = math.inf
        if batch.records:
            self._position = batch.records[-1].position

    def _settle(self, batch: Batch, commands: list[Command], error: InDoubt) -> bool:
        """Whether a batch was written whose commit failed."""
        in_doubt = Unavailable(f"{error}; it may have been accepted: ask again, with its key")
        begun = time.monotonic()
        while True:
            try:
                written = self._log.settle(batch)
                self._trouble = ""
                return written
            except Unavailable as reason:
                self._refuse_waiting(reason)
                for command in commands:
                    if isinstance(command, Wait):  # answered without id
                        fail(command, reason)
            if time.monotonic() > begun + PATIENCE:
                for command in commands:
                    fail(command, in_doubt)
            if self._ended.wait(RETRY_SECONDS):
                raise in_doubt

    def _acknowledge(self, admitted: list[Admitted], commands: list[Command]) -> None:
        for one in admitted:
            if isinstance(one.command, Label):
                self.labels["accepted"] += one.answer.accepted
                self.lags.add(one.predicted)
            if not isinstance(one.command, Forget):
                done(one.command, one.answer)
        for command in commands:
            if isinstance(command, Wait):
                done(command, command.answers)
            elif isinstance(command, Follow) and command.joined is not None and command.joined.rows is None:
                done(command, command.joined.answer)

    def give_up(self) -> None:
        """Stop waiting for a database that is away."""
        self._ended.set()


def _unreadable(error: Exception) -> Fault:
    return Fault(None, None, f"the rows cannot be read: {str(error).splitlines()[0]}")


def _claims(command: Command) -> set[str]:
    """The keys and predictions that no other command of the same commit may name."""
    if isinstance(command, Follow):
        return {"messages"}
    if not isinstance(command, Learn | Label):
        return set()
    requests = requests_of(command) if isinstance(command, Label) else set()
    return requests | ({f"key {command.key}"} if command.key is not None else set())


def _writes_no_record(command: Command) -> TypeGuard[Wait | Follow]:
    """Whether it writes only rows that wait, and no record."""
    return isinstance(command, Wait) or (
        isinstance(command, Follow) and command.joined is not None and command.joined.rows is None
    )
