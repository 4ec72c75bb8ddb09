"""What happens to a row that cannot be read: the stream stops and says where, or counts it and goes on."""

from __future__ import annotations

KEPT_MESSAGES = 10


class BadRow(ValueError):
    """A row that cannot be read; the message says file, line, what was found and what was expected."""


class BadRows:
    """The bad rows of one file.

    Parameters
    ----------
    name : str
        The file, as messages call it.
    unit : str
        What a row is counted in: "line" for text, "row" for Parquet and Arrow.
    skip : bool
        Count bad rows and keep the first few messages, instead of stopping at the first.
    """

    def __init__(self, name: str, unit: str = "line", *, skip: bool = False) -> None:
        self.name = name
        self.unit = unit
        self.skip = skip
        self.count = 0
        self.messages: list[str] = []

    def report(self, number: int, problem: str) -> None:
        """Raise `BadRow`, or count the row if bad rows are skipped."""
        message = f"{self.name}, {self.unit} {number}: {problem}"
        if not self.skip:
            raise BadRow(message)
        self.count += 1
        if len(self.messages) < KEPT_MESSAGES:
            self.messages.append(message)
