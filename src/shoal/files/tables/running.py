"""One column of a table as the stream goes: its running mean and variance, or the values seen so far.

A number is standardised by the mean and variance of its column up to and including its own row (Welford),

    n <- n + 1,   delta = x - mean,   mean <- mean + delta / n,   m2 <- m2 + delta (x - mean),
    z = (x - mean) / sqrt(m2 / n).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.engine.compile import kernel
from shoal.files.tables.categories import Categories
from shoal.files.tables.columns import KINDS, Kind, Values
from shoal.files.tables.features import Cells, Slots, shallow
from shoal.files.targets import State, check_state


@kernel(entry=True, allocates=True, inline=False, sums="exact")
def standardise(numbers: NDArray[np.float64], moments: NDArray[np.float64], cells: Cells) -> None:
    """The first cells of each row: z of its (columns, n) numbers, 0 of one that has not varied; 1, in slot 1, of nan.

    The (3, columns) moments n, mean and m2 move on. All columns of a row at once, without a branch: so the compiler
    takes several in each instruction.
    """
    count, mean, m2 = moments[0], moments[1], moments[2]
    for row in range(numbers.shape[1]):
        x, slot = cells.values[row], cells.local[row]
        for c in range(len(numbers)):
            x[c] = numbers[c, row]
        for c in range(len(numbers)):
            there = x[c] == x[c]
            n = count[c] + 1.0
            delta = x[c] - mean[c]
            centre = mean[c] + delta / n
            scatter = m2[c] + delta * (x[c] - centre)
            z = (x[c] - centre) / np.sqrt(scatter / n)
            count[c] = n if there else count[c]
            mean[c] = centre if there else mean[c]
            m2[c] = scatter if there else m2[c]
            z = z if scatter > 0.0 else 0.0
            x[c] = z if there else 1.0
            slot[c] = 0 if there else 1


def scale(numbers: NDArray[np.float64], moments: NDArray[np.float64], cells: Cells) -> None:
    """As `standardise`, by the moments as they are."""
    count, mean, m2 = moments
    deviation = np.sqrt(np.divide(m2, count, out=np.zeros_like(m2), where=count > 0))
    z = np.divide(numbers.T - mean, deviation, out=np.zeros(numbers.T.shape), where=deviation > 0)
    absent = np.isnan(numbers.T)
    cells.values[:, : len(numbers)] = np.where(absent, 1.0, z)
    cells.local[:, : len(numbers)] = absent


class Column:
    """One column of the table, of a kind, with what has been seen of it.

    Attributes
    ----------
    in_sample : bool
        Whether the first rows had a value; a column without any begins with its first value.
    hint : str
        The option that may read it better, for people.
    """

    def __init__(self, name: str, kind: Kind, *, in_sample: bool, hint: str = "") -> None:
        self.name = name
        self.kind = kind
        self.in_sample = in_sample
        self.hint = hint
        self.n_missing = 0
        self.moments = np.zeros(3)  # numeric: n, mean, m2
        missing = f"{name}=missing"
        self.slots = Slots({"numeric": [name, missing], "text": [missing]}.get(kind, []))
        self.categories: list[Categories] = []
        if kind == "category":
            self.categories = [Categories(name, missing)]
        elif kind == "time":
            self.categories = [Categories(f"{name}.hour", missing)]
        elif kind == "date":
            self.categories = [Categories(f"{name}.weekday", missing)]
            self.categories += [Categories(f"{name}.{part}", None) for part in ("month", "hour")]

    @property
    def parts(self) -> list[Slots]:
        """What gives a row a feature each."""
        return [*self.categories] or [self.slots]

    def frozen(self) -> Column:
        """As it is now: to learn replaces the moments."""
        found = shallow(self)
        found.slots, found.categories = self.slots.frozen(), [part.frozen() for part in self.categories]
        return found

    def begin(self, values: Values) -> int:
        """The first row of the batch that has the column: none before its first value, if the sample had none."""
        first = 0
        if not self.in_sample:
            first = int(np.argmax(values.present)) if values.present.any() else len(values.present)
        return first

    def count(self, values: Values, first: int) -> None:
        """Note what is missing from that row on."""
        self.in_sample = self.in_sample or first < len(values.present)
        self.n_missing += int(np.count_nonzero(~values.present[first:]))

    def encode(self, values: Values, cells: Cells, *, learns: bool) -> None:
        """The features of one batch, but for numbers (`standardise`) and words (`bags_of`)."""
        if self.kind == "text":
            cells.local[:, 0] = np.where(values.present, -1, 0)
        for part, (categories, text) in enumerate(zip(self.categories, values.texts, strict=False)):
            cells.local[:, part] = categories.encode(text, learns=learns)
        cells.values[:] = 1.0

    def note(self, hash_bits: int) -> str:
        """What was done with the column, for people."""
        how = {
            "numeric": "numeric, scaled by its running mean and standard deviation",
            "date": "date, weekday, month and hour one-hot",
            "time": "time of day, hour one-hot",
            "category": f"category, {self.categories[0].note() if self.categories else ''}",
            "text": f"text, single words and pairs hashed into {1 << hash_bits:,} features",
        }[self.kind]
        missing = f", {self.n_missing:,} missing" if self.n_missing else ""
        return f"{self.name}: {how}{missing}" + (f"; {self.hint}" if self.hint else "")

    def to_dict(self) -> State:
        """The whole state, for JSON."""
        parts = [self.slots.to_dict(), *(categories.to_dict() for categories in self.categories)]
        state = {"name": self.name, "kind": self.kind, "in_sample": self.in_sample, "hint": self.hint}
        return {**state, "n_missing": self.n_missing, "moments": self.moments.tolist(), "parts": parts}

    @classmethod
    def from_dict(cls, state: State) -> Column:
        """The column as it was saved."""
        column = cls(state["name"], state["kind"], in_sample=state["in_sample"], hint=state["hint"])
        column.n_missing = state["n_missing"]
        column.moments = np.array(state["moments"], np.float64)
        n_slots = len(column.slots.names)
        parts = [column.slots, *column.categories]
        check_state(len(parts) == len(state["parts"]) and column.moments.shape == (3,), f"column {column.name!r}")
        for part, saved in zip(parts, state["parts"], strict=True):
            part.restore(saved)
        right = len(column.slots.names) == n_slots and isinstance(column.n_missing, int)
        right &= bool(np.isfinite(column.moments).all()) and column.kind in KINDS
        check_state(right, f"column {column.name!r}")
        return column
