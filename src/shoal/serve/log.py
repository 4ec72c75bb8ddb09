"""The log: every row that was accepted, in the order in which the model learns it. The model is a fold over it.

One writer owns the log. A record is what one request brought; records of many requests share a commit. Next to the
records stand, in the same database and so in the same commits, the idempotency keys that have been used, the rows that
wait for their labels, and of topics that are followed how far they have been read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
offsets = sa.Table(
    "offset",
    metadata,
    sa.Column("source", sa.Text, primary_key=True),
    sa.Column("next", sa.BigInteger, nullable=False),
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


class Batch(NamedTuple):
    """What one commit writes."""

    records: list[Record]
    receipts: list[Used]
    waiting: list[Waiting]
    labeled: list[Waiting]  # that wait already, and of which labels have come
    n_labels: int  # so many
    edits: list[Callable[[bytes], bytes | None]]  # of the bodies of rows that wait; None: as it was
    halves: list[Half]  # they replace those of the same ids
    offsets: dict[str, int]  # of the next message of each partition


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
        # Predictions are many: to look their values through takes SQLAlchemy longer than SQLite to write them.
        compiled = sa.insert(waiting).compile(dialect=self._engine.dialect)
        self._insert_waiting, self._by_place = str(compiled), compiled.positional
        with _failures():
            metadata.create_all(self._engine)
            self.last = self._last()  # a snapshot may know a later one, whose record was dropped
            # Counted once: there may be millions, and dashboards ask every second.
            self.predictions_waiting = int(self._scalar(sa.select(sa.func.sum(waiting.c.open))) or 0)

    def commit(self, batch: Batch) -> None:
        """Write a batch, all of it or nothing; when this returns, no crash can lose it.

        Raises
        ------
        Unavailable
            If it is not written. If that cannot be known, as the connection broke in the middle, `settle` finds out.
        """
        with _failures(), self._engine.begin() as connection:
            for table, rows in ((records, batch.records), (receipts, batch.receipts)):
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
            for edited in batch.edits:
                _edit(connection, waiting.c.request, waiting.c.body, edited)
                _edit(connection, halves.c.id, halves.c.row, edited)
            _replace(connection, halves.c.id, {half.id: half._asdict() for half in batch.halves})
            _replace(connection, offsets.c.source, _positions(batch.offsets))
        self._written(batch)

    def settle(self, batch: Batch) -> bool:
        """After a failed commit: was the batch written? Raises Unavailable as long as the database is away."""
        if batch.records:
            written = self._last() >= batch.records[-1].position
        elif batch.offsets:
            written = batch.offsets.items() <= self.offsets().items()
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
        return {row.request: Waiting(*row[:-1]) for row in found}

    def halves(self, ids: Sequence[str]) -> dict[str, Half]:
        """What waits for its other half, of these ids."""
        return {row.id: Half(*row) for row in self._rows(sa.select(halves).where(halves.c.id.in_(ids)))}

    def offsets(self) -> dict[str, int]:
        """The next message of each partition that has been read."""
        return {row.source: row.next for row in self._rows(sa.select(offsets))}

    def begin_at(self, found: Mapping[str, int]) -> None:
        """Say how far topics have been read before there was a log, or in one that is lost."""
        known = self.offsets()
        found = {source: at for source, at in found.items() if at > known.get(source, -1)}
        with _failures(), self._engine.begin() as connection:
            _replace(connection, offsets.c.source, _positions(found))

    def expire(self, request: str, halves_before: float, keys_before: float) -> None:
        """Drop predictions with ids before this one, halves that came before a time, and keys that were used before
        another."""
        with _failures(), self._engine.begin() as connection:
            too_old = waiting.c.request < request
            dropped = connection.execute(sa.select(sa.func.sum(waiting.c.open)).where(too_old)).scalar() or 0
            connection.execute(sa.delete(waiting).where(too_old))
            connection.execute(sa.delete(halves).where(halves.c.time < halves_before))
            connection.execute(sa.delete(receipts).where(receipts.c.time < keys_before))
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
        self.predictions_waiting += sum(one.open for one in batch.waiting) - batch.n_labels


def _edit(
    connection: sa.Connection, key: sa.Column[Any], content: sa.Column[Any], edited: Callable[[bytes], bytes | None]
) -> None:
    for name, body in connection.execute(sa.select(key, content).where(content.is_not(None))).all():
        if (other := edited(body)) is not None:
            connection.execute(sa.update(key.table).where(key == name).values({content.name: other}))


def _replace(connection: sa.Connection, key: sa.Column[Any], rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Write rows by their keys, whether they are there or not."""
    if rows:
        connection.execute(sa.delete(key.table).where(key == sa.bindparam("which")), [{"which": name} for name in rows])
        connection.execute(sa.insert(key.table), list(rows.values()))


def _positions(found: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    return {source: {"source": source, "next": position} for source, position in found.items()}


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
