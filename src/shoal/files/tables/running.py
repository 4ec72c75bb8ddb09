"""One column of a table as the stream goes: its running mean and variance, or the values seen so far.

A number is standardised by the mean and variance of its column up to and including its own row (Welford),

    n <- n + 1,   delta = x - mean,   mean <- mean + delta / n,   m2 <- m2 + delta (x - mean),
    z = (x - mean) / sqrt(m2 / n).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.engine.compile import kernel
from shoal.files.tables.columns import Kind, Values
from shoal.files.tables.features import Categories, Cells, Slots

State = dict[str, Any]  # what JSON can hold


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


class Column:
    """One column of the table, of a kind, with what has been seen of it."""

    def __init__(self, name: str, kind: Kind, *, born: bool, limit: int, buckets: int) -> None:
        self.name = name
        self.kind = kind
        self.born = born  # a column without any value in the sample begins with its first value
        self.n_missing = 0
        self.moments = np.zeros(3)  # numeric: n, mean, m2
        missing = f"{name}=missing"
        self.slots = Slots([name, missing]) if kind == "numeric" else Slots([])
        self.categories: list[Categories] = []
        if kind == "text":
            self.categories = [Categories(name, missing, limit, buckets)]
        elif kind == "date":
            self.categories = [Categories(f"{name}.weekday", missing, limit, buckets)]
            self.categories += [Categories(f"{name}.{part}", None, limit, buckets) for part in ("month", "hour")]

    @property
    def parts(self) -> list[Slots]:
        """What gives a row a feature each."""
        return [self.slots] if self.kind == "numeric" else [*self.categories]

    def begin(self, values: Values) -> int:
        """The first row of the batch that has the column: none before its first value, if the sample had none."""
        first = 0 if self.born else int(np.argmax(values.present)) if values.present.any() else len(values.present)
        self.born = self.born or first < len(values.present)
        self.n_missing += int(np.count_nonzero(~values.present[first:]))
        return first

    def encode(self, values: Values, cells: Cells) -> None:
        """The features of one batch of a column of text or dates."""
        for part, (categories, text) in enumerate(zip(self.categories, values.texts, strict=True)):
            cells.local[:, part] = categories.encode(text)
        cells.values[:] = 1.0

    def note(self) -> str:
        """What was done with the column, for people."""
        how = {
            "numeric": "scaled by its running mean and standard deviation",
            "date": "weekday, month and hour one-hot",
            "text": self.categories[0].note() if self.categories else "",
        }[self.kind]
        return f"{self.name}: {self.kind}, {how}" + (f", {self.n_missing} missing" if self.n_missing else "")

    def to_dict(self) -> State:
        parts = [self.slots.to_dict(), *(categories.to_dict() for categories in self.categories)]
        state = {"name": self.name, "kind": self.kind, "born": self.born, "n_missing": self.n_missing}
        return {**state, "moments": self.moments.tolist(), "parts": parts}

    @classmethod
    def from_dict(cls, state: State, *, limit: int, buckets: int) -> Column:
        column = cls(state["name"], state["kind"], born=state["born"], limit=limit, buckets=buckets)
        column.n_missing = state["n_missing"]
        column.moments = np.array(state["moments"], np.float64)
        for part, saved in zip([column.slots, *column.categories], state["parts"], strict=True):
            part.restore(saved)
        return column
