"""One column of a table as the stream goes: its running mean and variance, or the values seen so far.

A number is standardised by the mean and variance of its column up to and including its own row (Welford),

    n <- n + 1,   delta = x - mean,   mean <- mean + delta / n,   m2 <- m2 + delta (x - mean),
    z = (x - mean) / sqrt(m2 / n).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.files.columns import Kind, Values
from shoal.files.exact import jit_exact
from shoal.files.features import Categories, Part, Slots

State = dict[str, Any]  # what JSON can hold


@jit_exact
def standardise(values: NDArray[np.float64], moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """z of each value, 0 where it is nan or has not varied yet; moments (n, mean, m2) move on."""
    n, mean, m2 = moments[0], moments[1], moments[2]
    scaled = np.zeros(len(values))
    for i in range(len(values)):
        if np.isnan(values[i]):
            continue
        n += 1.0
        delta = values[i] - mean
        mean += delta / n
        m2 += delta * (values[i] - mean)
        if m2 > 0.0:
            scaled[i] = (values[i] - mean) / np.sqrt(m2 / n)
    moments[0], moments[1], moments[2] = n, mean, m2
    return scaled


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

    def encode(self, values: Values) -> list[Part]:
        """The features of one batch of the column."""
        first = 0
        if not self.born:
            if not values.present.any():
                return []
            self.born, first = True, int(np.argmax(values.present))
        self.n_missing += int(np.count_nonzero(~values.present[first:]))
        if self.kind == "numeric":
            scaled = standardise(values.numbers, self.moments)
            scaled[~values.present] = 1.0  # the indicator's value
            parts = [Part(self.slots, np.where(values.present, 0, 1).astype(np.int32), scaled)]
        else:
            pairs = zip(self.categories, values.texts, strict=True)
            parts = [Part(categories, categories.encode(text), None) for categories, text in pairs]
        for part in parts:
            part.local[:first] = -1
        return parts

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
