"""`Column`: the state of one column while the stream goes, i.e. its running mean and deviation, or its values so far.

A number is standardized by the mean and deviation of its column up to and including its own row (Welford),

    n <- n + 1,   delta = x - mean,   mean <- mean + delta / n,   m2 <- m2 + delta (x - mean),
    z = (x - mean) / sqrt(m2 / n).

Outliers must not spoil a column, and a column that changes must be followed. Therefore:

- After 10 values that differ, delta is clipped to 10 deviations in z, and to 5 in mean and m2. Then a code for missing
  values widens the deviation only if it is in more than 1/25 of the rows.
- While all values are equal they count as at most 100, because they do not tell the scale.
- A column restarts from the current value if its level or scale has changed: of the last values that moved, 50 more
  were clipped than not, or the step has fallen to a hundredth of the largest one.
- Nothing clips the first values, so they are tested at the 100th step: the column restarts if its deviation is more
  than 30 steps. A column that always climbs passes this test.

The step is a running median of |x - previous x|, without zeros. It moves by the same factor for any value, so that no
outlier can carry it off. A column that drifts slowly keeps its step, however far it goes, although its values in a
hundred rows may span a hundredth of its deviation.

A category is one feature per value; values beyond a limit are hashed.
"""

from __future__ import annotations

import math
import zlib
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.engine.compile import kernel
from shoal.files.messages import plural
from shoal.files.saved_state import State, check_state
from shoal.files.tables.assemble import Cells, Slots, shallow
from shoal.files.tables.column_kinds import KINDS, Values, Way

SURE = 10.0  # values that tell which are outliers, or steps that tell the size of steps
BEYOND = 10.0  # deviations
WITHIN = 0.5  # of them in mean and m2
EQUAL = 100.0  # the count of equal values, at most
CHANGED = 50.0  # clipped values, less those that were not
UP, DOWN = 65 / 64, 64 / 65  # factors of the step
FALLEN = 0.01  # of the largest step
TESTED = 100.0  # steps until the first values are tested
WIDE = 30.0  # steps
ZERO = 1e-300  # stands for a forecast of 0, as 0 is none
LIMIT = 1_000  # categories with a feature of their own
BUCKETS = 1_024  # of the others


class Moments(NamedTuple):
    """The state of columns of numbers, (columns,) each."""

    seen: NDArray[np.float64]  # n
    mean: NDArray[np.float64]
    m2: NDArray[np.float64]
    deviation: NDArray[np.float64]  # sqrt(m2 / n)
    previous: NDArray[np.float64]  # the last value
    step: NDArray[np.float64]
    largest: NDArray[np.float64]  # step since the column (re)started
    steps: NDArray[np.float64]  # count of steps
    run: NDArray[np.float64]  # recent values: the clipped ones less the others
    clipped: NDArray[np.float64]  # count of clipped values


@kernel(entry=True, inline=False, sums="exact", disjoint=True)
def standardize(numbers: NDArray[np.float64], moments: Moments, first_clipped: NDArray[np.int64], cells: Cells) -> None:
    """Fill the first cells of each row: z of its number, 0 in a column that has not varied; 1 in slot 1 for nan.

    Updates the moments, and the row of each column's first clipped value. All columns of a row are handled at once
    without a branch, so that the compiler vectorizes the loop.

    Parameters
    ----------
    numbers : (columns, n)
    """
    seen, mean, m2, deviation, previous, step, largest, steps, run, clipped = moments
    for row in range(numbers.shape[1]):
        x, slot = cells.values[row], cells.local[row]
        for c in range(len(numbers)):
            x[c] = numbers[c, row]
        for c in range(len(numbers)):
            value, before = x[c], step[c]
            present = value == value
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

            seen[c] = (1.0 if anew else n) if present else seen[c]
            mean[c] = (value if anew else mean[c] + shift) if present else mean[c]
            m2[c] = (0.0 if anew else scatter) if present else m2[c]
            deviation[c] = (0.0 if anew else spread) if present else deviation[c]
            previous[c] = value if present else previous[c]
            step[c] = size if present else step[c]
            largest[c] = top if present else largest[c]
            steps[c] = (0.0 if changed else k) if present else steps[c]
            run[c] = (0.0 if anew else more) if present else run[c]
            first_clipped[c] = row if odd & (clipped[c] == 0.0) else first_clipped[c]
            clipped[c] += 1.0 if odd else 0.0
            z = (delta - shift) / spread if spread > 0.0 else 0.0
            x[c] = (0.0 if anew else z) if present else 1.0
            slot[c] = 0 if present else 1


def scale(numbers: NDArray[np.float64], moments: Moments, cells: Cells) -> None:
    """As `standardize`, but the moments stay as they are."""
    deviation = moments.deviation
    delta = numbers.T - moments.mean
    z = np.divide(delta, deviation, out=np.zeros(delta.shape), where=deviation > 0)
    z = np.where(moments.seen >= SURE, np.clip(z, -BEYOND, BEYOND), z)
    absent = np.isnan(numbers.T)
    cells.values[:, : len(numbers)] = np.where(absent, 1.0, z)
    cells.local[:, : len(numbers)] = absent


class Categories(Slots):
    """The distinct values of a column: the first LIMIT have a feature each, later ones are hashed.

    Parameters
    ----------
    name : str
        Features are called `name=value` or, if hashed, `name#bucket`.
    missing : str or None
        The feature of missing values; None: they have none.
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
        """(n,) slots of the values; without `learns`, -1 for unknown ones."""
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
                slots[slots >= len(self.index)] = -1  # another thread has learned it since `frozen`
            local[unknown] = slots[texts.cast(pl.Enum(distinct)).to_physical().to_numpy()]
        return local

    def learn(self, value: str | None) -> int:
        """The slot of one value, a new one if it is unknown."""
        slot = self._values.get(value, -1) if value is not None else self._missing
        if slot < 0 and value is not None:
            slot = self._slot(value, learns=True)
            if slot >= len(self.index):
                self._grow()
        return slot

    def slot_of(self, value: str | None) -> int:
        """The slot of one value, -1 if it is unknown; learns nothing."""
        if value is None:
            return self._missing
        slot = self._values.get(value)
        if slot is None:
            slot = self._hashed.get(bucket_of(value), -1) if len(self._values) >= LIMIT else -1
        return slot

    def note(self) -> str:
        """How the values became features, for the notes of the stream."""
        if self._hashed:
            return f"{LIMIT:,} values one-hot, the further ones hashed into {BUCKETS:,} features"
        return f"{plural(len(self._values), 'value')} one-hot"

    def to_dict(self) -> State:
        """The whole state, for JSON."""
        hashed = {str(bucket): slot for bucket, slot in self._hashed.items()}
        return {**super().to_dict(), "values": dict(self._values), "hashed": hashed}

    def restore(self, state: State) -> None:
        """Restore a saved state."""
        super().restore(state)
        self._values = dict(state["values"])
        self._hashed = {int(bucket): slot for bucket, slot in state["hashed"].items()}
        self._remember()
        slots = [*self._values.values(), *self._hashed.values()]
        own = range(len(self.names))[self._missing + 1 :]
        check_state(sorted(slots) == list(own) and len(self._values) <= LIMIT, f"values of {self.name!r}")

    def _slot(self, value: str, *, learns: bool) -> int:
        """The slot of a value that is not in `_values`."""
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
        """Extend the index by the new names."""
        more = len(self.names) - len(self.index)
        self.index = np.append(self.index, np.full(more, -1, np.int32))
        if len(self._values) > len(self._known.categories):
            self._remember()

    def _remember(self) -> None:
        """Prepare the lookup of `encode`."""
        self._known = pl.Enum(list(self._values))
        self._slot_of_code = np.array([*self._values.values(), self._missing], np.int32)


class Column:
    """One column of a table: its kind, its statistics and its features.

    Attributes
    ----------
    in_sample : bool
        Whether the first rows had a value; otherwise the column begins with its first value.
    form : str
        How its numbers or dates are written, as `column_kinds.Way` says.
    hint : str
        A note on the option that may read it better.
    first_clipped : str
        The name of the row of its first clipped value.
    """

    def __init__(self, name: str, way: Way, *, in_sample: bool, hint: str = "") -> None:
        self.name = name
        kind, _ = self.kind, self.form = way
        self.in_sample = in_sample
        self.hint = hint
        self.n_missing = 0
        self.moments = np.zeros(len(Moments._fields))  # numeric: one of each
        self.first_clipped = ""
        missing = f"{name}=missing"
        self.slots = Slots({"numeric": [name, missing], "text": [missing], "forecast": [name]}.get(kind, []))
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
        """The parts of the column, each of which gives a row at most one feature."""
        return [*self.categories] or [self.slots]

    def frozen(self) -> Column:
        """A copy that later learning does not change, because it replaces the moments."""
        found = shallow(self)
        found.slots, found.categories = self.slots.frozen(), [part.frozen() for part in self.categories]
        return found

    def begin(self, values: Values) -> int:
        """The first row of the batch with features of the column; 0 unless its first value is still to come."""
        first = 0
        if not self.in_sample:
            first = int(np.argmax(values.present)) if values.present.any() else len(values.present)
        return first

    def count(self, values: Values, first: int) -> None:
        """Count the missing values from that row on."""
        self.in_sample = self.in_sample or first < len(values.present)
        self.n_missing += int(np.count_nonzero(~values.present[first:]))

    def encode(self, values: Values, cells: Cells, *, learns: bool) -> None:
        """Fill the cells of one batch, except numbers (`standardize`) and words (`bags_of`)."""
        if self.kind == "forecast":
            cells.local[:, 0] = np.where(values.present, 0, -1)
            cells.values[:, 0] = np.where(values.numbers == 0.0, ZERO, values.numbers)
            return
        if self.kind == "text":
            cells.local[:, 0] = np.where(values.present, -1, 0)
        for part, (categories, text) in enumerate(zip(self.categories, values.texts, strict=False)):
            cells.local[:, part] = categories.encode(text, learns=learns)
        cells.values[:] = 1.0

    def scaling(self) -> tuple[float, float, float]:
        """Mean and deviation of numbers, and the deviations to which a value is clipped."""
        seen, mean, _, deviation, *_ = self.moments.tolist()
        return mean, deviation, BEYOND if seen >= SURE else math.inf

    def note(self, hash_bits: int) -> str:
        """How the column became features, for the notes of the stream."""
        written = f" ({self.form})" if self.form else ""
        how = {
            "numeric": "numeric, scaled by its running mean and standard deviation",
            "forecast": "forecast of another model, beside the learner's own",
            "date": f"date{written}, weekday, month and hour one-hot",
            "time": f"time of day{written}, hour one-hot",
            "category": f"category, {self.categories[0].note() if self.categories else ''}",
            "text": f"text, single words and pairs hashed into {1 << hash_bits:,} features",
        }[self.kind]
        how += "; its decimal mark is a comma" if self.kind == "numeric" and self.form else ""
        missing = f", {self.n_missing:,} missing" if self.n_missing else ""
        return f"{self.name}: {how}{missing}" + (f"; {self.hint}" if self.hint else "")

    def note_clipped(self) -> str:
        """How many values were clipped, for the notes of the stream; empty if none."""
        n = int(self.moments[Moments._fields.index("clipped")])
        where = f"the first in {self.first_clipped}" if n > 1 else f"in {self.first_clipped}"
        return (
            f"column {self.name}: {plural(n, 'value')} beyond {BEYOND:.0f} deviations, clipped ({where})" if n else ""
        )

    def to_dict(self) -> State:
        """The whole state, for JSON."""
        parts = [self.slots.to_dict(), *(categories.to_dict() for categories in self.categories)]
        state = {
            "name": self.name,
            "kind": self.kind,
            "form": self.form,
            "in_sample": self.in_sample,
            "hint": self.hint,
        }
        state |= {"n_missing": self.n_missing, "first_clipped": self.first_clipped}
        return {**state, "moments": self.moments.tolist(), "parts": parts}

    @classmethod
    def from_dict(cls, state: State) -> Column:
        """The column of a saved state."""
        way = Way(state["kind"], state["form"])
        column = cls(state["name"], way, in_sample=state["in_sample"], hint=state["hint"])
        column.n_missing, column.first_clipped = state["n_missing"], state["first_clipped"]
        column.moments = np.array(state["moments"], np.float64)
        n_slots = len(column.slots.names)
        parts = [column.slots, *column.categories]
        known = column.moments.shape == (len(Moments._fields),)
        check_state(known and len(parts) == len(state["parts"]), f"column {column.name!r}")
        for part, saved in zip(parts, state["parts"], strict=True):
            part.restore(saved)
        right = len(column.slots.names) == n_slots and isinstance(column.n_missing, int)
        right &= isinstance(column.first_clipped, str) and isinstance(column.form, str)
        right &= bool(np.isfinite(column.moments).all()) and column.kind in KINDS
        check_state(right, f"column {column.name!r}")
        return column


def bucket_of(value: str) -> int:
    """The bucket of a hashed value: the same in every process and version."""
    return zlib.crc32(value.encode()) % BUCKETS
