"""One column of a table as the stream goes: its running mean and deviation, or the values seen so far.

A number is standardised by the mean and deviation of its column up to and including its own row (Welford),

    n <- n + 1,   delta = x - mean,   mean <- mean + delta / n,   m2 <- m2 + delta (x - mean),
    z = (x - mean) / sqrt(m2 / n).

Odd values must not take a column out, and a column that changes must be followed. So:

- Once 10 values have come that differ, delta is clipped to 10 deviations in z, and to 5 in mean and m2: a value that
  takes the place of missing ones then widens the deviation only if it comes in more than 1/25 of the rows.
- While all values are equal they count as 100 at most, since they say nothing of the scale.
- A column begins anew, with the value at hand, if it has another level or scale than before:
  of the last values that moved, 50 more were clipped than were not; or its step has fallen to a hundredth.
- The first values, which nothing clips, are put to the test at the 100th step: the column begins anew if its
  deviation is more than 30 steps, which that of a column that climbs all the time is not.

The step is a running median of |x - the value before it|, without zeros. It moves by the same factor whatever comes,
so no value is odd enough to carry it off. A column that drifts slowly keeps its step, however wide it wanders; its
values in any hundred rows may well have a hundredth of its deviation.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.engine.compile import kernel
from shoal.files.messages import plural
from shoal.files.saved_state import State, check_state
from shoal.files.tables.categories import Categories
from shoal.files.tables.columns import KINDS, Kind, Values
from shoal.files.tables.features import Cells, Slots, shallow

SURE = 10.0  # values that tell what is odd, or steps that tell the size of steps
BEYOND = 10.0  # deviations
WITHIN = 0.5  # of these in mean and m2
EQUAL = 100.0  # values that those that do not differ count as, at most
CHANGED = 50.0  # more clipped than not
UP, DOWN = 65 / 64, 64 / 65  # of the step
FALLEN = 0.01  # of the largest step
TESTED = 100.0  # steps after which the first values are put to the test
WIDE = 30.0  # steps


class Moments(NamedTuple):
    """What is known of columns of numbers, (columns,) each."""

    seen: NDArray[np.float64]  # n
    mean: NDArray[np.float64]
    m2: NDArray[np.float64]
    deviation: NDArray[np.float64]  # sqrt(m2 / n), which each row needs of the row before
    previous: NDArray[np.float64]  # the last value
    step: NDArray[np.float64]
    largest: NDArray[np.float64]  # step since the column began
    steps: NDArray[np.float64]  # how many there were
    run: NDArray[np.float64]  # how many more values were clipped than not, lately
    clipped: NDArray[np.float64]  # values in all


@kernel(entry=True, inline=False, sums="exact", disjoint=True)
def standardise(numbers: NDArray[np.float64], moments: Moments, first_clipped: NDArray[np.int64], cells: Cells) -> None:
    """The first cells of each row: z of its (columns, n) numbers, 0 of one that has not varied; 1, in slot 1, of nan.

    The moments move on; the row of a column's first clipped value is noted. All columns of a row at once, without a
    branch: so the compiler takes several in each instruction.
    """
    seen, mean, m2, deviation, previous, step, largest, steps, run, clipped = moments
    for row in range(numbers.shape[1]):
        x, slot = cells.values[row], cells.local[row]
        for c in range(len(numbers)):
            x[c] = numbers[c, row]
        for c in range(len(numbers)):
            value, before = x[c], step[c]
            there = value == value
            varies = deviation[c] > 0.0
            limit = BEYOND * deviation[c] if varies & (seen[c] >= SURE) else np.inf
            delta = value - mean[c]
            odd = abs(delta) > limit
            delta = min(max(delta, -limit), limit)
            inner = min(max(delta, -WITHIN * limit), WITHIN * limit)
            n = (seen[c] if varies else min(seen[c], EQUAL)) + 1.0
            shift = inner / n
            scatter = m2[c] + inner * (inner - shift)
            spread = np.sqrt(scatter / n)

            moved = abs(value - previous[c]) if seen[c] > 0.0 else 0.0
            moves = moved > 0.0
            k = steps[c] + 1.0 if moves else steps[c]
            size = before * (UP if moved > before else DOWN)
            size = min(moved, before) if k <= SURE else size
            size = moved if k == 1.0 else size
            size = size if moves else before
            top = max(largest[c], size) if k > SURE else size
            more = run[c] + (1.0 if moves else 0.0) if odd else max(run[c] - 1.0, 0.0)
            changed = (more >= CHANGED) | (size < FALLEN * top)
            anew = changed | (moves & (k == TESTED) & (spread > WIDE * size))

            seen[c] = (1.0 if anew else n) if there else seen[c]
            mean[c] = (value if anew else mean[c] + shift) if there else mean[c]
            m2[c] = (0.0 if anew else scatter) if there else m2[c]
            deviation[c] = (0.0 if anew else spread) if there else deviation[c]
            previous[c] = value if there else previous[c]
            step[c] = size if there else step[c]
            largest[c] = top if there else largest[c]
            steps[c] = (0.0 if changed else k) if there else steps[c]
            run[c] = (0.0 if anew else more) if there else run[c]
            first_clipped[c] = row if odd & (clipped[c] == 0.0) else first_clipped[c]
            clipped[c] += 1.0 if odd else 0.0
            z = (delta - shift) / spread if spread > 0.0 else 0.0
            x[c] = (0.0 if anew else z) if there else 1.0
            slot[c] = 0 if there else 1


def scale(numbers: NDArray[np.float64], moments: Moments, cells: Cells) -> None:
    """As `standardise`, by the moments as they are."""
    deviation = moments.deviation
    delta = numbers.T - moments.mean
    z = np.divide(delta, deviation, out=np.zeros(delta.shape), where=deviation > 0)
    z = np.where(moments.seen >= SURE, np.clip(z, -BEYOND, BEYOND), z)
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
    first_clipped : str
        The row of its first value that was clipped, for people.
    """

    def __init__(self, name: str, kind: Kind, *, in_sample: bool, hint: str = "") -> None:
        self.name = name
        self.kind = kind
        self.in_sample = in_sample
        self.hint = hint
        self.n_missing = 0
        self.moments = np.zeros(len(Moments._fields))  # numeric: one of each
        self.first_clipped = ""
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

    def scaling(self) -> tuple[float, float, float]:
        """Mean and deviation of numbers, and how many deviations a value may be off."""
        seen, mean, _, deviation, *_ = self.moments.tolist()
        return mean, deviation, BEYOND if seen >= SURE else math.inf

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

    def note_clipped(self) -> str:
        """How many values were clipped, for people; nothing if none was."""
        n = int(self.moments[Moments._fields.index("clipped")])
        where = f"the first in {self.first_clipped}" if n > 1 else f"in {self.first_clipped}"
        return (
            f"column {self.name}: {plural(n, 'value')} beyond {BEYOND:.0f} deviations, clipped ({where})" if n else ""
        )

    def to_dict(self) -> State:
        """The whole state, for JSON."""
        parts = [self.slots.to_dict(), *(categories.to_dict() for categories in self.categories)]
        state = {"name": self.name, "kind": self.kind, "in_sample": self.in_sample, "hint": self.hint}
        state |= {"n_missing": self.n_missing, "first_clipped": self.first_clipped}
        return {**state, "moments": self.moments.tolist(), "parts": parts}

    @classmethod
    def from_dict(cls, state: State) -> Column:
        """The column as it was saved."""
        column = cls(state["name"], state["kind"], in_sample=state["in_sample"], hint=state["hint"])
        column.n_missing, column.first_clipped = state["n_missing"], state["first_clipped"]
        column.moments = np.array(state["moments"], np.float64)
        n_slots = len(column.slots.names)
        parts = [column.slots, *column.categories]
        known = column.moments.shape == (len(Moments._fields),)
        check_state(known and len(parts) == len(state["parts"]), f"column {column.name!r}")
        for part, saved in zip(parts, state["parts"], strict=True):
            part.restore(saved)
        right = len(column.slots.names) == n_slots and isinstance(column.n_missing, int)
        right &= isinstance(column.first_clipped, str)
        right &= bool(np.isfinite(column.moments).all()) and column.kind in KINDS
        check_state(right, f"column {column.name!r}")
        return column
