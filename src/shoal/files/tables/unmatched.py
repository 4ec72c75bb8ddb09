"""`Unmatched`: the columns that rows lack, and those that the model does not know. Both are counted, or refused."""

from __future__ import annotations

import difflib
import warnings
from collections import Counter
from collections.abc import Iterable

from shoal.files.messages import LIKELY, plural

SHOWN = 5  # columns in the note on a row
MOST = 1_000  # columns that are counted: a sender of rows may make up any number


class Unmatched:
    """Counts of rows by column.

    Attributes
    ----------
    absent : Counter
        Rows without a column that the model knows: its values are missing.
    unknown : Counter
        Rows with a column that the model does not know: it is not used.
    strict : bool
        Whether such rows are refused.
    """

    def __init__(self) -> None:
        self.absent, self.unknown = Counter[str](), Counter[str]()
        self.strict = False
        self._named: set[str] = set()

    def count(self, absent: list[str], unknown: list[str], rows: int) -> None:
        """Count rows that lack some columns and have some others. Raises ValueError if that is not allowed."""
        if self.strict and (absent or unknown):
            raise ValueError([*_unknown(unknown, absent), *_absent(absent)][0])
        for names, counts in ((absent, self.absent), (unknown, self.unknown)):
            for name in names:
                if name in counts or len(counts) < MOST:
                    counts[name] += rows

    def warn(self) -> None:
        """Name each column that was found and not named before, and what may be done, in a warning each."""
        if len(self.unknown) + len(self.absent) == len(self._named):
            return
        unknown = [name for name in self.unknown if name not in self._named]
        absent = [name for name in self.absent if name not in self._named]
        self._named.update(unknown, absent)
        found = [f"{fault}: it is not used" for fault in _unknown(unknown, self.absent)]
        found += [f"{fault}: its values are taken as missing" for fault in _absent(absent)]
        for sentence in found:
            warnings.warn(f"{sentence} (strict=True refuses such rows)", stacklevel=5)

    def notes(self) -> list[str]:
        """A sentence for each column that was found."""
        unknown = zip(_unknown(self.unknown, self.absent), self.unknown.values(), strict=True)
        absent = zip(_absent(self.absent), self.absent.values(), strict=True)
        return [f"{found}: not used in {plural(rows, 'row')}" for found, rows in unknown] + [
            f"{found}: its values are missing in {plural(rows, 'row')}" for found, rows in absent
        ]


def note(absent: list[str], unknown: list[str]) -> str | None:
    """The sentence for one row; None if its columns are those of the model."""
    found = [f"{fault}: not used" for fault in _unknown(unknown[:SHOWN], absent)]
    found += [f"{fault}: taken as missing" for fault in _absent(absent[:SHOWN])]
    more = max(len(absent) - SHOWN, 0) + max(len(unknown) - SHOWN, 0)
    return "; ".join([*found, *([f"and {plural(more, 'column')} more"] if more else [])]) or None


def _absent(names: Iterable[str]) -> list[str]:
    return [f"there is no column {name!r}" for name in names]


def _unknown(names: Iterable[str], absent: Iterable[str]) -> list[str]:
    """The columns that are not known, each with the absent one that may be meant."""
    meant = {other.lower(): other for other in absent}
    found = []
    for name in names:
        nearest = difflib.get_close_matches(name.lower(), meant, 1, LIKELY)
        hint = f" (did you mean {meant[nearest[0]]!r}?)" if nearest else ""
        found.append(f"the model does not know column {name!r}{hint}")
    return found
