"""Messages as rows and labels: each a JSON object, as the lines of NDJSON are."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from shoal.files.ids import id_of
from shoal.serve.contract import Messages


class Message(NamedTuple):
    """A message of a topic."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None  # None: a tombstone, which is no row


class Columns(NamedTuple):
    """The columns by which messages are read."""

    label: str
    id: str | None = None  # the column that labels name rows by; None: the key of the message
    drops_id: bool = False  # whether the id is no feature
    labels_topic: str | None = None  # None: rows come with their labels


class Bad(NamedTuple):
    """A message that is neither a row nor a label."""

    message: Message
    sentence: str

    def __str__(self) -> str:
        topic, partition, offset, *_ = self.message
        return f"message {offset} of {topic}/{partition}: {self.sentence}"


def read_messages(found: Sequence[Message], columns: Columns) -> tuple[Messages, list[Bad]]:
    """Read the messages of a poll; bad ones are returned apart, as one must not stop those behind it."""
    labeled: list[dict[str, Any]] = []
    unlabeled: list[tuple[str, dict[str, Any]]] = []
    labels: list[tuple[str, Any]] = []
    offsets: dict[str, int] = {}
    sources: list[tuple[str, int]] = []
    bad: list[Bad] = []
    for message in found:
        offsets[f"{message.topic}/{message.partition}"] = message.offset + 1
        if message.value is None:
            continue
        try:
            if message.topic == columns.labels_topic:
                labels.append(_label(message, columns))
                continue
            row = _object(message.value)
            if row.get(columns.label) is not None:
                labeled.append(_without_id(row, columns))
                sources.append((f"{message.topic}/{message.partition}", message.offset))
            elif columns.labels_topic is None:
                raise ValueError(f"{columns.label!r} is missing; with --labels-from TOPIC it may come later")
            else:
                row.pop(columns.label, None)
                unlabeled.append((_id(message, row, columns), _without_id(row, columns)))
        except ValueError as error:
            bad.append(Bad(message, str(error)))
    return Messages(labeled, unlabeled, labels, offsets, sources), bad


def _object(value: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    for name, inner in found.items():
        if isinstance(inner, dict | list):
            raise ValueError(f"column {name!r} is nested; expected numbers, text, true, false or null")
    return found


def _label(message: Message, columns: Columns) -> tuple[str, Any]:
    """{"id": ..., "label": ...}, or with the names that rows have; the id may be the key instead."""
    found = _object(message.value or b"")
    label = found.get("label", found.get(columns.label))
    if label is None:
        raise ValueError('expected {"id": ..., "label": ...}')
    named = found if columns.id is not None and columns.id in found else {columns.id or "id": found.get("id")}
    return _id(message, named, columns._replace(id=columns.id or "id")), label


def _id(message: Message, row: dict[str, Any], columns: Columns) -> str:
    found = None if columns.id is None else row.get(columns.id)
    if found is None and message.key is not None:
        return message.key.decode("utf-8", "backslashreplace")
    if found is None:
        raise ValueError("it has no id: neither a key" + (f" nor {columns.id!r}" if columns.id else ""))
    return str(id_of(found))


def _without_id(row: dict[str, Any], columns: Columns) -> dict[str, Any]:
    if columns.drops_id and columns.id is not None:
        row.pop(columns.id, None)
    return row
