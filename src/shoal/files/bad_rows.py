"""What happens to a row that cannot be read: the stream stops and says where, or counts it and goes on."""

from __future__ import annotations

from collections.abc import Sequence

KEPT_MESSAGES = 10
FILE = 1 << 40  # what the number of a row grows by from one file to the next; no file has as many rows


class BadRow(ValueError):
    """A row that cannot be read; the message says file, line, what was found and what was expected."""


class BadRows:
    """The bad rows of one file, or of several.

    Parameters
    ----------
    names : sequence of str
        The files, as messages call them.
    unit : str
        What a row is counted in: "line" for text, "row" for Parquet and Arrow.
    skip : bool
        Count bad rows and keep the first few messages, instead of stopping at the first.
    """

    def __init__(self, names: Sequence[str], unit: str = "line", *, skip: bool = False) -> None:
        self.names = list(names)
        self.unit = unit
        self.skip = skip
        self.count = 0
        self.messages: list[str] = []

    @property
    def name(self) -> str:
        """The file, or the first of several."""
        more = len(self.names) - 1
        return f"{self.names[0]} and {more} more" if more else self.names[0]

    def place(self, number: int) -> str:
        """Where a row is, for people: its line, and of several files which."""
        file, line = divmod(number, FILE)
        return f"{self.names[file]}, {self.unit} {line:,}" if len(self.names) > 1 else f"{self.unit} {line:,}"

    def report(self, number: int, problem: str) -> None:
        """Raise `BadRow`, or count the row if bad rows are skipped. Rows of file k have numbers from k FILE on."""
        file, line = divmod(number, FILE)
        message = f"{self.names[file]}, {self.unit} {line}: {problem}"
        if not self.skip:
            raise BadRow(message)
        self.count += 1
        if len(self.messages) < KEPT_MESSAGES:
            self.messages.append(message)
