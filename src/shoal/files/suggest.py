"""One sentence for a name that is not there: what there is, and what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

SHOWN = 30


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
