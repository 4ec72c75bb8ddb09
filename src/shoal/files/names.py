"""Names as they stand in a file, numbered in order of appearance by compiled code.

Names become Python strings only when somebody asks for them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from shoal.files.eight import SLACK
from shoal.files.name_table import EMPTY, NameTable, fill_slots, number_all

T = TypeVar("T", bound=np.generic)


class Names:
    """A table of names that grows.

    Examples
    --------
    >>> names = Names(["a", "b"])
    >>> names.numbers(["b", "été", "b"]).tolist()
    [1, 2, 1]
    >>> names.texts(0, len(names))
    ['a', 'b', 'été']
    """

    def __init__(self, texts: Sequence[str] = ()) -> None:
        room = 64
        self.table = NameTable(
            np.zeros(16 * room + SLACK, np.uint8),
            np.zeros(room + 1, np.int64),
            np.zeros(room, np.uint64),
            np.full((3 * room, 2), EMPTY),
            np.zeros(1, np.int64),
        )
        self.numbers(texts)

    def __len__(self) -> int:
        return int(self.table.used[0])

    def make_room(self, names: int, letters: int) -> None:
        """Room for that many more; what is there at least doubles if it must grow."""
        old = self.table
        n, used = len(self), int(old.ends[len(self)])
        room, space = len(old.hashes), len(old.letters) - SLACK
        if used + letters > space:
            old = old._replace(letters=_grown(old.letters, max(2 * space, used + letters) + SLACK))
        if n + names > room:
            room = max(2 * room, n + names)
            slots = np.full((3 * room, 2), EMPTY)
            old = old._replace(ends=_grown(old.ends, room + 1), hashes=_grown(old.hashes, room), slots=slots)
            fill_slots(old)
        self.table = old

    def numbers(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """The numbers of names; new ones get the next."""
        pieces = [text.encode() for text in texts]
        ends = np.zeros(len(pieces) + 1, np.int64)
        np.cumsum([len(piece) for piece in pieces], out=ends[1:])
        numbers = np.empty(len(pieces), np.int64)
        if not pieces:
            return numbers  # without waiting for the compiler
        self.make_room(len(pieces), int(ends[-1]))
        number_all(self.table, np.frombuffer(b"".join([*pieces, bytes(SLACK)]), np.uint8), ends, numbers)
        return numbers

    def texts(self, first: int, last: int) -> list[str]:
        """The names with these numbers."""
        ends = self.table.ends[first : last + 1].tolist()
        start, letters = ends[0], self.table.letters[ends[0] : ends[-1]].tobytes()
        return [letters[a - start : b - start].decode() for a, b in itertools.pairwise(ends)]


def _grown(array: NDArray[T], size: int) -> NDArray[T]:
    grown = np.zeros(size, array.dtype)
    grown[: len(array)] = array
    return grown
