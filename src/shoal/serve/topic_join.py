"""Joins the rows of one topic and the labels of another by their ids, in whichever order they come."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from shoal.serve.contract import Fault, Followed, Messages, Refused, Rows
from shoal.serve.log import Half
from shoal.serve.model_changes import Models
from shoal.serve.row_codec import JSON, from_dicts, pack_one, unpack


class Joined(NamedTuple):
    """The result of a join."""

    rows: Rows | None  # with their labels; None if there are none
    places: list[str]  # of each row, where it came from, in words
    halves: list[Half]  # rows and labels that now wait for each other, and ids that no longer do
    answer: Followed


def place(source: tuple[str, int] | str) -> str:
    """Where a row came from, in words: its partition and offset, or its id."""
    return f"the row of id {source!r}" if isinstance(source, str) else f"message {source[1]} of {source[0]}"


def ids_of(messages: Messages) -> list[str]:
    """All ids in the messages."""
    return [*{name: None for name, _ in (*messages.unlabeled, *messages.labels)}]


def join(messages: Messages, waiting: Mapping[str, Half], column: str, now: float) -> Joined:
    """Join rows and labels.

    Parameters
    ----------
    waiting : mapping
        Earlier rows and labels, by id.
    column : str
        The column of the label.
    """
    found: list[Mapping[str, Any]] = list(messages.labeled)
    places = [place(source) for source in messages.sources]
    halves: dict[str, Half] = {}
    double = 0
    for name, row, label in _parts(messages):
        half = halves.get(name, waiting.get(name))
        if half is None:
            halves[name] = Half(name, now, row, label)
        elif row is not None and half.label is not None:
            found.append(_whole(row, column, half.label))
            halves[name] = Half(name, now, None, None)
        elif label is not None and half.row is not None:
            found.append(_whole(half.row, column, label))
            halves[name] = Half(name, now, None, None)
        else:
            double += 1
        places += [place(name)] * (len(found) - len(places))
    rows = from_dicts(found) if found else None
    return Joined(rows, places, [*halves.values()], Followed(None, len(found), double, ()))


def without_faults(joined: Joined, models: Models, *, new_columns: bool = True) -> Joined:
    """Leave out the rows that cannot be learned, as one bad message must not stop the ones behind it. Their faults say
    where they came from."""
    if joined.rows is None:
        return joined
    rows = joined.rows
    mark = models.mark()
    try:
        rows, _ = models.matched(rows, new_columns=new_columns)
        checked, faults, _ = models.check(rows)
        frame = rows.frame[checked.good]
    except Refused as error:  # a column is missing in all of them
        faults = [fault._replace(row=row) for row in range(rows.frame.height) for fault in error.faults]
        frame = rows.frame.clear()
    finally:
        models.rollback(mark)
    if not faults:
        return joined if rows is joined.rows else joined._replace(rows=rows)
    left = Rows(frame, rows.strings) if frame.height else None
    named = [fault._replace(sentence=f"{joined.places[fault.row or 0]}: {fault.sentence}") for fault in faults]
    return joined._replace(rows=left, answer=joined.answer._replace(rows=frame.height, refused=_in_order(named)))


def _whole(row: bytes, column: str, label: str) -> dict[str, Any]:
    if row[:1] == JSON:
        return {**msgspec.json.decode(row[1:]), column: msgspec.json.decode(label)}
    return {**unpack(row).frame.row(0, named=True), column: msgspec.json.decode(label)}  # its task was forgotten


def _parts(messages: Messages) -> list[tuple[str, bytes | None, str | None]]:
    rows = [(name, pack_one(row), None) for name, row in messages.unlabeled]
    return [*rows, *((name, None, msgspec.json.encode(label).decode()) for name, label in messages.labels)]


def _in_order(faults: list[Fault]) -> tuple[Fault, ...]:
    return tuple(sorted(faults, key=lambda fault: fault.row or 0))
