"""kafka://BROKER[,BROKER ...]/TOPIC"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

SHARD = "{shard}"  # in the name of a topic: the number of the shard that reads it
FORM = re.compile(r"kafka://([^/\s]+)/((?:[A-Za-z0-9._-]|\{shard\}){1,249})")
BROKER = re.compile(r"([^:\s]+|\[[0-9a-fA-F:]+\])(:\d{1,5})?")


class Address(NamedTuple):
    """Where a topic is."""

    brokers: str  # host:port, separated by commas
    topic: str  # may hold SHARD

    @classmethod
    def of(cls, text: str) -> Address:
        """Read an address. Raises ValueError."""
        found = FORM.fullmatch(text)
        if found is None or not all(BROKER.fullmatch(one) for one in found[1].split(",")):
            raise ValueError(f"{text!r} is no address of a topic, expected kafka://BROKER:9092/TOPIC")
        return cls(found[1], found[2])


def read_settings(path: str | None) -> dict[str, str]:
    """Settings of librdkafka (passwords, certificates) from a file with a line `name=value` for each.

    Raises
    ------
    ValueError
        If the file cannot be read, or a line is none of these.
    """
    if path is None:
        return {}
    found = {}
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the settings in {path} cannot be read: {error}") from None
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"{path}, line {number}: expected name=value, as in security.protocol=SASL_SSL")
        found[name.strip()] = value.strip()
    return found
