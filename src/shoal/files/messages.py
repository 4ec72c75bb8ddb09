"""Messages about files: bad rows, counts of things, names that do not exist."""

import difflib
from collections.abc import Iterable, Sequence

KEPT_MESSAGES = 10
SHOWN = 30  # names in a message
LIKELY = 0.6  # the likeness of names from which on one may be meant by the other
HALF_LETTER = r"half of a surrogate pair such as \ud83d, expected whole letters"
FILE = 1 << 40  # the row numbers of each file begin so far above those of the file before it; no file has as many rows


class BadRow(ValueError):
    """A row that cannot be read; the message gives its file and line, the value found and the value expected."""


class BadRows:
    """The bad rows of one file, or of several.

    Parameters
    ----------
    names : sequence of str
        The files, as messages call them.
    unit : str
        Name of a row in messages: "line" for text, "row" for Parquet and Arrow.
    skip : bool
        Count bad rows and keep the first few messages; otherwise the first bad row raises `BadRow`.
    """

    def __init__(self, names: Sequence[str], unit: str = "line", *, skip: bool = False) -> None:
        self.names = list(names)
        self.unit = unit
        self.skip = skip
        self.count = 0
        self.messages: list[str] = []

    @property
    def name(self) -> str:
        """The file; of several, the first and the number of the others."""
        more = len(self.names) - 1
        return f"{self.names[0]} and {more} more" if more else self.names[0]

    def place(self, number: int) -> str:
        """The line of a row, after the name of its file if there are several."""
        file, line = divmod(number, FILE)
        return f"{self.names[file]}, {self.unit} {line:,}" if len(self.names) > 1 else f"{self.unit} {line:,}"

    def report(self, number: int, problem: str) -> None:
        """Raise `BadRow`, or count the row if bad rows are skipped. Row numbers of file k start at k FILE."""
        file, line = divmod(number, FILE)
        message = f"{self.names[file]}, {self.unit} {line}: {problem}"
        if not self.skip:
            raise BadRow(message)
        self.count += 1
        if len(self.messages) < KEPT_MESSAGES:
            self.messages.append(message)


def plural(n: int, noun: str) -> str:
    """A number with its noun.

    >>> plural(1, "field"), plural(2_000, "field")
    ('1 field', '2,000 fields')
    """
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def unknown_name(found: str, name: str, known: Iterable[str]) -> str:
    """A message for a name that does not exist: the known names, and the closest of them.

    >>> unknown_name("flights.csv has no column", "dst", ["dest", "hour", "late"])
    "flights.csv has no column 'dst', it has 'dest', 'hour', 'late': did you mean 'dest'?"
    """
    names = list(known)
    shown = ", ".join(repr(other) for other in names[:SHOWN])
    if len(names) > SHOWN:
        shown += f" and {len(names) - SHOWN} more"
    nearest = difflib.get_close_matches(name, names, n=1, cutoff=LIKELY)
    hint = f": did you mean {nearest[0]!r}?" if nearest and nearest[0] != name else ""
    return f"{found} {name!r}, it has {shown or 'none'}{hint}"
