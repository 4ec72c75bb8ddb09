"""Meanings of the features of a row, in the words and units of its table: "price 2.50", "offer flyer", "day Monday".

And the typical values of a column, with their features.
"""

import calendar
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from shoal.engine.arrays import FloatArray, IntArray
from shoal.files.tables.assemble import TextSlots
from shoal.files.tables.column_kinds import Values
from shoal.files.tables.column_state import Column
from shoal.files.tables.words import bag_of, words_and_pairs

MOST_WORDS = 5_000  # of a text that are named
TYPICAL = 10  # values of a column, at most; parts of a date may be more
DECILES = np.arange(1, 10) / 10.0


class Meaning(NamedTuple):
    """The meaning of one feature.

    `str()` says it; `within` says instead in which bin a number lies.
    """

    column: str
    value: str
    mean: float = 0.0  # of numbers, which learners see in deviations from it
    deviation: float = 0.0

    def __str__(self) -> str:
        if self.value in ("true", "false"):
            return self.column if self.value == "true" else f"no {self.column}"
        return f"{self.column} {self.value}"

    def within(self, above: float, up_to: float) -> str:
        """The column and the bin from `above` to `up_to`, which are in deviations; NaN: in no bin."""
        if math.isnan(above) or self.value in ("true", "false"):
            return str(self)
        low, high = (number(self.mean + edge * self.deviation, self.deviation) for edge in (above, up_to))
        if math.isinf(above) or math.isinf(up_to):
            return f"{self.column} up to {high}" if math.isinf(above) else f"{self.column} above {low}"
        return f"{self.column} {low} to {high}"


def number(value: float, deviation: float) -> str:
    """A number with the digits that matter in its column: a thirtieth of the deviation.

    >>> number(2.5, 0.6), number(3.0, 0.6), number(1234.567, 500.0), number(0.00012345, 0.00002)
    ('2.50', '3', '1235', '0.0001234')
    """
    if not math.isfinite(value) or value.is_integer():
        return f"{value:.15g}"
    digits = 2 if deviation <= 0.0 else math.ceil(-math.log10(deviation / 30.0))
    return f"{value + 0.0:.{min(max(digits, 0), 12)}f}"


def meanings_of(columns: Sequence[Column], texts: TextSlots, values: dict[str, Values], row: int) -> dict[int, Meaning]:
    """The meaning of each feature of a row, by its column of X."""
    found: dict[int, Meaning] = {}
    for column in columns:
        if column.name not in values:
            continue
        name, its, missing = column.name, values[column.name], Meaning(column.name, "missing")
        if column.kind == "numeric":
            (own, absent), (mean, deviation, _) = column.slots.index.tolist(), column.scaling()
            value = float(its.numbers[row])
            shown = number(value, deviation)
            if value in (0.0, 1.0) and math.isclose(deviation**2, mean * (1.0 - mean), rel_tol=0.05):  # all are 0 or 1
                shown = "true" if value else "false"
            found[own] = Meaning(name, shown, mean, deviation)
            found[absent] = missing
        elif column.kind == "forecast":
            found[int(column.slots.index[0])] = Meaning(name, number(float(its.numbers[row]), 0.0))
        elif column.kind == "text":
            found[int(column.slots.index[0])] = missing
            index, text = texts.index[texts.names.index(name)], its.texts[0][row]
            words: dict[int, list[str]] = {}
            buckets = [] if text is None else index[bag_of(text, texts.bits)].tolist()
            for j, word in zip(buckets[:MOST_WORDS], words_and_pairs(text or ""), strict=False):
                if word not in words.setdefault(j, []):
                    words[j].append(word)
            found |= {j: Meaning(name, " or ".join(f'"{word}"' for word in some)) for j, some in words.items()}
        else:
            for part, text in zip(column.categories, its.texts, strict=True):
                slot = part.slot_of(text[row])
                if 0 <= slot < len(part.index):
                    of = part.name.removeprefix(f"{name}.") if column.kind != "category" else ""
                    found[int(part.index[slot])] = missing if text[row] is None else Meaning(name, _text(of, text[row]))
    found.pop(-1, None)  # of features that no row to learn had
    return found


class Setting(NamedTuple):
    """A value that a column may be set to, as features of X."""

    value: Any  # a number, or a word
    replaced: IntArray  # the features that give way: those of the column, or of a part of its date
    features: IntArray
    values: FloatArray


def settings_of(column: Column, X: Any) -> list[Setting]:
    """The typical values of a column in rows X: deciles of numbers, the most frequent categories, all weekdays, months
    and hours. None of a text.
    """
    if column.kind == "numeric":
        return _numbers_of(column, X)
    found: list[Setting] = []
    for part in column.categories:
        of = part.name.removeprefix(f"{column.name}.") if column.kind != "category" else ""
        known = part.index >= 0
        index = part.index[known].astype(np.int64)
        names = [name for name, is_known in zip(part.names, known.tolist(), strict=False) if is_known]
        rows = np.asarray(X[:, index].getnnz(axis=0))
        order = [k for k in np.argsort(-rows, kind="stable").tolist() if rows[k]]
        values = {k: names[k].removeprefix(part.name).removeprefix("=") for k in order}
        if of:  # in the order of time, without a missing date
            order = sorted((k for k in order if values[k].isdigit()), key=lambda k: int(values[k]))
        if of and len(order) < 2:
            continue
        found += [
            Setting(_text(of, values[k]) if of else values[k], index, index[[k]], np.ones(1))
            for k in order[: None if of else TYPICAL]
        ]
    return found


def _numbers_of(column: Column, X: Any) -> list[Setting]:
    own, absent = column.slots.index.tolist()
    if own < 0:
        return []
    mean, deviation, _ = column.scaling()
    scaled = X[:, [own]].toarray()[:, 0]
    if absent >= 0:
        scaled = scaled[X[:, [absent]].toarray()[:, 0] == 0.0]
    if len(scaled) == 0:
        return []
    distinct = np.unique(scaled)
    if len(distinct) > TYPICAL:
        distinct = np.unique(np.quantile(scaled, DECILES, method="nearest"))
    replaced = np.array([j for j in (own, absent) if j >= 0], np.int64)
    values = dict.fromkeys(float(number(mean + z * deviation, deviation)) for z in distinct.tolist())
    return [
        Setting(value, replaced, replaced[:1], np.array([(value - mean) / deviation if deviation else 0.0]))
        for value in values
    ]


def _text(part: str, value: str) -> str:
    """A part of a date, or a category."""
    if part == "weekday":
        return calendar.day_name[int(value) - 1]
    if part == "month":
        return calendar.month_name[int(value)]
    return f"{int(value)}:00 to {int(value)}:59" if part == "hour" else value
