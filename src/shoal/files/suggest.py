"""Parts of messages: what there is in place of a name that is not there, and how many."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

SHOWN = 30


def plural(n: int, noun: str) -> str:
    """So many of something.

    >>> plural(1, "field"), plural(2_000, "field")
    ('1 field', '2,000 fields')
    """
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def unknown_name(found: str, name: str, known: Iterable[str]) -> str:
    """The sentence, e.g. for a column.

    >>> unknown_name("flights.csv has no column", "dst", ["dest", "hour", "late"])
    "flights.csv has no column 'dst', it has 'dest', 'hour', 'late': did you mean 'dest'?"
    """
    names = list(known)
    shown = ", ".join(repr(other) for other in names[:SHOWN])
    if len(names) > SHOWN:
        shown += f" and {len(names) - SHOWN} more"
    nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f": did you mean {nearest[0]!r}?" if nearest else ""
    return f"{found} {name!r}, it has {shown or 'none'}{hint}"
