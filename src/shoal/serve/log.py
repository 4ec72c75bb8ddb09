"""The log: every row that was accepted, in the order in which the model learns it. The model is a fold over it.

One writer owns the log. A record is what one request brought; records of many requests share a commit. Next to the
records stand, in the same database and so in the same commits, the idempotency keys that have been used and the rows
that wait for their labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from shoal.serve.contract import Unavailable

Kind = Literal["learn", "forget"]
PAGE = 256  # records that are read at once

metadata = sa.MetaData()
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
)


class Record(NamedTuple):
    """What one request brought."""

    position: int  # counted from 1, without gaps
    time: float
    kind: Kind
    rows: int
    body: bytes  # learn: the rows as `bodies` packs them; forget: the task


class Used(NamedTuple):
    """An idempotency key, what came with it, and what was answered."""

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


class Batch(NamedTuple):
    """What one commit writes."""

    records: list[Record]
    receipts: list[Used]
    waiting: list[Waiting]
    labeled: list[Waiting]  # that wait already, and of which labels have come
    edits: list[Callable[[bytes], bytes | None]]  # of the bodies of rows that wait; None: as it was


class Log:
    """A database that one process writes.

    Parameters
    ----------
    url : str
        Of SQLAlchemy: a SQLite file, or PostgreSQL.

    Raises
    ------
    Unavailable
        If the database cannot be reached.
    """

    def __init__(self, url: str) -> None:
        self._engine = sa.create_engine(url, **_options(url))
        if self._engine.dialect.name == "sqlite":
            sa.event.listen(self._engine, "connect", _durable)
        with _failures():
            metadata.create_all(self._engine)
            self.last = self._last()  # a snapshot may know a later one, whose record was dropped
            # Counted once: there may be millions, and dashboards ask every second.
            self.predictions_waiting: int = self._scalar(sa.select(sa.func.count()).select_from(waiting))

    def commit(self, batch: Batch) -> None:
        """Write a batch, all of it or nothing; when this returns, no crash can lose it.

        Raises
        ------
        Unavailable
            If it is not written. If that cannot be known, as the connection broke in the middle, `settle` finds out.
        """
        with _failures(), self._engine.begin() as connection:
            for table, rows in ((records, batch.records), (receipts, batch.receipts), (waiting, batch.waiting)):
                if rows:
                    connection.execute(sa.insert(table), [row._asdict() for row in rows])
            if batch.labeled:
                found = sa.update(waiting).where(waiting.c.request == sa.bindparam("which"))
                connection.execute(
                    found.values(labeled=sa.bindparam("now")),
                    [{"which": row.request, "now": row.labeled} for row in batch.labeled],
                )
            for edited in batch.edits:
                _edit_waiting(connection, edited)
        self._written(batch)

    def settle(self, batch: Batch) -> bool:
        """After a failed commit: was the batch written? Raises Unavailable as long as the database is away."""
        if batch.records:
            written = self._last() >= batch.records[-1].position
        else:
            asked = sa.select(waiting.c.request).where(waiting.c.request == batch.waiting[-1].request)
            written = self._scalar(asked) is not None
        if written:
            self._written(batch)
        return written

    def read(self, after: int = 0, until: int | None = None) -> Iterator[Record]:
        """The records behind a position, in order, up to another (all by default)."""
        while True:
            asked = sa.select(records).where(records.c.position > after)
            if until is not None:
                asked = asked.where(records.c.position <= until)
            with _failures(), self._engine.connect() as connection:
                found = connection.execute(asked.order_by(records.c.position).limit(PAGE)).all()
            for row in found:
                yield Record(*row)
            if len(found) < PAGE:
                return
            after = found[-1].position

    def ping(self) -> None:
        """Raise Unavailable if the database does not answer."""
        self._scalar(sa.select(1))

    def last_forgotten(self) -> int:
        """The position of the last record that forgets a task; 0 if none is kept."""
        return self._scalar(sa.select(sa.func.max(records.c.position)).where(records.c.kind == "forget")) or 0

    def position_at(self, moment: float) -> int:
        """The last record that was accepted up to a time (of `time.time`); 0 if none was."""
        asked = sa.select(sa.func.max(records.c.position)).where(records.c.time <= moment)
        return self._scalar(asked) or 0

    def used(self, keys: Sequence[str]) -> dict[str, Used]:
        """Those of the keys that have been used."""
        return {row.key: Used(*row) for row in self._rows(sa.select(receipts).where(receipts.c.key.in_(keys)))}

    def waiting(self, requests: Sequence[str]) -> dict[str, Waiting]:
        """The rows that wait, of these predictions."""
        found = self._rows(sa.select(waiting).where(waiting.c.request.in_(requests)))
        return {row.request: Waiting(*row) for row in found}

    def expire(self, request: str, before: float) -> None:
        """Drop predictions with ids before this one, and keys that were used before a time."""
        with _failures(), self._engine.begin() as connection:
            dropped = connection.execute(sa.delete(waiting).where(waiting.c.request < request)).rowcount
            connection.execute(sa.delete(receipts).where(receipts.c.time < before))
        self.predictions_waiting -= dropped

    def drop_until(self, position: int) -> None:
        """Drop the records up to a position: a snapshot has them."""
        with _failures(), self._engine.begin() as connection:
            connection.execute(sa.delete(records).where(records.c.position <= position))

    def size(self) -> int:
        """Bytes of the database."""
        if self._engine.dialect.name == "sqlite":
            pages = self._scalar(sa.text("select page_count * page_size from pragma_page_count(), pragma_page_size()"))
        else:
            pages = self._scalar(sa.text("select pg_database_size(current_database())"))
        return int(pages or 0)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def _last(self) -> int:
        """The last position that is kept: whoever dropped later ones has them in a snapshot."""
        return self._scalar(sa.select(sa.func.max(records.c.position))) or 0

    def _rows(self, asked: Any) -> Sequence[Any]:
        with _failures(), self._engine.connect() as connection:
            return connection.execute(asked).all()

    def _scalar(self, asked: Any) -> Any:
        with _failures(), self._engine.connect() as connection:
            return connection.execute(asked).scalar()

    def _written(self, batch: Batch) -> None:
        if batch.records:
            self.last = batch.records[-1].position
        self.predictions_waiting += len(batch.waiting)


def _edit_waiting(connection: sa.Connection, edited: Callable[[bytes], bytes | None]) -> None:
    for request, body in connection.execute(sa.select(waiting.c.request, waiting.c.body)).all():
        if (other := edited(body)) is not None:
            connection.execute(sa.update(waiting).where(waiting.c.request == request).values(body=other))


@contextmanager
def _failures() -> Iterator[None]:
    """Turn what a database raises into one error that says what to do."""
    try:
        yield
    except DBAPIError as error:
        said = str(error.orig).strip() or type(error.orig).__name__
        raise Unavailable(f"the log cannot be written: {said.splitlines()[0]}") from error


def _options(url: str) -> dict[str, Any]:
    """A connection that broke is made anew; SQLite waits for its own locks, PostgreSQL not for ever for the network."""
    if sa.make_url(url).get_backend_name() == "sqlite":
        return {"connect_args": {"timeout": 30.0}}
    return {"pool_pre_ping": True, "connect_args": {"connect_timeout": 5}}


def _durable(connection: Any, _: Any) -> None:
    """A commit is on the disk when it returns; readers do not wait for it."""
    cursor = connection.cursor()
    cursor.execute("pragma journal_mode = wal")
    cursor.execute("pragma synchronous = full")
    cursor.close()
