"""The log: all accepted rows, in the order in which the model learns them. The model is a fold over the log.

One writer owns the log. A record holds the rows of one request; records of many requests share a commit. The same
database, and so the same commits, hold the used idempotency keys, the rows that wait for their labels, and the offsets
of followed topics.

Two things keep a second writer out. The owner holds a lock: a lock file beside a SQLite file, or an advisory lock of
the writing session in PostgreSQL. PostgreSQL frees that lock only when the session and its transaction have ended; so
its next holder knows that no commit of an earlier owner is still under way. A heartbeat could not tell. And each commit
replaces the id of the one before in its own transaction: if a lock is lost (a standby takes over, a pooler hands out
another session), the second writer's commit fails.
"""

import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from shoal.serve.contract import Unavailable

Kind = Literal["learn", "forget", "model"]
FORMAT = 1
PAGE = 256  # records that are read at once
EXPECTED = "expected sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME"
LOCK_CLASS = 0x73686F61  # "shoa": of PostgreSQL's advisory locks
NO_KEY = ""  # of the receipt that tries whether there is room; requests have longer keys
FIRST_PATIENCE = 5.0  # seconds for the sessions of a service that was killed to end
FORK_PATIENCE = 1.0  # seconds for a fork of it, which writes a snapshot, to let go of its files
PATIENCE = 0.5  # the same when a connection of our own broke
# Both ends notice within half a minute that the other is gone without a word; the server then frees the lock.
NETWORK = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000}
SERVERS_NETWORK = """select set_config(there.name, ours.setting, false) from pg_settings there join (values
    ('tcp_keepalives_idle', '10'), ('tcp_keepalives_interval', '5'), ('tcp_keepalives_count', '3'),
    ('tcp_user_timeout', '20000')) ours(name, setting) on there.name = ours.name"""

metadata = sa.MetaData()
heads = sa.Table(  # one row
    "head",
    metadata,
    sa.Column("log", sa.Text, primary_key=True),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("commit", sa.Text, nullable=False),
    sa.Column("dropped", sa.BigInteger, nullable=False),
    sa.Column("format", sa.Integer, nullable=False),
)
records = sa.Table(
    "record",
    metadata,
    sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("time", sa.Double, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("rows", sa.Integer, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
receipts = sa.Table(
    "receipt",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("time", sa.Double, nullable=False, index=True),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("answer", sa.JSON, nullable=False),
)
waiting = sa.Table(
    "waiting",
    metadata,
    sa.Column("request", sa.Text, primary_key=True),
    sa.Column("rows", sa.Integer, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("labeled", sa.LargeBinary, nullable=False),
    sa.Column("open", sa.Integer, nullable=False),
)

halves = sa.Table(
    "half",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("time", sa.Double, nullable=False, index=True),
    sa.Column("row", sa.LargeBinary),
    sa.Column("label", sa.Text),
)
forgotten = sa.Table(
    "forgotten",
    metadata,
    sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("task", sa.Text, nullable=False),
    sa.Column("until", sa.Text, nullable=False),
    sa.Column("time", sa.Double, nullable=False),
)
offsets = sa.Table(
    "offset",
    metadata,
    sa.Column("source", sa.Text, primary_key=True),
    sa.Column("next", sa.BigInteger, nullable=False),
)


class Record(NamedTuple):
    """The rows of one request, a task to forget, or a change of the model."""

    position: int  # counted from 1, without gaps
    time: float
    kind: Kind
    rows: int
    body: bytes  # learn: the rows as `row_codec` packs them; forget: the task; model: a `Change`


class Used(NamedTuple):
    """A used idempotency key, with the hash of its request and the answer."""

    key: str
    time: float
    digest: bytes
    answer: Any


class Waiting(NamedTuple):
    """The rows of a prediction, until their labels come."""

    request: str
    rows: int
    body: bytes
    labeled: bytes  # one byte a row: 1 if its label has come

    @property
    def open(self) -> int:
        """Rows whose labels have not come."""
        return self.labeled.count(0)


class Half(NamedTuple):
    """A row of a topic that waits for its label, or a label that waits for its row; neither: both have come."""

    id: str
    time: float
    row: bytes | None
    label: str | None  # as JSON


class Forgotten(NamedTuple):
    """A task whose rows that waited when it was forgotten are still to be blanked."""

    position: int  # of the record that forgets it
    task: str
    until: str  # the newest prediction that was stored
    time: float  # rows of topics that came later are others

    def covers(self, stored: Waiting | Half) -> bool:
        """Whether rows were stored before it."""
        return stored.request <= self.until if isinstance(stored, Waiting) else stored.time <= self.time


class Batch(NamedTuple):
    """The content of one commit."""

    records: list[Record]
    receipts: list[Used]
    waiting: list[Waiting]
    labeled: list[Waiting]  # stored predictions with new labels
    n_labels: int  # of these
    forgotten: list[Forgotten]
    halves: list[Half]  # replace those of the same ids
    offsets: dict[str, int]  # of the next message of each partition


class End(NamedTuple):
    """The end of the log, with the id of the last commit; a position alone does not name the writer of its record."""

    position: int
    commit: str


class Copied(NamedTuple):
    """The end of the log that was copied, and the record up to which there are none."""

    position: int
    dropped: int


class Away(Unavailable):
    """The database cannot be reached, or another process has its lock."""


class Taken(Unavailable):
    """Another writer has written to the log."""


class InDoubt(Unavailable):
    """The connection broke during the commit, which may have been written or not."""


def is_written(found: End, before: End, tried: End) -> bool:
    """Whether a commit in doubt was written.

    Parameters
    ----------
    found : End
        The end of the log, when no commit is under way any more.
    before : End
        The end before the commit.
    tried : End
        The end if the commit was written.

    Raises
    ------
    Taken
        If it is neither.
    """
    if found not in (before, tried):
        raise Taken(
            f"another writer has the log: the records behind {before.position:,} are not of this service; end "
            "one of the two, then start this one again"
        )
    return found == tried


def of_another_format(found: str, readable: int) -> str:
    """Advice for a folder or log of another format."""
    return (
        f"{found}, this shoal reads {readable}: with the shoal that wrote it, `shoal replay FOLDER --save model.shoal` "
        "writes its model, or go on with that shoal; with this one, `shoal serve model.shoal --folder NEW` begins anew"
    )


def lock(path: Path, what: object) -> int:
    """Lock a file for this process, until the handle is closed or the process ends. `what` names it in the error."""
    handle, ends = os.open(path, os.O_CREAT | os.O_RDWR, 0o600), time.monotonic() + FORK_PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() > ends:
                os.close(handle)
                raise ValueError(f"{what} is in use by another process") from None
            time.sleep(0.02)
        else:
            return handle


class Log:
    """A database that one process writes.

    Parameters
    ----------
    url : str
        SQLAlchemy URL of a SQLite file or a PostgreSQL database.
    owned : bool
        Whether this process writes the log until it is closed; otherwise it only reads it.

    Attributes
    ----------
    id : str
        A random id of the log; each database has its own.
    dropped : int
        The records up to this one may be gone.

    Raises
    ------
    ValueError
        If the URL is invalid, or another process owns the log.
    Unavailable
        If the database cannot be reached.
    """

    id: str
    dropped: int

    def __init__(self, url: str, *, owned: bool = False) -> None:
        self._engine = _engine(url)
        # Compiled once: SQLAlchemy would need longer for the values of many predictions than SQLite for writing them.
        compiled = sa.insert(waiting).compile(dialect=self._engine.dialect)
        self._insert_waiting, self._by_place = str(compiled), compiled.positional
        self._session: sa.Connection | None = None  # has the lock, and writes
        self._file_lock: int | None = None
        try:
            self._create()
            if owned:
                self._own()
            found = self._rows(sa.select(heads))
            self.id, position, commit, self.dropped, _ = found[0] if found else ("", 0, "", 0, FORMAT)
            self._end = self._tried = End(position, commit)
            # Counted once, as there may be millions and dashboards ask every second.
            self.predictions_waiting = int(self._scalar(sa.select(sa.func.sum(waiting.c.open))) or 0)
        except BaseException:
            self.close()
            raise

    @property
    def last(self) -> int:
        """The position of the last record, kept or dropped."""
        return self._end.position

    def check(self, position: int, log: str | None) -> None:
        """Check that the log continues where a snapshot ends.

        Parameters
        ----------
        position : int
            The last record in the snapshot.
        log : str or None
            The id of the snapshot's log, if it is known.

        Raises
        ------
        ValueError
            If records are missing in between.
        """
        if log not in (None, self.id):
            found = "this database holds another log than the one that the newest snapshot is of"
        elif position < self.dropped:
            found = (
                f"the newest snapshot has {position:,} records, but up to record {self.dropped:,} they were dropped "
                "from the log, as there was a newer one"
            )
        elif position > self.last:
            found = f"the log ends at record {self.last:,}, but the newest snapshot has {position:,}: it is a newer one"
        else:
            return
        raise ValueError(
            f"{found}; restore the folder and the database as they were together, or, to go on without what is "
            "missing, give an empty database and --new-log"
        )

    def begin_behind(self, position: int) -> None:
        """Continue behind a snapshot whose log is lost. Raises ValueError if this log is not empty."""
        if self.last:
            raise ValueError(f"--new-log is for an empty database; in this one {self.last:,} records were written")
        with self._transaction(position=position, dropped=position):
            pass
        self._end, self.dropped = self._end._replace(position=position), position

    def commit(self, batch: Batch) -> None:
        """Write a batch as a whole; when this returns, no crash can lose it.

        Raises
        ------
        InDoubt
            If the batch may be written or not; `settle` finds out.
        Taken
            If another writer has written to the log; this batch is not written.
        Unavailable
            If it is not written.
        """
        position = batch.records[-1].position if batch.records else self.last
        self._tried = End(position, secrets.token_hex(8))
        with self._transaction(**self._tried._asdict()) as connection:
            for table, rows in ((records, batch.records), (receipts, batch.receipts), (forgotten, batch.forgotten)):
                if rows:
                    connection.execute(sa.insert(table), [row._asdict() for row in rows])
            if batch.waiting:
                given: list[Any] = [(*one, one.open) for one in batch.waiting]
                if not self._by_place:
                    given = [dict(zip(waiting.c.keys(), values, strict=True)) for values in given]
                connection.exec_driver_sql(self._insert_waiting, given)
            if batch.labeled:
                found = sa.update(waiting).where(waiting.c.request == sa.bindparam("which"))
                connection.execute(
                    found.values(labeled=sa.bindparam("now"), open=sa.bindparam("still")),
                    [{"which": one.request, "now": one.labeled, "still": one.open} for one in batch.labeled],
                )
            _replace(connection, halves.c.id, {half.id: half._asdict() for half in batch.halves})
            _replace(connection, offsets.c.source, _positions(batch.offsets))
        self._written(batch)

    def settle(self, batch: Batch) -> bool:
        """Whether the batch of a commit in doubt was written.

        Raises
        ------
        Taken
            If another writer has written to the log since.
        Unavailable
            As long as the database is away, or an earlier connection may still be writing.
        """
        written = is_written(self._found(), self._end, self._tried)
        if written:
            self._written(batch)
        return written

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Record]:
        """The records behind a position, in order, up to another (all by default)."""
        while True:
            query = sa.select(records).where(records.c.position > after)
            if until is not None:
                query = query.where(records.c.position <= until)
            with _failures(), self._engine.connect() as connection:
                found = connection.execute(query.order_by(records.c.position).limit(PAGE)).all()
            for row in found:
                yield Record(*row)
            if len(found) < PAGE:
                return
            after = found[-1].position

    def ping(self, room: int = 0) -> None:
        """Raise Unavailable if the log cannot be written, or has no room for this many bytes."""
        is_written(self._found(), self._end, self._end)
        with self._transaction() as connection:  # a full disk can be read, and often takes a page
            probe = {"key": NO_KEY, "time": 0.0, "digest": bytes(room), "answer": []}
            _replace(connection, receipts.c.key, {NO_KEY: probe})
        with self._transaction() as connection:
            connection.execute(sa.delete(receipts).where(receipts.c.key == NO_KEY))

    def last_forgotten(self) -> int:
        """The position of the last record that forgets a task; 0 if none is kept."""
        return self._scalar(sa.select(sa.func.max(records.c.position)).where(records.c.kind == "forget")) or 0

    def changes(self, after: int) -> list[bytes]:
        """The bodies of the records behind a position that change the model."""
        query = sa.select(records.c.body).where(records.c.kind == "model", records.c.position > after)
        return [row.body for row in self._rows(query)]

    def position_at(self, moment: float) -> int:
        """The last record that was accepted up to a time (of `time.time`); 0 if none was."""
        query = sa.select(sa.func.max(records.c.position)).where(records.c.time <= moment)
        return self._scalar(query) or 0

    def used(self, keys: Sequence[str]) -> dict[str, Used]:
        """The used ones of these keys."""
        return {row.key: Used(*row) for row in self._rows(sa.select(receipts).where(receipts.c.key.in_(keys)))}

    def waiting(self, requests: Sequence[str]) -> dict[str, Waiting]:
        """The stored rows of these requests."""
        found = self._rows(sa.select(waiting).where(waiting.c.request.in_(requests)))
        return {row.request: Waiting(*row[:-1]) for row in found}

    def halves(self, ids: Sequence[str]) -> dict[str, Half]:
        """The rows and labels of these ids that wait for each other."""
        return {row.id: Half(*row) for row in self._rows(sa.select(halves).where(halves.c.id.in_(ids)))}

    def offsets(self) -> dict[str, int]:
        """The next message of each followed partition."""
        return {row.source: row.next for row in self._rows(sa.select(offsets))}

    def begin_at(self, found: Mapping[str, int]) -> None:
        """Set the offsets that were reached before this log, or in a lost one."""
        known = self.offsets()
        found = {source: at for source, at in found.items() if at > known.get(source, -1)}
        with self._transaction() as connection:
            _replace(connection, offsets.c.source, _positions(found))

    def newest_waiting(self) -> str:
        """The newest stored prediction; empty if there is none."""
        return self._scalar(sa.select(sa.func.max(waiting.c.request))) or ""

    def forgotten(self) -> list[Forgotten]:
        """The forgotten tasks whose rows are still to be blanked."""
        return [Forgotten(*row) for row in self._rows(sa.select(forgotten))]

    def blank(self, gone: Forgotten, edited: Callable[[bytes], bytes | None], n: int) -> Iterator[None]:
        """Blank the waiting rows of a forgotten task, of n stored ones at a time; `edited` gives None where nothing
        changes. A kill in between costs nothing: the task stays among `forgotten` until all are blanked."""
        for key, content, condition in (
            (waiting.c.request, waiting.c.body, waiting.c.request <= gone.until),
            (halves.c.id, halves.c.row, halves.c.time <= gone.time),
        ):
            query = sa.select(key, content).where(condition, content.is_not(None)).order_by(key).limit(n)
            found = self._rows(query)
            while found:
                changed = [{"which": name, "now": other} for name, body in found if (other := edited(body)) is not None]
                if changed:
                    with self._transaction() as connection:
                        update = sa.update(key.table).where(key == sa.bindparam("which"))
                        connection.execute(update.values({content.name: sa.bindparam("now")}), changed)
                yield
                found = self._rows(query.where(key > found[-1][0]))
        with self._transaction() as connection:
            connection.execute(sa.delete(forgotten).where(forgotten.c.position == gone.position))

    def expire(self, request: str, halves_before: float, keys_before: float) -> None:
        """Drop predictions with smaller ids, halves from before a time, and keys from before another time."""
        with self._transaction() as connection:
            too_old = waiting.c.request < request
            dropped = connection.execute(sa.select(sa.func.sum(waiting.c.open)).where(too_old)).scalar() or 0
            connection.execute(sa.delete(waiting).where(too_old))
            connection.execute(sa.delete(halves).where(halves.c.time < halves_before))
            connection.execute(sa.delete(receipts).where(receipts.c.time < keys_before))
        self.predictions_waiting -= dropped

    def drop_until(self, position: int) -> None:
        """Drop the records up to a position, which are in a snapshot."""
        dropped = max(position, self.dropped)
        with self._transaction(dropped=dropped) as connection:
            connection.execute(sa.delete(records).where(records.c.position <= position))
        self.dropped = dropped

    def size(self) -> int:
        """Bytes of the database."""
        if self._engine.dialect.name == "sqlite":
            pages = self._scalar(sa.text("select page_count * page_size from pragma_page_count(), pragma_page_size()"))
        else:
            pages = self._scalar(sa.text("select pg_database_size(current_database())"))
        return int(pages or 0)

    def close(self) -> None:
        """Close the connections and give up the log."""
        self._leave()
        self._engine.dispose()
        if self._file_lock is not None:
            os.close(self._file_lock)
            self._file_lock = None

    def copy_to(self, url: str, after: int) -> Copied:
        """Copy the log as it is at one moment, with the records behind a position, into an empty database.

        Raises
        ------
        Unavailable
            If one of the two cannot be reached; then nothing is copied.
        """
        target = _engine(url)
        source = self._engine.connect().execution_options(yield_per=PAGE)
        try:
            with _failures():
                if self._engine.dialect.name == "sqlite":
                    source.exec_driver_sql("begin")  # else each statement would see another moment
                else:
                    source = source.execution_options(isolation_level="REPEATABLE READ")
                with target.begin() as destination:
                    metadata.create_all(destination)
                    for table in metadata.sorted_tables:
                        query = (
                            sa.select(table)
                            if table is not records
                            else sa.select(table).where(records.c.position > after)
                        )
                        for found in source.execute(query).mappings().partitions():
                            destination.execute(sa.insert(table), [dict(row) for row in found])
                    position, dropped = destination.execute(sa.select(heads.c.position, heads.c.dropped)).one()
                    destination.execute(sa.update(heads).values(dropped=max(dropped, after)))
                return Copied(position, dropped)
        finally:
            source.close()
            target.dispose()

    # ---- the owner -------------------------------------------------------------------------------------------

    def _create(self) -> None:
        """Create the tables, if the database has none. Raises ValueError if they are of another format."""
        with _failures():
            inspector = sa.inspect(self._engine)
            found: Any = FORMAT
            if inspector.has_table(heads.name):
                found = "none"
                if any(column["name"] == "format" for column in inspector.get_columns(heads.name)):
                    found = self._scalar(sa.select(heads.c.format)) or FORMAT
            if found == FORMAT:
                metadata.create_all(self._engine)
                return
        raise ValueError(of_another_format(f"the log has format {found}", FORMAT))

    def _own(self) -> None:
        """Become the owner of the log, which may be new."""
        with _failures():
            if self._engine.dialect.name == "sqlite":
                path = self._scalar(sa.text("select file from pragma_database_list where name = 'main'"))
                if not path:
                    raise ValueError(f"a log in memory would be lost with this process; {EXPECTED}")
                self._file_lock = lock(Path(f"{path}.lock"), "the log")
            session = self._owning(FIRST_PATIENCE)
            if session is None:
                raise ValueError("the log is in use by another process")
            if session.execute(sa.select(heads)).first() is None:
                first = {"log": secrets.token_hex(8), "position": 0, "commit": "", "dropped": 0, "format": FORMAT}
                session.execute(sa.insert(heads).values(first))
            session.commit()

    def _owning(self, patience: float) -> sa.Connection | None:
        """The session that has the lock; None if another session keeps it for this many seconds."""
        if self._session is not None:
            return self._session
        session, ends = self._engine.connect(), time.monotonic() + patience
        try:
            if self._engine.dialect.name == "postgresql":
                session.execute(sa.text(SERVERS_NETWORK))
                query = sa.text("select pg_try_advisory_lock(:kind, 'head'::regclass::oid::int4)")
                while not session.execute(query, {"kind": LOCK_CLASS}).scalar():
                    if time.monotonic() > ends:
                        session.close()
                        return None
                    time.sleep(0.02)
            session.commit()
        except BaseException:
            _drop(session)
            raise
        self._session = session
        return session

    def _owning_again(self) -> sa.Connection:
        """The same, after the connection broke."""
        try:
            with _failures():
                session = self._owning(PATIENCE)
        except Unavailable as error:
            raise Away(str(error)) from error
        if session is None:
            raise Away("the log cannot be written: an earlier connection has not ended, or another process has it")
        return session

    def _leave(self) -> None:
        """Give up the lock. The server rolls the session back before another one gets the lock."""
        if self._session is not None:
            _drop(self._session)
        self._session = None

    @contextmanager
    def _transaction(self, **changes: Any) -> Iterator[sa.Connection]:
        """A transaction that also changes the head; it fails if another writer has written since."""
        is_sent = False
        try:
            with _failures():
                session = self._begun(changes)
                yield session
                is_sent = True
                session.commit()
        except BaseException as error:
            self._leave()
            if is_sent and isinstance(error, Unavailable):
                raise InDoubt(str(error)) from error
            raise

    def _begun(self, changes: Mapping[str, Any]) -> sa.Connection:
        """The session, with the head changed."""
        if self._session is not None:
            try:
                return self._changed(self._session, changes)
            except DBAPIError:  # a server or firewall cut a silent connection; nothing has been written
                self._leave()
        return self._changed(self._owning_again(), changes)

    def _changed(self, session: sa.Connection, changes: Mapping[str, Any]) -> sa.Connection:
        changes = changes or {"commit": self._end.commit}
        values = {"known": self._end.commit, **{f"new_{name}": value for name, value in changes.items()}}
        if session.execute(_move_head(*changes), values).rowcount != 1:
            is_written(self._head(session), self._end, self._end)
        return session

    def _found(self) -> End:
        """The end of the log, when no commit of this process is under way any more."""
        try:
            with _failures():
                session = self._owning_again()
                found = self._head(session)
                session.rollback()
                return found
        except BaseException:
            self._leave()
            raise

    def _head(self, session: sa.Connection) -> End:
        found = session.execute(sa.select(heads.c.position, heads.c.commit)).first()
        return End(0, "gone") if found is None else End(*found)

    def _rows(self, query: Any) -> Sequence[Any]:
        with _failures(), self._engine.connect() as connection:
            return connection.execute(query).all()

    def _scalar(self, query: Any) -> Any:
        with _failures(), self._engine.connect() as connection:
            return connection.execute(query).scalar()

    def _written(self, batch: Batch) -> None:
        self._end = self._tried
        self.predictions_waiting += sum(one.open for one in batch.waiting) - batch.n_labels


def _replace(connection: sa.Connection, key: sa.Column[Any], rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Insert or replace rows by their keys."""
    if rows:
        connection.execute(sa.delete(key.table).where(key == sa.bindparam("which")), [{"which": name} for name in rows])
        connection.execute(sa.insert(key.table), list(rows.values()))


def _positions(found: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    return {source: {"source": source, "next": position} for source, position in found.items()}


@cache
def _move_head(*names: str) -> sa.Update:
    """Change these columns of the head if it is as known; a statement takes longer to make than to run."""
    values: dict[str, Any] = {name: sa.bindparam(f"new_{name}") for name in names}
    return sa.update(heads).where(heads.c.commit == sa.bindparam("known")).values(values)


@contextmanager
def _failures() -> Iterator[None]:
    """Turn the errors of a database into Unavailable, with one sentence."""
    try:
        yield
    except SQLAlchemyError as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        message = str(cause).strip() or type(cause).__name__
        raise Unavailable(f"the log cannot be written: {message.splitlines()[0]}") from error


def _engine(url: str) -> sa.Engine:
    """An engine that reconnects; SQLite waits for its own locks, PostgreSQL only a while for the network."""
    try:
        parsed = sa.make_url(url)
    except (SQLAlchemyError, ValueError):
        raise ValueError(f"the log's address is no URL; {EXPECTED}") from None  # it may hold a password
    if parsed.drivername in ("sqlite", "sqlite+pysqlite"):
        engine = sa.create_engine(parsed, connect_args={"timeout": 30.0})
        sa.event.listen(engine, "connect", _durable)
        return engine
    if parsed.drivername != "postgresql+psycopg":
        raise ValueError(f"the log's address begins with {parsed.drivername}; {EXPECTED}")
    given = {name: value for name, value in {"connect_timeout": 5, **NETWORK}.items() if name not in parsed.query}
    return sa.create_engine(parsed, pool_pre_ping=True, connect_args=given)


def _durable(connection: Any, _: Any) -> None:
    """Make commits durable when they return, without readers having to wait."""
    cursor = connection.cursor()
    cursor.execute("pragma journal_mode = wal")
    cursor.execute("pragma synchronous = full")
    cursor.close()


def _drop(session: sa.Connection) -> None:
    """End a session, in whatever state it is."""
    with suppress(SQLAlchemyError):
        session.invalidate()
    with suppress(SQLAlchemyError):
        session.close()
