"""The distinct values of a column: a feature each, hashed beyond a limit."""

from __future__ import annotations

import zlib

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.files.messages import plural
from shoal.files.saved_state import State, check_state
from shoal.files.tables.features import Slots

LIMIT = 1_000
BUCKETS = 1_024


class Categories(Slots):
    """The distinct values of a column, each a feature up to a limit; new values beyond it are hashed.

    Parameters
    ----------
    name : str
        Features are called `name=value` and, if hashed, `name#bucket`.
    missing : str or None
        The feature for a missing value; None: it has none.
    """

    def __init__(self, name: str, missing: str | None) -> None:
        super().__init__([missing] if missing else [])
        self.name = name
        self._missing = 0 if missing else -1
        self._values: dict[str, int] = {}  # value: slot
        self._hashed: dict[int, int] = {}  # bucket: slot
        self._known = pl.Enum([])
        self._slot_of_code = np.array([self._missing], np.int32)

    def encode(self, texts: pl.Series, *, learns: bool) -> NDArray[np.int32]:
        """(n,) slots of the values, -1 for those that are not known if nothing is to be learned."""
        codes = texts.cast(self._known, strict=False).to_physical()
        places = codes.to_numpy()  # null becomes nan
        if codes.null_count():
            places = np.where(np.isnan(places), -1, places).astype(np.int32)
        local: NDArray[np.int32] = self._slot_of_code[places]
        if codes.null_count() > texts.null_count():
            unknown = np.flatnonzero((places < 0) & texts.is_not_null().to_numpy())
            texts = texts.gather(unknown)
            distinct = texts.unique(maintain_order=True)
            slots = np.array([self._slot(value, learns=learns) for value in distinct.to_list()], np.int32)
            if learns:
                self._grow()
            else:
                slots[slots >= len(self.index)] = -1  # another thread has learned it since this was frozen
            local[unknown] = slots[texts.cast(pl.Enum(distinct)).to_physical().to_numpy()]
        return local

    def slot_of(self, value: str | None) -> int:
        """The slot of one value, -1 if it is not known; nothing is learned."""
        if value is None:
            return self._missing
        slot = self._values.get(value)
        if slot is None:
            slot = self._hashed.get(bucket_of(value), -1) if len(self._values) >= LIMIT else -1
        return slot

    def note(self) -> str:
        """What became of the values, for people."""
        if self._hashed:
            return f"{LIMIT:,} values one-hot, the further ones hashed into {BUCKETS:,} features"
        return f"{plural(len(self._values), 'value')} one-hot"

    def to_dict(self) -> State:
        """Values, names and columns, for JSON."""
        hashed = {str(bucket): slot for bucket, slot in self._hashed.items()}
        return {**super().to_dict(), "values": dict(self._values), "hashed": hashed}

    def restore(self, state: State) -> None:
        """Go on as they were saved."""
        super().restore(state)
        self._values = dict(state["values"])
        self._hashed = {int(bucket): slot for bucket, slot in state["hashed"].items()}
        self._remember()
        slots = [*self._values.values(), *self._hashed.values()]
        own = range(len(self.names))[self._missing + 1 :]
        check_state(sorted(slots) == list(own) and len(self._values) <= LIMIT, f"values of {self.name!r}")

    def _slot(self, value: str, *, learns: bool) -> int:
        """The slot of a value that has none of its own yet."""
        if len(self._values) < LIMIT:
            if not learns:
                return -1
            self.names.append(f"{self.name}={value}")
            self._values[value] = len(self.names) - 1
            return self._values[value]
        bucket = bucket_of(value)
        if bucket not in self._hashed:
            if not learns:
                return -1
            self.names.append(f"{self.name}#{bucket}")
            self._hashed[bucket] = len(self.names) - 1
        return self._hashed[bucket]

    def _grow(self) -> None:
        """Slots for the names that were added."""
        more = len(self.names) - len(self.index)
        self.index = np.append(self.index, np.full(more, -1, np.int32))
        if len(self._values) > len(self._known.categories):
            self._remember()

    def _remember(self) -> None:
        """Lay the values out for `encode`."""
        self._known = pl.Enum(list(self._values))
        self._slot_of_code = np.array([*self._values.values(), self._missing], np.int32)


def bucket_of(value: str) -> int:
    """The bucket of a value that is hashed: the same in every process and version."""
    return zlib.crc32(value.encode()) % BUCKETS
